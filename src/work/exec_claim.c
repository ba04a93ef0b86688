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

/* A page of what is due, with its rows as this body has left them: what is completed along
 * with the claim is due no more. */
static belay_rc load_due(struct txn *t, const struct claiming *c,
                         const struct bytes *indexes, size_t n_indexes,
                         struct hits *out)
{
    const struct scan scan = { .indexes = indexes,
                               .n_indexes = n_indexes,
                               .max_rank = c->now_ms,
                               .limit = DUE_PAGE,
                               .fetch = c->fetch,
                               .n_fetch = COUNT_OF(c->fetch),
                               .hints = CLAIM_HINTS };

    return txn_scan(t, &scan, out);
}

/* L7: decided from the rows as they are guarded, not from where they stand. */
static belay_rc see_to(struct txn *t, struct claiming *c, const struct hits *due,
                       struct event_list *events, bool *out_moved)
{
    struct due_count count = { .promoted = 0 };
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < due->n && rc == BELAY_OK; i++) {
        const struct hit *hit = &due->hit[i];
        /* `check` tells of what cannot be read; the others do not wait for it. */
        if (!is_readable(t, hit))
            continue;
        rc = exec_due(t, c->site, hit->rows[0], hit->rows[1], c->now_ms,
                      rng_next(&c->chance), events, &count);
    }
    *out_moved = due_moved(&count) > 0;
    c->more = c->more || (*out_moved && due->n == DUE_PAGE);
    return rc;
}

/* Most often nothing is: a claim asks no more than that. */
static belay_rc see_to_due(struct txn *t, struct claiming *c, const struct hits *found,
                           struct event_list *events, bool *out_moved)
{
    struct hits due;

    if (found->n == 0)
        return BELAY_OK;
    belay_rc rc = load_due(t, c, c->due_indexes, COUNT_OF(c->due_indexes), &due);
    return rc ? rc : see_to(t, c, &due, events, out_moved);
}

/* Where one deadline has passed others may have, too.  They are looked for where they stand
 * by their deadlines, and not picked one after the other: a pick would hide what is behind
 * them from other workers. */
static belay_rc see_to_overdue(struct txn *t, struct claiming *c,
                               struct event_list *events)
{
    const struct bytes index = bytes_str(DEADLINE_INDEX);
    struct hits due;
    bool moved = false;
    belay_rc rc = load_due(t, c, &index, 1, &due);

    c->overdue = true;
    return rc ? rc : see_to(t, c, &due, events, &moved);
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

    c->skipped = c->late = 0;
    for (size_t i = 0; i < ready->n && *io_taken < c->max && rc == BELAY_OK; i++) {
        const struct hit *hit = &ready->hit[i];
        bool readable = is_readable(t, hit), taken = false;
        bool late = readable && is_too_late(hit->rows[0], c->now_ms);
        if (!readable || (late && c->leave_due)) {
            c->skipped++;
        } else if (late) {
            /* One that this body has ended is shown again where somebody else has put it
             * since: nothing moves then, and the commit will conflict. */
            rc = exec_due(t, c->site, hit->rows[0], hit->rows[1], c->now_ms,
                          rng_next(&c->chance), events, &count);
        } else {
            rc = take(t, c, hit->rows[0], hit->rows[1], events, &taken);
            *io_taken += taken;
        }
    }
    c->late = (size_t)count.expired;
    return rc;
}

/* Once more: what was seen to may stand before what was picked, or take its place; behind what
 * cannot be read, or was too late, there is more.  *out_again: whether there may be yet more. */
static belay_rc take_again(struct txn *t, struct claiming *c, struct event_list *events,
                           claim_taker *take, size_t *io_taken, bool *out_again)
{
    struct scan scans[CLAIM_SCANS];
    struct hits ready;
    size_t passed = c->skipped;
    belay_rc rc = BELAY_OK;

    *out_again = false;
    if (c->late > 0) {
        /* Those that came in between are for the next transaction. */
        c->more = c->more || c->overdue;
        if (!c->overdue)
            rc = see_to_overdue(t, c, events);
        if (rc || c->more)
            return rc;
    }
    claim_scans(c, c->now_ms, scans);
    /* Twice as many, so that it does not take a round for each. */
    scans[CLAIM_READY].limit = c->max - *io_taken + 2 * passed;
    rc = txn_pick(t, &scans[CLAIM_READY], &ready);
    if (rc == BELAY_OK)
        rc = take_candidates(t, c, &ready, events, take, io_taken);
    *out_again = c->late > 0 || c->skipped > passed;
    return rc;
}

