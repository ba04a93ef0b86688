#include "policy/transition_impl.h"

#define BIT(value) ((uint32_t)1 << (value))
#define ANY UINT32_MAX
#define KEPT 0

/* --- what the rows share --- */

#define RUNNABLE BIT(BELAY_PHASE_RUNNABLE)
#define ACTIVE BIT(BELAY_PHASE_ACTIVE)
#define SUSPENDED BIT(BELAY_PHASE_SUSPENDED)
#define TERMINAL BIT(BELAY_PHASE_TERMINAL)
#define NOT_TERMINAL (BIT(BELAY_PHASE_SUBMITTED) | RUNNABLE | ACTIVE | SUSPENDED)
#define UNOWNED BIT(BELAY_UNOWNED)
#define LEASED BIT(BELAY_LEASED)
#define LOST (BIT(BELAY_LEASE_EXPIRED_RECLAIMABLE) | BIT(BELAY_LEASE_REVOKED))
#define ELIGIBLE BIT(BELAY_ELIGIBLE_NOW)
#define UNTIL_TIME BIT(BELAY_NOT_ELIGIBLE_UNTIL_TIME)
#define ON_DEPENDENCIES BIT(BELAY_BLOCKED_BY_DEPENDENCIES)
#define ON_ADMISSION                                                  \
    (BIT(BELAY_BLOCKED_BY_BUDGET) | BIT(BELAY_BLOCKED_BY_QUOTA) |     \
     BIT(BELAY_BLOCKED_BY_ROUTE) | BIT(BELAY_BLOCKED_BY_LANE_STATE) | \
     BIT(BELAY_BLOCKED_BY_OPERATOR))
#define NO_ELIGIBILITY BIT(BELAY_NOT_APPLICABLE)
#define NO_REASON BIT(BELAY_BLOCKING_NONE)
#define FOR_WORKER BIT(BELAY_WAITING_FOR_WORKER)
#define FOR_CHILDREN BIT(BELAY_WAITING_FOR_CHILDREN)
#define ON_PURPOSE                                                          \
    (BIT(BELAY_WAITING_FOR_SIGNAL) | BIT(BELAY_WAITING_FOR_APPROVAL) |      \
     BIT(BELAY_WAITING_FOR_CALLBACK) | BIT(BELAY_WAITING_FOR_TOOL_RESULT) | \
     BIT(BELAY_WAITING_FOR_BUDGET) | BIT(BELAY_PAUSED_BY_OPERATOR) |        \
     BIT(BELAY_PAUSED_BY_POLICY))
#define NO_OUTCOME BIT(BELAY_TERMINAL_NONE)
#define NO_ATTEMPT BIT(BELAY_ATTEMPT_NONE)
#define FIRST BIT(BELAY_PENDING_FIRST_ATTEMPT)
#define RUNNING BIT(BELAY_RUNNING_ATTEMPT)
#define INTERRUPTED BIT(BELAY_ATTEMPT_INTERRUPTED)
#define AGAIN (BIT(BELAY_PENDING_RETRY_ATTEMPT) | BIT(BELAY_PENDING_REPLAY_ATTEMPT))
#define ENDED BIT(BELAY_ATTEMPT_TERMINAL)

/* From: phase, ownership, eligibility, blocking, outcome, attempt. */
#define HELD                               \
    {                                      \
        ACTIVE, LEASED, ANY, ANY, ANY, ANY \
    }
#define WAITING(attempts)                               \
    {                                                   \
        RUNNABLE, UNOWNED, ELIGIBLE, ANY, ANY, attempts \
    }
#define PAUSED                             \
    {                                      \
        SUSPENDED, ANY, ANY, ANY, ANY, ANY \
    }
#define UNENDED(attempts)                          \
    {                                              \
        NOT_TERMINAL, ANY, ANY, ANY, ANY, attempts \
    }

