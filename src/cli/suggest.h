/* suggest.h - what somebody may have meant. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include "base/bytes.h"

/* Offer every candidate; `best` is then the nearest one, or empty when none is near
 * enough: at most one edit in three letters, where an edit is a letter too many, too
 * few, wrong, or in the wrong order with its neighbour. */
struct suggestion {
    struct bytes typed;
    struct bytes best;
    size_t distance; /* of best; start with SIZE_MAX */
};

void suggest_offer(struct suggestion *s, struct bytes candidate);

#endif /* CLI_SUGGEST_H */
