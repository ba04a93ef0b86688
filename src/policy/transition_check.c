#include "policy/transition_impl.h"

#define BIT(value) ((uint32_t)1 << (value))

/* --- vectors that can be --- */

/* What holds of every vector that is written, said apart from the table: which values go
 * together, and where such an execution stands and how it is called. */
struct shape {
    uint32_t values[VECTOR_DIMENSIONS];
    enum place place;
    uint32_t states;
};

#define RUNNABLE BIT(BELAY_PHASE_RUNNABLE), BIT(BELAY_UNOWNED)
#define NOT_BEGUN_OR_PAUSED                                              \
    (BIT(BELAY_PENDING_FIRST_ATTEMPT) | BIT(BELAY_ATTEMPT_INTERRUPTED) | \
     BIT(BELAY_PENDING_RETRY_ATTEMPT) | BIT(BELAY_PENDING_REPLAY_ATTEMPT))
#define UNENDED BIT(BELAY_TERMINAL_NONE)
#define PENDING UNENDED, NOT_BEGUN_OR_PAUSED
#define BLOCKED(by, reason)                     \
    {                                           \
        RUNNABLE, BIT(by), BIT(reason), PENDING \
    }

static const struct shape shapes[] = {
    { { RUNNABLE, BIT(BELAY_ELIGIBLE_NOW), BIT(BELAY_WAITING_FOR_WORKER), PENDING },
      PLACE_READY,
      BIT(BELAY_STATE_WAITING) },
    { { RUNNABLE, BIT(BELAY_NOT_ELIGIBLE_UNTIL_TIME),
        BIT(BELAY_WAITING_FOR_RETRY_BACKOFF) | BIT(BELAY_WAITING_FOR_RESUME_DELAY) |
            BIT(BELAY_WAITING_FOR_DELAY),
        PENDING },
      PLACE_DELAYED,
      BIT(BELAY_STATE_DELAYED) },
    { BLOCKED(BELAY_BLOCKED_BY_DEPENDENCIES, BELAY_WAITING_FOR_CHILDREN), PLACE_HELD,
      BIT(BELAY_STATE_WAITING_CHILDREN) },
    { BLOCKED(BELAY_BLOCKED_BY_BUDGET, BELAY_WAITING_FOR_BUDGET), PLACE_HELD,
      BIT(BELAY_STATE_RATE_LIMITED) },
    { BLOCKED(BELAY_BLOCKED_BY_QUOTA, BELAY_WAITING_FOR_QUOTA), PLACE_HELD,
      BIT(BELAY_STATE_RATE_LIMITED) },
    { BLOCKED(BELAY_BLOCKED_BY_ROUTE, BELAY_WAITING_FOR_CAPABLE_WORKER), PLACE_HELD,
      BIT(BELAY_STATE_WAITING) },
    { BLOCKED(BELAY_BLOCKED_BY_LANE_STATE, BELAY_PAUSED_BY_POLICY), PLACE_HELD,
      BIT(BELAY_STATE_WAITING) },
    { BLOCKED(BELAY_BLOCKED_BY_OPERATOR, BELAY_PAUSED_BY_OPERATOR), PLACE_HELD,
      BIT(BELAY_STATE_WAITING) },
    { { BIT(BELAY_PHASE_ACTIVE), BIT(BELAY_LEASED), BIT(BELAY_NOT_APPLICABLE),
        BIT(BELAY_BLOCKING_NONE), UNENDED, BIT(BELAY_RUNNING_ATTEMPT) },
      PLACE_LEASED,
      BIT(BELAY_STATE_ACTIVE) },
    { { BIT(BELAY_PHASE_ACTIVE),
        BIT(BELAY_LEASE_EXPIRED_RECLAIMABLE) | BIT(BELAY_LEASE_REVOKED),
        BIT(BELAY_NOT_APPLICABLE), BIT(BELAY_WAITING_FOR_WORKER), UNENDED,
        BIT(BELAY_ATTEMPT_INTERRUPTED) },
      PLACE_READY,
      BIT(BELAY_STATE_ACTIVE) },
    { { BIT(BELAY_PHASE_SUSPENDED), BIT(BELAY_UNOWNED), BIT(BELAY_NOT_APPLICABLE),
        BIT(BELAY_WAITING_FOR_SIGNAL) | BIT(BELAY_WAITING_FOR_APPROVAL) |
            BIT(BELAY_WAITING_FOR_CALLBACK) | BIT(BELAY_WAITING_FOR_TOOL_RESULT) |
            BIT(BELAY_WAITING_FOR_BUDGET) | BIT(BELAY_PAUSED_BY_OPERATOR) |
            BIT(BELAY_PAUSED_BY_POLICY),
        UNENDED, BIT(BELAY_ATTEMPT_INTERRUPTED) },
      PLACE_HELD,
      BIT(BELAY_STATE_SUSPENDED) },
    { { BIT(BELAY_PHASE_TERMINAL), BIT(BELAY_UNOWNED), BIT(BELAY_NOT_APPLICABLE),
        BIT(BELAY_BLOCKING_NONE),
        BIT(BELAY_TERMINAL_SUCCESS) | BIT(BELAY_TERMINAL_FAILED) |
            BIT(BELAY_TERMINAL_CANCELLED) | BIT(BELAY_TERMINAL_EXPIRED) |
            BIT(BELAY_TERMINAL_SKIPPED),
        BIT(BELAY_ATTEMPT_NONE) | BIT(BELAY_PENDING_FIRST_ATTEMPT) |
            BIT(BELAY_ATTEMPT_TERMINAL) },
      PLACE_DONE,
      BIT(BELAY_STATE_COMPLETED) | BIT(BELAY_STATE_FAILED) |
          BIT(BELAY_STATE_CANCELLED) | BIT(BELAY_STATE_EXPIRED) |
          BIT(BELAY_STATE_SKIPPED) },
};