/* To, likewise. */
#define READY(attempt)                                               \
    {                                                                \
        RUNNABLE, UNOWNED, ELIGIBLE, FOR_WORKER, NO_OUTCOME, attempt \
    }
#define LATER(reason, attempt)                                          \
    {                                                                   \
        RUNNABLE, UNOWNED, UNTIL_TIME, BIT(reason), NO_OUTCOME, attempt \
    }
#define BLOCKED(by, reason, attempt)                                 \
    {                                                                \
        RUNNABLE, UNOWNED, BIT(by), BIT(reason), NO_OUTCOME, attempt \
    }
#define WORKED_ON                                                      \
    {                                                                  \
        ACTIVE, LEASED, NO_ELIGIBILITY, NO_REASON, NO_OUTCOME, RUNNING \
    }
#define LOST_BY(how)                                                \
    {                                                               \
        ACTIVE, BIT(how), KEPT, FOR_WORKER, NO_OUTCOME, INTERRUPTED \
    }
#define OVER(outcome, attempt)                                              \
    {                                                                       \
        TERMINAL, UNOWNED, NO_ELIGIBILITY, NO_REASON, BIT(outcome), attempt \
    }

/* --- the table --- */

/* clang-format off */
static const struct step_rule rules[] = {
    { STEP_CREATE,            { 0 },  READY(FIRST) },
    { STEP_CREATE_DELAYED,    { 0 },  LATER(BELAY_WAITING_FOR_DELAY, FIRST) },
    { STEP_PROMOTE,           { RUNNABLE, UNOWNED, UNTIL_TIME, ANY, ANY, ANY }, READY(KEPT) },
    { STEP_APPLY_EDGE,        { RUNNABLE, ANY, ANY, ANY, ANY, ANY },
                              { RUNNABLE, KEPT, ON_DEPENDENCIES, FOR_CHILDREN, NO_OUTCOME, KEPT } },
    { STEP_DEPS_SATISFIED,    { RUNNABLE, UNOWNED, ON_DEPENDENCIES, ANY, ANY, ANY }, READY(KEPT) },
    { STEP_DEPS_IMPOSSIBLE,   UNENDED(RUNNING | INTERRUPTED), OVER(BELAY_TERMINAL_SKIPPED, ENDED) },
    { STEP_DEPS_IMPOSSIBLE,   UNENDED(NO_ATTEMPT | FIRST | AGAIN), OVER(BELAY_TERMINAL_SKIPPED, NO_ATTEMPT) },
    { STEP_BLOCK_BUDGET,      WAITING(ANY), BLOCKED(BELAY_BLOCKED_BY_BUDGET, BELAY_WAITING_FOR_BUDGET, KEPT) },
    { STEP_BLOCK_QUOTA,       WAITING(ANY), BLOCKED(BELAY_BLOCKED_BY_QUOTA, BELAY_WAITING_FOR_QUOTA, KEPT) },
    { STEP_BLOCK_ROUTE,       WAITING(ANY), BLOCKED(BELAY_BLOCKED_BY_ROUTE, BELAY_WAITING_FOR_CAPABLE_WORKER, KEPT) },
    { STEP_BLOCK_LANE_STATE,  WAITING(ANY), BLOCKED(BELAY_BLOCKED_BY_LANE_STATE, BELAY_PAUSED_BY_POLICY, KEPT) },
    { STEP_BLOCK_OPERATOR,    WAITING(ANY), BLOCKED(BELAY_BLOCKED_BY_OPERATOR, BELAY_PAUSED_BY_OPERATOR, KEPT) },
    { STEP_UNBLOCK,           { RUNNABLE, UNOWNED, ON_ADMISSION, ANY, ANY, ANY }, READY(KEPT) },
    { STEP_CLAIM,             WAITING(FIRST | AGAIN), WORKED_ON },
    { STEP_CLAIM_RESUMED,     WAITING(INTERRUPTED), WORKED_ON },
    { STEP_RECLAIM,           { ACTIVE, LOST, ANY, ANY, ANY, ANY }, WORKED_ON },
    { STEP_COMPLETE,          HELD, OVER(BELAY_TERMINAL_SUCCESS, ENDED) },
    { STEP_RETRY,             HELD, LATER(BELAY_WAITING_FOR_RETRY_BACKOFF, BIT(BELAY_PENDING_RETRY_ATTEMPT)) },
    { STEP_DELAY,             HELD, LATER(BELAY_WAITING_FOR_DELAY, INTERRUPTED) },
    { STEP_WAIT_CHILDREN,     HELD, BLOCKED(BELAY_BLOCKED_BY_DEPENDENCIES, BELAY_WAITING_FOR_CHILDREN, INTERRUPTED) },
    { STEP_FAIL,              HELD, OVER(BELAY_TERMINAL_FAILED, ENDED) },
    { STEP_SUSPEND,           HELD, { SUSPENDED, UNOWNED, NO_ELIGIBILITY, ON_PURPOSE, NO_OUTCOME, INTERRUPTED } },
    { STEP_RESUME,            PAUSED, READY(INTERRUPTED) },
    { STEP_RESUME_DELAYED,    PAUSED, LATER(BELAY_WAITING_FOR_RESUME_DELAY, INTERRUPTED) },
    { STEP_SUSPENSION_FAIL,   PAUSED, OVER(BELAY_TERMINAL_FAILED, ENDED) },
    { STEP_SUSPENSION_CANCEL, PAUSED, OVER(BELAY_TERMINAL_CANCELLED, ENDED) },
    { STEP_SUSPENSION_EXPIRE, PAUSED, OVER(BELAY_TERMINAL_EXPIRED, ENDED) },
    { STEP_LEASE_EXPIRE,      HELD, LOST_BY(BELAY_LEASE_EXPIRED_RECLAIMABLE) },
    { STEP_REVOKE,            HELD, LOST_BY(BELAY_LEASE_REVOKED) },
    { STEP_RECLAIM_CAPPED,    { ACTIVE, LEASED | LOST, ANY, ANY, ANY, ANY }, OVER(BELAY_TERMINAL_FAILED, ENDED) },
    { STEP_CANCEL,            UNENDED(RUNNING | INTERRUPTED | AGAIN), OVER(BELAY_TERMINAL_CANCELLED, ENDED) },
    { STEP_CANCEL,            UNENDED(NO_ATTEMPT | FIRST), OVER(BELAY_TERMINAL_CANCELLED, KEPT) },
    { STEP_EXPIRE,            UNENDED(RUNNING | INTERRUPTED | AGAIN), OVER(BELAY_TERMINAL_EXPIRED, ENDED) },
    { STEP_EXPIRE,            UNENDED(NO_ATTEMPT | FIRST), OVER(BELAY_TERMINAL_EXPIRED, KEPT) },
    { STEP_REPLAY,            { TERMINAL, ANY, ANY, ANY, ANY, ANY }, READY(BIT(BELAY_PENDING_REPLAY_ATTEMPT)) },
    { STEP_REPLAY_BLOCKED,    { TERMINAL, ANY, ANY, ANY, BIT(BELAY_TERMINAL_SKIPPED), ANY },
                              BLOCKED(BELAY_BLOCKED_BY_DEPENDENCIES, BELAY_WAITING_FOR_CHILDREN,
                                      BIT(BELAY_PENDING_REPLAY_ATTEMPT)) },
    { STEP_RELEASE,           HELD, READY(INTERRUPTED) },
};
/* clang-format on */

