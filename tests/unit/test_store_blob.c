/* Blobs on a memory store, seen through a trace and through faults. */
#include "test_store_blob.h"

#include <pthread.h>
#include <stdatomic.h>

/* --- uploads made, and found, by hand --- */

/* An upload of raw->number tiny chunks that began at raw->index. */
static belay_rc make_upload_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;
    struct value v[] = { value_str(raw->upload), value_i64(raw->number),
                         value_i64(raw->index) };

    belay_rc rc = txn_insert(t, &row_upload, v);
    if (!rc)
        rc = txn_rank_add(t, bytes_str(UPLOAD_INDEX), raw->index,
                          bytes_str(raw->upload));
    for (int64_t i = 0; i < raw->number && !rc; i++)
        rc = txn_chunk_put(t, bytes_str(raw->upload), i, bytes_str("x"));
    return rc;
}

static belay_rc change_chunks_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;
    struct value key = value_str(raw->upload);
    struct change change = { UPLOAD_CHUNKS, value_i64(raw->number) };
    const struct row *row;

    belay_rc rc = txn_get(t, &row_upload, &key, &row);
    return rc ? rc : txn_put(t, &row_upload, &key, &change, 1);
}

static belay_rc find_upload_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;
    struct bytes index = bytes_str(UPLOAD_INDEX);
    struct scan scan = {
        .indexes = &index, .n_indexes = 1, .max_rank = RANK_MAX, .limit = 1
    };
    struct hits hits;

    belay_rc rc = txn_scan(t, &scan, &hits);
    if (!rc && hits.n > 0)
        raw->data = hits.hit[0].member;
    return rc;
}

static const char *only_upload(struct tap *t, struct fixture *f)
{
    struct raw raw = { 0 };
    struct bytes copy = { 0 };

    TAP_EQ(t, run(f, find_upload_body, &raw), BELAY_OK);
    if (!arena_copy(&f->arena, raw.data, &copy))
        abort();
    return (const char *)copy.ptr;
}

/* --- cases: in and out --- */

static void test_sizes(struct tap *t)
{
    static const size_t sizes[] = {
        0, 1, CHUNK_MAX - 1, CHUNK_MAX, CHUNK_MAX + 1, 3 * CHUNK_MAX + CHUNK_MAX / 2
    };
    unsigned chunks = 0;
    struct fixture f;

    set_up(t, &f);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        uint8_t *data = content(sizes[i], (unsigned)i);
        struct bytes all = bytes_of(data, sizes[i]);
        struct blob_info info = { .existed = true };
        char name[SHA256_HEX_LEN + 1];
        bool whole;

        name_of(all, name);
        TAP_EQ(t, put(&f, all, &info), BELAY_OK);
        TAP_STR(t, info.sha256, name);
        TAP_EQ(t, info.size, sizes[i]);
        TAP_EQ(t, info.stored_size, sizes[i]);
        TAP_OK(t, !info.existed);
        TAP_EQ(t, get(&f, name, all, &whole), BELAY_OK);
        TAP_OK(t, whole);
        chunks += (unsigned)((sizes[i] + CHUNK_MAX - 1) / CHUNK_MAX);
        check_tally(t, &f, (unsigned)i + 1, 0, chunks);
        free(data);
    }
    tear_down(&f);
}

static void test_pieces(struct tap *t)
{
    static const size_t pieces[] = { 65537, CHUNK_MAX / 2, CHUNK_MAX, CHUNK_MAX + 3 };
    size_t len = 2 * CHUNK_MAX + 4711;
    uint8_t *data = content(len, 5);
    struct bytes all = bytes_of(data, len);
    char name[SHA256_HEX_LEN + 1];

    name_of(all, name);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        struct blob_info info;
        struct fixture f;
        bool whole;

        set_up(t, &f);
        TAP_EQ(t, put_in(&f, all, pieces[i], "", name, &info), BELAY_OK);
        TAP_STR(t, info.sha256, name);
        TAP_EQ(t, get(&f, name, all, &whole), BELAY_OK);
        TAP_OK(t, whole);
        check_tally(t, &f, 1, 0, 3);
        tear_down(&f);
    }
    free(data);
}

static void test_tiny_pieces(struct tap *t)
{
    static const char text[] = "a blob of twenty-eight bytes";
    struct bytes all = bytes_str(text);
    struct blob_info info;
    struct blob_writer *w;
    struct fixture f;
    bool whole;

    set_up(t, &f);
    TAP_EQ(t, blob_writer_open(&w, f.sp, false, NULL, &f.err), BELAY_OK);
    for (size_t i = 0; i < all.len; i++) {
        TAP_EQ(t, blob_write(w, bytes_of(all.ptr + i, 1), &f.err), BELAY_OK);
        TAP_EQ(t, blob_write(w, bytes_of(NULL, 0), &f.err), BELAY_OK);
    }
    check_tally(t, &f, 0, 0, 0); /* nothing is committed before a chunk is full */
    TAP_EQ(t, blob_finish(w, bytes_str(""), NULL, &info, &f.err), BELAY_OK);
    blob_writer_close(w);
    TAP_EQ(t, get(&f, info.sha256, all, &whole), BELAY_OK);
    TAP_OK(t, whole);
    tear_down(&f);
}

