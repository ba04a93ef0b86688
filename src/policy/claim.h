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

/* A merge key as canonical JSON, in the arena: "never", "payload_default" (with the quotes)
 * or {"group":"<text>"}. */
MUST_USE belay_rc merge_key_make(int32_t merge, struct bytes group, struct bytes *out,
                                 struct belay_arena *a, struct belay_error *err);

#endif /* POLICY_CLAIM_H */
