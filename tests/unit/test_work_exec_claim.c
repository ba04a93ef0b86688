/* Executions on every driver: claiming, ending, and what is between. */
#include "base/clock.h"
#include "test_work.h"
#include "work/check.h"
#include "work/exec_claim.h"
#include "work/queue.h"

#define LEASE_MS ((int64_t)30000)
#define GRACE_MS ((int64_t)1000)

/* --- hands --- */

struct lab {
    struct work *w;
    struct exec_site site;
    struct belay_works works;
    struct belay_ended ended;
};

static bool lab_open(struct lab *l, struct work *w)
{
    *l = (struct lab){ .w = w,
                       .site = { .space = w->space,
                                 .backend = BELAY_BACKEND_MEMORY,
                                 .grace_ms = GRACE_MS } };
    return WORK_RC(w, lane_book_open(&l->site.lanes, &w->err), BELAY_OK);
}

static void lab_close(struct lab *l)
{
    lane_book_close(l->site.lanes);
}

static void pass(struct lab *l, int64_t ms)
{
    fake_advance_us(&l->w->clock, ms * 1000);
}

static const char *submit(struct lab *l, struct belay_submission s)
{
    struct belay_submitted out = { .execution_id = NULL };

    s.size = sizeof(s);
    if (!s.lane)
        s.lane = "l";
    WORK_RC(l->w, exec_submit(&l->site, &s, 1, &l->w->arena, &out, &l->w->err),
            BELAY_OK);
    return out.execution_id ? out.execution_id : "";
}

static size_t claim(struct lab *l, struct belay_claim_policy p)
{
    static const char *const lanes[] = { "l" };

    p.size = sizeof(p);
    if (!p.lanes) {
        p.lanes = lanes;
        p.n_lanes = 1;
    }
    if (!p.worker)
        p.worker = "w1";
    if (p.lease_ms == 0)
        p.lease_ms = LEASE_MS;
    l->works = (struct belay_works){ .n = 0 };
    WORK_RC(l->w, exec_claim(&l->site, &p, &l->w->arena, &l->works, &l->w->err),
            BELAY_OK);
    return l->works.n;
}

/* One piece of work, or an empty one and a failed check. */
static struct belay_work take(struct lab *l, const char *worker)
{
    struct belay_work none = { .execution_id = "" };
    size_t n = claim(l, (struct belay_claim_policy){ .worker = worker });

    TAP_EQ(l->w->t, n, 1);
    return n > 0 ? l->works.work[0] : none;
}

static belay_rc complete(struct lab *l, const struct belay_work *work,
                         const char *result)
{
    struct belay_completion c = { .size = sizeof(c),
                                  .handle = &work->handle,
                                  .result = result,
                                  .result_len = result ? strlen(result) : 0,
                                  .result_is_json = true };

    return exec_complete(&l->site, &c, 1, NULL, &l->w->arena, &l->ended, NULL,
                         &l->w->err);
}

static belay_rc fail(struct lab *l, const struct belay_work *work, int cls)
{
    struct belay_failure f = { .size = sizeof(f),
                               .failure_class = cls,
                               .handle = &work->handle,
                               .message = "why" };

    return exec_fail(&l->site, &f, 1, &l->w->arena, &l->ended, &l->w->err);
}

struct look {
    const char *id;
    struct exec e;
    char text[256];
};

static belay_rc look_body(struct txn *t, void *arg)
{
    struct look *k = arg;
    belay_rc rc = exec_get(t, bytes_str(k->id), &k->e);

    if (rc)
        return rc;
    const struct belay_vector *v = &k->e.vector;
    (void)snprintf(k->text, sizeof(k->text), "%s/%s/%s/%s/%s/%s/%s",
                   vector_name(BELAY_DIM_PHASE, v->phase),
                   vector_name(BELAY_DIM_OWNERSHIP, v->ownership),
                   vector_name(BELAY_DIM_ELIGIBILITY, v->eligibility),
                   vector_name(BELAY_DIM_BLOCKING, v->blocking),
                   vector_name(BELAY_DIM_OUTCOME, v->outcome),
                   vector_name(BELAY_DIM_ATTEMPT_STATE, v->attempt),
                   vector_name(BELAY_DIM_STATE, (int)vector_state(v)));
    return BELAY_OK;
}

