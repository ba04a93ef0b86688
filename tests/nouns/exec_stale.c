/* L4 for executions: whatever somebody does who held the work and holds it no more, it is
 * lease_lost and nothing changes; what was done is not done twice. */
#include "exec.h"

/* --- every operation of a holder --- */

static belay_rc by_renewing(struct world *w, const struct belay_handle *h)
{
    return belay_execution_renew(w->use, h, HOUR, NULL, &w->err);
}

static belay_rc by_progress(struct world *w, const struct belay_handle *h)
{
    return belay_execution_progress(w->use, h, 99, "stale", &w->err);
}

static belay_rc by_frame(struct world *w, const struct belay_handle *h)
{
    return frame(w, h, "stale");
}

static belay_rc by_completing(struct world *w, const struct belay_handle *h)
{
    return complete(w, h, "stale", NULL);
}

static belay_rc by_failing(struct world *w, const struct belay_handle *h)
{
    return fail(w, h, BELAY_FAILURE_TRANSIENT, NULL);
}

static belay_rc by_failing_for_good(struct world *w, const struct belay_handle *h)
{
    return fail(w, h, BELAY_FAILURE_PERMANENT, NULL);
}

static belay_rc by_delaying(struct world *w, const struct belay_handle *h)
{
    return belay_execution_delay(w->use, h, WORLD_START_MS * 2, &w->err);
}

static belay_rc by_releasing(struct world *w, const struct belay_handle *h)
{
    return belay_execution_release(w->use, h, &w->err);
}

static belay_rc by_aborting(struct world *w, const struct belay_handle *h)
{
    return belay_execution_abort(w->use, h, "stale", &w->err);
}

const struct holder_deed holder_deeds[] = {
    { "renewing", by_renewing }, { "progress", by_progress },
    { "a frame", by_frame },     { "completing", by_completing },
    { "failing", by_failing },   { "failing for good", by_failing_for_good },
    { "delaying", by_delaying }, { "releasing", by_releasing },
    { "aborting", by_aborting },
};
const size_t n_holder_deeds = COUNT_OF(holder_deeds);
#define N_DEEDS COUNT_OF(holder_deeds)

/* --- ways to lose the work --- */

/* Who held it first is in c->held; time has passed, and its lease with the grace. */
static bool taken(struct world *w, const struct cell *c, const char *worker,
                  struct belay_work *out)
{
    struct belay_works got =
        claim(w, (struct belay_claim_policy){
                     .lanes = &c->lane, .n_lanes = 1, .worker = worker });

    if (!EQ(w, got.n, 1) || !STR(w, got.work[0].execution_id, c->id))
        return false;
    *out = got.work[0];
    return true;
}

static void taken_over(struct world *w, const struct cell *c)
{
    struct belay_work next;

    (void)taken(w, c, "y", &next);
}

static void taken_over_by_itself(struct world *w, const struct cell *c)
{
    struct belay_work next;

    (void)taken(w, c, "w", &next);
}

static void lost_to_the_timer(struct world *w, const struct cell *c)
{
    (void)c;
    (void)timers(w);
}

static void completed_by_the_next(struct world *w, const struct cell *c)
{
    struct belay_work next;

    if (taken(w, c, "y", &next))
        RC(w, complete(w, &next.handle, "done", NULL), BELAY_OK);
}

static void failed_by_the_next(struct world *w, const struct cell *c)
{
    struct belay_work next;

    if (taken(w, c, "y", &next))
        RC(w, fail(w, &next.handle, BELAY_FAILURE_PERMANENT, NULL), BELAY_OK);
}

static void released_by_the_next(struct world *w, const struct cell *c)
{
    struct belay_work next;

    if (taken(w, c, "y", &next))
        RC(w, belay_execution_release(w->use, &next.handle, &w->err), BELAY_OK);
}

static void replayed_after_the_next(struct world *w, const struct cell *c)
{
    completed_by_the_next(w, c);
    RC(w, belay_execution_replay(w->use, c->id, "r", &w->err), BELAY_OK);
}

static void held_again_after_replay(struct world *w, const struct cell *c)
{
    replayed_after_the_next(w, c);
    taken_over(w, c);
}

static void revoked(struct world *w, const struct cell *c)
{
    bool done = false;

    RC(w, belay_execution_revoke(w->use, c->id, NULL, "r", &done, &w->err), BELAY_OK);
    OK(w, done);
}

static void revoked_and_taken_over(struct world *w, const struct cell *c)
{
    revoked(w, c);
    taken_over(w, c);
}

static void was_cancelled(struct world *w, const struct cell *c)
{
    taken_over(w, c);
    RC(w, belay_execution_cancel(w->use, c->id, "r", NULL, &w->err), BELAY_OK);
}

static const struct {
    const char *how, *reason;
    void (*lose)(struct world *w, const struct cell *c);
} ways[] = {
    { "taken over", "superseded", taken_over },
    { "taken over by the same worker", "superseded", taken_over_by_itself },
    { "lost to the timer", "expired", lost_to_the_timer },
    { "completed by the next", "terminal", completed_by_the_next },
    { "failed by the next", "terminal", failed_by_the_next },
    { "released by the next", "superseded", released_by_the_next },
    { "replayed", "superseded", replayed_after_the_next },
    { "replayed and held again", "superseded", held_again_after_replay },
    { "revoked", "revoked", revoked },
    { "revoked and taken over", "superseded", revoked_and_taken_over },
    { "taken over and cancelled", "terminal", was_cancelled },
};
#define N_WAYS COUNT_OF(ways)

