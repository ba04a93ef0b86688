/* What was wrong with the contest over a ring, defect by defect (D1 to D4, D7 to D13): each
 * case first lets the model of it (seedmodel.h) go wrong, then takes the contest through the
 * same schedule.  The other defects are in test_defects_ring.c.
 *
 * Peers of the contest are members of one process here; a peer that is stopped somewhere is
 * one whose step function does what the others do meanwhile.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fleet/impl.h"
#include "fleet/step.h"
#include "fleetlib.h"
#include "seedmodel.h"
#include "tap.h"

static const struct seed_subject seed_subject = { 1, "subject" };

struct scene {
    struct room room;
    unsigned n; /* fleets so far */
};

/* A fleet of its own with three members. */
struct trio {
    struct belay_fleet *a, *b, *c;
};

static bool trio_join(struct scene *s, struct trio *trio, uint32_t flags)
{
    char name[32];
    struct belay_error err;

    (void)snprintf(name, sizeof(name), "defect-%u", s->n++);
    *trio = (struct trio){ .a = room_join(&s->room, name, flags) };
    return trio->a && belay_fleet_join_beside(trio->a, NULL, &trio->b, &err) == 0 &&
           belay_fleet_join_beside(trio->a, NULL, &trio->c, &err) == 0;
}

static void trio_leave(struct trio *trio)
{
    belay_fleet_leave(trio->c);
    belay_fleet_leave(trio->b);
    belay_fleet_leave(trio->a);
}

static bool seed_try(struct seed_ring *r, const char *owner, uint64_t ttl, uint64_t now,
                     struct seed_holder *out)
{
    return seed_claim(r, seed_subject, owner, ttl, now, out) == SEED_CLAIMED;
}

static void test_d1(struct tap *t)
{
    struct seed_holder first, second;
    struct seed_ring r;
    unsigned tries = 0;

    TAP_OK(t, seed_open(&r, 1024));
    TAP_OK(t, seed_try(&r, "first", 30000, 1000, &first));
    while (tries < 5000 && !seed_try(&r, "second", 30000, 1001, &second))
        tries++;
    TAP_OK(t, tries <= 512); /* both hold, 30 seconds too early */
    seed_close(&r);

    struct trio trio;
    struct belay_contest_claim a, b;
    unsigned granted = 0;
    if (!TAP_OK(t, trio_join(t->arg, &trio, 0)))
        return;
    TAP_OK(t, try_claim(trio.a, "subject", "first", 30000, &a));
    for (tries = 0; tries < 5000; tries++)
        granted += try_claim(trio.b, "subject", "second", 30000, &b);
    TAP_EQ(t, granted, 0);
    TAP_STR(t, b.holder.owner, "first");
    TAP_OK(t, belay_contest_is_held(&a.guard));
    trio_leave(&trio);
}

/* What another does while a member stands in the step of a number. */
struct meanwhile {
    unsigned at, n;
    void (*act)(struct meanwhile *m);
    struct trio *trio;
    struct belay_contest_claim claim;
    bool is_claimed;
};

static void on_step(void *arg, enum fleet_step step)
{
    struct meanwhile *m = arg;

    (void)step;
    if (m->n++ == m->at)
        m->act(m);
}

static void another_claims(struct meanwhile *m)
{
    m->is_claimed = try_claim(m->trio->b, "subject", "b", HOUR_MS, &m->claim);
}

static void test_d2(struct tap *t)
{
    struct seed_attempt a;
    struct seed_holder ha, hb;
    struct seed_ring r;

    TAP_OK(t, seed_open(&r, 64));
    TAP_OK(t, seed_attempt_init(&a, 1, seed_subject, "a", 30000, 1000));
    a.counter = seed_reserve(&r);                   /* a is preempted here */
    TAP_OK(t, seed_try(&r, "b", 30000, 1000, &hb)); /* b does not see it */
    seed_fill(&r, a.counter, &a.frame);
    seed_commit(&r, a.counter);
    TAP_EQ(t, seed_attempt_decide(&r, &a, &ha), SEED_CLAIMED); /* both hold */
    seed_close(&r);

    unsigned at, by_a = 0, by_b = 0;
    bool passed = false;
    for (at = 0; at < 100 && !passed; at++) {
        struct trio trio;
        struct belay_contest_claim claim;
        if (!TAP_OK(t, trio_join(t->arg, &trio, 0)))
            return;
        struct meanwhile m = { .at = at, .act = another_claims, .trio = &trio };
        fleet_set_step(trio.a, on_step, &m);
        bool is_a = try_claim(trio.a, "subject", "a", HOUR_MS, &claim);
        fleet_set_step(trio.a, NULL, NULL);
        TAP_EQ(t, is_a + m.is_claimed, 1);
        by_a += is_a;
        by_b += m.is_claimed;
        passed = m.n <= at;
        trio_leave(&trio);
    }
    TAP_OK(t, passed && by_a > 0 && by_b > 0);
}

