/* Blobs within other bodies: prepared and put, touched, removed, loaded whole. */
#include "test_store_blob.h"

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

/* --- bodies --- */

/* Puts pieces in one commit. */
struct puts {
    const struct blob_piece *piece;
    size_t n;
    bool existed[4];
};

static belay_rc puts_body(struct txn *t, void *arg)
{
    struct puts *p = arg;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < p->n && !rc; i++)
        rc = blob_put_in(t, &p->piece[i], i < 4 ? &p->existed[i] : NULL);
    return rc;
}

static belay_rc prepare(struct fixture *f, struct bytes data, bool compress,
                        struct blob_piece *out)
{
    return blob_prepare(out, f->sp, data, bytes_str("{}"), compress, &f->arena,
                        &f->err);
}

/* In one transaction; true when the content was there before. */
static bool put_piece(struct tap *t, struct fixture *f, const struct blob_piece *piece)
{
    struct puts p = { .piece = piece, .n = 1 };

    TAP_EQ(t, txn_run(f->sp, puts_body, &p, NULL, &f->arena, &f->err), BELAY_OK);
    return p.existed[0];
}

/* Touches it `number` times; raw->index: how often it was found. */
static belay_rc touch_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;
    belay_rc rc = BELAY_OK;

    raw->index = 0;
    for (int64_t i = 0; i < raw->number && !rc; i++) {
        bool found = false;
        rc = blob_touch(t, raw->name, &found);
        raw->index += found;
    }
    return rc;
}

static belay_rc where_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;
    struct bytes index = bytes_str(BLOB_INDEX);
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .min_rank = -RANK_MAX,
                         .max_rank = RANK_MAX,
                         .limit = 100 };
    struct hits hits;

    raw->number = -1;
    belay_rc rc = txn_scan(t, &scan, &hits);
    for (size_t i = 0; i < hits.n && !rc; i++) {
        if (bytes_eq(hits.hit[i].member, bytes_str(raw->name)))
            raw->number = hits.hit[i].rank;
    }
    return rc;
}

/* Row and index agree that it was touched then (milliseconds after the start); gives
 * the row's version. */
static int64_t check_touched(struct tap *t, struct fixture *f, const char *name,
                             int64_t created, int64_t touched)
{
    struct value column[BLOB_COLUMNS] = { 0 };
    struct raw raw = { .name = name, .column = column };

    TAP_EQ(t, run(f, blob_row_body, &raw), BELAY_OK);
    TAP_EQ(t, column[BLOB_CREATED_AT_MS].i, START_MS + created);
    TAP_EQ(t, column[BLOB_TOUCHED_AT_MS].i, START_MS + touched);
    TAP_EQ(t, run(f, where_body, &raw), BELAY_OK);
    TAP_EQ(t, raw.number, START_MS + touched);
    return raw.ver;
}

/* --- putting --- */

static void test_put(struct tap *t)
{
    static const size_t sizes[] = { 0, 1, 1000, CHUNK_MAX - 1, CHUNK_MAX };

    for (size_t i = 0; i < 4 * COUNT_OF(sizes); i++) {
        size_t len = sizes[i / 4];
        bool compress = i & 1, shrinks = i & 2 && len > 1;
        uint8_t *data = content(len, 7);
        struct value column[BLOB_COLUMNS] = { 0 };
        struct blob_piece piece;
        struct fixture f;
        bool whole;

        if (shrinks)
            memset(data, 'x', len);
        struct bytes all = bytes_of(data, len);
        set_up(t, &f);
        TAP_EQ(t, prepare(&f, all, compress, &piece), BELAY_OK);
        TAP_EQ(t, piece.size, len);
        TAP_EQ(t, piece.compressed, compress && shrinks);
        TAP_EQ(t, piece.stored.len < len, piece.compressed);
        TAP_EQ(t, piece.stored.ptr == data, !piece.compressed); /* borrowed */
        TAP_OK(t, !put_piece(t, &f, &piece));
        check_tally(t, &f, 1, 0, len > 0);
        TAP_EQ(t, get(&f, piece.sha256, all, &whole), BELAY_OK);
        TAP_OK(t, whole);
        struct raw raw = { .name = piece.sha256, .column = column };
        TAP_EQ(t, run(&f, blob_row_body, &raw), BELAY_OK);
        TAP_OK(t, bytes_eq(column[BLOB_UPLOAD].b, bytes_str(piece.upload)));
        TAP_OK(t, bytes_eq(column[BLOB_DESCRIPTOR].b, bytes_str("{}")));
        TAP_EQ(t, column[BLOB_STORED_SIZE].i, piece.stored.len);
        check_touched(t, &f, piece.sha256, 0, 0);
        tear_down(&f);
        free(data);
    }
}

