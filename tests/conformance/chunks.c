/* Chunks, and blobs in a smoke form: their own tests are elsewhere. */
#include <stdlib.h>

#include "conformance.h"
#include "store/blob.h"

static const struct bytes upload = { (const uint8_t *)"u", 1 };

struct chunk {
    int64_t index;
    const char *data; /* NULL: drop it */
};

static belay_rc write_body(struct txn *t, void *arg)
{
    const struct chunk *c = arg;

    return c->data ? txn_chunk_put(t, upload, c->index, bytes_str(c->data))
                   : txn_chunk_drop(t, upload, c->index);
}

static void write_chunk(struct harness *h, int64_t index, const char *data)
{
    struct chunk c = { index, data };

    CHECK_RC(h, harness_run(h, write_body, &c), BELAY_OK);
}

static belay_rc read_body(struct txn *t, void *arg)
{
    struct chunk *c = arg;
    struct bytes out;
    bool found = false;
    belay_rc rc = txn_chunk_get(t, upload, c->index, &found, &out);

    c->data = !rc && found ? (const char *)out.ptr : NULL;
    return rc;
}

static void check_chunk(struct harness *h, int64_t index, const char *want)
{
    struct chunk c = { .index = index };

    CHECK_RC(h, harness_run(h, read_body, &c), BELAY_OK);
    TAP_EQ(h->t, c.data != NULL, want != NULL);
    if (c.data && want)
        TAP_EQ(h->t, memcmp(c.data, want, strlen(want)), 0);
}

static void chunks_come_and_go(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    check_chunk(&h, 0, NULL);
    write_chunk(&h, 0, "zero");
    write_chunk(&h, 2, "two");
    check_chunk(&h, 0, "zero");
    check_chunk(&h, 1, NULL);
    check_chunk(&h, 2, "two");
    write_chunk(&h, 0, "again");
    check_chunk(&h, 0, "again");
    write_chunk(&h, 0, NULL);
    check_chunk(&h, 0, NULL);
    write_chunk(&h, 0, NULL); /* one that is not there is no error */
    write_chunk(&h, 7, NULL);
    check_chunk(&h, 2, "two");
}

static belay_rc own_chunks(struct txn *t, void *arg)
{
    struct tap *tap = arg;
    struct bytes out = bytes_of(NULL, 0);
    bool found = false;
    belay_rc rc = txn_chunk_put(t, upload, 0, bytes_str("mine"));

    rc = rc ? rc : txn_chunk_get(t, upload, 0, &found, &out);
    TAP_OK(tap, found && bytes_eq(out, bytes_str("mine")));
    rc = rc ? rc : txn_chunk_drop(t, upload, 1);
    rc = rc ? rc : txn_chunk_get(t, upload, 1, &found, &out);
    TAP_OK(tap, !found);
    rc = rc ? rc : txn_chunk_drop(t, upload, 0);
    rc = rc ? rc : txn_chunk_get(t, upload, 0, &found, &out);
    TAP_OK(tap, !found);
    rc = rc ? rc : txn_chunk_put(t, upload, 0, bytes_str("last"));
    rc = rc ? rc : txn_chunk_get(t, upload, 0, &found, &out);
    TAP_OK(tap, found && bytes_eq(out, bytes_str("last")));
    rc = rc ? rc : txn_chunk_get(t, upload, 2, &found, &out);
    TAP_OK(tap, found && bytes_eq(out, bytes_str("there")));
    return rc;
}

static void own_chunks_are_read(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    write_chunk(&h, 1, "goes");
    write_chunk(&h, 2, "there");
    CHECK_RC(&h, harness_run(&h, own_chunks, t), BELAY_OK);
    check_chunk(&h, 0, "last");
    check_chunk(&h, 1, NULL);
    check_chunk(&h, 2, "there");
}

struct big {
    uint8_t *data;
    size_t len;
    struct bytes got;
};

static belay_rc put_big(struct txn *t, void *arg)
{
    const struct big *c = arg;

    return txn_chunk_put(t, upload, 0, bytes_of(c->data, c->len));
}

static belay_rc get_big(struct txn *t, void *arg)
{
    struct big *c = arg;
    bool found;

    return txn_chunk_get(t, upload, 0, &found, &c->got);
}

static uint8_t *noise(size_t len)
{
    uint8_t *data = malloc(len);
    uint32_t x = 1;

    for (size_t i = 0; i < len && data; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (uint8_t)(x >> 24);
    }
    return data;
}

