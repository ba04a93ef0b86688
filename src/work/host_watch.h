/* host_watch.h - the host as its fleet knows it (host.h).
 *
 * Handles of one store and namespace on one host meet in a fleet of their own.  It is
 * joined by the first call that needs it; from then on a thread sleeps until a member dies.
 *
 *   - What a member that died held is lost at once (exec_dead_sweep), by one of those who
 *     heard of it; those that wait on this handle are woken to look for themselves.  The dead
 *     stay in the fleet until that is done, so whoever does it may die, too.
 *   - It is done once more a second later, for a grant that was still on its way to a server
 *     when its claimer died, and when somebody joins, for those who died while nobody watched.
 *   - Who is about to say that nothing is there does it for itself (host_settle), when somebody
 *     is gone who was not seen to.
 *   - The cost is bounded by what is leased, in pages.  Nothing runs while nobody dies.
 *
 * Where the fleet cannot be joined (no shared memory, no room, another user's, another time
 * namespace) the handle goes on without it (H3); host_watch_examine tells why.
 */
#ifndef WORK_HOST_WATCH_H
#define WORK_HOST_WATCH_H

#include "work/execution.h"
#include "work/host.h"

struct host_watch_options {
    const char *fleet; /* its name; the same for all handles of a store and namespace */
    const char *dir;   /* NULL: /dev/shm */
    bool binds;        /* leases that are granted end with this process */
};

/* Joins nothing yet.  The space is borrowed and must outlive the host. */
MUST_USE belay_rc host_watch_open(struct host **out, struct space *space,
                                  int64_t grace_ms,
                                  const struct host_watch_options *options,
                                  struct belay_error *err);

/* No call may be using it.  Takes NULL. */
void host_watch_close(struct host *h);

/* Joins for a moment, to see whether that works: how many others are there, or why not. */
MUST_USE belay_rc host_watch_examine(const struct host_watch_options *options,
                                     int *out_others, struct belay_error *err);

#endif /* WORK_HOST_WATCH_H */
