#include "base/attr.h"
#include "base/clock.h"
#include "store/clock.h"
#include "tap.h"

#define SECOND ((int64_t)1000)
#define MINUTE ((int64_t)60 * 1000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEAR (365 * DAY)
#define START ((int64_t)1700000000000)

/* One look at the clock: what both clocks say, and what the store's time must be. */
struct look {
    int64_t wall_ms, mono_ms, want_ms;
    bool doubted;
};

static void follow(struct tap *t, int64_t mark_ms, const struct look *looks, size_t n)
{
    struct store_clock c;

    store_clock_init(&c, mark_ms);
    for (size_t i = 0; i < n; i++) {
        int64_t now = store_clock_now(&c, looks[i].wall_ms, looks[i].mono_ms * 1000);
        if (!TAP_EQ(t, now - START, looks[i].want_ms - START) ||
            !TAP_EQ(t, c.doubted, looks[i].doubted))
            printf("# at look %zu\n", i + 1);
    }
}

static void follows_wall_time(struct tap *t)
{
    const struct look looks[] = {
        { START, 0, START, false },
        { START + 10, 10, START + 10, false },
        { START + 30 * SECOND, 10000, START + 30 * SECOND,
          false }, /* 20 s ahead: small */
    };
    follow(t, 0, looks, COUNT_OF(looks));
}

static void never_goes_back(struct tap *t)
{
    const struct look looks[] = {
        { START, 0, START, false },
        { START - 30 * SECOND, 1, START, false }, /* a small step back: stands still */
        { START - 29 * SECOND, 1001, START, false },
        { START + 1, 30 * SECOND + 2, START + 1, false }, /* caught up */
    };
    follow(t, 0, looks, COUNT_OF(looks));
}

static void ignores_a_large_step_forward(struct tap *t)
{
    const struct look looks[] = {
        { START, 0, START, false },
        { START + YEAR, 1000, START + 1000, true },
        { START + YEAR + 30000, 31000, START + 31000, true },
        { START + YEAR + 59999, 60999, START + 60999, true },
        /* it has lasted 60 s: believed */
        { START + YEAR + 60000, 61000, START + YEAR + 60000, false },
    };
    follow(t, 0, looks, COUNT_OF(looks));
}

static void ignores_a_large_step_back(struct tap *t)
{
    const struct look looks[] = {
        { START, 0, START, false },
        { START - YEAR, 1000, START + 1000, true },
        { START - YEAR + 59000, 60000, START + 60000, true },
        /* believed, and still never back: it stands still */
        { START - YEAR + 60000, 61000, START + 60000, false },
        { START - YEAR + 90000, 91000, START + 60000, false },
    };
    follow(t, 0, looks, COUNT_OF(looks));
}

static void a_step_that_is_undone_is_forgotten(struct tap *t)
{
    const struct look looks[] = {
        { START, 0, START, false },
        { START + DAY, 1000, START + 1000, true },
        { START + 2000, 2000, START + 2000, false },
        { START + 3000, 3000, START + 3000, false },
    };
    follow(t, 0, looks, COUNT_OF(looks));
}

static void every_new_step_starts_the_wait_anew(struct tap *t)
{
    const struct look looks[] = {
        { START, 0, START, false },
        { START + DAY, 1000, START + 1000, true },
        { START + 2 * DAY, 50000, START + 50000, true },
        { START + 2 * DAY + 20000, 70000, START + 70000, true },
        { START + 2 * DAY + 60000, 110000, START + 2 * DAY + 60000, false },
    };
    follow(t, 0, looks, COUNT_OF(looks));
}

static void starts_at_the_mark(struct tap *t)
{
    const struct look behind[] = {
        { START - HOUR, 0, START, false }, /* within a day: waits there */
        { START - HOUR + 10, 10, START, false },
    };
    const struct look ahead[] = { { START + HOUR, 0, START + HOUR, false } };
    const struct look far_ahead[] = {
        { START + 2 * DAY, 0, START, true },
        { START + 2 * DAY + 5, 5, START + 5, true },
        { START + 2 * DAY + 60000, 60000, START + 2 * DAY + 60000, false },
    };
    const struct look far_behind[] = {
        { START - 2 * DAY, 0, START, true },
        { START - 2 * DAY + 5, 5, START + 5, true },
        { START - 2 * DAY + 60000, 60000, START + 5, false },
    };
    follow(t, START, behind, COUNT_OF(behind));
    follow(t, START, ahead, COUNT_OF(ahead));
    follow(t, START, far_ahead, COUNT_OF(far_ahead));
    follow(t, START, far_behind, COUNT_OF(far_behind));
}

static void accepting_ends_the_doubt(struct tap *t)
{
    struct store_clock c;

    store_clock_init(&c, 0);
    (void)store_clock_now(&c, START, 0);
    (void)store_clock_now(&c, START + YEAR, 1000);
    TAP_OK(t, c.doubted);
    TAP_EQ(t, c.doubted_step_ms, YEAR - 1);
    store_clock_accept(&c);
    TAP_EQ(t, store_clock_now(&c, START + YEAR + 1, 2000), START + YEAR + 1);
    TAP_OK(t, !c.doubted);
}

static void stays_within_the_range_of_times(struct tap *t)
{
    struct store_clock c;

    store_clock_init(&c, 0);
    TAP_EQ(t, store_clock_now(&c, -5, 0), 0);
    store_clock_init(&c, 0);
    TAP_EQ(t, store_clock_now(&c, INT64_MAX, 0), TIME_MAX_MS);
    store_clock_init(&c, INT64_MAX);
    TAP_EQ(t, store_clock_now(&c, START, 0), TIME_MAX_MS);
}

static void the_mark_is_due_once_a_second(struct tap *t)
{
    struct store_clock c;

    store_clock_init(&c, START);
    TAP_OK(t, !store_clock_persist_due(&c, START + 999));
    TAP_OK(t, store_clock_persist_due(&c, START + 1000));
}

static const struct tap_case cases[] = {
    { "follows wall time while it moves like the monotonic clock", follows_wall_time },
    { "never goes back", never_goes_back },
    { "a large step forward counts for nothing until it has lasted a minute",
      ignores_a_large_step_forward },
    { "a large step back counts for nothing, and then time stands still",
      ignores_a_large_step_back },
    { "a step that is undone is forgotten", a_step_that_is_undone_is_forgotten },
    { "every new step starts the wait anew", every_new_step_starts_the_wait_anew },
    { "starts at the persisted mark", starts_at_the_mark },
    { "accepting a step ends the doubt", accepting_ends_the_doubt },
    { "stays within the range of times", stays_within_the_range_of_times },
    { "the mark is due once a second", the_mark_is_due_once_a_second },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