static void die_when_taken(void *arg, enum fleet_step step)
{
    (void)arg;
    if (step == STEP_CLAIM_TAKEN)
        (void)raise(SIGKILL);
}

static void test_d3(struct tap *t)
{
    struct seed_attempt a, b;
    struct seed_holder h;
    struct seed_ring r;

    TAP_OK(t, seed_open(&r, 64));
    TAP_OK(t, seed_attempt_init(&a, 1, seed_subject, "a", 30000, 1000));
    TAP_OK(t, seed_attempt_init(&b, 2, seed_subject, "b", 30000, 1000));
    a.counter = seed_reserve(&r);
    seed_attempt_publish(&r, &b);
    /* The walk stops at a: b yields to itself, and leaves its claim behind. */
    TAP_EQ(t, seed_attempt_decide_stopping(&r, &b, &h), SEED_YIELD);
    TAP_STR(t, h.owner, "b");
    seed_fill(&r, a.counter, &a.frame);
    seed_commit(&r, a.counter);
    TAP_EQ(t, seed_attempt_decide_stopping(&r, &a, &h), SEED_CLAIMED);
    TAP_OK(t, seed_release_holder(&r, &h, 1001));
    TAP_OK(t, !seed_try(&r, "c", 30000, 2000, &h)); /* nobody holds, yet c yields */
    TAP_STR(t, h.owner, "b");
    seed_close(&r);

    /* A peer killed in the middle of a claim, its word taken, is in nobody's way. */
    struct scene *s = t->arg;
    struct belay_fleet *f = room_join(&s->room, "halfway", 0);
    struct belay_contest_claim claim;
    if (!TAP_OK(t, f != NULL))
        return;
    pid_t child = fork();
    if (child == 0) {
        struct belay_fleet *g = room_join(&s->room, "halfway", 0);
        if (g) {
            fleet_set_step(g, die_when_taken, NULL);
            (void)try_claim(g, "subject", "b", HOUR_MS, &claim);
        }
        _exit(3);
    }
    TAP_OK(t, WIFSIGNALED(reap(child, 0)));
    TAP_OK(t, try_claim(f, "subject", "c", HOUR_MS, &claim));
    belay_fleet_leave(f);
}

static void test_d4(struct tap *t)
{
    struct seed_attempt b;
    struct seed_holder first, h;
    struct seed_ring r;

    TAP_OK(t, seed_open(&r, 64));
    TAP_OK(t, seed_try(&r, "a", 30000, 1000, &first));
    TAP_OK(t, seed_attempt_init(&b, 2, seed_subject, "b", 30000, 1001));
    seed_attempt_publish(&r, &b);
    TAP_EQ(t, seed_attempt_look(&r, &b, &h), SEED_YIELD); /* b has lost ... */
    TAP_OK(t, seed_release_holder(&r, &first, 1002));
    TAP_OK(t, !seed_try(&r, "c", 30000, 1003, &h));
    TAP_STR(t, h.owner, "b"); /* ... and yet c must yield to it */
    seed_attempt_withdraw(&r, &b);
    seed_close(&r);

    struct trio trio;
    struct belay_contest_claim a, lost, c;
    struct replay replay;
    if (!TAP_OK(t, trio_join(t->arg, &trio, 0)))
        return;
    TAP_OK(t, replay_open(&replay, trio.a));
    TAP_OK(t, try_claim(trio.a, "subject", "a", HOUR_MS, &a));
    TAP_OK(t, !try_claim(trio.b, "subject", "b", HOUR_MS, &lost));
    TAP_OK(t, release(&a.guard));
    TAP_OK(t, try_claim(trio.c, "subject", "c", HOUR_MS, &c));
    TAP_OK(t, replay_read(&replay));
    TAP_EQ(t, replay.n, 2); /* claims in the log: of those who were granted */
    replay_close(&replay);
    trio_leave(&trio);
}

