/* claim.h - which batches at the front of an inbox one claim may take, and what claims
 * and batches are called.
 *
 * Pure: no I/O, no clock, no randomness; scratch memory comes from the arena it is
 * handed.  The derivations are those of the seed, byte for byte.
 */
#ifndef POLICY_CLAIM_H
#define POLICY_CLAIM_H

#include <belay/queue.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"

/* What the prefix rule looks at. */
struct claim_candidate {
    int32_t delivery;       /* enum belay_delivery */
    int32_t slot;           /* enum belay_slot */
    struct bytes merge_key; /* canonical JSON: equal bytes are equal keys */
};

/* How many leading candidates one claim takes.  They are in ascending sequence, and
 * already only those that are available and not held: what is filtered out neither
 * heads nor parts a group.
 *
 *   - at most max
 *   - at an active_turn_checkpoint nothing, unless the head is for
 *     earliest_safe_boundary; nobody looks past a head that is not
 *   - an exclusive head alone
 *   - a join head with the join batches right behind it of equal delivery and merge key
 */
size_t claim_prefix(const struct claim_candidate *candidates, size_t n,
                    enum belay_boundary boundary, size_t max);

/* "qwc:" + 19 digits + ":" + 16 digits + NUL, at most. */
#define CLAIM_ID_MAX 48
void claim_id_make(int64_t head_seq, int64_t fence, char out[CLAIM_ID_MAX]);

/* SHA-256 hex of "<session>:<owner>:<claim id>:<now ms>". */
MUST_USE belay_rc claim_token_make(struct bytes session, struct bytes owner,
                                   const char *claim_id, int64_t now_ms,
                                   char out[SHA256_HEX_LEN + 1], struct belay_arena *a,
                                   struct belay_error *err);

/* "qwb:" + SHA-256 hex of "<session>:<K>:<now ms>[:<nonce>]", where K is None or
 * Some("<source key, escaped>").  source_key with a NULL ptr: none.  nonce < 0: none. */
#define BATCH_ID_LEN (4 + SHA256_HEX_LEN)
MUST_USE belay_rc batch_id_make(struct bytes session, struct bytes source_key,
                                int64_t now_ms, int64_t nonce,
                                char out[BATCH_ID_LEN + 1], struct belay_arena *a,
                                struct belay_error *err);

/* Names of the enums on every door; NULL, or false with *out untouched, where there is
 * none such. */
const char *delivery_name(int32_t delivery);
const char *slot_name(int32_t slot);
const char *boundary_name(int32_t boundary);
MUST_USE bool delivery_parse(struct bytes name, int32_t *out);
MUST_USE bool slot_parse(struct bytes name, int32_t *out);
MUST_USE bool boundary_parse(struct bytes name, int32_t *out);

/* How a batch is delivered, as one text, canonical JSON: [delivery, slot, merge key], where a
 * merge key is "never", "payload_default" or {"group":"<text>"}. */
#define MERGE_GROUP_MAX 255
struct batch_rules {
    int32_t delivery, slot, merge;
    struct bytes group; /* BELAY_MERGE_GROUP only */
};

/* In the arena.  `invalid` (reasons delivery, slot, merge) where there is none such. */
MUST_USE belay_rc rules_make(const struct batch_rules *r, struct bytes *out,
                             struct belay_arena *a, struct belay_error *err);

/* Of what Belay itself puts into an inbox: soon, and alone. */
#define RULES_OWN "[\"earliest_safe_boundary\",\"exclusive\",\"never\"]"

/* What rules_make has written; false, with *out untouched: something else.  The merge key is as
 * it stands there, and not looked at. */
MUST_USE bool rules_parse(struct bytes text, struct claim_candidate *out);

/* Which kind of merge key it is, and its group, or ""; false: none. */
MUST_USE bool merge_parse(struct bytes key, int32_t *out_merge,
                          char group[MERGE_GROUP_MAX + 1]);

#endif /* POLICY_CLAIM_H */
