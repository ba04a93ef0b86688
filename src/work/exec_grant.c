/* Grants: a scheduler sets work aside for a worker, who claims it by the grant's id.
 *
 * The vector of what is granted does not change: it is still to be claimed, by one worker
 * alone, and stands in `granted` until it was, or the time of the grant is over. */
#include "work/exec_grant.h"

#include "base/clock.h"
#include "base/hash.h"
#include "store/blob.h"
#include "work/epoch.h"
#include "work/exec_claim.h"

#define GRANT_MS_MAX ((int64_t)60000)

static belay_rc check_grant_ms(int64_t ms, struct belay_error *err)
{
    if (ms >= 1 && ms <= GRANT_MS_MAX)
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "grant", "grant: %lld ms, must be 1 to %lld",
                      (long long)ms, (long long)GRANT_MS_MAX);
}

/* --- taking one back --- */

belay_rc exec_ungrant(struct txn *t, struct exec *e)
{
    static const unsigned columns[] = { EXEC_GRANT_UNTIL_MS, EXEC_GRANT,
                                        EXEC_GRANT_WORKER };
    struct value key = e->v[EXEC_GRANT];
    const struct row *grant = NULL;
    belay_rc rc = BELAY_OK;

    if (key.kind != VALUE_NULL)
        rc = txn_get(t, &row_execution_grant, &key, &grant);
    if (rc == BELAY_OK && grant)
        rc = txn_delete(t, &row_execution_grant, &key);
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        e->v[columns[i]] = value_null();
    return rc;
}

/* --- giving one --- */

struct granting {
    const struct exec_site *site;
    struct bytes execution, worker;
    int64_t grant_ms;
    uint64_t random;
    char id[ID_MAX];
    struct belay_grant out;
};

static belay_rc refuse(struct txn *t, const struct exec *e, const char *reason,
                       const char *why)
{
    belay_rc rc = txn_fail(t, BELAY_WRONG_STATE, reason, "execution %.*s: %s",
                           (int)e->id.len, (const char *)e->id.ptr, why);

    err_entity(txn_error(t), e->id);
    return rc;
}

/* What claiming it will give. */
static enum belay_handle_kind kind_of(const struct belay_vector *v)
{
    if (v->phase == BELAY_PHASE_ACTIVE)
        return BELAY_HANDLE_RECLAIMED;
    return v->attempt == BELAY_ATTEMPT_INTERRUPTED ? BELAY_HANDLE_RESUMED
                                                   : BELAY_HANDLE_FRESH;
}

static bool copy_text(struct belay_arena *a, struct bytes b, const char **out)
{
    struct bytes copy;

    if (!arena_copy(a, b, &copy))
        return false;
    *out = (const char *)copy.ptr;
    return true;
}

static belay_rc show_grant(struct txn *t, struct granting *g, const struct exec *e,
                           int64_t until_ms)
{
    struct belay_arena *a = txn_arena(t);

    g->out.kind = (int32_t)kind_of(&e->vector);
    g->out.expires_at_ms = until_ms;
    if (!copy_text(a, bytes_str(g->id), &g->out.grant_id) ||
        !copy_text(a, e->id, &g->out.execution_id) ||
        !copy_text(a, space_name(g->site->space), &g->out.partition_key) ||
        !copy_text(a, exec_bytes(e, EXEC_LANE), &g->out.lane) ||
        !copy_text(a, g->worker, &g->out.worker))
        return err_no_memory(txn_error(t), "a grant");
    return BELAY_OK;
}

static belay_rc give(struct txn *t, struct granting *g, struct exec *e, int64_t now_ms)
{
    int64_t until_ms = time_add_ms(now_ms, g->grant_ms);
    const struct value v[GRANT_COLUMNS] = {
        [GRANT_ID] = value_str(g->id),
        [GRANT_EXECUTION] = value_text(e->id),
        [GRANT_WORKER] = value_text(g->worker),
        [GRANT_UNTIL_MS] = value_i64(until_ms),
    };

    if (vector_place(&e->vector) != PLACE_READY)
        return refuse(t, e, "not_eligible", "nobody can claim it now");
    if (exec_i64(e, EXEC_GRANT_UNTIL_MS, TIME_NONE) > now_ms)
        return refuse(t, e, "grant_exists", "it is set aside for a worker already");
    belay_rc rc = exec_ungrant(t, e);
    if (rc == BELAY_OK)
        rc = txn_insert(t, &row_execution_grant, v);
    if (rc)
        return rc;
    e->v[EXEC_GRANT_UNTIL_MS] = v[GRANT_UNTIL_MS];
    e->v[EXEC_GRANT] = v[GRANT_ID];
    e->v[EXEC_GRANT_WORKER] = v[GRANT_WORKER];
    rc = show_grant(t, g, e, until_ms);
    return rc ? rc : exec_write(t, e, now_ms);
}

