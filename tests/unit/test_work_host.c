/* Leases whose holders are dead, or are said to be: executions, inboxes, processes, timers. */
#include "fakehost.h"
#include "test_work_exec_time.h"
#include "work/queue.h"

/* Two processes of one host: the first takes work and dies, the second goes on. */
struct pair {
    struct lab l;
    struct fake_host one, two;
};

static bool pair_open(struct pair *p, struct work *w)
{
    *p = (struct pair){ .one = fake_host("one"), .two = fake_host("two") };
    bool opened = lab_open(&p->l, w);
    (void)fake_host_join(&p->one.host);
    (void)fake_host_join(&p->two.host);
    return opened;
}

static struct belay_work take_as(struct pair *p, struct fake_host *as,
                                 const char *worker)
{
    p->l.site.host = &as->host;
    return take(&p->l, worker);
}

/* What the second finds dead. */
static int64_t sweep(struct pair *p)
{
    struct exec_site site = p->l.site;
    int64_t lost = -1;

    site.host = &p->two.host;
    WORK_RC(p->l.w, exec_dead_sweep(&site, &lost, &p->l.w->err), BELAY_OK);
    return lost;
}

/* --- executions --- */

static void taken_at_once(struct work *w)
{
    struct pair p;

    if (!pair_open(&p, w))
        return;
    const char *id = submit(&p.l, (struct belay_submission){ 0 });
    struct belay_work first = take_as(&p, &p.one, "w1");
    TAP_EQ(w->t, first.fence, 1);
    TAP_EQ(w->t, sweep(&p), 0); /* it lives */
    TAP_STR(w->t, take_as(&p, &p.two, "w2").execution_id, "");

    fake_host_kill(&p.two, "one");
    TAP_EQ(w->t, sweep(&p), 1);
    TAP_EQ(w->t, sweep(&p), 0);
    TAP_EQ(w->t, told(&p.l, "\"reason\":\"holder_dead\""), 1);
    TAP_EQ(w->t, told(&p.l, "\"type\":\"expired\""), 1);
    struct belay_work second = take_as(&p, &p.two, "w2");
    TAP_STR(w->t, second.execution_id, id);
    TAP_EQ(w->t, second.fence, 2); /* L2 */
    TAP_EQ(w->t, column(&p.l, id, EXEC_RECLAIMS), 1);
    TAP_EQ(w->t, column(&p.l, id, EXEC_ATTEMPTS), 2);
    TAP_EQ(w->t, sweep(&p), 0); /* the evidence was about another grant */
    WORK_RC(w, complete(&p.l, &first), BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, "superseded");
    WORK_RC(w, complete(&p.l, &second), BELAY_OK);
    lab_close(&p.l);
}

/* C5: a holder that is said to be dead and is not loses its lease, and nothing else goes
 * wrong: it is told so, changes nothing, and what it had is done once more. */
static void lies_are_harmless(struct work *w)
{
    struct pair p;

    if (!pair_open(&p, w))
        return;
    (void)submit(&p.l, (struct belay_submission){ 0 });
    struct belay_work first = take_as(&p, &p.one, "w1");
    fake_host_kill(&p.two, "one");
    TAP_EQ(w->t, sweep(&p), 1);
    struct buf before = work_dump(w, "default");
    WORK_RC(w, complete(&p.l, &first), BELAY_LEASE_LOST);
    struct buf after = work_dump(w, "default");
    TAP_OK(w->t, bytes_eq(buf_view(&before), buf_view(&after))); /* L4 */
    buf_release(&before);
    buf_release(&after);
    /* It may claim like anybody else. */
    struct belay_work again = take_as(&p, &p.one, "w1");
    TAP_EQ(w->t, again.fence, 2);
    /* One that ends what it has in time is not lost afterwards. */
    WORK_RC(w, complete(&p.l, &again), BELAY_OK);
    TAP_EQ(w->t, sweep(&p), 0);
    TAP_STR(w->t, state_of(&p.l, again.execution_id), "completed");
    lab_close(&p.l);
}

