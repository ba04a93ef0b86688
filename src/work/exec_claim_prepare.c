/* Before and after the body of a claim: what is asked, and payloads that lie in blobs. */
#include <stdio.h>

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

static belay_rc read_payload(struct claiming *c, size_t i, struct belay_arena *a,
                             struct belay_error *err)
{
    char name[SHA256_HEX_LEN + 1];
    struct bytes content;

    if (c->blobs[i].len == 0)
        return BELAY_OK;
    if (!blob_is_name(c->blobs[i]))
        return err_reason(err, BELAY_CORRUPT, "blob", "what it lies in has no name");
    memcpy(name, c->blobs[i].ptr, SHA256_HEX_LEN);
    name[SHA256_HEX_LEN] = '\0';
    belay_rc rc = blob_load(c->site->space, name, BELAY_PAYLOAD_MAX, a, &content, err);
    if (rc)
        return rc;
    c->work[i].payload = content.ptr;
    c->work[i].payload_len = content.len;
    return BELAY_OK;
}

/* Whether asking again would help as little. */
static bool is_lost(belay_rc rc)
{
    return rc == BELAY_NOT_FOUND || rc == BELAY_CORRUPT || rc == BELAY_INVALID;
}

/* Nobody can do this work: its attempt ends as every failed one does, fenced and told. */
static void fail_unread(const struct claiming *c, const struct belay_work *work,
                        const struct belay_error *why)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    char message[sizeof(why->message) + 32];
    const struct belay_failure f = { .size = sizeof(f),
                                     .failure_class = BELAY_FAILURE_PERMANENT,
                                     .handle = &work->handle,
                                     .message = message };
    struct belay_ended ended;

    (void)snprintf(message, sizeof(message), "payload: %s", why->message);
    belay_rc rc = exec_fail(c->site, &f, 1, &arena, &ended, NULL);
    (void)rc; /* its lease ends by itself, and who claims it then finds the same */
}

belay_rc claim_payloads(struct claiming *c, struct belay_arena *a, size_t *out_failed,
                        struct belay_error *err)
{
    struct belay_error why = { .code = 0 };
    size_t n = c->n, failed = 0;
    belay_rc rc = BELAY_OK;

    c->n = 0;
    for (size_t i = 0; i < n; i++) {
        belay_rc read = read_payload(c, i, a, &why);
        if (read == BELAY_OK) {
            c->work[c->n++] = c->work[i];
        } else if (is_lost(read)) {
            fail_unread(c, &c->work[i], &why);
            failed++;
        } else { /* the lease ends by itself where this is not heard either */
            belay_rc released = exec_release(c->site, &c->work[i].handle, NULL);
            (void)released;
            rc = read;
            if (err)
                *err = why;
        }
    }
    *out_failed = failed;
    return c->n > 0 ? BELAY_OK : rc;
}