/* What its time asks for comes first: a delay that is over is no reason to refuse it. */
static belay_rc see_to(struct txn *t, const struct granting *g, int64_t now_ms)
{
    struct value key = value_text(g->execution);
    const struct row_want wants[] = { { &row_execution, &key },
                                      { &row_execution_spec, &key } };
    const struct row *rows[COUNT_OF(wants)];
    CLEANUP(event_list_release) struct event_list events;
    struct due_count count = { 0 };
    struct exec e;

    event_list_init(&events, t);
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);
    if (rc == BELAY_OK)
        rc = exec_get(t, g->execution, &e);
    if (rc || vector_is_terminal(&e.vector))
        return rc;
    rc = exec_due(t, g->site, rows[0], rows[1], now_ms, g->random, &events, &count);
    return rc ? rc : event_flush(&events);
}

static belay_rc grant_one_body(struct txn *t, void *arg)
{
    struct granting *g = arg;
    struct exec e;
    int64_t now_ms = 0;

    g->out = (struct belay_grant){ .expires_at_ms = TIME_NONE };
    belay_rc rc = txn_now(t, &now_ms);
    if (rc == BELAY_OK)
        rc = see_to(t, g, now_ms);
    if (rc == BELAY_OK)
        rc = exec_get(t, g->execution, &e);
    return rc ? rc : give(t, g, &e, now_ms);
}

static belay_rc begin(const struct exec_site *site, const char *worker,
                      int64_t grant_ms, struct granting *out, struct belay_error *err)
{
    belay_rc rc = exec_check_worker(worker, err);

    *out = (struct granting){ .site = site, .grant_ms = grant_ms };
    if (rc == BELAY_OK)
        rc = check_grant_ms(grant_ms, err);
    if (rc)
        return rc;
    out->worker = bytes_str(worker);
    rc = random_bytes(store_random_hook(space_store(site->space)), &out->random,
                      sizeof(out->random), err);
    return rc ? rc : space_mint(site->space, GRANT_PREFIX, out->id, err);
}

belay_rc exec_grant_one(const struct exec_site *site, const char *execution_id,
                        const char *worker, int64_t grant_ms, struct belay_arena *a,
                        struct belay_grant *out, struct belay_error *err)
{
    struct granting g;
    belay_rc rc = exec_check_id(execution_id, err);

    if (rc == BELAY_OK)
        rc = begin(site, worker, grant_ms, &g, err);
    if (rc)
        return rc;
    g.execution = bytes_str(execution_id);
    rc = txn_run(site->space, grant_one_body, &g, NULL, a, err);
    if (rc == BELAY_OK)
        *out = g.out;
    return rc;
}

/* --- the next one that a policy would claim --- */

struct searching {
    struct claiming c; /* first: what the taker is handed */
    struct granting g;
};

static belay_rc set_aside(struct txn *t, struct claiming *c, const struct row *row,
                          const struct row *spec, struct event_list *events,
                          bool *out_taken)
{
    struct searching *s = (struct searching *)c;
    struct exec e;
    belay_rc rc = exec_of(t, row, &e);

    (void)spec;
    (void)events;
    if (rc == BELAY_OK)
        rc = give(t, &s->g, &e, c->now_ms);
    *out_taken = rc == BELAY_OK;
    c->n += *out_taken;
    return rc;
}

static belay_rc grant_body(struct txn *t, void *arg)
{
    struct searching *s = arg;
    CLEANUP(event_list_release) struct event_list events;
    const struct row_want epoch = { &row_epoch, NULL };
    const struct row *row;
    struct scan scans[CLAIM_SCANS];
    struct hits hits[CLAIM_SCANS];
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);

    s->g.out = (struct belay_grant){ .expires_at_ms = TIME_NONE };
    s->c.n = 0;
    event_list_init(&events, t);
    claim_scans(&s->c, now_ms, scans);
    if (rc == BELAY_OK)
        rc = txn_load(t, &epoch, 1, &row, scans, CLAIM_SCANS, hits);
    if (rc == BELAY_OK)
        rc = claim_each(t, &s->c, hits, &events, set_aside);
    return rc ? rc : event_flush(&events);
}

belay_rc exec_grant(const struct exec_site *site,
                    const struct belay_claim_policy *policy, int64_t grant_ms,
                    struct belay_arena *a, struct belay_grant *out,
                    struct belay_error *err)
{
    struct belay_claim_policy one = *policy;
    struct searching s;

    one.max = 1;
    one.max_wait_ms = 0;
    belay_rc rc = begin(site, policy->worker, grant_ms, &s.g, err);
    if (rc == BELAY_OK)
        rc = claim_prepare(&s.c, site, &one, a, err);
    if (rc == BELAY_OK)
        rc = claim_look(&s.c, grant_body, a, err);
    if (rc == BELAY_OK)
        *out = s.g.out;
    return rc;
}
