/* What operators do: cancel, replay, revoke, change priority. */
#include <stdio.h>

#include "base/clock.h"
#include "work/execution_rows.h"

#define REASON_MAX ((size_t)1024)
#define SOURCE_MAX 255

struct control {
    struct bytes id;
    struct bytes reason, source, lease_id;
    int priority;
    bool revoked;
};

static struct bytes text_of(const char *text)
{
    return text ? bytes_str(text) : bytes_of(NULL, 0);
}

static struct value text_or_null(struct bytes b)
{
    return b.len > 0 ? value_text(b) : value_null();
}

static belay_rc begin(struct control *c, const char *id, const char *reason,
                      struct belay_error *err)
{
    belay_rc rc = exec_check_id(id, err);

    if (rc)
        return rc;
    c->id = bytes_str(id);
    c->reason = text_of(reason);
    if (c->reason.len <= REASON_MAX && bytes_is_utf8(c->reason))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "reason",
                      "reason: must be at most %zu bytes of UTF-8", REASON_MAX);
}

static belay_rc run(const struct exec_site *site, txn_body *body, struct control *c,
                    struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };

    return txn_run(site->space, body, c, NULL, &arena, err);
}

static belay_rc refuse(struct txn *t, const struct exec *e, const char *reason,
                       const char *why)
{
    belay_rc rc = txn_fail(t, BELAY_WRONG_STATE, reason, "execution %.*s: %s",
                           (int)e->id.len, (const char *)e->id.ptr, why);

    err_entity(txn_error(t), e->id);
    return rc;
}

/* The execution, guarded, and the time. */
static belay_rc open_one(struct txn *t, const struct control *c, struct exec *e,
                         int64_t *out_now_ms)
{
    belay_rc rc = txn_now(t, out_now_ms);

    return rc ? rc : exec_get(t, c->id, e);
}

/* --- cancelling --- */

static belay_rc cancel_body(struct txn *t, void *arg)
{
    const struct control *c = arg;
    CLEANUP(event_list_release) struct event_list events;
    struct exec_ending how = { .step = STEP_CANCEL,
                               .delay_until_ms = TIME_NONE,
                               .cancel_reason = c->reason,
                               .cancel_source = c->source,
                               .reason = c->reason };
    struct exec e;

    event_list_init(&events, t);
    belay_rc rc = open_one(t, c, &e, &how.now_ms);
    if (rc || e.vector.outcome == BELAY_TERMINAL_CANCELLED)
        return rc;
    rc = exec_finish(t, &e, &how, &events); /* refused, reason terminal, if it ended */
    return rc ? rc : event_flush(&events);
}

belay_rc exec_cancel(const struct exec_site *site, const char *execution_id,
                     const char *reason, const char *source, struct belay_error *err)
{
    struct control c = { .source = bytes_str(source ? source : "operator_override") };
    belay_rc rc = begin(&c, execution_id, reason, err);

    if (rc == BELAY_OK && !bytes_is_id(c.source, SOURCE_MAX))
        rc = err_reason(err, BELAY_INVALID, "source",
                        "source: must be 1 to %d bytes of UTF-8 without control "
                        "characters",
                        SOURCE_MAX);
    return rc ? rc : run(site, cancel_body, &c, err);
}

/* --- replaying --- */

static enum belay_attempt_end end_of(int32_t outcome)
{
    switch ((enum belay_terminal)outcome) {
    case BELAY_TERMINAL_SUCCESS:
        return BELAY_END_SUCCESS;
    case BELAY_TERMINAL_CANCELLED:
    case BELAY_TERMINAL_SKIPPED:
        return BELAY_END_CANCELLED;
    case BELAY_TERMINAL_NONE:
    case BELAY_TERMINAL_FAILED:
    case BELAY_TERMINAL_EXPIRED:
        break;
    }
    return BELAY_END_FAILURE;
}

/* The last attempt gets a row of its own, since another one follows it (W3). */
static belay_rc archive_last(struct txn *t, const struct exec *e, const struct row *end)
{
    struct bytes message = bytes_of(NULL, 0);
    int failure_class = 0;

    if (exec_i64(e, EXEC_ATTEMPTS, 0) == 0)
        return BELAY_OK;
    if (end && row_i64(end, END_FENCE, 0) == exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0) &&
        vector_parse(BELAY_DIM_FAILURE_CLASS, row_bytes(end, END_FAILURE_CLASS),
                     &failure_class))
        message = row_bytes(end, END_FAILURE_MESSAGE);
    return exec_archive(t, e, end_of(e->vector.outcome),
                        exec_i64(e, EXEC_FINISHED_AT_MS, 0), exec_closed_reason(e),
                        failure_class, message);
}

