/* The state of an execution: names, the derived state, the one place it stands in. */
#include "policy/vector.h"
#include "tap.h"

static const struct {
    enum belay_dimension dim;
    int first, count;
    const char *names; /* in order */
} dimensions[] = {
    { BELAY_DIM_PHASE, 0, 5, "submitted runnable active suspended terminal " },
    { BELAY_DIM_OWNERSHIP, 0, 4,
      "unowned leased lease_expired_reclaimable lease_revoked " },
    { BELAY_DIM_ELIGIBILITY, 0, 9,
      ("eligible_now not_eligible_until_time blocked_by_dependencies "
       "blocked_by_budget blocked_by_quota blocked_by_route blocked_by_lane_state "
       "blocked_by_operator not_applicable ") },
    { BELAY_DIM_BLOCKING, 0, 17,
      ("none waiting_for_worker waiting_for_retry_backoff waiting_for_resume_delay "
       "waiting_for_delay waiting_for_signal waiting_for_approval "
       "waiting_for_callback waiting_for_tool_result waiting_for_children "
       "waiting_for_budget waiting_for_quota waiting_for_capable_worker "
       "waiting_for_locality_match paused_by_operator paused_by_policy "
       "paused_by_flow_cancel ") },
    { BELAY_DIM_OUTCOME, 0, 6, "none success failed cancelled expired skipped " },
    { BELAY_DIM_ATTEMPT_STATE, 0, 7,
      ("none pending_first_attempt running_attempt attempt_interrupted "
       "pending_retry_attempt pending_replay_attempt attempt_terminal ") },
    { BELAY_DIM_STATE, 1, 12,
      ("waiting delayed rate_limited waiting_children active suspended resumable "
       "completed failed cancelled expired skipped ") },
    { BELAY_DIM_ATTEMPT_TYPE, 0, 5, "initial retry reclaim replay fallback " },
    { BELAY_DIM_ATTEMPT_END, 0, 6,
      ("started suspended ended_success ended_failure ended_cancelled "
       "interrupted_reclaimed ") },
    { BELAY_DIM_HANDLE_KIND, 0, 4, "fresh resumed suspended reclaimed " },
    { BELAY_DIM_FAILURE_CLASS, 1, 5,
      "transient permanent infra_crash timeout cancelled " },
    { BELAY_DIM_FRAME_KIND, 0, 4, "stdout stderr event blob " },
    { BELAY_DIM_FRAME_MODE, 0, 1, "durable " },
    { BELAY_DIM_EVENT, 0, 7,
      ("completion acquired released expired revoked reclaimed "
       "replay_initiated ") },
};

static void test_names(struct tap *t)
{
    TAP_EQ(t, sizeof(dimensions) / sizeof(dimensions[0]), BELAY_DIM_COUNT);
    for (size_t i = 0; i < BELAY_DIM_COUNT; i++) {
        char all[512] = "";
        size_t len = 0;

        TAP_EQ(t, dimensions[i].dim, i);
        TAP_EQ(t, vector_count(dimensions[i].dim), dimensions[i].count);
        for (int v = -1; v <= dimensions[i].first + dimensions[i].count; v++) {
            const char *name = vector_name(dimensions[i].dim, v);
            bool is_one = v >= dimensions[i].first &&
                          v < dimensions[i].first + dimensions[i].count;
            TAP_EQ(t, name != NULL, is_one);
            if (name)
                len += (size_t)snprintf(all + len, sizeof(all) - len, "%s ", name);
        }
        TAP_STR(t, all, dimensions[i].names);
    }
    TAP_STR(t, vector_name(BELAY_DIM_COUNT, 0), NULL);
    TAP_STR(t, vector_name((enum belay_dimension)99, 0), NULL);
    TAP_EQ(t, vector_count(BELAY_DIM_COUNT), 0);
}

