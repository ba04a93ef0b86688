/* step.h - places where a test may stop, or end, a member.
 *
 * Between any two writes to shared memory an operation passes a step: it calls the handle's
 * step function when there is one, which costs a predictable branch otherwise.  A test that
 * raises SIGKILL at the n-th step of an operation, for every n, has killed it everywhere it
 * matters.  A step is passed by the thread that called.
 */
#ifndef FLEET_STEP_H
#define FLEET_STEP_H

#include <belay/fleet.h>

#include "base/attr.h"

enum fleet_step {
    STEP_CREATE_MADE = 0, /* segment has its size, no name */
    STEP_CREATE_FILLED,   /* and its content */
    STEP_CREATE_LINKED,   /* and its name */
    STEP_JOIN_TAKEN,      /* node: FREE -> JOINING */
    STEP_JOIN_LOCKED,     /* byte of the node locked */
    STEP_JOIN_FILLED,     /* who it is */
    STEP_JOIN_KEPT,       /* the keeper has the life word */
    STEP_JOIN_LIVE,       /* node: LIVE */
    STEP_LEAVE_MARKED,    /* node: LEAVING */
    STEP_LEAVE_SWEPT,     /* nothing names it */
    STEP_LEAVE_FREED,     /* node: FREE */
    STEP_INTERN_TAKEN,    /* entry is ours, in no chain */
    STEP_INTERN_FILLED,   /* its label is written */
    STEP_INTERN_LINKED,   /* in the chain */
    STEP_INTERN_ONLINE,   /* may be claimed */
    STEP_RETIRE_FROZEN,   /* entry can no longer be claimed */
    STEP_RETIRE_MARKED,   /* chain names it as victim */
    STEP_RETIRE_CUT,      /* out of the chain */
    STEP_RETIRE_CLEARED,  /* chain names no victim */
    STEP_RETIRE_FREED,    /* entry is free */
    STEP_CLAIM_FOUND,     /* subject looked up */
    STEP_CLAIM_REVOKED,   /* D of the old tenure revoked */
    STEP_CLAIM_NOTED,     /* REVOKED frame published */
    STEP_CLAIM_RECORD,    /* own record written */
    STEP_CLAIM_TAKEN,     /* O names us: the linearisation point */
    STEP_CLAIM_TOKEN,     /* token drawn and written */
    STEP_CLAIM_DEADLINE,  /* D of our tenure installed */
    STEP_CLAIM_LOGGED,    /* CLAIM frame published */
    STEP_CLAIM_CHECKED,   /* O read again */
    STEP_RENEW_READ,      /* O and D are ours */
    STEP_RENEW_SET,       /* D moved */
    STEP_RELEASE_LOGGED,  /* RELEASE frame published */
    STEP_RELEASE_FREED,   /* O is FREE */
    STEP_RELEASE_WOKEN,   /* waiters were woken */
    STEP_FORCE_REVOKED,   /* D revoked by an administrator */
    STEP_FORCE_NOTED,     /* REVOKED frame published */
    STEP_FORCE_FREED,     /* O is FREE */
    STEP_WAIT_MARKED,     /* O has the waiters' bit */
    STEP_LANE_MARKED,     /* slot's seq is odd */
    STEP_LANE_WRITTEN,    /* payload is there */
    STEP_LANE_COMMITTED,  /* slot's seq is even */
    STEP_LANE_ADVANCED,   /* lane's head raised: visible */
    STEP_LARGE_MARKED,    /* range of the large area taken */
    STEP_LARGE_WRITTEN,   /* its bytes are there */
    STEP_ORDER_SET,       /* descriptor in the order: the linearisation point */
    STEP_ORDER_ADVANCED,  /* head of the order raised */
    STEP_SWEEP_DEAD,      /* node: LIVE -> DEAD */
    STEP_SWEEP_BEGUN,     /* node: DEAD -> SWEEPING */
    STEP_SWEEP_ENTRY,     /* one contest of the dead freed */
    STEP_SWEEP_FREED,     /* node: FREE */
    STEP_RESET_EPOCH,     /* epoch raised */
    STEP_RESET_ENTRY,     /* one contest freed */
    STEP_RESET_RING,      /* one ring emptied */
    STEP_NOTIFY_RAISED,   /* word raised */
    STEP_NOTIFY_MARKED,   /* waiter's bit set */
    STEP_ARENA_TAKEN,     /* blocks for a long label taken */
    STEP_ARENA_WRITTEN,   /* and filled */
    STEP_KIND_LINKED,     /* a ring's segment has its name */
    STEP_BATCH_MARKED,    /* a lane says how far its batch goes */
    STEP_CACHE_TAKEN,     /* an entry of the cache is ours to fill */
    STEP_CACHE_CHUNK,     /* a chunk for it taken */
    STEP_CACHE_WRITTEN,   /* its bytes are there */
    STEP_CACHE_LIVE,      /* it can be got: the linearisation point */
    STEP_CACHE_ENDED,     /* one entry emptied */
    STEP_CACHE_LOGGED,    /* its frame published */
    FLEET_STEPS           /* how many there are */
};

typedef void (*fleet_step_fn)(void *arg, enum fleet_step step);

/* From now on; NULL for none.  Not while another thread uses the handle. */
void fleet_set_step(struct belay_fleet *f, fleet_step_fn step, void *arg);

/* belay_fleet_join with a step function from the beginning. */
MUST_USE belay_rc fleet_join_stepped(const char *name,
                                     const struct belay_fleet_options *options,
                                     fleet_step_fn step, void *arg,
                                     struct belay_fleet **out, struct belay_error *err);

/* "claim_taken"; NULL for a number that is none. */
const char *fleet_step_name(unsigned step);

/* Ends the member as if its process had been killed: the keeper dies holding the life word,
 * the byte lock goes, nothing is released or written; the handle is freed.  For tests with
 * threads in the place of processes. */
void fleet_abandon(struct belay_fleet *f);

#endif /* FLEET_STEP_H */
