/* What a holder does without ending the execution: renew, tell how far it is, go on
 * later, give back. */
#include "base/clock.h"
#include "work/epoch.h"
#include "work/execution_rows.h"

#define PROGRESS_MESSAGE_MAX ((size_t)1024)

struct attempt_op {
    struct exec_handle handle;
    int64_t lease_ms, until_ms;
    int percent;
    const char *message;
    struct belay_lease_renewal renewal;
};

/* --- renewing --- */

static belay_rc renew_body(struct txn *t, void *arg)
{
    struct attempt_op *op = arg;
    int64_t now_ms = 0, expires_at_ms = 0;
    struct exec e;
    belay_rc rc = txn_now(t, &now_ms);

    if (rc == BELAY_OK)
        rc = exec_open(t, &op->handle, &e);
    if (rc)
        return rc;
    struct lease lease = lease_of(e.row, EXEC_LEASE);
    const char *reason =
        lease_renew(&lease, LEASE_RENEW_LATE, now_ms, op->lease_ms, &expires_at_ms);
    if (reason)
        return lease_lost(t, reason, "execution");
    op->renewal = (struct belay_lease_renewal){ expires_at_ms, lease.fence };
    /* Where it stands is a lower bound, and stays: L6 leaves the end no earlier. */
    e.v[EXEC_LEASE + LEASE_EXPIRES_AT_MS] = value_i64(expires_at_ms);
    return exec_write(t, &e, now_ms);
}

belay_rc exec_renew(const struct exec_site *site, const struct belay_handle *h,
                    int64_t lease_ms, struct belay_lease_renewal *out,
                    struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct attempt_op op = { .lease_ms = lease_ms };
    belay_rc rc = handle_check(site, h, &op.handle, err);

    if (rc == BELAY_OK && lease_ms == 0)
        op.lease_ms = op.handle.lease_ms;
    if (rc == BELAY_OK)
        rc = lease_check_ttl(op.lease_ms, err);
    if (rc == BELAY_OK)
        rc = txn_run(site->space, renew_body, &op, NULL, &arena, err);
    if (rc == BELAY_OK && out)
        *out = op.renewal;
    return rc;
}

/* --- progress --- */

/* What is not said stays, within one grant; a new one begins with nothing. */
static belay_rc write_progress(struct txn *t, const struct attempt_op *op,
                               const struct row *before, int64_t now_ms)
{
    const struct value none = value_null();
    const struct value *kept[] = { &none, &none };
    struct value key = value_text(op->handle.execution);

    if (before && row_i64(before, PROGRESS_FENCE, 0) == op->handle.fence) {
        kept[0] = &before->v[PROGRESS_PERCENT];
        kept[1] = &before->v[PROGRESS_MESSAGE];
    }
    struct value v[PROGRESS_COLUMNS] = {
        [PROGRESS_ID] = key,
        [PROGRESS_FENCE] = value_i64(op->handle.fence),
        [PROGRESS_PERCENT] = *kept[0],
        [PROGRESS_MESSAGE] = *kept[1],
        [PROGRESS_AT_MS] = value_i64(now_ms),
    };
    struct change changes[PROGRESS_COLUMNS];

    if (op->percent >= 0)
        v[PROGRESS_PERCENT] = value_i64(op->percent);
    if (op->message)
        v[PROGRESS_MESSAGE] = value_str(op->message);
    if (!before)
        return txn_insert(t, &row_execution_progress, v);
    for (unsigned i = 1; i < PROGRESS_COLUMNS; i++)
        changes[i - 1] = (struct change){ i, v[i] };
    return txn_put(t, &row_execution_progress, &key, changes, PROGRESS_COLUMNS - 1);
}

/* The execution's own row is guarded and not written: progress hinders nobody. */
static belay_rc progress_body(struct txn *t, void *arg)
{
    const struct attempt_op *op = arg;
    struct value key = value_text(op->handle.execution);
    const struct row_want wants[] = { { &row_execution, &key },
                                      { &row_execution_progress, &key },
                                      { &row_epoch, NULL } };
    const struct row *rows[COUNT_OF(wants)];
    int64_t now_ms = 0;
    struct exec e;
    belay_rc rc = txn_now(t, &now_ms);

    if (rc == BELAY_OK)
        rc = txn_get_many(t, wants, COUNT_OF(wants), rows);
    if (rc == BELAY_OK)
        rc = exec_open(t, &op->handle, &e);
    if (rc || (op->percent < 0 && !op->message))
        return rc;
    return write_progress(t, op, rows[1], now_ms);
}

