/* What a check finds: nothing in a sound store, and every planted damage. */
#include "test_work_exec_time.h"
#include "work/check.h"
#include "work/epoch.h"
#include "work/namespaces.h"

/* Of "xxx", which work_fill puts. */
#define XXX "cd2eb0837c9b4c962c22d2ff8b5441b7b45805887f051d39bf133b583baf6860"

/* --- findings as text --- */

struct told {
    struct buf text; /* "code namespace entity;" for each */
};

static void note(void *arg, const struct finding *f)
{
    struct told *told = arg;

    buf_printf(&told->text, "%s %.*s %.*s;", f->what, (int)f->ns.len,
               f->ns.ptr ? (const char *)f->ns.ptr : "", (int)f->entity.len,
               f->entity.ptr ? (const char *)f->entity.ptr : "");
}

/* Valid until the next call. */
static const char *findings(struct work *w, struct check_counts *counts)
{
    static char text[4096];
    struct told told = { 0 };

    WORK_RC(w, check_store(w->store, note, &told, counts, &w->err), BELAY_OK);
    (void)snprintf(text, sizeof(text), "%.*s", (int)told.text.len,
                   told.text.ptr ? (const char *)told.text.ptr : "");
    buf_release(&told.text);
    return text;
}

/* Bytes that do not shrink, compressed all the same: two chunks and a little. */
#define NOISE_LEN (2 * CHUNK_MAX + 100)

static void packed_blob(struct work *w, uint32_t seed, struct blob_info *out)
{
    struct blob_writer *writer = NULL;
    uint8_t *data = malloc(NOISE_LEN);

    for (size_t i = 0; i < NOISE_LEN; i++) {
        seed = seed * 1664525U + 1013904223U;
        data[i] = (uint8_t)(seed >> 24);
    }
    WORK_RC(w, blob_writer_open(&writer, w->space, true, NULL, &w->err), BELAY_OK);
    WORK_RC(w, blob_write(writer, bytes_of(data, NOISE_LEN), &w->err), BELAY_OK);
    WORK_RC(w, blob_finish(writer, bytes_of(NULL, 0), NULL, out, &w->err), BELAY_OK);
    blob_writer_close(writer);
    free(data);
}

static void sound(struct work *w)
{
    struct check_counts counts = { 0 };
    struct blob_info info;
    struct epoch_info epoch;
    struct blob_writer *unfinished = NULL;
    bool created = false;

    TAP_STR(w->t, findings(w, &counts), "");
    TAP_EQ(w->t, counts.namespaces, 1); /* the system's, with nothing in it */
    work_fill(w, w->space, 20);
    work_blob(w, w->space, 0, 0, &info);
    work_blob(w, w->space, 2 * CHUNK_MAX + 1, 'y', &info);
    work_blob(w, w->space, CHUNK_MAX, 'z', &info);
    work_blob(w, w->space, CHUNK_MAX, 'z', &info); /* touched; its upload is garbage */
    packed_blob(w, 1, &info);
    WORK_RC(w, blob_writer_open(&unfinished, w->space, false, NULL, &w->err), BELAY_OK);
    for (int i = 0; i < 3; i++) {
        static uint8_t piece[CHUNK_MAX / 2 + 1];
        WORK_RC(w, blob_write(unfinished, bytes_of(piece, sizeof(piece)), &w->err),
                BELAY_OK);
    }
    blob_writer_close(unfinished);
    WORK_RC(w,
            epoch_raise(w->space, bytes_of(NULL, 0), "me", &w->arena, &epoch, &w->err),
            BELAY_OK);
    WORK_RC(w, namespaces_create(w->store, bytes_str("new"), "me", &created, &w->err),
            BELAY_OK);
    TAP_STR(w->t, findings(w, &counts), "");
    TAP_EQ(w->t, counts.namespaces, 3);
    TAP_EQ(w->t, counts.blobs, 5);
    TAP_EQ(w->t, counts.chunks, 10);
    TAP_EQ(w->t, counts.feeds, 20);
    TAP_EQ(w->t, counts.logs, 22);
    TAP_EQ(w->t, counts.audits, 2);
    TAP_EQ(w->t, counts.findings, 0);
}

static void test_sound(struct tap *t)
{
    work_everywhere(t, sound);
}

/* --- planted damage --- */

static belay_rc rank_gone_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_rank_remove(t, bytes_str(NAMESPACE_INDEX), 0, bytes_str("default"));
}

