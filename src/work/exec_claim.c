/* Claims: what is due is seen to, then the first of all routes that fit are granted. */
#include "work/exec_claim.h"

#include "work/epoch.h"

/* What is due is handled along the way, a little at a time. */
#define DUE_PAGE 64

/* Where a round trip is a large part of a claim, candidates for the next ones are read along. */
#define SMALL_CLAIM 8
#define READY_AHEAD 32

/* --- in the body --- */

void claim_scans(struct claiming *c, int64_t now_ms, struct scan out[CLAIM_SCANS])
{
    bool small = c->max <= SMALL_CLAIM;

    c->now_ms = now_ms;
    c->fetch[CLAIM_ROW] = (struct fetch){ .type = &row_execution };
    c->fetch[CLAIM_SPEC] = (struct fetch){ .type = &row_execution_spec };
    c->due_indexes[0] = bytes_str(DELAYED_INDEX);
    c->due_indexes[1] = bytes_str(GRANTED_INDEX);
    c->due_indexes[2] = bytes_str(LEASED_INDEX);
    out[CLAIM_DUE] = (struct scan){ .indexes = c->due_indexes,
                                    .n_indexes = COUNT_OF(c->due_indexes),
                                    .max_rank = now_ms,
                                    .limit = 1,
                                    .again = small,
                                    .ahead = 1 };
    out[CLAIM_ROSTERS] = (struct scan){ .indexes = c->view.rosters,
                                        .n_indexes = c->view.n_rosters,
                                        .min_rank = -RANK_MAX,
                                        .max_rank = RANK_MAX,
                                        .limit = ROUTES_MAX,
                                        .again = small };
    out[CLAIM_READY] = (struct scan){ .indexes = c->view.ready,
                                      .n_indexes = c->view.n_ready,
                                      .min_rank = -RANK_MAX,
                                      .max_rank = RANK_MAX,
                                      .limit = c->max,
                                      .pick = true,
                                      .near = EXEC_ORDER_STEP / 2,
                                      .fetch = c->fetch,
                                      .n_fetch = COUNT_OF(c->fetch),
                                      .hints = CLAIM_HINTS,
                                      .again = small,
                                      .ahead = READY_AHEAD };
}

/* Nothing was written yet, so what cannot be read can be left where it is. */
static bool is_readable(struct txn *t, const struct hit *hit)
{
    struct exec_policy policy;
    struct exec e;

    return hit->rows[0] && hit->rows[1] && exec_of(t, hit->rows[0], &e) == BELAY_OK &&
           exec_policy_read(t, hit->rows[1], &policy) == BELAY_OK;
}

/* What is due, with its rows as this body has left them: what is completed along with the
 * claim is due no more.  Most often nothing is: a claim asks no more than that. */
static belay_rc load_due(struct txn *t, struct claiming *c, struct hits *io)
{
    struct scan scans[CLAIM_SCANS];

    if (io->n == 0)
        return BELAY_OK;
    claim_scans(c, c->now_ms, scans);
    scans[CLAIM_DUE].limit = DUE_PAGE;
    scans[CLAIM_DUE].fetch = c->fetch;
    scans[CLAIM_DUE].n_fetch = COUNT_OF(c->fetch);
    scans[CLAIM_DUE].hints = CLAIM_HINTS;
    return txn_scan(t, &scans[CLAIM_DUE], io);
}

/* L7: decided from the rows as they are guarded, not from where they stand. */
static belay_rc see_to_due(struct txn *t, struct claiming *c, struct hits *due,
                           struct event_list *events)
{
    struct due_count count = { .promoted = 0 };
    size_t seen = 0;
    belay_rc rc = load_due(t, c, due);

    for (size_t i = 0; i < due->n && rc == BELAY_OK; i++) {
        const struct hit *hit = &due->hit[i];
        /* `check` tells of what cannot be read; the others do not wait for it. */
        if (!is_readable(t, hit))
            continue;
        seen++;
        rc = exec_due(t, c->site, hit->rows[0], hit->rows[1], c->now_ms, c->random + i,
                      events, &count);
    }
    c->moved = seen > 0;
    c->more = seen > 0 && due->n == DUE_PAGE;
    return rc;
}

/* A deadline that has passed ends it here and now, whoever runs timers. */
static bool is_too_late(const struct row *row, int64_t now_ms)
{
    return row_i64(row, EXEC_DEADLINE_AT_MS, INT64_MAX) <= now_ms;
}

