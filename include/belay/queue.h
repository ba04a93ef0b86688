/* queue.h - a session's durable inbox.
 *
 * Work enters a session's inbox as batches.  A worker claims the group of batches at
 * the front, works on it, and completes it inside a session commit (session.h); there
 * is no other way to complete.  A claim is a lease: while its token is current its
 * holder holds it, however late (L5).  Once it is past due somebody else may take the
 * batches over, with a greater fence, and from then on everything the first holder
 * tries is `lease_lost`.
 *
 * Promises: L1 to L8 (docs/promises.md).  Batches of a session are granted in the order
 * of their enqueue_seq among those that are eligible (L12).
 *
 * Session and owner ids: 1 to 255 bytes of UTF-8 without control characters; source
 * keys likewise, to 512; merge groups to 255.  Payloads are JSON, 1 MiB a batch in all.
 * Strings of a result end with a NUL; optional ones are NULL where absent.
 */
#ifndef BELAY_QUEUE_H
#define BELAY_QUEUE_H

#include <stddef.h>

#include <belay/open.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When a batch may be delivered. */
enum belay_delivery {
    BELAY_DELIVERY_UNSET = 0, /* refused: say which */
    BELAY_EARLIEST_SAFE_BOUNDARY = 1,
    BELAY_AFTER_CURRENT_TURN_COMMIT = 2,
};

/* Whether it may be delivered with others. */
enum belay_slot {
    BELAY_SLOT_UNSET = 0, /* refused */
    BELAY_JOIN = 1,
    BELAY_EXCLUSIVE = 2,
};

/* With which others: two batches to join have equal merge keys.  `never` equals
 * `never`. */
enum belay_merge {
    BELAY_MERGE_NEVER = 0,
    BELAY_MERGE_PAYLOAD_DEFAULT = 1,
    BELAY_MERGE_GROUP = 2, /* and equal groups */
};

/* Where in its life the claimer stands. */
enum belay_boundary {
    BELAY_IDLE = 0, /* takes anything */
    BELAY_ACTIVE_TURN_CHECKPOINT =
        1, /* only what may be delivered within a turn: a head
                                         that may not blocks what is behind it */
};

/* A time that is not set. */
#define BELAY_TIME_NONE ((int64_t)-1)

/* Lease times: 0 is legal (past due at once), more than a day is `invalid`. */
#define BELAY_QUEUE_LEASE_MS ((int64_t)15 * 60 * 1000) /* the usual one */
#define BELAY_LEASE_MAX_MS ((int64_t)24 * 60 * 60 * 1000)

/* Most batches in one claim. */
#define BELAY_CLAIM_MAX 1024

struct belay_draft {
    uint32_t size;    /* sizeof(struct belay_draft) */
    int32_t delivery; /* enum belay_delivery */
    int32_t slot;     /* enum belay_slot */
    int32_t merge;    /* enum belay_merge */
    const char *session_id;
    const char *source_key;  /* NULL: none.  While a batch of that key is in the inbox,
                                enqueueing another answers with the first */
    const char *merge_group; /* BELAY_MERGE_GROUP only */
    int64_t available_at_ms; /* not claimable before; 0: at once */
    const char *const *payloads; /* JSON texts, in order; may be none */
    size_t n_payloads;
};

struct belay_item {
    const char *item_id; /* "<batch_id>:item:<index from 0>" */
    const char *payload; /* canonical JSON */
    size_t payload_len;
};

struct belay_batch {
    const char *session_id;
    const char *batch_id; /* "qwb:" and 64 hex digits */
    int64_t enqueue_seq;  /* from 1 in each session, never used again */
    const char *source_key;
    int32_t delivery, slot, merge, reserved;
    const char *merge_group;
    int64_t available_at_ms, enqueued_at_ms;
    const struct belay_item *items;
    size_t n_items;

    /* Who holds it, or held it last; claim_id is NULL when nobody does.  Past due and
     * not taken over it is still held. */
    const char *claim_id, *owner_id;
    int64_t fence; /* of the last grant; 0: never granted */
    int64_t claimed_at_ms, expires_at_ms;
};

struct belay_enqueued {
    const struct belay_batch *batch;
    bool replayed;         /* a batch of this source key was there: it is the answer */
    bool payload_mismatch; /* ... and its payloads are others than those given now */
};

/* Adds a batch to an inbox.  wrong_state, reason `deleted`: the session is gone for
 * good. */
BELAY_API BELAY_MUST_USE belay_rc belay_queue_enqueue(struct belay *b,
                                                      const struct belay_draft *draft,
                                                      struct belay_arena *arena,
                                                      struct belay_enqueued *out,
                                                      struct belay_error *err);

/* A claim, as it is granted.  Keep it, or the text that belay_claim_text makes of it:
 * both are proof of holding the batches. */
struct belay_claim {
    const char *session_id;
    const char *claim_id; /* "qwc:<enqueue_seq of the head>:<fence>" */
    const char *owner_id;
    const char *lease_token; /* 64 hex digits: the seed's hash of public facts */
    const char *lease_id;    /* 32 hex digits, random: what a stranger cannot know */
    int64_t fence;           /* of the head */
    int64_t claimed_at_ms, expires_at_ms;
    const struct belay_batch *batches;
    size_t n_batches;
};

