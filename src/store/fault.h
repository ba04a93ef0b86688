/* fault.h - a driver that fails on command.
 *
 * Faults are armed for the n-th call from now of one kind of operation.  The inner
 * driver sees exactly the calls that get through, so what a fault means is exact:
 *
 *   FAULT_BEFORE    the call answers `unavailable`; the inner driver is not called
 *   FAULT_CONFLICT  commit reports a conflict on guard 0; not called
 *   FAULT_DELAY     the clock's sleep by `delay_us`, then the call as usual
 *   FAULT_LOST      commit never arrives: `unknown_outcome`, and nothing was applied
 *   FAULT_AFTER     commit arrives, its reply does not: `unknown_outcome`, and whatever
 *                   the inner driver did, it did
 *   FAULT_LATE      commit answers `unknown_outcome` now and arrives later, before the
 *                   (`late_calls`+1)-th following call of any kind but `end` (copied,
 * so that its caller may be gone)
 *
 * A driver with lost replies says so in its caps.
 */
#ifndef STORE_FAULT_H
#define STORE_FAULT_H

#include "store/driver.h"

enum fault_kind {
    FAULT_BEFORE,
    FAULT_CONFLICT,
    FAULT_DELAY,
    FAULT_LOST,
    FAULT_AFTER,
    FAULT_LATE,
};

enum fault_op { FAULT_ON_BEGIN, FAULT_ON_READ, FAULT_ON_COMMIT };

struct fault {
    enum fault_op op;
    enum fault_kind kind;
    unsigned nth;        /* 1: the next such call */
    bool sticky;         /* every such call from the n-th on, instead of one */
    int64_t delay_us;    /* FAULT_DELAY */
    unsigned late_calls; /* FAULT_LATE */
};

/* Wraps `inner` as trace_wrap does.  clock is copied. */
MUST_USE belay_rc fault_wrap(struct driver **out, struct driver *inner,
                             const struct belay_clock *clock, struct belay_error *err);

/* Arms one more fault.  Faults that act on the same call: the one armed first.
 * `invalid` for a kind that the operation cannot have (BEFORE and DELAY fit all, the
 * others fit commit only). */
MUST_USE belay_rc fault_arm(struct driver *d, const struct fault *f,
                            struct belay_error *err);

/* Disarms everything; commits that are still under way arrive now. */
void fault_clear(struct driver *d);

/* Commits that are still under way (FAULT_LATE). */
size_t fault_under_way(const struct driver *d);

/* How many faults have acted so far. */
uint64_t fault_count(const struct driver *d);

#endif /* STORE_FAULT_H */
