/* What time does to an execution: the same for claims and timers.
 *
 * Everything is decided from the row as the transaction guards it (L7), so that it does
 * not matter who comes first, or who is late: whoever finds it done already finds that
 * nothing is due. */
#include "base/clock.h"
#include "work/exec_grant.h"

struct due {
    const struct exec_site *site;
    struct exec *e;
    const struct row *spec;
    int64_t now_ms, next_ms;
    uint64_t random;
    bool holder_dead;
    struct event_list *events;
    struct due_count *count;
};

/* --- what is judged --- */

static struct due_facts facts_of(const struct due *d, const struct exec_policy *p)
{
    const struct exec *e = d->e;
    bool terminal = vector_is_terminal(&e->vector);

    return (struct due_facts){
        .vector = e->vector,
        .delay_until_ms = exec_i64(e, EXEC_DELAY_UNTIL_MS, TIME_NONE),
        .deadline_at_ms = exec_i64(e, EXEC_DEADLINE_AT_MS, TIME_NONE),
        .timeout_at_ms = exec_i64(e, EXEC_TIMEOUT_AT_MS, TIME_NONE),
        .lease_expires_at_ms =
            e->vector.ownership == BELAY_LEASED
                ? exec_i64(e, EXEC_LEASE + LEASE_EXPIRES_AT_MS, TIME_NONE)
                : TIME_NONE,
        .grant_until_ms = exec_i64(e, EXEC_GRANT_UNTIL_MS, TIME_NONE),
        .purge_at_ms = terminal ? exec_i64(e, EXEC_RANK, TIME_NONE) : TIME_NONE,
        .reclaims = exec_i64(e, EXEC_RECLAIMS, 0),
        .max_reclaims = p->max_reclaims,
        .grace_ms = d->site->grace_ms,
        .holder_dead = d->holder_dead,
    };
}

/* --- what is done --- */

/* Its rank is a lower bound: it moves to when there is something to do, if that is
 * later. */
static belay_rc do_nothing(struct txn *t, struct due *d)
{
    struct exec *e = d->e;

    if (vector_place(&e->vector) != PLACE_LEASED || d->next_ms == TIME_NONE ||
        d->next_ms <= exec_i64(e, EXEC_RANK, 0))
        return BELAY_OK;
    e->due_ms = d->next_ms;
    d->count->put_off++;
    return exec_write(t, e, d->now_ms);
}

static belay_rc do_expire(struct txn *t, struct due *d)
{
    const struct exec_ending how = { .step = STEP_EXPIRE,
                                     .now_ms = d->now_ms,
                                     .delay_until_ms = TIME_NONE,
                                     .reason = bytes_str("execution_deadline") };

    d->count->expired++;
    return exec_finish(t, d->e, &how, d->events);
}

static belay_rc do_promote(struct txn *t, struct due *d)
{
    belay_rc rc = exec_step(t, d->e, STEP_PROMOTE);

    d->e->v[EXEC_DELAY_UNTIL_MS] = value_null();
    d->count->promoted++;
    return rc ? rc : exec_write(t, d->e, d->now_ms);
}

static belay_rc do_timeout(struct txn *t, struct due *d)
{
    struct exec_ending how = { .now_ms = d->now_ms,
                               .delay_until_ms = TIME_NONE,
                               .failure_class = BELAY_FAILURE_TIMEOUT,
                               .message = bytes_str("attempt timeout") };
    belay_rc rc = exec_judge_failure(t, d->e, d->spec, d->random, &how);

    d->count->timed_out++;
    return rc ? rc : exec_finish(t, d->e, &how, d->events);
}

static belay_rc tell_expired(struct due *d)
{
    const struct event_facts f = { .type = BELAY_EVENT_EXPIRED,
                                   .at_ms = d->now_ms,
                                   .fence = exec_i64(d->e, EXEC_LEASE + LEASE_FENCE, 0),
                                   .worker = exec_bytes(d->e, EXEC_LEASE + LEASE_OWNER),
                                   .reason =
                                       bytes_str(d->holder_dead ? HOLDER_DEAD : "") };

    return event_add(d->events, d->e, &f);
}

static belay_rc do_lost(struct txn *t, struct due *d)
{
    belay_rc rc = exec_step(t, d->e, STEP_LEASE_EXPIRE);

    d->e->v[EXEC_LOST_AT_MS] = value_i64(d->now_ms);
    d->e->v[EXEC_TIMEOUT_AT_MS] = value_null();
    d->count->expired_leases++;
    if (rc == BELAY_OK)
        rc = tell_expired(d);
    return rc ? rc : exec_write(t, d->e, d->now_ms);
}

static belay_rc do_capped(struct txn *t, struct due *d)
{
    const struct exec_ending how = { .step = STEP_RECLAIM_CAPPED,
                                     .now_ms = d->now_ms,
                                     .delay_until_ms = TIME_NONE,
                                     .failure_class = BELAY_FAILURE_INFRA_CRASH,
                                     .message = bytes_str("max_reclaims_exceeded"),
                                     .reason = bytes_str("max_reclaims_exceeded") };
    belay_rc rc = tell_expired(d);

    d->count->capped++;
    return rc ? rc : exec_finish(t, d->e, &how, d->events);
}