static belay_rc take_candidates(struct txn *t, struct claiming *c,
                                const struct hits *ready, struct event_list *events,
                                claim_taker *take, size_t *io_taken)
{
    struct due_count count = { .promoted = 0 };
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < ready->n && *io_taken < c->max && rc == BELAY_OK; i++) {
        const struct hit *hit = &ready->hit[i];
        bool taken = false;
        if (!is_readable(t, hit)) {
            c->skipped++;
        } else if (is_too_late(hit->rows[0], c->now_ms)) {
            /* One that this body has ended is shown again where somebody else has put it
             * since: nothing moves then, and the commit will conflict. */
            int64_t expired = count.expired;
            rc = exec_due(t, c->site, hit->rows[0], hit->rows[1], c->now_ms, c->random,
                          events, &count);
            c->moved = c->moved || count.expired > expired;
        } else {
            rc = take(t, c, hit->rows[0], hit->rows[1], events, &taken);
            *io_taken += taken;
        }
    }
    return rc;
}

belay_rc claim_each(struct txn *t, struct claiming *c, struct hits hits[CLAIM_SCANS],
                    struct event_list *events, claim_taker *take)
{
    size_t taken = 0;
    belay_rc rc;

    c->moved = c->more = false;
    c->skipped = 0;
    c->stale = !lane_view_holds(&c->view, &hits[CLAIM_ROSTERS]);
    if (c->stale) /* nothing is decided by a view that is too short */
        return BELAY_OK;
    rc = epoch_in(t, &c->epoch);
    if (rc == BELAY_OK && !c->leave_due)
        rc = see_to_due(t, c, &hits[CLAIM_DUE], events);
    if (rc == BELAY_OK && !c->moved)
        rc = take_candidates(t, c, &hits[CLAIM_READY], events, take, &taken);
    /* What was seen to may stand before what was picked, or take its place; behind what
     * cannot be read there is more. */
    size_t skipped = c->skipped;
    while (rc == BELAY_OK && (c->moved || skipped > 0) && taken < c->max) {
        struct scan scans[CLAIM_SCANS];
        struct hits again;
        size_t before = taken, passed = c->skipped;
        claim_scans(c, c->now_ms, scans);
        scans[CLAIM_READY].limit = c->max - taken + passed;
        c->moved = false;
        c->skipped = 0;
        rc = txn_pick(t, &scans[CLAIM_READY], &again);
        if (rc == BELAY_OK)
            rc = take_candidates(t, c, &again, events, take, &taken);
        skipped = c->skipped > passed ? c->skipped : 0;
        if (taken == before && !c->moved && skipped == 0)
            break;
    }
    return rc;
}

static belay_rc tell_granted(struct event_list *events, const struct exec *e, int type,
                             int64_t now_ms)
{
    struct event_facts f = { .type = (enum belay_event_type)type,
                             .at_ms = now_ms,
                             .fence = exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0),
                             .worker = exec_bytes(e, EXEC_LEASE + LEASE_OWNER) };

    return event_add(events, e, &f);
}

static belay_rc grant(struct txn *t, struct claiming *c, const struct row *row,
                      const struct row *spec, struct event_list *events,
                      bool *out_taken)
{
    struct exec_granting g = { .site = c->site,
                               .holder = c->holder,
                               .now_ms = c->now_ms,
                               .epoch = c->epoch,
                               .lease_ms = c->lease_ms,
                               .spec = spec,
                               .ticket = &c->tickets[c->n] };
    struct exec e;
    int type = 0;
    belay_rc rc = exec_of(t, row, &e);

    if (rc == BELAY_OK)
        rc = exec_grant_lease(t, &e, &g, &type);
    if (rc == BELAY_OK)
        rc = exec_work_of(t, &e, &g, &c->work[c->n], &c->blobs[c->n]);
    if (rc == BELAY_OK)
        rc = exec_write(t, &e, c->now_ms);
    if (rc == BELAY_OK)
        rc = tell_granted(events, &e, type, c->now_ms);
    if (rc)
        return rc;
    c->n++;
    *out_taken = true;
    return BELAY_OK;
}

belay_rc claim_take(struct txn *t, struct claiming *c, struct hits hits[CLAIM_SCANS],
                    struct event_list *events)
{
    c->n = 0;
    c->next_at_ms = TIME_NONE;
    c->work = arena_zalloc(txn_arena(t), c->max, sizeof(*c->work));
    c->blobs = arena_zalloc(txn_arena(t), c->max, sizeof(*c->blobs));
    if (!c->work || !c->blobs)
        return err_no_memory(txn_error(t), "a claim");
    belay_rc rc = claim_each(t, c, hits, events, grant);
    if (rc == BELAY_OK && c->n == 0 && !c->stale && !c->moved)
        rc = exec_next_due(t, c->now_ms, &c->next_at_ms);
    return rc;
}