/* Who asks for what. */
struct belay_claim_request {
    uint32_t size;    /* sizeof(struct belay_claim_request) */
    int32_t boundary; /* enum belay_boundary */
    const char *session_id;
    const char *owner_id;
    int64_t lease_ms; /* 0 is legal: see BELAY_QUEUE_LEASE_MS for the usual one */
    size_t max;       /* batches; 0: none is given */
    /* Not NULL: exactly these batches in this order, if the rules give them to whoever
     * asks for n_batch_ids; else nothing is claimed. */
    const char *const *batch_ids;
    size_t n_batch_ids;
    int64_t wait_ms; /* how long to wait for something to claim; 0: not at all */
    struct belay_cancel *cancel; /* ends the waiting; may be NULL */
};

/* Why nothing was claimed. */
enum belay_no_claim {
    BELAY_CLAIMED = 0,
    BELAY_NO_EMPTY = 1,             /* the inbox is */
    BELAY_NO_NOT_YET_AVAILABLE = 2, /* what comes next waits for its time */
    BELAY_NO_BOUNDARY_BLOCKED = 3,  /* the head may not be delivered within a turn */
    BELAY_NO_HEAD_HELD = 4,         /* what comes next is held by a live claim */
    BELAY_NO_ZERO_LIMIT = 5,        /* nothing was asked for */
    BELAY_NO_OTHER_BATCHES = 6,     /* batch_ids: the rules give others */
};

struct belay_claimed {
    const struct belay_claim *claim; /* NULL: nothing was claimed */
    int32_t why;                     /* enum belay_no_claim */
    int32_t reserved;
    int64_t next_at_ms; /* when that may change by itself; BELAY_TIME_NONE: not known */
};

/* The answers' names on every door: "empty", "not_yet_available", "boundary_blocked",
 * "head_held", "zero_limit", "other_batches"; "claimed" for 0. */
BELAY_API const char *belay_no_claim_name(int why);

/* Claims the group of batches at the front of an inbox.  Nothing to claim, even after
 * waiting, is an answer and no error; `cancelled` when the wait was cancelled,
 * wrong_state (reason `deleted`) when the session is gone for good. */
BELAY_API BELAY_MUST_USE belay_rc belay_queue_claim(
    struct belay *b, const struct belay_claim_request *request,
    struct belay_arena *arena, struct belay_claimed *out, struct belay_error *err);

/* Moves the end of a claim to now + lease_ms, never nearer, for all its batches or none
 * (L6).  Past due and not taken over is renewed.  lease_lost, with a reason: superseded
 * (another claim has one of them), released, terminal (completed, cancelled or dropped),
 * incomplete (the claim has more batches than are listed), epoch. */
BELAY_API BELAY_MUST_USE belay_rc belay_queue_renew(struct belay *b,
                                                    const struct belay_claim *claim,
                                                    int64_t lease_ms,
                                                    int64_t *out_expires_at_ms,
                                                    struct belay_error *err);

/* Gives the batches back: the next claim of them has a greater fence.  A claim that
 * holds nothing any more is no error: *out_released (may be NULL) is how many were
 * given back. */
BELAY_API BELAY_MUST_USE belay_rc belay_queue_abandon(struct belay *b,
                                                      const struct belay_claim *claim,
                                                      size_t *out_released,
                                                      struct belay_error *err);

/* Removes a batch that no live claim holds, and answers with it; *out is NULL when it
 * is missing or somebody is working on it. */
BELAY_API BELAY_MUST_USE belay_rc belay_queue_cancel(
    struct belay *b, const char *session_id, const char *batch_id,
    struct belay_arena *arena, const struct belay_batch **out, struct belay_error *err);

/* Removes a batch whatever is in it and whoever holds it, without reading its content:
 * the way to get rid of one that is corrupt.  `which` is a batch id, or an enqueue_seq
 * in decimal.  not_found when there is none. */
BELAY_API BELAY_MUST_USE belay_rc belay_queue_drop(struct belay *b,
                                                   const char *session_id,
                                                   const char *which,
                                                   struct belay_error *err);

struct belay_queue_page {
    uint32_t size;     /* sizeof(struct belay_queue_page) */
    bool pending;      /* leave out what a live claim holds */
    int64_t after_seq; /* 0: from the beginning */
    size_t limit;      /* 1 to 1000; 0: 100 */
};

struct belay_batches {
    const struct belay_batch *batches; /* ascending enqueue_seq */
    size_t n;
    int64_t next_after_seq; /* to go on with; 0: there is no more */
};

/* The batches of an inbox.  `corrupt` names the first that cannot be read. */
BELAY_API BELAY_MUST_USE belay_rc belay_queue_list(
    struct belay *b, const char *session_id, const struct belay_queue_page *page,
    struct belay_arena *arena, struct belay_batches *out, struct belay_error *err);

/* A claim as one printable string, in the arena: "qwc:7:3/<token>/<lease id>/<session,
 * percent-encoded>/<seq>,<seq>..." */
BELAY_API BELAY_MUST_USE belay_rc belay_claim_text(const struct belay_claim *claim,
                                                   struct belay_arena *arena,
                                                   const char **out,
                                                   struct belay_error *err);

/* And back: enough of it to renew, abandon and complete (session, claim id, token, lease
 * id, the batches' sequences; the rest is empty).  bad_handle otherwise. */
BELAY_API BELAY_MUST_USE belay_rc belay_claim_parse(const char *text,
                                                    struct belay_arena *arena,
                                                    const struct belay_claim **out,
                                                    struct belay_error *err);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_QUEUE_H */