/* An execution as it is; `text` is its vector. */
static struct look look(struct lab *l, const char *id)
{
    struct look k = { .id = id };

    WORK_RC(l->w, txn_run(l->w->space, look_body, &k, NULL, &l->w->arena, &l->w->err),
            BELAY_OK);
    return k;
}

static int64_t column(struct lab *l, const char *id, unsigned column)
{
    struct look k = look(l, id);

    return exec_i64(&k.e, column, -1);
}

static void report(void *arg, const struct finding *f)
{
    struct lab *l = arg;

    tap_check_str(l->w->t, f->message, "", f->what, __FILE__, __LINE__);
}

/* Everything that must be true of the store. */
static void check(struct lab *l)
{
    struct check_counts counts;

    WORK_RC(l->w, check_store(l->w->store, report, l, &counts, &l->w->err), BELAY_OK);
    TAP_EQ(l->w->t, counts.findings, 0);
}

/* --- cases --- */

static void happy_case(struct work *w)
{
    struct tap *t = w->t;
    struct lab l;

    if (lab_open(&l, w)) {
        const char *id =
            submit(&l, (struct belay_submission){ .priority = 5,
                                                  .payload = "{\"n\": 1}",
                                                  .payload_len = 8,
                                                  .payload_is_json = true });
        TAP_STR(t, look(&l, id).text,
                "runnable/unowned/eligible_now/waiting_for_worker/none/"
                "pending_first_attempt/waiting");
        struct belay_work work = take(&l, "w1");
        TAP_STR(t, work.execution_id, id);
        TAP_EQ(t, work.fence, 1);
        TAP_EQ(t, work.attempt, 0);
        TAP_EQ(t, work.handle.kind, BELAY_HANDLE_FRESH);
        TAP_EQ(t, work.payload_len, 7);
        TAP_STR(t, work.payload, "{\"n\":1}");
        TAP_EQ(t, work.expires_at_ms, START_MS + LEASE_MS);
        TAP_STR(t, look(&l, id).text,
                "active/leased/not_applicable/none/none/running_attempt/active");
        TAP_EQ(t, claim(&l, (struct belay_claim_policy){ .worker = "w2" }), 0);
        pass(&l, 5);
        WORK_RC(l.w, complete(&l, &work, "\"ok\""), BELAY_OK);
        TAP_STR(t, look(&l, id).text,
                "terminal/unowned/not_applicable/none/success/attempt_terminal/"
                "completed");
        TAP_EQ(t, column(&l, id, EXEC_FINISHED_AT_MS), START_MS + 5);
        TAP_EQ(t, l.ended.replayed, false);
        WORK_RC(l.w, complete(&l, &work, "\"ok\""), BELAY_OK);
        TAP_EQ(t, l.ended.replayed, true);
        WORK_RC(l.w, fail(&l, &work, (int)BELAY_FAILURE_TRANSIENT), BELAY_LEASE_LOST);
        TAP_STR(t, l.w->err.reason, "terminal");
        check(&l);
    }
    lab_close(&l);
}

static void order_case(struct work *w)
{
    struct tap *t = w->t;
    static const char *const lanes[] = { "a", "b" };
    struct lab l;

    if (lab_open(&l, w)) {
        const char *ids[4];
        ids[2] = submit(&l, (struct belay_submission){ .lane = "a" });
        pass(&l, 1);
        ids[3] = submit(&l, (struct belay_submission){ .lane = "b" });
        pass(&l, 1);
        ids[1] = submit(&l, (struct belay_submission){ .lane = "a", .priority = 1 });
        pass(&l, 1);
        ids[0] = submit(&l, (struct belay_submission){ .lane = "b", .priority = 9000 });
        TAP_EQ(t,
               claim(&l, (struct belay_claim_policy){ .lanes = lanes,
                                                      .n_lanes = 2,
                                                      .max = 10 }),
               4);
        for (size_t i = 0; i < l.works.n && i < 4; i++)
            TAP_STR(t, l.works.work[i].execution_id, ids[i]);
        check(&l);
    }
    lab_close(&l);
}

