/* The attempts of an execution: those that have a row, and the last one. */
#include "work/exec_show.h"

/* Attempts asked for in one round trip. */
#define ATTEMPT_PAGE 64

struct attempting {
    struct bytes id;

    /* Of one run of the body. */
    struct exec e;
    const struct row *end;
    struct belay_attempt *items;
    size_t n;
};

static belay_rc corrupt_attempt(struct txn *t, struct bytes id, int64_t index,
                                const char *what)
{
    belay_rc rc =
        txn_fail(t, BELAY_CORRUPT, "attempt", "execution %.*s: attempt %lld %s",
                 (int)id.len, (const char *)id.ptr, (long long)index, what);

    err_entity(txn_error(t), id);
    return rc;
}

/* What became of the last attempt, where it has no row of its own. */
static enum belay_attempt_end end_of(const struct belay_vector *v)
{
    static const enum belay_attempt_end by_outcome[] = {
        [BELAY_TERMINAL_NONE] = BELAY_END_STARTED,
        [BELAY_TERMINAL_SUCCESS] = BELAY_END_SUCCESS,
        [BELAY_TERMINAL_FAILED] = BELAY_END_FAILURE,
        [BELAY_TERMINAL_CANCELLED] = BELAY_END_CANCELLED,
        [BELAY_TERMINAL_EXPIRED] = BELAY_END_FAILURE,
        [BELAY_TERMINAL_SKIPPED] = BELAY_END_CANCELLED,
    };

    if (v->phase == BELAY_PHASE_TERMINAL)
        return by_outcome[v->outcome];
    if (v->ownership == BELAY_LEASED)
        return BELAY_END_STARTED;
    /* Its lease is gone, and it does not go on; or it is paused, and does. */
    return v->phase == BELAY_PHASE_ACTIVE ? BELAY_END_INTERRUPTED_RECLAIMED
                                          : BELAY_END_SUSPENDED;
}

static belay_rc decode_last(struct txn *t, const struct attempting *c,
                            struct belay_attempt *out)
{
    struct belay_arena *a = txn_arena(t);
    const struct exec *e = &c->e;
    int type = 0;

    if (!vector_parse(BELAY_DIM_ATTEMPT_TYPE, exec_bytes(e, EXEC_ATTEMPT_TYPE), &type))
        return corrupt_attempt(t, c->id, out->index, "is of no type");
    out->type = type;
    out->end = (int32_t)end_of(&e->vector);
    out->fence = exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0);
    out->started_at_ms = exec_i64(e, EXEC_ATTEMPT_AT_MS, TIME_NONE);
    out->ended_at_ms = exec_i64(
        e, vector_is_terminal(&e->vector) ? EXEC_FINISHED_AT_MS : EXEC_LOST_AT_MS,
        TIME_NONE);
    out->closed_reason = exec_closed_reason(e);
    if (!show_text(a, exec_bytes(e, EXEC_LEASE + LEASE_TOKEN), &out->attempt_id) ||
        !show_text(a, exec_bytes(e, EXEC_LEASE + LEASE_OWNER), &out->worker))
        return err_no_memory(txn_error(t), "attempts");
    if (!exec_has_failed(e, c->end))
        return BELAY_OK;
    int32_t class = 0;
    belay_rc rc = exec_class_of(t, c->id, c->end, END_FAILURE_CLASS, &class);
    out->failure_class = class > 0 ? vector_name(BELAY_DIM_FAILURE_CLASS, class) : NULL;
    if (rc == BELAY_OK &&
        !show_column(a, c->end, END_FAILURE_MESSAGE, &out->failure_message))
        rc = err_no_memory(txn_error(t), "attempts");
    return rc;
}

static belay_rc decode_row(struct txn *t, const struct row *row,
                           struct belay_attempt *out)
{
    struct belay_arena *a = txn_arena(t);
    struct bytes id = row_bytes(row, ATTEMPT_EXECUTION);
    int type = 0, end = 0;
    int32_t class = 0;

    if (!vector_parse(BELAY_DIM_ATTEMPT_TYPE, row_bytes(row, ATTEMPT_TYPE), &type) ||
        !vector_parse(BELAY_DIM_ATTEMPT_END, row_bytes(row, ATTEMPT_END), &end))
        return corrupt_attempt(t, id, out->index, "cannot be read");
    belay_rc rc = exec_class_of(t, id, row, ATTEMPT_FAILURE_CLASS, &class);
    if (rc)
        return rc;
    out->type = type;
    out->end = end;
    out->fence = row_i64(row, ATTEMPT_FENCE, 0);
    out->started_at_ms = row_i64(row, ATTEMPT_STARTED_AT_MS, TIME_NONE);
    out->ended_at_ms = row_i64(row, ATTEMPT_ENDED_AT_MS, TIME_NONE);
    out->failure_class = class > 0 ? vector_name(BELAY_DIM_FAILURE_CLASS, class) : NULL;
    if (!show_column(a, row, ATTEMPT_ID, &out->attempt_id) ||
        !show_column(a, row, ATTEMPT_WORKER, &out->worker) ||
        !show_column(a, row, ATTEMPT_CLOSED_REASON, &out->closed_reason) ||
        !show_column(a, row, ATTEMPT_FAILURE_MESSAGE, &out->failure_message))
        return err_no_memory(txn_error(t), "attempts");
    return BELAY_OK;
}