static void test_one_commit(struct tap *t)
{
    struct blob_piece pieces[3];
    struct puts p = { .piece = pieces, .n = 3 };
    struct blob_info warm;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, put(&f, bytes_str("warm"), &warm), BELAY_OK);
    TAP_EQ(t, prepare(&f, bytes_str("one"), false, &pieces[0]), BELAY_OK);
    TAP_EQ(t, prepare(&f, bytes_str("two"), false, &pieces[1]), BELAY_OK);
    TAP_EQ(t, prepare(&f, bytes_str("one"), true, &pieces[2]), BELAY_OK);
    TAP_OK(t, strcmp(pieces[0].upload, pieces[2].upload) != 0);
    trace_reset(f.trace);
    TAP_EQ(t, txn_run(f.sp, puts_body, &p, NULL, &f.arena, &f.err), BELAY_OK);
    TAP_EQ(t, trace_counts(f.trace).commits, 1);
    TAP_OK(t, !p.existed[0] && !p.existed[1] && p.existed[2]);
    check_tally(t, &f, 3, 0, 3); /* the one that is there twice has one chunk */

    /* The bodies run again after a conflict; the answer is the same. */
    struct fault fault = { FAULT_ON_COMMIT, FAULT_CONFLICT, 1, false, 0, 0 };
    TAP_EQ(t, prepare(&f, bytes_str("three"), false, &pieces[0]), BELAY_OK);
    TAP_EQ(t, fault_arm(f.fault, &fault, &f.err), BELAY_OK);
    TAP_EQ(t, txn_run(f.sp, puts_body, &p, NULL, &f.arena, &f.err), BELAY_OK);
    TAP_EQ(t, fault_count(f.fault), 1);
    TAP_OK(t, !p.existed[0] && p.existed[1] && p.existed[2]);
    check_tally(t, &f, 4, 0, 4);
    tear_down(&f);
}

static belay_rc prepare_body(struct txn *t, void *arg)
{
    struct fixture *f = arg;
    struct blob_piece piece;

    return blob_prepare(&piece, f->sp, bytes_str("x"), bytes_str(""), false,
                        txn_arena(t), txn_error(t));
}

static void test_prepare_refuses(struct tap *t)
{
    uint8_t *data = content(CHUNK_MAX + 1, 1);
    struct blob_piece piece;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, prepare(&f, bytes_of(data, CHUNK_MAX + 1), true, &piece), BELAY_MISUSE);
    TAP_EQ(t, txn_run(f.sp, prepare_body, &f, NULL, &f.arena, &f.err), BELAY_MISUSE);
    tear_down(&f);
    free(data);
}

/* --- touching --- */

/* S6: every answer "it is there" is a touch. */
static void test_touched_when_known(struct tap *t)
{
    struct blob_piece piece;
    struct blob_info info;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
    int64_t ver = check_touched(t, &f, ABC, 0, 0);

    f.time.us = 5000;
    TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
    TAP_OK(t, info.existed);
    int64_t next = check_touched(t, &f, ABC, 0, 5);
    TAP_OK(t, next != ver);

    f.time.us = 9000;
    TAP_EQ(t, prepare(&f, bytes_str("abc"), true, &piece), BELAY_OK);
    TAP_OK(t, put_piece(t, &f, &piece));
    ver = check_touched(t, &f, ABC, 0, 9);
    TAP_OK(t, next != ver);

    /* Within the same millisecond the version still tells. */
    TAP_OK(t, put_piece(t, &f, &piece));
    next = check_touched(t, &f, ABC, 0, 9);
    TAP_OK(t, next != ver);
    TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
    ver = check_touched(t, &f, ABC, 0, 9);
    TAP_OK(t, next != ver);
    check_tally(t, &f, 1, 2, 3); /* two uploads lost against it, and lie there */
    tear_down(&f);
}