static void routes_case(struct work *w)
{
    struct tap *t = w->t;
    static const char *const gpu[] = { "gpu" }, *const both[] = { "gpu", "eu" };
    struct lab l;

    if (lab_open(&l, w)) {
        TAP_EQ(t, claim(&l, (struct belay_claim_policy){ .max = 9 }), 0);
        for (int i = 0; i < 3; i++)
            (void)submit(&l, (struct belay_submission){
                                 .requires = both, .n_requires = 2, .priority = 10 });
        const char *plain = submit(&l, (struct belay_submission){ .priority = 0 });
        /* What it cannot do does not stand before what it can. */
        struct belay_work work = take(&l, "w1");
        TAP_STR(t, work.execution_id, plain);
        TAP_EQ(t,
               claim(&l, (struct belay_claim_policy){ .capabilities = gpu,
                                                      .n_capabilities = 1,
                                                      .max = 9 }),
               0);
        TAP_EQ(t,
               claim(&l, (struct belay_claim_policy){ .capabilities = both,
                                                      .n_capabilities = 2,
                                                      .max = 9 }),
               3);
        check(&l);
    }
    lab_close(&l);
}

static void retries_case(struct work *w)
{
    struct tap *t = w->t;
    struct belay_retry_policy retry = { .size = sizeof(retry),
                                        .backoff = BELAY_BACKOFF_FIXED,
                                        .max_retries = 2,
                                        .delay_ms = 50 };
    struct lab l;

    if (lab_open(&l, w)) {
        const char *id = submit(&l, (struct belay_submission){ .retry = &retry });
        struct belay_work work = take(&l, "w1");
        WORK_RC(l.w, fail(&l, &work, (int)BELAY_FAILURE_TRANSIENT), BELAY_OK);
        TAP_EQ(t, l.ended.outcome, BELAY_RETRY_SCHEDULED);
        TAP_EQ(t, l.ended.delay_until_ms, START_MS + 50);
        TAP_STR(
            t, look(&l, id).text,
            "runnable/unowned/not_eligible_until_time/waiting_for_retry_backoff/none/"
            "pending_retry_attempt/delayed");
        WORK_RC(l.w, fail(&l, &work, (int)BELAY_FAILURE_TRANSIENT), BELAY_OK);
        TAP_EQ(t, l.ended.replayed, true);
        TAP_EQ(t, l.ended.delay_until_ms, START_MS + 50);
        TAP_EQ(t, column(&l, id, EXEC_RETRIES), 1);
        TAP_EQ(t, claim(&l, (struct belay_claim_policy){ .max = 1 }), 0);
        TAP_EQ(t, l.works.next_at_ms, START_MS + 50);
        for (int attempt = 1; attempt <= 2; attempt++) {
            pass(&l, 50);
            work = take(&l, "w2"); /* nothing else has to promote it */
            TAP_EQ(t, work.attempt, attempt);
            TAP_EQ(t, work.attempt_type, BELAY_ATTEMPT_RETRY);
            TAP_EQ(t, work.fence, attempt + 1);
            WORK_RC(l.w, fail(&l, &work, (int)BELAY_FAILURE_INFRA_CRASH), BELAY_OK);
            TAP_EQ(t, l.ended.outcome,
                   attempt == 1 ? BELAY_RETRY_SCHEDULED : BELAY_TERMINAL_FAILURE);
        }
        TAP_STR(t, look(&l, id).text,
                "terminal/unowned/not_applicable/none/failed/attempt_terminal/failed");
        TAP_EQ(t, column(&l, id, EXEC_ATTEMPTS), 3);
        check(&l);
    }
    lab_close(&l);
}

