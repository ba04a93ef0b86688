/* What a holder does beside ending the work; what is done twice; what an operator does. */
#include "exec.h"

/* --- leases --- */

static int64_t renewed_to(struct world *w, const struct belay_handle *h, int64_t ms)
{
    struct belay_lease_renewal r = { 0 };

    RC(w, belay_execution_renew(w->use, h, ms, &r, &w->err), BELAY_OK);
    EQ(w, r.fence, 1);
    return r.expires_at_ms;
}

static void renewing_only_prolongs(struct world *w)
{
    struct cell c = { .lane = "l" };
    static const int64_t shorter[] = { 1, 1000, MINUTE / 2 };

    if (!cells_make(w, condition_named("active"), &c, 1))
        return;
    const struct belay_handle *h = &c.held->handle;
    int64_t last = renewed_to(w, h, 10 * MINUTE);
    OK(w, last >= c.held->expires_at_ms + 9 * MINUTE);
    for (size_t i = 0; i < COUNT_OF(shorter); i++) {
        w->use = i % 2 ? w->a : w->b;
        EQ(w, renewed_to(w, h, shorter[i]), last);
        EQ(w, look(w, c.id).lease_expires_at_ms, last);
    }
    RC(w, belay_execution_release(w->use, h, &w->err), BELAY_OK);
    WHY(w, belay_execution_renew(w->use, h, MINUTE, NULL, &w->err), BELAY_LEASE_LOST,
        "released"); /* never revives */
    EQ(w, look(w, c.id).lease_expires_at_ms, BELAY_TIME_NONE);
}

/* L2, W6: over every way a grant can end that lets another follow. */
static void fences_strictly_rise(struct world *w)
{
    struct belay_retry_policy policy = retry_fixed(9, 1);
    const char *id = submit(w, (struct belay_submission){ .retry = &policy });
    bool revoked = false;

    for (int64_t i = 0; i < 10; i++) {
        const struct belay_work *held = work_on(w, "l");
        if (!OK(w, held != NULL))
            return;
        EQ(w, held->fence, i + 1);
        const struct belay_handle *h = &held->handle;
        if (i % 5 == 0)
            RC(w, belay_execution_release(w->use, h, &w->err), BELAY_OK);
        else if (i % 5 == 1)
            RC(w, belay_execution_delay(w->use, h, 1, &w->err), BELAY_OK);
        else if (i % 5 == 2)
            RC(w, fail(w, h, BELAY_FAILURE_TRANSIENT, NULL), BELAY_OK);
        else if (i % 5 == 3)
            RC(w, belay_execution_revoke(w->use, id, NULL, "r", &revoked, &w->err),
               BELAY_OK);
        else if (complete(w, h, NULL, NULL) == BELAY_OK)
            RC(w, belay_execution_replay(w->use, id, "r", &w->err), BELAY_OK);
        world_pass(w, 3);
        if (i == 4 && !world_reopen(w))
            return;
        w->use = i % 2 ? w->b : w->a;
    }
    struct belay_execution e = look(w, id);
    EQ(w, e.attempts, 6); /* grants minus resumes (W3) */
    EQ(w, e.fence, 10);
    EQ(w, e.replays, 2);
}

/* --- progress and frames --- */

static void progress_keeps_what_is_not_said(struct world *w)
{
    struct cell c = { .lane = "l" };

    if (!cells_make(w, condition_named("active"), &c, 1))
        return;
    const struct belay_handle *h = &c.held->handle;
    EQ(w, look(w, c.id).progress_percent, -1);
    RC(w, belay_execution_progress(w->use, h, 10, "begun", &w->err), BELAY_OK);
    RC(w, belay_execution_progress(w->b, h, 20, NULL, &w->err), BELAY_OK);
    STR(w, look(w, c.id).progress_message, "begun");
    RC(w, belay_execution_progress(w->use, h, -1, "half", &w->err), BELAY_OK);
    EQ(w, look(w, c.id).progress_percent, 20);
    STR(w, look(w, c.id).progress_message, "half");
    RC(w, belay_execution_progress(w->use, h, 101, NULL, &w->err), BELAY_INVALID);
    RC(w, belay_execution_progress(w->use, h, -2, NULL, &w->err), BELAY_INVALID);
    EQ(w, look(w, c.id).progress_percent, 20);
}

