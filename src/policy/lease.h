/* lease.h - one holder at a time: who holds, who may take over, who is too late.
 *
 * The one set of rules for every noun that is leased.  Time, or proof that its holder is
 * dead, only makes a lease eligible for takeover; a committed transition ends it (L5).  Whoever presents the current
 * token holds, however late; whoever does not is stale, however early.
 *
 * Pure: no I/O, no clock, no randomness, no memory.
 *
 *   L1  a lease row has one holder
 *   L2  every grant has a greater fence (fence.h)
 *   L4  who is refused here changes nothing
 *   L6  renewing never shortens, never revives, never changes token or fence
 *   L7  a takeover is decided from the row as it is when it is written
 */
#ifndef POLICY_LEASE_H
#define POLICY_LEASE_H

#include "base/bytes.h"
#include "base/err.h"

#define LEASE_MS_MAX ((int64_t)24 * 60 * 60 * 1000)
#define LEASE_ID_HEX 32 /* 128 random bits */

/* A lease as its row has it.  Nobody holds it when token is empty; fence, the last one
 * granted, stays. */
struct lease {
    struct bytes owner, token, id;
    int64_t fence;
    int64_t claimed_at_ms, expires_at_ms;
};

/* What a caller shows to prove that it holds. */
struct lease_proof {
    struct bytes token, id;
};

/* Past due leases may be renewed as long as nobody took them (queue, executions), or
 * not (processes). */
enum lease_renewal { LEASE_RENEW_LATE, LEASE_RENEW_IN_TIME };

/* now + ttl, saturating at the end of time.  ttl_ms within 0..LEASE_MS_MAX. */
int64_t lease_expiry(int64_t now_ms, int64_t ttl_ms);

/* ttl outside 0..LEASE_MS_MAX: `invalid`, reason lease. */
MUST_USE belay_rc lease_check_ttl(int64_t ttl_ms, struct belay_error *err);

/* Somebody holds it: a token is there, and (live) its end has not come.  At
 * expires_at == now it has. */
bool lease_is_granted(const struct lease *l);
bool lease_is_live(const struct lease *l, int64_t now_ms);

/* Whether somebody else may have it: nobody holds it, its end has come, or its holder was
 * proved dead (C5: wrong evidence costs its holder the lease, never two holders).  This
 * only makes it eligible; taking it is a grant like any other, with its own fence. */
bool lease_may_be_taken(const struct lease *l, int64_t now_ms, bool holder_dead);

/* Whether the proof is the current holder's: NULL, or the reason of lease_lost:
 * `released` (nobody holds it), `superseded` (somebody else does), `epoch` (the store's
 * epoch was raised since the grant). */
const char *lease_lost_reason(const struct lease *l, const struct lease_proof *proof,
                              int64_t epoch);

/* The end after a renewal: max(old, now + ttl).  Returns NULL, or `expired` where the
 * noun does not renew past due; *out is untouched then. */
const char *lease_renew(const struct lease *l, enum lease_renewal renewal,
                        int64_t now_ms, int64_t ttl_ms, int64_t *out_expires_at_ms);

#endif /* POLICY_LEASE_H */
