/* The table of transitions: every row of it, what it refuses, and that its check finds
 * what is wrong with a table. */
#include "policy/transition_impl.h"
#include "tap.h"

/* --- vectors as text --- */

static const char *text_of(const struct belay_vector *v, char out[256])
{
    (void)snprintf(out, 256, "%s/%s/%s/%s/%s/%s",
                   vector_name(BELAY_DIM_PHASE, v->phase),
                   vector_name(BELAY_DIM_OWNERSHIP, v->ownership),
                   vector_name(BELAY_DIM_ELIGIBILITY, v->eligibility),
                   vector_name(BELAY_DIM_BLOCKING, v->blocking),
                   vector_name(BELAY_DIM_OUTCOME, v->outcome),
                   vector_name(BELAY_DIM_ATTEMPT_STATE, v->attempt));
    return out;
}

static struct belay_vector vector_from(struct tap *t, const char *text)
{
    int value[6] = { 0 };
    const char *at = text;

    for (size_t i = 0; i < 6; i++) {
        size_t len = strcspn(at, "/");
        TAP_OK(t, vector_parse((enum belay_dimension)i, bytes_of(at, len), &value[i]));
        at += len + (at[len] == '/');
    }
    return (struct belay_vector){ value[0], value[1], value[2],
                                  value[3], value[4], value[5] };
}

/* --- the table of the specification, by itself --- */

#define WAITS(attempt) "runnable/unowned/eligible_now/waiting_for_worker/none/" attempt
#define DELAYED(reason, attempt) \
    "runnable/unowned/not_eligible_until_time/" reason "/none/" attempt
#define CHILDREN(attempt) \
    "runnable/unowned/blocked_by_dependencies/waiting_for_children/none/" attempt
#define BLOCKED(by, reason, attempt) "runnable/unowned/" by "/" reason "/none/" attempt
#define RUNS "active/leased/not_applicable/none/none/running_attempt"
#define EXPIRED                                                                \
    "active/lease_expired_reclaimable/not_applicable/waiting_for_worker/none/" \
    "attempt_interrupted"
#define REVOKED \
    "active/lease_revoked/not_applicable/waiting_for_worker/none/attempt_interrupted"
#define SUSPENDED \
    "suspended/unowned/not_applicable/waiting_for_signal/none/attempt_interrupted"
#define OVER(outcome, attempt) \
    "terminal/unowned/not_applicable/none/" outcome "/" attempt
#define FIRST "pending_first_attempt"
#define RETRY "pending_retry_attempt"
#define REPLAY "pending_replay_attempt"
#define PAUSED "attempt_interrupted"
#define ENDED "attempt_terminal"

