/* queue_rows.h - the rows and indexes of an inbox, for the files of the queue.
 *
 *   queue_inbox.c    the inbox's own rows
 *   queue_rows.c     batches: where they stand, removing them, what is in them
 *   claim_text.c     their payloads
 *   queue_hold.c     granting
 */
#ifndef WORK_QUEUE_ROWS_H
#define WORK_QUEUE_ROWS_H

#include <belay/process.h>

#include "policy/claim.h"
#include "work/queue.h"

#define SESSION_ID_MAX 255
#define OWNER_ID_MAX 255
#define SOURCE_KEY_MAX 512
#define MERGE_GROUP_MAX 255
#define BATCH_BYTES_MAX ((size_t)1 << 20) /* of all its payloads */
#define BATCH_ITEMS_MAX 384               /* longer ones have a row of their own */

/* `invalid`, reason session_id. */
MUST_USE belay_rc queue_check_session(const char *id, struct belay_error *err);

/* --- an inbox --- */

struct inbox {
    struct bytes session;
    struct bytes ready, due; /* its indexes */
    struct bytes topic;      /* what is posted when it changes */

    bool exists, deleted;                        /* by whichever row was read */
    int64_t last_seq;                            /* of its back */
    int64_t first_seq, gone, last_gone, changes; /* of its front */
};

/* The names alone, in the arena; false: no memory. */
MUST_USE bool inbox_names(struct inbox *out, struct bytes session,
                          struct belay_arena *a);
/* What a back says was given out; -1: nonsense. */
int64_t inbox_last_seq(const struct row *back);
/* Its back, its front, or both in one round trip; guarded. */
MUST_USE belay_rc inbox_get_back(struct txn *t, struct inbox *in);
MUST_USE belay_rc inbox_get_front(struct txn *t, struct inbox *in);
MUST_USE belay_rc inbox_get_both(struct txn *t, struct inbox *in);
/* The names and the front: all that whoever lets nothing in has to do with. */
MUST_USE belay_rc inbox_open(struct txn *t, struct inbox *out, struct bytes session);
/* Makes both rows of one that does not exist, as it is here. */
MUST_USE belay_rc inbox_make(struct txn *t, struct inbox *in);
/* Writes what was changed, and the front counts the change (Q1).  Whoever changes what is in its
 * indexes puts the front, too: a claim that knows it relies on that (scan.cover in read.h).  Only
 * what enters `ready` behind everything else does not, and puts the back. */
MUST_USE belay_rc inbox_put_back(struct txn *t, const struct inbox *in);
MUST_USE belay_rc inbox_put_front(struct txn *t, struct inbox *in);
/* wrong_state, reason deleted. */
belay_rc inbox_gone(struct txn *t, const struct inbox *in);

/* --- batches --- */

/* The key of a batch and of its payload. */
struct batch_key {
    struct value v[2];
};
struct batch_key batch_key(struct bytes session, int64_t seq);

static inline int64_t batch_seq(const struct row *row)
{
    return row_i64(row, BATCH_SEQ, 0);
}

static inline bool batch_is_ready(const struct row *row)
{
    return row->v[BATCH_DUE_AT_MS].kind == VALUE_NULL;
}

/* Enters a new batch into the index where it belongs (Q2): due_at_ms BATCH_READY is the
 * ready index. */
#define BATCH_READY ((int64_t)-1)
MUST_USE belay_rc batch_rank(struct txn *t, const struct inbox *in, int64_t seq,
                             int64_t due_at_ms);
/* Moves one there, and puts `changes` (LEASE_COLUMNS + 4 at most) along with it. */
MUST_USE belay_rc batch_place(struct txn *t, const struct inbox *in,
                              const struct row *row, int64_t due_at_ms,
                              const struct change *changes, size_t n_changes);
/* Takes it out of its index. */
MUST_USE belay_rc batch_unrank(struct txn *t, const struct inbox *in,
                               const struct row *row);

/* Reads what batch_delete deletes, of several batches in one round trip. */
MUST_USE belay_rc batch_fetch_all(struct txn *t, const struct row *const *rows,
                                  size_t n);
/* The same for later bodies (txn_foresee). */
MUST_USE belay_rc batch_foresee(struct txn *t, const struct row *const *rows, size_t n);
/* Deletes the rows of a batch and counts it out of the inbox, whose front the caller puts.  If it
 * is the wake of a process's event, that is settled so. */
MUST_USE belay_rc batch_delete(struct txn *t, struct inbox *in, const struct row *row,
                               enum belay_wake_state wake);

/* --- what is in the rows --- */

/* The first column that holds something it cannot hold, or BATCH_COLUMNS. */
unsigned batch_fault(const struct row *row);

/* `corrupt`, naming the batch, the column (also as the reason) and what it holds. */
belay_rc batch_corrupt(const struct row *row, unsigned column, struct belay_error *err);
/* `corrupt`: something stands in an index and there is no such batch. */
belay_rc batch_missing(struct bytes index, struct bytes member,
                       struct belay_error *err);

/* What the prefix rule looks at; bytes are the row's. */
MUST_USE belay_rc batch_candidate(const struct row *row, struct claim_candidate *out,
                                  struct belay_error *err);

/* The rows that hold the payloads of batches, in one round trip; NULL for those that hold
 * them themselves, and for what is missing. */
MUST_USE belay_rc batch_payloads(struct txn *t, const struct row *const *rows, size_t n,
                                 const struct row **out);
/* The payloads of a batch: a JSON array, or NULL when they are missing. */
const struct value *batch_items(const struct row *row, const struct row *payload);

/* All of it, in the arena; session_id is borrowed.  `corrupt` when it cannot be read. */
MUST_USE belay_rc batch_decode(const struct row *row, const struct row *payload,
                               const char *session_id, struct belay_arena *a,
                               struct belay_batch *out, struct belay_error *err);

/* --- payloads --- */

/* How many there are; false: this is no JSON array. */
MUST_USE bool items_count(struct bytes array, size_t *out);
/* All n of them, in the arena: the canonical text is copied once and cut at the commas.
 * False: no memory. */
MUST_USE bool items_cut(struct bytes array, const char *batch_id, struct belay_arena *a,
                        struct belay_item *out, size_t n);

/* --- granting --- */

struct queue_grant {
    const struct inbox *in;
    const struct row **rows; /* batches that the rules give, at least one */
    size_t n;
    struct lease_holder holder;
    struct bytes lease_id;
    int64_t now_ms, expires_at_ms;
};

/* Grants all of them as one claim, or none: `out_of_range` when one has had its last
 * fence, `corrupt` when one cannot be read.  The caller puts the front of the inbox. */
MUST_USE belay_rc queue_grant(struct txn *t, const struct queue_grant *g,
                              const struct belay_claim **out);

#endif /* WORK_QUEUE_ROWS_H */