static belay_rc rank_more_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_rank_add(t, bytes_str(UPLOAD_INDEX), 5, bytes_str("upl_none"));
}

static belay_rc rank_moved_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_rank_move(t, bytes_str(NAMESPACE_INDEX), 0, 7, bytes_str("default"));
}

static belay_rc upload_body(struct txn *t, void *arg)
{
    const struct value v[UPLOAD_COLUMNS] = { value_str("upl_a"), value_i64(1),
                                             value_i64(5) };

    (void)arg;
    return txn_insert(t, &row_upload, v);
}

static belay_rc orphan_body(struct txn *t, void *arg)
{
    belay_rc rc = txn_chunk_put(t, bytes_str("upl_b"), 0, bytes_str("x"));

    (void)arg;
    return rc ? rc : txn_chunk_put(t, bytes_str("upl_b"), 1, bytes_str("x"));
}

static belay_rc row_gone_body(struct txn *t, void *arg)
{
    const struct row *row;
    belay_rc rc = txn_get(t, &row_fence_floor, NULL, &row);

    (void)arg;
    return rc ? rc : txn_delete(t, &row_fence_floor, NULL);
}

static belay_rc epoch_body(struct txn *t, void *arg)
{
    struct change change = { EPOCH_EPOCH, value_i64(8192) };
    const struct row *row;
    belay_rc rc = txn_get(t, &row_epoch, NULL, &row);

    (void)arg;
    return rc ? rc : txn_put(t, &row_epoch, NULL, &change, 1);
}

static belay_rc head_body(struct txn *t, void *arg)
{
    const struct value v[AUDIT_HEAD_COLUMNS] = { value_i64(1), value_str("00") };

    (void)arg;
    return txn_insert(t, &row_audit_head, v);
}

static belay_rc trimmed_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_log_trim(t, bytes_str("log"), 4);
}

static belay_rc slot_body(struct txn *t, void *arg)
{
    const struct value v[SLOT_COLUMNS] = { value_str("slt_a"), value_i64(1),
                                           value_i64(0), value_i64(9) };

    (void)arg;
    return txn_insert(t, &row_slot, v);
}

static belay_rc blob_rank_gone_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_rank_remove(t, bytes_str(BLOB_INDEX), START_MS, bytes_str(XXX));
}

static belay_rc blob_rank_moved_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_rank_move(t, bytes_str(BLOB_INDEX), START_MS, 5, bytes_str(XXX));
}

static belay_rc blob_rank_more_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_rank_add(t, bytes_str(BLOB_INDEX), 5, bytes_str("none"));
}

static belay_rc change_blob(struct txn *t, unsigned column, struct value value)
{
    struct value key = value_str(XXX);
    struct change change = { column, value };
    const struct row *row;
    belay_rc rc = txn_get(t, &row_blob, &key, &row);

    return rc ? rc : txn_put(t, &row_blob, &key, &change, 1);
}

/* A row from before there was an index, or a stored size. */
static belay_rc old_blob_body(struct txn *t, void *arg)
{
    belay_rc rc = blob_rank_gone_body(t, arg);

    rc = rc ? rc : change_blob(t, BLOB_TOUCHED_AT_MS, value_null());
    return rc ? rc : change_blob(t, BLOB_STORED_SIZE, value_null());
}

static belay_rc stored_size_body(struct txn *t, void *arg)
{
    (void)arg;
    return change_blob(t, BLOB_STORED_SIZE, value_i64(4));
}

static belay_rc compression_body(struct txn *t, void *arg)
{
    (void)arg;
    return change_blob(t, BLOB_COMPRESSION, value_str("zstd"));
}

static belay_rc not_packed_body(struct txn *t, void *arg)
{
    (void)arg;
    return change_blob(t, BLOB_COMPRESSION, value_str(BLOB_ZLIB));
}