static void test_touch(struct tap *t)
{
    static const char *const names[] = {
        "", "abc", "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
        "0000000000000000000000000000000000000000000000000000000000000000", (ABC "0")
    };
    struct raw raw = { .number = 1 };
    struct blob_info info;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        raw.name = names[i];
        TAP_EQ(t, run(&f, touch_body, &raw), BELAY_OK);
        TAP_EQ(t, raw.index, 0);
    }
    raw.name = ABC;
    int64_t ver = check_touched(t, &f, ABC, 0, 0);
    for (int64_t ms = 0; ms < 20; ms += 10) { /* also at the time it was made */
        f.time.us = ms * 1000;
        raw.number = 3; /* in one body: the first moves it, the others agree */
        TAP_EQ(t, run(&f, touch_body, &raw), BELAY_OK);
        TAP_EQ(t, raw.index, 3);
        int64_t next = check_touched(t, &f, ABC, 0, ms);
        TAP_OK(t, next != ver);
        ver = next;
    }
    tear_down(&f);
}

/* A blob from before there was an index enters it. */
static belay_rc old_row_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;
    struct value v[BLOB_COLUMNS] = { value_str(raw->name), value_str("upl_old"),
                                     value_i64(3),         value_i64(1),
                                     value_null(),         value_i64(START_MS) };

    belay_rc rc = txn_insert(t, &row_blob, v);
    return rc ? rc : txn_chunk_put(t, bytes_str("upl_old"), 0, bytes_str("abc"));
}

static void test_old_rows(struct tap *t)
{
    struct raw raw = { .name = ABC, .number = 1 };
    struct blob_info info;
    struct fixture f;
    bool whole;

    set_up(t, &f);
    f.time.us = 4000;
    TAP_EQ(t, run(&f, old_row_body, &raw), BELAY_OK);
    TAP_EQ(t, get(&f, ABC, bytes_str("abc"), &whole), BELAY_OK);
    TAP_OK(t, whole);
    TAP_EQ(t, run(&f, remove_blob_body, &raw), BELAY_OK);
    check_tally(t, &f, 0, 0, 0);

    TAP_EQ(t, run(&f, old_row_body, &raw), BELAY_OK);
    TAP_EQ(t, run(&f, touch_body, &raw), BELAY_OK);
    TAP_EQ(t, raw.index, 1);
    check_touched(t, &f, ABC, 0, 4);
    f.time.us = 6000;
    TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
    TAP_OK(t, info.existed);
    TAP_EQ(t, info.stored_size, 3);
    check_touched(t, &f, ABC, 0, 6);
    tear_down(&f);
}

/* --- removing --- */

static void test_remove(struct tap *t)
{
    struct raw raw = { .name = ABC };
    struct blob_info info;
    struct fixture f;
    bool whole;

    set_up(t, &f);
    for (int i = 0; i < 3; i++) {
        f.compress = i == 1;
        f.time.us += 3000;
        TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
        TAP_OK(t, !info.existed);
        check_tally(t, &f, 1, 0, 1);
        TAP_EQ(t, run(&f, remove_blob_body, &raw), BELAY_OK);
        check_tally(t, &f, 0, 0, 0);
        TAP_EQ(t, get(&f, ABC, bytes_str("abc"), &whole), BELAY_NOT_FOUND);
    }
    /* One that is compressed by who knows what goes as well. */
    TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
    raw.change = (struct change){ BLOB_COMPRESSION, value_str("zstd") };
    TAP_EQ(t, run(&f, change_blob_body, &raw), BELAY_OK);
    TAP_EQ(t, run(&f, remove_blob_body, &raw), BELAY_OK);
    check_tally(t, &f, 0, 0, 0);

    TAP_EQ(t, put(&f, bytes_str(""), &info), BELAY_OK);
    raw.name = info.sha256;
    TAP_EQ(t, run(&f, remove_blob_body, &raw), BELAY_OK);
    check_tally(t, &f, 0, 0, 0);
    tear_down(&f);
}

