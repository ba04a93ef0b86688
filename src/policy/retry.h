/* retry.h - whether a failed attempt is followed by another, and when; what time does to an
 * execution.
 *
 * Pure: no I/O, no clock, no randomness (a random number is handed in), no memory.
 */
#ifndef POLICY_RETRY_H
#define POLICY_RETRY_H

#include <belay/execution.h>

#include "base/bytes.h"
#include "base/err.h"

#define RETRY_FIRST_MS ((int64_t)1000)
#define RETRY_LONGEST_MS ((int64_t)60000)
#define RETRY_MULTIPLIER 2.0

/* A policy with every default filled in. */
struct retry_policy {
    enum belay_backoff backoff;
    int64_t max_retries, delay_ms, max_delay_ms;
    double multiplier;
    bool jitter;
    struct bytes retryable; /* a JSON array of strings as it is stored; empty: all */
};

/* Whether a failure of this class may be tried again at all. */
bool retry_class_allows(enum belay_failure_class c);

/* Whether `category` (the class's name, or a short UTF-8 detail) or the class's name is in
 * the stored list; an empty list has everything. */
bool retry_list_allows(struct bytes list, enum belay_failure_class c,
                       struct bytes category);

/* Whether there is another attempt after `retries` were charged. */
bool retry_allowed(const struct retry_policy *p, int64_t retries,
                   enum belay_failure_class c, struct bytes category);

/* How long to wait before it: fixed, or min(first * multiplier^retries, longest), with
 * jitter spread over half to all of that by `random` (all 64 bits used).  Never negative,
 * never overflows. */
int64_t retry_delay_ms(const struct retry_policy *p, int64_t retries, uint64_t random);

/* --- what time does --- */

/* What an execution whose time has come needs, in the order in which it is asked. */
enum due_action {
    DUE_NOTHING, /* not yet: *out_next_ms is when to look again */
    DUE_EXPIRE,  /* its deadline */
    DUE_PROMOTE, /* its delay is over */
    DUE_TIMEOUT, /* the attempt has taken too long: fail(timeout) */
    DUE_LOST,    /* the lease ended, the grace passed, or its holder is dead: can be
                    claimed again */
    DUE_CAPPED,  /* likewise, and it was lost too often: terminal */
    DUE_UNGRANT, /* a grant was not used */
    DUE_PURGE,   /* its retention is over */
};

/* TIME_NONE (-1) where there is none. */
struct due_facts {
    struct belay_vector vector;
    int64_t delay_until_ms, deadline_at_ms, timeout_at_ms, lease_expires_at_ms,
        grant_until_ms, purge_at_ms;
    int64_t reclaims, max_reclaims;
    int64_t grace_ms;
    bool holder_dead; /* who holds the lease was proved dead: it is lost now */
};

/* A time that is reached is due.  Something delayed without a time is due at once.
 * *out_next_ms is the earliest time to come when the answer is DUE_NOTHING, else, and when
 * there is none, TIME_NONE. */
enum due_action due_judge(const struct due_facts *f, int64_t now_ms,
                          int64_t *out_next_ms);

#endif /* POLICY_RETRY_H */
