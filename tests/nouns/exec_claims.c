/* Who gets which work: order, lanes, capabilities, batches, grants. */
#include "exec.h"

static const char *const lanes_abc[] = { "a", "b", "c" };

/* "a/1 b/0": the payloads of what was claimed, with their lanes. */
static const char *got_text(struct world *w, const struct belay_works *got)
{
    const char *out = "";

    for (size_t i = 0; i < got->n; i++)
        out = text(w, "%s%s%s/%.*s", out, i > 0 ? " " : "", got->work[i].lane,
                   (int)got->work[i].payload_len, (const char *)got->work[i].payload);
    return out;
}

static const char *submit_as(struct world *w, const char *lane, int priority,
                             const char *payload)
{
    return submit(w, (struct belay_submission){ .lane = lane,
                                                .priority = priority,
                                                .payload = payload,
                                                .payload_len = strlen(payload) });
}

/* --- order --- */

static void by_priority_then_age(struct world *w)
{
    (void)submit_as(w, "a", 0, "1");
    (void)submit_as(w, "b", 5, "2");
    (void)submit_as(w, "c", 5, "3");
    world_pass(w, 5);
    (void)submit_as(w, "a", 9000, "4");
    (void)submit_as(w, "b", 0, "5");
    (void)submit_as(w, "a", 5, "6");
    const char *raised = submit_as(w, "c", 0, "7");
    (void)submit_as(w, "elsewhere", 9000, "8");
    RC(w, belay_execution_set_priority(w->b, raised, 6000, &w->err), BELAY_OK);
    EQ(w, look(w, raised).priority, 6000);

    struct belay_works got = claim(
        w, (struct belay_claim_policy){ .lanes = lanes_abc, .n_lanes = 3, .max = 3 });
    STR(w, got_text(w, &got), "a/4 c/7 b/2");
    w->use = w->b;
    got = claim(
        w, (struct belay_claim_policy){ .lanes = lanes_abc, .n_lanes = 3, .max = 100 });
    STR(w, got_text(w, &got), "c/3 a/6 a/1 b/5");
    got = claim(w, (struct belay_claim_policy){ .lanes = lanes_abc, .n_lanes = 3 });
    EQ(w, got.n, 0);
}

/* What was given back, or retried, stands where its age puts it. */
static void work_keeps_its_age(struct world *w)
{
    (void)submit_as(w, "a", 0, "1");
    world_pass(w, 5);
    (void)submit_as(w, "a", 0, "2");
    const struct belay_work *first = work_on(w, "a");
    if (!OK(w, first != NULL))
        return;
    RC(w, belay_execution_release(w->use, &first->handle, &w->err), BELAY_OK);
    struct belay_works got =
        claim(w, (struct belay_claim_policy){ .lanes = lanes_abc, .n_lanes = 1 });
    STR(w, got_text(w, &got), "a/1");
}

/* --- capabilities --- */

static const char *needing(struct world *w, const char *payload, size_t n,
                           const char *const *requires)
{
    return submit(w, (struct belay_submission){ .payload = payload,
                                                .payload_len = strlen(payload),
                                                .requires = requires,
                                                .n_requires = n });
}

static const char *claimed_with(struct world *w, size_t n, const char *const *has)
{
    struct belay_works got =
        claim(w, (struct belay_claim_policy){
                     .capabilities = has, .n_capabilities = n, .max = 100 });

    return got_text(w, &got);
}

static void by_what_a_worker_can(struct world *w)
{
    static const char *const gpu[] = { "gpu" }, *const both[] = { "gpu", "big" },
                             *const again[] = { "big", "gpu", "big" },
                             *const big[] = { "big" },
                             *const all[] = { "ssd", "big", "gpu" };

    (void)needing(w, "1", 1, gpu); /* in front of everything, and nobody can */
    (void)needing(w, "2", 2, both);
    (void)needing(w, "3", 0, NULL);
    (void)needing(w, "4", 3, again);
    const char *id = needing(w, "5", 1, big);
    EQ(w, look(w, id).n_requires, 1);

    STR(w, claimed_with(w, 0, NULL), "l/3");
    STR(w, claimed_with(w, 0, NULL), "");
    STR(w, claimed_with(w, 1, big), "l/5");
    w->use = w->b;
    world_pass(w, 2); /* of one age the ids decide, and each handle mints its own */
    (void)needing(w, "6", 0, NULL);
    STR(w, claimed_with(w, 1, gpu), "l/1 l/6");
    w->use = w->a;
    STR(w, claimed_with(w, 3, all), "l/2 l/4");
}

