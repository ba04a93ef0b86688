/* Holding an execution: who does, granting it, and what the claimer is given. */
#include <stdio.h>

#include "base/clock.h"
#include "work/epoch.h"
#include "work/execution_rows.h"

/* --- who holds --- */

/* The fence triple of the last grant is the handle's. */
static bool is_last_grant(const struct exec *e, const struct exec_handle *h)
{
    return exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0) == h->fence &&
           bytes_eq(exec_bytes(e, EXEC_LEASE + LEASE_ID), h->lease_id) &&
           bytes_eq(exec_bytes(e, EXEC_LEASE + LEASE_TOKEN), h->attempt_id);
}

bool exec_was_last(const struct exec *e, const struct exec_handle *h)
{
    return e->vector.ownership != BELAY_LEASED && is_last_grant(e, h);
}

/* Why nobody, or somebody else, holds it. */
static const char *loss_reason(const struct exec *e, bool last)
{
    if (e->vector.phase == BELAY_PHASE_TERMINAL)
        return "terminal";
    if (!last)
        return "superseded";
    switch (e->vector.ownership) {
    case BELAY_LEASE_REVOKED:
        return "revoked";
    case BELAY_LEASE_EXPIRED_RECLAIMABLE:
        return "expired";
    default:
        return "released";
    }
}

belay_rc exec_hold(struct txn *t, const struct exec *e, const struct exec_handle *h,
                   int64_t epoch)
{
    const char *reason;
    char what[96];

    if (e->vector.ownership != BELAY_LEASED) {
        reason = loss_reason(e, is_last_grant(e, h));
    } else {
        struct lease lease = lease_of(e->row, EXEC_LEASE);
        struct lease_proof proof = { .token = h->attempt_id, .id = h->lease_id };
        reason = lease_lost_reason(&lease, &proof, epoch);
        if (!reason && (lease.fence != h->fence ||
                        h->attempt != exec_i64(e, EXEC_ATTEMPTS, 0) - 1))
            reason = "superseded";
    }
    if (!reason)
        return BELAY_OK;
    (void)snprintf(what, sizeof(what), "execution %.*s", (int)(e->id.len % 80),
                   (const char *)e->id.ptr);
    belay_rc rc = lease_lost(t, reason, what);
    err_entity(txn_error(t), e->id);
    err_numbers(txn_error(t), exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0), h->fence);
    return rc;
}

belay_rc exec_open(struct txn *t, const struct exec_handle *h, struct exec *out)
{
    struct value key = value_text(h->execution);
    const struct row_want wants[] = { { &row_execution, &key }, { &row_epoch, NULL } };
    const struct row *rows[COUNT_OF(wants)];
    int64_t epoch = 0;
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = epoch_in(t, &epoch);
    if (rc == BELAY_OK)
        rc = exec_get(t, h->execution, out);
    return rc ? rc : exec_hold(t, out, h, epoch);
}

/* --- granting --- */

static void add(struct exec *e, unsigned column, int64_t n)
{
    e->v[column] = value_i64(exec_i64(e, column, 0) + n);
}

/* A new attempt: its number is that of those before it. */
static void begin_attempt(struct exec *e, const struct exec_granting *g,
                          enum belay_attempt_type type)
{
    add(e, EXEC_ATTEMPTS, 1);
    e->v[EXEC_ATTEMPT_TYPE] = value_str(vector_name(BELAY_DIM_ATTEMPT_TYPE, (int)type));
    e->v[EXEC_ATTEMPT_AT_MS] = value_i64(g->now_ms);
    if (e->v[EXEC_STARTED_AT_MS].kind == VALUE_NULL)
        e->v[EXEC_STARTED_AT_MS] = value_i64(g->now_ms);
}

/* How the work of this vector is taken up. */
static enum step taking(const struct belay_vector *v)
{
    if (v->phase == BELAY_PHASE_ACTIVE)
        return STEP_RECLAIM;
    return v->attempt == BELAY_ATTEMPT_INTERRUPTED ? STEP_CLAIM_RESUMED : STEP_CLAIM;
}

