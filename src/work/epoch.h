/* epoch.h - the high part of every fence of a namespace (X10).
 *
 * Raising it makes every fence that was given out before stale.  It is done by hand
 * after a restore or a failover, and with every reset of the clock.
 */
#ifndef WORK_EPOCH_H
#define WORK_EPOCH_H

#include "policy/fence.h"
#include "store/txn.h"

struct epoch_info {
    int64_t epoch;
    int64_t raised_at_ms; /* -1: never */
    struct bytes reason;  /* of the last time; empty: none was given */
    int64_t fence_floor;
    enum life_verdict life; /* LIFE_FOREIGN: nothing is granted until it is raised */
};

/* A namespace that does not exist yet has epoch 0.  The reason is in the arena. */
MUST_USE belay_rc epoch_show(struct space *sp, struct belay_arena *a,
                             struct epoch_info *out, struct belay_error *err);

/* By one.  reason may be empty.
 *
 *   BELAY_OUT_OF_RANGE  it is FENCE_EPOCH_MAX already */
MUST_USE belay_rc epoch_raise(struct space *sp, struct bytes reason,
                              const char *principal, struct belay_arena *a,
                              struct epoch_info *out, struct belay_error *err);

/* In a body: the epoch, guarded, that grants and checks go by: void when it is raised.
 * After a restart of the server it is raised along with whatever the body does (X10).
 *
 *   BELAY_UNAVAILABLE  reason epoch: the server is another one, and nobody has said yet
 *                      that this is right (epoch_raise) */
MUST_USE belay_rc epoch_in(struct txn *t, int64_t *out);

/* In a body: raises it, without an audit entry. */
MUST_USE belay_rc epoch_raise_in(struct txn *t, struct bytes reason, int64_t at_ms,
                                 int64_t *out_epoch);

#endif /* WORK_EPOCH_H */