/* A route that another handle makes is seen by one that has looked before. */
static void new_routes_are_seen(struct world *w)
{
    static const char *const gpu[] = { "gpu" }, *const tpu[] = { "tpu" },
                             *const both[] = { "gpu", "tpu" };

    (void)needing(w, "1", 1, gpu);
    STR(w, claimed_with(w, 2, both), "l/1");
    w->use = w->b;
    (void)needing(w, "2", 1, tpu);
    (void)needing(w, "3", 2, both);
    w->use = w->a;
    STR(w, claimed_with(w, 2, both), "l/2 l/3");
}

/* --- L8 --- */

static void claims_change_what_they_return(struct world *w)
{
    const char *ids[10];
    size_t before = 0;

    if (!submit_many(w, "l", COUNT_OF(ids), ids))
        return;
    for (size_t max = 1; max <= 4; max++) {
        w->use = max % 2 ? w->a : w->b;
        struct belay_works got = claim(w, (struct belay_claim_policy){ .max = max });
        EQ(w, got.n, max);
        for (size_t i = 0; i < got.n; i++)
            STR(w, got.work[i].execution_id, ids[before + i]);
        before += max;
        for (size_t i = 0; i < COUNT_OF(ids); i++) {
            struct belay_execution e = look(w, ids[i]);
            EQ(w, e.fence, i < before ? 1 : 0);
            EQ(w, e.attempts, i < before ? 1 : 0);
            EQ(w, e.state, i < before ? BELAY_STATE_ACTIVE : BELAY_STATE_WAITING);
        }
    }
    EQ(w, claim(w, (struct belay_claim_policy){ .max = 1000 }).n, 0);
}

static void complete_and_claim_next(struct world *w)
{
    const char *ids[3];
    static const char *const lane[] = { "l" };
    struct belay_claim_policy next = { .size = sizeof(next),
                                       .lanes = lane,
                                       .n_lanes = 1,
                                       .worker = "w",
                                       .lease_ms = MINUTE,
                                       .max = 1 };

    if (!submit_many(w, "l", COUNT_OF(ids), ids))
        return;
    struct belay_works got = claim(w, (struct belay_claim_policy){ .max = 1 });
    for (size_t i = 0; i < COUNT_OF(ids) && OK(w, got.n == 1); i++) {
        struct belay_completion item = { .size = sizeof(item),
                                         .handle = &got.work[0].handle };
        struct belay_ended end = { 0 };
        STR(w, got.work[0].execution_id, ids[i]);
        struct belay_works after = { 0 };
        RC(w,
           belay_execution_complete(w->use, &item, 1, &next, w->arena, &end, &after,
                                    &w->err),
           BELAY_OK);
        EQ(w, end.code, BELAY_OK);
        EQ(w, state_of(w, ids[i]), BELAY_STATE_COMPLETED);
        got = after;
    }
    EQ(w, got.n, 0);
}

/* --- times --- */

static void delays_are_kept(struct world *w)
{
    const char *later =
        submit(w, (struct belay_submission){ .delay_ms = 2 * SHORT_MS, .priority = 9 });
    struct belay_execution e = look(w, later);
    EQ(w, e.delay_until_ms, e.created_at_ms + 2 * SHORT_MS);
    const char *at =
        submit(w, (struct belay_submission){
                      .run_at_ms = e.created_at_ms + 3 * SHORT_MS, .delay_ms = 1 });

    struct belay_works got = claim(w, (struct belay_claim_policy){ .max = 9 });
    EQ(w, got.n, 0);
    EQ(w, got.next_at_ms, e.delay_until_ms);
    EQ(w, look(w, at).delay_until_ms, e.created_at_ms + 3 * SHORT_MS);
    world_pass(w, 4 * SHORT_MS);
    got = claim(w, (struct belay_claim_policy){ .max = 9 }); /* nobody ran a timer */
    if (EQ(w, got.n, 2)) {
        STR(w, got.work[0].execution_id, later);
        STR(w, got.work[1].execution_id, at);
    }
}

/* --- grants --- */

