/* fence.h - the number that tells a current holder from a stale one.
 *
 * A fence is epoch * 2^40 + n.  It fits a JSON number (2^53).  The epoch belongs to the
 * store and rises at restore and failover (X10); n counts the grants of one lease from
 * 1, so at epoch 0 the third grant has fence 3.
 *
 * Pure: no I/O, no clock, no memory.
 *
 *   L2  every grant of a lease has a greater fence than every grant before it
 *   L3  a fence that was given out is never given out again, answered or not
 */
#ifndef POLICY_FENCE_H
#define POLICY_FENCE_H

#include "base/err.h"

#define FENCE_N_BITS 40
#define FENCE_N_MAX (((int64_t)1 << FENCE_N_BITS) - 1)
#define FENCE_EPOCH_MAX ((int64_t)8191)

static inline int64_t fence_epoch(int64_t fence)
{
    return fence >> FENCE_N_BITS;
}

static inline int64_t fence_n(int64_t fence)
{
    return fence & FENCE_N_MAX;
}

/* The fence of the next grant: above `last` (0: never granted) and above `floor` (below
 * which rows of this namespace that are gone may have had fences; 0: none), in `epoch`.
 *
 *   BELAY_OUT_OF_RANGE  n is used up in this epoch; it is refused, not wrapped
 *   BELAY_INVALID       epoch outside 0..FENCE_EPOCH_MAX, or a negative fence
 *   BELAY_CORRUPT       last or floor comes from a later epoch than the store's
 *
 * *out is untouched unless BELAY_OK. */
MUST_USE belay_rc fence_next(int64_t last, int64_t floor, int64_t epoch, int64_t *out);

/* What another life of the server means for the epoch (X10).  A restart may have lost the
 * end of what was written down; who comes after a failover may lack anything, and only a
 * person can say that the one before is really gone. */
enum life_verdict {
    LIFE_SAME,      /* the epoch stands */
    LIFE_FIRST,     /* none is known yet: this one is taken down */
    LIFE_RESTARTED, /* it is raised before anything is granted or checked */
    LIFE_FOREIGN,   /* nothing is granted until somebody raises it */
};

struct life_facts {
    struct bytes stored;   /* as it was known last; empty: never */
    struct bytes now;      /* empty where a store has only one */
    bool restarted;        /* it says that it began with a start on its own data */
    int64_t started_at_ms; /* when */
    int64_t mark_ms; /* the last one still worked then: who already ran is not that one,
                        started again */
};

#define LIFE_CLOCK_MS 1000 /* so much may clocks be off */

enum life_verdict life_judge(const struct life_facts *f);

#endif /* POLICY_FENCE_H */
