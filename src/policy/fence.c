#include "policy/fence.h"

belay_rc fence_next(int64_t last, int64_t floor, int64_t epoch, int64_t *out)
{
    if (epoch < 0 || epoch > FENCE_EPOCH_MAX || last < 0 || floor < 0)
        return BELAY_INVALID;

    int64_t highest = last > floor ? last : floor;
    if (fence_epoch(highest) > epoch)
        return BELAY_CORRUPT;
    if (fence_epoch(highest) < epoch)
        highest = epoch << FENCE_N_BITS; /* earlier epochs are all below */
    if (fence_n(highest) == FENCE_N_MAX)
        return BELAY_OUT_OF_RANGE;
    *out = highest + 1;
    return BELAY_OK;
}

enum life_verdict life_judge(const struct life_facts *f)
{
    if (f->now.len == 0 || bytes_eq(f->stored, f->now))
        return LIFE_SAME;
    if (f->stored.len == 0)
        return LIFE_FIRST;
    return f->restarted && f->started_at_ms >= f->mark_ms - LIFE_CLOCK_MS
               ? LIFE_RESTARTED
               : LIFE_FOREIGN;
}
