#include "base/clock.h"

#include <errno.h>
#include <time.h>

static int64_t wall_ms(void *arg)
{
    struct timespec now;

    (void)arg;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t mono_us(void *arg)
{
    struct timespec now;

    (void)arg;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void sleep_us(void *arg, int64_t us)
{
    struct timespec until;

    (void)arg;
    if (us <= 0)
        return;
    /* An absolute end: a sleep resumed after a signal does not drift. */
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += us / 1000000;
    until.tv_nsec += us % 1000000 * 1000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

int64_t clock_coarse_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct belay_clock clock_system(void)
{
    return (struct belay_clock){
        .wall_ms = wall_ms,
        .mono_us = mono_us,
        .sleep_us = sleep_us,
    };
}

int64_t time_add_ms(int64_t now_ms, int64_t ttl_ms)
{
    int64_t sum;

    if (__builtin_add_overflow(now_ms, ttl_ms, &sum))
        return now_ms < 0 ? 0 : TIME_MAX_MS;
    if (sum < 0)
        return 0;
    return sum > TIME_MAX_MS ? TIME_MAX_MS : sum;
}