/* clang-format off */
static const struct {
    const char *name;
    txn_body *body;
    bool system;
    const char *want;
} rows[] = {
    { "nothing",                   trimmed_body,    false, "" },
    { "a rank entry is gone",      rank_gone_body,  true,  "row_without_rank _belay default;" },
    { "a rank entry too many",     rank_more_body,  false, "rank_without_row default upl_none;" },
    { "a rank entry elsewhere",    rank_moved_body, true,  "wrong_rank _belay default;" },
    { "an upload without a rank or chunks", upload_body, false,
      "row_without_rank default upl_a;missing_chunk default upl_a;" },
    { "a slot without a rank",     slot_body,       false, "row_without_rank default slt_a;" },
    { "chunks of nobody",          orphan_body,     false, "orphan_chunk default upl_b;" },
    { "a row of the namespace is gone", row_gone_body, false, "missing_row default fence_floor;" },
    { "an epoch beyond the last",  epoch_body,      false, "bad_value default epoch;" },
    { "an audit head of nothing",  head_body,       false, "audit_broken default audit;" },
    { "a blob without a rank",     blob_rank_gone_body, false, "row_without_rank default " XXX ";" },
    { "a blob elsewhere",          blob_rank_moved_body, false, "wrong_rank default " XXX ";" },
    { "a rank without a blob",     blob_rank_more_body, false, "rank_without_row default none;" },
    { "an old blob",               old_blob_body,   false, "" },
    { "another stored size",       stored_size_body, false, "bad_blob default " XXX ";" },
    { "an unknown compression",    compression_body, false, "unsupported_format default " XXX ";" },
    { "a stream that is none",     not_packed_body, false, "hash_mismatch default " XXX ";" },
};
/* clang-format on */

static void planted(struct work *w, size_t i)
{
    struct space *system = NULL;
    struct check_counts counts = { 0 };

    work_fill(w, w->space, 10);
    WORK_RC(w, store_system_space(w->store, &system, &w->err), BELAY_OK);
    WORK_RC(w, work_run(w, rows[i].system ? system : w->space, rows[i].body, NULL),
            BELAY_OK);
    if (!TAP_STR(w->t, findings(w, &counts), rows[i].want))
        printf("# in row %s\n", rows[i].name);
}

static void test_planted(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int on = 0; on < ON_DRIVERS; on++) {
            struct work w;
            if (!work_chosen(t, (enum work_driver)on))
                continue;
            if (work_open(&w, t, (enum work_driver)on))
                planted(&w, i);
            work_close(&w);
        }
    }
}

/* --- blobs --- */

static belay_rc find_upload(struct txn *t, const char *sha256, struct bytes *out)
{
    struct value key = value_str(sha256);
    const struct row *row = NULL;
    belay_rc rc = txn_get(t, &row_blob, &key, &row);

    if (rc == BELAY_OK)
        *out = row_bytes(row, BLOB_UPLOAD);
    return rc;
}

struct hurt {
    const char *sha256;
    int64_t chunk;
    const char *data; /* NULL: the chunk is dropped */
};

static belay_rc hurt_body(struct txn *t, void *arg)
{
    const struct hurt *h = arg;
    struct bytes upload;
    belay_rc rc = find_upload(t, h->sha256, &upload);

    if (rc)
        return rc;
    return h->data ? txn_chunk_put(t, upload, h->chunk, bytes_str(h->data))
                   : txn_chunk_drop(t, upload, h->chunk);
}

/* clang-format off */
static const struct {
    const char *name;
    int64_t chunk;
    const char *data, *code;
} hurts[] = {
    { "other bytes",           2, "q",    "hash_mismatch" },
    { "more bytes",            2, "yyyy", "wrong_size" },
    { "a short chunk inside",  1, "y",    "wrong_size" },
    { "the first chunk gone",  0, NULL,   "missing_chunk" },
    { "a chunk inside gone",   1, NULL,   "missing_chunk" },
    { "the last chunk gone",   2, NULL,   "missing_chunk" },
    { "a chunk too many",      3, "y",    "orphan_chunk" },
};
/* clang-format on */

static void test_blobs(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(hurts); i++) {
        struct check_counts counts = { 0 };
        struct blob_info info, other;
        struct work w;
        char want[128];

        if (!work_open(&w, t, ON_MEMORY))
            return;
        work_blob(&w, w.space, 2 * CHUNK_MAX + 1, 'y', &info);
        work_blob(&w, w.space, 2 * CHUNK_MAX + 1, 'z', &other);
        struct hurt h = { info.sha256, hurts[i].chunk, hurts[i].data };
        WORK_RC(&w, work_run(&w, w.space, hurt_body, &h), BELAY_OK);
        (void)snprintf(want, sizeof(want), "%s default %s;", hurts[i].code,
                       info.sha256);
        const char *got = findings(&w, &counts);
        /* A short chunk also spoils the sum. */
        if (!TAP_OK(t, strncmp(got, want, strlen(want)) == 0))
            printf("# in row %s: %s\n", hurts[i].name, got);
        TAP_OK(t, !strstr(got, other.sha256));
        work_close(&w);
    }
}

