/* contest.h - one holder at a time for a named subject, among the members of a fleet.
 *
 * Of all who claim a subject the first gets a guard; the others are told whom to yield to.
 * The guard lasts until it is released, until its time is over and somebody else claims,
 * until its process dies, or until an administrator takes it away.
 *
 * What holds
 *   K1  At most one tenure of a subject is current.  A tenure ends by release, or by being
 *       revoked, which happens only when its deadline has passed, when the kernel says that
 *       its member is dead, when a claimer did not finish claiming for 10 ms, or by force.
 *   K2  Tokens of one subject rise from tenure to tenure, through resets and through new
 *       segments: the first token of a segment is the wall clock in nanoseconds when it was
 *       created (or token_floor, if that is higher), and a grant takes longer than one.
 *       Only a wall clock set back across a reboot can break this; token_floor is for those
 *       who must exclude that.
 *   K3  A holder that was paused may believe in its guard after it has lost it.  Whoever
 *       keeps the data must compare tokens and refuse a lower one than it has seen.
 *   K4  Deadlines are of the monotonic clock; setting the wall clock changes nothing.  A
 *       tenure is over at its deadline exactly (now >= deadline), but nobody is told before
 *       somebody else claims.
 *   K5  A claim that yields writes nothing to shared memory.
 *   K6  Every change is logged, in one order for all members, in the ring of kind 222
 *       (ring.h; belay_contest_log opens it).  Frame kinds and payloads, little-endian:
 *         1 CLAIM    subject_kind u8 | subject_len u16 | owner_len u16 | claimed_at_ms u64 |
 *                    expires_at_ms u64 | subject | owner; the frame's id is the claim's id
 *         2 RELEASE  claim id u64 | subject_kind u8 | subject_len u16 | subject
 *         4 REVOKED  as RELEASE, then reason u8 (enum belay_contest_reason)
 *       The frame's ver is now in ms.  A frame has at most 256 bytes.  When the labels do
 *       not fit, flag BELAY_RING_FRAME_HASHED is set and they are cut: subject and owner are then
 *       16 hex digits each of the labels' hashes (belay_contest_hash), the lengths those of
 *       the digits.
 *       RELEASE stands before the subject can be claimed again; REVOKED before the next
 *       CLAIM.  REVOKED may be there more than once, after RELEASE, or before a CLAIM of the
 *       same id that came late (such a CLAIM is void, and RELEASE follows it unless its
 *       writer died): readers ignore an end they know nothing of and a claim that ended.
 *
 * Claim ids are NetId64s of kind 222: node of the holder, the low 40 bits of the token.
 */
#ifndef BELAY_CONTEST_H
#define BELAY_CONTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <belay/cancel.h>
#include <belay/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct belay_fleet;
struct belay_ring;

#define BELAY_CONTEST_RING_KIND 222
#define BELAY_CONTEST_FRAME_CLAIM 1
#define BELAY_CONTEST_FRAME_RELEASE 2
#define BELAY_CONTEST_FRAME_REVOKED 4
#define BELAY_CONTEST_PAYLOAD_MAX 256
#define BELAY_CONTEST_LABEL_MAX 65535

/* Held until released or dead. */
#define BELAY_CONTEST_FOREVER INT64_MAX

enum belay_contest_reason {
    BELAY_CONTEST_EXPIRED = 1,
    BELAY_CONTEST_DEAD = 2,
    BELAY_CONTEST_FORCED = 3,
    BELAY_CONTEST_STALLED = 4, /* did not finish claiming */
};

/* What is contested.  The same label under two kinds is two subjects.  Any bytes. */
struct belay_contest_subject {
    const char *label;
    size_t label_len;
    uint8_t kind;
};

/* Who claims, for observers; and for how long: 0 to 24 h, or BELAY_CONTEST_FOREVER. */
struct belay_contest_terms {
    const char *owner;
    size_t owner_len;
    int64_t ttl_ms;
};

/* A tenure as somebody saw it.  Times are wall clock, for display; in a fleet of virtual
 * clock they are the caller's. */
