/* Blobs whose chunks hold a zlib stream. */
#include "test_store_blob.h"

#include "store/pack.h"

/* Text that shrinks to a fraction. */
static uint8_t *text(size_t len)
{
    uint8_t *data = malloc(len + 1);

    if (!data)
        abort();
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)((size_t) "{\"role\":\"user\"},"[i % 16] + (i / 4096) % 7);
    return data;
}

static void set_up_zlib(struct tap *t, struct fixture *f)
{
    set_up(t, f);
    f->compress = true;
}

/* Its columns; they live as long as the fixture's arena is not reset. */
static void columns_of(struct tap *t, struct fixture *f, const char *name,
                       struct value column[BLOB_COLUMNS])
{
    struct raw raw = { .name = name, .column = column };

    TAP_EQ(t, run(f, blob_row_body, &raw), BELAY_OK);
}

static unsigned chunks_of(int64_t stored)
{
    return (unsigned)((stored + (int64_t)CHUNK_MAX - 1) / (int64_t)CHUNK_MAX);
}

/* --- in and out --- */

static void check_round_trip(struct tap *t, struct bytes all, bool shrinks)
{
    struct value column[BLOB_COLUMNS] = { 0 };
    struct blob_info info = { .existed = true };
    char name[SHA256_HEX_LEN + 1];
    struct fixture f;
    bool whole;

    set_up_zlib(t, &f);
    name_of(all, name);
    TAP_EQ(t, put_in(&f, all, 100001, "", name, &info), BELAY_OK);
    TAP_STR(t, info.sha256, name); /* of the content, not of what is stored */
    TAP_EQ(t, info.size, all.len);
    TAP_OK(t, !info.existed);
    TAP_EQ(t, info.stored_size < info.size, shrinks);
    check_tally(t, &f, 1, 0, chunks_of(info.stored_size));

    columns_of(t, &f, name, column);
    TAP_EQ(t, column[BLOB_SIZE].i, info.size);
    TAP_EQ(t, column[BLOB_STORED_SIZE].i, info.stored_size);
    TAP_EQ(t, column[BLOB_CHUNKS].i, chunks_of(info.stored_size));
    if (all.len > 0)
        TAP_OK(t, bytes_eq(column[BLOB_COMPRESSION].b, bytes_str(BLOB_ZLIB)));
    else
        TAP_EQ(t, column[BLOB_COMPRESSION].kind, VALUE_NULL);
    TAP_EQ(t, get(&f, name, all, &whole), BELAY_OK);
    TAP_OK(t, whole);
    tear_down(&f);
}

static void test_sizes(struct tap *t)
{
    static const size_t sizes[] = {
        0, 1, CHUNK_MAX - 1, CHUNK_MAX, CHUNK_MAX + 1, 3 * CHUNK_MAX + CHUNK_MAX / 2
    };

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        uint8_t *noise = content(sizes[i], (unsigned)i), *words = text(sizes[i]);
        check_round_trip(t, bytes_of(noise, sizes[i]), false);
        check_round_trip(t, bytes_of(words, sizes[i]), sizes[i] > 1);
        free(noise);
        free(words);
    }
}

/* Puts parts of the data whose streams have about CHUNK_MAX bytes, one of them exactly:
 * gives that one. */
static void put_full_chunk(struct tap *t, struct fixture *f, const uint8_t *data,
                           struct blob_info *out)
{
    struct blob_info info;
    bool whole;

    /* What cannot be compressed grows by a few bytes for a block. */
    TAP_EQ(t, put(f, bytes_of(data, CHUNK_MAX - 1024), out), BELAY_OK);
    size_t len = CHUNK_MAX - (size_t)(out->stored_size - out->size);
    for (size_t i = len - 16; i <= len + 16 && i <= CHUNK_MAX; i++) {
        TAP_EQ(t, put(f, bytes_of(data, i), &info), BELAY_OK);
        TAP_EQ(t, get(f, info.sha256, bytes_of(data, i), &whole), BELAY_OK);
        TAP_OK(t, whole);
        if (info.stored_size == (int64_t)CHUNK_MAX)
            *out = info;
    }
    TAP_EQ(t, out->stored_size, CHUNK_MAX);
}