static void test_parse(struct tap *t)
{
    int value = 77;

    for (size_t i = 0; i < BELAY_DIM_COUNT; i++) {
        for (int v = 0; v <= dimensions[i].count; v++) {
            const char *name = vector_name(dimensions[i].dim, v);
            int back = -1;
            if (!name)
                continue;
            TAP_OK(t, vector_parse(dimensions[i].dim, bytes_str(name), &back));
            TAP_EQ(t, back, v);
        }
    }
    TAP_OK(t, !vector_parse(BELAY_DIM_PHASE, bytes_str("Runnable"), &value));
    TAP_OK(t, !vector_parse(BELAY_DIM_PHASE, bytes_str("runnabl"), &value));
    TAP_OK(t, !vector_parse(BELAY_DIM_PHASE, bytes_str("runnable "), &value));
    TAP_OK(t, !vector_parse(BELAY_DIM_PHASE, bytes_str("leased"), &value));
    TAP_OK(t, !vector_parse(BELAY_DIM_STATE, bytes_of(NULL, 0), &value));
    TAP_OK(t, !vector_parse(BELAY_DIM_COUNT, bytes_str("runnable"), &value));
    TAP_EQ(t, value, 77);
}

/* phase, eligibility, outcome -> state */
static const struct {
    int32_t phase, eligibility, outcome;
    enum belay_state want;
} derived[] = {
    { BELAY_PHASE_TERMINAL, 8, BELAY_TERMINAL_SUCCESS, BELAY_STATE_COMPLETED },
    { BELAY_PHASE_TERMINAL, 8, BELAY_TERMINAL_FAILED, BELAY_STATE_FAILED },
    { BELAY_PHASE_TERMINAL, 8, BELAY_TERMINAL_CANCELLED, BELAY_STATE_CANCELLED },
    { BELAY_PHASE_TERMINAL, 8, BELAY_TERMINAL_EXPIRED, BELAY_STATE_EXPIRED },
    { BELAY_PHASE_TERMINAL, 8, BELAY_TERMINAL_SKIPPED, BELAY_STATE_SKIPPED },
    { BELAY_PHASE_TERMINAL, 8, BELAY_TERMINAL_NONE, BELAY_STATE_FAILED },
    { BELAY_PHASE_SUSPENDED, 8, 0, BELAY_STATE_SUSPENDED },
    { BELAY_PHASE_ACTIVE, 8, 0, BELAY_STATE_ACTIVE },
    { BELAY_PHASE_RUNNABLE, BELAY_ELIGIBLE_NOW, 0, BELAY_STATE_WAITING },
    { BELAY_PHASE_RUNNABLE, BELAY_NOT_ELIGIBLE_UNTIL_TIME, 0, BELAY_STATE_DELAYED },
    { BELAY_PHASE_RUNNABLE, BELAY_BLOCKED_BY_DEPENDENCIES, 0,
      BELAY_STATE_WAITING_CHILDREN },
    { BELAY_PHASE_RUNNABLE, BELAY_BLOCKED_BY_BUDGET, 0, BELAY_STATE_RATE_LIMITED },
    { BELAY_PHASE_RUNNABLE, BELAY_BLOCKED_BY_QUOTA, 0, BELAY_STATE_RATE_LIMITED },
    { BELAY_PHASE_RUNNABLE, BELAY_BLOCKED_BY_ROUTE, 0, BELAY_STATE_WAITING },
    { BELAY_PHASE_RUNNABLE, BELAY_BLOCKED_BY_LANE_STATE, 0, BELAY_STATE_WAITING },
    { BELAY_PHASE_RUNNABLE, BELAY_BLOCKED_BY_OPERATOR, 0, BELAY_STATE_WAITING },
    { BELAY_PHASE_RUNNABLE, BELAY_NOT_APPLICABLE, 0, BELAY_STATE_WAITING },
    { BELAY_PHASE_SUBMITTED, BELAY_ELIGIBLE_NOW, 0, BELAY_STATE_WAITING },
};

