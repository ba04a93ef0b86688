/* options.h - how a store is opened.
 *
 * Zero the struct, set `size`, then what you care about.  A number that is 0 is unset
 * and leaves the choice to the store.  Where an explicit zero means something else than
 * that, BELAY_NONE says it: `.number_of_retries = BELAY_NONE` is "never again".
 *
 * An option that is also given in the URL has the URL's value.
 */
#ifndef BELAY_OPTIONS_H
#define BELAY_OPTIONS_H

#include <stdint.h>

#include <belay/hooks.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { BELAY_NONE = -1 };

/* What is done when a server does not answer: the n-th retry, from 0, comes after
 * factor * exponent_base^n milliseconds, of which up to jitter_percent are left to
 * chance. */
struct belay_retry {
    int32_t exponent_base;     /* 1 to 100; URL: retry_base */
    int32_t factor;            /* 1 to 60000; URL: retry_factor */
    int32_t number_of_retries; /* BELAY_NONE, or 1 to 1000; URL: retries */
    int32_t jitter_percent;    /* BELAY_NONE, or 1 to 100; URL: retry_jitter */
};

/* What a handle has to do with the other processes of its host that use the same store and
 * namespace.  They meet in a fleet (fleet.h) of their own, joined by the first call that
 * needs it; without shared memory everything goes on, by the ends of leases. */
enum belay_host {
    BELAY_HOST_APART = 0, /* nothing */

    /* It watches: when a process dies whose leases are bound to it, what it held can be had
     * at once; and of those that run timers one works, the others take its place when it
     * ends.  For claims that wait, and timers. */
    BELAY_HOST_WATCH = 1,

    /* It watches, and every lease that it is granted is bound to this process: others of
     * this host may have it as soon as the kernel says that the process has ended.  For
     * workers.  Not for a process that passes its leases on to others. */
    BELAY_HOST_BOUND = 2,
};

/* A later version of the library knows more members, behind these.  A caller that was
 * compiled against fewer is understood; one that was compiled against more is, as long
 * as it leaves at zero what this library does not know. */
struct belay_options {
    uint32_t size;     /* sizeof(struct belay_options) */
    uint32_t reserved; /* 0 */

    const char *ns; /* namespace, [a-z0-9][a-z0-9_-]{0,62}; NULL: "default" */

    /* NULL: the system's.  The struct is copied; what its `arg` points to is used until
     * the handle is closed. */
    const struct belay_clock *clock;
    const struct belay_random *random;

    /* For stores that are servers; the others ignore these. */
    int64_t request_timeout_ms; /* 1 to 86400000; URL: request_timeout=30s */
    struct belay_retry retry;

    /* How long an execution stays with a holder whose lease has ended, before others may
     * have it: BELAY_NONE, or 1 to 86400000; URL: grace=1s.  Unset: 1 s. */
    int64_t reclaim_grace_ms;

    int32_t host;          /* enum belay_host */
    int32_t reserved2;     /* 0 */
    const char *fleet_dir; /* where its shared memory lies; NULL: /dev/shm */
};

#ifdef __cplusplus
}
#endif

#endif /* BELAY_OPTIONS_H */