static void test_cuts(struct tap *t)
{
    struct bytes small = bytes_str("in pieces of one byte each");
    uint8_t *data = content(CHUNK_MAX, 4);
    struct blob_info info;
    struct fixture f;
    bool whole;

    set_up_zlib(t, &f);
    TAP_EQ(t, put_in(&f, small, 1, "", NULL, &info), BELAY_OK);
    TAP_EQ(t, get(&f, info.sha256, small, &whole), BELAY_OK);
    TAP_OK(t, whole);
    put_full_chunk(t, &f, data, &info);
    free(data);
    tear_down(&f);
}

static void test_piece_sizes(struct tap *t)
{
    size_t len = 2 * CHUNK_MAX + 10;
    uint8_t *data = text(len);
    struct blob_reader *r;
    struct blob_info info;
    struct bytes piece;
    struct fixture f;

    set_up_zlib(t, &f);
    TAP_EQ(t, put(&f, bytes_of(data, len), &info), BELAY_OK);
    TAP_OK(t, info.stored_size < (int64_t)CHUNK_MAX / 10);
    trace_reset(f.trace);
    TAP_EQ(t, blob_reader_open(&r, f.sp, info.sha256, NULL, &f.err), BELAY_OK);
    TAP_EQ(t, blob_reader_size(r), len);
    for (size_t at = 0; at < len; at += CHUNK_MAX) {
        size_t left = len - at;
        TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_OK);
        TAP_OK(t, bytes_eq(piece,
                           bytes_of(data + at, left < CHUNK_MAX ? left : CHUNK_MAX)));
    }
    for (int i = 0; i < 2; i++) {
        TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_OK);
        TAP_EQ(t, piece.len, 0);
    }
    TAP_EQ(t, trace_counts(f.trace).reads, 2); /* the row, and its one chunk */
    TAP_EQ(t, trace_counts(f.trace).commits, 0);
    blob_reader_close(r);
    free(data);
    tear_down(&f);
}

static void test_known(struct tap *t)
{
    struct blob_info first, second;
    uint8_t *data = text(5000);
    struct bytes all = bytes_of(data, 5000);
    struct fixture f;
    bool whole;

    for (int compressed_first = 0; compressed_first < 2; compressed_first++) {
        set_up(t, &f);
        f.compress = compressed_first;
        TAP_EQ(t, put(&f, all, &first), BELAY_OK);
        f.compress = !compressed_first;
        TAP_EQ(t, put(&f, all, &second), BELAY_OK);
        TAP_OK(t, !first.existed && second.existed);
        TAP_STR(t, second.sha256, first.sha256);
        TAP_EQ(t, second.size, 5000);
        TAP_EQ(t, second.stored_size, first.stored_size); /* as it lies there */
        TAP_EQ(t, get(&f, first.sha256, all, &whole), BELAY_OK);
        TAP_OK(t, whole);
        tear_down(&f);
    }
    free(data);
}

/* --- damage --- */

/* A compressed blob of three chunks, and its upload.  Since it does not shrink, a piece
 * needs a little of the chunk after its own. */
struct damaged {
    struct fixture f;
    struct blob_info info;
    struct raw raw;
    uint8_t *data, *stored;
    size_t len;
};

static belay_rc get_chunk_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;
    bool found;

    return txn_chunk_get(t, bytes_str(raw->upload), raw->index, &found, &raw->data);
}

static void damage_begin(struct tap *t, struct damaged *d)
{
    *d = (struct damaged){ .len = 2 * CHUNK_MAX + 100 };
    set_up_zlib(t, &d->f);
    d->data = content(d->len, 1);
    TAP_EQ(t, put(&d->f, bytes_of(d->data, d->len), &d->info), BELAY_OK);
    d->raw.name = d->info.sha256;
    d->raw.upload = upload_of(t, &d->f, d->info.sha256);
    d->stored = malloc((size_t)d->info.stored_size);
    for (int64_t i = 0; i < 3; i++) {
        d->raw.index = i;
        TAP_EQ(t, run(&d->f, get_chunk_body, &d->raw), BELAY_OK);
        memcpy(d->stored + (size_t)i * CHUNK_MAX, d->raw.data.ptr, d->raw.data.len);
    }
}