static void test_row(struct tap *t)
{
    struct value column[BLOB_COLUMNS] = { 0 };
    struct raw raw = { .column = column };
    struct blob_info info;
    struct fixture f;

    set_up(t, &f);
    f.time.us = 5000;
    TAP_EQ(t, put_in(&f, bytes_str("abc"), 2, "{\"kind\":\"k\"}", NULL, &info),
           BELAY_OK);
    TAP_STR(t, info.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    raw.name = info.sha256;
    TAP_EQ(t, run(&f, blob_row_body, &raw), BELAY_OK);
    TAP_OK(t, column[BLOB_UPLOAD].b.len > 4 &&
                  memcmp(column[BLOB_UPLOAD].b.ptr, "upl_", 4) == 0);
    TAP_EQ(t, column[BLOB_SIZE].i, 3);
    TAP_EQ(t, column[BLOB_CHUNKS].i, 1);
    TAP_EQ(t, column[BLOB_DESCRIPTOR].kind, VALUE_JSON);
    TAP_OK(t, bytes_eq(column[BLOB_DESCRIPTOR].b, bytes_str("{\"kind\":\"k\"}")));
    TAP_EQ(t, column[BLOB_CREATED_AT_MS].i, START_MS + 5);
    TAP_EQ(t, column[BLOB_TOUCHED_AT_MS].i, START_MS + 5);
    TAP_EQ(t, column[BLOB_COMPRESSION].kind, VALUE_NULL);
    TAP_EQ(t, column[BLOB_STORED_SIZE].i, 3);

    TAP_EQ(t, put(&f, bytes_str(""), &info), BELAY_OK);
    raw.name = info.sha256;
    TAP_EQ(t, run(&f, blob_row_body, &raw), BELAY_OK);
    TAP_EQ(t, column[BLOB_UPLOAD].b.len, 0);
    TAP_EQ(t, column[BLOB_SIZE].i, 0);
    TAP_EQ(t, column[BLOB_CHUNKS].i, 0);
    TAP_EQ(t, column[BLOB_DESCRIPTOR].kind, VALUE_NULL);
    TAP_EQ(t, column[BLOB_STORED_SIZE].i, 0);
    tear_down(&f);
}

static void test_known_content(struct tap *t)
{
    struct value column[BLOB_COLUMNS] = { 0 };
    struct blob_info first, second;
    struct fixture f;
    bool whole;

    set_up(t, &f);
    TAP_EQ(t, put_in(&f, bytes_str("same"), 4, "1", NULL, &first), BELAY_OK);
    TAP_OK(t, !first.existed);
    const char *upload = upload_of(t, &f, first.sha256);
    TAP_EQ(t, put_in(&f, bytes_str("same"), 4, "2", NULL, &second), BELAY_OK);
    TAP_OK(t, second.existed);
    TAP_STR(t, second.sha256, first.sha256);
    TAP_EQ(t, second.size, 4);
    TAP_STR(t, upload_of(t, &f, first.sha256), upload);
    TAP_EQ(
        t,
        run(&f, blob_row_body, &(struct raw){ .name = first.sha256, .column = column }),
        BELAY_OK);
    TAP_OK(t, bytes_eq(column[BLOB_DESCRIPTOR].b, bytes_str("1")));
    check_tally(t, &f, 1, 1, 2); /* the second upload is garbage now */

    size_t swept = 0;
    f.time.us += 1000;
    TAP_EQ(t, blob_sweep_uploads(f.sp, START_MS + 1, 10, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 1);
    check_tally(t, &f, 1, 0, 1);
    TAP_EQ(t, get(&f, first.sha256, bytes_str("same"), &whole), BELAY_OK);
    TAP_OK(t, whole);

    TAP_EQ(t, put(&f, bytes_str(""), &first), BELAY_OK);
    TAP_EQ(t, put(&f, bytes_str(""), &second), BELAY_OK);
    TAP_OK(t, !first.existed && second.existed);
    tear_down(&f);
}

static void test_race(struct tap *t)
{
    struct blob_writer *a, *b;
    struct blob_info one, two;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, blob_writer_open(&a, f.sp, false, NULL, &f.err), BELAY_OK);
    TAP_EQ(t, blob_writer_open(&b, f.sp, false, NULL, &f.err), BELAY_OK);
    TAP_EQ(t, blob_write(a, bytes_str("same"), &f.err), BELAY_OK);
    TAP_EQ(t, blob_write(b, bytes_str("same"), &f.err), BELAY_OK);
    TAP_EQ(t, blob_finish(b, bytes_str(""), NULL, &two, &f.err), BELAY_OK);
    TAP_EQ(t, blob_finish(a, bytes_str(""), NULL, &one, &f.err), BELAY_OK);
    TAP_OK(t, !two.existed && one.existed);
    blob_writer_close(a);
    blob_writer_close(b);
    check_tally(t, &f, 1, 1, 2);
    tear_down(&f);
}

/* --- cases: what a writer refuses --- */

static void test_expect(struct tap *t)
{
    static const char *const wrong[] = {
        "", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ac",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad0"
    };
    struct blob_info info = { .size = -1 };
    struct fixture f;

    set_up(t, &f);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        TAP_EQ(t, put_in(&f, bytes_str("abc"), 3, "", wrong[i], &info), BELAY_INVALID);
        TAP_EQ(t, f.err.code, BELAY_INVALID);
        TAP_STR(t, f.err.reason, "hash_mismatch");
        TAP_EQ(t, info.size, -1);
    }
    check_tally(t, &f, 0, 0, 0);
    TAP_EQ(t,
           put_in(&f, bytes_str("abc"), 3, "",
                  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                  &info),
           BELAY_OK);
    TAP_EQ(t,
           put_in(&f, bytes_str("abc"), 3, "",
                  "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
                  &info),
           BELAY_OK);
    tear_down(&f);
}