/* Nothing but these three dimensions has a say. */
static void test_state(struct tap *t)
{
    for (size_t i = 0; i < sizeof(derived) / sizeof(derived[0]); i++) {
        for (int32_t own = 0; own < 4; own++) {
            for (int32_t rest = 0; rest < 17 * 7; rest++) {
                struct belay_vector v = {
                    .phase = derived[i].phase,
                    .ownership = own,
                    .eligibility = derived[i].eligibility,
                    .blocking = rest % 17,
                    .outcome = derived[i].outcome,
                    .attempt = rest / 17,
                };
                if (!TAP_EQ(t, vector_state(&v), derived[i].want))
                    return;
            }
        }
    }
}

static void test_total(struct tap *t)
{
    for (int32_t phase = -1; phase <= 5; phase++) {
        for (int32_t eligibility = -1; eligibility <= 9; eligibility++) {
            for (int32_t outcome = -1; outcome <= 6; outcome++) {
                struct belay_vector v = { .phase = phase,
                                          .eligibility = eligibility,
                                          .outcome = outcome };
                enum belay_state s = vector_state(&v);
                TAP_OK(t, s >= BELAY_STATE_WAITING && s <= BELAY_STATE_SKIPPED);
                TAP_OK(t, vector_place(&v) <= PLACE_DONE);
            }
        }
    }
}

/* The rule once more, as a sentence for each place. */
static enum place place_by_rule(const struct belay_vector *v)
{
    bool lost = v->ownership == BELAY_LEASE_EXPIRED_RECLAIMABLE ||
                v->ownership == BELAY_LEASE_REVOKED;
    bool runnable = v->phase == BELAY_PHASE_RUNNABLE;
    bool active = v->phase == BELAY_PHASE_ACTIVE;

    if (v->phase == BELAY_PHASE_TERMINAL)
        return PLACE_DONE;
    if ((runnable && v->eligibility == BELAY_ELIGIBLE_NOW) || (active && lost))
        return PLACE_READY;
    if (active && v->ownership == BELAY_LEASED)
        return PLACE_LEASED;
    if (runnable && v->eligibility == BELAY_NOT_ELIGIBLE_UNTIL_TIME)
        return PLACE_DELAYED;
    return PLACE_HELD;
}

static void test_place(struct tap *t)
{
    unsigned seen[PLACE_DONE + 1] = { 0 };

    for (int32_t i = 0; i < 5 * 4 * 9; i++) {
        struct belay_vector v = { .phase = i % 5,
                                  .ownership = i / 5 % 4,
                                  .eligibility = i / 20,
                                  .outcome = i % 5 == 4 ? 1 : 0 };
        TAP_EQ(t, vector_place(&v), place_by_rule(&v));
        seen[vector_place(&v)]++;
    }
    for (size_t i = 0; i <= PLACE_DONE; i++)
        TAP_OK(t, seen[i] > 0);
}

static void test_eq(struct tap *t)
{
    struct belay_vector a = { 1, 0, 0, 1, 0, 1 }, b = a;
    int32_t *members[] = { &b.phase,    &b.ownership, &b.eligibility,
                           &b.blocking, &b.outcome,   &b.attempt };

    TAP_OK(t, vector_eq(&a, &b));
    for (size_t i = 0; i < 6; i++) {
        (*members[i])++;
        TAP_OK(t, !vector_eq(&a, &b));
        (*members[i])--;
    }
    TAP_OK(t, !vector_is_terminal(&a));
    a.phase = BELAY_PHASE_TERMINAL;
    TAP_OK(t, vector_is_terminal(&a));
}

static const struct tap_case cases[] = {
    { "every value has its name, and numbers that are none have none", test_names },
    { "names are read back exactly; what is no name leaves the number alone",
      test_parse },
    { "V1: the public state follows from phase, eligibility and outcome alone",
      test_state },
    { "state and place are total, also over numbers that are no values", test_total },
    { "a vector stands in exactly one place", test_place },
    { "vectors are equal in all six dimensions or not equal", test_eq },
};

int main(int argc, char **argv)
{
    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
