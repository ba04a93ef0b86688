/* The golden traces of the specification (Appendix E), as Belay answers them: a holder who
 * is late holds until somebody has taken over, and what was lost can be claimed again by
 * itself. */
#include "exec.h"

#define WAITING                                                                    \
    "runnable/unowned/eligible_now/waiting_for_worker/none/pending_first_attempt/" \
    "waiting"
#define ACTIVE "active/leased/not_applicable/none/none/running_attempt/active"
#define COMPLETED \
    "terminal/unowned/not_applicable/none/success/attempt_terminal/completed"

/* The numbers beside the vector: fence, attempts, retries, reclaims, replays. */
static void numbers(struct world *w, const char *id, const char *want)
{
    struct belay_execution e = look(w, id);

    STR(w,
        text(w, "fence %lld, %lld attempts, %lld retries, %lld reclaims, %lld replays",
             (long long)e.fence, (long long)e.attempts, (long long)e.retries,
             (long long)e.reclaims, (long long)e.replays),
        want);
}

/* --- E.1 --- */

static void frames_by_three(struct world *w, const struct belay_handle *h)
{
    static const char *const said[] = { "one", "two", "three" };
    struct belay_frame f[3];
    struct belay_frame_appended out = { 0 };

    for (size_t i = 0; i < COUNT_OF(f); i++)
        f[i] = (struct belay_frame){ .size = sizeof(f[i]),
                                     .bytes = said[i],
                                     .len = strlen(said[i]) };
    RC(w, belay_execution_append_frames(w->use, h, f, 3, &out, &w->err), BELAY_OK);
    EQ(w, out.frame_count, 3);
    EQ(w, out.seq, 3);
}

static void prolong(struct world *w, const struct belay_work *held, const char *id)
{
    struct belay_lease_renewal r = { 0 };

    world_pass(w, 10);
    RC(w, belay_execution_renew(w->use, &held->handle, 0, &r, &w->err), BELAY_OK);
    EQ(w, r.fence, held->fence);
    OK(w, r.expires_at_ms > held->expires_at_ms);
    EQ(w, look(w, id).lease_expires_at_ms, r.expires_at_ms);
    STR(w, vector_of(w, id), ACTIVE);
}

/* The second half: done, done again, done by a copy that is stale. */
static void ends_once(struct world *w, const struct belay_work *held, const char *id)
{
    struct belay_ended end = { 0 };

    RC(w, complete(w, &held->handle, "ok", &end), BELAY_OK);
    OK(w, !end.replayed);
    STR(w, vector_of(w, id), COMPLETED);
    numbers(w, id, "fence 1, 1 attempts, 0 retries, 0 reclaims, 0 replays");
    STR(w, result_of(w, id), "ok");
    STR(w, frames_of(w, id, -1), "one two three|attempt_success");
    STR(w, attempts_of(w, id), "initial ended_success");
    STR(w, events_of(w, id), "acquired completion:success");

    const char *before = all_work(w);
    RC(w, complete(w, &held->handle, "ok", &end), BELAY_OK);
    OK(w, end.replayed);
    STR(w, all_work(w), before);

    RC(w, belay_execution_replay(w->use, id, "again", &w->err), BELAY_OK);
    STR(w, vector_of(w, id),
        "runnable/unowned/eligible_now/waiting_for_worker/none/pending_replay_attempt/"
        "waiting");
    const struct belay_work *next = work_on(w, "l");
    if (!OK(w, next != NULL))
        return;
    EQ(w, next->attempt_type, BELAY_ATTEMPT_REPLAY);
    STR(w, vector_of(w, id), ACTIVE);
    numbers(w, id, "fence 2, 2 attempts, 0 retries, 0 reclaims, 1 replays");
    STR(w, lineage_of(w, id), "first, after 0");
    before = all_work(w);
    WHY(w, complete(w, &held->handle, "ok", NULL), BELAY_LEASE_LOST, "superseded");
    STR(w, all_work(w), before);
}

static void happy_path(struct world *w)
{
    const char *id = submit(w, (struct belay_submission){ .priority = 5 });
    struct belay_grant grant = { 0 };
    struct belay_work held = { 0 };

    if (!id)
        return;
    STR(w, vector_of(w, id), WAITING);
    numbers(w, id, "fence 0, 0 attempts, 0 retries, 0 reclaims, 0 replays");
    EQ(w, look(w, id).attempt, -1);

    RC(w, belay_execution_grant_one(w->use, id, "w1", 60000, w->arena, &grant, &w->err),
       BELAY_OK);
    STR(w, grant.execution_id, id);
    EQ(w, grant.kind, BELAY_HANDLE_FRESH);
    STR(w, vector_of(w, id), WAITING);
    OK(w, !work_on(w, "l")); /* it is set aside */

    if (!RC(w,
            belay_execution_claim_grant(w->use, grant.grant_id, "w1", MINUTE, w->arena,
                                        &held, &w->err),
            BELAY_OK))
        return;
    STR(w, vector_of(w, id), ACTIVE);
    numbers(w, id, "fence 1, 1 attempts, 0 retries, 0 reclaims, 0 replays");
    STR(w, attempts_of(w, id), "initial started");
    EQ(w, held.handle.kind, BELAY_HANDLE_FRESH);

    RC(w, belay_execution_progress(w->use, &held.handle, 40, NULL, &w->err), BELAY_OK);
    EQ(w, look(w, id).progress_percent, 40);
    STR(w, vector_of(w, id), ACTIVE);
    frames_by_three(w, &held.handle);
    STR(w, vector_of(w, id), ACTIVE);
    prolong(w, &held, id);
    ends_once(w, &held, id);
}

/* --- E.2 --- */