static void test_too_large(struct tap *t)
{
    struct blob_writer *w;
    struct blob_info info;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, blob_writer_open(&w, f.sp, false, NULL, &f.err), BELAY_OK);
    /* Refused by its length alone: there is nothing behind the pointer. */
    TAP_EQ(t, blob_write(w, bytes_of("", (size_t)BLOB_SIZE_MAX + 1), &f.err),
           BELAY_INVALID);
    TAP_STR(t, f.err.reason, "too_large");
    TAP_EQ(t, blob_finish(w, bytes_str(""), NULL, &info, &f.err), BELAY_MISUSE);
    blob_writer_close(w);

    TAP_EQ(t, blob_writer_open(&w, f.sp, false, NULL, &f.err), BELAY_OK);
    TAP_EQ(t, blob_write(w, bytes_str("x"), &f.err), BELAY_OK);
    TAP_EQ(t, blob_write(w, bytes_of("", (size_t)BLOB_SIZE_MAX), &f.err),
           BELAY_INVALID);
    TAP_STR(t, f.err.reason, "too_large");
    blob_writer_close(w);
    TAP_EQ(t, blob_writer_open(&w, f.sp, false, NULL, &f.err), BELAY_OK);
    TAP_EQ(t, blob_write(w, bytes_of("", SIZE_MAX), NULL), BELAY_INVALID);
    blob_writer_close(w);
    check_tally(t, &f, 0, 0, 0);
    tear_down(&f);
}

static void test_after_finish(struct tap *t)
{
    struct blob_writer *w;
    struct blob_info info;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, blob_writer_open(&w, f.sp, false, NULL, &f.err), BELAY_OK);
    TAP_EQ(t, blob_finish(w, bytes_str(""), NULL, &info, &f.err), BELAY_OK);
    TAP_EQ(t, blob_write(w, bytes_str("x"), &f.err), BELAY_MISUSE);
    TAP_EQ(t, blob_finish(w, bytes_str(""), NULL, &info, &f.err), BELAY_MISUSE);
    blob_writer_close(w);

    TAP_EQ(t, blob_writer_open(&w, f.sp, false, NULL, &f.err), BELAY_OK);
    TAP_EQ(t, blob_finish(w, bytes_str(""), "00", &info, &f.err), BELAY_INVALID);
    TAP_EQ(t, blob_finish(w, bytes_str(""), NULL, &info, &f.err), BELAY_MISUSE);
    blob_writer_close(w);
    blob_writer_close(NULL);
    blob_reader_close(NULL);
    tear_down(&f);
}

static belay_rc misuse_body(struct txn *t, void *arg)
{
    struct fixture *f = arg;
    struct blob_writer *w;
    struct blob_reader *r;
    struct blob_info info;
    size_t swept;

    (void)t;
    if (blob_writer_open(&w, f->sp, false, NULL, NULL))
        return BELAY_CORRUPT;
    belay_rc rc = blob_write(w, bytes_str("x"), NULL);
    if (!rc)
        rc = blob_finish(w, bytes_str(""), NULL, &info, NULL);
    blob_writer_close(w);
    if (rc != BELAY_MISUSE)
        return BELAY_CORRUPT;
    rc = blob_reader_open(&r, f->sp,
                          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f2"
                          "0015ad",
                          NULL, NULL);
    if (rc != BELAY_MISUSE)
        return BELAY_CORRUPT;
    rc = blob_sweep_uploads(f->sp, START_MS, 1, &swept, NULL);
    return rc == BELAY_MISUSE ? BELAY_OK : BELAY_CORRUPT;
}

static void test_in_body(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, txn_run(f.sp, misuse_body, &f, NULL, &f.arena, &f.err), BELAY_OK);
    tear_down(&f);
}