static void test_d7(struct tap *t)
{
    struct seed_holder h;
    struct seed_ring r;

    TAP_OK(t, seed_open(&r, 64));
    r.head = SEED_COUNTER_MASK + 1;                 /* after 2^40 frames */
    TAP_OK(t, !seed_try(&r, "a", 30000, 1000, &h)); /* nobody can have anything, */
    TAP_STR(t, h.owner, "a");
    TAP_OK(t, !seed_try(&r, "b", 30000, 99999, &h)); /* ever again */
    seed_close(&r);

    struct scene *s = t->arg;
    struct belay_fleet_options o = room_options(&s->room, 0);
    struct belay_contest_claim a, b;
    o.token_floor = UINT64_C(0xffffffffffff0000) >> 1;
    struct belay_fleet *f = join_with("tokens", &o);
    if (!TAP_OK(t, f != NULL))
        return;
    /* Tokens beyond 40 bits, and the log beyond 2^40 frames. */
    uint64_t far = (UINT64_C(1) << 40) - 1;
    f->log.next = far;
    atomic_store(&f->log.lanes[f->log.lane].head, far);
    atomic_store(&f->log.lanes[f->log.lane].floor, far);
    TAP_OK(t, try_claim(f, "subject", "a", HOUR_MS, &a));
    TAP_OK(t, a.guard.token > o.token_floor);
    TAP_OK(t, release(&a.guard));
    TAP_OK(t, try_claim(f, "subject", "b", HOUR_MS, &b));
    TAP_OK(t, b.guard.token > a.guard.token);
    struct replay replay;
    TAP_OK(t, replay_open(&replay, f));
    TAP_OK(t, replay_equals_table(&replay, f));
    replay_close(&replay);
    belay_fleet_leave(f);
}

static void test_d8(struct tap *t)
{
    struct seed_holder a, b, h;
    struct seed_ring r;

    TAP_OK(t, seed_open(&r, 64));
    TAP_OK(t, seed_try(&r, "a", 30000, 1000, &a));
    seed_reset(&r);
    TAP_OK(t, seed_try(&r, "b", 30000, 1001, &b));
    TAP_OK(t, seed_release_holder(&r, &a, 1002));  /* a's old guard ... */
    TAP_OK(t, seed_try(&r, "c", 30000, 1003, &h)); /* ... frees what b holds */
    seed_close(&r);

    struct trio trio;
    struct belay_contest_claim ca, cb, cc;
    struct belay_error err;
    if (!TAP_OK(t, trio_join(t->arg, &trio, 0)))
        return;
    TAP_OK(t, try_claim(trio.a, "subject", "a", HOUR_MS, &ca));
    TAP_EQ(t, belay_fleet_reset(trio.c, &err), BELAY_OK);
    TAP_OK(t, try_claim(trio.b, "subject", "b", HOUR_MS, &cb));
    TAP_EQ(t, belay_contest_release(&ca.guard, NULL, &err), BELAY_LEASE_LOST);
    TAP_EQ(t, belay_contest_renew(&ca.guard, HOUR_MS, &err), BELAY_LEASE_LOST);
    TAP_OK(t, !try_claim(trio.c, "subject", "c", HOUR_MS, &cc));
    TAP_STR(t, cc.holder.owner, "b");
    TAP_OK(t, cb.guard.token > ca.guard.token);
    trio_leave(&trio);
}

/* A wall clock that somebody sets. */
static int64_t wall_of(void *arg)
{
    return *(int64_t *)arg;
}

