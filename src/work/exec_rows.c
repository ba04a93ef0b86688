/* Executions in rows: reading one, taking a step, writing the difference and where it
 * stands. */
#include "work/execution_rows.h"

#include <stdio.h>

#include "base/clock.h"
#include "work/epoch.h"

#define ID_LEN_MAX 64

belay_rc exec_check_id(const char *id, struct belay_error *err)
{
    if (bytes_is_id(bytes_str(id), ID_LEN_MAX))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "execution_id",
                      "execution id: must be 1 to %d bytes of UTF-8 without control "
                      "characters",
                      ID_LEN_MAX);
}

belay_rc exec_check_worker(const char *worker, struct belay_error *err)
{
    if (worker && bytes_is_id(bytes_str(worker), WORKER_MAX))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "worker",
                      "worker: must be 1 to %d bytes of UTF-8 without control "
                      "characters",
                      WORKER_MAX);
}

/* --- reading --- */

/* Which column says what of a vector. */
static const struct {
    unsigned column;
    enum belay_dimension dim;
    size_t offset;
} dimensions[] = {
    { EXEC_PHASE, BELAY_DIM_PHASE, offsetof(struct belay_vector, phase) },
    { EXEC_OWNERSHIP, BELAY_DIM_OWNERSHIP, offsetof(struct belay_vector, ownership) },
    { EXEC_ELIGIBILITY, BELAY_DIM_ELIGIBILITY,
      offsetof(struct belay_vector, eligibility) },
    { EXEC_BLOCKING, BELAY_DIM_BLOCKING, offsetof(struct belay_vector, blocking) },
    { EXEC_OUTCOME, BELAY_DIM_OUTCOME, offsetof(struct belay_vector, outcome) },
    { EXEC_ATTEMPT_STATE, BELAY_DIM_ATTEMPT_STATE,
      offsetof(struct belay_vector, attempt) },
};

static int32_t *dimension_at(struct belay_vector *v, size_t i)
{
    return (int32_t *)(void *)((char *)v + dimensions[i].offset);
}

static belay_rc corrupt_column(struct txn *t, const struct row *row, unsigned column)
{
    struct bytes id = row_bytes(row, EXEC_ID), held = row_bytes(row, column);
    const char *name = row_execution.columns[column].name;
    belay_rc rc =
        txn_fail(t, BELAY_CORRUPT, name, "execution %.*s: its %s cannot be \"%.*s\"",
                 (int)id.len, (const char *)id.ptr, name, (int)(held.len % 64),
                 (const char *)held.ptr);

    err_entity(txn_error(t), id);
    return rc;
}

/* All but the vectors.  Field by field: clearing it first would take as long. */
static void take_row(const struct row *row, struct exec *out)
{
    out->row = row;
    out->id = row_bytes(row, EXEC_ID);
    out->due_ms = TIME_NONE;
    memcpy(out->v, row->v, sizeof(out->v));
}

belay_rc exec_of(struct txn *t, const struct row *row, struct exec *out)
{
    take_row(row, out);
    for (size_t i = 0; i < COUNT_OF(dimensions); i++) {
        int value;
        if (!vector_parse(dimensions[i].dim, row_bytes(row, dimensions[i].column),
                          &value))
            return corrupt_column(t, row, dimensions[i].column);
        *dimension_at(&out->vector, i) = value;
    }
    const char *state =
        vector_name(BELAY_DIM_STATE, (int)vector_state(&out->vector)); /* V1 */
    if (!state || !bytes_eq(row_bytes(row, EXEC_STATE), bytes_str(state)))
        return corrupt_column(t, row, EXEC_STATE);
    if (row->v[EXEC_RANK].kind != VALUE_I64)
        return corrupt_column(t, row, EXEC_RANK);
    if (row->v[EXEC_CREATED_AT_MS].kind != VALUE_I64)
        return corrupt_column(t, row, EXEC_CREATED_AT_MS);
    if (row_bytes(row, EXEC_LANE).len == 0)
        return corrupt_column(t, row, EXEC_LANE);
    if (row_bytes(row, EXEC_ROUTE).len == 0)
        return corrupt_column(t, row, EXEC_ROUTE);
    out->was = out->vector;
    return BELAY_OK;
}

belay_rc exec_get(struct txn *t, struct bytes id, struct exec *out)
{
    struct value key = value_text(id);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_execution, &key, &row);
    if (rc)
        return rc;
    if (row)
        return exec_of(t, row, out);
    rc = txn_fail(t, BELAY_NOT_FOUND, "execution", "execution %.*s: there is none",
                  (int)id.len, (const char *)id.ptr);
    err_entity(txn_error(t), id);
    return rc;
}

