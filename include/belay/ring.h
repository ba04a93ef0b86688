/* ring.h - frames that members of a fleet publish and anybody in it reads.
 *
 * A ring belongs to a kind (0 to 255) of a fleet.  Every member writes a lane of its own, so
 * that no two ever write the same memory; an ordered ring has, besides, one index that gives
 * all frames one order.  Writers never wait, but in a ring that is `reliable`, for consumers.
 * Readers keep their own cursors; one that is too slow or came too late is told exactly how
 * many frames it has lost.
 *
 *   R1  A frame is visible whole or not at all; its writer may die anywhere.
 *   R2  A frame that is read is the one that was published: nothing torn is returned.
 *   R3  frames returned + frames lost = frames published, for each lane or for the order.
 *   R4  A ring has one spec: who opens the kind with another is refused (invalid, schema).
 */
#ifndef BELAY_RING_H
#define BELAY_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <belay/cancel.h>
#include <belay/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct belay_fleet;

enum belay_topology {
    BELAY_RING_LANES = 1,   /* in order for each member */
    BELAY_RING_ORDERED = 2, /* in one order for all */
};

struct belay_ring_spec {
    uint32_t size;       /* sizeof(struct belay_ring_spec) */
    uint8_t kind;        /* 222 is the contest's */
    uint8_t topology;    /* enum belay_topology; 0: lanes */
    uint8_t notify;      /* 1: belay_ring_wait works; costs a fence for each publish */
    uint8_t reliable;    /* 1: belay_ring_consume works; of lanes alone */
    int32_t capacity;    /* frames of a lane, power of two to 2^20; 0: 1024 */
    int32_t payload_max; /* bytes of a frame in its slot, to 65536; 0: 256 */
    int64_t large_len; /* bytes a lane keeps for payloads over payload_max, power of two
                             to 2^28; 0: none */
    int32_t order_capacity; /* frames of the order, power of two; 0: 4 * capacity */
    uint64_t schema;        /* what the payload means; the same for all */
    const char *name;       /* 1 to 63 bytes; the same for all */
};

struct belay_ring;
struct belay_ring_cursor;

/* Opens the kind, creating it when it is not there yet.  The ring lives until the handle
 * leaves; opening again gives the same. */
BELAY_API BELAY_MUST_USE belay_rc belay_ring_open(struct belay_fleet *f,
                                                  const struct belay_ring_spec *spec,
                                                  struct belay_ring **out,
                                                  struct belay_error *err);

/* Opens a kind as it is; `not_found` when nobody created it. */
BELAY_API BELAY_MUST_USE belay_rc belay_ring_attach(struct belay_fleet *f, uint8_t kind,
                                                    struct belay_ring **out,
                                                    struct belay_error *err);

/* The spec of an open ring; name points into the ring. */
BELAY_API void belay_ring_spec_get(const struct belay_ring *ring,
                                   struct belay_ring_spec *out);

enum belay_ring_frame_flag {
    BELAY_RING_FRAME_LARGE = 1,  /* was longer than payload_max */
    BELAY_RING_FRAME_HASHED = 2, /* contest.h */
};

struct belay_ring_frame {
    uint64_t
        id; /* NetId64: kind, node, low 40 bits of seq; a claim's id in the contest log */
    uint64_t seq;      /* in its lane, from 0, never reused */
    uint64_t position; /* in the order; as seq in a ring of lanes */
    uint64_t ver;      /* the publisher's */
    uint64_t sig;      /* the publisher's, for filters */
    int32_t node;
    uint8_t kind;  /* the publisher's; 0 is neutral */
    uint8_t flags; /* enum belay_ring_frame_flag */
    uint32_t len;
    const void *data;
};

/* Publishes kind, ver, sig, data and len of `frame`; *out_id (may be NULL) is its id.
 *   invalid  too_large: over payload_max and large_len (expected: what fits) */
BELAY_API BELAY_MUST_USE belay_rc
belay_ring_publish(struct belay_ring *ring, const struct belay_ring_frame *frame,
                   uint64_t *out_id, struct belay_error *err);

/* As many at once, with counters one behind the other: whoever reads finds all of them or
 * none, also when their writer dies.  (In an ordered ring they come into the order one by
 * one.)  *out_first_id (may be NULL) is the id of the first.
 *   invalid  too_large: more than the lane holds, or BELAY_RING_BATCH_MAX, or more bytes of large
 *            frames than large_len (expected: what fits) */
#define BELAY_RING_BATCH_MAX 256
BELAY_API BELAY_MUST_USE belay_rc
belay_ring_publish_batch(struct belay_ring *ring, const struct belay_ring_frame *frames,
                         size_t n, uint64_t *out_first_id, struct belay_error *err);

