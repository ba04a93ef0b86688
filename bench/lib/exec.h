/* exec.h - what the benchmarks of executions share: submitting, and callers that claim
 * and complete, through the front door. */
#ifndef BENCH_EXEC_H
#define BENCH_EXEC_H

#include <belay/execution.h>

#include "inbox.h"

/* Puts n executions with a payload of 100 bytes on a lane, many at a time.  requires: the
 * one capability that they ask for, or NULL. */
bool bench_submit(struct belay *b, const char *lane, unsigned n, const char *requires);

struct bench_drain {
    struct belay *b;
    const char *lane;
    unsigned callers;
    unsigned batch; /* claimed at a time */
    unsigned turns; /* claims of each caller; 0: until nothing is left */
    bool next;      /* what is completed is completed together with the next claim */
};

/* Claims and completes; executions a second, or 0, and said why, when something failed or
 * another number of them than n was done. */
double bench_drain_rate(const struct bench_drain *d, unsigned n);

/* Submits n, which is not counted, and drains them. */
double bench_exec_rate(const struct bench_drain *d, unsigned n);

#endif /* BENCH_EXEC_H */
