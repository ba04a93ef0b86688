/* Removing an execution whose retention is over: frames and attempts first, from the
 * last one on, in bounded steps; the execution itself with the last of them.
 *
 * A step that leaves something leaves an execution of fewer attempts, which is whole: it
 * can be shown, checked and even replayed. */
#include <stdio.h>

#include "work/exec_submit.h"

/* One step removes so many, at most. */
#define STEP_ATTEMPTS ((int64_t)64)
#define STEP_FRAMES ((int64_t)2000)

#define NAME_TEXT (sizeof(FRAME_STREAM) + 256 + I64_TEXT_MAX)

struct purge {
    struct exec *e;
    int64_t frames;   /* that may be removed still, in this step */
    int64_t attempts; /* likewise */
};

struct numbered_key {
    struct value v[2];
};

static struct numbered_key key_of(const struct exec *e, int64_t attempt)
{
    return (struct numbered_key){ { value_text(e->id), value_i64(attempt) } };
}

/* --- frames --- */

static belay_rc trim(struct txn *t, const struct exec *e, int64_t attempt, int64_t upto)
{
    char text[NAME_TEXT];
    int len =
        snprintf(text, sizeof(text), FRAME_STREAM "%.*s/%lld", (int)(e->id.len % 256),
                 (const char *)e->id.ptr, (long long)attempt);

    return txn_log_trim(t, bytes_of(text, (size_t)len), upto);
}

/* The frames of an attempt and their head; *out_left: not all of them yet. */
static belay_rc purge_frames(struct txn *t, struct purge *p, int64_t attempt,
                             bool *out_left)
{
    struct numbered_key key = key_of(p->e, attempt);
    const struct row *head;
    belay_rc rc = txn_get(t, &row_frame_head, key.v, &head);

    *out_left = false;
    if (rc || !head)
        return rc;
    int64_t first = row_i64(head, FRAME_HEAD_FIRST_SEQ, 1);
    int64_t last = row_i64(head, FRAME_HEAD_LAST_SEQ, 0);
    int64_t kept = last - first + 1;
    if (kept > p->frames) {
        struct change change = { FRAME_HEAD_FIRST_SEQ, value_i64(first + p->frames) };
        *out_left = true;
        if (p->frames == 0)
            return BELAY_OK;
        rc = trim(t, p->e, attempt, first + p->frames - 1);
        p->frames = 0;
        return rc ? rc : txn_put(t, &row_frame_head, key.v, &change, 1);
    }
    if (kept > 0) {
        p->frames -= kept;
        rc = trim(t, p->e, attempt, last);
    }
    return rc ? rc : txn_delete(t, &row_frame_head, key.v);
}

/* --- attempts --- */

/* What one step may look at, in one round trip. */
static belay_rc load(struct txn *t, const struct exec *e, int64_t from, int64_t to)
{
    struct belay_arena *a = txn_arena(t);
    size_t n = (size_t)(to - from), k = 0;
    struct row_want *wants = arena_zalloc(a, 2 * n + 2, sizeof(*wants));
    struct numbered_key *keys = arena_zalloc(a, n + 1, sizeof(*keys));
    const struct row **rows = arena_zalloc(a, 2 * n + 2, sizeof(*rows));
    struct value id = value_text(e->id);

    if (!wants || !keys || !rows)
        return err_no_memory(txn_error(t), "a purge");
    for (size_t i = 0; i < n; i++) {
        keys[i] = key_of(e, from + (int64_t)i);
        wants[k++] = (struct row_want){ &row_frame_head, keys[i].v };
        wants[k++] = (struct row_want){ &row_attempt, keys[i].v };
    }
    wants[k++] = (struct row_want){ &row_execution_end, &id };
    wants[k++] = (struct row_want){ &row_execution_progress, &id };
    return txn_get_many(t, wants, k, rows);
}

static belay_rc delete_row(struct txn *t, const struct row_type *type,
                           const struct value *key)
{
    const struct row *row;
    belay_rc rc = txn_get(t, type, key, &row);

    return rc || !row ? rc : txn_delete(t, type, key);
}

