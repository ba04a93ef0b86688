/* audit.h - what administrators did, in a log that cannot be changed unnoticed.
 *
 * One chain a namespace, since a transaction lives in one; what is done to namespaces
 * themselves stands in the system's.  An entry is canonical JSON in the log stream
 * AUDIT_STREAM:
 *
 *     {"at_ms":..,"detail":{..},"hash":"..","previous":"..","principal":"..","seq":1,
 *      "verb":"epoch.raise"}
 *
 * Invariants
 *   A1  hash is the SHA-256, in hex, of the entry's canonical JSON without `hash`
 *   A2  previous is the hash of the entry before; 64 zeros in the first
 *   A3  sequences are 1, 2, 3 ...; the row audit_head holds the last one and its hash
 *   A4  an entry is committed together with what it tells about
 *
 * Who can write to the database can also write the whole chain anew.  The chain shows
 * that an entry was changed, removed or inserted; keep a copy of the last hash
 * elsewhere to know that all of it is the one you saw.
 */
#ifndef WORK_AUDIT_H
#define WORK_AUDIT_H

#include <jansson.h>

#include "base/hash.h"
#include "store/txn.h"

struct audit_note {
    const char *verb;      /* the operation's name: "epoch.raise" */
    const char *principal; /* who: "cli:ada" */
    const json_t *detail;  /* an object */
    int64_t at_ms;         /* 0: the store's time */
};

/* In the body of an admin verb: adds one entry (A4).  The hash is computed in the body:
 * it needs the entry before, and is of a few hundred bytes. */
MUST_USE belay_rc audit_append(struct txn *t, const struct audit_note *note);

/* Entries behind `after` (0: from the first), at most `limit`, in the arena. */
MUST_USE belay_rc audit_page(struct space *sp, int64_t after, size_t limit,
                             struct belay_arena *a, struct log_entries *out,
                             struct belay_error *err);

/* A chain while it is being followed.  Zero-initialise, give it every entry in order,
 * then end it.  The first thing that is wrong stays; what follows is not looked at. */
struct audit_walk {
    int64_t seq; /* of the last entry; how many there are when nothing is wrong */
    char hash[SHA256_HEX_LEN + 1];
    const char *reason; /* NULL: all is well.  gap, malformed, hash_mismatch,
                           chain_break, head_mismatch */
    int64_t broken_at;  /* the sequence where it is not */
};

/* Fails for want of memory only. */
MUST_USE belay_rc audit_walk_entry(struct audit_walk *w, int64_t seq, struct bytes data,
                                   struct belay_error *err);
/* head: the row audit_head, NULL when there is none. */
void audit_walk_end(struct audit_walk *w, const struct row *head);

/* Follows the chain of a namespace to its end, page by page. */
MUST_USE belay_rc audit_verify(struct space *sp, struct audit_walk *out,
                               struct belay_error *err);

#endif /* WORK_AUDIT_H */