static belay_rc do_ungrant(struct txn *t, struct due *d)
{
    belay_rc rc = exec_ungrant(t, d->e);

    d->count->ungranted++;
    return rc ? rc : exec_write(t, d->e, d->now_ms);
}

static belay_rc do_purge(struct txn *t, struct due *d)
{
    bool left = false;
    belay_rc rc = exec_purge(t, d->e, d->spec, &left);

    if (rc == BELAY_OK && !left)
        d->count->purged++;
    return rc;
}

static belay_rc (*const actions[])(struct txn *t, struct due *d) = {
    [DUE_NOTHING] = do_nothing, [DUE_EXPIRE] = do_expire, [DUE_PROMOTE] = do_promote,
    [DUE_TIMEOUT] = do_timeout, [DUE_LOST] = do_lost,     [DUE_CAPPED] = do_capped,
    [DUE_UNGRANT] = do_ungrant, [DUE_PURGE] = do_purge,
};

static belay_rc see_to(struct txn *t, struct due *d)
{
    struct exec_policy policy;
    belay_rc rc = BELAY_OK;

    if (!d->spec) {
        rc = txn_fail(t, BELAY_CORRUPT, "execution_spec",
                      "execution %.*s: what was submitted is missing",
                      (int)d->e->id.len, (const char *)d->e->id.ptr);
        err_entity(txn_error(t), d->e->id);
        return rc;
    }
    rc = exec_policy_read(t, d->spec, &policy);
    if (rc)
        return rc;
    const struct due_facts f = facts_of(d, &policy);
    return actions[due_judge(&f, d->now_ms, &d->next_ms)](t, d);
}

belay_rc exec_due(struct txn *t, const struct exec_site *site, const struct row *row,
                  const struct row *spec, int64_t now_ms, uint64_t random,
                  struct event_list *events, struct due_count *count)
{
    struct exec e;
    struct due d = { .site = site,
                     .e = &e,
                     .spec = spec,
                     .now_ms = now_ms,
                     .next_ms = TIME_NONE,
                     .random = random,
                     .events = events,
                     .count = count };
    belay_rc rc = exec_of(t, row, &e);

    return rc ? rc : see_to(t, &d);
}

/* L7: evidence is about one grant.  A lease that was granted since is somebody else's. */
static bool is_still(const struct exec *e, struct bytes lease_id)
{
    return e->vector.ownership == BELAY_LEASED &&
           bytes_eq(exec_bytes(e, EXEC_LEASE + LEASE_ID), lease_id);
}

belay_rc exec_bereave(struct txn *t, const struct exec_site *site,
                      const struct exec_bereaved *b, int64_t now_ms, uint64_t random,
                      struct event_list *events, struct due_count *count)
{
    struct exec e;
    struct due d = { .site = site,
                     .e = &e,
                     .spec = b->spec,
                     .now_ms = now_ms,
                     .next_ms = TIME_NONE,
                     .random = random,
                     .holder_dead = true,
                     .events = events,
                     .count = count };
    belay_rc rc = b->row ? exec_of(t, b->row, &e) : BELAY_OK;

    if (rc || !b->row || !is_still(&e, b->lease_id))
        return rc;
    return see_to(t, &d);
}

/* --- when the next time is --- */

belay_rc exec_next_due(struct txn *t, int64_t now_ms, int64_t *out_ms)
{
    const struct bytes indexes[] = { bytes_str(DELAYED_INDEX), bytes_str(LEASED_INDEX),
                                     bytes_str(GRANTED_INDEX),
                                     bytes_str(DEADLINE_INDEX) };
    const struct scan scan = { .indexes = indexes,
                               .n_indexes = COUNT_OF(indexes),
                               .min_rank = time_add_ms(now_ms, 1),
                               .max_rank = RANK_MAX,
                               .limit = 1 };
    struct hits hits;
    belay_rc rc = txn_scan(t, &scan, &hits);

    if (rc)
        return rc;
    *out_ms = hits.n > 0 ? hits.hit[0].rank : TIME_NONE;
    return BELAY_OK;
}

belay_rc exec_rest(struct space *sp, struct listener *l, int64_t next_ms,
                   int64_t deadline_us, struct belay_error *err)
{
    const struct belay_clock *clock = store_clock_hook(space_store(sp));
    int64_t now_us = clock->mono_us(clock->arg), now_ms = 0;
    int64_t until_us = now_us + EXEC_RELOOK_MS * 1000;

    if (next_ms != TIME_NONE && space_now(sp, &now_ms, NULL) == BELAY_OK) {
        int64_t wait_ms = next_ms > now_ms ? next_ms - now_ms : 0;
        if (wait_ms < EXEC_RELOOK_MS)
            until_us = now_us + wait_ms * 1000;
    }
    belay_rc rc =
        listener_wait(l, until_us < deadline_us ? until_us : deadline_us, err);
    return rc == BELAY_TIMEOUT ? BELAY_OK : rc;
}