belay_rc exec_missing(struct txn *t, struct bytes index, struct bytes member)
{
    belay_rc rc =
        txn_fail(t, BELAY_CORRUPT, "rank", "index %.*s: names %.*s, which has no row",
                 (int)index.len, (const char *)index.ptr, (int)member.len,
                 (const char *)member.ptr);

    err_entity(txn_error(t), member);
    return rc;
}

struct value exec_time(int64_t ms)
{
    return ms == TIME_NONE ? value_null() : value_i64(ms);
}

belay_rc exec_step(struct txn *t, struct exec *e, enum step s)
{
    const struct belay_vector *from = e->row ? &e->vector : NULL;

    if (step_apply(s, from, &e->vector))
        return BELAY_OK;
    const char *state = vector_name(BELAY_DIM_STATE, (int)vector_state(&e->vector));
    belay_rc rc = txn_fail(t, BELAY_WRONG_STATE, step_refusal(s, from),
                           "execution %.*s: is %s, and does not %s", (int)e->id.len,
                           (const char *)e->id.ptr, state ? state : "?", step_name(s));
    err_entity(txn_error(t), e->id);
    return rc;
}

/* --- where it stands --- */

int64_t exec_order(int64_t created_at_ms, int64_t priority)
{
    return created_at_ms - priority * EXEC_ORDER_STEP;
}

static bool index_name(const char *prefix, const char *name, struct belay_arena *a,
                       struct bytes *out)
{
    char text[64];
    int len = snprintf(text, sizeof(text), "%s%s", prefix, name ? name : "");

    return arena_copy(a, bytes_of(text, (size_t)len), out);
}

static bool is_granted(const struct exec *e)
{
    return e->v[EXEC_GRANT_UNTIL_MS].kind == VALUE_I64;
}

bool exec_index(const struct exec *e, struct belay_arena *a, struct bytes *out)
{
    switch (vector_place(&e->vector)) {
    case PLACE_READY:
        if (!is_granted(e))
            return lane_index(e->v[EXEC_LANE].b, e->v[EXEC_ROUTE].b, a, out);
        *out = bytes_str(GRANTED_INDEX);
        return true;
    case PLACE_DELAYED:
        *out = bytes_str(DELAYED_INDEX);
        return true;
    case PLACE_LEASED:
        *out = bytes_str(LEASED_INDEX);
        return true;
    case PLACE_HELD:
        return index_name(HELD_INDEX,
                          vector_name(BELAY_DIM_STATE, (int)vector_state(&e->vector)),
                          a, out);
    case PLACE_DONE:
        break;
    }
    return index_name(DONE_INDEX, vector_name(BELAY_DIM_OUTCOME, e->vector.outcome), a,
                      out);
}

/* The rank it shall have there.  `kept`: what it has, where the place stays the same. */
static int64_t rank_of(const struct exec *e, bool same_place, int64_t kept,
                       int64_t now_ms)
{
    switch (vector_place(&e->vector)) {
    case PLACE_READY:
        return is_granted(e) ? e->v[EXEC_GRANT_UNTIL_MS].i
                             : exec_order(exec_i64(e, EXEC_CREATED_AT_MS, 0),
                                          exec_i64(e, EXEC_PRIORITY, 0));
    case PLACE_DELAYED:
        return exec_i64(e, EXEC_DELAY_UNTIL_MS, now_ms);
    case PLACE_LEASED: /* a lower bound: renewing leaves it where it is */
        if (e->due_ms != TIME_NONE)
            return e->due_ms;
        return same_place ? kept
                          : exec_i64(e, EXEC_LEASE + LEASE_EXPIRES_AT_MS, now_ms);
    case PLACE_HELD:
        return same_place ? kept : now_ms;
    case PLACE_DONE:
        break;
    }
    return same_place ? kept
                      : time_add_ms(exec_i64(e, EXEC_FINISHED_AT_MS, now_ms),
                                    exec_i64(e, EXEC_RETENTION_MS, BELAY_RETENTION_MS));
}

/* An entry of an index: before, and after.  index.len 0: none. */
struct standing {
    struct bytes index;
    int64_t rank;
};

static belay_rc restand(struct txn *t, struct bytes id, struct standing was,
                        struct standing is)
{
    belay_rc rc = BELAY_OK;

    if (bytes_eq(was.index, is.index)) {
        if (is.index.len == 0 || was.rank == is.rank)
            return BELAY_OK;
        return txn_rank_move(t, is.index, was.rank, is.rank, id);
    }
    if (was.index.len > 0)
        rc = txn_rank_remove(t, was.index, was.rank, id);
    if (rc == BELAY_OK && is.index.len > 0)
        rc = txn_rank_add(t, is.index, is.rank, id);
    return rc;
}

/* An index that it stands in while a column has a time. */
static struct standing timed(const char *index, const struct exec *e, unsigned column,
                             bool at_all)
{
    if (!at_all || e->v[column].kind != VALUE_I64)
        return (struct standing){ .rank = 0 };
    return (struct standing){ bytes_str(index), e->v[column].i };
}

