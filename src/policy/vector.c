#include "policy/vector.h"

#include "policy/words.h"

/* --- names --- */

static const char *const phases[] = {
    "submitted", "runnable", "active", "suspended", "terminal",
};
static const char *const ownerships[] = {
    "unowned",
    "leased",
    "lease_expired_reclaimable",
    "lease_revoked",
};
static const char *const eligibilities[] = {
    "eligible_now",          "not_eligible_until_time", "blocked_by_dependencies",
    "blocked_by_budget",     "blocked_by_quota",        "blocked_by_route",
    "blocked_by_lane_state", "blocked_by_operator",     "not_applicable",
};
static const char *const blockings[] = {
    "none",
    "waiting_for_worker",
    "waiting_for_retry_backoff",
    "waiting_for_resume_delay",
    "waiting_for_delay",
    "waiting_for_signal",
    "waiting_for_approval",
    "waiting_for_callback",
    "waiting_for_tool_result",
    "waiting_for_children",
    "waiting_for_budget",
    "waiting_for_quota",
    "waiting_for_capable_worker",
    "waiting_for_locality_match",
    "paused_by_operator",
    "paused_by_policy",
    "paused_by_flow_cancel",
};
static const char *const outcomes[] = {
    "none", "success", "failed", "cancelled", "expired", "skipped",
};
static const char *const attempt_states[] = {
    "none",
    "pending_first_attempt",
    "running_attempt",
    "attempt_interrupted",
    "pending_retry_attempt",
    "pending_replay_attempt",
    "attempt_terminal",
};
static const char *const states[] = {
    NULL,        "waiting",   "delayed",   "rate_limited", "waiting_children",
    "active",    "suspended", "resumable", "completed",    "failed",
    "cancelled", "expired",   "skipped",
};
static const char *const attempt_types[] = {
    "initial", "retry", "reclaim", "replay", "fallback",
};
static const char *const attempt_ends[] = {
    "started",       "suspended",       "ended_success",
    "ended_failure", "ended_cancelled", "interrupted_reclaimed",
};
static const char *const handle_kinds[] = {
    "fresh",
    "resumed",
    "suspended",
    "reclaimed",
};
static const char *const failure_classes[] = {
    NULL, "transient", "permanent", "infra_crash", "timeout", "cancelled",
};
static const char *const frame_kinds[] = { "stdout", "stderr", "event", "blob" };
static const char *const frame_modes[] = { "durable" };
static const char *const events[] = {
    "completion", "acquired",  "released",         "expired",
    "revoked",    "reclaimed", "replay_initiated",
};

static const struct words dimensions[BELAY_DIM_COUNT] = {
    [BELAY_DIM_PHASE] = { phases, COUNT_OF(phases) },
    [BELAY_DIM_OWNERSHIP] = { ownerships, COUNT_OF(ownerships) },
    [BELAY_DIM_ELIGIBILITY] = { eligibilities, COUNT_OF(eligibilities) },
    [BELAY_DIM_BLOCKING] = { blockings, COUNT_OF(blockings) },
    [BELAY_DIM_OUTCOME] = { outcomes, COUNT_OF(outcomes) },
    [BELAY_DIM_ATTEMPT_STATE] = { attempt_states, COUNT_OF(attempt_states) },
    [BELAY_DIM_STATE] = { states, COUNT_OF(states) },
    [BELAY_DIM_ATTEMPT_TYPE] = { attempt_types, COUNT_OF(attempt_types) },
    [BELAY_DIM_ATTEMPT_END] = { attempt_ends, COUNT_OF(attempt_ends) },
    [BELAY_DIM_HANDLE_KIND] = { handle_kinds, COUNT_OF(handle_kinds) },
    [BELAY_DIM_FAILURE_CLASS] = { failure_classes, COUNT_OF(failure_classes) },
    [BELAY_DIM_FRAME_KIND] = { frame_kinds, COUNT_OF(frame_kinds) },
    [BELAY_DIM_FRAME_MODE] = { frame_modes, COUNT_OF(frame_modes) },
    [BELAY_DIM_EVENT] = { events, COUNT_OF(events) },
};