/* Attempts from the last one down: frames, and the row that all but the last one have.
 * *out_left: some are left, and *out_attempts is how many. */
static belay_rc purge_attempts(struct txn *t, struct purge *p, int64_t *out_attempts,
                               bool *out_left)
{
    belay_rc rc = BELAY_OK;

    *out_left = false;
    *out_attempts = exec_i64(p->e, EXEC_ATTEMPTS, 0);
    while (*out_attempts > 0) {
        struct numbered_key key = key_of(p->e, *out_attempts - 1);
        *out_left = p->attempts == 0;
        if (!*out_left)
            rc = purge_frames(t, p, *out_attempts - 1, out_left);
        if (rc || *out_left)
            return rc;
        rc = delete_row(t, &row_attempt, key.v);
        if (rc)
            return rc;
        p->attempts--;
        (*out_attempts)--;
    }
    return rc;
}

/* --- the execution itself --- */

static belay_rc unrank_tags(struct txn *t, const struct exec *e, const struct row *spec)
{
    const struct belay_tag *tags;
    size_t n;
    belay_rc rc = exec_tags_of(t, spec, &tags, &n);

    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        struct bytes index;
        if (!exec_tag_index(&tags[i], txn_arena(t), &index))
            return err_no_memory(txn_error(t), "an index");
        rc = txn_rank_remove(t, index, exec_i64(e, EXEC_CREATED_AT_MS, 0), e->id);
    }
    return rc;
}

static belay_rc unrank(struct txn *t, const struct exec *e, const struct row *spec)
{
    struct bytes place;

    if (!exec_index(e, txn_arena(t), &place))
        return err_no_memory(txn_error(t), "an index");
    belay_rc rc = txn_rank_remove(t, place, exec_i64(e, EXEC_RANK, 0), e->id);
    if (rc == BELAY_OK)
        rc = txn_rank_remove(t, bytes_str(EXECUTION_INDEX),
                             exec_i64(e, EXEC_CREATED_AT_MS, 0), e->id);
    if (rc == BELAY_OK && e->v[EXEC_LOST_AT_MS].kind == VALUE_I64)
        rc = txn_rank_remove(t, bytes_str(LOST_INDEX), e->v[EXEC_LOST_AT_MS].i, e->id);
    return rc ? rc : unrank_tags(t, e, spec);
}

static belay_rc delete_rows(struct txn *t, const struct exec *e)
{
    static const struct row_type *const types[] = {
        &row_execution_end, &row_execution_progress, &row_execution_spec, &row_execution
    };
    struct value key = value_text(e->id);
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < COUNT_OF(types) && rc == BELAY_OK; i++)
        rc = delete_row(t, types[i], &key);
    return rc;
}

/* The number alone: nothing about it has moved. */
static belay_rc put_attempts(struct txn *t, const struct exec *e, int64_t attempts)
{
    const struct change change = { EXEC_ATTEMPTS, value_i64(attempts) };
    struct value key = value_text(e->id);

    return txn_put(t, &row_execution, &key, &change, 1);
}

belay_rc exec_purge(struct txn *t, struct exec *e, const struct row *spec,
                    bool *out_left)
{
    struct purge p = { .e = e, .frames = STEP_FRAMES, .attempts = STEP_ATTEMPTS };
    int64_t attempts = exec_i64(e, EXEC_ATTEMPTS, 0);
    int64_t from = attempts > STEP_ATTEMPTS ? attempts - STEP_ATTEMPTS : 0;

    *out_left = false;
    if (!vector_is_terminal(&e->vector))
        return txn_fail(t, BELAY_WRONG_STATE, "not_terminal",
                        "execution %.*s: it has not ended", (int)e->id.len,
                        (const char *)e->id.ptr);
    belay_rc rc = load(t, e, from, attempts);
    if (rc == BELAY_OK)
        rc = purge_attempts(t, &p, &attempts, out_left);
    if (rc)
        return rc;
    if (*out_left)
        return put_attempts(t, e, attempts);
    rc = unrank(t, e, spec);
    return rc ? rc : delete_rows(t, e);
}