static enum belay_attempt_type fresh_type(const struct belay_vector *v)
{
    switch (v->attempt) {
    case BELAY_PENDING_RETRY_ATTEMPT:
        return BELAY_ATTEMPT_RETRY;
    case BELAY_PENDING_REPLAY_ATTEMPT:
        return BELAY_ATTEMPT_REPLAY;
    default:
        return BELAY_ATTEMPT_INITIAL;
    }
}

static belay_rc lease_it(struct txn *t, struct exec *e, const struct exec_granting *g,
                         struct bytes attempt_id)
{
    struct change changes[LEASE_COLUMNS];
    struct lease_grant grant = { .holder = g->holder,
                                 .token = attempt_id,
                                 .id = bytes_str(g->ticket->lease_id),
                                 .claimed_at_ms = g->now_ms,
                                 .expires_at_ms =
                                     lease_expiry(g->now_ms, g->lease_ms) };
    belay_rc rc = lease_next_fence(t, exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0), 0,
                                   g->epoch, &grant.fence); /* L2, W6 */
    if (rc)
        return rc;
    size_t n = lease_grant_changes(&grant, EXEC_LEASE, changes);
    for (size_t i = 0; i < n; i++)
        e->v[changes[i].column] = changes[i].value;
    return BELAY_OK;
}

static void set_times(struct exec *e, const struct exec_granting *g,
                      const struct exec_policy *policy)
{
    int64_t lost_at = time_add_ms(exec_i64(e, EXEC_LEASE + LEASE_EXPIRES_AT_MS, 0),
                                  g->site->grace_ms);

    e->due_ms = lost_at;
    e->v[EXEC_TIMEOUT_AT_MS] = value_null();
    if (policy->attempt_timeout_ms > 0) {
        int64_t timeout_at = time_add_ms(g->now_ms, policy->attempt_timeout_ms);
        e->v[EXEC_TIMEOUT_AT_MS] = value_i64(timeout_at);
        if (timeout_at < lost_at)
            e->due_ms = timeout_at;
    }
}

static void clear_pending(struct exec *e)
{
    static const unsigned columns[] = { EXEC_DELAY_UNTIL_MS, EXEC_DETAIL,
                                        EXEC_GRANT_UNTIL_MS, EXEC_GRANT,
                                        EXEC_GRANT_WORKER,   EXEC_LOST_AT_MS };

    for (size_t i = 0; i < COUNT_OF(columns); i++)
        e->v[columns[i]] = value_null();
}

belay_rc exec_grant_lease(struct txn *t, struct exec *e, const struct exec_granting *g,
                          int *out_event)
{
    enum step step = taking(&e->vector);
    enum belay_attempt_type type = fresh_type(&e->vector);
    struct bytes attempt_id = bytes_str(g->ticket->attempt_id);
    struct exec_policy policy = { .max_reclaims = 0 };
    belay_rc rc = exec_policy_read(t, g->spec, &policy);
    if (rc)
        return rc;

    *out_event = (int)BELAY_EVENT_ACQUIRED;
    if (step == STEP_RECLAIM) {
        *out_event = (int)BELAY_EVENT_RECLAIMED;
        type = BELAY_ATTEMPT_RECLAIM;
        add(e, EXEC_RECLAIMS, 1);
        /* It ended when it was lost, not when somebody had time for it. */
        rc = exec_archive(t, e, BELAY_END_INTERRUPTED_RECLAIMED,
                          exec_i64(e, EXEC_LOST_AT_MS, g->now_ms), "reclaimed", 0,
                          bytes_of(NULL, 0));
    }
    if (rc == BELAY_OK)
        rc = exec_step(t, e, step);
    if (rc)
        return rc;
    if (step == STEP_CLAIM_RESUMED)
        attempt_id = exec_bytes(e, EXEC_LEASE + LEASE_TOKEN);
    else
        begin_attempt(e, g, type);
    clear_pending(e);
    rc = lease_it(t, e, g, attempt_id);
    if (rc == BELAY_OK)
        set_times(e, g, &policy);
    return rc;
}

/* --- what the claimer gets --- */

/* Text of a column in the arena, with a NUL; NULL where the column is.  False: no memory. */
static bool text_of(const struct value *v, struct belay_arena *a, const char **out)
{
    struct bytes copy;

    *out = NULL;
    if (v->kind == VALUE_NULL)
        return true;
    if (!arena_copy(a, v->b, &copy))
        return false;
    *out = (const char *)copy.ptr;
    return true;
}