static bool has_shape(const struct shape *s, const struct belay_vector *v)
{
    for (size_t i = 0; i < VECTOR_DIMENSIONS; i++) {
        if (!(s->values[i] & BIT(dimension_get(v, i))))
            return false;
    }
    return true;
}

static const char *vector_fault(const struct belay_vector *v)
{
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        if (!has_shape(&shapes[i], v))
            continue;
        if (vector_place(v) != shapes[i].place)
            return "a result stands in another place than it should";
        if (!(shapes[i].states & BIT(vector_state(v))))
            return "a result has another state than it should";
        return NULL;
    }
    return "a result that cannot be";
}

/* --- sets of vectors --- */

/* Every vector has a number; values of a dimension are counted by dimension_count. */
#define VECTORS                                                       \
    ((size_t)(BELAY_PHASE_TERMINAL + 1) * (BELAY_LEASE_REVOKED + 1) * \
     (BELAY_NOT_APPLICABLE + 1) * (BELAY_PAUSED_BY_FLOW_CANCEL + 1) * \
     (BELAY_TERMINAL_SKIPPED + 1) * (BELAY_ATTEMPT_TERMINAL + 1))

struct vector_set {
    uint64_t bits[VECTORS / 64 + 1];
};

static size_t number_of(const struct belay_vector *v)
{
    size_t number = 0;

    for (size_t i = 0; i < VECTOR_DIMENSIONS; i++)
        number = number * (size_t)dimension_count(i) + (size_t)dimension_get(v, i);
    return number;
}

static struct belay_vector vector_of(size_t number)
{
    int32_t value[VECTOR_DIMENSIONS];

    for (size_t i = VECTOR_DIMENSIONS; i-- > 0;) {
        size_t count = (size_t)dimension_count(i);
        value[i] = (int32_t)(number % count);
        number /= count;
    }
    return (struct belay_vector){ value[0], value[1], value[2],
                                  value[3], value[4], value[5] };
}

/* True when it is new. */
static bool set_add(struct vector_set *s, size_t number)
{
    uint64_t bit = (uint64_t)1 << (number % 64);
    bool added = !(s->bits[number / 64] & bit);

    s->bits[number / 64] |= bit;
    return added;
}

/* The first number from `at` on that is in the set; VECTORS: none. */
static size_t set_next(const struct vector_set *s, size_t at)
{
    while (at < VECTORS) {
        if (at % 64 == 0 && s->bits[at / 64] == 0)
            at += 64;
        else if (s->bits[at / 64] >> (at % 64) & 1)
            return at;
        else
            at++;
    }
    return VECTORS;
}

/* --- walking --- */

/* Every result of a row: a choice is the caller's, so all of them are. */
static bool add_results(const struct step_rule *r, const struct belay_vector *from,
                        struct vector_set *reached)
{
    uint32_t choice = r->to[BELAY_DIM_BLOCKING]; /* nothing else is chosen */
    bool added = false;

    do {
        struct step_rule one = *r;
        struct belay_vector v;
        one.to[BELAY_DIM_BLOCKING] = choice & ~(choice - 1);
        choice &= choice - 1;
        rule_apply(&one, from, &v);
        added = set_add(reached, number_of(&v)) || added;
    } while (choice);
    return added;
}

static bool follow_all(struct step_table t, const struct belay_vector *from,
                       struct vector_set *reached)
{
    bool added = false;

    for (size_t i = 0; i < t.n; i++) {
        const struct step_rule *r = &t.rules[i];
        if (from ? rule_fits(r, from) : rule_creates(r))
            added = add_results(r, from, reached) || added;
    }
    return added;
}

static void reach(struct step_table t, struct vector_set *out)
{
    bool added = true;

    memset(out, 0, sizeof(*out));
    (void)follow_all(t, NULL, out);
    while (added) {
        added = false;
        for (size_t at = set_next(out, 0); at < VECTORS; at = set_next(out, at + 1)) {
            struct belay_vector v = vector_of(at);
            added = follow_all(t, &v, out) || added;
        }
    }
}