/* H2 */
static void evidence_is_of_here(struct work *w)
{
    static const struct {
        const char *host, *boot, *member;
        int64_t lost;
    } rows[] = {
        { "h", "b", "one", 1 },  { "h2", "b", "one", 0 }, { "h", "b2", "one", 0 },
        { "", "b", "one", 0 },   { "h", "", "one", 0 },   { "h", "b", "", 0 },
        { "h", "b", "one2", 0 }, { "h", "b", "on", 0 },
    };
    struct pair p;

    if (!pair_open(&p, w))
        return;
    fake_host_kill(&p.two, "one");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fake_host as = fake_host(rows[i].member);
        as.host.self.host = bytes_str(rows[i].host);
        as.host.self.boot = bytes_str(rows[i].boot);
        (void)submit(&p.l, (struct belay_submission){ 0 });
        struct belay_work held = take_as(&p, &as, "w1");
        if (!TAP_EQ(w->t, sweep(&p), rows[i].lost))
            printf("# in row %zu\n", i);
        if (rows[i].lost)
            held = take_as(&p, &as, "w1");
        WORK_RC(w, complete(&p.l, &held), BELAY_OK);
    }
    lab_close(&p.l);
}

/* What is granted to a process that passes it on has nobody's name on it. */
static void unbound_stays(struct work *w)
{
    struct pair p;

    if (!pair_open(&p, w))
        return;
    p.one.host.binds = false;
    fake_host_kill(&p.two, "one");
    const char *id = submit(&p.l, (struct belay_submission){ 0 });
    struct belay_work held = take_as(&p, &p.one, "w1");
    TAP_EQ(w->t, sweep(&p), 0);
    TAP_EQ(w->t, p.two.asked, 0);
    TAP_EQ(w->t, column(&p.l, id, EXEC_LEASE + LEASE_PID), TIME_NONE);
    WORK_RC(w, complete(&p.l, &held), BELAY_OK);

    /* Nor has it where there is no fleet. */
    p.one.host.binds = true;
    p.one.is_alone = true;
    atomic_store(&p.one.host.is_joined, false);
    id = submit(&p.l, (struct belay_submission){ 0 });
    held = take_as(&p, &p.one, "w1");
    TAP_EQ(w->t, column(&p.l, id, EXEC_LEASE + LEASE_PID), TIME_NONE);
    WORK_RC(w, complete(&p.l, &held), BELAY_OK);
    lab_close(&p.l);
}

/* L7: between the question and the answer the lease becomes another's. */
struct regrant {
    struct pair *p;
    const char *id;
    struct belay_work now;
};

static void regrant(void *arg)
{
    struct regrant *r = arg;
    struct pair *p = r->p;

    if (r->now.fence)
        return;
    WORK_RC(p->l.w, exec_revoke(&p->l.site, r->id, NULL, "no more", NULL, &p->l.w->err),
            BELAY_OK);
    r->now = take_as(p, &p->two, "w2");
}

static void only_that_grant(struct work *w)
{
    struct pair p;
    struct regrant r = { .p = &p };

    if (!pair_open(&p, w))
        return;
    r.id = submit(&p.l, (struct belay_submission){ 0 });
    (void)take_as(&p, &p.one, "w1");
    fake_host_kill(&p.two, "one");
    p.two.on_ask = regrant;
    p.two.arg = &r;
    TAP_EQ(w->t, sweep(&p), 0);
    TAP_EQ(w->t, r.now.fence, 2);
    TAP_EQ(w->t, told(&p.l, "holder_dead"), 0);
    WORK_RC(w, complete(&p.l, &r.now), BELAY_OK);
    lab_close(&p.l);
}