struct belay_contest_holder {
    uint64_t claim_id; /* NetId64; 0 while pending */
    uint64_t token;    /* 0 while pending */
    int64_t claimed_at_ms;
    int64_t expires_at_ms; /* INT64_MAX: never */
    int32_t node;
    uint8_t subject_kind;
    bool is_self;       /* a yield to the claim itself: ttl 0 and nobody holds */
    bool is_pending;    /* its claim is under way */
    uint32_t owner_len; /* of the whole label */
    uint32_t entry;     /* where; for the library */
    uint64_t word;      /* which tenure; for the library */
    char owner[256];    /* NUL-terminated; a longer one is cut */
};

/* A tenure of one's own; a value that may be copied and kept anywhere.  Members are
 * read-only. */
struct belay_contest_guard {
    struct belay_fleet *fleet;
    uint64_t claim_id;
    uint64_t token; /* K2, K3 */
    int64_t claimed_at_ms;
    int64_t expires_at_ms; /* as of the claim or the last renewal */
    uint64_t word;
    uint32_t entry;
    uint8_t subject_kind;
};

struct belay_contest_claim {
    bool is_claimed;
    struct belay_contest_guard guard;   /* when it is */
    struct belay_contest_holder holder; /* whom to yield to, when it is not */
};

/* Claims the subject, or says who has it; never waits.
 *
 *   invalid    a label is over BELAY_CONTEST_LABEL_MAX (contest_frame_too_large; expected
 *              is the maximum, actual the sum of both lengths), or the ttl is no ttl
 *   no_memory  more subjects are held than there is room for (table_full), this member holds
 *              as many as it can (holds), no room for long labels (arena)
 *   misuse     virtual_clock: this fleet's contests are told the time */
BELAY_API BELAY_MUST_USE belay_rc
belay_contest_try(struct belay_fleet *f, const struct belay_contest_subject *subject,
                  const struct belay_contest_terms *terms,
                  struct belay_contest_claim *out, struct belay_error *err);

/* The same at a time of the caller's, in a fleet of virtual clock alone.  now_ms is 0 to
 * 2^48 - 2 and saturates there. */
BELAY_API BELAY_MUST_USE belay_rc
belay_contest_try_at(struct belay_fleet *f, const struct belay_contest_subject *subject,
                     const struct belay_contest_terms *terms, int64_t now_ms,
                     struct belay_contest_claim *out, struct belay_error *err);

/* Claims, waiting while another holds; woken by a release, a death or a deadline.
 * `timeout`: *out is not changed.  `cancelled` within 50 ms.  Not in virtual time. */
BELAY_API BELAY_MUST_USE belay_rc
belay_contest_claim(struct belay_fleet *f, const struct belay_contest_subject *subject,
                    const struct belay_contest_terms *terms, int64_t timeout_ms,
                    struct belay_cancel *cancel, struct belay_contest_claim *out,
                    struct belay_error *err);

/* Waits until a claim of the subject could succeed. */
BELAY_API BELAY_MUST_USE belay_rc belay_contest_wait(
    struct belay_fleet *f, const struct belay_contest_subject *subject,
    int64_t timeout_ms, struct belay_cancel *cancel, struct belay_error *err);

/* A subject looked up once, for many claims.  The label is borrowed while it is used. */
struct belay_contest_ref {
    struct belay_contest_subject subject;
    uint64_t hash;  /* for the library */
    uint32_t entry; /* for the library */
};
BELAY_API BELAY_MUST_USE belay_rc
belay_contest_intern(struct belay_fleet *f, const struct belay_contest_subject *subject,
                     struct belay_contest_ref *out, struct belay_error *err);
BELAY_API BELAY_MUST_USE belay_rc
belay_contest_try_ref(struct belay_fleet *f, struct belay_contest_ref *ref,
                      const struct belay_contest_terms *terms,
                      struct belay_contest_claim *out, struct belay_error *err);

/* Who holds it now; `not_found` when nobody does, as an expired or dead holder is nobody.
 * The second is for virtual time. */
BELAY_API BELAY_MUST_USE belay_rc
belay_contest_holder(struct belay_fleet *f, const struct belay_contest_subject *subject,
                     struct belay_contest_holder *out, struct belay_error *err);
BELAY_API BELAY_MUST_USE belay_rc belay_contest_holder_at(
    struct belay_fleet *f, const struct belay_contest_subject *subject, int64_t now_ms,
    struct belay_contest_holder *out, struct belay_error *err);

