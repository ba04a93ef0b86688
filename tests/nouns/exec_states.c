/* How an execution is brought into each state that it can be in. */
#include "exec.h"

#define DEADLINE_MS ((int64_t)300) /* a claim takes less, and comes before it */

static bool submitted(struct world *w, struct cell *c, struct belay_submission s)
{
    s.lane = c->lane;
    c->id = submit(w, s);
    return c->id != NULL;
}

static bool held(struct world *w, struct cell *c)
{
    c->held = work_on(w, c->lane);
    return OK(w, c->held != NULL) && STR(w, c->held->execution_id, c->id);
}

static bool make_waiting(struct world *w, struct cell *c)
{
    return submitted(w, c, (struct belay_submission){ 0 });
}

static bool make_delayed(struct world *w, struct cell *c)
{
    return submitted(w, c, (struct belay_submission){ .delay_ms = HOUR });
}

static bool make_active(struct world *w, struct cell *c)
{
    return make_waiting(w, c) && held(w, c) &&
           RC(w, frame(w, &c->held->handle, "out"), BELAY_OK);
}

static bool make_backoff(struct world *w, struct cell *c)
{
    struct belay_retry_policy policy = retry_fixed(3, HOUR);

    return submitted(w, c, (struct belay_submission){ .retry = &policy }) &&
           held(w, c) &&
           RC(w, fail(w, &c->held->handle, BELAY_FAILURE_TRANSIENT, NULL), BELAY_OK);
}

static bool make_paused(struct world *w, struct cell *c)
{
    if (!make_active(w, c))
        return false;
    c->until_ms = c->held->expires_at_ms + HOUR;
    return RC(w, belay_execution_delay(w->use, &c->held->handle, c->until_ms, &w->err),
              BELAY_OK);
}

static bool make_granted(struct world *w, struct cell *c)
{
    struct belay_grant g = { 0 };

    if (!make_waiting(w, c) ||
        !RC(w,
            belay_execution_grant_one(w->use, c->id, "w", 60000, w->arena, &g, &w->err),
            BELAY_OK))
        return false;
    c->grant_id = g.grant_id;
    return OK(w, c->grant_id != NULL);
}

static bool make_released(struct world *w, struct cell *c)
{
    return make_active(w, c) &&
           RC(w, belay_execution_release(w->use, &c->held->handle, &w->err), BELAY_OK);
}

static bool make_resumed(struct world *w, struct cell *c)
{
    return make_released(w, c) && held(w, c) &&
           EQ(w, c->held->handle.kind, BELAY_HANDLE_RESUMED) &&
           EQ(w, c->held->attempt, 0);
}

static bool make_revoked(struct world *w, struct cell *c)
{
    bool revoked = false;

    return make_active(w, c) &&
           RC(w, belay_execution_revoke(w->use, c->id, NULL, "r", &revoked, &w->err),
              BELAY_OK) &&
           OK(w, revoked);
}

static bool make_reclaimed(struct world *w, struct cell *c)
{
    return make_revoked(w, c) && held(w, c) &&
           EQ(w, c->held->handle.kind, BELAY_HANDLE_RECLAIMED) &&
           EQ(w, c->held->attempt, 1);
}

static bool make_late(struct world *w, struct cell *c)
{
    if (!make_waiting(w, c))
        return false;
    c->held = work_late(w, c->lane);
    return OK(w, c->held != NULL);
}

static bool make_completed(struct world *w, struct cell *c)
{
    return make_active(w, c) &&
           RC(w, complete(w, &c->held->handle, "done", NULL), BELAY_OK);
}

static bool make_failed(struct world *w, struct cell *c)
{
    return make_active(w, c) &&
           RC(w, fail(w, &c->held->handle, BELAY_FAILURE_PERMANENT, NULL), BELAY_OK);
}

static bool make_cancelled(struct world *w, struct cell *c)
{
    return make_active(w, c) &&
           RC(w, belay_execution_cancel(w->use, c->id, "r", NULL, &w->err), BELAY_OK);
}

static bool make_aborted(struct world *w, struct cell *c)
{
    return make_active(w, c) &&
           RC(w, belay_execution_abort(w->use, &c->held->handle, "r", &w->err),
              BELAY_OK);
}

static bool make_expired(struct world *w, struct cell *c)
{
    return submitted(w, c, (struct belay_submission){ .deadline_ms = DEADLINE_MS }) &&
           held(w, c);
}

static bool make_replayed(struct world *w, struct cell *c)
{
    return make_completed(w, c) &&
           RC(w, belay_execution_replay(w->use, c->id, "r", &w->err), BELAY_OK);
}

const struct condition conditions[] = {
    { "waiting", 'w', BELAY_STATE_WAITING, make_waiting, 0, false },
    { "delayed", 'd', BELAY_STATE_DELAYED, make_delayed, 0, false },
    { "before a retry", 'b', BELAY_STATE_DELAYED, make_backoff, 0, false },
    { "delayed by its worker", 'p', BELAY_STATE_DELAYED, make_paused, 0, false },
    { "granted", 'g', BELAY_STATE_WAITING, make_granted, 0, false },
    { "active", 'a', BELAY_STATE_ACTIVE, make_active, 0, false },
    { "resumed", 'u', BELAY_STATE_ACTIVE, make_resumed, 0, false },
    { "reclaimed", 'c', BELAY_STATE_ACTIVE, make_reclaimed, 0, false },
    { "past due", 'l', BELAY_STATE_ACTIVE, make_late, 0, true },
    { "lost", 'o', BELAY_STATE_ACTIVE, make_late, PAST_GRACE_MS, false },
    { "revoked", 'v', BELAY_STATE_ACTIVE, make_revoked, 0, false },
    { "completed", 'C', BELAY_STATE_COMPLETED, make_completed, 0, false },
    { "failed", 'F', BELAY_STATE_FAILED, make_failed, 0, false },
    { "cancelled", 'X', BELAY_STATE_CANCELLED, make_cancelled, 0, false },
    { "aborted", 'Y', BELAY_STATE_CANCELLED, make_aborted, 0, false },
    { "expired", 'E', BELAY_STATE_EXPIRED, make_expired, DEADLINE_MS + 20, false },
    { "released", 'r', BELAY_STATE_WAITING, make_released, 0, false },
    { "replayed", 'y', BELAY_STATE_WAITING, make_replayed, 0, false },
};
const size_t n_conditions = COUNT_OF(conditions);

const struct condition *condition_named(const char *name)
{
    for (size_t i = 0; i < n_conditions; i++) {
        if (strcmp(conditions[i].name, name) == 0)
            return &conditions[i];
    }
    return NULL;
}

bool cells_make(struct world *w, const struct condition *in, struct cell *cells,
                size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!in->make(w, &cells[i]))
            return false;
    }
    if (in->pass_ms == 0)
        return true;
    world_pass(w, in->pass_ms);
    (void)timers(w);
    return true;
}