/* --- compressed blobs --- */

struct packed_hurt {
    const char *sha256;
    int64_t chunk;
    int64_t flip;   /* offset of a byte to change; -1: none */
    int64_t longer; /* bytes that the last chunk grows by */
    bool told;      /* the row says so, too */
    bool drop;
};

static belay_rc packed_hurt_body(struct txn *t, void *arg)
{
    const struct packed_hurt *h = arg;
    struct value key = value_str(h->sha256);
    const struct row *row = NULL;
    struct bytes chunk = { 0 };
    bool found = false;
    belay_rc rc = txn_get(t, &row_blob, &key, &row);

    if (rc || !row)
        return BELAY_CORRUPT;
    struct bytes upload = row_bytes(row, BLOB_UPLOAD);
    if (h->drop)
        return txn_chunk_drop(t, upload, h->chunk);
    rc = txn_chunk_get(t, upload, h->chunk, &found, &chunk);
    if (rc || !found)
        return BELAY_CORRUPT;
    size_t len = (size_t)((int64_t)chunk.len + h->longer);
    uint8_t *copy = arena_zalloc(txn_arena(t), len + chunk.len, 1);
    if (!copy)
        return BELAY_NO_MEMORY;
    memcpy(copy, chunk.ptr, chunk.len);
    if (h->flip >= 0)
        copy[h->flip] ^= 0x55;
    rc = txn_chunk_put(t, upload, h->chunk, bytes_of(copy, len));
    if (rc || !h->told)
        return rc;
    int64_t stored = row_i64(row, BLOB_STORED_SIZE, 0) + h->longer;
    struct change change = { BLOB_STORED_SIZE, value_i64(stored) };
    return txn_put(t, &row_blob, &key, &change, 1);
}

/* clang-format off */
static const struct {
    const char *name;
    struct packed_hurt hurt;
    const char *code;
} packed_hurts[] = {
    { "the stream's head",        { NULL, 0, 0, 0, false, false },     "hash_mismatch" },
    { "other content",            { NULL, 0, 9999, 0, false, false },  "hash_mismatch" },
    { "other content, later",     { NULL, 1, 9999, 0, false, false },  "hash_mismatch" },
    { "the stream's end",         { NULL, 2, 90, 0, false, false },    "hash_mismatch" },
    { "cut off",                  { NULL, 2, -1, -1, true, false },    "hash_mismatch" },
    { "cut off more",             { NULL, 2, -1, -50, true, false },   "hash_mismatch" },
    { "something behind it",      { NULL, 2, -1, 1, true, false },     "hash_mismatch" },
    { "cut off, the row says no", { NULL, 2, -1, -1, false, false },   "wrong_size" },
    { "a short chunk inside",     { NULL, 1, -1, -1, false, false },   "wrong_size" },
    { "the first chunk gone",     { NULL, 0, -1, 0, false, true },     "missing_chunk" },
    { "a chunk inside gone",      { NULL, 1, -1, 0, false, true },     "missing_chunk" },
    { "the last chunk gone",      { NULL, 2, -1, 0, false, true },     "missing_chunk" },
};
/* clang-format on */

static void test_packed_blobs(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(packed_hurts); i++) {
        struct packed_hurt hurt = packed_hurts[i].hurt;
        struct check_counts counts = { 0 };
        struct blob_info before, info, after;
        struct work w;
        char want[128];

        if (!work_open(&w, t, ON_MEMORY))
            return;
        packed_blob(&w, 1, &before);
        packed_blob(&w, 2, &info);
        packed_blob(&w, 3, &after);
        hurt.sha256 = info.sha256;
        WORK_RC(&w, work_run(&w, w.space, packed_hurt_body, &hurt), BELAY_OK);
        (void)snprintf(want, sizeof(want), "%s default %s;", packed_hurts[i].code,
                       info.sha256);
        const char *got = findings(&w, &counts);
        if (!TAP_OK(t, strncmp(got, want, strlen(want)) == 0))
            printf("# in row %s: %s\n", packed_hurts[i].name, got);
        TAP_OK(t, !strstr(got, before.sha256) && !strstr(got, after.sha256));
        work_close(&w);
    }
}

/* --- deletion meanwhile, and limits --- */