belay_rc claim_each(struct txn *t, struct claiming *c, struct hits hits[CLAIM_SCANS],
                    struct event_list *events, claim_taker *take)
{
    size_t taken = 0;
    bool again = false;
    belay_rc rc;

    c->more = c->overdue = false;
    c->skipped = c->late = 0;
    c->stale = !lane_view_holds(&c->view, &hits[CLAIM_ROSTERS]);
    if (c->stale) /* nothing is decided by a view that is too short */
        return BELAY_OK;
    rc = epoch_in(t, &c->epoch);
    if (rc == BELAY_OK && !c->leave_due)
        rc = see_to_due(t, c, &hits[CLAIM_DUE], events, &again);
    if (rc == BELAY_OK && !again) {
        rc = take_candidates(t, c, &hits[CLAIM_READY], events, take, &taken);
        again = c->late > 0 || c->skipped > 0;
    }
    while (rc == BELAY_OK && again && taken < c->max)
        rc = take_again(t, c, events, take, &taken, &again);
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
    if (rc || c->n > 0 || c->stale)
        return rc;
    if (c->more) { /* who gives up here is told to ask again at once */
        c->next_at_ms = c->now_ms;
        return BELAY_OK;
    }
    return exec_next_due(t, c->now_ms, &c->next_at_ms);
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

belay_rc claim_look(struct claiming *c, txn_body *body, struct belay_arena *a,
                    struct belay_error *err)
{
    const struct belay_clock *clock = store_clock_hook(space_store(c->site->space));
    int64_t until_us = clock->mono_us(clock->arg) + CLAIM_LOOK_MS * 1000;
    const struct txn_options options = { .cancel = c->policy->cancel };
    struct arena_mark mark = arena_mark(a);

    c->leave_due = false;
    for (;;) {
        belay_rc rc = txn_run(c->site->space, body, c, &options, a, err);
        bool corrupt = claim_leaves_due(c, rc);
        bool stale = rc == BELAY_OK && c->stale;
        bool more = rc == BELAY_OK && c->n == 0 && c->more &&
                    clock->mono_us(clock->arg) < until_us;
        if (!corrupt && !stale && !more)
            return rc;
        arena_rewind(a, mark);
        if (stale) {
            rc = claim_view(c, true, a, err);
            if (rc)
                return rc;
            mark = arena_mark(a); /* the view is for the runs to come */
        }
    }
}

static belay_rc look(struct claiming *c, struct belay_arena *a, struct belay_error *err)
{
    return claim_look(c, claim_body, a, err);
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

static belay_rc claim_waiting(struct claiming *c, int64_t deadline_us,
                              struct belay_arena *a, struct belay_error *err)
{
    const struct belay_clock *clock = store_clock_hook(space_store(c->site->space));
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
    const struct belay_clock *clock = store_clock_hook(space_store(site->space));
    int64_t begun_us = clock->mono_us(clock->arg);
    struct arena_mark mark = arena_mark(a);
    struct claiming c;
    size_t failed;
    belay_rc rc;

    do { /* what nobody can do has failed: then there may be other work */
        failed = 0;
        arena_rewind(a, mark);
        rc = claim_prepare(&c, site, policy, a, err);
        if (rc == BELAY_OK)
            rc = policy->max_wait_ms > 0
                     ? claim_waiting(&c, begun_us + policy->max_wait_ms * 1000, a, err)
                     : look_twice(&c, a, err);
        if (rc == BELAY_OK)
            rc = claim_payloads(&c, a, &failed, err);
    } while (rc == BELAY_OK && c.n == 0 && failed > 0);
    if (rc == BELAY_OK)
        *out = (struct belay_works){ .work = c.work,
                                     .n = c.n,
                                     .next_at_ms = c.next_at_ms };
    return rc;
}