static struct words words_of(enum belay_dimension dim)
{
    static const struct words nothing = { NULL, 0 };

    return (unsigned)dim < BELAY_DIM_COUNT ? dimensions[dim] : nothing;
}

const char *vector_name(enum belay_dimension dim, int value)
{
    return words_name(words_of(dim), value);
}

int vector_count(enum belay_dimension dim)
{
    struct words w = words_of(dim);

    return w.end > 0 && !w.names[0] ? w.end - 1 : w.end;
}

bool vector_parse(enum belay_dimension dim, struct bytes name, int *out)
{
    return words_parse(words_of(dim), name, out);
}

/* --- the public state --- */

static enum belay_state ended_state(int32_t outcome)
{
    switch (outcome) {
    case BELAY_TERMINAL_SUCCESS:
        return BELAY_STATE_COMPLETED;
    case BELAY_TERMINAL_CANCELLED:
        return BELAY_STATE_CANCELLED;
    case BELAY_TERMINAL_EXPIRED:
        return BELAY_STATE_EXPIRED;
    case BELAY_TERMINAL_SKIPPED:
        return BELAY_STATE_SKIPPED;
    default: /* failed; and terminal without an outcome, which no transition leads to */
        return BELAY_STATE_FAILED;
    }
}

static enum belay_state runnable_state(int32_t eligibility)
{
    switch (eligibility) {
    case BELAY_NOT_ELIGIBLE_UNTIL_TIME:
        return BELAY_STATE_DELAYED;
    case BELAY_BLOCKED_BY_DEPENDENCIES:
        return BELAY_STATE_WAITING_CHILDREN;
    case BELAY_BLOCKED_BY_BUDGET:
    case BELAY_BLOCKED_BY_QUOTA:
        return BELAY_STATE_RATE_LIMITED;
    default:
        return BELAY_STATE_WAITING;
    }
}

enum belay_state vector_state(const struct belay_vector *v)
{
    switch (v->phase) {
    case BELAY_PHASE_TERMINAL:
        return ended_state(v->outcome);
    case BELAY_PHASE_SUSPENDED:
        return BELAY_STATE_SUSPENDED;
    case BELAY_PHASE_ACTIVE: /* also while its lease is lost */
        return BELAY_STATE_ACTIVE;
    case BELAY_PHASE_RUNNABLE:
        return runnable_state(v->eligibility);
    default:
        return BELAY_STATE_WAITING;
    }
}

/* --- vectors --- */

bool vector_eq(const struct belay_vector *a, const struct belay_vector *b)
{
    return a->phase == b->phase && a->ownership == b->ownership &&
           a->eligibility == b->eligibility && a->blocking == b->blocking &&
           a->outcome == b->outcome && a->attempt == b->attempt;
}

bool vector_is_terminal(const struct belay_vector *v)
{
    return v->phase == BELAY_PHASE_TERMINAL;
}

static enum place runnable_place(int32_t eligibility)
{
    if (eligibility == BELAY_ELIGIBLE_NOW)
        return PLACE_READY;
    return eligibility == BELAY_NOT_ELIGIBLE_UNTIL_TIME ? PLACE_DELAYED : PLACE_HELD;
}

static enum place active_place(int32_t ownership)
{
    switch (ownership) {
    case BELAY_LEASED:
        return PLACE_LEASED;
    case BELAY_LEASE_EXPIRED_RECLAIMABLE:
    case BELAY_LEASE_REVOKED:
        return PLACE_READY;
    default:
        return PLACE_HELD;
    }
}

enum place vector_place(const struct belay_vector *v)
{
    switch (v->phase) {
    case BELAY_PHASE_TERMINAL:
        return PLACE_DONE;
    case BELAY_PHASE_ACTIVE:
        return active_place(v->ownership);
    case BELAY_PHASE_RUNNABLE:
        return runnable_place(v->eligibility);
    default:
        return PLACE_HELD;
    }
}