#define RETRY_MS 50
#define BACKOFF                                                                \
    "runnable/unowned/not_eligible_until_time/waiting_for_retry_backoff/none/" \
    "pending_retry_attempt/delayed"

/* One attempt that fails and is followed by another. */
static void fails_and_waits(struct world *w, const char *id, int64_t retries)
{
    const struct belay_work *held = work_on(w, "l");
    struct belay_ended end = { 0 };

    if (!OK(w, held != NULL))
        return;
    EQ(w, held->attempt, retries - 1);
    STR(w, lineage_of(w, id),
        retries > 1 ? "first, after 0 (transient: it did not work)" : "first");
    EQ(w, held->attempt_type,
       retries > 1 ? BELAY_ATTEMPT_RETRY : BELAY_ATTEMPT_INITIAL);
    STR(w, vector_of(w, id), ACTIVE);
    RC(w, fail(w, &held->handle, BELAY_FAILURE_TRANSIENT, &end), BELAY_OK);
    EQ(w, end.outcome, BELAY_RETRY_SCHEDULED);
    STR(w, vector_of(w, id), BACKOFF);
    struct belay_execution e = look(w, id);
    EQ(w, e.retries, retries);
    EQ(w, e.delay_until_ms, end.delay_until_ms);
    EQ(w, e.delay_until_ms, e.updated_at_ms + RETRY_MS);
    OK(w, !work_on(w, "l"));

    world_pass(w, RETRY_MS + 1);
    EQ(w, timers(w).promoted, 1);
    STR(w, vector_of(w, id),
        "runnable/unowned/eligible_now/waiting_for_worker/none/pending_retry_attempt/"
        "waiting");
}

static void retry_then_exhaust(struct world *w)
{
    struct belay_retry_policy policy = retry_fixed(2, RETRY_MS);
    const char *id = submit(w, (struct belay_submission){ .retry = &policy });
    struct belay_ended end = { 0 };

    if (!id)
        return;
    fails_and_waits(w, id, 1);
    numbers(w, id, "fence 1, 1 attempts, 1 retries, 0 reclaims, 0 replays");
    fails_and_waits(w, id, 2);
    numbers(w, id, "fence 2, 2 attempts, 2 retries, 0 reclaims, 0 replays");

    const struct belay_work *held = work_on(w, "l");
    if (!OK(w, held != NULL))
        return;
    EQ(w, held->attempt, 2);
    RC(w, fail(w, &held->handle, BELAY_FAILURE_TRANSIENT, &end), BELAY_OK);
    EQ(w, end.outcome, BELAY_TERMINAL_FAILURE);
    STR(w, vector_of(w, id),
        "terminal/unowned/not_applicable/none/failed/attempt_terminal/failed");
    numbers(w, id, "fence 3, 3 attempts, 2 retries, 0 reclaims, 0 replays");
    STR(w, look(w, id).failure_message, "it did not work");
    EQ(w, look(w, id).failure_class, BELAY_FAILURE_TRANSIENT);
    STR(w, attempts_of(w, id),
        "initial ended_failure, retry ended_failure, retry ended_failure");
    STR(w, lineage_of(w, id),
        "first, after 0 (transient: it did not work), after 1 (transient: it did not "
        "work)");
    STR(w, events_of(w, id),
        "acquired released(retry) acquired released(retry) acquired completion:failed");
}

/* --- E.5 --- */

static void crash(struct world *w)
{
    const char *id = quick(w) ? submit(w, (struct belay_submission){ 0 }) : NULL;
    const struct belay_work *first = id ? work_late(w, "l") : NULL;

    if (!OK(w, first != NULL))
        return;
    STR(w, vector_of(w, id), ACTIVE); /* past due, and held */
    RC(w, frame(w, &first->handle, "late"), BELAY_OK);

    world_pass(w, PAST_GRACE_MS);
    EQ(w, timers(w).expired_leases, 1);
    STR(w, vector_of(w, id),
        "active/lease_expired_reclaimable/not_applicable/waiting_for_worker/none/"
        "attempt_interrupted/active");
    STR(w, frames_of(w, id, 0), "late|lease_expired");
    WHY(w, complete(w, &first->handle, NULL, NULL), BELAY_LEASE_LOST, "expired");

    const struct belay_work *second = work_on(w, "l");
    if (!OK(w, second != NULL))
        return;
    EQ(w, second->handle.kind, BELAY_HANDLE_RECLAIMED);
    EQ(w, second->attempt_type, BELAY_ATTEMPT_RECLAIM);
    STR(w, vector_of(w, id), ACTIVE);
    numbers(w, id, "fence 2, 2 attempts, 0 retries, 1 reclaims, 0 replays");
    STR(w, attempts_of(w, id), "initial interrupted_reclaimed, reclaim started");
    STR(w, lineage_of(w, id), "first, after 0");
    STR(w, frames_of(w, id, 0), "late|reclaimed");
    WHY(w, frame(w, &first->handle, "later"), BELAY_LEASE_LOST, "superseded");
    STR(w, frames_of(w, id, 1), "|-");
    RC(w, complete(w, &second->handle, NULL, NULL), BELAY_OK);
    STR(w, vector_of(w, id), COMPLETED);
    STR(w, attempts_of(w, id), "initial interrupted_reclaimed, reclaim ended_success");
    STR(w, events_of(w, id), "acquired expired reclaimed completion:success");
}

static const struct noun_case cases[] = {
    { "E.1: submitted, granted, claimed, done once", happy_path, 0 },
    { "E.2: retried until no retry is left", retry_then_exhaust, 0 },
    { "E.5: after a crash the work is somebody else's", crash, 0 },
};

const struct topic topic_exec_traces = { cases, COUNT_OF(cases) };
