#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/attr.h"
#include "tap.h"

static void test_wall(struct tap *t)
{
    struct belay_clock c = clock_system();

    int64_t before = (int64_t)time(NULL) * 1000;
    int64_t now = c.wall_ms(c.arg);
    /* time() may lag behind by a tick of the coarse clock. */
    TAP_OK(t, now >= before);
    TAP_OK(t, now <= before + 5000);
}

static void test_mono(struct tap *t)
{
    struct belay_clock c = clock_system();
    int64_t last = c.mono_us(c.arg);
    unsigned backwards = 0;

    for (unsigned i = 0; i < 100000; i++) {
        int64_t now = c.mono_us(c.arg);
        backwards += now < last;
        last = now;
    }
    TAP_EQ(t, backwards, 0);
}

static void test_sleep(struct tap *t)
{
    struct belay_clock c = clock_system();
    static const int64_t lengths[] = { 1, 999, 1000, 20000 };

    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        int64_t start = c.mono_us(c.arg);
        c.sleep_us(c.arg, lengths[i]);
        TAP_OK(t, c.mono_us(c.arg) - start >= lengths[i]);
    }
    int64_t start = c.mono_us(c.arg);
    c.sleep_us(c.arg, 0);
    c.sleep_us(c.arg, -1);
    c.sleep_us(c.arg, INT64_MIN);
    TAP_OK(t, c.mono_us(c.arg) - start < 1000000);
}

static atomic_int signals;

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&signals, 1);
}

struct disturber {
    pthread_t sleeper;
    atomic_bool stop;
};

static void *disturb(void *arg)
{
    struct disturber *d = arg;
    struct timespec pause = { .tv_nsec = 1000000 };

    while (!atomic_load(&d->stop)) {
        pthread_kill(d->sleeper, SIGUSR1);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void test_sleep_signals(struct tap *t)
{
    struct belay_clock c = clock_system();
    struct sigaction action = { .sa_handler = on_signal };
    struct disturber d = { .sleeper = pthread_self() };
    pthread_t thread;

    sigaction(SIGUSR1, &action, NULL);
    if (!TAP_EQ(t, pthread_create(&thread, NULL, disturb, &d), 0))
        return;
    int64_t start = c.mono_us(c.arg);
    c.sleep_us(c.arg, 50000);
    TAP_OK(t, c.mono_us(c.arg) - start >= 50000);
    atomic_store(&d.stop, true);
    pthread_join(thread, NULL);
    TAP_OK(t, atomic_load(&signals) > 1); /* it was disturbed */
}

/* clang-format off */
static const struct {
    int64_t now, ttl, want;
} sums[] = {
    { 0,               0,               0 },
    { 1000,            250,             1250 },
    { 1000,            -250,            750 },
    { 1000,            -1000,           0 },
    { 1000,            -1001,           0 },
    { TIME_MAX_MS,     0,               TIME_MAX_MS },
    { TIME_MAX_MS,     1,               TIME_MAX_MS },
    { TIME_MAX_MS - 1, 1,               TIME_MAX_MS },
    { TIME_MAX_MS - 2, 1,               TIME_MAX_MS - 1 },
    { 0,               INT64_MAX,       TIME_MAX_MS },
    { INT64_MAX,       INT64_MAX,       TIME_MAX_MS },
    { INT64_MAX,       0,               TIME_MAX_MS },
    { INT64_MIN,       INT64_MIN,       0 },
    { INT64_MIN,       -1,              0 },
    { -1,              INT64_MIN,       0 },
    { INT64_MIN,       INT64_MAX,       0 },
    { INT64_MAX,       INT64_MIN,       0 },
    { -5,              10,              5 },
    { INT64_MAX,       -(INT64_MAX - 7), 7 },
};
/* clang-format on */

static void test_add(struct tap *t)
{
    TAP_EQ(t, TIME_MAX_MS, ((int64_t)1 << 53) - 1);
    for (size_t i = 0; i < COUNT_OF(sums); i++)
        TAP_EQ(t, time_add_ms(sums[i].now, sums[i].ttl), sums[i].want);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "wall time is Unix milliseconds", test_wall },
        { "monotonic time never goes back", test_mono },
        { "a sleep lasts as long as asked, or not at all", test_sleep },
        { "a sleep is not cut short by signals", test_sleep_signals },
        { "a sum of times stays in range", test_add },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
