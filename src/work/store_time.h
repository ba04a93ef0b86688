/* store_time.h - the store's clock, shown and set right.
 *
 * The store's time never goes back by itself: a persisted mark keeps it from that, and
 * a step of the wall clock is doubted for a while (store/clock.h).  A reset says that
 * the wall clock is right now.  The mark is set to it, forwards or backwards, and in
 * the same transaction the epoch rises: whatever was leased in the time before is
 * stale.
 *
 * A store that is open elsewhere keeps its own time until it is closed or has caught
 * up.
 */
#ifndef WORK_STORE_TIME_H
#define WORK_STORE_TIME_H

#include "store/txn.h"

struct store_time {
    int64_t now_ms;  /* the store's time */
    int64_t wall_ms; /* what the clock says */
    int64_t mark_ms; /* persisted; 0: nothing was ever stored here */
    bool doubted;    /* a step of the clock is being ignored */
    int64_t step_ms; /* how far it is off, then */
};

MUST_USE belay_rc store_time_show(struct space *sp, struct store_time *out,
                                  struct belay_error *err);

/* *out is as after the reset, *out_epoch the new epoch.
 *
 *   BELAY_OUT_OF_RANGE  the epoch cannot rise any more */
MUST_USE belay_rc store_time_reset(struct space *sp, const char *principal,
                                   struct store_time *out, int64_t *out_epoch,
                                   struct belay_error *err);

#endif /* WORK_STORE_TIME_H */