/* Everything that tells of the run that is over; the fence stays (L2). */
static void begin_anew(struct exec *e, const struct exec_policy *p, int64_t now_ms)
{
    static const unsigned cleared[] = { EXEC_STARTED_AT_MS,  EXEC_FINISHED_AT_MS,
                                        EXEC_DELAY_UNTIL_MS, EXEC_TIMEOUT_AT_MS,
                                        EXEC_LOST_AT_MS,     EXEC_DETAIL,
                                        EXEC_RETRIES,        EXEC_RECLAIMS };

    for (size_t i = 0; i < COUNT_OF(cleared); i++)
        e->v[cleared[i]] = value_null();
    e->v[EXEC_REPLAYS] = value_i64(exec_i64(e, EXEC_REPLAYS, 0) + 1);
    e->v[EXEC_DEADLINE_AT_MS] = p->deadline_ms > 0
                                    ? value_i64(time_add_ms(now_ms, p->deadline_ms))
                                    : value_null();
}

static belay_rc tell_replay(struct txn *t, const struct exec *e, struct bytes reason,
                            int64_t now_ms)
{
    CLEANUP(event_list_release) struct event_list events;
    const struct event_facts f = { .type = BELAY_EVENT_REPLAY_INITIATED,
                                   .at_ms = now_ms,
                                   .fence = exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0),
                                   .reason = reason };

    event_list_init(&events, t);
    belay_rc rc = event_add(&events, e, &f);
    return rc ? rc : event_flush(&events);
}

static belay_rc replay_body(struct txn *t, void *arg)
{
    const struct control *c = arg;
    struct value key = value_text(c->id);
    const struct row_want wants[] = { { &row_execution, &key },
                                      { &row_execution_spec, &key },
                                      { &row_execution_end, &key } };
    const struct row *rows[COUNT_OF(wants)];
    struct exec_policy policy;
    struct exec e;
    int64_t now_ms = 0;
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = open_one(t, c, &e, &now_ms);
    if (rc == BELAY_OK && !vector_is_terminal(&e.vector))
        rc = refuse(t, &e, "not_terminal", "it has not ended");
    if (rc == BELAY_OK && exec_i64(&e, EXEC_REPLAYS, 0) >= BELAY_MAX_REPLAYS)
        rc = refuse(t, &e, "replays", "it was replayed as often as it may be");
    if (rc == BELAY_OK && !rows[1])
        rc = exec_missing(t, bytes_str("execution_spec"), e.id);
    if (rc == BELAY_OK)
        rc = exec_policy_read(t, rows[1], &policy);
    if (rc == BELAY_OK)
        rc = archive_last(t, &e, rows[2]);
    if (rc == BELAY_OK && rows[2])
        rc = txn_delete(t, &row_execution_end, &key);
    if (rc == BELAY_OK)
        rc = exec_step(t, &e, STEP_REPLAY);
    if (rc)
        return rc;
    begin_anew(&e, &policy, now_ms);
    rc = exec_write(t, &e, now_ms);
    return rc ? rc : tell_replay(t, &e, c->reason, now_ms);
}

belay_rc exec_replay(const struct exec_site *site, const char *execution_id,
                     const char *reason, struct belay_error *err)
{
    struct control c = { .priority = 0 };
    belay_rc rc = begin(&c, execution_id, reason, err);

    return rc ? rc : run(site, replay_body, &c, err);
}

/* --- priority --- */

static belay_rc priority_body(struct txn *t, void *arg)
{
    const struct control *c = arg;
    struct exec e;
    int64_t now_ms = 0;
    belay_rc rc = open_one(t, c, &e, &now_ms);

    if (rc)
        return rc;
    if (vector_is_terminal(&e.vector))
        return refuse(t, &e, "terminal", "it has ended");
    e.v[EXEC_PRIORITY] = c->priority > 0 ? value_i64(c->priority) : value_null();
    return exec_write(t, &e, now_ms);
}

