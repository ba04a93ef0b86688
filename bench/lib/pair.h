/* pair.h - the pair of an inbox: a claim, then a commit with one node of 200 bytes, a turn
 * stamp and that claim's completion. */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include "inbox.h"

/* Pairs a second of callers with a session each, `pairs` of them for each caller; or 0.
 * Inboxes are filled with `inbox` batches at a time, which is not counted.  No `round` is
 * given twice: it makes names that no round had before. */
double bench_pair_rate(struct belay *b, unsigned callers, unsigned pairs,
                       unsigned inbox, unsigned round);

#endif /* BENCH_PAIR_H */
