/* hooks.h - time and chance, as a program may replace them.
 *
 * The library reads no clock and draws no random number except through these.  Tests
 * and simulations pass their own; everybody else leaves them unset and gets the
 * system's.
 */
#ifndef BELAY_HOOKS_H
#define BELAY_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A source of time.  All three functions are required and may be called from any
 * thread at once. */
struct belay_clock {
    int64_t (*wall_ms)(void *arg); /* Unix milliseconds; may step in either direction */
    int64_t (*mono_us)(void *arg); /* microseconds since some start; never goes back */
    void (*sleep_us)(void *arg,
                     int64_t us); /* returns when mono_us has advanced by us */
    void *arg;
};

/* A source of random bytes, good enough for secrets.  Fills n bytes and returns 0, or
 * returns anything else and the call that needed them fails with `unavailable`.  May be
 * called from any thread at once. */
struct belay_random {
    int (*fill)(void *arg, void *out, size_t n);
    void *arg;
};

#ifdef __cplusplus
}
#endif

#endif /* BELAY_HOOKS_H */
