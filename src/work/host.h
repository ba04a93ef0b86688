/* host.h - what a handle knows of the processes of its host: who we are, who of those
 * that hold leases is dead, and which one does what only one has to do.
 *
 * It is never more than a hint (C5).  That a holder is dead makes its lease eligible, as
 * its end does; the grant that follows is an ordinary one, decided from the row as it is
 * guarded, with a fence of its own.  So evidence that is late costs time, and evidence that
 * is wrong costs the holder its lease, which it learns from its next call (lease_lost).
 *
 *   H1  who is dead is the kernel's word, never a guess from time
 *   H2  only a lease that names this host, this boot and a member is asked about: another
 *       boot of the same machine proves nothing, since machine ids are copied with images
 *   H3  without a host (NULL) or without its fleet everything goes on, by expiry
 *
 * host_watch.h is the one that asks the fleet; tests bring their own.
 */
#ifndef WORK_HOST_H
#define WORK_HOST_H

#include <stdatomic.h>

#include <belay/contest.h>

#include "store/txn.h"

struct host;
struct lease_holder;

/* Something that one process of the host does.  The caller's memory. */
#define HOST_SEAT_MAX 511
struct host_seat {
    char label[HOST_SEAT_MAX + 1];
    size_t label_len;
    bool is_held;
    struct belay_contest_guard guard;
};

struct host_ops {
    /* Becomes part of it, once; false: there is none to be part of. */
    bool (*join)(struct host *h);
    /* Whether the kernel says that this incarnation will never run again. */
    bool (*is_dead)(struct host *h, const struct lease_holder *who);
    /* Takes the seat or stays in it. */
    bool (*hold)(struct host *h, struct host_seat *s);
    void (*yield)(struct host *h, struct host_seat *s);
    /* Loses what the dead hold, unless nobody died since that was done; NULL: others do. */
    belay_rc (*settle)(struct host *h, struct belay_error *err);
};

/* Who this process is, as leases name it.  Texts are the host's. */
struct host_self {
    struct bytes host, boot, member;
    int64_t pid, process_start;
};

struct host {
    const struct host_ops *ops;
    bool binds;            /* leases that are granted here end with this process */
    atomic_bool is_joined; /* self can be read */
    atomic_uint_least64_t sweeps; /* how often what the dead held was lost since then */
    struct host_self self;
};

/* All of these take a NULL host. */

/* Before the first thing that needs it, outside of any body. */
bool host_join(struct host *h);

/* Whether the holder's process, of this host and boot, is dead.  False as long as nobody
 * has joined.  May be asked in a body: it reads what the kernel says and changes nothing. */
bool host_proves_dead(struct host *h, const struct lease_holder *who);

/* Whether this process is the one that has the seat; it asks again at least every 5 s to
 * stay in it.  True where there is no fleet: then the store alone decides. */
bool host_hold(struct host *h, struct host_seat *s);
/* Others may have it, and are woken. */
void host_yield(struct host *h, struct host_seat *s);

/* For who is about to say that nothing is left:
 *
 *     mark = host_mark(h); look; if nothing was found host_settle(h, mark, &again, err)
 *
 * What those held who died before the call is lost when it returns, executions only.  *again:
 * that happened since the mark, by whomever, so there may be something now.  Joins; where
 * there is no fleet it does nothing.  Nothing is asked of the store while nobody dies, but by
 * the first call: for those who died while nobody watched.  Not in a body. */
uint64_t host_mark(struct host *h);
MUST_USE belay_rc host_settle(struct host *h, uint64_t mark, bool *again,
                              struct belay_error *err);

#endif /* WORK_HOST_H */
