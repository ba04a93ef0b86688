/* lane.h - work as executions will have it: workers pick 100 jobs that are due from a rank,
 * lease them (the row's state and attempt, its rank moved to the end of the lease), and
 * then complete those 100 (state, rank removed, one entry of a feed), each job with a
 * payload of 100 bytes, until none is left. */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include "inbox.h"

#define BENCH_LANE_WORKERS 4

/* The dictionary that the store must have. */
extern const struct schema bench_schema_jobs;

/* Jobs a second over a new backlog of n jobs, numbered from `from`, in a lane of its own,
 * as other queues are measured; 0 unless every one was done.  events: one entry of the
 * feed for each job. */
double bench_lane_rate(struct bench_store *b, unsigned from, unsigned n, bool events);

#endif /* BENCH_LANE_H */
