/* What happens by itself: retries, timeouts, deadlines, lost leases, retention.  Where a
 * store has a clock of its own, the times are short; where it has not, they are any. */
#include "exec.h"

/* --- retries --- */

/* The delay that a first failure leads to, in milliseconds; -1: it is terminal. */
static int64_t delay_after(struct world *w, const struct belay_retry_policy *policy,
                           struct belay_failure f, int64_t *out_next)
{
    const char *id = submit(w, (struct belay_submission){ .retry = policy });
    const struct belay_work *held = work_on(w, "l");
    struct belay_ended end = { 0 };

    if (!OK(w, id && held))
        return -2;
    f.size = sizeof(f);
    f.handle = &held->handle;
    f.message = "no";
    RC(w, belay_execution_fail(w->use, &f, 1, w->arena, &end, &w->err), BELAY_OK);
    EQ(w, end.code, BELAY_OK);
    struct belay_execution e = look(w, id);
    if (out_next)
        *out_next = e.delay_until_ms;
    if (end.outcome == BELAY_TERMINAL_FAILURE) {
        EQ(w, e.state, BELAY_STATE_FAILED);
        EQ(w, completions_of(w, id), 1);
        return -1;
    }
    EQ(w, e.state, BELAY_STATE_DELAYED);
    EQ(w, end.delay_until_ms, e.delay_until_ms);
    RC(w, belay_execution_cancel(w->use, id, NULL, NULL, &w->err), BELAY_OK);
    return e.delay_until_ms - e.updated_at_ms;
}

static void classes_decide(struct world *w)
{
    static const struct {
        int as;
        bool again;
    } rows[] = {
        { BELAY_FAILURE_TRANSIENT, true },   { BELAY_FAILURE_PERMANENT, false },
        { BELAY_FAILURE_INFRA_CRASH, true }, { BELAY_FAILURE_TIMEOUT, true },
        { BELAY_FAILURE_CANCELLED, false },
    };
    struct belay_retry_policy policy = retry_fixed(3, HOUR);

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct belay_failure f = { .failure_class = rows[i].as };
        if (!EQ(w, delay_after(w, &policy, f, NULL), rows[i].again ? HOUR : -1))
            printf("# in row %zu\n", i);
        EQ(w, delay_after(w, NULL, f, NULL), -1); /* without a policy, never */
    }
    const struct belay_work *held =
        submit(w, (struct belay_submission){ 0 }) ? work_on(w, "l") : NULL;
    if (OK(w, held != NULL))
        WHY(w, fail(w, &held->handle, BELAY_FAILURE_UNSET, NULL), BELAY_INVALID, NULL);
}

static void lists_narrow_it(struct world *w)
{
    static const char *const list[] = { "timeout", "rate_limit" };
    struct belay_retry_policy policy = retry_fixed(3, HOUR);
    policy.retryable = list;
    policy.n_retryable = 2;
    static const struct {
        struct belay_failure f;
        bool again;
    } rows[] = {
        { { .failure_class = BELAY_FAILURE_TIMEOUT }, true },
        { { .failure_class = BELAY_FAILURE_TRANSIENT }, false },
        { { .failure_class = BELAY_FAILURE_TRANSIENT,
            .detail = "rate_limit",
            .detail_len = 10 },
          true },
        { { .failure_class = BELAY_FAILURE_TRANSIENT,
            .detail = "rate_limits",
            .detail_len = 11 },
          false },
        { { .failure_class = BELAY_FAILURE_PERMANENT,
            .detail = "rate_limit",
            .detail_len = 10 },
          false },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!EQ(w, delay_after(w, &policy, rows[i].f, NULL), rows[i].again ? HOUR : -1))
            printf("# in row %zu\n", i);
    }
}

/* Without jitter the delay is known; with it, it is somewhere in its upper half. */
static void backoff_grows(struct world *w)
{
    struct belay_retry_policy policy = { .size = sizeof(policy),
                                         .max_retries = 3,
                                         .delay_ms = 20,
                                         .max_delay_ms = 70,
                                         .multiplier = 3,
                                         .no_jitter = true };
    static const int64_t want[] = { 20, 60, 70 };

    for (int jitter = 0; jitter < 2; jitter++) {
        policy.no_jitter = !jitter;
        const char *id = submit(w, (struct belay_submission){ .retry = &policy });
        for (size_t i = 0; i < COUNT_OF(want); i++) {
            const struct belay_work *held = work_on(w, "l");
            if (!OK(w, held != NULL))
                return;
            RC(w, fail(w, &held->handle, BELAY_FAILURE_TRANSIENT, NULL), BELAY_OK);
            struct belay_execution e = look(w, id);
            int64_t delay = e.delay_until_ms - e.updated_at_ms;
            OK(w, delay <= want[i] && delay >= (jitter ? want[i] / 2 : want[i]));
            world_pass(w, want[i] + 1);
        }
        const struct belay_work *last = work_on(w, "l");
        if (OK(w, last != NULL))
            RC(w, fail(w, &last->handle, BELAY_FAILURE_TRANSIENT, NULL), BELAY_OK);
        EQ(w, state_of(w, id), BELAY_STATE_FAILED);
    }
}

