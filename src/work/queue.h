/* queue.h - the inbox of a session, as transaction bodies.
 *
 * What must be true (beside L1 to L8, L12)
 *   Q1  what enters an inbox guards and bumps its back; every other change of which batches it
 *       has, or of who holds them, its front, and so does what enters to wait for its time: claims
 *       of one session are decided one after the other, and producers meet nobody but producers.
 *       Who decides that nothing more is there guards the back, too
 *   Q2  a batch stands in exactly one index: ready (rank seq) when due_at_ms is NULL, else
 *       due (rank due_at_ms); what is due is moved to ready before a claim decides
 *   Q3  being moved to ready ends no lease: its holder holds until somebody takes over
 *   Q4  sequences are never given out twice; batch ids contain them
 *   Q5  a claim's batches all carry its claim id, token, lease id and size
 *
 * Types are the public ones of <belay/queue.h>.
 */
#ifndef WORK_QUEUE_H
#define WORK_QUEUE_H

#include <belay/queue.h>

#include "work/lease.h"

/* --- enqueue --- */

/* A draft that was checked and put into canonical form, before any body. */
struct queue_entry {
    struct bytes session, source_key; /* source_key.ptr NULL: none */
    int32_t delivery, slot, merge;
    struct bytes merge_key; /* canonical JSON */
    int64_t available_at_ms;
    struct bytes items; /* canonical JSON array of the payloads */
    struct bytes wake;  /* what BATCH_WAKE says; ptr NULL: it is no wake */
};

/* `invalid` (reasons session_id, source_key, delivery, slot, merge, payload, too_large)
 * for anything that cannot be enqueued. */
MUST_USE belay_rc queue_prepare(const struct belay_draft *draft, struct belay_arena *a,
                                struct queue_entry *out, struct belay_error *err);

/* Within another body: enqueues it there, so that both happen or neither.  *out_seq is
 * the batch's; *out_existing is the row of a batch that has the source key already, or
 * NULL. */
MUST_USE belay_rc queue_enqueue_in(struct txn *t, const struct queue_entry *e,
                                   int64_t *out_seq, const struct row **out_existing);

MUST_USE belay_rc queue_enqueue(struct space *sp, const struct belay_draft *draft,
                                struct belay_arena *a, struct belay_enqueued *out,
                                struct belay_error *err);

/* --- claims --- */

/* What claims of one handle share. */
struct queue_site {
    struct space *space;
    struct bytes principal; /* who asks, as the door knows it; may be empty */
    struct host *host;      /* NULL: the handle keeps apart from its host's others */
};

/* A claim that finds nothing ready asks whether those who hold batches are dead, and goes
 * on with what is theirs. */
MUST_USE belay_rc queue_claim(const struct queue_site *site,
                              const struct belay_claim_request *request,
                              struct belay_arena *a, struct belay_claimed *out,
                              struct belay_error *err);

MUST_USE belay_rc queue_renew(struct space *sp, const struct belay_claim *claim,
                              int64_t lease_ms, int64_t *out_expires_at_ms,
                              struct belay_error *err);

MUST_USE belay_rc queue_abandon(struct space *sp, const struct belay_claim *claim,
                                size_t *out_released, struct belay_error *err);

/* --- completion, within a session's commit --- */

/* A claim found to own exactly what it lists. */
struct queue_owned {
    const struct row **batches; /* in the claim's order */
    size_t n;
};

/* How many rows queue_own_wants names for a claim, at most. */
#define QUEUE_WANTS(claim) (4 + 4 * (claim)->n_batches)

/* The rows that queue_own and queue_remove will ask for, as far as they are known
 * beforehand: a body that fetches many things gets them in the same round trip.  Keys
 * are in the arena; returns how many, or 0 when there is no memory. */
size_t queue_own_wants(const struct belay_claim *claim, struct row_want *out,
                       struct belay_arena *a);

/* Whether the claim owns exactly the batches it lists: all of them carry its id, token
 * and lease id in the current epoch, none is missing and none is listed twice.  A batch
 * with enqueue_seq 0 is found by its id.  lease_lost otherwise, `invalid` (reason
 * duplicate_batch) for one listed twice.  Writes nothing. */
MUST_USE belay_rc queue_own(struct txn *t, struct bytes session,
                            const struct belay_claim *claim, struct queue_owned *out);

/* Removes what is owned from the inbox. */
MUST_USE belay_rc queue_remove(struct txn *t, struct bytes session,
                               const struct queue_owned *owned);

/* --- looking and removing --- */

MUST_USE belay_rc queue_cancel(struct space *sp, const char *session_id,
                               const char *batch_id, struct belay_arena *a,
                               const struct belay_batch **out, struct belay_error *err);
MUST_USE belay_rc queue_drop(struct space *sp, const char *session_id,
                             const char *which, struct belay_error *err);
MUST_USE belay_rc queue_list(struct space *sp, const char *session_id,
                             const struct belay_queue_page *page, struct belay_arena *a,
                             struct belay_batches *out, struct belay_error *err);

/* Marks the inbox deleted, so that nothing enters or is claimed any more (within the
 * body that deletes the session). */
MUST_USE belay_rc queue_close(struct txn *t, struct bytes session);
/* Removes up to `limit` batches of an inbox that was closed; *out_left: there are more. */
MUST_USE belay_rc queue_purge(struct space *sp, struct bytes session, size_t limit,
                              bool *out_left, struct belay_error *err);

/* A claim as text, and back. */
MUST_USE belay_rc claim_text(const struct belay_claim *claim, struct belay_arena *a,
                             const char **out, struct belay_error *err);
MUST_USE belay_rc claim_parse(const char *text, struct belay_arena *a,
                              const struct belay_claim **out, struct belay_error *err);

#endif /* WORK_QUEUE_H */
