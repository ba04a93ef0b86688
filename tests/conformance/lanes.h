/* lanes.h - work that many take from one index, a hundred rows at a time.
 *
 * A row is like an execution: its state is THING_N, who has leased it THING_TEXT, how
 * often it was taken THING_COUNT.  It stands in the index `ready` at its due time, then in
 * `running` at the end of its lease, then in none; each step leaves an entry in a feed. */
#ifndef TESTS_CONFORMANCE_LANES_H
#define TESTS_CONFORMANCE_LANES_H

#include "conformance.h"

#define LANE_ROWS 1200
#define LANE_BATCH 100

extern const struct bytes lane_ready, lane_feed;

/* One batch and the worker that takes it. */
struct batch {
    char worker[8];
    size_t limit;
    bool dies; /* with what it has picked: wrong_state */

    int64_t id[LANE_BATCH], due[LANE_BATCH];
    size_t n;
};

/* The store of a case with LANE_ROWS ready rows in it. */
bool lane_open(struct harness *h, struct tap *t, unsigned flags);

/* Bodies of a struct batch: picks and leases; gives up the rows it has leased. */
belay_rc lane_claim(struct txn *t, void *arg);
belay_rc lane_complete(struct txn *t, void *arg);

/* The row of a member or of an entry, which is its number behind a letter: c for claimed,
 * d for done. */
int64_t lane_number(struct bytes name);

#endif /* TESTS_CONFORMANCE_LANES_H */