static const struct {
    enum step step;
    const char *from, *to; /* from NULL: creates; to NULL: refused */
    const char *state;     /* or why it is refused */
} steps[] = {
    { STEP_CREATE, NULL, WAITS(FIRST), "waiting" },
    { STEP_CREATE, WAITS(FIRST), NULL, "exists" },
    { STEP_CREATE_DELAYED, NULL, DELAYED("waiting_for_delay", FIRST), "delayed" },
    { STEP_PROMOTE, DELAYED("waiting_for_delay", FIRST), WAITS(FIRST), "waiting" },
    { STEP_PROMOTE, DELAYED("waiting_for_retry_backoff", RETRY), WAITS(RETRY),
      "waiting" },
    { STEP_PROMOTE, DELAYED("waiting_for_delay", PAUSED), WAITS(PAUSED), "waiting" },
    { STEP_PROMOTE, DELAYED("waiting_for_resume_delay", PAUSED), WAITS(PAUSED),
      "waiting" },
    { STEP_PROMOTE, WAITS(FIRST), NULL, "not_delayed" },
    { STEP_PROMOTE, RUNS, NULL, "active" },
    { STEP_PROMOTE, NULL, NULL, "nothing" },
    { STEP_APPLY_EDGE, WAITS(FIRST), CHILDREN(FIRST), "waiting_children" },
    { STEP_APPLY_EDGE, DELAYED("waiting_for_delay", FIRST), CHILDREN(FIRST),
      "waiting_children" },
    { STEP_APPLY_EDGE, RUNS, NULL, "active" },
    { STEP_APPLY_EDGE, SUSPENDED, NULL, "suspended" },
    { STEP_DEPS_SATISFIED, CHILDREN(FIRST), WAITS(FIRST), "waiting" },
    { STEP_DEPS_SATISFIED, CHILDREN(PAUSED), WAITS(PAUSED), "waiting" },
    { STEP_DEPS_SATISFIED, WAITS(FIRST), NULL, "not_blocked" },
    { STEP_DEPS_IMPOSSIBLE, CHILDREN(FIRST), OVER("skipped", "none"), "skipped" },
    { STEP_DEPS_IMPOSSIBLE, CHILDREN(PAUSED), OVER("skipped", ENDED), "skipped" },
    { STEP_DEPS_IMPOSSIBLE, RUNS, OVER("skipped", ENDED), "skipped" },
    { STEP_DEPS_IMPOSSIBLE, OVER("success", ENDED), NULL, "terminal" },
    { STEP_BLOCK_BUDGET, WAITS(FIRST),
      BLOCKED("blocked_by_budget", "waiting_for_budget", FIRST), "rate_limited" },
    { STEP_BLOCK_QUOTA, WAITS(RETRY),
      BLOCKED("blocked_by_quota", "waiting_for_quota", RETRY), "rate_limited" },
    { STEP_BLOCK_ROUTE, WAITS(FIRST),
      BLOCKED("blocked_by_route", "waiting_for_capable_worker", FIRST), "waiting" },
    { STEP_BLOCK_LANE_STATE, WAITS(FIRST),
      BLOCKED("blocked_by_lane_state", "paused_by_policy", FIRST), "waiting" },
    { STEP_BLOCK_OPERATOR, WAITS(PAUSED),
      BLOCKED("blocked_by_operator", "paused_by_operator", PAUSED), "waiting" },
    { STEP_BLOCK_OPERATOR, CHILDREN(FIRST), NULL, "not_eligible" },
    { STEP_UNBLOCK, BLOCKED("blocked_by_budget", "waiting_for_budget", FIRST),
      WAITS(FIRST), "waiting" },
    { STEP_UNBLOCK, BLOCKED("blocked_by_lane_state", "paused_by_policy", FIRST),
      WAITS(FIRST), "waiting" },
    { STEP_UNBLOCK, CHILDREN(FIRST), NULL, "not_blocked" },
    { STEP_CLAIM, WAITS(FIRST), RUNS, "active" },
    { STEP_CLAIM, WAITS(RETRY), RUNS, "active" },
    { STEP_CLAIM, WAITS(REPLAY), RUNS, "active" },
    { STEP_CLAIM, WAITS(PAUSED), NULL, "interrupted" },
    { STEP_CLAIM, DELAYED("waiting_for_delay", FIRST), NULL, "not_eligible" },
    { STEP_CLAIM, RUNS, NULL, "active" },
    { STEP_CLAIM, EXPIRED, NULL, "active" },
    { STEP_CLAIM, OVER("failed", ENDED), NULL, "terminal" },
    { STEP_CLAIM_RESUMED, WAITS(PAUSED), RUNS, "active" },
    { STEP_CLAIM_RESUMED, WAITS(FIRST), NULL, "not_interrupted" },
    { STEP_RECLAIM, EXPIRED, RUNS, "active" },
    { STEP_RECLAIM, REVOKED, RUNS, "active" },
    { STEP_RECLAIM, RUNS, NULL, "leased" },
    { STEP_RECLAIM, WAITS(FIRST), NULL, "not_active" },
    { STEP_COMPLETE, RUNS, OVER("success", ENDED), "completed" },
    { STEP_COMPLETE, EXPIRED, NULL, "not_leased" },
    { STEP_COMPLETE, REVOKED, NULL, "not_leased" },
    { STEP_COMPLETE, WAITS(PAUSED), NULL, "not_active" },
    { STEP_COMPLETE, SUSPENDED, NULL, "not_active" },
    { STEP_COMPLETE, OVER("success", ENDED), NULL, "terminal" },
    { STEP_RETRY, RUNS, DELAYED("waiting_for_retry_backoff", RETRY), "delayed" },
    { STEP_DELAY, RUNS, DELAYED("waiting_for_delay", PAUSED), "delayed" },
    { STEP_WAIT_CHILDREN, RUNS, CHILDREN(PAUSED), "waiting_children" },
    { STEP_FAIL, RUNS, OVER("failed", ENDED), "failed" },
    { STEP_FAIL, EXPIRED, NULL, "not_leased" },
    { STEP_FAIL, WAITS(FIRST), NULL, "not_active" },
    { STEP_SUSPEND, RUNS, SUSPENDED, "suspended" },
    { STEP_RESUME, SUSPENDED, WAITS(PAUSED), "waiting" },
    { STEP_RESUME, RUNS, NULL, "not_suspended" },
    { STEP_RESUME_DELAYED, SUSPENDED, DELAYED("waiting_for_resume_delay", PAUSED),
      "delayed" },
    { STEP_SUSPENSION_FAIL, SUSPENDED, OVER("failed", ENDED), "failed" },
    { STEP_SUSPENSION_CANCEL, SUSPENDED, OVER("cancelled", ENDED), "cancelled" },
    { STEP_SUSPENSION_EXPIRE, SUSPENDED, OVER("expired", ENDED), "expired" },
    { STEP_LEASE_EXPIRE, RUNS, EXPIRED, "active" },
    { STEP_LEASE_EXPIRE, REVOKED, NULL, "not_leased" },
    { STEP_REVOKE, RUNS, REVOKED, "active" },
    { STEP_REVOKE, EXPIRED, NULL, "not_leased" },
    { STEP_REVOKE, WAITS(FIRST), NULL, "not_active" },
    { STEP_RECLAIM_CAPPED, RUNS, OVER("failed", ENDED), "failed" },
    { STEP_RECLAIM_CAPPED, EXPIRED, OVER("failed", ENDED), "failed" },
    { STEP_RECLAIM_CAPPED, REVOKED, OVER("failed", ENDED), "failed" },
    { STEP_CANCEL, WAITS(FIRST), OVER("cancelled", FIRST), "cancelled" },
    { STEP_CANCEL, WAITS(RETRY), OVER("cancelled", ENDED), "cancelled" },
    { STEP_CANCEL, WAITS(REPLAY), OVER("cancelled", ENDED), "cancelled" },
    { STEP_CANCEL, DELAYED("waiting_for_delay", PAUSED), OVER("cancelled", ENDED),
      "cancelled" },
    { STEP_CANCEL, RUNS, OVER("cancelled", ENDED), "cancelled" },
    { STEP_CANCEL, EXPIRED, OVER("cancelled", ENDED), "cancelled" },
    { STEP_CANCEL, SUSPENDED, OVER("cancelled", ENDED), "cancelled" },
    { STEP_CANCEL, OVER("success", ENDED), NULL, "terminal" },
    { STEP_EXPIRE, WAITS(FIRST), OVER("expired", FIRST), "expired" },
    { STEP_EXPIRE, RUNS, OVER("expired", ENDED), "expired" },
    { STEP_EXPIRE, OVER("cancelled", FIRST), NULL, "terminal" },
    { STEP_REPLAY, OVER("success", ENDED), WAITS(REPLAY), "waiting" },
    { STEP_REPLAY, OVER("cancelled", FIRST), WAITS(REPLAY), "waiting" },
    { STEP_REPLAY, OVER("skipped", "none"), WAITS(REPLAY), "waiting" },
    { STEP_REPLAY, RUNS, NULL, "not_terminal" },
    { STEP_REPLAY_BLOCKED, OVER("skipped", "none"), CHILDREN(REPLAY),
      "waiting_children" },
    { STEP_REPLAY_BLOCKED, OVER("failed", ENDED), NULL, "not_skipped" },
    { STEP_RELEASE, RUNS, WAITS(PAUSED), "waiting" },
    { STEP_RELEASE, EXPIRED, NULL, "not_leased" },
};