static enum belay_handle_kind kind_of(const struct exec *e, bool resumed)
{
    struct bytes type = exec_bytes(e, EXEC_ATTEMPT_TYPE);

    if (resumed)
        return BELAY_HANDLE_RESUMED;
    return bytes_eq(type, bytes_str(vector_name(BELAY_DIM_ATTEMPT_TYPE,
                                                (int)BELAY_ATTEMPT_RECLAIM)))
               ? BELAY_HANDLE_RECLAIMED
               : BELAY_HANDLE_FRESH;
}

static belay_rc make_handle(struct txn *t, const struct exec *e,
                            const struct exec_granting *g, struct belay_handle *out)
{
    bool resumed =
        e->row && row_i64(e->row, EXEC_ATTEMPTS, 0) == exec_i64(e, EXEC_ATTEMPTS, 0);
    struct exec_handle h = {
        .backend = (int32_t)g->site->backend,
        .kind = (int32_t)kind_of(e, resumed),
        .ns = space_name(g->site->space),
        .execution = e->id,
        .attempt_id = exec_bytes(e, EXEC_LEASE + LEASE_TOKEN),
        .lease_id = exec_bytes(e, EXEC_LEASE + LEASE_ID),
        .lane = exec_bytes(e, EXEC_LANE),
        .worker = g->holder.owner,
        .attempt = exec_i64(e, EXEC_ATTEMPTS, 1) - 1,
        .fence = exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0),
        .lease_ms = g->lease_ms,
    };

    return handle_encode(&h, txn_arena(t), out, txn_error(t));
}

belay_rc exec_work_of(struct txn *t, const struct exec *e,
                      const struct exec_granting *g, struct belay_work *out,
                      struct bytes *out_blob)
{
    struct belay_arena *a = txn_arena(t);
    struct bytes encoding = row_bytes(g->spec, SPEC_ENCODING), payload;
    struct belay_work w = {
        .attempt = exec_i64(e, EXEC_ATTEMPTS, 1) - 1,
        .fence = exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0),
        .expires_at_ms = exec_i64(e, EXEC_LEASE + LEASE_EXPIRES_AT_MS, 0),
        .timeout_at_ms = exec_i64(e, EXEC_TIMEOUT_AT_MS, TIME_NONE),
        .deadline_at_ms = exec_i64(e, EXEC_DEADLINE_AT_MS, TIME_NONE),
        .submitted_at_ms = exec_i64(e, EXEC_CREATED_AT_MS, 0),
        .payload_is_json = bytes_eq(encoding, bytes_str(PAYLOAD_JSON)),
    };
    int type = 0;
    belay_rc rc = make_handle(t, e, g, &w.handle);
    if (rc)
        return rc;

    if (!text_of(&e->v[EXEC_ID], a, &w.execution_id) ||
        !text_of(&e->v[EXEC_LANE], a, &w.lane) ||
        !text_of(&g->spec->v[SPEC_KIND], a, &w.kind) ||
        !text_of(&e->v[EXEC_SESSION], a, &w.session) ||
        !text_of(&e->v[EXEC_PROCESS], a, &w.process))
        return err_no_memory(txn_error(t), "work");
    if (g->spec->v[SPEC_PAYLOAD].kind != VALUE_NULL) {
        if (!arena_copy(a, row_bytes(g->spec, SPEC_PAYLOAD), &payload))
            return err_no_memory(txn_error(t), "a payload");
        w.payload = payload.ptr;
        w.payload_len = payload.len;
    }
    if (vector_parse(BELAY_DIM_ATTEMPT_TYPE, exec_bytes(e, EXEC_ATTEMPT_TYPE), &type))
        w.attempt_type = type;
    *out_blob = row_bytes(g->spec, SPEC_PAYLOAD_BLOB);
    rc = exec_tags_of(t, g->spec, &w.tags, &w.n_tags);
    if (rc == BELAY_OK)
        rc = exec_trace_of(t, g->spec, a, &w.traceparent, &w.tracestate);
    if (rc == BELAY_OK)
        *out = w;
    return rc;
}