static void test_options(struct tap *t)
{
    struct belay_cancel *cancel = NULL;
    struct blob_writer *w;
    struct blob_reader *r;
    struct blob_info info;
    struct bytes piece;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
    TAP_EQ(t, belay_cancel_new(&cancel, &f.err), BELAY_OK);
    struct txn_options options = { .cancel = cancel };
    TAP_EQ(t, blob_reader_open(&r, f.sp, info.sha256, &options, &f.err), BELAY_OK);
    TAP_EQ(t, blob_writer_open(&w, f.sp, false, &options, &f.err), BELAY_OK);
    TAP_EQ(t, blob_write(w, bytes_str("x"), &f.err), BELAY_OK);
    belay_cancel_trigger(cancel);
    TAP_EQ(t, blob_finish(w, bytes_str(""), NULL, &info, &f.err), BELAY_CANCELLED);
    TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_CANCELLED);
    blob_writer_close(w);
    blob_reader_close(r);
    belay_cancel_free(cancel);

    options = (struct txn_options){ .deadline_us = 1 };
    f.time.us = 2;
    TAP_EQ(t, blob_reader_open(&r, f.sp, info.sha256, &options, &f.err), BELAY_TIMEOUT);
    tear_down(&f);
}

/* --- cases: what a reader finds --- */

static void test_not_found(struct tap *t)
{
    static const char *const names[] = {
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "",
        "abc",
        "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a\xff",
    };
    struct blob_reader *r = NULL;
    struct fixture f;

    set_up(t, &f);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        TAP_EQ(t, blob_reader_open(&r, f.sp, names[i], NULL, &f.err), BELAY_NOT_FOUND);
        TAP_EQ(t, f.err.code, BELAY_NOT_FOUND);
        TAP_OK(t, r == NULL);
        /* As much of the name as an error can hold, and whole characters of it. */
        TAP_OK(t, strncmp(f.err.entity, names[i], strlen(f.err.entity)) == 0);
        TAP_OK(t, strlen(f.err.entity) + 2 >= strlen(names[i]));
    }
    tear_down(&f);
}

static void test_reader_end(struct tap *t)
{
    struct blob_reader *r;
    struct blob_info info;
    struct bytes piece;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
    TAP_EQ(t, blob_reader_open(&r, f.sp, info.sha256, NULL, &f.err), BELAY_OK);
    TAP_EQ(t, blob_reader_size(r), 3);
    TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_OK);
    TAP_OK(t, bytes_eq(piece, bytes_str("abc")));
    for (int i = 0; i < 3; i++) {
        TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_OK);
        TAP_EQ(t, piece.len, 0);
    }
    blob_reader_close(r);
    tear_down(&f);
}

static void test_round_trips(struct tap *t)
{
    size_t len = 2 * CHUNK_MAX + 1;
    uint8_t *data = content(len, 1);
    struct blob_reader *r;
    struct blob_info info;
    struct bytes piece;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, put(&f, bytes_of(data, len), &info), BELAY_OK);
    trace_reset(f.trace);
    TAP_EQ(t, blob_reader_open(&r, f.sp, info.sha256, NULL, &f.err), BELAY_OK);
    TAP_EQ(t, trace_counts(f.trace).reads, 1);
    for (unsigned i = 1; i <= 3; i++) {
        TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_OK);
        TAP_EQ(t, trace_counts(f.trace).reads, 1 + i);
    }
    TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_OK);
    TAP_EQ(t, trace_counts(f.trace).reads, 4);
    TAP_EQ(t, trace_counts(f.trace).commits, 0);
    blob_reader_close(r);
    free(data);
    tear_down(&f);
}

static void test_corrupt(struct tap *t)
{
    size_t len = 2 * CHUNK_MAX + 100;
    uint8_t *data = content(len, 1);
    struct blob_info info;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, put(&f, bytes_of(data, len), &info), BELAY_OK);
    struct raw raw = { .upload = upload_of(t, &f, info.sha256) };

    /* One bit of the first chunk: found out before the last piece is given. */
    data[7] ^= 1;
    raw.data = bytes_of(data, CHUNK_MAX);
    TAP_EQ(t, run(&f, put_chunk_body, &raw), BELAY_OK);
    check_corrupt(t, &f, info.sha256, 2, "hash_mismatch");
    data[7] ^= 1;
    TAP_EQ(t, run(&f, put_chunk_body, &raw), BELAY_OK);

    /* A chunk that is too short or too long: found out there. */
    raw.index = 1;
    raw.data = bytes_of(data + CHUNK_MAX, CHUNK_MAX - 1);
    TAP_EQ(t, run(&f, put_chunk_body, &raw), BELAY_OK);
    check_corrupt(t, &f, info.sha256, 1, "hash_mismatch");
    raw.data = bytes_of(data + CHUNK_MAX, CHUNK_MAX);
    TAP_EQ(t, run(&f, put_chunk_body, &raw), BELAY_OK);
    raw.index = 2;
    raw.data = bytes_of(data, 101);
    TAP_EQ(t, run(&f, put_chunk_body, &raw), BELAY_OK);
    check_corrupt(t, &f, info.sha256, 2, "hash_mismatch");

    /* A chunk that is not there. */
    for (int64_t i = 2; i >= 0; i--) {
        raw.index = i;
        TAP_EQ(t, run(&f, drop_chunk_body, &raw), BELAY_OK);
        check_corrupt(t, &f, info.sha256, (unsigned)i, "missing_chunk");
    }
    free(data);
    tear_down(&f);
}