/* A blob of raw->number chunks as far as its row tells. */
static belay_rc long_blob_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;
    int64_t size = raw->number * (int64_t)CHUNK_MAX;
    belay_rc rc = txn_insert(t, &row_blob,
                             (const struct value[BLOB_COLUMNS]){
                                 [BLOB_SHA256] = value_str(raw->name),
                                 [BLOB_UPLOAD] = value_str("upl_long"),
                                 [BLOB_SIZE] = value_i64(size),
                                 [BLOB_CHUNKS] = value_i64(raw->number),
                                 [BLOB_CREATED_AT_MS] = value_i64(START_MS),
                                 [BLOB_TOUCHED_AT_MS] = value_i64(START_MS),
                                 [BLOB_STORED_SIZE] = value_i64(size),
                             });
    if (!rc)
        rc = txn_rank_add(t, bytes_str(BLOB_INDEX), START_MS, bytes_str(raw->name));
    for (int64_t i = 0; i < raw->number && !rc; i++)
        rc = txn_chunk_put(t, bytes_str("upl_long"), i, bytes_str("x"));
    return rc;
}

static void test_remove_long(struct tap *t)
{
    static const int64_t chunks[] = { 15, 16, 17, 40, 1024 };
    struct raw raw = { .name = ABC };
    struct fixture f;
    size_t swept;

    set_up(t, &f);
    for (size_t i = 0; i < COUNT_OF(chunks); i++) {
        raw.number = chunks[i];
        TAP_EQ(t, run(&f, long_blob_body, &raw), BELAY_OK);
        f.largest = 0;
        TAP_EQ(t, run(&f, remove_blob_body, &raw), BELAY_OK);
        bool left = chunks[i] > 16;
        check_tally(t, &f, 0, left, left ? (unsigned)chunks[i] : 0);
        /* It began before everything, so the sweep of any time takes it. */
        TAP_EQ(t, blob_sweep_uploads(f.sp, 1, 9, &swept, &f.err), BELAY_OK);
        TAP_EQ(t, swept, left);
        TAP_OK(t, f.largest <= 16 + 8);
        check_tally(t, &f, 0, 0, 0);
    }
    tear_down(&f);
}

static void test_remove_corrupt(struct tap *t)
{
    static const struct {
        unsigned column;
        int64_t value;
    } rows[] = { { BLOB_CHUNKS, -1 },
                 { BLOB_CHUNKS, INT64_MAX },
                 { BLOB_SIZE, -3 },
                 { BLOB_STORED_SIZE, 4 } };
    struct raw raw = { .name = ABC };
    struct blob_info info;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture f;
        set_up(t, &f);
        TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
        raw.change = (struct change){ rows[i].column, value_i64(rows[i].value) };
        TAP_EQ(t, run(&f, change_blob_body, &raw), BELAY_OK);
        TAP_EQ(t, run(&f, remove_blob_body, &raw), BELAY_CORRUPT);
        check_tally(t, &f, 1, 0, 1);
        tear_down(&f);
    }
}

/* Reads the row like a sweep; between that and its commit somebody touches the blob,
 * from another thread in truth: here the commit of this body is what comes too late. */
struct sweep {
    struct fixture *f;
    unsigned runs;
};

static belay_rc sweep_body(struct txn *t, void *arg)
{
    struct sweep *s = arg;
    struct raw touch = { .name = ABC, .number = 1 };
    struct value key = value_str(ABC);
    const struct row *row;

    belay_rc rc = txn_get(t, &row_blob, &key, &row);
    if (rc || !row)
        return rc;
    if (s->runs++ > 0)
        return BELAY_OK; /* it was touched: another time */
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct txn *outer = txn_thread_swap(NULL);
    rc = txn_run(s->f->sp, touch_body, &touch, NULL, &a, NULL);
    txn_thread_swap(outer);
    return rc ? rc : blob_remove_in(t, row);
}

/* S6, in the same millisecond: the sweep that has looked before does not remove it. */
static void test_touch_beats_sweep(struct tap *t)
{
    struct blob_info info;
    struct fixture f;
    bool whole;

    set_up(t, &f);
    TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
    struct sweep s = { .f = &f };
    TAP_EQ(t, txn_run(f.sp, sweep_body, &s, NULL, &f.arena, &f.err), BELAY_OK);
    TAP_EQ(t, s.runs, 2);
    TAP_EQ(t, get(&f, ABC, bytes_str("abc"), &whole), BELAY_OK);
    TAP_OK(t, whole);
    check_tally(t, &f, 1, 0, 1);
    tear_down(&f);
}

/* --- loading --- */