static void grants_set_work_aside(struct world *w)
{
    static const char *const lane[] = { "l" };
    struct belay_claim_policy p = {
        .size = sizeof(p), .lanes = lane, .n_lanes = 1, .worker = "w1"
    };
    struct belay_grant g = { 0 }, none = { 0 };
    struct belay_work got = { 0 };
    const char *id = submit(w, (struct belay_submission){ 0 });

    RC(w, belay_execution_grant(w->use, &p, 10000, w->arena, &g, &w->err), BELAY_OK);
    STR(w, g.execution_id, id);
    STR(w, g.lane, "l");
    STR(w, g.worker, "w1");
    STR(w, g.partition_key, "default");
    if (!OK(w, g.grant_id && strncmp(g.grant_id, "gra_", 4) == 0))
        return;
    RC(w, belay_execution_grant(w->use, &p, 10000, w->arena, &none, &w->err), BELAY_OK);
    OK(w, !none.grant_id);
    const char *before = all_work(w);
    w->use = w->b;
    WHY(w,
        belay_execution_claim_grant(w->use, g.grant_id, "w2", MINUTE, w->arena, &got,
                                    &w->err),
        BELAY_WRONG_STATE, "worker");
    STR(w, all_work(w), before);
    RC(w,
       belay_execution_claim_grant(w->use, g.grant_id, "w1", MINUTE, w->arena, &got,
                                   &w->err),
       BELAY_OK);
    STR(w, got.execution_id, id);
    EQ(w, got.fence, 1);
    RC(w,
       belay_execution_claim_grant(w->use, g.grant_id, "w1", MINUTE, w->arena, &got,
                                   &w->err),
       BELAY_NOT_FOUND); /* once */
    RC(w, complete(w, &got.handle, NULL, NULL), BELAY_OK);
}

static void grants_end_by_themselves(struct world *w)
{
    const char *id = submit(w, (struct belay_submission){ 0 });
    struct belay_grant g = { 0 };
    struct belay_work got = { 0 };

    if (!RC(w,
            belay_execution_grant_one(w->use, id, "w1", SHORT_MS, w->arena, &g,
                                      &w->err),
            BELAY_OK))
        return;
    OK(w, !work_on(w, "l"));
    world_pass(w, SHORT_MS + 5);
    WHY(w,
        belay_execution_claim_grant(w->use, g.grant_id, "w1", MINUTE, w->arena, &got,
                                    &w->err),
        BELAY_WRONG_STATE, "expired");
    OK(w, work_on(w, "l") != NULL); /* nothing had to be done about it */
    RC(w,
       belay_execution_claim_grant(w->use, g.grant_id, "w1", MINUTE, w->arena, &got,
                                   &w->err),
       BELAY_NOT_FOUND);
}

static void grants_know_what_they_will_give(struct world *w)
{
    static const struct {
        const char *in;
        int kind, type;
    } rows[] = {
        { "waiting", BELAY_HANDLE_FRESH, BELAY_ATTEMPT_INITIAL },
        { "released", BELAY_HANDLE_RESUMED, BELAY_ATTEMPT_INITIAL },
        { "revoked", BELAY_HANDLE_RECLAIMED, BELAY_ATTEMPT_RECLAIM },
        { "replayed", BELAY_HANDLE_FRESH, BELAY_ATTEMPT_REPLAY },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct cell c = { .lane = text(w, "%zu", i) };
        struct belay_grant g = { 0 };
        struct belay_work got = { 0 };
        if (!cells_make(w, condition_named(rows[i].in), &c, 1) ||
            !RC(w,
                belay_execution_grant_one(w->use, c.id, "x", 1000, w->arena, &g,
                                          &w->err),
                BELAY_OK) ||
            !RC(w,
                belay_execution_claim_grant(w->use, g.grant_id, "x", MINUTE, w->arena,
                                            &got, &w->err),
                BELAY_OK))
            continue;
        EQ(w, g.kind, rows[i].kind);
        EQ(w, got.handle.kind, rows[i].kind);
        EQ(w, got.attempt_type, rows[i].type);
        RC(w, complete(w, &got.handle, NULL, NULL), BELAY_OK);
    }
}

static const struct noun_case cases[] = {
    { "work is claimed by priority, then age, over all lanes", by_priority_then_age,
      0 },
    { "work that is given back keeps its age", work_keeps_its_age, 0 },
    { "work goes to who has what it requires, and blocks nobody else",
      by_what_a_worker_can, 0 },
    { "a new set of required capabilities is seen at once", new_routes_are_seen, 0 },
    { "L8: a claim of n gives n at most and changes what it gives",
      claims_change_what_they_return, 0 },
    { "completing and claiming the next is one call", complete_and_claim_next, 0 },
    { "delayed work is claimed when its time has come, without a timer",
      delays_are_kept, 0 },
    { "a grant sets work aside for one worker, once", grants_set_work_aside, 0 },
    { "a grant that nobody used ends by itself", grants_end_by_themselves, 0 },
    { "a grant says what claiming it will give", grants_know_what_they_will_give, 0 },
};

const struct topic topic_exec_claims = { cases, COUNT_OF(cases) };