static void caps_hold(struct work *w)
{
    struct pair p;

    if (!pair_open(&p, w))
        return;
    const char *id = submit(&p.l, (struct belay_submission){ .max_reclaims = 1 });
    fake_host_kill(&p.two, "one");
    for (int i = 0; i < 2; i++) {
        TAP_STR(w->t, take_as(&p, &p.one, "w1").execution_id, id);
        TAP_EQ(w->t, sweep(&p), 1);
    }
    TAP_STR(w->t, state_of(&p.l, id), "failed");
    TAP_EQ(w->t, column(&p.l, id, EXEC_RECLAIMS), 1);
    TAP_EQ(w->t, told(&p.l, "\"type\":\"completion\""), 1);
    TAP_EQ(w->t, sweep(&p), 0);
    lab_close(&p.l);
}

/* Who is about to say that nothing is there asks for the dead first. */
static belay_rc settle(void *arg)
{
    struct pair *p = arg;

    (void)sweep(p);
    (void)atomic_fetch_add(&p->two.host.sweeps, 1);
    return BELAY_OK;
}

static belay_rc settle_fails(void *arg)
{
    (void)arg;
    return BELAY_UNAVAILABLE;
}

static void asked_for_at_the_end(struct work *w)
{
    struct pair p;

    if (!pair_open(&p, w))
        return;
    p.two.arg = &p;
    p.two.on_settle = settle;
    atomic_store(&p.two.host.is_joined, false);
    p.two.joins = 0;
    p.two.host.binds = false;
    TAP_STR(w->t, take_as(&p, &p.two, "w2").execution_id, "");
    TAP_EQ(w->t, p.two.settles + p.two.joins, 0); /* nothing is held */

    const char *id = submit(&p.l, (struct belay_submission){ 0 });
    (void)take_as(&p, &p.one, "w1");
    TAP_STR(w->t, take_as(&p, &p.two, "w2").execution_id, ""); /* it lives */
    TAP_EQ(w->t, p.two.settles, 1);
    TAP_EQ(w->t, p.two.joins, 1);
    fake_host_kill(&p.two, "one");
    const char *other = submit(&p.l, (struct belay_submission){ 0 });
    TAP_STR(w->t, take_as(&p, &p.two, "w2").execution_id, other);
    TAP_EQ(w->t, p.two.settles, 1); /* something was there */
    p.two.on_settle = settle_fails;
    const struct belay_claim_policy policy = policy_of("w2");
    struct belay_works out;
    WORK_RC(w, exec_claim(&p.l.site, &policy, &w->arena, &out, &w->err),
            BELAY_UNAVAILABLE);
    p.two.on_settle = settle;
    struct belay_work second = take_as(&p, &p.two, "w2");
    TAP_STR(w->t, second.execution_id, id);
    TAP_EQ(w->t, second.fence, 2);
    TAP_EQ(w->t, told(&p.l, "\"reason\":\"holder_dead\""), 1);
    lab_close(&p.l);
}

/* An attempt that is past its timeout fails by that, whoever died. */
static void timeouts_come_first(struct work *w)
{
    struct pair p;

    if (!pair_open(&p, w))
        return;
    const char *id =
        submit(&p.l, (struct belay_submission){ .attempt_timeout_ms = 1000 });
    (void)take_as(&p, &p.one, "w1");
    fake_host_kill(&p.two, "one");
    pass(&p.l, 1000);
    TAP_EQ(w->t, sweep(&p), 0);
    TAP_STR(w->t, state_of(&p.l, id), "failed");
    lab_close(&p.l);
}

struct spoiling {
    const char *id;
};

static belay_rc spoil_body(struct txn *t, void *arg)
{
    struct value key = value_str(((struct spoiling *)arg)->id);
    const struct change change = { SPEC_POLICY,
                                   value_json(bytes_str("{\"max_reclaims\":\"x\"}")) };
    const struct row *row;
    belay_rc rc = txn_get(t, &row_execution_spec, &key, &row);

    return rc ? rc : txn_put(t, &row_execution_spec, &key, &change, 1);
}