static void test_corrupt_row(struct tap *t)
{
    static const int64_t sizes[] = {
        -1, 0, BLOB_SIZE_MAX, BLOB_SIZE_MAX + 1, INT64_MAX, (int64_t)CHUNK_MAX + 1
    };
    struct blob_reader *r;
    struct blob_info info;
    struct bytes piece;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
    struct raw raw = { .name = info.sha256 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        raw.change = (struct change){ BLOB_SIZE, value_i64(sizes[i]) };
        TAP_EQ(t, run(&f, change_blob_body, &raw), BELAY_OK);
        TAP_EQ(t, blob_reader_open(&r, f.sp, info.sha256, NULL, &f.err), BELAY_CORRUPT);
    }
    /* Possible, but not so; without a stored size that is the size. */
    raw.change = (struct change){ BLOB_SIZE, value_i64(4) };
    TAP_EQ(t, run(&f, change_blob_body, &raw), BELAY_OK);
    TAP_EQ(t, blob_reader_open(&r, f.sp, info.sha256, NULL, &f.err), BELAY_CORRUPT);
    raw.change = (struct change){ BLOB_STORED_SIZE, value_null() };
    TAP_EQ(t, run(&f, change_blob_body, &raw), BELAY_OK);
    TAP_EQ(t, blob_reader_open(&r, f.sp, info.sha256, NULL, &f.err), BELAY_OK);
    TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_CORRUPT);
    blob_reader_close(r);
    tear_down(&f);
}

static belay_rc wrong_empty_body(struct txn *t, void *arg)
{
    struct value v[BLOB_COLUMNS] = { value_str(arg), value_str(""), value_i64(0),
                                     value_i64(0),   value_null(),  value_i64(0) };

    return txn_insert(t, &row_blob, v);
}

static void test_corrupt_empty(struct tap *t)
{
    char name[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    struct fixture f;

    /* An empty blob under the name of another: not even "nothing" is given. */
    set_up(t, &f);
    TAP_EQ(t, txn_run(f.sp, wrong_empty_body, name, NULL, &f.arena, &f.err), BELAY_OK);
    check_corrupt(t, &f, name, 0, "hash_mismatch");
    tear_down(&f);
}

static void test_removed_while_read(struct tap *t)
{
    size_t len = CHUNK_MAX + 100;
    uint8_t *data = content(len, 1);
    struct bytes all = bytes_of(data, len);
    struct blob_reader *r;
    struct blob_info info;
    struct bytes piece;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, put(&f, all, &info), BELAY_OK);
    struct raw raw = { .name = info.sha256 };
    TAP_EQ(t, blob_reader_open(&r, f.sp, info.sha256, NULL, &f.err), BELAY_OK);
    TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_OK);
    TAP_EQ(t, run(&f, remove_blob_body, &raw), BELAY_OK);
    check_tally(t, &f, 0, 0, 0);
    TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_NOT_FOUND);
    TAP_OK(t, strncmp(f.err.entity, info.sha256, 63) == 0);

    /* The same content uploaded anew is another upload. */
    TAP_EQ(t, put(&f, all, &info), BELAY_OK);
    TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_NOT_FOUND);
    blob_reader_close(r);
    free(data);
    tear_down(&f);
}

/* --- cases: the sweep --- */

static void test_unfinished(struct tap *t)
{
    uint8_t *data = content(CHUNK_MAX + 1, 1);
    struct blob_info info;
    struct blob_writer *w;
    struct fixture f;
    size_t swept = 99;
    bool whole;

    set_up(t, &f);
    f.time.us = 1000000;
    TAP_EQ(t, put(&f, bytes_str("finished"), &info), BELAY_OK);
    TAP_EQ(t, blob_writer_open(&w, f.sp, false, NULL, &f.err), BELAY_OK);
    TAP_EQ(t, blob_write(w, bytes_of(data, CHUNK_MAX + 1), &f.err), BELAY_OK);
    blob_writer_close(w);
    check_tally(t, &f, 1, 1, 2);

    f.time.us += 1000000;
    TAP_EQ(t, blob_sweep_uploads(f.sp, START_MS + 1000, 10, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 0); /* it began at that time, not before */
    check_tally(t, &f, 1, 1, 2);
    TAP_EQ(t, blob_sweep_uploads(f.sp, START_MS + 1001, 10, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 1);
    check_tally(t, &f, 1, 0, 1);
    TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, 10, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 0);
    check_tally(t, &f, 1, 0, 1); /* the chunk of the finished one is not garbage */
    TAP_EQ(t, get(&f, info.sha256, bytes_str("finished"), &whole), BELAY_OK);
    TAP_OK(t, whole);
    free(data);
    tear_down(&f);
}

static void make_uploads(struct tap *t, struct fixture *f, unsigned n, int64_t chunks)
{
    for (unsigned i = 0; i < n; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "upl_%03u", i);
        struct raw raw = { .upload = id, .index = 1000 + i, .number = chunks };
        TAP_EQ(t, run(f, make_upload_body, &raw), BELAY_OK);
    }
}