static belay_rc frame_as(struct world *w, const struct belay_handle *h, int64_t seq,
                         size_t len, struct belay_frame_appended *out)
{
    struct belay_frame f = { .size = sizeof(f),
                             .kind = BELAY_FRAME_EVENT,
                             .bytes = bytes_of(w, 'x', len),
                             .len = len,
                             .seq = seq,
                             .frame_type = "t",
                             .correlation_id = "c" };

    return belay_execution_append_frames(w->use, h, &f, 1, out, &w->err);
}

static void frames_are_appended_once(struct world *w)
{
    struct cell c = { .lane = "l" };
    struct belay_frame_appended out = { 0 };

    if (!cells_make(w, condition_named("active"), &c, 1)) /* with a frame, "out" */
        return;
    const struct belay_handle *h = &c.held->handle;
    RC(w, frame_as(w, h, 10, 1, &out), BELAY_OK);
    EQ(w, out.seq, 2); /* of the attempt's own, which has no gaps */
    EQ(w, out.frame_count, 2);
    RC(w, frame_as(w, h, 10, 1, &out), BELAY_OK); /* the answer was lost: again */
    RC(w, frame_as(w, h, 9, 1, &out), BELAY_OK);
    EQ(w, out.frame_count, 2);
    RC(w, frame_as(w, h, 12, BELAY_FRAME_MAX, &out), BELAY_OK);
    EQ(w, out.frame_count, 3);
    WHY(w, frame_as(w, h, 13, BELAY_FRAME_MAX + 1, &out), BELAY_INVALID,
        "frame_too_large");

    struct belay_frame_request r = {
        .size = sizeof(r), .execution_id = c.id, .attempt = -1, .after_seq = 2
    };
    struct belay_frames all = { 0 };
    RC(w, belay_execution_frames(w->b, &r, w->arena, &all, &w->err), BELAY_OK);
    EQ(w, all.frame_count, 3);
    OK(w, !all.closed && !all.terminal);
    if (EQ(w, all.n, 1)) {
        EQ(w, all.items[0].seq, 3);
        EQ(w, all.items[0].kind, BELAY_FRAME_EVENT);
        EQ(w, all.items[0].len, BELAY_FRAME_MAX);
        STR(w, all.items[0].frame_type, "t");
        STR(w, all.items[0].correlation_id, "c");
    }
}

/* A resumed attempt goes on with its frames; a retry has frames of its own. */
static void frames_belong_to_the_attempt(struct world *w)
{
    struct belay_retry_policy policy = retry_fixed(1, 1);
    const char *id = submit(w, (struct belay_submission){ .retry = &policy });

    for (int i = 0; i < 3; i++) {
        const struct belay_work *held = work_on(w, "l");
        if (!OK(w, held != NULL))
            return;
        RC(w, frame(w, &held->handle, text(w, "%d", i)), BELAY_OK);
        if (i == 0)
            RC(w, belay_execution_release(w->use, &held->handle, &w->err), BELAY_OK);
        else
            RC(w, fail(w, &held->handle, BELAY_FAILURE_TRANSIENT, NULL), BELAY_OK);
        world_pass(w, 3);
    }
    STR(w, frames_of(w, id, 0), "0 1|attempt_failure");
    STR(w, frames_of(w, id, 1), "2|attempt_failure");
    STR(w, frames_of(w, id, -1), "2|attempt_failure");
}

/* --- what is done twice (2.0, 3 and 4) --- */

static void done_twice_is_done_once(struct world *w)
{
    struct belay_retry_policy policy = retry_fixed(3, HOUR);
    struct cell done = { .lane = "done" }, failed = { .lane = "failed" },
                delayed = { .lane = "delayed" };
    struct belay_ended end = { 0 }, again = { 0 };

    if (!cells_make(w, condition_named("completed"), &done, 1) ||
        !cells_make(w, condition_named("failed"), &failed, 1))
        return;
    delayed.id =
        submit(w, (struct belay_submission){ .lane = "delayed", .retry = &policy });
    delayed.held = work_on(w, "delayed");
    if (!OK(w, delayed.held != NULL))
        return;
    RC(w, fail(w, &delayed.held->handle, BELAY_FAILURE_TRANSIENT, &end), BELAY_OK);
    const char *before = all_work(w);

    w->use = w->b;
    RC(w, fail(w, &delayed.held->handle, BELAY_FAILURE_TRANSIENT, &again), BELAY_OK);
    OK(w, again.replayed && !end.replayed);
    EQ(w, again.outcome, BELAY_RETRY_SCHEDULED);
    EQ(w, again.delay_until_ms, end.delay_until_ms);
    RC(w, fail(w, &failed.held->handle, BELAY_FAILURE_PERMANENT, &again), BELAY_OK);
    OK(w, again.replayed);
    EQ(w, again.outcome, BELAY_TERMINAL_FAILURE);
    RC(w, complete(w, &done.held->handle, "done", &again), BELAY_OK);
    OK(w, again.replayed);
    STR(w, all_work(w), before);

    RC(w, belay_execution_cancel(w->use, delayed.id, "one", NULL, &w->err), BELAY_OK);
    before = all_work(w);
    RC(w, belay_execution_cancel(w->use, delayed.id, "two", "x", &w->err), BELAY_OK);
    STR(w, all_work(w), before);
    STR(w, look(w, delayed.id).cancel_reason, "one");
    STR(w, look(w, delayed.id).cancelled_by, "operator_override");
}