/* One page of subjects in use: from *cursor (begin with 0; 0 again means the end), up to
 * `max`.  A label is cut at sizeof(label) - 1. */
struct belay_contest_entry {
    struct belay_contest_holder holder;
    bool is_held;
    uint32_t label_len;
    char label[256];
};
BELAY_API BELAY_MUST_USE belay_rc belay_contest_list(struct belay_fleet *f,
                                                     uint64_t *cursor,
                                                     struct belay_contest_entry *out,
                                                     size_t max, size_t *out_n,
                                                     struct belay_error *err);

/* The whole owner label of a tenure, into buf; `lease_lost` when it has ended. */
BELAY_API BELAY_MUST_USE belay_rc belay_contest_owner(
    struct belay_fleet *f, const struct belay_contest_holder *holder, char *buf,
    size_t buf_len, size_t *out_len, struct belay_error *err);

/* Moves the deadline to now + ttl, never back.  `lease_lost`: the deadline had passed
 * (expired), somebody took it away (revoked), or it is another's (superseded).  The _at
 * form is for virtual time. */
BELAY_API BELAY_MUST_USE belay_rc belay_contest_renew(struct belay_contest_guard *guard,
                                                      int64_t ttl_ms,
                                                      struct belay_error *err);
BELAY_API BELAY_MUST_USE belay_rc
belay_contest_renew_at(struct belay_contest_guard *guard, int64_t ttl_ms,
                       int64_t now_ms, struct belay_error *err);

/* Whether the tenure is still current: neither released nor taken over nor revoked.  The
 * deadline is not looked at (K4). */
BELAY_API bool belay_contest_is_held(const struct belay_contest_guard *guard);

/* Ends the tenure.  *out_frame (may be NULL) is the RELEASE frame's id.  `lease_lost`: it had
 * ended before; nothing happened. */
BELAY_API BELAY_MUST_USE belay_rc belay_contest_release(
    struct belay_contest_guard *guard, uint64_t *out_frame, struct belay_error *err);

/* A guard for a tenure of this member that was seen as holder, and the release of one:
 * `lease_held` (not_owner) when another member has it, `lease_lost` when it has ended. */
BELAY_API BELAY_MUST_USE belay_rc belay_contest_guard_holder(
    struct belay_fleet *f, const struct belay_contest_holder *holder,
    struct belay_contest_guard *out, struct belay_error *err);
BELAY_API BELAY_MUST_USE belay_rc belay_contest_release_holder(
    struct belay_fleet *f, const struct belay_contest_holder *holder,
    uint64_t *out_frame, struct belay_error *err);

/* For administrators: ends the tenure whoever has it. */
BELAY_API BELAY_MUST_USE belay_rc belay_contest_force_release(
    struct belay_fleet *f, const struct belay_contest_holder *holder,
    struct belay_error *err);

/* For whoever keeps the data (K3): true, and remembered, when no higher token was admitted.
 * *high_water is the keeper's, from 0; safe from many threads. */
BELAY_API bool belay_fence_admit(uint64_t *high_water, uint64_t token);

/* The log, as a ring to be read. */
BELAY_API BELAY_MUST_USE belay_rc belay_contest_log(struct belay_fleet *f,
                                                    struct belay_ring **out,
                                                    struct belay_error *err);

/* A frame of the log, decoded; subject and owner point into the payload.  False: it is none
 * (short, or of another kind).  Trailing bytes are allowed. */
struct belay_contest_frame {
    int32_t kind; /* BELAY_CONTEST_FRAME_* */
    uint8_t subject_kind;
    uint8_t reason;    /* REVOKED */
    uint64_t claim_id; /* RELEASE and REVOKED */
    uint64_t claimed_at_ms, expires_at_ms;
    const char *subject, *owner;
    size_t subject_len, owner_len;
};
BELAY_API bool belay_contest_decode(uint8_t frame_kind, const void *payload, size_t len,
                                    struct belay_contest_frame *out);

/* What a frame carries for a label that does not fit. */
BELAY_API uint64_t belay_contest_hash(struct belay_fleet *f, const char *label,
                                      size_t label_len);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_CONTEST_H */
