/* Claiming by a grant: the worker it was given to redeems it. */
#include "base/clock.h"
#include "base/hash.h"
#include "store/blob.h"
#include "work/epoch.h"
#include "work/exec_claim.h"
#include "work/exec_grant.h"

#define GRANT_ID_MAX 64

struct redeeming {
    const struct exec_site *site;
    struct lease_holder holder;
    struct bytes grant;
    int64_t lease_ms;
    struct exec_ticket ticket;
    struct belay_work work;
    struct bytes blob;
};

static belay_rc no_grant(struct txn *t, const struct redeeming *r)
{
    belay_rc rc =
        txn_fail(t, BELAY_NOT_FOUND, "grant", "grant %.*s: there is none (any more)",
                 (int)r->grant.len, (const char *)r->grant.ptr);

    err_entity(txn_error(t), r->grant);
    return rc;
}

static belay_rc refuse_grant(struct txn *t, const struct redeeming *r,
                             const char *reason, const char *why)
{
    belay_rc rc = txn_fail(t, BELAY_WRONG_STATE, reason, "grant %.*s: %s",
                           (int)r->grant.len, (const char *)r->grant.ptr, why);

    err_entity(txn_error(t), r->grant);
    return rc;
}

/* The execution that the grant is for, and its spec. */
static belay_rc find_granted(struct txn *t, const struct redeeming *r, int64_t now_ms,
                             struct exec *e, const struct row **out_spec)
{
    struct value id = value_text(r->grant);
    const struct row *grant;
    belay_rc rc = txn_get(t, &row_execution_grant, &id, &grant);

    if (rc)
        return rc;
    if (!grant)
        return no_grant(t, r);
    if (!bytes_eq(row_bytes(grant, GRANT_WORKER), r->holder.owner))
        return refuse_grant(t, r, "worker", "it is another worker's");
    if (row_i64(grant, GRANT_UNTIL_MS, 0) <= now_ms)
        return refuse_grant(t, r, "expired", "its time is over");
    struct value key = value_text(row_bytes(grant, GRANT_EXECUTION));
    const struct row_want wants[] = { { &row_execution, &key },
                                      { &row_execution_spec, &key },
                                      { &row_epoch, NULL } };
    const struct row *rows[COUNT_OF(wants)];
    rc = txn_get_many(t, wants, COUNT_OF(wants), rows);
    if (rc == BELAY_OK)
        rc = exec_get(t, key.b, e);
    if (rc)
        return rc;
    if (!bytes_eq(exec_bytes(e, EXEC_GRANT), r->grant))
        return no_grant(t, r);
    if (!rows[1])
        return exec_missing(t, bytes_str("execution_spec"), e->id);
    if (exec_i64(e, EXEC_DEADLINE_AT_MS, INT64_MAX) <= now_ms)
        return refuse_grant(t, r, "expired", "the deadline of its work has passed");
    *out_spec = rows[1];
    return BELAY_OK;
}

static belay_rc redeem(struct txn *t, struct redeeming *r, struct exec *e,
                       const struct row *spec, int64_t now_ms)
{
    CLEANUP(event_list_release) struct event_list events;
    struct exec_granting g = { .site = r->site,
                               .holder = r->holder,
                               .now_ms = now_ms,
                               .lease_ms = r->lease_ms,
                               .spec = spec,
                               .ticket = &r->ticket };
    int type = 0;

    event_list_init(&events, t);
    belay_rc rc = epoch_in(t, &g.epoch);
    if (rc == BELAY_OK)
        rc = exec_ungrant(t, e);
    if (rc == BELAY_OK)
        rc = exec_grant_lease(t, e, &g, &type);
    if (rc == BELAY_OK)
        rc = exec_work_of(t, e, &g, &r->work, &r->blob);
    if (rc == BELAY_OK)
        rc = exec_write(t, e, now_ms);
    if (rc)
        return rc;
    const struct event_facts f = { .type = (enum belay_event_type)type,
                                   .at_ms = now_ms,
                                   .fence = exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0),
                                   .worker = r->holder.owner };
    rc = event_add(&events, e, &f);
    return rc ? rc : event_flush(&events);
}

static belay_rc redeem_body(struct txn *t, void *arg)
{
    struct redeeming *r = arg;
    const struct row *spec = NULL;
    struct exec e;
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);

    if (rc == BELAY_OK)
        rc = find_granted(t, r, now_ms, &e, &spec);
    return rc ? rc : redeem(t, r, &e, spec, now_ms);
}

static belay_rc prepare_redeem(struct redeeming *r, const char *grant_id,
                               const char *worker, int64_t lease_ms,
                               struct belay_error *err)
{
    struct space *sp = r->site->space;
    belay_rc rc = exec_check_worker(worker, err);

    if (rc == BELAY_OK && !bytes_is_id(bytes_str(grant_id), GRANT_ID_MAX))
        rc = err_reason(err, BELAY_INVALID, "grant",
                        "grant id: must be 1 to %d bytes of UTF-8 without control "
                        "characters",
                        GRANT_ID_MAX);
    if (rc)
        return rc;
    r->holder = lease_holder_of(bytes_str(worker), r->site->principal, r->site->host);
    r->grant = bytes_str(grant_id);
    r->lease_ms = lease_ms > 0    ? lease_ms
                  : lease_ms == 0 ? BELAY_EXECUTION_LEASE_MS
                                  : 0;
    rc = lease_check_ttl(r->lease_ms, err);
    if (rc == BELAY_OK)
        rc = lease_id_make(space_store(sp), r->ticket.lease_id, err);
    if (rc == BELAY_OK)
        rc = space_mint(sp, ATTEMPT_PREFIX, r->ticket.attempt_id, err);
    return rc;
}

belay_rc exec_claim_grant(const struct exec_site *site, const char *grant_id,
                          const char *worker, int64_t lease_ms, struct belay_arena *a,
                          struct belay_work *out, struct belay_error *err)
{
    struct redeeming r = { .site = site };
    belay_rc rc = prepare_redeem(&r, grant_id, worker, lease_ms, err);

    if (rc == BELAY_OK)
        rc = txn_run(site->space, redeem_body, &r, NULL, a, err);
    if (rc)
        return rc;
    struct claiming one = { .site = site, .work = &r.work, .blobs = &r.blob, .n = 1 };
    size_t failed = 0;
    rc = claim_payloads(&one, a, &failed, err);
    if (rc == BELAY_OK && failed > 0) {
        rc = err_reason(err, BELAY_CORRUPT, "payload",
                        "execution %s: its payload cannot be read, and it has failed",
                        r.work.execution_id);
        err_entity(err, bytes_str(r.work.execution_id));
    }
    if (rc == BELAY_OK)
        *out = r.work;
    return rc;
}