static void test_sweep_limit(struct tap *t)
{
    struct fixture f;
    size_t swept = 99;

    set_up(t, &f);
    make_uploads(t, &f, 200, 1);
    TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, 0, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 0);
    TAP_EQ(t, blob_sweep_uploads(f.sp, 0, 5, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 0);
    TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MIN, 5, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 0);
    TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, 3, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 3);
    check_tally(t, &f, 0, 197, 197);
    TAP_EQ(t, blob_sweep_uploads(f.sp, 1000 + 10, 100, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 7);
    check_tally(t, &f, 0, 190, 190);
    TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, 150, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 150); /* more than one page of them */
    check_tally(t, &f, 0, 40, 40);
    TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, SIZE_MAX, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 40);
    check_tally(t, &f, 0, 0, 0);
    tear_down(&f);
}

static void test_sweep_bounded(struct tap *t)
{
    static const struct {
        int64_t chunks;
        unsigned commits;
    } rows[] = { { 0, 1 }, { 1, 1 }, { 15, 1 }, { 16, 1 }, { 17, 2 }, { 40, 3 } };
    struct fixture f;
    size_t swept;

    set_up(t, &f);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        make_uploads(t, &f, 1, rows[i].chunks);
        trace_reset(f.trace);
        f.largest = 0;
        TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, 1, &swept, &f.err), BELAY_OK);
        TAP_EQ(t, swept, 1);
        TAP_EQ(t, trace_counts(f.trace).commits, rows[i].commits);
        TAP_OK(t, f.largest <= 16 + 8);
        check_tally(t, &f, 0, 0, 0);
    }
    tear_down(&f);
}

/* A sweep that stopped half-way is taken up by the next. */
static void test_sweep_resumed(struct tap *t)
{
    struct fixture f;
    size_t swept = 99;

    set_up(t, &f);
    make_uploads(t, &f, 2, 40);
    struct fault fault = { FAULT_ON_COMMIT, FAULT_BEFORE, 3, false, 0, 0 };
    TAP_EQ(t, fault_arm(f.fault, &fault, &f.err), BELAY_OK);
    TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, 9, &swept, &f.err),
           BELAY_UNAVAILABLE);
    TAP_EQ(t, swept, 99);
    check_tally(t, &f, 0, 2, 48);
    TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, 9, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 2);
    check_tally(t, &f, 0, 0, 0);
    tear_down(&f);
}

static belay_rc orphan_rank_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_rank_add(t, bytes_str(UPLOAD_INDEX), 1, bytes_str("upl_orphan"));
}

/* An index entry without a row is passed by, and does not stop the rest. */
static void test_sweep_orphan(struct tap *t)
{
    struct fixture f;
    size_t swept = 99;

    set_up(t, &f);
    TAP_EQ(t, run(&f, orphan_rank_body, NULL), BELAY_OK);
    make_uploads(t, &f, 2, 1);
    TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, 1, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 1);
    TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, SIZE_MAX, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 1);
    tear_down(&f);
}

static belay_rc misplaced_body(struct txn *t, void *arg)
{
    struct value v[] = { value_str("upl_young"), value_i64(0), value_i64(5000) };

    (void)arg;
    belay_rc rc = txn_insert(t, &row_upload, v);
    return rc ? rc : txn_rank_add(t, bytes_str(UPLOAD_INDEX), 1000, v[UPLOAD_ID].b);
}

/* The index is a hint: how old an upload is, its row says. */
static void test_sweep_row_decides(struct tap *t)
{
    struct fixture f;
    size_t swept = 99;

    set_up(t, &f);
    TAP_EQ(t, run(&f, misplaced_body, NULL), BELAY_OK);
    TAP_EQ(t, blob_sweep_uploads(f.sp, 2000, 9, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, swept, 0);
    check_tally(t, &f, 0, 1, 0);
    tear_down(&f);
}

static void test_swept_while_writing(struct tap *t)
{
    uint8_t *data = content(CHUNK_MAX, 1);
    struct bytes chunk = bytes_of(data, CHUNK_MAX);
    struct blob_writer *w;
    struct blob_info info;
    struct fixture f;
    size_t swept;

    set_up(t, &f);
    for (int how = 0; how < 4; how++) {
        TAP_EQ(t, blob_writer_open(&w, f.sp, false, NULL, &f.err), BELAY_OK);
        TAP_EQ(t, blob_write(w, chunk, &f.err), BELAY_OK);
        char upload[64] = "";
        (void)snprintf(upload, sizeof(upload), "%s", only_upload(t, &f));
        if (how < 2) {
            TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, 9, &swept, &f.err), BELAY_OK);
            TAP_EQ(t, swept, 1);
        } else { /* a sweep has begun, and the upload is still listed */
            struct raw raw = { .upload = upload, .number = 0 };
            TAP_EQ(t, run(&f, drop_chunk_body, &raw), BELAY_OK);
            TAP_EQ(t, run(&f, change_chunks_body, &raw), BELAY_OK);
        }
        if (how % 2 == 0) {
            TAP_EQ(t, blob_write(w, chunk, &f.err), BELAY_NOT_FOUND);
            TAP_STR(t, f.err.entity, upload);
            TAP_EQ(t, blob_write(w, chunk, &f.err), BELAY_MISUSE);
            TAP_EQ(t, blob_finish(w, bytes_str(""), NULL, &info, &f.err), BELAY_MISUSE);
        } else {
            TAP_EQ(t, blob_finish(w, bytes_str(""), NULL, &info, &f.err),
                   BELAY_NOT_FOUND);
            TAP_STR(t, f.err.entity, upload);
        }
        blob_writer_close(w);
        TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, 9, &swept, &f.err), BELAY_OK);
        check_tally(t, &f, 0, 0, 0);
    }
    free(data);
    tear_down(&f);
}

