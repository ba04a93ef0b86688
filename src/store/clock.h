/* clock.h - the store's time: never back, and not fooled by a clock that jumps.
 *
 * Wall time is followed as long as it moves like the monotonic clock, give or take a
 * minute.  A larger step (at start: more than a day against the persisted mark) is
 * doubted: time goes on from where it was at the pace of the monotonic clock, until the
 * step has lasted CLOCK_TRUST_US or somebody accepts it.  Whatever happens, an answer
 * is never smaller than one before, nor than the mark.
 *
 * Pure: the caller passes both clocks.  Safety of leases depends on none of this.
 */
#ifndef STORE_CLOCK_H
#define STORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_STEP_MS ((int64_t)60 * 1000)
#define CLOCK_START_STEP_MS ((int64_t)24 * 3600 * 1000)
#define CLOCK_TRUST_US ((int64_t)60 * 1000000)
#define CLOCK_PERSIST_MS ((int64_t)1000)

struct store_clock {
    bool started;
    bool doubted;            /* a step is being ignored */
    int64_t doubted_at_us;   /* since when, monotonic */
    int64_t doubted_step_ms; /* how far wall time stands from ours, for doctor */
    int64_t last_wall_ms, last_mono_us; /* of the previous call */
    int64_t base_ms, base_us;           /* where time goes on from while doubted */
    int64_t high_ms;                    /* highest answer so far, at least the mark */
    int64_t persisted_ms;               /* highest mark known to be stored */
};

/* mark_ms is the persisted mark, 0 when there is none. */
void store_clock_init(struct store_clock *c, int64_t mark_ms);

/* The store's time now. */
int64_t store_clock_now(struct store_clock *c, int64_t wall_ms, int64_t mono_us);

/* Follow wall time from the next call on, doubted or not. */
void store_clock_accept(struct store_clock *c);

/* Whether the mark is due to be stored with the next commit (at most once a second). */
bool store_clock_persist_due(const struct store_clock *c, int64_t now_ms);

#endif /* STORE_CLOCK_H */