/* How a step is called, and what is said when the first dimension that does not fit is
 * this one.  A terminal vector is "terminal" to all that do not want one; where the phase
 * has no word here the vector's own says it ("active"). */
struct step_words {
    const char *name, *number;
    const char *phase, *ownership, *eligibility, *outcome, *attempt;
};

/* clang-format off */
static const struct step_words words[STEP_COUNT] = {
    [STEP_CREATE]            = { "create", "T1", .phase = "exists" },
    [STEP_CREATE_DELAYED]    = { "create_delayed", "T2", .phase = "exists" },
    [STEP_PROMOTE]           = { "promote", "T3", .eligibility = "not_delayed" },
    [STEP_APPLY_EDGE]        = { "apply_edge", "T4", .phase = NULL },
    [STEP_DEPS_SATISFIED]    = { "deps_satisfied", "T5", .eligibility = "not_blocked" },
    [STEP_DEPS_IMPOSSIBLE]   = { "deps_impossible", "T6", .phase = NULL },
    [STEP_BLOCK_BUDGET]      = { "block_budget", "T7", .eligibility = "not_eligible" },
    [STEP_BLOCK_QUOTA]       = { "block_quota", "T7", .eligibility = "not_eligible" },
    [STEP_BLOCK_ROUTE]       = { "block_route", "T7", .eligibility = "not_eligible" },
    [STEP_BLOCK_LANE_STATE]  = { "block_lane_state", "T7", .eligibility = "not_eligible" },
    [STEP_BLOCK_OPERATOR]    = { "block_operator", "T7", .eligibility = "not_eligible" },
    [STEP_UNBLOCK]           = { "unblock", "T8", .eligibility = "not_blocked" },
    [STEP_CLAIM]             = { "claim", "T9", .eligibility = "not_eligible", .attempt = "interrupted" },
    [STEP_CLAIM_RESUMED]     = { "claim_resumed", "T9", .eligibility = "not_eligible", .attempt = "not_interrupted" },
    [STEP_RECLAIM]           = { "reclaim", "T9", .phase = "not_active", .ownership = "leased" },
    [STEP_COMPLETE]          = { "complete", "T10", .phase = "not_active", .ownership = "not_leased" },
    [STEP_RETRY]             = { "retry", "T11", .phase = "not_active", .ownership = "not_leased" },
    [STEP_DELAY]             = { "delay", "T12", .phase = "not_active", .ownership = "not_leased" },
    [STEP_WAIT_CHILDREN]     = { "wait_children", "T13", .phase = "not_active", .ownership = "not_leased" },
    [STEP_FAIL]              = { "fail", "T14", .phase = "not_active", .ownership = "not_leased" },
    [STEP_SUSPEND]           = { "suspend", "T15", .phase = "not_active", .ownership = "not_leased" },
    [STEP_RESUME]            = { "resume", "T16", .phase = "not_suspended" },
    [STEP_RESUME_DELAYED]    = { "resume_delayed", "T16", .phase = "not_suspended" },
    [STEP_SUSPENSION_FAIL]   = { "suspension_fail", "T17", .phase = "not_suspended" },
    [STEP_SUSPENSION_CANCEL] = { "suspension_cancel", "T17", .phase = "not_suspended" },
    [STEP_SUSPENSION_EXPIRE] = { "suspension_expire", "T17", .phase = "not_suspended" },
    [STEP_LEASE_EXPIRE]      = { "lease_expire", "T18", .phase = "not_active", .ownership = "not_leased" },
    [STEP_REVOKE]            = { "revoke", "T19", .phase = "not_active", .ownership = "not_leased" },
    [STEP_RECLAIM_CAPPED]    = { "reclaim_capped", "T20", .phase = "not_active", .ownership = "not_leased" },
    [STEP_CANCEL]            = { "cancel", "T21", .phase = NULL },
    [STEP_EXPIRE]            = { "expire", "T22", .phase = NULL },
    [STEP_REPLAY]            = { "replay", "T23", .phase = "not_terminal" },
    [STEP_REPLAY_BLOCKED]    = { "replay_blocked", "T23", .phase = "not_terminal", .outcome = "not_skipped" },
    [STEP_RELEASE]           = { "release", "T24", .phase = "not_active", .ownership = "not_leased" },
};
/* clang-format on */