static void test_deleting(struct tap *t)
{
    struct check_counts counts = { 0 };
    struct space *system = NULL;
    struct work w;

    if (!work_open(&w, t, ON_MEMORY))
        return;
    work_fill(&w, w.space, 10);
    WORK_RC(&w, work_run(&w, w.space, row_gone_body, NULL), BELAY_OK);
    WORK_RC(&w, store_system_space(w.store, &system, &w.err), BELAY_OK);
    TAP_STR(t, findings(&w, &counts), "missing_row default fence_floor;");
    WORK_RC(&w, namespaces_delete(w.store, bytes_str("default"), "me", &w.err),
            BELAY_OK);
    TAP_STR(t, findings(&w, &counts), "");
    work_close(&w);
}

static belay_rc many_body(struct txn *t, void *arg)
{
    belay_rc rc = BELAY_OK;
    char member[32];

    (void)arg;
    for (int i = 0; i < CHECK_FINDINGS_MAX + 10 && !rc; i++) {
        (void)snprintf(member, sizeof(member), "upl_%d", i);
        rc = txn_rank_add(t, bytes_str(UPLOAD_INDEX), i, bytes_str(member));
    }
    return rc;
}

static void count_told(void *arg, const struct finding *f)
{
    (void)f;
    ++*(int64_t *)arg;
}

static void test_many(struct tap *t)
{
    struct check_counts counts = { 0 };
    int64_t told = 0;
    struct work w;

    if (!work_open(&w, t, ON_MEMORY))
        return;
    WORK_RC(&w, work_run(&w, w.space, many_body, NULL), BELAY_OK);
    WORK_RC(&w, check_store(w.store, count_told, &told, &counts, &w.err), BELAY_OK);
    TAP_EQ(t, told, CHECK_FINDINGS_MAX);
    TAP_EQ(t, counts.findings, CHECK_FINDINGS_MAX + 10);
    work_close(&w);
}

/* --- doctor --- */

static void at_work(struct work *w)
{
    struct told told = { 0 };

    work_fill(w, w->space, 10);
    WORK_RC(w, driver_doctor(w->driver, note, &told, &w->err), BELAY_OK);
    buf_append_char(&told.text, '\0');
    TAP_OK(w->t, strstr((const char *)told.text.ptr, "durability"));
    buf_release(&told.text);
}

static void test_doctor(struct tap *t)
{
    work_everywhere(t, at_work);
}

/* --- executions --- */

struct hurt_execution {
    const char *id; /* of the execution that is hurt */
};

static belay_rc put_execution(struct txn *t, const struct hurt_execution *h,
                              unsigned column, struct value value)
{
    const struct change change = { column, value };
    struct value key = value_str(h->id);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_execution, &key, &row);

    return rc ? rc : txn_put(t, &row_execution, &key, &change, 1);
}

static belay_rc delete_of(struct txn *t, const struct row_type *type,
                          const struct value *key)
{
    const struct row *row;
    belay_rc rc = txn_get(t, type, key, &row);

    return rc ? rc : txn_delete(t, type, key);
}

static belay_rc exec_state_body(struct txn *t, void *arg)
{
    return put_execution(t, arg, EXEC_STATE, value_str("failed"));
}

static belay_rc exec_vector_body(struct txn *t, void *arg)
{
    return put_execution(t, arg, EXEC_BLOCKING, value_str("waiting_for_signal"));
}

static belay_rc exec_attempts_body(struct txn *t, void *arg)
{
    return put_execution(t, arg, EXEC_ATTEMPTS, value_i64(5));
}

static belay_rc exec_rank_body(struct txn *t, void *arg)
{
    const struct hurt_execution *h = arg;

    return txn_rank_move(t, bytes_str(LEASED_INDEX), START_MS + 31000, START_MS,
                         bytes_str(h->id));
}

static belay_rc exec_place_body(struct txn *t, void *arg)
{
    const struct hurt_execution *h = arg;

    return txn_rank_add(t, bytes_str(DELAYED_INDEX), 7, bytes_str(h->id));
}

static belay_rc exec_tag_body(struct txn *t, void *arg)
{
    const struct hurt_execution *h = arg;

    return txn_rank_remove(t, bytes_str(TAG_INDEX "team=a"), START_MS,
                           bytes_str(h->id));
}

static belay_rc exec_lane_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_rank_remove(t, bytes_str(LANE_INDEX), 0, bytes_str("l"));
}