/* --- the table --- */

static void try_everything(struct world *w, const struct cell *c, const char *reason)
{
    const char *before = all_of(w, c->id);

    for (size_t i = 0; i < N_DEEDS; i++) {
        if (!WHY(w, holder_deeds[i].run(w, &c->held->handle), BELAY_LEASE_LOST, reason))
            printf("# by %s\n", holder_deeds[i].name);
    }
    STR(w, all_of(w, c->id), before);
}

/* Everybody is paused past the lease at once; then each loses the work in its way. */
static void stale_holders_change_nothing(struct world *w)
{
    struct belay_retry_policy policy = retry_fixed(3, 1);
    struct cell cells[N_WAYS] = { 0 };

    if (!quick(w))
        return;
    for (size_t i = 0; i < N_WAYS; i++) {
        bool revokes = strncmp(ways[i].how, "revoked", 7) == 0;
        cells[i].lane = text(w, "lane %zu", i);
        cells[i].id = submit(
            w, (struct belay_submission){ .lane = cells[i].lane, .retry = &policy });
        cells[i].held =
            revokes ? work_on(w, cells[i].lane) : work_late(w, cells[i].lane);
        if (!OK(w, cells[i].id && cells[i].held))
            return;
    }
    world_pass(w, PAST_GRACE_MS);
    for (size_t i = 0; i < N_WAYS; i++) {
        unsigned failed = w->t->failed;
        w->use = w->b;
        ways[i].lose(w, &cells[i]);
        w->use = w->a;
        try_everything(w, &cells[i], ways[i].reason);
        if (w->t->failed > failed)
            printf("# where the work was: %s\n", ways[i].how);
    }
    const char *before = all_work(w);
    for (size_t i = 0; i < N_WAYS; i++) {
        for (size_t j = 0; j < N_DEEDS; j++)
            RC(w, holder_deeds[j].run(w, &cells[i].held->handle), BELAY_LEASE_LOST);
    }
    STR(w, all_work(w), before); /* of all that there is, and of what was told */
}

/* L5: late is not lost.  Each operation by a holder past due, and nobody took over. */
static void late_holders_hold(struct world *w)
{
    struct cell cells[N_DEEDS] = { 0 };

    if (!quick(w))
        return;
    for (size_t i = 0; i < N_DEEDS; i++) {
        cells[i].lane = text(w, "lane %zu", i);
        if (!cells_make(w, condition_named("past due"), &cells[i], 1))
            return;
    }
    world_pass(w, PAST_GRACE_MS); /* due, and nobody has looked */
    for (size_t i = 0; i < N_DEEDS; i++) {
        if (!RC(w, holder_deeds[i].run(w, &cells[i].held->handle), BELAY_OK))
            printf("# by %s\n", holder_deeds[i].name);
    }
}

/* One of a batch is stale, and one has a handle that is none: the others are done. */
static void a_batch_is_done_one_by_one(struct world *w)
{
    struct belay_ended end[4] = { 0 };
    struct belay_completion items[4];
    struct belay_handle cut;
    struct cell c[3] = { { .lane = "0" }, { .lane = "1" }, { .lane = "2" } };

    if (!cells_make(w, condition_named("active"), &c[0], 1) ||
        !cells_make(w, condition_named("revoked"), &c[1], 1) ||
        !cells_make(w, condition_named("completed"), &c[2], 1))
        return;
    for (size_t i = 0; i < 3; i++)
        items[i] = (struct belay_completion){ .size = sizeof(items[i]),
                                              .handle = &c[i].held->handle,
                                              .result = "done",
                                              .result_len = 4 };
    cut = c[0].held->handle;
    cut.opaque_len--;
    items[3] = items[0];
    items[3].handle = &cut;
    RC(w,
       belay_execution_complete(w->use, items, 4, NULL, w->arena, end, NULL, &w->err),
       BELAY_OK);
    EQ(w, end[0].code, BELAY_OK);
    EQ(w, end[1].code, BELAY_LEASE_LOST);
    STR(w, end[1].err.reason, "revoked");
    EQ(w, end[2].code, BELAY_OK);
    OK(w, !end[0].replayed && end[2].replayed);
    EQ(w, end[3].code, BELAY_BAD_HANDLE);
    STR(w, end[3].err.reason, "truncated");
    EQ(w, state_of(w, c[0].id), BELAY_STATE_COMPLETED);
    EQ(w, state_of(w, c[1].id), BELAY_STATE_ACTIVE);
}

static const struct noun_case cases[] = {
    { "L4: every operation of a stale holder changes nothing",
      stale_holders_change_nothing, 0 },
    { "L5: every operation of a holder who is late is done", late_holders_hold, 0 },
    { "a batch of completions is done or not one by one", a_batch_is_done_one_by_one,
      0 },
};

const struct topic topic_exec_stale = { cases, COUNT_OF(cases) };