/* --- cases: faults --- */

/* One fault at the n-th commit of an upload of three chunks.  True when that commit
 * came to be. */
static bool upload_with_fault(struct tap *t, enum fault_kind kind, unsigned nth,
                              struct bytes all, const char *name)
{
    struct fault fault = { FAULT_ON_COMMIT, kind, nth, false, 0, 3 };
    struct blob_info info;
    struct fixture f;
    bool whole;

    set_up(t, &f);
    struct blob_info warm; /* so that the namespace exists */
    TAP_EQ(t, put(&f, bytes_str("warm"), &warm), BELAY_OK);
    TAP_EQ(t, fault_arm(f.fault, &fault, &f.err), BELAY_OK);
    belay_rc rc = put_in(&f, all, CHUNK_MAX, "", name, &info);
    bool acted = fault_count(f.fault) > 0;
    fault_clear(f.fault);
    if (rc == BELAY_OK) {
        TAP_EQ(t, get(&f, name, all, &whole), BELAY_OK);
        TAP_OK(t, whole);
    } else {
        TAP_OK(t, kind == FAULT_BEFORE || rc == BELAY_UNKNOWN_OUTCOME);
        /* Whole or not at all. */
        belay_rc found = get(&f, name, all, &whole);
        TAP_OK(t, whole || found == BELAY_NOT_FOUND);
    }
    if (kind == FAULT_CONFLICT)
        TAP_EQ(t, rc, BELAY_OK);
    if (kind == FAULT_BEFORE && acted)
        TAP_EQ(t, rc, BELAY_UNAVAILABLE);

    /* Whatever was left behind is garbage that the sweep finds; nothing else is lost.
     */
    size_t swept;
    struct tally n = { 0 };
    TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, 9, &swept, &f.err), BELAY_OK);
    TAP_EQ(t, driver_walk(f.memory, bytes_str("default"), tally_item, &n, NULL),
           BELAY_OK);
    TAP_EQ(t, n.uploads + n.ranks, 0);
    TAP_EQ(t, n.chunks, n.blobs == 2 ? 4 : 1);
    tear_down(&f);
    return acted;
}

static void test_faults(struct tap *t)
{
    static const enum fault_kind kinds[] = { FAULT_BEFORE, FAULT_CONFLICT, FAULT_LOST,
                                             FAULT_AFTER, FAULT_LATE };
    size_t len = 2 * CHUNK_MAX + 5;
    uint8_t *data = content(len, 3);
    struct bytes all = bytes_of(data, len);
    char name[SHA256_HEX_LEN + 1];

    name_of(all, name);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        unsigned nth = 1;
        while (nth < 20 && upload_with_fault(t, kinds[i], nth, all, name))
            nth++;
        TAP_OK(t, nth > 4 && nth < 20); /* three chunks and the blob, at least */
    }
    free(data);
}

static void test_read_again(struct tap *t)
{
    size_t len = CHUNK_MAX + 100;
    uint8_t *data = content(len, 1);
    struct blob_reader *r;
    struct blob_info info;
    struct bytes piece;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, put(&f, bytes_of(data, len), &info), BELAY_OK);
    TAP_EQ(t, blob_reader_open(&r, f.sp, info.sha256, NULL, &f.err), BELAY_OK);
    struct fault fault = { FAULT_ON_READ, FAULT_BEFORE, 2, false, 0, 0 };
    TAP_EQ(t, fault_arm(f.fault, &fault, &f.err), BELAY_OK);
    TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_OK);
    TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_UNAVAILABLE);
    TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_OK);
    TAP_OK(t, bytes_eq(piece, bytes_of(data + CHUNK_MAX, 100)));
    TAP_EQ(t, blob_read(r, &piece, &f.err), BELAY_OK);
    TAP_EQ(t, piece.len, 0);
    blob_reader_close(r);
    free(data);
    tear_down(&f);
}

/* --- many threads --- */

#define WRITERS 3
#define ROUNDS 6

struct crowd {
    struct space *sp;
    uint8_t *data; /* ROUNDS contents, overlapping */
    size_t len;
    atomic_uint writing;
    atomic_uint stored, swept, wrong;
};