static void damage_end(struct damaged *d)
{
    free(d->data);
    free(d->stored);
    tear_down(&d->f);
}

static void put_chunk(struct tap *t, struct damaged *d, int64_t index, size_t len)
{
    d->raw.index = index;
    d->raw.data = bytes_of(d->stored + (size_t)index * CHUNK_MAX, len);
    TAP_EQ(t, run(&d->f, put_chunk_body, &d->raw), BELAY_OK);
}

static void change(struct tap *t, struct damaged *d, unsigned column,
                   struct value value)
{
    d->raw.change = (struct change){ column, value };
    TAP_EQ(t, run(&d->f, change_blob_body, &d->raw), BELAY_OK);
}

static void test_damaged_chunks(struct tap *t)
{
    struct damaged d;

    damage_begin(t, &d);
    size_t last = (size_t)d.info.stored_size - 2 * CHUNK_MAX;

    /* A bit of the content: the checksum of the stream, or the digest, tells. */
    d.stored[5000] ^= 1;
    put_chunk(t, &d, 0, CHUNK_MAX);
    check_corrupt(t, &d.f, d.info.sha256, 2, "hash_mismatch");
    d.stored[5000] ^= 1;
    /* Of the stream's own structure: found out there. */
    d.stored[0] ^= 0x0f;
    put_chunk(t, &d, 0, CHUNK_MAX);
    check_corrupt(t, &d.f, d.info.sha256, 0, "hash_mismatch");
    d.stored[0] ^= 0x0f;
    put_chunk(t, &d, 0, CHUNK_MAX);

    put_chunk(t, &d, 1, CHUNK_MAX - 1); /* too short */
    check_corrupt(t, &d.f, d.info.sha256, 0, "hash_mismatch");
    put_chunk(t, &d, 1, CHUNK_MAX);
    for (int64_t i = 2; i >= 0; i--) {
        d.raw.index = i;
        TAP_EQ(t, run(&d.f, drop_chunk_body, &d.raw), BELAY_OK);
        check_corrupt(t, &d.f, d.info.sha256, i == 2, "missing_chunk");
    }

    /* All of it back: it is whole again. */
    bool whole;
    put_chunk(t, &d, 0, CHUNK_MAX);
    put_chunk(t, &d, 1, CHUNK_MAX);
    put_chunk(t, &d, 2, last);
    TAP_EQ(t, get(&d.f, d.info.sha256, bytes_of(d.data, d.len), &whole), BELAY_OK);
    TAP_OK(t, whole);
    damage_end(&d);
}

static void test_cut_off(struct tap *t)
{
    struct damaged d;

    damage_begin(t, &d);
    size_t last = (size_t)d.info.stored_size - 2 * CHUNK_MAX;
    const size_t lost[] = { 1, 4, 5, 60 };

    /* The row agrees that the stream is so short. */
    for (size_t i = 0; i < COUNT_OF(lost); i++) {
        put_chunk(t, &d, 2, last - lost[i]);
        change(t, &d, BLOB_STORED_SIZE,
               value_i64(d.info.stored_size - (int64_t)lost[i]));
        check_corrupt(t, &d.f, d.info.sha256, 2, "hash_mismatch");
    }
    /* Without its last chunk. */
    change(t, &d, BLOB_STORED_SIZE, value_i64(2 * (int64_t)CHUNK_MAX));
    change(t, &d, BLOB_CHUNKS, value_i64(2));
    check_corrupt(t, &d.f, d.info.sha256, 1, "hash_mismatch");
    damage_end(&d);
}