/* --- what an operator does --- */

static void replay_begins_anew(struct world *w)
{
    struct belay_retry_policy policy = retry_fixed(1, 1);
    const char *id = submit(w, (struct belay_submission){ .retry = &policy });

    for (int64_t round = 0; round <= BELAY_MAX_REPLAYS; round++) {
        for (int i = 0; i < 2; i++) { /* it may fail twice, each time anew */
            const struct belay_work *held = work_on(w, "l");
            if (!OK(w, held != NULL))
                return;
            RC(w, fail(w, &held->handle, BELAY_FAILURE_TRANSIENT, NULL), BELAY_OK);
            EQ(w, state_of(w, id), i ? BELAY_STATE_FAILED : BELAY_STATE_DELAYED);
            world_pass(w, 3);
        }
        if (round == BELAY_MAX_REPLAYS)
            break;
        RC(w, belay_execution_replay(w->use, id, "r", &w->err), BELAY_OK);
        struct belay_execution e = look(w, id);
        EQ(w, e.retries, 0);
        EQ(w, e.replays, round + 1);
        EQ(w, e.failure_class, 0);
        EQ(w, e.finished_at_ms, BELAY_TIME_NONE);
        STR(w, e.failure_message, NULL);
    }
    WHY(w, belay_execution_replay(w->use, id, "r", &w->err), BELAY_WRONG_STATE,
        "replays");
    EQ(w, look(w, id).attempts, 2 * (BELAY_MAX_REPLAYS + 1));
    EQ(w, completions_of(w, id), BELAY_MAX_REPLAYS + 1); /* W5 */
}

static void revoking_one_lease(struct world *w)
{
    struct cell c = { .lane = "l" };
    struct belay_handle_info info = { 0 };
    bool revoked = true;

    if (!cells_make(w, condition_named("active"), &c, 1) ||
        !RC(w, belay_handle_read(&c.held->handle, w->arena, &info, &w->err), BELAY_OK))
        return;
    const char *before = all_work(w);
    WHY(w,
        belay_execution_revoke(w->b, c.id, "00000000000000000000000000000000", "r",
                               &revoked, &w->err),
        BELAY_LEASE_LOST, "superseded");
    STR(w, all_work(w), before);
    RC(w, belay_execution_revoke(w->b, c.id, info.lease_id, "r", &revoked, &w->err),
       BELAY_OK);
    OK(w, revoked);
    STR(w, vector_of(w, c.id),
        "active/lease_revoked/not_applicable/waiting_for_worker/none/"
        "attempt_interrupted/active");
    STR(w, events_of(w, c.id), "acquired revoked(r)");
}

static const struct noun_case cases[] = {
    { "L6: renewing an execution's lease never shortens, never revives",
      renewing_only_prolongs, 0 },
    { "L2: fences strictly rise over every grant of an execution", fences_strictly_rise,
      0 },
    { "progress keeps what is not said anew", progress_keeps_what_is_not_said, 0 },
    { "a frame with a sequence of the caller's is appended once",
      frames_are_appended_once, 0 },
    { "frames belong to the attempt", frames_belong_to_the_attempt, 0 },
    { "what is done twice is done once", done_twice_is_done_once, 0 },
    { "a replay begins anew, up to the limit", replay_begins_anew, 0 },
    { "a revoke can name the lease", revoking_one_lease, 0 },
};

const struct topic topic_exec_holding = { cases, COUNT_OF(cases) };
