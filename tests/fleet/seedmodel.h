/* seedmodel.h - a model of the contest over one shared ring, the algorithm that the fleet
 * replaces.
 *
 * One thread, an explicit clock, no allocation after opening.  What several processes would
 * do is written as a sequence of calls: every operation exists whole and in the steps
 * between which another process may run, so that a test lays the steps of two peers side by
 * side and every schedule is one program.
 *
 * A frame is published in three steps (reserve a counter, fill the slot, commit it), a
 * claim in two (publish the claim, then look who is the earliest active one).  The model
 * shows what the algorithm does; where it is wrong, it is wrong on purpose.
 */
#ifndef TESTS_FLEET_SEEDMODEL_H
#define TESTS_FLEET_SEEDMODEL_H

#include <stdbool.h>
#include <stdint.h>

#define SEED_PAYLOAD_MAX 256
#define SEED_LABEL_MAX 236 /* the longest label a frame has room for, and a NUL */
#define SEED_COUNTER_BITS 40
#define SEED_COUNTER_MASK ((UINT64_C(1) << SEED_COUNTER_BITS) - 1)
#define SEED_CONTEST_KIND 222

enum seed_frame_kind { SEED_CLAIM = 1, SEED_RELEASE = 2 };

struct seed_slot {
    uint64_t seq; /* 0 never written, 2c+1 being written, 2c+2 holds counter c */
    uint64_t id;  /* kind:8 | node:16 | counter:40 */
    uint8_t kind; /* enum seed_frame_kind, or another user's */
    uint32_t len;
    uint64_t ver; /* the publisher's wall clock, ms */
    uint8_t payload[SEED_PAYLOAD_MAX];
};

struct seed_ring {
    uint64_t capacity; /* a power of two */
    uint64_t head;     /* counters reserved so far */
    struct seed_slot *slots;
    uint64_t *active; /* room for the counters that one walk finds active */
};

/* false when there is no memory or the capacity is no power of two. */
bool seed_open(struct seed_ring *r, uint64_t capacity);
void seed_close(struct seed_ring *r);

/* Empty again, and counters start at 0 again. */
void seed_reset(struct seed_ring *r);

uint64_t seed_id(uint16_t node, uint64_t counter);

/* What may be published; too long a payload is the caller's panic, here false. */
struct seed_frame {
    uint8_t kind;
    uint16_t node;
    uint64_t ver;
    uint32_t len;
    uint8_t payload[SEED_PAYLOAD_MAX];
};

/* The three steps of a publish, and all of them. */
uint64_t seed_reserve(struct seed_ring *r);
void seed_fill(struct seed_ring *r, uint64_t counter, const struct seed_frame *f);
void seed_commit(struct seed_ring *r, uint64_t counter);
uint64_t seed_publish(struct seed_ring *r, const struct seed_frame *f);

/* The frame in the slot of `counter`, whoever's it is; NULL while it is being written or
 * never was. */
const struct seed_slot *seed_read_slot(const struct seed_ring *r, uint64_t counter);

/* The newest frame, or NULL: also while its writer is not done. */
const struct seed_slot *seed_read_head(const struct seed_ring *r);

struct seed_walk {
    uint64_t next, end;   /* counters */
    uint64_t overwritten; /* lost before the walk began */
    uint64_t unavailable; /* skipped: torn, in flight, or another counter's */
};

/* A walk over what can be read from counter `from` on; a cursor beyond the head is taken
 * back to it without a word.  seed_walk_next gives NULL at the end. */
struct seed_walk seed_walk_from(const struct seed_ring *r, uint64_t from);
const struct seed_slot *seed_walk_next(const struct seed_ring *r, struct seed_walk *w);

struct seed_subject {
    uint8_t kind;
    const char *label;
};

struct seed_holder {
    uint64_t claim_id;
    struct seed_subject subject; /* borrowed from the caller of the claim */
    char owner[SEED_LABEL_MAX];
    uint64_t claimed_at_ms, expires_at_ms;
};

enum seed_answer { SEED_TOO_LARGE, SEED_CLAIMED, SEED_YIELD };

/* Who has the earliest active claim at `now_ms`. */
bool seed_active_holder(struct seed_ring *r, struct seed_subject subject,
                        uint64_t now_ms, struct seed_holder *out);

/* A claim between its two steps. */
struct seed_attempt {
    struct seed_subject subject;
    struct seed_frame frame;
    uint64_t counter, now_ms, expires_at_ms;
    const char *owner;
};

/* Step 0: encode.  Step 1: publish the claim (whole, or with the three steps above).  Step
 * 2: look, and take the claim back when somebody else's is earlier. */
bool seed_attempt_init(struct seed_attempt *a, uint16_t node,
                       struct seed_subject subject, const char *owner, uint64_t ttl_ms,
                       uint64_t now_ms);
void seed_attempt_publish(struct seed_ring *r, struct seed_attempt *a);
/* Step 2 in two: look, then take the claim back after a yield to somebody else. */
enum seed_answer seed_attempt_look(struct seed_ring *r, const struct seed_attempt *a,
                                   struct seed_holder *out);
void seed_attempt_withdraw(struct seed_ring *r, const struct seed_attempt *a);
enum seed_answer seed_attempt_decide(struct seed_ring *r, const struct seed_attempt *a,
                                     struct seed_holder *out);

/* All steps. */
enum seed_answer seed_claim(struct seed_ring *r, struct seed_subject subject,
                            const char *owner, uint64_t ttl_ms, uint64_t now_ms,
                            struct seed_holder *out);

/* Nobody is asked whether the holder is the caller. */
bool seed_release_holder(struct seed_ring *r, const struct seed_holder *h,
                         uint64_t now_ms);

/* The walk that a later version used: it stops at the first frame in flight instead of
 * skipping it. */
enum seed_answer seed_attempt_decide_stopping(struct seed_ring *r,
                                              const struct seed_attempt *a,
                                              struct seed_holder *out);

#endif /* TESTS_FLEET_SEEDMODEL_H */