static const struct step_words *words_of(enum step s)
{
    static const struct step_words unknown = { .name = "?", .number = "?" };

    return (unsigned)s < STEP_COUNT ? &words[s] : &unknown;
}

const char *step_name(enum step s)
{
    return words_of(s)->name;
}

const char *step_number(enum step s)
{
    return words_of(s)->number;
}

struct step_table step_table(void)
{
    return (struct step_table){ rules, COUNT_OF(rules) };
}

/* --- dimensions by number --- */

int32_t dimension_get(const struct belay_vector *v, size_t dim)
{
    const int32_t values[VECTOR_DIMENSIONS] = { v->phase,       v->ownership,
                                                v->eligibility, v->blocking,
                                                v->outcome,     v->attempt };

    return values[dim];
}

int dimension_count(size_t dim)
{
    return vector_count((enum belay_dimension)dim);
}

uint32_t dimension_all(size_t dim)
{
    return BIT(dimension_count(dim)) - 1;
}

static bool value_fits(uint32_t allowed, int32_t value)
{
    return value >= 0 && value < 32 && (allowed & BIT(value)) != 0;
}

static int32_t first_value(uint32_t allowed)
{
    int32_t value = 0;

    while (!value_fits(allowed, value))
        value++;
    return value;
}

/* --- taking a step --- */