/* Pages of them, and each holder is asked about once a page. */
static void pages(struct work *w)
{
    enum { MANY = 150 };
    struct pair p;
    int64_t dead = 0;

    if (!pair_open(&p, w))
        return;
    for (int i = 0; i < MANY; i++) {
        (void)submit(&p.l, (struct belay_submission){ 0 });
        dead += i % 3 == 0;
        (void)take_as(&p, i % 3 == 0 ? &p.one : &p.two, "w");
    }
    fake_host_kill(&p.two, "one");
    TAP_EQ(w->t, sweep(&p), dead);
    TAP_OK(w->t, p.two.asked <= 2 * (MANY / 64 + 1));
    TAP_EQ(w->t, told(&p.l, "holder_dead"), (int)dead);
    lab_close(&p.l);
}

/* One that cannot be read keeps nobody from the others. */
static void around_corruption(struct work *w)
{
    struct spoiling s = { .id = "" };
    struct pair p;

    if (!pair_open(&p, w))
        return;
    for (int i = 0; i < 5; i++) {
        const char *id = submit(&p.l, (struct belay_submission){ 0 });
        (void)take_as(&p, &p.one, "w");
        s.id = i == 2 ? id : s.id;
    }
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    WORK_RC(w, txn_run(w->space, spoil_body, &s, NULL, &arena, &w->err), BELAY_OK);
    fake_host_kill(&p.two, "one");
    TAP_EQ(w->t, sweep(&p), 4);
    lane_book_close(p.l.site.lanes); /* the store is not sound: no lab_close */
}

/* --- inboxes --- */

static struct belay_claimed ask_as(struct pair *p, struct fake_host *as,
                                   const char *owner)
{
    const struct queue_site site = { .space = p->l.w->space, .host = &as->host };
    const struct belay_claim_request r = { .size = sizeof(r),
                                           .session_id = "s",
                                           .owner_id = owner,
                                           .boundary = BELAY_IDLE,
                                           .lease_ms = 60000,
                                           .max = 10 };
    struct belay_claimed out = { .why = -1 };

    WORK_RC(p->l.w, queue_claim(&site, &r, &p->l.w->arena, &out, &p->l.w->err),
            BELAY_OK);
    return out;
}

static void enqueue(struct work *w, int64_t at_ms)
{
    static const char *const payload = "1";
    const struct belay_draft d = { .size = sizeof(d),
                                   .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                   .slot = BELAY_EXCLUSIVE,
                                   .merge = BELAY_MERGE_NEVER,
                                   .session_id = "s",
                                   .available_at_ms = at_ms,
                                   .payloads = &payload,
                                   .n_payloads = 1 };
    struct belay_enqueued out;

    WORK_RC(w, queue_enqueue(w->space, &d, &w->arena, &out, &w->err), BELAY_OK);
}

static void inbox_of_the_dead(struct work *w)
{
    struct pair p;

    if (!pair_open(&p, w))
        return;
    enqueue(w, 0);
    enqueue(w, now(&p.l) + 3600000); /* is not anybody's, and stays */
    struct belay_claimed first = ask_as(&p, &p.one, "a");
    TAP_OK(w->t, first.claim != NULL);
    TAP_EQ(w->t, ask_as(&p, &p.two, "b").why, BELAY_NO_HEAD_HELD);
    fake_host_kill(&p.two, "one");
    struct belay_claimed second = ask_as(&p, &p.two, "b");
    if (!TAP_OK(w->t, first.claim && second.claim))
        return;
    TAP_EQ(w->t, second.claim->n_batches, 1);
    TAP_STR(w->t, second.claim->batches[0].batch_id, first.claim->batches[0].batch_id);
    TAP_OK(w->t, second.claim->fence > first.claim->fence); /* L2 */
    int64_t end_ms = 0;
    WORK_RC(w, queue_renew(w->space, first.claim, 1000, &end_ms, &w->err),
            BELAY_LEASE_LOST);
    WORK_RC(w, queue_renew(w->space, second.claim, 1000, &end_ms, &w->err), BELAY_OK);
    lab_close(&p.l);
}