/* --- timeouts and deadlines --- */

static void attempts_time_out(struct world *w)
{
    struct belay_retry_policy policy = retry_fixed(1, 1);
    const char *once = submit(
        w, (struct belay_submission){ .lane = "once", .attempt_timeout_ms = SHORT_MS });
    const char *twice = submit(
        w, (struct belay_submission){
               .lane = "twice", .attempt_timeout_ms = SHORT_MS, .retry = &policy });
    const struct belay_work *a = work_on(w, "once"), *b = work_on(w, "twice");

    if (!OK(w, a && b))
        return;
    EQ(w, a->timeout_at_ms, look(w, once).timeout_at_ms);
    RC(w, belay_execution_renew(w->use, &a->handle, HOUR, NULL, &w->err), BELAY_OK);
    world_pass(w, SHORT_MS + 5);
    EQ(w, timers(w).timed_out, 2); /* a lease is no reason to go on */
    EQ(w, state_of(w, once), BELAY_STATE_FAILED);
    EQ(w, look(w, once).failure_class, BELAY_FAILURE_TIMEOUT);
    EQ(w, look(w, once).timeout_at_ms, BELAY_TIME_NONE);
    EQ(w, look(w, twice).timeout_at_ms, BELAY_TIME_NONE);
    WHY(w, complete(w, &a->handle, NULL, NULL), BELAY_LEASE_LOST, "terminal");
    EQ(w, look(w, twice).retries, 1);
    WHY(w, complete(w, &b->handle, NULL, NULL), BELAY_LEASE_LOST, NULL);
    world_pass(w, 5);
    const struct belay_work *again = work_on(w, "twice");
    if (OK(w, again != NULL)) {
        EQ(w, again->attempt_type, BELAY_ATTEMPT_RETRY);
        OK(w, again->timeout_at_ms > b->timeout_at_ms); /* each has its own */
        RC(w, complete(w, &again->handle, NULL, NULL), BELAY_OK);
    }
    EQ(w, completions_of(w, once), 1);
    EQ(w, completions_of(w, twice), 1);
}

static void deadlines_end_it(struct world *w)
{
    static const char *const lanes[] = { "waiting", "delayed", "active", "replayed" };
    const char *ids[COUNT_OF(lanes)];
    const struct belay_work *held = NULL;

    for (size_t i = 0; i < COUNT_OF(lanes); i++) {
        ids[i] = submit(w, (struct belay_submission){ .lane = lanes[i],
                                                      .deadline_ms = 4 * SHORT_MS,
                                                      .delay_ms = i == 1 ? HOUR : 0 });
        if (i == 2)
            held = work_on(w, lanes[i]);
    }
    RC(w, belay_execution_cancel(w->use, ids[3], NULL, NULL, &w->err), BELAY_OK);
    world_pass(w, 4 * SHORT_MS + 5);
    OK(w, !work_on(w, "waiting")); /* a claim sees to it by itself */
    (void)timers(w);
    for (size_t i = 0; i < 3; i++) {
        EQ(w, state_of(w, ids[i]), BELAY_STATE_EXPIRED);
        EQ(w, completions_of(w, ids[i]), 1);
        STR(w, strstr(events_of(w, ids[i]), "completion:"), "completion:expired");
    }
    EQ(w, state_of(w, ids[3]), BELAY_STATE_CANCELLED); /* it had ended before */
    if (OK(w, held != NULL))
        WHY(w, complete(w, &held->handle, NULL, NULL), BELAY_LEASE_LOST, "terminal");
    RC(w, belay_execution_replay(w->use, ids[0], NULL, &w->err), BELAY_OK);
    struct belay_execution e = look(w, ids[0]);
    OK(w, e.deadline_at_ms > e.created_at_ms + 8 * SHORT_MS); /* counts from now */
    OK(w, work_on(w, "waiting") != NULL);
}

/* --- lost leases --- */

static void losing_too_often_ends_it(struct world *w)
{
    if (!quick(w))
        return;
    const char *id = submit(w, (struct belay_submission){ .max_reclaims = 1 });
    const char *never =
        submit(w, (struct belay_submission){ .lane = "never", .max_reclaims = -1 });

    for (int i = 0; i < 2; i++) {
        OK(w, work_late(w, "l") != NULL);
        if (i == 0)
            OK(w, work_late(w, "never") != NULL);
        world_pass(w, PAST_GRACE_MS);
        EQ(w, timers(w).capped, 1);
        if (i == 0)
            EQ(w, state_of(w, id), BELAY_STATE_ACTIVE);
    }
    for (int i = 0; i < 2; i++) {
        const char *it = i ? never : id;
        STR(w, vector_of(w, it),
            "terminal/unowned/not_applicable/none/failed/attempt_terminal/failed");
        EQ(w, completions_of(w, it), 1);
        EQ(w, look(w, it).attempts, i ? 1 : 2);
    }
    EQ(w, look(w, id).reclaims, 1);
    OK(w, !work_on(w, "l"));
    EQ(w, timers(w).capped, 0);
    EQ(w, completions_of(w, id), 1);
}