static void try_step(struct tap *t, size_t i)
{
    struct belay_vector from = { 0 }, out = { 9, 9, 9, 9, 9, 9 };
    const struct belay_vector untouched = out;
    const struct belay_vector *begin = NULL;
    char text[256];

    if (steps[i].from) {
        from = vector_from(t, steps[i].from);
        begin = &from;
    }
    bool taken = step_apply(steps[i].step, begin, &out);
    TAP_EQ(t, taken, steps[i].to != NULL);
    if (!steps[i].to) {
        TAP_OK(t, vector_eq(&out, &untouched));
        TAP_STR(t, step_refusal(steps[i].step, begin), steps[i].state);
        return;
    }
    TAP_STR(t, text_of(&out, text), steps[i].to);
    TAP_STR(t, vector_name(BELAY_DIM_STATE, (int)vector_state(&out)), steps[i].state);
    if (begin)
        TAP_STR(t, step_refusal(steps[i].step, begin), NULL);
}

static void test_steps(struct tap *t)
{
    bool taken[STEP_COUNT] = { false };

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        unsigned failed = t->failed;
        try_step(t, i);
        if (t->failed != failed)
            printf("# %s from %s\n", step_name(steps[i].step),
                   steps[i].from ? steps[i].from : "nothing");
        taken[steps[i].step] = taken[steps[i].step] || steps[i].to;
    }
    for (size_t s = 0; s < STEP_COUNT; s++)
        TAP_OK(t, taken[s]);
}

