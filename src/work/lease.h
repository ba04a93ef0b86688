/* lease.h - leases in rows: reading them, granting, renewing, letting go.
 *
 * Which columns they are is declared once (LEASE_* of schema.h); a noun says at which
 * column its lease begins.  The rules are policy/lease.h's.
 */
#ifndef WORK_LEASE_H
#define WORK_LEASE_H

#include "policy/lease.h"
#include "store/txn.h"
#include "work/host.h"

/* Who is granted a lease; everything may be empty but the owner. */
struct lease_holder {
    struct bytes owner;
    struct bytes principal;          /* who asked, as the door knows it */
    struct bytes host, boot, member; /* the incarnation: host id, boot id, ... */
    int64_t pid, process_start;      /* ... 0: not known */
};

/* A grant, decided. */
struct lease_grant {
    struct lease_holder holder;
    struct bytes token, id; /* id: LEASE_ID_HEX digits, drawn before the body */
    int64_t fence, claimed_at_ms, expires_at_ms;
};

/* Who is granted a lease at this door: `owner` for `principal` (may be empty) and, where the
 * host binds leases to its process, the incarnation too.  Not in a body: it may join. */
struct lease_holder lease_holder_of(struct bytes owner, struct bytes principal,
                                    struct host *h);
/* With the incarnation whether or not the host binds; for leases that cannot outlive their
 * process. */
struct lease_holder lease_holder_here(struct bytes owner, struct host *h);
/* Who holds the lease of a row; its bytes are the row's. */
struct lease_holder lease_holder_in(const struct row *row, unsigned base);

/* 128 random bits in hex, for a grant. */
MUST_USE belay_rc lease_id_make(struct store *s, char out[LEASE_ID_HEX + 1],
                                struct belay_error *err);

/* The lease of a row; its bytes are the row's. */
struct lease lease_of(const struct row *row, unsigned base);

/* What a grant changes, as changes to put; returns how many (LEASE_COLUMNS at most). */
size_t lease_grant_changes(const struct lease_grant *g, unsigned base,
                           struct change out[LEASE_COLUMNS]);
/* Letting go: everything but the fence becomes NULL. */
size_t lease_release_changes(unsigned base, struct change out[LEASE_COLUMNS]);

/* The fence of the next grant after `last`; floor as fence_next.  out_of_range, reason
 * fence, when there is none left. */
MUST_USE belay_rc lease_next_fence(struct txn *t, int64_t last, int64_t floor,
                                   int64_t epoch, int64_t *out);

/* lease_lost with its reason, about `what` ("claim qwc:1:1"). */
belay_rc lease_lost(struct txn *t, const char *reason, const char *what);

#endif /* WORK_LEASE_H */