belay_rc exec_set_priority(const struct exec_site *site, const char *execution_id,
                           int priority, struct belay_error *err)
{
    struct control c = { .priority = priority };
    belay_rc rc = begin(&c, execution_id, NULL, err);

    if (rc == BELAY_OK && (priority < 0 || priority > BELAY_PRIORITY_MAX))
        rc = err_reason(err, BELAY_INVALID, "priority", "priority: %d, must be 0 to %d",
                        priority, BELAY_PRIORITY_MAX);
    return rc ? rc : run(site, priority_body, &c, err);
}

/* --- revoking --- */

/* T19; lost too often, T20 follows at once: there is nobody to claim it any more. */
static belay_rc take_away(struct txn *t, struct exec *e, const struct control *c,
                          const struct exec_policy *policy, int64_t now_ms,
                          struct event_list *events)
{
    const struct exec_ending capped = { .step = STEP_RECLAIM_CAPPED,
                                        .now_ms = now_ms,
                                        .delay_until_ms = TIME_NONE,
                                        .failure_class = BELAY_FAILURE_INFRA_CRASH,
                                        .message = bytes_str("max_reclaims_exceeded"),
                                        .reason = bytes_str("max_reclaims_exceeded") };
    const struct event_facts f = { .type = BELAY_EVENT_REVOKED,
                                   .at_ms = now_ms,
                                   .fence = exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0),
                                   .worker = exec_bytes(e, EXEC_LEASE + LEASE_OWNER),
                                   .reason = c->reason };
    belay_rc rc = event_add(events, e, &f);

    if (rc == BELAY_OK)
        rc = exec_step(t, e, STEP_REVOKE);
    if (rc)
        return rc;
    if (exec_i64(e, EXEC_RECLAIMS, 0) >= policy->max_reclaims)
        return exec_finish(t, e, &capped, events);
    e->v[EXEC_LOST_AT_MS] = value_i64(now_ms);
    e->v[EXEC_TIMEOUT_AT_MS] = value_null();
    e->v[EXEC_DETAIL] = text_or_null(c->reason);
    return exec_write(t, e, now_ms);
}

/* The lease that was meant is gone, as its holder would be told. */
static belay_rc refuse_stale(struct txn *t, const struct exec *e)
{
    char what[96];

    (void)snprintf(what, sizeof(what), "execution %.*s", (int)(e->id.len % 80),
                   (const char *)e->id.ptr);
    belay_rc rc = lease_lost(t, "superseded", what);
    err_entity(txn_error(t), e->id);
    return rc;
}

static belay_rc revoke_body(struct txn *t, void *arg)
{
    struct control *c = arg;
    CLEANUP(event_list_release) struct event_list events;
    struct value key = value_text(c->id);
    const struct row_want wants[] = { { &row_execution, &key },
                                      { &row_execution_spec, &key } };
    const struct row *rows[COUNT_OF(wants)];
    struct exec_policy policy;
    struct exec e;
    int64_t now_ms = 0;

    c->revoked = false;
    event_list_init(&events, t);
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);
    if (rc == BELAY_OK)
        rc = open_one(t, c, &e, &now_ms);
    if (rc || e.vector.ownership != BELAY_LEASED)
        return rc;
    if (c->lease_id.ptr &&
        !bytes_eq(c->lease_id, exec_bytes(&e, EXEC_LEASE + LEASE_ID)))
        return refuse_stale(t, &e);
    if (!rows[1])
        return exec_missing(t, bytes_str("execution_spec"), e.id);
    rc = exec_policy_read(t, rows[1], &policy);
    if (rc == BELAY_OK)
        rc = take_away(t, &e, c, &policy, now_ms, &events);
    c->revoked = rc == BELAY_OK;
    return rc ? rc : event_flush(&events);
}

belay_rc exec_revoke(const struct exec_site *site, const char *execution_id,
                     const char *expected_lease_id, const char *reason,
                     bool *out_revoked, struct belay_error *err)
{
    struct control c = { .lease_id = text_of(expected_lease_id) };
    belay_rc rc = begin(&c, execution_id, reason, err);

    if (rc == BELAY_OK)
        rc = run(site, revoke_body, &c, err);
    if (rc == BELAY_OK && out_revoked)
        *out_revoked = c.revoked;
    return rc;
}