static void test_alias(struct tap *t)
{
    struct belay_vector v = vector_from(t, WAITS(FIRST));
    char text[256];

    TAP_OK(t, step_apply(STEP_CLAIM, &v, &v));
    TAP_OK(t, step_apply(STEP_DELAY, &v, &v));
    TAP_OK(t, step_apply(STEP_PROMOTE, &v, &v));
    TAP_STR(t, text_of(&v, text), WAITS(PAUSED));
}

static void test_nonsense(struct tap *t)
{
    struct belay_vector v = { -1, 40, 9, 17, 6, 7 }, out;

    for (int s = -1; s <= STEP_COUNT; s++) {
        TAP_OK(t, !step_apply((enum step)s, &v, &out));
        TAP_OK(t, step_refusal((enum step)s, &v) != NULL);
        TAP_OK(t, step_name((enum step)s) != NULL);
    }
}

static void test_names(struct tap *t)
{
    TAP_STR(t, step_name(STEP_COMPLETE), "complete");
    TAP_STR(t, step_number(STEP_COMPLETE), "T10");
    TAP_STR(t, step_number(STEP_RELEASE), "T24");
    for (size_t a = 0; a < STEP_COUNT; a++) {
        for (size_t b = 0; b < a; b++)
            TAP_OK(t, strcmp(step_name((enum step)a), step_name((enum step)b)) != 0);
        TAP_EQ(t, step_number((enum step)a)[0], 'T');
    }
}

/* --- what can be reached --- */

enum { MOST = 512 };

static void test_reachable(struct tap *t)
{
    static struct belay_vector all[MOST];
    size_t n = step_reachable(all, MOST);
    unsigned states[BELAY_STATE_SKIPPED + 1] = { 0 };

    TAP_OK(t, n > 0 && n < MOST);
    TAP_EQ(t, step_reachable(NULL, 0), n);
    for (size_t i = 0; i < n; i++) {
        const struct belay_vector *v = &all[i];
        bool ended = v->phase == BELAY_PHASE_TERMINAL;
        states[vector_state(v)]++;
        TAP_EQ(t, ended, v->outcome != BELAY_TERMINAL_NONE);
        TAP_EQ(t, ended, vector_place(v) == PLACE_DONE);
        TAP_EQ(t, v->ownership == BELAY_LEASED, vector_place(v) == PLACE_LEASED);
        TAP_EQ(t, v->attempt == BELAY_RUNNING_ATTEMPT, v->ownership == BELAY_LEASED);
        for (size_t j = 0; j < i; j++)
            TAP_OK(t, !vector_eq(v, &all[j]));
    }
    for (int s = BELAY_STATE_WAITING; s <= BELAY_STATE_SKIPPED; s++)
        TAP_EQ(t, states[s] > 0, s != BELAY_STATE_RESUMABLE); /* never derived */
}

/* Whatever is reached, every step either leads to what can be reached or is refused. */
static void test_closed(struct tap *t)
{
    static struct belay_vector all[MOST];
    size_t n = step_reachable(all, MOST);

    for (size_t i = 0; i < n; i++) {
        for (int s = 0; s < STEP_COUNT; s++) {
            struct belay_vector out;
            bool found = false;
            if (!step_apply((enum step)s, &all[i], &out)) {
                TAP_OK(t, step_refusal((enum step)s, &all[i]) != NULL);
                continue;
            }
            for (size_t j = 0; j < n && !found; j++)
                found = vector_eq(&out, &all[j]);
            TAP_OK(t, found);
            if (vector_is_terminal(&all[i]))
                TAP_OK(t, s == STEP_REPLAY || s == STEP_REPLAY_BLOCKED);
        }
    }
}

/* --- the check, and tables that are wrong --- */

static struct step_rule planted[128];

static struct step_table copy(void)
{
    struct step_table t = step_table();