static belay_rc claim_body(struct txn *t, void *arg)
{
    struct claiming *c = arg;
    CLEANUP(event_list_release) struct event_list events;
    const struct row_want epoch = { &row_epoch, NULL };
    const struct row *row;
    struct scan scans[CLAIM_SCANS];
    struct hits hits[CLAIM_SCANS];
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);

    event_list_init(&events, t);
    claim_scans(c, now_ms, scans);
    if (rc == BELAY_OK)
        rc = txn_load(t, &epoch, 1, &row, scans, CLAIM_SCANS, hits);
    if (rc == BELAY_OK)
        rc = claim_take(t, c, hits, &events);
    return rc ? rc : event_flush(&events);
}

/* --- looking, and waiting --- */

bool claim_leaves_due(struct claiming *c, belay_rc rc)
{
    bool first = rc == BELAY_CORRUPT && !c->leave_due;

    c->leave_due = c->leave_due || first;
    return first;
}

/* Until something is claimed, or there is nothing to do. */
static belay_rc look(struct claiming *c, struct belay_arena *a, struct belay_error *err)
{
    const struct txn_options options = { .cancel = c->policy->cancel };
    bool corrupt;
    belay_rc rc;

    c->leave_due = false;
    do {
        rc = txn_run(c->site->space, claim_body, c, &options, a, err);
        corrupt = claim_leaves_due(c, rc);
        if (corrupt) {
            rc = BELAY_OK;
        } else if (rc == BELAY_OK && c->stale) {
            rc = claim_view(c, true, a, err);
        }
    } while (rc == BELAY_OK && (corrupt || c->stale || (c->n == 0 && c->more)));
    return rc;
}

/* Before it is said that nothing is there: what the dead hold is.  Who waits on is woken when
 * they are found. */
static belay_rc look_twice(struct claiming *c, struct belay_arena *a,
                           struct belay_error *err)
{
    struct host *host = c->site->host;
    uint64_t mark = host_mark(host);
    bool again = false;
    belay_rc rc = look(c, a, err);

    if (rc || c->n > 0 || !host)
        return rc;
    /* Nothing is leased where nothing is due later: nobody joins for that.  Who has joined
     * asks, since what was leased may have been lost while it was looked for. */
    if (c->next_at_ms == TIME_NONE &&
        !atomic_load_explicit(&host->is_joined, memory_order_acquire))
        return rc;
    rc = host_settle(host, mark, &again, err);
    return rc || !again ? rc : look(c, a, err);
}

static belay_rc claim_waiting(struct claiming *c, struct belay_arena *a,
                              struct belay_error *err)
{
    const struct belay_clock *clock = store_clock_hook(space_store(c->site->space));
    int64_t deadline_us = clock->mono_us(clock->arg) + c->policy->max_wait_ms * 1000;
    struct bytes topics[LANES_PER_CLAIM];
    struct listener *l = NULL;

    (void)host_join(c->site->host); /* H3: somebody has to hear of deaths */
    for (size_t i = 0; i < c->policy->n_lanes; i++) {
        if (!lane_topic(c->lanes[i], a, &topics[i]))
            return err_no_memory(err, "a claim");
    }
    belay_rc rc = space_listen(c->site->space, topics, c->policy->n_lanes,
                               c->policy->cancel, a, &l, err);
    struct arena_mark mark = arena_mark(a);
    while (rc == BELAY_OK) {
        /* Taken before the look: one look is always made after the deadline. */
        bool last = clock->mono_us(clock->arg) >= deadline_us;
        rc = last ? look_twice(c, a, err) : look(c, a, err);
        if (rc || c->n > 0 || last)
            break;
        rc = exec_rest(c->site->space, l, c->next_at_ms, deadline_us, err);
        arena_rewind(a, mark); /* with the view, if that was renewed */
        if (rc == BELAY_OK)
            rc = claim_view(c, false, a, err);
    }
    listener_close(l);
    return rc;
}

belay_rc exec_claim(const struct exec_site *site,
                    const struct belay_claim_policy *policy, struct belay_arena *a,
                    struct belay_works *out, struct belay_error *err)
{
    struct claiming c;
    belay_rc rc = claim_prepare(&c, site, policy, a, err);

    if (rc == BELAY_OK)
        rc = policy->max_wait_ms > 0 ? claim_waiting(&c, a, err)
                                     : look_twice(&c, a, err);
    if (rc == BELAY_OK)
        rc = claim_payloads(&c, a, err);
    if (rc == BELAY_OK)
        *out = (struct belay_works){ .work = c.work,
                                     .n = c.n,
                                     .next_at_ms = c.next_at_ms };
    return rc;
}