/* --- reliable rings ---
 *
 * In a ring whose spec says `reliable` a member may become a consumer: no frame published
 * after that is overwritten before it has polled it.  A publish for which there is no room
 * answers `contention`, reason slow_consumer (expected: the node that is behind, actual: by
 * how many frames) and publishes nothing; a frame over payload_max has at most large_len / capacity bytes there.  A consumer that has died, as the kernel says, is
 * waited for no longer; one that is stopped is: see belay_ring_consumers.  Other cursors are
 * as in any ring. */

/* A cursor at the head, of this member's; one for each ring.  Its poll says what it no longer
 * wants; closing it gives the rest up.
 *   misuse  the ring is not reliable (reliable), or there is one already (consumer) */
BELAY_API BELAY_MUST_USE belay_rc belay_ring_consume(struct belay_ring *ring,
                                                     struct belay_ring_cursor **out,
                                                     struct belay_error *err);

/* Waits until there is room for n frames; at once in a ring that is not reliable.  `timeout`,
 * `cancelled` (within 50 ms). */
BELAY_API BELAY_MUST_USE belay_rc belay_ring_wait_room(struct belay_ring *ring,
                                                       size_t n, int64_t timeout_ms,
                                                       struct belay_cancel *cancel,
                                                       struct belay_error *err);

struct belay_ring_consumer {
    int32_t node, pid;
    uint64_t lag;         /* frames of the lane that it is most behind in */
    int32_t slowest_node; /* whose lane that is; -1: it has all */
};
BELAY_API BELAY_MUST_USE belay_rc belay_ring_consumers(struct belay_ring *ring,
                                                       struct belay_ring_consumer *out,
                                                       size_t max, size_t *out_n,
                                                       struct belay_error *err);

/* Frames published so far: of the order, or of one lane of a ring of lanes. */
BELAY_API uint64_t belay_ring_head(const struct belay_ring *ring, int32_t node);

/* One frame by its id's lane and counter, into buf.  `not_found`: overwritten, or not there
 * yet, or of another kind. */
BELAY_API BELAY_MUST_USE belay_rc belay_ring_read(struct belay_ring *ring, int32_t node,
                                                  uint64_t seq, void *buf,
                                                  size_t buf_len,
                                                  struct belay_ring_frame *out,
                                                  struct belay_error *err);

enum belay_ring_from {
    BELAY_RING_START =
        0, /* everything since the last reset; what is gone counts as lost */
    BELAY_RING_HEAD = 1, /* what comes from now on */
};

/* A place in a ring, for one thread at a time. */
BELAY_API BELAY_MUST_USE belay_rc belay_ring_cursor_open(struct belay_ring *ring,
                                                         enum belay_ring_from from,
                                                         struct belay_ring_cursor **out,
                                                         struct belay_error *err);
BELAY_API void belay_ring_cursor_close(struct belay_ring_cursor *c);

struct belay_ring_poll {
    size_t n_frames;
    uint64_t lost; /* frames between the cursor's old and new place that are not among
                           those returned */
    uint64_t total_lost; /* since the cursor was opened */
    bool is_reset; /* the fleet was reset since the last poll; frames before it are not
                      counted as lost */
    bool is_more;  /* frames or buf were full */
};

/* Up to `max` frames in order from the cursor; their data in buf, aligned to 8.
 *   out_of_range  the next frame alone does not fit into buf (expected: its length); the
 *                 cursor stays */
BELAY_API BELAY_MUST_USE belay_rc belay_ring_poll(struct belay_ring_cursor *c,
                                                  struct belay_ring_frame *frames,
                                                  size_t max, void *buf, size_t buf_len,
                                                  struct belay_ring_poll *out,
                                                  struct belay_error *err);

/* Frames published that the cursor has yet to pass, overwritten ones included: of one lane, of
 * all of them (node BELAY_NONE), or of the order. */
BELAY_API uint64_t belay_ring_cursor_lag(const struct belay_ring_cursor *c,
                                         int32_t node);

/* The word of fleet.h that is posted for each publish, in a ring of `notify` alone: for those who wait for
 * several things, or by a descriptor (belay_notify_bridge_open). */
struct belay_notify;
BELAY_API BELAY_MUST_USE belay_rc belay_ring_word(struct belay_ring *ring,
                                                  struct belay_notify *out,
                                                  struct belay_error *err);

/* Waits until there is something to poll; in a ring of `notify` alone. */
BELAY_API BELAY_MUST_USE belay_rc belay_ring_wait(struct belay_ring_cursor *c,
                                                  int64_t timeout_ms,
                                                  struct belay_cancel *cancel,
                                                  struct belay_error *err);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_RING_H */