/* What is ready is had without a question, and what the dead hold keeps nobody from it: that
 * comes with the claim that finds nothing ready. */
static void inbox_after_what_is_ready(struct work *w)
{
    struct pair p;

    if (!pair_open(&p, w))
        return;
    enqueue(w, 0);
    struct belay_claimed first = ask_as(&p, &p.one, "a");
    enqueue(w, 0);
    fake_host_kill(&p.two, "one");
    struct belay_claimed second = ask_as(&p, &p.two, "b");
    TAP_EQ(w->t, p.two.asked, 0);
    struct belay_claimed third = ask_as(&p, &p.two, "b");
    if (!TAP_OK(w->t, first.claim && second.claim && third.claim))
        return;
    TAP_OK(w->t, strcmp(second.claim->batches[0].batch_id,
                        first.claim->batches[0].batch_id) != 0);
    TAP_STR(w->t, third.claim->batches[0].batch_id, first.claim->batches[0].batch_id);
    lab_close(&p.l);
}

/* What is for later, and sooner than the end of that lease, hides nobody. */
static void inbox_joins_behind(struct work *w)
{
    struct pair p;

    if (!pair_open(&p, w))
        return;
    p.two.host.binds = false;
    atomic_store(&p.two.host.is_joined, false);
    p.two.joins = 0;
    enqueue(w, 0);
    struct belay_claimed first = ask_as(&p, &p.one, "a");
    enqueue(w, now(&p.l) + 1000);
    TAP_EQ(w->t, ask_as(&p, &p.two, "b").why, BELAY_NO_NOT_YET_AVAILABLE);
    TAP_EQ(w->t, p.two.joins, 1);
    atomic_store(&p.two.host.is_joined, false);
    fake_host_kill(&p.two, "one");
    struct belay_claimed second = ask_as(&p, &p.two, "b");
    if (TAP_OK(w->t, first.claim && second.claim))
        TAP_STR(w->t, second.claim->batches[0].batch_id,
                first.claim->batches[0].batch_id);
    lab_close(&p.l);
}

/* Joined by need: only when something is held. */
static void inbox_joins_late(struct work *w)
{
    struct pair p;

    if (!pair_open(&p, w))
        return;
    p.two.host.binds = false;
    atomic_store(&p.two.host.is_joined, false);
    p.two.joins = 0;
    TAP_EQ(w->t, ask_as(&p, &p.two, "b").why, BELAY_NO_EMPTY);
    TAP_EQ(w->t, p.two.joins, 0);
    enqueue(w, 0);
    (void)ask_as(&p, &p.one, "a");
    fake_host_kill(&p.two, "one");
    TAP_OK(w->t, ask_as(&p, &p.two, "b").claim != NULL);
    TAP_EQ(w->t, p.two.joins, 1);
    lab_close(&p.l);
}

/* --- processes --- */

static belay_rc lease_as(struct pair *p, struct fake_host *as, const char *owner,
                         const struct belay_incarnation *in,
                         const struct belay_process_lease **out)
{
    const struct proc_site site = { .space = p->l.w->space, .host = &as->host };

    return proc_lease(&site, "p", owner, 60000, in, &p->l.w->arena, out, &p->l.w->err);
}

