/* Waiting and waking. */
#include <stdatomic.h>

#include "conformance.h"

static belay_rc wake_body(struct txn *t, void *arg)
{
    belay_rc rc = txn_chunk_drop(t, bytes_str("none"), 0);

    return rc ? rc : txn_wake(t, bytes_str(arg));
}

static void wake(struct harness *h, const char *topic)
{
    CHECK_RC(h, harness_run_aside(h, wake_body, (void *)(uintptr_t)topic), BELAY_OK);
}

static struct listener *listen(struct harness *h, struct space *sp,
                               struct belay_arena *a, const char *topic,
                               struct belay_cancel *cancel)
{
    struct bytes name = bytes_str(topic);
    struct listener *l = NULL;

    CHECK_RC(h, space_listen(sp, &name, 1, cancel, a, &l, &h->err), BELAY_OK);
    return l;
}

static void a_wake_is_kept(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    if (!harness_open(&h, t, 0))
        return;

    wake(&h, "topic"); /* nobody listens yet */
    struct listener *l = listen(&h, h.space, &arena, "topic", NULL);
    if (!l)
        return;
    TAP_OK(t, !listener_poll(l));
    wake(&h, "topic");
    wake(&h, "topic");
    CHECK_RC(&h, listener_wait(l, DEADLINE_NONE, &h.err), BELAY_OK);
    TAP_OK(t, !listener_poll(l)); /* two are one */
    wake(&h, "topic");
    TAP_OK(t, listener_poll(l));
    CHECK_RC(&h, listener_wait(l, fake_mono_us(&h.clock), &h.err), BELAY_TIMEOUT);
    listener_close(l);
    wake(&h, "topic"); /* touches nobody */
}

static void only_those_who_listen(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct space *other = NULL;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, store_space(h.store, bytes_str("other"), &other, NULL), BELAY_OK);
    struct listener *here = listen(&h, h.space, &arena, "topic", NULL);
    struct listener *twin = listen(&h, h.space, &arena, "topic", NULL);
    struct listener *there = listen(&h, other, &arena, "topic", NULL);
    const struct bytes both[] = { bytes_str("x"), bytes_str("y") };
    struct listener *two = NULL;
    CHECK_RC(&h, space_listen(h.space, both, 2, NULL, &arena, &two, NULL), BELAY_OK);
    if (!here || !twin || !there || !two)
        return;
    wake(&h, "topi");
    wake(&h, "topic2");
    TAP_OK(t, !listener_poll(here));
    wake(&h, "topic");
    TAP_OK(t, listener_poll(here));
    TAP_OK(t, listener_poll(twin));
    TAP_OK(t, !listener_poll(there));
    TAP_OK(t, !listener_poll(two));
    wake(&h, "y");
    TAP_OK(t, listener_poll(two));
    wake(&h, "x");
    TAP_OK(t, listener_poll(two));
    listener_close(two);
    listener_close(there);
    listener_close(here);
    wake(&h, "topic");
    TAP_OK(t, listener_poll(twin));
    listener_close(twin);
}

static void bad_topics(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct bytes topic = bytes_str("");
    struct listener *l = NULL;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, space_listen(h.space, &topic, 1, NULL, &arena, &l, NULL),
             BELAY_INVALID);
    topic = bytes_of("\xff", 1);
    CHECK_RC(&h, space_listen(h.space, &topic, 1, NULL, &arena, &l, NULL),
             BELAY_INVALID);
    TAP_OK(t, l == NULL);
}

static void deadlines_pass(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;

    struct listener *l = listen(&h, h.space, &arena, "topic", NULL);
    if (!l)
        return;
    const struct belay_clock *clock = &h.options.clock;
    int64_t deadline = clock->mono_us(clock->arg) + 20000;
    CHECK_RC(&h, listener_wait(l, deadline, &h.err), BELAY_TIMEOUT);
    TAP_OK(t, clock->mono_us(clock->arg) >= deadline);
    wake(&h, "topic"); /* a wake-up wins over a deadline that has passed */
    CHECK_RC(&h, listener_wait(l, deadline + 60000000, &h.err), BELAY_OK);
    listener_close(l);
}

static void cancelled_before(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_cancel *cancel = NULL;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, belay_cancel_new(&cancel, NULL), BELAY_OK);
    struct listener *l = listen(&h, h.space, &arena, "topic", cancel);
    if (l) {
        wake(&h, "topic");
        CHECK_RC(&h, listener_wait(l, DEADLINE_NONE, NULL), BELAY_OK);
        belay_cancel_trigger(cancel);
        CHECK_RC(&h, listener_wait(l, DEADLINE_NONE, &h.err), BELAY_CANCELLED);
        CHECK_RC(&h, listener_wait(l, DEADLINE_NONE, &h.err), BELAY_CANCELLED);
    }
    listener_close(l);
    belay_cancel_free(cancel);
}

/* --- threads --- */

struct waiting {
    struct harness *h;
    struct listener *l;
    struct belay_cancel *cancel;
    int64_t deadline_us;
    belay_rc got;
};