static void the_largest_chunk(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct big c = { .len = CHUNK_MAX };
    if (!harness_open(&h, t, 0))
        return;

    c.data = noise(CHUNK_MAX + 1);
    if (!c.data) {
        TAP_OK(t, c.data != NULL);
        return;
    }
    CHECK_RC(&h, harness_run(&h, put_big, &c), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, get_big, &c), BELAY_OK);
    TAP_OK(t, bytes_eq(c.got, bytes_of(c.data, CHUNK_MAX)));
    c.len++;
    CHECK_RC(&h, harness_run(&h, put_big, &c), BELAY_INVALID);
    TAP_STR(t, h.err.reason, "too_large");
    free(c.data);
}

/* --- blobs --- */

static belay_rc upload_blob(struct harness *h, struct bytes data, size_t piece,
                            bool compress, struct blob_info *info)
{
    struct blob_writer *w = NULL;
    belay_rc rc = blob_writer_open(&w, h->space, compress, NULL, &h->err);

    for (size_t at = 0; at < data.len && !rc; at += piece) {
        size_t len = data.len - at < piece ? data.len - at : piece;
        rc = blob_write(w, bytes_of(data.ptr + at, len), &h->err);
    }
    rc = rc ? rc : blob_finish(w, bytes_str("{}"), NULL, info, &h->err);
    blob_writer_close(w);
    return rc;
}

/* Whether reading it gives exactly `want`. */
static belay_rc download(struct harness *h, const char *name, struct bytes want,
                         bool *same)
{
    struct blob_reader *r = NULL;
    struct bytes piece = bytes_of(NULL, 0);
    size_t at = 0;
    belay_rc rc = blob_reader_open(&r, h->space, name, NULL, &h->err);

    *same = !rc && blob_reader_size(r) == (int64_t)want.len;
    while (!rc) {
        rc = blob_read(r, &piece, &h->err);
        if (rc || piece.len == 0)
            break;
        *same &= piece.len <= want.len - at &&
                 memcmp(piece.ptr, want.ptr + at, piece.len) == 0;
        at += piece.len;
    }
    *same &= at == want.len;
    blob_reader_close(r);
    return rc;
}

static void blobs_over_chunk_boundaries(struct tap *t)
{
    const size_t lens[] = {
        0, 1, CHUNK_MAX - 1, CHUNK_MAX, CHUNK_MAX + 1, 2 * CHUNK_MAX + 17
    };
    uint8_t *data = noise(2 * CHUNK_MAX + 17);

    for (int compress = 0; compress < 2 && data; compress++) {
        CLEANUP(harness_close) struct harness h;
        if (!harness_open(&h, t, 0))
            break;
        for (size_t i = 0; i < COUNT_OF(lens); i++) {
            struct bytes all = bytes_of(data, lens[i]);
            struct blob_info info, again;
            bool same = false;
            CHECK_RC(&h, upload_blob(&h, all, 300007, compress, &info), BELAY_OK);
            TAP_OK(t, !info.existed);
            TAP_EQ(t, info.size, lens[i]);
            CHECK_RC(&h, download(&h, info.sha256, all, &same), BELAY_OK);
            TAP_OK(t, same);
            CHECK_RC(&h, upload_blob(&h, all, CHUNK_MAX, !compress, &again), BELAY_OK);
            TAP_OK(t, again.existed);
            TAP_STR(t, again.sha256, info.sha256);
            TAP_EQ(t, again.stored_size, info.stored_size);
        }
    }
    free(data);
}

/* --- blobs in a body --- */

struct in_body {
    struct blob_piece piece;
    bool found;
    int64_t ver, touched_ms;
    size_t ranked; /* in the index of blobs, at that time */
};

static belay_rc put_piece(struct txn *t, void *arg)
{
    struct in_body *b = arg;

    return blob_put_in(t, &b->piece, &b->found);
}

static belay_rc touch_piece(struct txn *t, void *arg)
{
    struct in_body *b = arg;

    return blob_touch(t, b->piece.sha256, &b->found);
}

static belay_rc remove_piece(struct txn *t, void *arg)
{
    struct in_body *b = arg;
    struct value key = value_str(b->piece.sha256);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_blob, &key, &row);

    b->found = !rc && row;
    return b->found ? blob_remove_in(t, row) : rc;
}