static belay_rc exec_spec_body(struct txn *t, void *arg)
{
    const struct hurt_execution *h = arg;
    struct value key = value_str(h->id);
    belay_rc rc = delete_of(t, &row_execution_spec, &key);

    /* And the tag that it listed. */
    return rc ? rc : exec_tag_body(t, arg);
}

static belay_rc exec_frame_body(struct txn *t, void *arg)
{
    const struct hurt_execution *h = arg;
    char stream[128];

    (void)snprintf(stream, sizeof(stream), FRAME_STREAM "%s/0", h->id);
    return txn_log_trim(t, bytes_str(stream), 1);
}

static belay_rc exec_head_body(struct txn *t, void *arg)
{
    const struct hurt_execution *h = arg;
    const struct value key[] = { value_str(h->id), value_i64(0) };

    return delete_of(t, &row_frame_head, key);
}

/* %s: the execution. */
static const struct {
    txn_body *body;
    const char *want;
} exec_damage[] = {
    { exec_vector_body, "bad_vector default %s;" },
    { exec_attempts_body, "wrong_count default %s;" },
    { exec_rank_body, "wrong_rank default %s;" },
    { exec_place_body, "rank_without_row default %s;" },
    { exec_tag_body, "row_without_rank default %s;" },
    { exec_lane_body, "row_without_rank default l;" },
    { exec_spec_body, "missing_row default %s;" },
    { exec_frame_body, "wrong_count default %s/0;" },
    { exec_head_body, "missing_row default %s/0;" },
};

/* One execution that is held, with a tag and two frames. */
static const char *held_execution(struct lab *l)
{
    const struct belay_tag tags[] = { { "team", "a" } };
    const struct belay_frame frames[] = {
        { .size = sizeof(frames[0]), .bytes = "a", .len = 1 },
        { .size = sizeof(frames[0]), .bytes = "b", .len = 1 },
    };
    struct belay_frame_appended appended;

    const char *id = submit(l, (struct belay_submission){ .tags = tags, .n_tags = 1 });
    struct belay_work work = take(l, "w1");
    WORK_RC(
        l->w,
        exec_append_frames(&l->site, &work.handle, frames, 2, &appended, &l->w->err),
        BELAY_OK);
    return id;
}

static void hurt_executions(struct work *w)
{
    struct check_counts counts = { 0 };

    for (size_t i = 0; i < COUNT_OF(exec_damage); i++) {
        char want[256];
        struct work one;
        struct lab l;
        if (!work_open(&one, w->t, w->on))
            return;
        if (lab_open(&l, &one)) {
            struct hurt_execution h = { held_execution(&l) };
            TAP_STR(w->t, findings(&one, &counts), "");
            (void)snprintf(want, sizeof(want), exec_damage[i].want, h.id);
            WORK_RC(
                &one,
                txn_run(one.space, exec_damage[i].body, &h, NULL, &one.arena, &one.err),
                BELAY_OK);
            if (!TAP_STR(w->t, findings(&one, &counts), want))
                printf("# in row %zu\n", i);
            lane_book_close(l.site.lanes);
        }
        work_close(&one);
    }
}

static void test_executions(struct tap *t)
{
    struct work w = { .t = t, .on = ON_MEMORY };

    hurt_executions(&w);
}

/* V1: what the vector says is what is told. */
static void test_execution_state(struct tap *t)
{
    struct check_counts counts = { 0 };
    struct work w;
    struct lab l;

    if (!work_open(&w, t, ON_MEMORY))
        return;
    if (lab_open(&l, &w)) {
        struct hurt_execution h = { held_execution(&l) };
        WORK_RC(&w, txn_run(w.space, exec_state_body, &h, NULL, &w.arena, &w.err),
                BELAY_OK);
        TAP_OK(t, strstr(findings(&w, &counts), "bad_value default"));
        lane_book_close(l.site.lanes);
    }
    work_close(&w);
}

static const struct tap_case cases[] = {
    { "nothing is found in a sound store, and everything is counted", test_sound },
    { "planted damage is found, and nothing else", test_planted },
    { "damaged blobs are found by their digests and chunks", test_blobs },
    { "damage of compressed blobs is found, and of nothing else", test_packed_blobs },
    { "a namespace that is gone has nothing to find", test_deleting },
    { "a flood of findings is counted and cut", test_many },
    { "every driver tells its doctor what an answer is worth", test_doctor },
    { "planted damage of executions is found, and nothing else", test_executions },
    { "a public state that the vector does not have is found", test_execution_state },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