/* What the rest of the stream is said to be, behind its end. */
static void test_behind(struct tap *t)
{
    struct damaged d;

    damage_begin(t, &d);
    size_t last = (size_t)d.info.stored_size - 2 * CHUNK_MAX;
    uint8_t *more = calloc(1, CHUNK_MAX);

    memcpy(more, d.stored + 2 * CHUNK_MAX, last);
    d.raw.index = 2;
    d.raw.data = bytes_of(more, last + 1); /* one byte, in the same chunk */
    TAP_EQ(t, run(&d.f, put_chunk_body, &d.raw), BELAY_OK);
    change(t, &d, BLOB_STORED_SIZE, value_i64(d.info.stored_size + 1));
    check_corrupt(t, &d.f, d.info.sha256, 2, "hash_mismatch");

    /* A chunk of its own. */
    struct blob_info info;
    put_full_chunk(t, &d.f, d.data, &info);
    d.raw.name = info.sha256;
    d.raw.upload = upload_of(t, &d.f, info.sha256);
    d.raw.index = 1;
    d.raw.data = bytes_of("x", 1);
    TAP_EQ(t, run(&d.f, put_chunk_body, &d.raw), BELAY_OK);
    change(t, &d, BLOB_STORED_SIZE, value_i64((int64_t)CHUNK_MAX + 1));
    change(t, &d, BLOB_CHUNKS, value_i64(2));
    check_corrupt(t, &d.f, info.sha256, 0, "hash_mismatch");
    free(more);
    damage_end(&d);
}

/* A row that says a few bytes, and a chunk that would be 64 MiB. */
static void test_bomb(struct tap *t)
{
    size_t len = ((size_t)64 << 20) + 10;
    uint8_t *zeros = calloc(1, len);
    struct belay_arena a = { 0 };
    struct bytes stream = { 0 };
    struct damaged d;

    damage_begin(t, &d);
    TAP_EQ(t, pack_if_shorter(bytes_of(zeros, len), &a, &stream, NULL), BELAY_OK);
    d.raw.index = 0;
    d.raw.data = stream;
    TAP_EQ(t, run(&d.f, put_chunk_body, &d.raw), BELAY_OK);
    change(t, &d, BLOB_STORED_SIZE, value_i64((int64_t)stream.len));
    change(t, &d, BLOB_CHUNKS, value_i64(1));
    static const int64_t sizes[] = { 1 << 16, 1 << 20, (64 << 20) + 9 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        unsigned good = (unsigned)((sizes[i] - 1) / (int64_t)CHUNK_MAX);
        change(t, &d, BLOB_SIZE, value_i64(sizes[i]));
        check_corrupt(t, &d.f, d.info.sha256, good, "hash_mismatch");
    }
    /* And one that yields less than the row says. */
    change(t, &d, BLOB_SIZE, value_i64((64 << 20) + 11));
    check_corrupt(t, &d.f, d.info.sha256, 64, "hash_mismatch");
    arena_release(&a);
    free(zeros);
    damage_end(&d);
}

static void test_rows(struct tap *t)
{
    static const int64_t stored[] = { INT64_MIN, -1, 0, INT64_MAX, BLOB_SIZE_MAX };
    struct blob_reader *r = NULL;
    struct damaged d;

    damage_begin(t, &d);
    for (size_t i = 0; i < COUNT_OF(stored); i++) {
        change(t, &d, BLOB_STORED_SIZE, value_i64(stored[i]));
        TAP_EQ(t, blob_reader_open(&r, d.f.sp, d.info.sha256, NULL, &d.f.err),
               BELAY_CORRUPT);
    }
    change(t, &d, BLOB_STORED_SIZE, value_i64(d.info.stored_size));
    change(t, &d, BLOB_COMPRESSION, value_str("zstd"));
    TAP_EQ(t, blob_reader_open(&r, d.f.sp, d.info.sha256, NULL, &d.f.err),
           BELAY_UNSUPPORTED_FORMAT);
    TAP_STR(t, d.f.err.reason, "compression");
    change(t, &d, BLOB_COMPRESSION, value_str(""));
    TAP_EQ(t, blob_reader_open(&r, d.f.sp, d.info.sha256, NULL, &d.f.err),
           BELAY_UNSUPPORTED_FORMAT);
    /* The stream itself under the content's name. */
    change(t, &d, BLOB_COMPRESSION, value_null());
    change(t, &d, BLOB_SIZE, value_i64(d.info.stored_size));
    check_corrupt(t, &d.f, d.info.sha256, 2, "hash_mismatch");
    damage_end(&d);
}