static void takeover_case(struct work *w)
{
    struct tap *t = w->t;
    struct lab l;

    if (lab_open(&l, w)) {
        const char *id = submit(&l, (struct belay_submission){ .priority = 0 });
        struct belay_work first = take(&l, "w1");
        pass(&l, LEASE_MS + GRACE_MS - 1);
        TAP_EQ(t, claim(&l, (struct belay_claim_policy){ .worker = "w2" }), 0);
        pass(&l, 1);
        struct belay_work second = take(&l, "w2");
        TAP_STR(t, second.execution_id, id);
        TAP_EQ(t, second.handle.kind, BELAY_HANDLE_RECLAIMED);
        TAP_EQ(t, second.attempt, 1);
        TAP_EQ(t, second.fence, 2);
        TAP_EQ(t, column(&l, id, EXEC_RECLAIMS), 1);
        WORK_RC(l.w, complete(&l, &first, NULL), BELAY_LEASE_LOST); /* L4 */
        TAP_STR(t, l.w->err.reason, "superseded");
        WORK_RC(l.w, complete(&l, &second, NULL), BELAY_OK);
        check(&l);
    }
    lab_close(&l);
}

static void late_case(struct work *w)
{
    struct lab l;

    if (lab_open(&l, w)) {
        (void)submit(&l, (struct belay_submission){ .priority = 0 });
        struct belay_work work = take(&l, "w1");
        pass(&l, 10 * LEASE_MS);
        WORK_RC(l.w, complete(&l, &work, NULL), BELAY_OK);
        check(&l);
    }
    lab_close(&l);
}

static void batches_case(struct work *w)
{
    struct tap *t = w->t;
    struct belay_completion items[3];
    struct belay_ended ended[3];
    struct belay_works next = { .n = 0 };
    static const char *const lanes[] = { "l" };
    struct belay_claim_policy policy = {
        .size = sizeof(policy), .lanes = lanes, .n_lanes = 1, .worker = "w1", .max = 5
    };
    struct lab l;

    if (lab_open(&l, w)) {
        for (int i = 0; i < 4; i++)
            (void)submit(&l, (struct belay_submission){ .priority = 0 });
        TAP_EQ(t, claim(&l, (struct belay_claim_policy){ .max = 2 }), 2);
        struct belay_handle broken = l.works.work[0].handle;
        broken.opaque_len--;
        for (int i = 0; i < 3; i++)
            items[i] =
                (struct belay_completion){ .size = sizeof(items[i]),
                                           .handle = i < 2 ? &l.works.work[i].handle
                                                           : &broken };
        WORK_RC(l.w,
                exec_complete(&l.site, items, 3, &policy, &l.w->arena, ended, &next,
                              &l.w->err),
                BELAY_OK);
        TAP_EQ(t, ended[0].code, BELAY_OK);
        TAP_EQ(t, ended[1].code, BELAY_OK);
        TAP_EQ(t, ended[2].code, BELAY_BAD_HANDLE);
        TAP_EQ(t, next.n, 2);
        check(&l);
    }
    lab_close(&l);
}

static void session_case(struct work *w)
{
    struct tap *t = w->t;
    struct belay_batches batches = { .n = 0 };
    struct belay_queue_page page = { .size = sizeof(page), .limit = 10 };
    struct lab l;

    if (lab_open(&l, w)) {
        const char *id = submit(&l, (struct belay_submission){ .session = "chat" });
        struct belay_work work = take(&l, "w1");
        WORK_RC(l.w, complete(&l, &work, "{\"b\":1}"), BELAY_OK);
        WORK_RC(l.w, complete(&l, &work, "{\"b\":1}"), BELAY_OK);
        WORK_RC(l.w,
                queue_list(l.w->space, "chat", &page, &l.w->arena, &batches, &l.w->err),
                BELAY_OK);
        TAP_EQ(t, batches.n, 1);
        char key[128];
        (void)snprintf(key, sizeof(key), "execution:%s:success", id);
        TAP_STR(t, batches.n ? batches.batches[0].source_key : "", key);
        check(&l);
    }
    lab_close(&l);
}

static belay_rc spoil_body(struct txn *t, void *arg)
{
    struct value key = value_str(arg);
    struct change change = { EXEC_PHASE, value_str("nowhere") };
    const struct row *row;
    belay_rc rc = txn_get(t, &row_execution, &key, &row);

    return rc ? rc : txn_put(t, &row_execution, &key, &change, 1);
}

