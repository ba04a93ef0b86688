/* Before and after the body of a claim: what is asked, and payloads that lie in blobs. */
#include "base/hash.h"
#include "store/blob.h"
#include "work/exec_claim.h"

#define WAIT_MAX_MS ((int64_t)24 * 60 * 60 * 1000)

/* --- what is asked --- */

static belay_rc check_policy(const struct belay_claim_policy *p,
                             struct belay_error *err)
{
    if (p->n_lanes < 1 || p->n_lanes > LANES_PER_CLAIM)
        return err_reason(err, BELAY_INVALID, "lane",
                          "lanes: %zu, a claim names 1 to %d", p->n_lanes,
                          LANES_PER_CLAIM);
    if (p->max > BELAY_WORK_MAX)
        return err_reason(err, BELAY_INVALID, "max",
                          "claim: %zu executions, at most %d are given at once", p->max,
                          BELAY_WORK_MAX);
    if (p->max_wait_ms < 0 || p->max_wait_ms > WAIT_MAX_MS)
        return err_reason(err, BELAY_INVALID, "wait",
                          "wait: %lld ms, must be 0 to a day",
                          (long long)p->max_wait_ms);
    return exec_check_worker(p->worker, err);
}

static belay_rc take_lanes(struct claiming *c, struct belay_arena *a,
                           struct belay_error *err)
{
    const struct belay_claim_policy *p = c->policy;
    belay_rc rc = BELAY_OK;

    c->lanes = arena_zalloc(a, p->n_lanes, sizeof(*c->lanes));
    if (!c->lanes)
        return err_no_memory(err, "a claim");
    for (size_t i = 0; i < p->n_lanes && rc == BELAY_OK; i++) {
        rc = lane_check(p->lanes[i], err);
        c->lanes[i] = bytes_str(p->lanes[i]);
    }
    return rc;
}

/* Chance is drawn once and the time asked once, for all of them. */
static belay_rc draw_tickets(struct claiming *c, struct belay_arena *a,
                             struct belay_error *err)
{
    enum { BITS = LEASE_ID_HEX / 2 };
    struct space *sp = c->site->space;
    uint64_t seed = 0;
    uint8_t *bits = arena_alloc(a, c->max * BITS + sizeof(seed));
    int64_t now_ms = 0;

    c->tickets = arena_zalloc(a, c->max, sizeof(*c->tickets));
    if (!c->tickets || !bits)
        return err_no_memory(err, "a claim");
    belay_rc rc = random_bytes(store_random_hook(space_store(sp)), bits,
                               c->max * BITS + sizeof(seed), err);
    if (rc == BELAY_OK)
        rc = space_now(sp, &now_ms, err);
    for (size_t i = 0; i < c->max && rc == BELAY_OK; i++) {
        hex_encode(bytes_of(bits + i * BITS, BITS), c->tickets[i].lease_id);
        rc = space_mint_at(sp, ATTEMPT_PREFIX, now_ms, c->tickets[i].attempt_id, err);
    }
    memcpy(&seed, bits + c->max * BITS, sizeof(seed));
    rng_init(&c->chance, seed);
    return rc;
}

belay_rc claim_view(struct claiming *c, bool anew, struct belay_arena *a,
                    struct belay_error *err)
{
    const struct lane_query q = { c->lanes, c->policy->n_lanes, c->has };

    return lane_view(c->site->lanes, c->site->space, &q, anew, a, &c->view, err);
}

belay_rc claim_prepare(struct claiming *c, const struct exec_site *site,
                       const struct belay_claim_policy *policy, struct belay_arena *a,
                       struct belay_error *err)
{
    *c = (struct claiming){ .site = site, .policy = policy, .next_at_ms = TIME_NONE };
    belay_rc rc = check_policy(policy, err);
    if (rc)
        return rc;

    c->max = policy->max > 0 ? policy->max : 1;
    c->lease_ms = policy->lease_ms > 0    ? policy->lease_ms
                  : policy->lease_ms == 0 ? BELAY_EXECUTION_LEASE_MS
                                          : 0;
    rc = lease_check_ttl(c->lease_ms, err);
    if (rc == BELAY_OK)
        rc = take_lanes(c, a, err);
    if (rc == BELAY_OK)
        rc = capability_join(policy->capabilities, policy->n_capabilities,
                             "capabilities", a, &c->has, err);
    if (rc == BELAY_OK)
        rc = draw_tickets(c, a, err);
    if (rc == BELAY_OK)
        rc = claim_view(c, false, a, err);
    if (rc == BELAY_OK)
        c->holder =
            lease_holder_of(bytes_str(policy->worker), site->principal, site->host);
    return rc;
}

/* --- payloads in blobs --- */

belay_rc claim_payloads(struct claiming *c, struct belay_arena *a,
                        struct belay_error *err)
{
    char name[SHA256_HEX_LEN + 1];
    struct bytes content;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < c->n && rc == BELAY_OK; i++) {
        if (c->blobs[i].len != SHA256_HEX_LEN)
            continue;
        memcpy(name, c->blobs[i].ptr, SHA256_HEX_LEN);
        name[SHA256_HEX_LEN] = '\0';
        rc = blob_load(c->site->space, name, BELAY_PAYLOAD_MAX, a, &content, err);
        c->work[i].payload = content.ptr;
        c->work[i].payload_len = content.len;
    }
    return rc;
}