/* --- faults --- */

/* A piece that needs two chunks goes on where it failed. */
static void test_read_again(struct tap *t)
{
    struct damaged d;
    struct blob_reader *r;
    struct bytes piece;

    damage_begin(t, &d);
    for (unsigned nth = 1; nth <= 3; nth++) {
        struct fault fault = { FAULT_ON_READ, FAULT_BEFORE, nth, false, 0, 0 };
        size_t at = 0;
        unsigned failed = 0;

        TAP_EQ(t, blob_reader_open(&r, d.f.sp, d.info.sha256, NULL, &d.f.err),
               BELAY_OK);
        TAP_EQ(t, fault_arm(d.f.fault, &fault, &d.f.err), BELAY_OK);
        do {
            belay_rc rc = blob_read(r, &piece, &d.f.err);
            if (rc) {
                TAP_EQ(t, rc, BELAY_UNAVAILABLE);
                failed++;
                piece.len = 1;
                continue;
            }
            TAP_OK(t, bytes_eq(piece, bytes_of(d.data + at, piece.len)));
            at += piece.len;
        } while (piece.len > 0 && failed < 9);
        TAP_EQ(t, at, d.len);
        TAP_EQ(t, failed, 1);
        blob_reader_close(r);
    }
    damage_end(&d);
}

static void test_commit_faults(struct tap *t)
{
    size_t len = 2 * CHUNK_MAX + 5;
    uint8_t *data = content(len, 3);
    struct bytes all = bytes_of(data, len);
    char name[SHA256_HEX_LEN + 1];
    unsigned nth = 1;
    bool acted = true;

    name_of(all, name);
    for (; nth < 20 && acted; nth++) {
        struct fault fault = { FAULT_ON_COMMIT, FAULT_BEFORE, nth, false, 0, 3 };
        struct blob_info info;
        struct fixture f;
        bool whole;
        size_t swept;

        set_up_zlib(t, &f);
        TAP_EQ(t, put(&f, bytes_str("warm"), &info), BELAY_OK);
        TAP_EQ(t, fault_arm(f.fault, &fault, &f.err), BELAY_OK);
        belay_rc rc = put_in(&f, all, 300000, "", name, &info);
        acted = fault_count(f.fault) > 0;
        fault_clear(f.fault);
        TAP_EQ(t, rc, acted ? BELAY_UNAVAILABLE : BELAY_OK);
        TAP_EQ(t, get(&f, name, all, &whole), acted ? BELAY_NOT_FOUND : BELAY_OK);
        TAP_EQ(t, whole, !acted);
        TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, 9, &swept, &f.err), BELAY_OK);
        check_tally(t, &f, acted ? 1 : 2, 0, acted ? 1 : 4);
        tear_down(&f);
    }
    TAP_EQ(t, nth, 6); /* three chunks and the blob, and once without */
    free(data);
}

static const struct tap_case cases[] = {
    { "compressed blobs of any size come back as they went in", test_sizes },
    { "how bytes and streams are cut does not matter", test_cuts },
    { "pieces are of content, and at most a chunk long", test_piece_sizes },
    { "known content stays as it lies there", test_known },
    { "a damaged chunk never gives the last piece", test_damaged_chunks },
    { "a stream that was cut off never gives the last piece", test_cut_off },
    { "what stands behind the stream's end is corrupt", test_behind },
    { "a stream gives no more than the row says", test_bomb },
    { "rows that cannot be are corrupt, unknown compression is unsupported",
      test_rows },
    { "a piece that could not be read may be asked for again", test_read_again },
    { "a fault at any commit leaves a whole blob or none", test_commit_faults },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