/* --- writing --- */

static void set_vector(struct exec *e)
{
    for (size_t i = 0; i < COUNT_OF(dimensions); i++)
        e->v[dimensions[i].column] =
            value_str(vector_name(dimensions[i].dim, *dimension_at(&e->vector, i)));
    e->v[EXEC_STATE] =
        value_str(vector_name(BELAY_DIM_STATE, (int)vector_state(&e->vector))); /* V1 */
}

static belay_rc write_row(struct txn *t, const struct exec *e)
{
    struct change changes[EXEC_COLUMNS];
    struct value key = value_text(e->id);
    size_t n = 0;

    if (!e->row)
        return txn_insert(t, &row_execution, e->v);
    for (unsigned i = 1; i < EXEC_COLUMNS; i++) {
        if (!value_eq(&e->v[i], &e->row->v[i]))
            changes[n++] = (struct change){ i, e->v[i] };
    }
    return n > 0 ? txn_put(t, &row_execution, &key, changes, n) : BELAY_OK;
}

/* Whether it will ask for something before those who wait look again by themselves. */
static bool is_soon(const struct exec *e, int64_t now_ms)
{
    enum place place = vector_place(&e->vector);

    return (place == PLACE_DELAYED || place == PLACE_LEASED) &&
           exec_i64(e, EXEC_RANK, INT64_MAX) < time_add_ms(now_ms, EXEC_RELOOK_MS);
}

/* Who waits for work hears of it, and of a time that may come before the one he waits for;
 * who waits for this one, when it is nobody's. */
static belay_rc wake(struct txn *t, const struct exec *e, bool moved, bool changed,
                     int64_t now_ms)
{
    struct bytes topic;
    enum place place = vector_place(&e->vector);
    bool soon = moved && is_soon(e, now_ms);
    belay_rc rc = BELAY_OK;

    if (soon || (moved && place == PLACE_READY)) {
        if (!lane_topic(e->v[EXEC_LANE].b, txn_arena(t), &topic))
            return err_no_memory(txn_error(t), "a topic");
        rc = txn_wake(t, topic);
    }
    if (rc == BELAY_OK && soon)
        rc = txn_wake(t, bytes_str(TIMERS_TOPIC));
    if (rc == BELAY_OK && changed && e->row && place != PLACE_LEASED) {
        if (!exec_topic(e->id, txn_arena(t), &topic))
            return err_no_memory(txn_error(t), "a topic");
        rc = txn_wake(t, topic);
    }
    return rc;
}

belay_rc exec_write(struct txn *t, struct exec *e, int64_t now_ms)
{
    struct standing was = { .rank = 0 }, is = { .rank = 0 };
    bool existed = e->row != NULL;
    struct exec before;

    before.row = NULL;
    before.vector = e->was;
    if (existed) {
        take_row(e->row, &before);
        was.rank = exec_i64(&before, EXEC_RANK, 0);
        if (!exec_index(&before, txn_arena(t), &was.index))
            return err_no_memory(txn_error(t), "an index");
    }
    if (!exec_index(e, txn_arena(t), &is.index))
        return err_no_memory(txn_error(t), "an index");
    bool same = bytes_eq(was.index, is.index);
    is.rank = rank_of(e, same, was.rank, now_ms);
    set_vector(e);
    e->v[EXEC_RANK] = value_i64(is.rank);
    e->v[EXEC_UPDATED_AT_MS] = value_i64(now_ms);

    bool lived = existed && !vector_is_terminal(&before.vector);
    belay_rc rc = write_row(t, e);
    if (rc == BELAY_OK)
        rc = restand(t, e->id, was, is); /* W1: one place */
    if (rc == BELAY_OK)
        rc = restand(t, e->id, timed(LOST_INDEX, &before, EXEC_LOST_AT_MS, existed),
                     timed(LOST_INDEX, e, EXEC_LOST_AT_MS, true));
    if (rc == BELAY_OK)
        rc = restand(t, e->id,
                     timed(DEADLINE_INDEX, &before, EXEC_DEADLINE_AT_MS, lived),
                     timed(DEADLINE_INDEX, e, EXEC_DEADLINE_AT_MS,
                           !vector_is_terminal(&e->vector)));
    if (rc == BELAY_OK)
        rc = wake(t, e, !same || was.rank != is.rank,
                  !vector_eq(&before.vector, &e->vector), now_ms);
    return rc;
}

bool exec_topic(struct bytes id, struct belay_arena *a, struct bytes *out)
{
    char text[16 + ID_LEN_MAX];
    int len = snprintf(text, sizeof(text), "execution/%.*s",
                       (int)(id.len % (ID_LEN_MAX + 1)), (const char *)id.ptr);

    return arena_copy(a, bytes_of(text, (size_t)len), out);
}
