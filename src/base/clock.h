/* clock.h - the system's clock, and the only file that reads it.
 *
 * Everything else receives a `struct belay_clock` or a `now`.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <belay/hooks.h>

/* CLOCK_REALTIME, CLOCK_MONOTONIC and a sleep that is not cut short by signals. */
struct belay_clock clock_system(void);

/* CLOCK_MONOTONIC_COARSE in microseconds: the time of the last tick, a few milliseconds ago at
 * most, for a quarter of the price.  One clock for all processes, and never ahead of
 * mono_us. */
int64_t clock_coarse_us(void);

/* CLOCK_REALTIME in nanoseconds. */
int64_t clock_wall_ns(void);

/* Times are Unix milliseconds in 0..TIME_MAX_MS everywhere (2^53 - 1: a JSON number
 * holds them). */
#define TIME_MAX_MS ((int64_t)9007199254740991)

/* now + ttl, clamped to 0..TIME_MAX_MS whatever the operands. */
int64_t time_add_ms(int64_t now_ms, int64_t ttl_ms);

#endif /* BASE_CLOCK_H */