static void process_of_the_dead(struct work *w)
{
    const struct belay_process_lease *first = NULL, *second = NULL, *third = NULL;
    struct pair p;

    if (!pair_open(&p, w))
        return;
    struct proc_site site = { .space = w->space };
    work_process(w, "p");
    WORK_RC(w, lease_as(&p, &p.one, "a", NULL, &first), BELAY_OK);
    WORK_RC(w, lease_as(&p, &p.two, "b", NULL, &second), BELAY_LEASE_HELD);
    fake_host_kill(&p.two, "one");
    WORK_RC(w, lease_as(&p, &p.two, "b", NULL, &second), BELAY_OK);
    if (!TAP_OK(w->t, first && second))
        return;
    TAP_OK(w->t, second->fence > first->fence);
    WORK_RC(w, proc_renew(&site, first, 60000, NULL, &w->err), BELAY_LEASE_LOST);
    WORK_RC(w, proc_renew(&site, second, 60000, NULL, &w->err), BELAY_OK);
    WORK_RC(w, proc_release(&site, second, NULL, &w->err), BELAY_OK);

    /* An incarnation that the caller tells is the one that counts. */
    const struct belay_incarnation told = { .size = sizeof(told),
                                            .host_id = "h",
                                            .boot_id = "b",
                                            .fleet_member = "child",
                                            .pid = 7,
                                            .process_start = 8 };
    WORK_RC(w, lease_as(&p, &p.one, "a", &told, &third), BELAY_OK);
    WORK_RC(w, lease_as(&p, &p.two, "b", NULL, &second), BELAY_LEASE_HELD);
    fake_host_kill(&p.two, "child");
    WORK_RC(w, lease_as(&p, &p.two, "b", NULL, &second), BELAY_OK);
    lab_close(&p.l);
}

/* --- timers --- */

/* As a process leaves it that dies in the middle of a step. */
static belay_rc timer_body(struct txn *t, void *arg)
{
    struct value v[TIMER_COLUMNS] = { { .kind = VALUE_NULL } };
    struct change changes[LEASE_COLUMNS];
    const struct lease_grant g = { .holder = *(const struct lease_holder *)arg,
                                   .token = bytes_str("t"),
                                   .id = bytes_str("i"),
                                   .fence = 1,
                                   .claimed_at_ms = START_MS,
                                   .expires_at_ms = START_MS + 3600000 };
    size_t n = lease_grant_changes(&g, TIMER_LEASE, changes);

    for (size_t i = 0; i < n; i++)
        v[changes[i].column] = changes[i].value;
    return txn_insert(t, &row_timer, v);
}

static void timers_of_the_dead(struct work *w)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct pair p;

    if (!pair_open(&p, w))
        return;
    p.one.host.binds = false; /* that lease cannot outlive its process anyway */
    struct lease_holder one = lease_holder_here(bytes_str("timers"), &p.one.host);
    WORK_RC(w, txn_run(w->space, timer_body, &one, NULL, &arena, &w->err), BELAY_OK);
    const char *id = submit(&p.l, (struct belay_submission){ .delay_ms = 1000 });
    pass(&p.l, 1000);
    p.l.site.host = &p.two.host;
    TAP_OK(w->t, tick(&p.l).busy);
    fake_host_kill(&p.two, "one");
    struct belay_timer_report r = tick(&p.l);
    TAP_OK(w->t, !r.busy);
    TAP_EQ(w->t, r.promoted, 1);
    TAP_STR(w->t, state_of(&p.l, id), "waiting");
    lab_close(&p.l);
}

struct running {
    struct pair *p;
    struct belay_cancel *cancel;
    belay_rc rc;
};

static void *run_timers(void *arg)
{
    struct running *r = arg;
    struct belay_error err;

    r->rc = exec_timers_run(&r->p->l.site, NULL, r->cancel, &err);
    return NULL;
}