bool rule_creates(const struct step_rule *r)
{
    for (size_t i = 0; i < VECTOR_DIMENSIONS; i++) {
        if (r->from[i])
            return false;
    }
    return true;
}

/* Whether a vector fits in the first n dimensions. */
static bool fits_so_far(const struct step_rule *r, const struct belay_vector *v,
                        size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!value_fits(r->from[i], dimension_get(v, i)))
            return false;
    }
    return true;
}

bool rule_fits(const struct step_rule *r, const struct belay_vector *v)
{
    return fits_so_far(r, v, VECTOR_DIMENSIONS);
}

void rule_apply(const struct step_rule *r, const struct belay_vector *from,
                struct belay_vector *out)
{
    int32_t to[VECTOR_DIMENSIONS];

    for (size_t i = 0; i < VECTOR_DIMENSIONS; i++) {
        int32_t kept = from ? dimension_get(from, i) : 0;
        to[i] = r->to[i] ? first_value(r->to[i]) : kept;
    }
    *out = (struct belay_vector){ to[0], to[1], to[2], to[3], to[4], to[5] };
}

bool step_apply(enum step s, const struct belay_vector *from, struct belay_vector *out)
{
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        const struct step_rule *r = &rules[i];
        if (r->step == s && (from ? rule_fits(r, from) : rule_creates(r))) {
            rule_apply(r, from, out);
            return true;
        }
    }
    return false;
}

/* --- why not --- */

/* The first dimension in which no row of the step fits; VECTOR_DIMENSIONS: one fits. */
static size_t first_misfit(enum step s, const struct belay_vector *v)
{
    size_t most = 0;

    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        size_t n = 0;
        while (rules[i].step == s && n < VECTOR_DIMENSIONS &&
               fits_so_far(&rules[i], v, n + 1))
            n++;
        most = n > most ? n : most;
    }
    return most;
}

static const char *phase_refusal(const struct step_words *w,
                                 const struct belay_vector *v)
{
    const char *phase = vector_name(BELAY_DIM_PHASE, v->phase);

    if (w->phase && !vector_is_terminal(v))
        return w->phase;
    return phase ? phase : "state";
}

const char *step_refusal(enum step s, const struct belay_vector *from)
{
    const struct step_words *w = words_of(s);

    if (!from)
        return "nothing";
    size_t dim = first_misfit(s, from);
    if (dim == VECTOR_DIMENSIONS)
        return NULL;
    const char *said[VECTOR_DIMENSIONS] = { phase_refusal(w, from),
                                            w->ownership,
                                            w->eligibility,
                                            NULL,
                                            w->outcome,
                                            w->attempt };
    return said[dim] ? said[dim] : "state";
}