/* Attempts from .. from + n - 1. */
static belay_rc load_page(struct txn *t, struct attempting *c, size_t from, size_t n)
{
    struct value keys[ATTEMPT_PAGE][2];
    struct row_want wants[2 * ATTEMPT_PAGE] = { { .key = NULL } };
    const struct row *rows[2 * ATTEMPT_PAGE];

    for (size_t i = 0; i < n; i++) {
        keys[i][0] = value_text(c->id);
        keys[i][1] = value_i64((int64_t)(from + i));
        wants[2 * i] = (struct row_want){ &row_attempt, keys[i] };
        wants[2 * i + 1] = (struct row_want){ &row_frame_head, keys[i] };
    }
    belay_rc rc = txn_get_many(t, wants, 2 * n, rows);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        const struct row *row = rows[2 * i], *head = rows[2 * i + 1];
        struct belay_attempt *out = &c->items[from + i];
        out->index = (int64_t)(from + i);
        out->frames = head ? row_i64(head, FRAME_HEAD_LAST_SEQ, 0) : 0;
        if (row)
            rc = decode_row(t, row, out);
        else if (from + i + 1 == c->n)
            rc = decode_last(t, c, out);
        else
            rc = corrupt_attempt(t, c->id, out->index, "is missing"); /* W3 */
    }
    return rc;
}

/* --- what each one follows --- */

/* Why an attempt failed, as its row tells; *out is NULL where it does not. */
static bool say_failure(const struct belay_attempt *of, struct belay_arena *a,
                        const char **out)
{
    struct buf text = buf_in(a);

    *out = NULL;
    if (!of->failure_class)
        return true;
    buf_append_str(&text, of->failure_class);
    if (of->failure_message) {
        buf_append_str(&text, ": ");
        buf_append_str(&text, of->failure_message);
    }
    buf_append_char(&text, 0);
    *out = (const char *)text.ptr;
    return !text.failed;
}

/* Attempts follow each other one by one, so that the rows tell it all. */
static belay_rc add_lineage(struct txn *t, struct attempting *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct belay_attempt *out = &c->items[i];
        out->previous_attempt_index = (int64_t)i - 1;
        if (i > 0 && out->type == BELAY_ATTEMPT_RETRY &&
            !say_failure(&c->items[i - 1], txn_arena(t), &out->retry_reason))
            return err_no_memory(txn_error(t), "attempts");
    }
    return BELAY_OK;
}

static belay_rc attempts_body(struct txn *t, void *arg)
{
    struct attempting *c = arg;
    struct value key = value_text(c->id);
    const struct row_want wants[] = { { &row_execution, &key },
                                      { &row_execution_end, &key } };
    const struct row *rows[COUNT_OF(wants)];
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = exec_get(t, c->id, &c->e);
    if (rc)
        return rc;
    c->end = rows[1];
    int64_t attempts = exec_i64(&c->e, EXEC_ATTEMPTS, 0);
    c->n = attempts > 0 ? (size_t)attempts : 0;
    c->items = arena_zalloc(txn_arena(t), c->n, sizeof(*c->items));
    if (!c->items)
        return err_no_memory(txn_error(t), "attempts");
    for (size_t i = 0; i < c->n && rc == BELAY_OK; i += ATTEMPT_PAGE)
        rc = load_page(t, c, i, c->n - i < ATTEMPT_PAGE ? c->n - i : ATTEMPT_PAGE);
    return rc ? rc : add_lineage(t, c);
}

belay_rc exec_attempts(const struct exec_site *site, const char *execution_id,
                       struct belay_arena *a, struct belay_attempts *out,
                       struct belay_error *err)
{
    struct attempting c = { .id = bytes_str(execution_id) };
    belay_rc rc = exec_check_id(execution_id, err);

    if (rc == BELAY_OK)
        rc = txn_run(site->space, attempts_body, &c, &look_only, a, err);
    if (rc == BELAY_OK)
        *out = (struct belay_attempts){ .items = c.items, .n = c.n };
    return rc;
}