    memcpy(planted, t.rules, t.n * sizeof(planted[0]));
    return (struct step_table){ planted, t.n };
}

static struct step_rule *row_of(struct step_table t, enum step s)
{
    for (size_t i = 0; i < t.n; i++) {
        if (t.rules[i].step == s)
            return &planted[i];
    }
    return NULL;
}

static void expect(struct tap *t, struct step_table table, enum step s,
                   const char *what)
{
    enum step about = STEP_COUNT;

    TAP_STR(t, step_fault_of(table, &about), what);
    TAP_STR(t, step_name(about), step_name(s));
}

static void test_no_fault(struct tap *t)
{
    TAP_STR(t, step_table_fault(), NULL);
    TAP_STR(t, step_fault_of(copy(), NULL), NULL);
}

static void test_without_row(struct tap *t)
{
    struct step_table table = copy();

    table.n--; /* release is the last */
    expect(t, table, STEP_RELEASE, "a step without a row");
}

static void test_two_rows(struct tap *t)
{
    struct step_table table = copy();

    planted[table.n] = *row_of(table, STEP_COMPLETE);
    planted[table.n].from[BELAY_DIM_ATTEMPT_STATE] = 1u << BELAY_RUNNING_ATTEMPT;
    table.n++;
    expect(t, table, STEP_COMPLETE, "two rows of a step fit one vector");

    table = copy();
    planted[table.n++] = *row_of(table, STEP_CREATE);
    expect(t, table, STEP_CREATE, "two rows of a step fit one vector");
}

static void test_no_value(struct tap *t)
{
    struct step_table table = copy();

    row_of(table, STEP_FAIL)->to[BELAY_DIM_OUTCOME] = 1u << 6;
    expect(t, table, STEP_FAIL, "a value that is none");
    table = copy();
    row_of(table, STEP_FAIL)->to[BELAY_DIM_OUTCOME] = 6; /* which of the two? */
    expect(t, table, STEP_FAIL, "a value that is none");
    table = copy();
    row_of(table, STEP_CREATE)->to[BELAY_DIM_BLOCKING] = 0; /* nothing to keep */
    expect(t, table, STEP_CREATE, "a value that is none");
    table = copy();
    row_of(table, STEP_FAIL)->step = STEP_COUNT;
    expect(t, table, STEP_COUNT, "a value that is none");
}

static void test_cannot_be(struct tap *t)
{
    static const struct {
        enum step step;
        enum belay_dimension dim;
        int value;
    } wrong[] = {
        { STEP_COMPLETE, BELAY_DIM_OUTCOME, BELAY_TERMINAL_NONE },
        { STEP_COMPLETE, BELAY_DIM_OWNERSHIP, BELAY_LEASED },
        { STEP_COMPLETE, BELAY_DIM_ELIGIBILITY, BELAY_ELIGIBLE_NOW },
        { STEP_FAIL, BELAY_DIM_ATTEMPT_STATE, BELAY_RUNNING_ATTEMPT },
        { STEP_CLAIM, BELAY_DIM_OWNERSHIP, BELAY_UNOWNED },
        { STEP_CLAIM, BELAY_DIM_ATTEMPT_STATE, BELAY_PENDING_FIRST_ATTEMPT },
        { STEP_CREATE, BELAY_DIM_ELIGIBILITY, BELAY_NOT_APPLICABLE },
        { STEP_CREATE, BELAY_DIM_OUTCOME, BELAY_TERMINAL_SUCCESS },
        { STEP_CREATE, BELAY_DIM_PHASE, BELAY_PHASE_SUBMITTED },
        { STEP_RELEASE, BELAY_DIM_BLOCKING, BELAY_BLOCKING_NONE },
        { STEP_RETRY, BELAY_DIM_BLOCKING, BELAY_WAITING_FOR_WORKER },
        { STEP_BLOCK_QUOTA, BELAY_DIM_BLOCKING, BELAY_WAITING_FOR_BUDGET },
        { STEP_SUSPEND, BELAY_DIM_BLOCKING, BELAY_WAITING_FOR_CHILDREN },
        { STEP_LEASE_EXPIRE, BELAY_DIM_ELIGIBILITY, BELAY_ELIGIBLE_NOW },
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct step_table table = copy();
        row_of(table, wrong[i].step)->to[wrong[i].dim] = 1u << wrong[i].value;
        if (!TAP_STR(t, step_fault_of(table, NULL), "a result that cannot be"))
            printf("# row %zu\n", i);
    }
}

