/* The store's time. */
#include "conformance.h"

#define HOUR_MS ((int64_t)3600 * 1000)

struct now_call {
    struct harness *h;
    int64_t first, second;
};

static belay_rc now_twice(struct txn *t, void *arg)
{
    struct now_call *c = arg;
    belay_rc rc = txn_now(t, &c->first);

    fake_advance_us(&c->h->clock, 30000000);
    return rc ? rc : txn_now(t, &c->second);
}

static void time_stands_in_a_body(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct now_call c = { .h = &h };
    int64_t later = 0;
    if (!harness_open(&h, t, HARNESS_OWN_CLOCK))
        return;

    CHECK_RC(&h, harness_run(&h, now_twice, &c), BELAY_OK);
    TAP_OK(t, c.first > 0);
    TAP_EQ(t, c.second, c.first);
    CHECK_RC(&h, space_now(h.space, &later, NULL), BELAY_OK);
    TAP_EQ(t, later, c.first + 30000);
}

static int64_t now(struct harness *h)
{
    int64_t ms = -1;

    CHECK_RC(h, space_now(h->space, &ms, NULL), BELAY_OK);
    return ms;
}

static void step(struct harness *h, int64_t wall_ms, int64_t mono_us)
{
    fake_advance_us(&h->clock, mono_us);
    atomic_fetch_add(&h->clock.wall_ms, wall_ms);
}

static void time_never_goes_back(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const int64_t steps[] = { -HOUR_MS, 3 * HOUR_MS,  -1,
                              -59999,   -5 * HOUR_MS, 61000,
                              -60500,   24 * HOUR_MS, -24 * HOUR_MS,
                              1 };
    if (!harness_open(&h, t, HARNESS_OWN_CLOCK))
        return;

    int64_t start = now(&h), last = start;
    for (int i = 0; i < 200; i++) {
        step(&h, steps[i % (int)COUNT_OF(steps)], 10000);
        int64_t at = now(&h);
        TAP_OK(t, at >= last);
        last = at;
    }
    /* Two seconds have passed by the monotonic clock.  Steps of under a minute may add
     * up to a few; none of the hours was believed. */
    TAP_OK(t, last - start >= 1000);
    TAP_OK(t, last - start < HOUR_MS);
}

static void a_step_is_doubted_until_it_lasts(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    int64_t off = 0;
    if (!harness_open(&h, t, HARNESS_OWN_CLOCK))
        return;

    int64_t start = now(&h);
    TAP_OK(t, !space_clock_doubted(h.space, &off));
    step(&h, 2 * HOUR_MS, 1000000);
    TAP_EQ(t, now(&h), start + 1000);
    TAP_OK(t, space_clock_doubted(h.space, &off));
    TAP_EQ(t, off, 2 * HOUR_MS);
    step(&h, 0, 61000000);
    TAP_EQ(t, now(&h), start + 62000 + 2 * HOUR_MS);
    TAP_OK(t, !space_clock_doubted(h.space, &off));
    step(&h, HOUR_MS, 0);
    TAP_EQ(t, now(&h), start + 62000 + 2 * HOUR_MS);
    space_clock_accept(h.space);
    TAP_EQ(t, now(&h), start + 62000 + 3 * HOUR_MS);
}

/* --- the mark --- */

static belay_rc tick(struct txn *t, void *arg)
{
    int64_t ms;
    belay_rc rc = txn_now(t, &ms);

    (void)arg;
    return rc ? rc : txn_chunk_drop(t, bytes_str("none"), 0);
}

static belay_rc mark_body(struct txn *t, void *arg)
{
    const struct row *row;
    belay_rc rc = txn_get(t, &row_clock, NULL, &row);

    *(int64_t *)arg = !rc && row ? row_i64(row, CLOCK_MARK_MS, 0) : 0;
    return rc;
}

static int64_t mark(struct harness *h)
{
    int64_t ms = 0;

    CHECK_RC(h, harness_run(h, mark_body, &ms), BELAY_OK);
    return ms;
}

static void the_mark_is_written_once_a_second(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    unsigned written = 0;
    if (!harness_open(&h, t, HARNESS_OWN_CLOCK))
        return;

    int64_t start = now(&h), last = mark(&h);
    TAP_OK(t, last > 0 && last <= start);
    for (int i = 0; i < 50; i++) { /* five seconds */
        step(&h, 0, 100000);
        CHECK_RC(&h, harness_run(&h, tick, NULL), BELAY_OK);
        int64_t at = mark(&h);
        TAP_OK(t, at >= last && at <= now(&h));
        if (at != last)
            TAP_OK(t, at - last >= CLOCK_PERSIST_MS);
        written += at != last;
        last = at;
    }
    TAP_OK(t, written >= 4 && written <= 5);
    TAP_OK(t, now(&h) - last < 2 * CLOCK_PERSIST_MS);
}

static void the_mark_holds_for_the_next_store(struct tap *t)
{
    const int64_t back[] = { 2 * HOUR_MS, 72 * HOUR_MS };

    for (size_t i = 0; i < COUNT_OF(back); i++) {
        CLEANUP(harness_close) struct harness h;
        struct store *second = NULL;
        struct space *sp = NULL;
        int64_t ms = 0;
        if (!harness_open(&h, t, HARNESS_OWN_CLOCK))
            return;
        step(&h, 0, 5000000);
        CHECK_RC(&h, harness_run(&h, tick, NULL), BELAY_OK);
        int64_t marked = mark(&h);
        step(&h, -back[i], 0);
        CHECK_RC(&h, store_open(&second, h.driver, &h.options, NULL), BELAY_OK);
        CHECK_RC(&h, store_space(second, bytes_str("default"), &sp, NULL), BELAY_OK);
        CHECK_RC(&h, space_now(sp, &ms, NULL), BELAY_OK);
        TAP_OK(t, ms >= marked);
        /* A step of over a day at start is doubted, and time goes on from the mark. */
        step(&h, 0, 3000000);
        CHECK_RC(&h, space_now(sp, &ms, NULL), BELAY_OK);
        TAP_EQ(t, space_clock_doubted(sp, NULL), back[i] > CLOCK_START_STEP_MS);
        TAP_EQ(t, ms, back[i] > CLOCK_START_STEP_MS ? marked + 3000 : marked);
        store_close(second);
    }
}

static void each_space_has_its_time(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct space *other = NULL;
    int64_t ms = 0;
    if (!harness_open(&h, t, HARNESS_OWN_CLOCK))
        return;

    CHECK_RC(&h, store_space(h.store, bytes_str("other"), &other, NULL), BELAY_OK);
    int64_t here = now(&h);
    CHECK_RC(&h, space_now(other, &ms, NULL), BELAY_OK);
    TAP_EQ(t, ms, here);
}

static const struct tap_case cases[] = {
    { "clock: the same for a whole run of a body", time_stands_in_a_body },
    { "clock: never back, and not fooled by steps of hours", time_never_goes_back },
    { "clock: a step is doubted until it lasts or is accepted",
      a_step_is_doubted_until_it_lasts },
    { "clock: the mark is written at most once a second",
      the_mark_is_written_once_a_second },
    { "clock: the mark holds for the next store on the driver",
      the_mark_holds_for_the_next_store },
    { "clock: every space tells the time", each_space_has_its_time },
};
const struct topic topic_clock = { cases, COUNT_OF(cases) };
