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

enum life_verdict life_judge(struct bytes stored, struct bytes now, bool restarted)
{
    if (now.len == 0 || bytes_eq(stored, now))
        return LIFE_SAME;
    if (stored.len == 0)
        return LIFE_FIRST;
    return restarted ? LIFE_RESTARTED : LIFE_FOREIGN;
}