static belay_rc look_at_piece(struct txn *t, void *arg)
{
    struct in_body *b = arg;
    struct value key = value_str(b->piece.sha256);
    struct row_want want = { &row_blob, &key };
    struct bytes index = bytes_str(BLOB_INDEX);
    struct scan scan = {
        .indexes = &index, .n_indexes = 1, .max_rank = RANK_MAX, .limit = 9
    };
    const struct row *row = NULL;
    struct hits hits = { .n = 0 };
    belay_rc rc = txn_load(t, &want, 1, &row, &scan, 1, &hits);

    b->ver = row ? row->ver : 0;
    b->touched_ms = row ? row_i64(row, BLOB_TOUCHED_AT_MS, -1) : -1;
    b->ranked = 0;
    for (size_t i = 0; i < hits.n; i++)
        b->ranked +=
            bytes_eq(hits.hit[i].member, key.b) && hits.hit[i].rank == b->touched_ms;
    return rc;
}

static void blobs_in_bodies(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct in_body b = { .found = true };
    uint8_t data[5000] = { 0 };
    struct bytes all = bytes_of(data, sizeof(data)), out = { 0 };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h,
             blob_prepare(&b.piece, h.space, all, bytes_str("{}"), true, &a, &h.err),
             BELAY_OK);
    TAP_OK(t, b.piece.compressed);
    CHECK_RC(&h, harness_run(&h, put_piece, &b), BELAY_OK);
    TAP_OK(t, !b.found);
    CHECK_RC(&h, harness_run(&h, look_at_piece, &b), BELAY_OK);
    TAP_EQ(t, b.ranked, 1);
    /* Touched at once, and later: the version and the place tell. */
    for (int64_t ms = 0; ms < 3; ms++) {
        int64_t ver = b.ver, before = b.touched_ms;
        harness_pass_us(&h, ms * 1000);
        CHECK_RC(&h, harness_run(&h, ms == 1 ? put_piece : touch_piece, &b), BELAY_OK);
        TAP_OK(t, b.found);
        CHECK_RC(&h, harness_run(&h, look_at_piece, &b), BELAY_OK);
        TAP_EQ(t, b.ver, ver + 1);
        TAP_OK(t, b.touched_ms >= before + ms);
        TAP_EQ(t, b.ranked, 1);
    }
    CHECK_RC(&h, blob_load(h.space, b.piece.sha256, sizeof(data), &a, &out, &h.err),
             BELAY_OK);
    TAP_OK(t, bytes_eq(out, all));
    CHECK_RC(&h, harness_run(&h, remove_piece, &b), BELAY_OK);
    TAP_OK(t, b.found);
    CHECK_RC(&h, harness_run(&h, look_at_piece, &b), BELAY_OK);
    TAP_EQ(t, b.ver, 0);
    CHECK_RC(&h, harness_run(&h, touch_piece, &b), BELAY_OK);
    TAP_OK(t, !b.found);
    CHECK_RC(&h, harness_run(&h, put_piece, &b), BELAY_OK); /* anew */
    TAP_OK(t, !b.found);
}

/* --- nothing at all --- */

static belay_rc put_nothing(struct txn *t, void *arg)
{
    const struct bytes none = bytes_of(NULL, 0);
    belay_rc rc = txn_chunk_put(t, upload, 0, none);

    (void)arg;
    rc = rc ? rc : txn_log_append(t, upload, 1, none);
    return rc ? rc : txn_feed_append(t, upload, none, NULL);
}

static belay_rc get_nothing(struct txn *t, void *arg)
{
    struct tap *tap = arg;
    struct log_entries log = { .n = 0 };
    struct feed_entries feed = { .n = 0 };
    struct bytes out = bytes_str("something");
    bool found = false;
    belay_rc rc = txn_chunk_get(t, upload, 0, &found, &out);

    rc = rc ? rc : txn_log_read(t, upload, 0, 5, &log);
    rc = rc ? rc : txn_feed_read(t, upload, (struct feed_pos){ 0 }, 5, &feed);
    TAP_OK(tap, found && out.len == 0);
    TAP_OK(tap, log.n == 1 && log.entry[0].data.len == 0);
    TAP_OK(tap, feed.n == 1 && feed.entry[0].data.len == 0);
    return rc;
}

static void empty_data_is_data(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, put_nothing, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, get_nothing, t), BELAY_OK);
}

static const struct tap_case cases[] = {
    { "chunks: put, replace, drop", chunks_come_and_go },
    { "chunks: a body reads its own", own_chunks_are_read },
    { "chunks: of CHUNK_MAX bytes, and none larger", the_largest_chunk },
    { "chunks: empty chunks and entries are there", empty_data_is_data },
    { "chunks: blobs of several chunks come back whole", blobs_over_chunk_boundaries },
    { "chunks: blobs are put, touched, removed in bodies", blobs_in_bodies },
};
const struct topic topic_chunks = { cases, COUNT_OF(cases) };