size_t step_reachable_of(struct step_table t, struct belay_vector *out, size_t max)
{
    struct vector_set reached;
    size_t n = 0;

    reach(t, &reached);
    for (size_t at = set_next(&reached, 0); at < VECTORS;
         at = set_next(&reached, at + 1)) {
        if (n < max)
            out[n] = vector_of(at);
        n++;
    }
    return n;
}

size_t step_reachable(struct belay_vector *out, size_t max)
{
    return step_reachable_of(step_table(), out, max);
}

/* --- what is wrong with a row --- */

static bool is_one_of(const struct step_rule *r)
{
    return (unsigned)r->step < STEP_COUNT;
}

static bool has_values(const struct step_rule *r)
{
    for (size_t i = 0; i < VECTOR_DIMENSIONS; i++) {
        bool chosen = (r->to[i] & (r->to[i] - 1)) != 0;
        if ((r->to[i] & ~dimension_all(i)) || (chosen && i != BELAY_DIM_BLOCKING) ||
            (rule_creates(r) && !r->to[i]))
            return false;
    }
    return true;
}

static bool overlap(const struct step_rule *a, const struct step_rule *b)
{
    if (rule_creates(a) || rule_creates(b))
        return rule_creates(a) && rule_creates(b);
    for (size_t i = 0; i < VECTOR_DIMENSIONS; i++) {
        if (!(a->from[i] & b->from[i] & dimension_all(i)))
            return false;
    }
    return true;
}

static const char *row_fault(struct step_table t, size_t at)
{
    const struct step_rule *r = &t.rules[at];

    if (!is_one_of(r) || !has_values(r))
        return "a value that is none";
    for (size_t i = 0; i < at; i++) {
        if (t.rules[i].step == r->step && overlap(&t.rules[i], r))
            return "two rows of a step fit one vector";
    }
    return NULL;
}

static const char *rows_fault(struct step_table t, enum step *out_step)
{
    bool has_row[STEP_COUNT] = { false };

    for (size_t i = 0; i < t.n; i++) {
        const char *fault = row_fault(t, i);
        *out_step = t.rules[i].step;
        if (fault)
            return fault;
        has_row[t.rules[i].step] = true;
    }
    for (size_t i = 0; i < STEP_COUNT; i++) {
        *out_step = (enum step)i;
        if (!has_row[i])
            return "a step without a row";
    }
    return NULL;
}

/* --- what is wrong with the walk --- */

/* Whether a step that is taken in the ordinary course leads on from v: to anything else
 * that is not an end, or to success. */
static bool leads_on(const struct step_rule *r, const struct belay_vector *v)
{
    struct belay_vector to;

    rule_apply(r, v, &to);
    return !vector_eq(&to, v) &&
           (!vector_is_terminal(&to) || to.outcome == BELAY_TERMINAL_SUCCESS);
}

/* A terminal vector begins anew with an attempt that is a replay, and not otherwise. */
static bool begins_anew(const struct step_rule *r)
{
    return (r->step == STEP_REPLAY || r->step == STEP_REPLAY_BLOCKED) &&
           r->to[BELAY_DIM_PHASE] == BIT(BELAY_PHASE_RUNNABLE) &&
           r->to[BELAY_DIM_ATTEMPT_STATE] == BIT(BELAY_PENDING_REPLAY_ATTEMPT);
}

static const char *leave_fault(struct step_table t, const struct belay_vector *v,
                               bool *used, enum step *out_step)
{
    bool ends = vector_is_terminal(v), goes_on = ends;

    for (size_t i = 0; i < t.n; i++) {
        const struct step_rule *r = &t.rules[i];
        if (!rule_fits(r, v))
            continue;
        used[i] = true;
        *out_step = r->step;
        if (ends && !begins_anew(r))
            return "a terminal vector is left by something else than a replay";
        goes_on = goes_on || leads_on(r, v);
    }
    return goes_on ? NULL : "a vector that can only end";
}

#define RULES_MAX 256

static const char *walk_fault(struct step_table t, enum step *out_step)
{
    bool used[RULES_MAX] = { false };
    struct vector_set reached;

    reach(t, &reached);
    for (size_t at = set_next(&reached, 0); at < VECTORS;
         at = set_next(&reached, at + 1)) {
        struct belay_vector v = vector_of(at);
        const char *fault = vector_fault(&v);
        if (!fault)
            fault = leave_fault(t, &v, used, out_step);
        if (fault)
            return fault;
    }
    for (size_t i = 0; i < t.n; i++) {
        *out_step = t.rules[i].step;
        if (!used[i] && !rule_creates(&t.rules[i]))
            return "a row that no vector comes to";
    }
    return NULL;
}

const char *step_fault_of(struct step_table t, enum step *out_step)
{
    enum step unused = STEP_COUNT;
    enum step *about = out_step ? out_step : &unused;
    const char *fault = t.n > RULES_MAX ? "too many rows" : rows_fault(t, about);

    return fault ? fault : walk_fault(t, about);
}

const char *step_table_fault(void)
{
    return step_fault_of(step_table(), NULL);
}