/* Makes an execution unreadable. */
static void spoil(struct lab *l, const char *id)
{
    WORK_RC(l->w,
            txn_run(l->w->space, spoil_body, (void *)(uintptr_t)id, NULL, &l->w->arena,
                    &l->w->err),
            BELAY_OK);
}

/* One of those that are due, and one at the head of the lane, cannot be read: all others
 * are promoted, claimed and completed. */
static void damage_case(struct work *w)
{
    static const char *const lanes[] = { "l" };
    struct belay_claim_policy policy = {
        .size = sizeof(policy), .lanes = lanes, .n_lanes = 1, .worker = "w1"
    };
    struct tap *t = w->t;
    struct belay_works next = { .n = 0 };
    struct lab l;

    if (lab_open(&l, w)) {
        spoil(&l, submit(&l, (struct belay_submission){ .delay_ms = 10 }));
        spoil(&l, submit(&l, (struct belay_submission){ .priority = 9 }));
        const char *id = submit(&l, (struct belay_submission){ .delay_ms = 20 });
        const char *later = submit(&l, (struct belay_submission){ .delay_ms = 40 });
        pass(&l, 30);
        struct belay_work work = take(&l, "w1");
        TAP_STR(t, work.execution_id, id);
        pass(&l, 30);
        struct belay_completion c = { .size = sizeof(c), .handle = &work.handle };
        WORK_RC(l.w,
                exec_complete(&l.site, &c, 1, &policy, &l.w->arena, &l.ended, &next,
                              &l.w->err),
                BELAY_OK);
        TAP_EQ(t, l.ended.code, BELAY_OK);
        TAP_EQ(t, next.n, 1);
        TAP_STR(t, next.n ? next.work[0].execution_id : "", later);
        TAP_EQ(t, claim(&l, (struct belay_claim_policy){ .max = 9 }), 0);
    }
    lab_close(&l);
}

/* What a server is asked: claim, complete, submit each at most two round trips. */
static void round_trips_case(struct work *w)
{
    struct lab l;

    if (lab_open(&l, w) && work_is_traced(l.w)) {
        (void)submit(&l, (struct belay_submission){ .priority = 0 });
        struct belay_work work = take(&l, "w1");
        WORK_RC(l.w, complete(&l, &work, NULL), BELAY_OK);
        (void)submit(&l, (struct belay_submission){ .priority = 0 });
        trace_reset(w->driver);
        work = take(&l, "w1");
        work_expect_trips(w, 1, 1);
        WORK_RC(l.w, complete(&l, &work, NULL), BELAY_OK);
        work_expect_trips(w, 1, 1);
    }
    lab_close(&l);
}

static void test_happy(struct tap *t)
{
    work_everywhere(t, happy_case);
}

static void test_order(struct tap *t)
{
    work_everywhere(t, order_case);
}

static void test_routes(struct tap *t)
{
    work_everywhere(t, routes_case);
}

static void test_retries(struct tap *t)
{
    work_everywhere(t, retries_case);
}

static void test_takeover(struct tap *t)
{
    work_everywhere(t, takeover_case);
}

static void test_late(struct tap *t)
{
    work_everywhere(t, late_case);
}

static void test_batches(struct tap *t)
{
    work_everywhere(t, batches_case);
}

static void test_session(struct tap *t)
{
    work_everywhere(t, session_case);
}

static void test_damage(struct tap *t)
{
    work_everywhere(t, damage_case);
}

static void test_round_trips(struct tap *t)
{
    work_everywhere(t, round_trips_case);
}

static const struct tap_case cases[] = {
    { "work is submitted, claimed and completed once", test_happy },
    { "greater priorities first, then the older, over several lanes", test_order },
    { "a worker finds what it can do, and nothing stands before it", test_routes },
    { "a failure is tried again until the policy ends it", test_retries },
    { "L4: a lost lease is taken over, and its holder too late", test_takeover },
    { "L5: late is not lost", test_late },
    { "many are completed at once, and the next claimed along with them",
      test_batches },
    { "the end is told to the session it belongs to, once", test_session },
    { "what cannot be read keeps nobody from working", test_damage },
    { "round trips", test_round_trips },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