static void test_d9(struct tap *t)
{
    struct seed_holder h;
    struct seed_ring r;

    TAP_OK(t, seed_open(&r, 64));
    TAP_OK(t, seed_try(&r, "a", 30000, 1000, &h));
    TAP_OK(t, seed_try(&r, "b", 30000, 1000 + HOUR_MS, &h)); /* the clock was set */
    seed_close(&r);

    struct scene *s = t->arg;
    struct belay_fleet_options o = room_options(&s->room, 0);
    struct belay_contest_claim a, b;
    struct belay_error err;
    int64_t wall = INT64_C(1700000000000);
    struct belay_clock clock = clock_system();
    clock.wall_ms = wall_of;
    clock.arg = &wall;
    o.clock = clock;
    struct belay_fleet *f = join_with("clocks", &o), *g = NULL;
    if (!TAP_OK(t, f && belay_fleet_join_beside(f, &o, &g, &err) == BELAY_OK))
        return;
    TAP_OK(t, try_claim(f, "subject", "a", HOUR_MS, &a));
    wall += 10 * HOUR_MS;
    TAP_OK(t, !try_claim(g, "subject", "b", HOUR_MS, &b));
    TAP_OK(t, belay_contest_is_held(&a.guard));
    wall -= 20 * HOUR_MS;
    TAP_EQ(t, belay_contest_renew(&a.guard, HOUR_MS, &err), BELAY_OK);
    /* And nobody can bring a clock of his own. */
    struct belay_contest_subject subject = subject_of(1, "subject");
    struct belay_contest_terms terms = terms_of("b", HOUR_MS);
    TAP_EQ(t, belay_contest_try_at(g, &subject, &terms, INT64_MAX / 2, &b, &err),
           BELAY_MISUSE);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

static void test_d10(struct tap *t)
{
    struct seed_holder h;
    struct seed_ring r;

    TAP_OK(t, seed_open(&r, 64));
    TAP_OK(t, seed_try(&r, "a", (uint64_t)HOUR_MS, 1000, &h)); /* and is killed */
    TAP_OK(t, !seed_try(&r, "b", 1, 1000 + (uint64_t)HOUR_MS - 1, &h));
    seed_close(&r);

    struct scene *s = t->arg;
    struct belay_fleet *f = room_join(&s->room, "deaths", 0);
    struct belay_contest_claim claim;
    if (!TAP_OK(t, f != NULL))
        return;
    pid_t child = fork();
    if (child == 0) {
        struct belay_fleet *g = room_join(&s->room, "deaths", 0);
        if (g && try_claim(g, "subject", "a", HOUR_MS, &claim))
            (void)raise(SIGKILL);
        _exit(3);
    }
    TAP_OK(t, WIFSIGNALED(reap(child, 0)));
    TAP_OK(t, try_claim(f, "subject", "b", HOUR_MS, &claim)); /* C2: at once */
    belay_fleet_leave(f);
}

static void test_d11(struct tap *t)
{
    struct seed_holder a, b;
    struct seed_ring r;

    /* All there is to tell two tenures apart is the claim's id, and that is no order. */
    TAP_OK(t, seed_open(&r, 64));
    TAP_OK(t, seed_try(&r, "other", 1, 900, &a));
    TAP_OK(t, seed_try(&r, "a", 30000, 1000, &a));
    seed_reset(&r);
    TAP_OK(t, seed_try(&r, "b", 30000, 1001, &b));
    TAP_OK(t, b.claim_id < a.claim_id);
    seed_close(&r);

    struct trio trio;
    struct belay_contest_claim ca, cb;
    struct belay_error err;
    uint64_t high_water = 0;
    if (!TAP_OK(t, trio_join(t->arg, &trio, 0)))
        return;
    TAP_OK(t, try_claim(trio.a, "subject", "a", 1, &ca)); /* a is paused ... */
    for (int i = 0; i < 1000 && !try_claim(trio.b, "subject", "b", HOUR_MS, &cb); i++)
        (void)usleep(1000);
    TAP_OK(t, cb.is_claimed);
    TAP_OK(t, belay_fence_admit(&high_water, cb.guard.token));
    TAP_OK(t, !belay_fence_admit(&high_water, ca.guard.token)); /* ... and too late */
    TAP_EQ(t, belay_fleet_reset(trio.c, &err), BELAY_OK);
    TAP_OK(t, try_claim(trio.c, "subject", "c", HOUR_MS, &ca));
    TAP_OK(t, ca.guard.token > cb.guard.token);
    trio_leave(&trio);
}

static void test_d12(struct tap *t)
{
    struct seed_holder h;
    struct seed_ring r;
    uint64_t looked = 0;

    TAP_OK(t, seed_open(&r, 1024));
    TAP_OK(t, seed_try(&r, "a", 30000, 1000, &h));
    for (int i = 0; i < 400; i++)
        (void)seed_try(&r, "b", 30000, 1000, &h);
    struct seed_walk w = seed_walk_from(&r, 0);
    while (seed_walk_next(&r, &w))
        looked++;
    TAP_EQ(t, looked, 801); /* frames that the next try will look at */
    seed_close(&r);

    /* A failed try looks at one subject, and leaves nothing for the next one to look at. */
    struct trio trio;
    struct belay_contest_claim a, b;
    if (!TAP_OK(t, trio_join(t->arg, &trio, 0)))
        return;
    TAP_OK(t, try_claim(trio.a, "subject", "a", HOUR_MS, &a));
    struct belay_ring *log;
    struct belay_error err;
    TAP_EQ(t, belay_contest_log(trio.b, &log, &err), BELAY_OK);
    uint64_t head = belay_ring_head(log, 0);
    for (int i = 0; i < 400; i++)
        TAP_OK(t, !try_claim(trio.b, "subject", "b", HOUR_MS, &b));
    TAP_EQ(t, belay_ring_head(log, 0), head);
    trio_leave(&trio);
}

static void test_d13(struct tap *t)
{
    struct seed_holder h;
    struct seed_ring r;

    TAP_OK(t, seed_open(&r, 64));
    TAP_OK(t, seed_try(&r, "a", 30000, 1000, &h));
    TAP_OK(t, !seed_try(&r, "b", 30000, 1001, &h)); /* b is told who holds ... */
    TAP_OK(t, seed_release_holder(&r, &h, 1002));   /* ... and ends it */
    TAP_OK(t, seed_try(&r, "b", 30000, 1003, &h));
    seed_close(&r);

    struct trio trio;
    struct belay_contest_claim a, b;
    struct belay_contest_guard stolen;
    struct belay_error err;
    if (!TAP_OK(t, trio_join(t->arg, &trio, 0)))
        return;
    TAP_OK(t, try_claim(trio.a, "subject", "a", HOUR_MS, &a));
    TAP_OK(t, !try_claim(trio.b, "subject", "b", HOUR_MS, &b));
    TAP_EQ(t, belay_contest_release_holder(trio.b, &b.holder, NULL, &err),
           BELAY_LEASE_HELD);
    TAP_EQ(t, belay_contest_guard_holder(trio.b, &b.holder, &stolen, &err),
           BELAY_LEASE_HELD);
    TAP_OK(t, belay_contest_is_held(&a.guard));
    /* Its own member may. */
    TAP_EQ(t, belay_contest_release_holder(trio.a, &b.holder, NULL, &err), BELAY_OK);
    TAP_OK(t, try_claim(trio.b, "subject", "b", HOUR_MS, &b));
    trio_leave(&trio);
}

static const struct tap_case cases[] = {
    { "D1: losers that try on do not wear a live claim out", test_d1 },
    { "D2: a claim under way, stopped anywhere, and another make one holder", test_d2 },
    { "D3: who dies claiming leaves nothing that blocks", test_d3 },
    { "D4: nobody yields to somebody who never held", test_d4 },
    { "D7: counters and tokens go on beyond 2^40", test_d7 },
    { "D8: a guard of before a reset ends nobody's tenure", test_d8 },
    { "D9: setting the wall clock ends or lengthens nothing", test_d9 },
    { "D10: a killed holder's lease ends with it", test_d10 },
    { "D11: a holder that was paused is told apart by its token", test_d11 },
    { "D12: a failed try costs the same after any number of them", test_d12 },
    { "D13: a tenure is released by its own member alone", test_d13 },
};

int main(int argc, char **argv)
{
    struct scene s = { .n = 0 };

    if (!room_init(&s.room))
        return 1;
    int code = tap_main(cases, sizeof(cases) / sizeof(cases[0]), &s, argc, argv);
    room_release(&s.room);
    return code;
}