static belay_rc check_progress(int percent, const char *message,
                               struct belay_error *err)
{
    if (percent < -1 || percent > 100)
        return err_reason(err, BELAY_INVALID, "percent",
                          "progress: %d percent, must be 0 to 100", percent);
    if (message && strlen(message) > PROGRESS_MESSAGE_MAX)
        return err_reason(err, BELAY_INVALID, "message",
                          "progress: a message has at most %zu bytes",
                          PROGRESS_MESSAGE_MAX);
    if (message && !bytes_is_utf8(bytes_str(message)))
        return err_reason(err, BELAY_INVALID, "message",
                          "progress: the message is not UTF-8");
    return BELAY_OK;
}

belay_rc exec_progress(const struct exec_site *site, const struct belay_handle *h,
                       int percent, const char *message, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct attempt_op op = { .percent = percent, .message = message };
    belay_rc rc = handle_check(site, h, &op.handle, err);

    if (rc == BELAY_OK)
        rc = check_progress(percent, message, err);
    return rc ? rc : txn_run(site->space, progress_body, &op, NULL, &arena, err);
}

/* --- going on later, giving back --- */

/* The step, and what is told: the same attempt goes on with the next claim. */
static belay_rc pause_attempt(struct txn *t, struct exec *e, enum step step,
                              const char *reason, int64_t now_ms)
{
    CLEANUP(event_list_release) struct event_list events;
    const struct event_facts f = { .type = BELAY_EVENT_RELEASED,
                                   .at_ms = now_ms,
                                   .fence = exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0),
                                   .worker = exec_bytes(e, EXEC_LEASE + LEASE_OWNER),
                                   .reason = bytes_str(reason) };

    event_list_init(&events, t);
    e->v[EXEC_TIMEOUT_AT_MS] = value_null(); /* the next grant sets it anew */
    belay_rc rc = exec_step(t, e, step);
    if (rc == BELAY_OK)
        rc = exec_write(t, e, now_ms);
    if (rc == BELAY_OK)
        rc = event_add(&events, e, &f);
    return rc ? rc : event_flush(&events);
}

/* It waits for the next claim of the attempt that the last holder paused. */
static bool waits_on(const struct exec *e, const struct exec_handle *h,
                     enum place place)
{
    return exec_was_last(e, h) && e->vector.phase == BELAY_PHASE_RUNNABLE &&
           e->vector.attempt == BELAY_ATTEMPT_INTERRUPTED &&
           vector_place(&e->vector) == place;
}

/* Once its time has come the delay is forgotten: it is ready as asked. */
static bool is_delayed_so(const struct exec *e, const struct attempt_op *op,
                          int64_t now_ms)
{
    if (waits_on(e, &op->handle, PLACE_DELAYED))
        return exec_i64(e, EXEC_DELAY_UNTIL_MS, TIME_NONE) == op->until_ms;
    return op->until_ms <= now_ms && waits_on(e, &op->handle, PLACE_READY);
}

static belay_rc delay_body(struct txn *t, void *arg)
{
    const struct attempt_op *op = arg;
    int64_t now_ms = 0;
    struct exec e = { .row = NULL };
    belay_rc rc = txn_now(t, &now_ms);

    if (rc == BELAY_OK)
        rc = exec_open(t, &op->handle, &e);
    if (rc == BELAY_LEASE_LOST && is_delayed_so(&e, op, now_ms))
        return BELAY_OK;
    if (rc)
        return rc;
    e.v[EXEC_DELAY_UNTIL_MS] = value_i64(op->until_ms);
    return pause_attempt(t, &e, STEP_DELAY, "delay", now_ms);
}

belay_rc exec_delay(const struct exec_site *site, const struct belay_handle *h,
                    int64_t until_ms, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct attempt_op op = { .until_ms = time_add_ms(until_ms, 0) };
    belay_rc rc = handle_check(site, h, &op.handle, err);

    return rc ? rc : txn_run(site->space, delay_body, &op, NULL, &arena, err);
}

static belay_rc release_body(struct txn *t, void *arg)
{
    const struct attempt_op *op = arg;
    int64_t now_ms = 0;
    struct exec e = { .row = NULL };
    belay_rc rc = txn_now(t, &now_ms);

    if (rc == BELAY_OK)
        rc = exec_open(t, &op->handle, &e);
    if (rc == BELAY_LEASE_LOST && waits_on(&e, &op->handle, PLACE_READY))
        return BELAY_OK;
    return rc ? rc : pause_attempt(t, &e, STEP_RELEASE, "release", now_ms);
}

belay_rc exec_release(const struct exec_site *site, const struct belay_handle *h,
                      struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct attempt_op op = { .lease_ms = 0 };
    belay_rc rc = handle_check(site, h, &op.handle, err);

    return rc ? rc : txn_run(site->space, release_body, &op, NULL, &arena, err);
}
