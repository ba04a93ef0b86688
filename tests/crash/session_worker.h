/* session_worker.h - the program that test_sessions kills.
 *
 * It enqueues, claims, renews, abandons, commits, cancels, pins and collects on one
 * store, for ever, and keeps a ledger (session_ledger.h).  A new life first looks into
 * the ledger: what its last one had begun and not heard of is tried again, and a claim
 * that is left is used, however late. */
#ifndef TESTS_CRASH_SESSION_WORKER_H
#define TESTS_CRASH_SESSION_WORKER_H

#include <stdint.h>
#include <sys/types.h>

struct worker_plan {
    const char *dir; /* of the ledgers */
    const char *url; /* of the store */
    unsigned number, life;
    uint64_t seed;
    pid_t parent; /* it dies with it */
};

/* Does not return. */
_Noreturn void session_worker(const struct worker_plan *plan);

#endif /* TESTS_CRASH_SESSION_WORKER_H */