static void test_load(struct tap *t)
{
    static const size_t sizes[] = { 0, 1, 4711, CHUNK_MAX, CHUNK_MAX + 1 };

    for (size_t i = 0; i < 2 * COUNT_OF(sizes); i++) {
        size_t len = sizes[i / 2];
        uint8_t *data = content(len, 3);
        struct bytes out = bytes_str("untouched");
        struct blob_info info;
        struct fixture f;

        set_up(t, &f);
        f.compress = i % 2;
        TAP_EQ(t, put(&f, bytes_of(data, len), &info), BELAY_OK);
        if (len > 0) {
            TAP_EQ(t, blob_load(f.sp, info.sha256, len - 1, &f.arena, &out, &f.err),
                   BELAY_INVALID);
            TAP_STR(t, f.err.reason, "too_large");
            TAP_OK(t, bytes_eq(out, bytes_str("untouched")));
        }
        trace_reset(f.trace);
        TAP_EQ(t, blob_load(f.sp, info.sha256, len, &f.arena, &out, &f.err), BELAY_OK);
        TAP_EQ(t, trace_counts(f.trace).commits, 0);
        TAP_OK(t, bytes_eq(out, bytes_of(data, len)));
        TAP_EQ(t, out.ptr[out.len], 0);
        TAP_EQ(t, blob_load(f.sp, info.sha256, SIZE_MAX, &f.arena, &out, &f.err),
               BELAY_OK);
        tear_down(&f);
        free(data);
    }
}

static void test_load_refuses(struct tap *t)
{
    struct bytes out = bytes_str("untouched");
    struct blob_info info;
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, blob_load(f.sp, ABC, 9, &f.arena, &out, &f.err), BELAY_NOT_FOUND);
    TAP_EQ(t, blob_load(f.sp, "no name", 9, &f.arena, &out, &f.err), BELAY_NOT_FOUND);
    TAP_EQ(t, put(&f, bytes_str("abc"), &info), BELAY_OK);
    struct raw raw = { .upload = upload_of(t, &f, ABC), .data = bytes_str("abd") };
    TAP_EQ(t, run(&f, put_chunk_body, &raw), BELAY_OK);
    TAP_EQ(t, blob_load(f.sp, ABC, 9, &f.arena, &out, &f.err), BELAY_CORRUPT);
    TAP_STR(t, f.err.reason, "hash_mismatch");
    TAP_EQ(t, run(&f, drop_chunk_body, &raw), BELAY_OK);
    TAP_EQ(t, blob_load(f.sp, ABC, 9, &f.arena, &out, &f.err), BELAY_CORRUPT);
    TAP_STR(t, f.err.reason, "missing_chunk");
    TAP_OK(t, bytes_eq(out, bytes_str("untouched")));
    tear_down(&f);
}

static void test_names(struct tap *t)
{
    static const struct {
        const char *text;
        bool name;
    } rows[] = {
        { ABC, true },
        { "0000000000000000000000000000000000000000000000000000000000000000", true },
        { "", false },
        { "abc", false },
        { ABC "0", false },
        { "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ag", false },
        { "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a/", false },
        { "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a:", false },
        { "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a`", false },
        { "Ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", false },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        TAP_EQ(t, blob_is_name(bytes_str(rows[i].text)), rows[i].name);
    TAP_OK(t, !blob_is_name(bytes_of(ABC, 63)));
    TAP_OK(t, !blob_is_name(bytes_of(ABC, 65))); /* with its NUL */
}

static const struct tap_case cases[] = {
    { "a prepared piece becomes a whole blob without an upload", test_put },
    { "several pieces are one commit, equal ones one blob", test_one_commit },
    { "more than a chunk is not prepared, nor is anything in a body",
      test_prepare_refuses },
    { "who is told that content is there has touched it", test_touched_when_known },
    { "a touch changes the version, always, and the place when time went on",
      test_touch },
    { "rows from before the index are read, removed, and enter it when touched",
      test_old_rows },
    { "a removed blob leaves nothing", test_remove },
    { "many chunks are left to the sweep of uploads", test_remove_long },
    { "a row that cannot be is not removed", test_remove_corrupt },
    { "a touch beats the sweep that has read the row before", test_touch_beats_sweep },
    { "a blob is loaded whole, and no more than is wanted", test_load },
    { "what is not there or damaged is not loaded", test_load_refuses },
    { "a name is 64 lower-case hex digits", test_names },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