/* Who has not got the seat asks nothing of the store; who has it does its work. */
static void one_runs_timers(struct work *w)
{
    struct running r = { .rc = BELAY_OK };
    struct pair p;
    pthread_t thread;

    if (!pair_open(&p, w))
        return;
    r.p = &p;
    p.l.site.host = &p.two.host;
    atomic_store(&p.two.seat_taken, true);
    WORK_RC(w, belay_cancel_new(&r.cancel, &w->err), BELAY_OK);
    const char *id = submit(&p.l, (struct belay_submission){ .delay_ms = 1000 });
    pass(&p.l, 1000);
    if (work_is_traced(w))
        trace_reset(w->driver);
    (void)pthread_create(&thread, NULL, run_timers, &r);
    for (int i = 0; i < 5000 && atomic_load(&p.two.seat_asked) < 1; i++)
        (void)usleep(1000);
    (void)usleep(20000);
    if (work_is_traced(w)) {
        struct trace_counts n = trace_counts(w->driver);
        TAP_EQ(w->t, n.reads, 0);
        TAP_EQ(w->t, n.commits, 0);
    }
    /* The winner is gone: whoever is woken takes its place. */
    atomic_store(&p.two.seat_taken, false);
    for (int i = 0; i < 5000 && strcmp(state_of(&p.l, id), "waiting") != 0; i++) {
        wake_post_bucket(w->driver->hub, 0, 1);
        (void)usleep(1000);
    }
    TAP_STR(w->t, state_of(&p.l, id), "waiting");
    belay_cancel_trigger(r.cancel);
    (void)pthread_join(thread, NULL);
    TAP_EQ(w->t, r.rc, BELAY_CANCELLED);
    belay_cancel_free(r.cancel);
    lab_close(&p.l);
}

static void seats_by_filter(struct tap *t)
{
    const struct belay_scanner_filter ns = { .size = sizeof(ns), .ns = "a" }, tag = {
        .size = sizeof(tag), .tag_key = "a", .tag_value = "b"
    };
    const struct host_seat seats[] = { timers_seat(NULL), timers_seat(&ns),
                                       timers_seat(&tag) };

    for (size_t i = 0; i < COUNT_OF(seats); i++) {
        for (size_t k = 0; k < i; k++)
            TAP_OK(t, !bytes_eq(bytes_of(seats[i].label, seats[i].label_len),
                                bytes_of(seats[k].label, seats[k].label_len)));
    }
}

/* --- all of them --- */

/* clang-format off */
#define EVERYWHERE(name) static void test_##name(struct tap *t) { work_everywhere(t, name); }
EVERYWHERE(taken_at_once) EVERYWHERE(lies_are_harmless) EVERYWHERE(evidence_is_of_here)
EVERYWHERE(unbound_stays) EVERYWHERE(only_that_grant) EVERYWHERE(caps_hold)
EVERYWHERE(timeouts_come_first) EVERYWHERE(pages) EVERYWHERE(around_corruption)
EVERYWHERE(inbox_of_the_dead) EVERYWHERE(inbox_after_what_is_ready) EVERYWHERE(inbox_joins_behind) EVERYWHERE(inbox_joins_late) EVERYWHERE(process_of_the_dead)
EVERYWHERE(asked_for_at_the_end) EVERYWHERE(timers_of_the_dead) EVERYWHERE(one_runs_timers)

static const struct tap_case cases[] = {
    { "an execution whose holder is dead is had at once", test_taken_at_once },
    { "C5: evidence that lies takes a lease and does no harm", test_lies_are_harmless },
    { "only evidence of this host, boot and member counts", test_evidence_is_of_here },
    { "a lease that is not bound to its process stays", test_unbound_stays },
    { "L7: evidence is about one grant", test_only_that_grant },
    { "a death counts as a reclaim, and the cap holds", test_caps_hold },
    { "who finds nothing asks for the dead", test_asked_for_at_the_end },
    { "what is due by time comes first", test_timeouts_come_first },
    { "the dead are found page by page", test_pages },
    { "one that cannot be read keeps nobody from the others", test_around_corruption },
    { "an inbox goes on when a holder is dead", test_inbox_of_the_dead },
    { "an inbox: what the dead held comes after what is ready", test_inbox_after_what_is_ready },
    { "an inbox joins its host where something is for later, too", test_inbox_joins_behind },
    { "an inbox joins its host when something is held", test_inbox_joins_late },
    { "a process is leased again when its holder is dead", test_process_of_the_dead },
    { "the lease of timers does not outlive their process", test_timers_of_the_dead },
    { "threads: one process of a host runs timers", test_one_runs_timers },
    { "timers with other filters are other seats", seats_by_filter },
};
/* clang-format on */

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
