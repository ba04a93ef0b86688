#include "base/attr.h"
#include "base/rng.h"
#include "store/server_time.h"
#include "tap.h"

#define START_US ((int64_t)1700000000000000)
#define BEGIN_US ((int64_t)5000000) /* of our monotonic clock */

/* A server whose clock is `START_US` when ours is BEGIN_US. */
static int64_t server_us(int64_t mono_us)
{
    return START_US + mono_us - BEGIN_US;
}

/* Asked at `at`; it looks at its clock after `there`, and the answer is here after `back`. */
static int64_t ask(struct server_time *c, int64_t at, int64_t there, int64_t back)
{
    server_time_take(c, server_us(at + there), at, at + there + back);
    return at + there + back;
}

/* How far it is behind the server's clock. */
static int64_t behind_ms(struct server_time *c, int64_t mono_us)
{
    return server_us(mono_us) / 1000 - server_time_now_ms(c, mono_us);
}

static void never_ahead(struct tap *t)
{
    static const int64_t ways[][2] = { { 0, 0 },      { 50, 50 },     { 100000, 0 },
                                       { 0, 100000 }, { 200000, 10 }, { 10, 200000 } };

    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct server_time c;
        server_time_init(&c);
        int64_t now = ask(&c, BEGIN_US, ways[i][0], ways[i][1]);
        TAP_OK(t, behind_ms(&c, now) >= 0);
        TAP_OK(t, behind_ms(&c, now) <= (ways[i][1] + 999) / 1000);
        server_time_release(&c);
    }
}

static void learns_from_short_ways(struct tap *t)
{
    struct server_time c;

    server_time_init(&c);
    int64_t now = ask(&c, BEGIN_US, 10, 50000);
    TAP_EQ(t, behind_ms(&c, now), 50);
    now = ask(&c, now, 10, 20000);
    TAP_EQ(t, behind_ms(&c, now), 20);
    now = ask(&c, now, 90000, 0);
    TAP_EQ(t, behind_ms(&c, now), 0);
    now = ask(&c, now, 10, 500000); /* what is known already stays */
    TAP_EQ(t, behind_ms(&c, now), 0);
    server_time_release(&c);
}

static void asks_again_soon_after_a_long_way(struct tap *t)
{
    struct server_time c;

    server_time_init(&c);
    TAP_OK(t, server_time_is_due(&c, BEGIN_US));
    TAP_OK(t, server_time_is_old(&c, BEGIN_US));
    int64_t now = ask(&c, BEGIN_US, 100, 100000);
    TAP_OK(t, !server_time_is_due(&c, now + SERVER_TIME_AGAIN_US));
    TAP_OK(t, server_time_is_due(&c, now + SERVER_TIME_AGAIN_US + 1));
    TAP_OK(t, !server_time_is_old(&c, now + SERVER_TIME_OLD_US));
    now = ask(&c, now, 100, 100);
    TAP_OK(t, !server_time_is_due(&c, now + SERVER_TIME_EVERY_US));
    TAP_OK(t, server_time_is_due(&c, now + SERVER_TIME_EVERY_US + 1));
    TAP_OK(t, server_time_is_old(&c, now + SERVER_TIME_OLD_US + 1));
    server_time_release(&c);
}

static void follows_a_clock_that_is_set(struct tap *t)
{
    static const int64_t steps[] = { -3600, 3600, -1, 1 };

    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct server_time c;
        int64_t step_us = steps[i] * 1000000;
        server_time_init(&c);
        int64_t now = ask(&c, BEGIN_US, 100, 100);
        server_time_take(&c, server_us(now + 40) + step_us, now, now + 100);
        int64_t is_ms = (server_us(now + 100) + step_us) / 1000;
        TAP_OK(t, server_time_now_ms(&c, now + 100) <= is_ms);
        TAP_OK(t, server_time_now_ms(&c, now + 100) >= is_ms - 1);
        server_time_release(&c);
    }
}

/* Any ways, in any order: never ahead, and never further behind than the best answer was. */
static void whatever_the_ways(struct tap *t)
{
    struct rng rng;

    rng_init(&rng, 7);
    for (int round = 0; round < 200; round++) {
        int64_t now = BEGIN_US, best = INT64_MAX;
        struct server_time c;
        bool good = true;
        server_time_init(&c);
        for (int i = 0; i < 50; i++) {
            int64_t there = (int64_t)rng_below(&rng, 300000);
            int64_t back = (int64_t)rng_below(&rng, 300000);
            now = ask(&c, now, there, back);
            best = back < best ? back : best;
            now += (int64_t)rng_below(&rng, 1000);
            good = good && behind_ms(&c, now) >= 0 &&
                   behind_ms(&c, now) <= (best + 999) / 1000;
        }
        TAP_OK(t, good);
        server_time_release(&c);
    }
}

static const struct tap_case cases[] = {
    { "never ahead of the server, however long an answer takes", never_ahead },
    { "a short way tells more than a long one", learns_from_short_ways },
    { "after a long way it asks again soon", asks_again_soon_after_a_long_way },
    { "a server's clock that is set is followed", follows_a_clock_that_is_set },
    { "whatever the ways are", whatever_the_ways },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