static void wait_or_cancel(void *arg, unsigned i)
{
    struct waiting *c = arg;

    if (i == 0)
        c->got = listener_wait(c->l, DEADLINE_NONE, NULL);
    else
        belay_cancel_trigger(c->cancel);
}

static void cancelled_by_another_thread(struct tap *t)
{
    for (int i = 0; i < 50; i++) {
        CLEANUP(harness_close) struct harness h;
        CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
        struct waiting c = { .h = &h };
        if (!harness_open(&h, t, HARNESS_REAL_TIME))
            return;
        CHECK_RC(&h, belay_cancel_new(&c.cancel, NULL), BELAY_OK);
        c.l = listen(&h, h.space, &arena, "topic", c.cancel);
        crew_run(t, 2, wait_or_cancel, &c);
        CHECK_RC(&h, c.got, BELAY_CANCELLED);
        listener_close(c.l);
        belay_cancel_free(c.cancel);
    }
}

#define IDLE_US 200000

static void wait_idly(void *arg, unsigned i)
{
    struct waiting *c = arg;

    if (i == 0) {
        c->got = listener_wait(c->l, c->deadline_us, NULL);
        return;
    }
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    belay_rc rc = BELAY_OK;
    for (int n = 0; n < 50 && !rc; n++)
        rc = txn_run(c->h->space, wake_body, (void *)(uintptr_t) "elsewhere", NULL,
                     &arena, NULL);
}

/* Counted by the hub: while others work for 200 ms, who waits returns once, at the end.
 */
static void idle_waiters_do_nothing(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct waiting c = { .h = &h };
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;

    const struct belay_clock *clock = &h.options.clock;
    c.l = listen(&h, h.space, &arena, "topic", NULL);
    struct wake_counts before = wake_hub_counts(h.driver->hub);
    c.deadline_us = clock->mono_us(clock->arg) + IDLE_US;
    crew_run(t, 2, wait_idly, &c);
    struct wake_counts after = wake_hub_counts(h.driver->hub);
    CHECK_RC(&h, c.got, BELAY_TIMEOUT);
    TAP_EQ(t, after.posted - before.posted, 50);
    TAP_EQ(t, after.delivered - before.delivered, 0);
    TAP_EQ(t, after.waits - before.waits, 1);
    listener_close(c.l);
}

/* --- no wake-up is lost: a ball that two threads pass each other --- */

#define PASSES 400

struct ball {
    struct harness *h;
    atomic_int timeouts, failures;
};

struct turn {
    int64_t want, next;
    const char *topic;
    bool mine;
};

/* The ball is at "ball".n: even for one thread, odd for the other. */
static belay_rc pass_body(struct txn *t, void *arg)
{
    struct turn *c = arg;
    const struct row *row;
    belay_rc rc = thing_get(t, "ball", &row);

    c->mine = !rc && row && row->v[THING_N].i == c->want;
    if (rc || !c->mine)
        return rc;
    rc = thing_put(t, "ball", c->want + 1);
    return rc ? rc : txn_wake(t, bytes_str(c->topic));
}

static void play(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    CLEANUP(arena_release) struct belay_arena own = { .first = NULL };
    struct ball *c = arg;
    const char *const topics[] = { "left", "right" };
    struct bytes mine = bytes_str(topics[i]);
    const struct belay_clock *clock = &c->h->options.clock;
    struct listener *l = NULL;

    if (space_listen(c->h->space, &mine, 1, NULL, &own, &l, NULL)) {
        c->failures++;
        return;
    }
    for (int64_t n = i; n < PASSES && !c->timeouts && !c->failures;) {
        struct turn turn = { .want = n, .topic = topics[1 - i] };
        arena_reset(&arena);
        if (txn_run(c->h->space, pass_body, &turn, NULL, &arena, NULL))
            c->failures++;
        else if (turn.mine)
            n += 2;
        else if (listener_wait(l, clock->mono_us(clock->arg) + 20000000, NULL))
            c->timeouts++;
    }
    listener_close(l);
}

static void no_wake_up_is_lost(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct ball c = { .h = &h };
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;

    thing_set(&h, "ball", 0);
    crew_run(t, 2, play, &c);
    TAP_EQ(t, c.timeouts, 0);
    TAP_EQ(t, c.failures, 0);
    TAP_EQ(t, thing_n(&h, "ball"), PASSES);
}

static const struct tap_case cases[] = {
    { "waiting: a wake-up after listening is kept, one before is not", a_wake_is_kept },
    { "waiting: wakes who listens to the topic in the namespace",
      only_those_who_listen },
    { "waiting: an invalid topic is refused", bad_topics },
    { "waiting: until the deadline and no longer", deadlines_pass },
    { "waiting: cancelled at once", cancelled_before },
    { "threads: waiting is cancelled by another thread", cancelled_by_another_thread },
    { "threads: an idle listener is not woken at all", idle_waiters_do_nothing },
    { "threads: no wake-up is lost", no_wake_up_is_lost },
};
const struct topic topic_waiting = { cases, COUNT_OF(cases) };
