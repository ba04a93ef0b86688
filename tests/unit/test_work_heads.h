/* test_work_heads.h - heads with checkpoints, as a commit leaves them, and blobs that
 * something has happened to. */
#ifndef TESTS_WORK_HEADS_H
#define TESTS_WORK_HEADS_H

#include "test_work.h"
#include "work/checkpoint.h"

struct head_commit {
    const char *session;
    const struct checkpoint_plan *plan; /* NULL: no checkpoint */
    const char *frames;                 /* JSON; NULL: none */
};

static inline belay_rc head_frames(struct txn *t, const struct head_commit *c)
{
    struct value v[FRAMES_COLUMNS] = { [FRAMES_SESSION] = value_str(c->session),
                                       [FRAMES_FRAMES] =
                                           value_json(bytes_str(c->frames)) };
    struct change change = { FRAMES_FRAMES, v[FRAMES_FRAMES] };
    const struct row *row;
    belay_rc rc = txn_get(t, &row_session_frames, v, &row);

    if (rc)
        return rc;
    return row ? txn_put(t, &row_session_frames, v, &change, 1)
               : txn_insert(t, &row_session_frames, v);
}

static inline belay_rc head_new(struct txn *t, const struct head_commit *c,
                                const struct change *changes, size_t n)
{
    struct value v[SESSION_COLUMNS] = { [SESSION_ID] = value_str(c->session),
                                        [SESSION_STATE] = value_str(SESSION_ACTIVE),
                                        [SESSION_REVISION] = value_i64(1) };
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);

    v[SESSION_CREATED_AT_MS] = value_i64(now_ms);
    for (size_t i = 0; i < n; i++)
        v[changes[i].column] = changes[i].value;
    if (!rc)
        rc = txn_insert(t, &row_session, v);
    return rc ? rc : txn_rank_add(t, bytes_str(SESSION_INDEX), now_ms, v[SESSION_ID].b);
}

/* What a session's commit does about its checkpoint and frames. */
static inline belay_rc head_body(struct txn *t, void *arg)
{
    const struct head_commit *c = arg;
    struct value key = value_str(c->session);
    struct change changes[PARTS + 1];
    size_t n = 0;
    const struct row *row;
    belay_rc rc = txn_get(t, &row_session, &key, &row);

    if (!rc && c->plan)
        rc = checkpoint_check(t, c->plan);
    if (!rc && c->plan)
        rc = checkpoint_apply(t, c->plan, row);
    if (!rc && c->frames)
        rc = head_frames(t, c);
    if (rc)
        return rc;
    if (c->plan)
        n = checkpoint_changes(c->plan, changes);
    if (!row)
        return head_new(t, c, changes, n);
    changes[n++] = (struct change){ SESSION_REVISION,
                                    value_i64(row_i64(row, SESSION_REVISION, 0) + 1) };
    return txn_put(t, &row_session, &key, changes, n);
}

/* Commits a checkpoint; *out (may be NULL) is the plan, which the arena of w holds only
 * until the next work_run. */
static inline belay_rc head_commit(struct work *w, const char *session,
                                   const struct belay_checkpoint *in, int32_t profile,
                                   struct checkpoint_plan *out)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct checkpoint_plan plan;
    struct head_commit c = { .session = session, .plan = &plan };
    belay_rc rc = checkpoint_prepare(w->space, in, profile, &a, &plan, &w->err);

    if (!rc)
        rc = txn_run(w->space, head_body, &c, NULL, &a, &w->err);
    if (!rc && out)
        *out = plan;
    return rc;
}

/* The row of a blob: its version, or 0 when there is none. */
struct blob_look {
    const char *sha256;
    int64_t ver, touched_ms, size, stored;
    bool compressed;
};

static inline belay_rc blob_look_body(struct txn *t, void *arg)
{
    struct blob_look *l = arg;
    struct value key = value_str(l->sha256);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_blob, &key, &row);

    l->ver = 0;
    if (rc || !row)
        return rc;
    l->ver = row->ver;
    l->touched_ms = row_i64(row, BLOB_TOUCHED_AT_MS, -1);
    l->size = row_i64(row, BLOB_SIZE, -1);
    l->stored = row_i64(row, BLOB_STORED_SIZE, -1);
    l->compressed = row->v[BLOB_COMPRESSION].kind != VALUE_NULL;
    return BELAY_OK;
}

static inline struct blob_look blob_look(struct work *w, const char *sha256)
{
    struct blob_look l = { .sha256 = sha256 };

    WORK_RC(w, work_run(w, w->space, blob_look_body, &l), BELAY_OK);
    return l;
}

static inline bool blob_is_there(struct work *w, const char *sha256)
{
    return blob_look(w, sha256).ver > 0;
}

/* Replaces the first chunk of a blob, or (data NULL) drops it. */
struct blob_hurt {
    const char *sha256, *data;
    bool row; /* its row goes instead */
};

static inline belay_rc blob_hurt_body(struct txn *t, void *arg)
{
    const struct blob_hurt *h = arg;
    struct value key = value_str(h->sha256);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_blob, &key, &row);

    if (rc)
        return rc;
    if (h->row)
        return blob_remove_in(t, row);
    return h->data
               ? txn_chunk_put(t, row_bytes(row, BLOB_UPLOAD), 0, bytes_str(h->data))
               : txn_chunk_drop(t, row_bytes(row, BLOB_UPLOAD), 0);
}

static inline void blob_hurt(struct work *w, const char *sha256, const char *data)
{
    struct blob_hurt h = { .sha256 = sha256, .data = data };

    WORK_RC(w, work_run(w, w->space, blob_hurt_body, &h), BELAY_OK);
}

static inline void blob_lose(struct work *w, const char *sha256)
{
    struct blob_hurt h = { .sha256 = sha256, .row = true };

    WORK_RC(w, work_run(w, w->space, blob_hurt_body, &h), BELAY_OK);
}

/* Changes one column of a session's row. */
struct head_change {
    const char *session;
    struct change change;
};

static inline belay_rc head_change_body(struct txn *t, void *arg)
{
    const struct head_change *h = arg;
    struct value key = value_str(h->session);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_session, &key, &row);

    return rc ? rc : txn_put(t, &row_session, &key, &h->change, 1);
}

static inline void head_change(struct work *w, const char *session, unsigned column,
                               struct value value)
{
    struct head_change h = { session, { column, value } };

    WORK_RC(w, work_run(w, w->space, head_change_body, &h), BELAY_OK);
}

#endif /* TESTS_WORK_HEADS_H */