/* A lane that was paused and can never go on. */
static void test_dead_end(struct tap *t)
{
    struct step_table table = copy();

    row_of(table, STEP_UNBLOCK)->from[BELAY_DIM_ELIGIBILITY] &=
        ~(1u << BELAY_BLOCKED_BY_LANE_STATE);
    row_of(table, STEP_APPLY_EDGE)->from[BELAY_DIM_ELIGIBILITY] &=
        ~(1u << BELAY_BLOCKED_BY_LANE_STATE);
    TAP_STR(t, step_fault_of(table, NULL), "a vector that can only end");
}

static void test_terminal(struct tap *t)
{
    struct step_table table = copy();

    row_of(table, STEP_RESUME)->from[BELAY_DIM_PHASE] |= 1u << BELAY_PHASE_TERMINAL;
    expect(t, table, STEP_RESUME,
           "a terminal vector is left by something else than a replay");
    table = copy();
    row_of(table, STEP_REPLAY)->to[BELAY_DIM_ATTEMPT_STATE] =
        1u << BELAY_PENDING_FIRST_ATTEMPT;
    expect(t, table, STEP_REPLAY,
           "a terminal vector is left by something else than a replay");
}

static void test_unused(struct tap *t)
{
    struct step_table table = copy();

    row_of(table, STEP_RESUME_DELAYED)->from[BELAY_DIM_ATTEMPT_STATE] =
        1u << BELAY_RUNNING_ATTEMPT;
    expect(t, table, STEP_RESUME_DELAYED, "a row that no vector comes to");
    table = copy();
    row_of(table, STEP_EXPIRE)->from[BELAY_DIM_OUTCOME] = 0;
    expect(t, table, STEP_EXPIRE, "a row that no vector comes to");
}

/* --- drawing --- */

static void test_rows(struct tap *t)
{
    struct step_row row = { .number = NULL };
    size_t n = step_table().n;

    TAP_OK(t, step_row_at(0, &row));
    TAP_STR(t, row.number, "T1");
    TAP_STR(t, row.step, "create");
    TAP_STR(t, row.from, "nothing");
    TAP_STR(t, row.to[0], "runnable");
    TAP_STR(t, row.to[5], "pending_first_attempt");
    TAP_STR(t, row.to[6], "waiting");
    TAP_OK(t, step_row_at(2, &row));
    TAP_STR(t, row.from, "runnable / unowned / not_eligible_until_time");
    TAP_STR(t, row.to[5], "kept");
    for (size_t i = 0; i < n; i++) {
        TAP_OK(t, step_row_at(i, &row));
        TAP_OK(t, strlen(row.from) + 1 < sizeof(row.from)); /* not cut */
        for (size_t d = 0; d < 7; d++) {
            TAP_OK(t, row.to[d][0] != '\0');
            TAP_OK(t, strlen(row.to[d]) + 1 < sizeof(row.to[d]));
        }
        TAP_OK(t, strcmp(row.to[6], "derived") != 0);
        if (strcmp(row.step, "suspend") == 0)
            TAP_STR(t, row.to[3],
                    "waiting_for_signal, waiting_for_approval, waiting_for_callback, "
                    "waiting_for_tool_result, waiting_for_budget, paused_by_operator, "
                    "paused_by_policy");
    }
    TAP_OK(t, !step_row_at(n, &row));
}

static const struct tap_case cases[] = {
    { "every step leads where the specification says, or is refused with its reason",
      test_steps },
    { "a vector may be replaced by what follows it", test_alias },
    { "nothing follows what is no vector", test_nonsense },
    { "every step has a name of its own, and a number", test_names },
    { "what can be reached is sound, each vector once, and has every state",
      test_reachable },
    { "every step from what can be reached stays there; only a replay leaves an end",
      test_closed },
    { "the table has no fault", test_no_fault },
    { "a step without a row is found", test_without_row },
    { "two rows that fit one vector are found", test_two_rows },
    { "a value that is none is found", test_no_value },
    { "a result that cannot be is found", test_cannot_be },
    { "a vector that can only end is found", test_dead_end },
    { "a terminal vector that something else than a replay leaves is found",
      test_terminal },
    { "a row that no vector comes to is found", test_unused },
    { "rows are drawn in full", test_rows },
};

int main(int argc, char **argv)
{
    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