/* L7: what was due when somebody looked, and was renewed since, is not taken. */
static void renewed_in_time(struct world *w)
{
    if (!quick(w))
        return;
    const char *id = submit(w, (struct belay_submission){ 0 });
    const struct belay_work *held = work_late(w, "l");

    if (!OK(w, held != NULL))
        return;
    world_pass(w, PAST_GRACE_MS);
    RC(w, belay_execution_renew(w->b, &held->handle, MINUTE, NULL, &w->err), BELAY_OK);
    EQ(w, timers(w).expired_leases, 0);
    OK(w, !work_on(w, "l"));
    EQ(w, look(w, id).fence, 1);
    RC(w, complete(w, &held->handle, NULL, NULL), BELAY_OK);
}

/* --- retention --- */

static void what_ended_goes_in_the_end(struct world *w)
{
    struct belay_tag tag = { "k", "v" };
    char *big = bytes_of(w, 'x', 20000);
    const char *id = submit(w, (struct belay_submission){ .retention_ms = SHORT_MS,
                                                          .payload = big,
                                                          .payload_len = 20000,
                                                          .tags = &tag,
                                                          .n_tags = 1 });
    const char *stays = submit(w, (struct belay_submission){ .lane = "m" });
    const struct belay_work *held = work_on(w, "l");

    if (!OK(w, id && stays && held))
        return;
    RC(w, frame(w, &held->handle, "out"), BELAY_OK);
    RC(w, complete(w, &held->handle, "done", NULL), BELAY_OK);
    EQ(w, timers(w).purged, 0);
    world_pass(w, SHORT_MS + 5);
    EQ(w, timers(w).purged, 1);
    struct belay_execution gone = { 0 };
    RC(w, belay_execution_describe(w->use, id, w->arena, &gone, &w->err),
       BELAY_NOT_FOUND);
    RC(w, complete(w, &held->handle, NULL, NULL), BELAY_NOT_FOUND);
    struct belay_execution_filter f = { .size = sizeof(f),
                                        .tag_key = "k",
                                        .tag_value = "v" };
    struct belay_executions all = { 0 };
    RC(w, belay_execution_list(w->use, &f, w->arena, &all, &w->err), BELAY_OK);
    EQ(w, all.n, 0);
    EQ(w, state_of(w, stays), BELAY_STATE_WAITING);
    collect(w);
    EQ(w, w->gc.retained_blobs, 0); /* and its payload */
}

/* --- filters and two who run timers --- */

static void timers_take_the_filter(struct world *w)
{
    struct belay_tag tag = { "team", "a" };
    const char *mine = submit(
        w, (struct belay_submission){ .delay_ms = 1, .tags = &tag, .n_tags = 1 });
    const char *other = submit(w, (struct belay_submission){ .delay_ms = 1 });
    struct belay_scanner_filter f = { .size = sizeof(f), .ns = "elsewhere" };
    struct belay_timer_report r = { 0 };

    world_pass(w, 5);
    RC(w, belay_timers_step(w->use, &f, &r, &w->err), BELAY_OK);
    EQ(w, r.promoted, 0);
    f = (struct belay_scanner_filter){ .size = sizeof(f),
                                       .tag_key = "team",
                                       .tag_value = "a" };
    RC(w, belay_timers_step(w->use, &f, &r, &w->err), BELAY_OK);
    EQ(w, r.promoted, 1);
    EQ(w, state_of(w, mine), BELAY_STATE_WAITING);
    EQ(w, state_of(w, other), BELAY_STATE_DELAYED);
    EQ(w, timers(w).promoted, 1);
    EQ(w, state_of(w, other), BELAY_STATE_WAITING);
}

static void next_due_is_known(struct world *w)
{
    EQ(w, timers(w).next_due_at_ms, BELAY_TIME_NONE);
    const char *id = submit(w, (struct belay_submission){ .delay_ms = HOUR });
    EQ(w, timers(w).next_due_at_ms, look(w, id).delay_until_ms);
}

static const struct noun_case cases[] = {
    { "the class of a failure decides whether it is tried again", classes_decide, 0 },
    { "a list of classes and categories narrows what is tried again", lists_narrow_it,
      0 },
    { "exponential backoff grows to its limit, with jitter or without", backoff_grows,
      0 },
    { "an attempt that takes too long fails as timeout", attempts_time_out, 0 },
    { "a deadline ends it wherever it is", deadlines_end_it, 0 },
    { "a lease lost too often ends it once", losing_too_often_ends_it, 0 },
    { "L7: a lease that was renewed in time is not lost", renewed_in_time, 0 },
    { "what has ended goes when its retention is over, with all it had",
      what_ended_goes_in_the_end, 0 },
    { "timers see to what their filter lets through", timers_take_the_filter, 0 },
    { "when something is due next is known", next_due_is_known, 0 },
};

const struct topic topic_exec_timers = { cases, COUNT_OF(cases) };