static belay_rc store_one(struct crowd *c, unsigned round, struct blob_info *out)
{
    struct blob_writer *w;
    belay_rc rc = blob_writer_open(&w, c->sp, false, NULL, NULL);

    if (rc)
        return rc;
    rc = blob_write(w, bytes_of(c->data + round, c->len), NULL);
    if (!rc)
        rc = blob_finish(w, bytes_str(""), NULL, out, NULL);
    blob_writer_close(w);
    return rc;
}

/* Every writer stores the same contents, so they meet each other and the sweep. */
static void *write_crowd(void *arg)
{
    struct crowd *c = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct blob_info info;
        belay_rc rc = store_one(c, i, &info);
        if (rc == BELAY_OK)
            atomic_fetch_add(&c->stored, 1);
        else if (rc != BELAY_NOT_FOUND)
            atomic_fetch_add(&c->wrong, 1);
    }
    atomic_fetch_sub(&c->writing, 1);
    return NULL;
}

static void *sweep_crowd(void *arg)
{
    struct crowd *c = arg;

    while (atomic_load(&c->writing) > 0) {
        size_t swept = 0;
        if (blob_sweep_uploads(c->sp, INT64_MAX, 2, &swept, NULL))
            atomic_fetch_add(&c->wrong, 1);
        atomic_fetch_add(&c->swept, (unsigned)swept);
        clock_system().sleep_us(NULL, 2000);
    }
    return NULL;
}

static void test_threads(struct tap *t)
{
    struct driver_config config = { &schema_belay, clock_system(), random_system() };
    struct store_options options = { .schema = &schema_belay,
                                     .clock = config.clock,
                                     .random = config.random };
    struct crowd c = { .len = CHUNK_MAX + CHUNK_MAX / 2, .writing = WRITERS };
    struct fixture f = { 0 };
    pthread_t threads[WRITERS + 1];

    c.data = content(c.len + ROUNDS, 9);
    TAP_EQ(t, memory_open(&f.memory, &config, &f.err), BELAY_OK);
    TAP_EQ(t, store_open(&f.store, f.memory, &options, &f.err), BELAY_OK);
    TAP_EQ(t, store_space(f.store, bytes_str("default"), &f.sp, &f.err), BELAY_OK);
    c.sp = f.sp;
    for (unsigned i = 0; i <= WRITERS; i++)
        TAP_EQ(t,
               pthread_create(&threads[i], NULL,
                              i < WRITERS ? write_crowd : sweep_crowd, &c),
               0);
    for (unsigned i = 0; i <= WRITERS; i++)
        pthread_join(threads[i], NULL);
    TAP_EQ(t, c.wrong, 0);

    /* Without a sweep all of it can be stored; then all of it is whole. */
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct blob_info info;
        bool whole;
        TAP_EQ(t, store_one(&c, i, &info), BELAY_OK);
        TAP_EQ(t, get(&f, info.sha256, bytes_of(c.data + i, c.len), &whole), BELAY_OK);
        TAP_OK(t, whole);
    }
    size_t swept;
    TAP_EQ(t, blob_sweep_uploads(f.sp, INT64_MAX, SIZE_MAX, &swept, &f.err), BELAY_OK);
    check_tally(t, &f, ROUNDS, 0, 2 * ROUNDS);
    store_close(f.store);
    driver_close(f.memory);
    free(c.data);
}

static const struct tap_case cases[] = {
    { "blobs of any size come back as they went in", test_sizes },
    { "how the bytes were cut when written does not matter", test_pieces },
    { "a chunk is committed when it is full, the rest at finish", test_tiny_pieces },
    { "the blob row tells upload, size, chunks, descriptor and time", test_row },
    { "a second upload of known content keeps the first", test_known_content },
    { "of two uploads of the same content the first to finish wins", test_race },
    { "content that is not what was expected is refused", test_expect },
    { "more than the largest blob is refused before it is read", test_too_large },
    { "after finish only close is left", test_after_finish },
    { "called from a body everything is misuse", test_in_body },
    { "options reach every transaction", test_options },
    { "a name that no blob has is not found", test_not_found },
    { "at the end pieces are empty", test_reader_end },
    { "each piece takes one round trip", test_round_trips },
    { "a damaged blob never gives its last piece", test_corrupt },
    { "a blob row that cannot be is corrupt", test_corrupt_row },
    { "an empty blob under another name is corrupt", test_corrupt_empty },
    { "a blob that is removed while it is read is not found", test_removed_while_read },
    { "the sweep removes what began before, and never a blob", test_unfinished },
    { "the sweep stops at its limit", test_sweep_limit },
    { "the sweep drops a bounded number of chunks a transaction", test_sweep_bounded },
    { "a sweep that stopped half-way is taken up", test_sweep_resumed },
    { "an index entry without an upload does not stop the sweep", test_sweep_orphan },
    { "the row decides how old an upload is, not the index", test_sweep_row_decides },
    { "a writer that was swept is told so", test_swept_while_writing },
    { "a fault at any commit leaves a whole blob or none", test_faults },
    { "a piece that could not be read may be asked for again", test_read_again },
    { "writers and a sweep at once leave whole blobs and no garbage", test_threads },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
