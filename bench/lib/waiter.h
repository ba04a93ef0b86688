/* waiter.h - a process that waits for batches in an inbox, while this one puts them there. */
#ifndef BENCH_WAITER_H
#define BENCH_WAITER_H

#include <sys/types.h>

#include "inbox.h"

struct bench_waiter {
    pid_t pid;
    int in; /* what it tells */
};

/* Starts the process, before any thread is started: it opens a store of its own. */
bool bench_waiter_start(struct bench_waiter *w, struct belay *(*open)(const void *arg),
                        const void *arg);
void bench_waiter_end(struct bench_waiter *w); /* also when it did not start */

/* Seconds, each sample after the one before it. */
#define BENCH_WAKEUPS_MAX 1000
struct bench_wakeups {
    double enqueued[BENCH_WAKEUPS_MAX]; /* an enqueue here, while the waiter sleeps */
    double woken[BENCH_WAKEUPS_MAX];    /* from its start until the waiter wakes */
    double claimed[BENCH_WAKEUPS_MAX];  /* until it has claimed the batch */
    double bare[BENCH_WAKEUPS_MAX];     /* a bare commit, while nobody does anything */
};
/* bare(arg, i): seconds of a bare commit, or 0 when it failed. */
bool bench_wakeups(struct bench_wakeups *s, unsigned n, struct bench_waiter *w,
                   struct belay *b, double (*bare)(void *arg, unsigned i), void *arg);

#endif /* BENCH_WAITER_H */
