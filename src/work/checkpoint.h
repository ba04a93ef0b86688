/* checkpoint.h - what a session needs to go on, in blobs.
 *
 * A checkpoint is a manifest, canonical JSON in a blob of its own, that names up to
 * three further blobs:
 *
 *     {"execution_state_ref":..,"plugin_snapshot_ref":..,"plugin_snapshot_revision":..,
 *      "tool_state_ref":..,"turn_state":{..}}          (absent parts are left out)
 *
 *   S3  the head moves only if every blob it names is there: bodies of up to one chunk
 *       are written in the commit itself, larger ones before it; refs are looked up
 *       under guard
 *   S6  a blob that is newly named is touched in the same transaction
 */
#ifndef WORK_CHECKPOINT_H
#define WORK_CHECKPOINT_H

#include <belay/session.h>

#include "store/blob.h"

enum { PART_TOOL, PART_PLUGIN, PART_EXECUTION, PART_MANIFEST, PARTS };

/* One blob of a checkpoint: it is brought, or it is only named. */
struct checkpoint_part {
    bool named;                   /* there is such a part */
    char ref[SHA256_HEX_LEN + 1]; /* its name */
    bool brought;                 /* piece is to be written if it is not there */
    struct blob_piece piece;
};

struct checkpoint_plan {
    struct checkpoint_part part[PARTS];
    struct bytes manifest; /* canonical JSON */
};

/* Checks, hashes, compresses and mints, and uploads bodies of more than one chunk;
 * everything but the deciding.  `invalid`: a turn_state that is no JSON, a ref that is
 * no sha256 (reason unknown_ref). */
MUST_USE belay_rc checkpoint_prepare(struct space *sp,
                                     const struct belay_checkpoint *in, int32_t profile,
                                     struct belay_arena *a, struct checkpoint_plan *out,
                                     struct belay_error *err);

/* Whether a blob of this size and kind is compressed under a profile (resolved). */
bool profile_compresses(int32_t profile, int32_t kind, size_t len);
/* BELAY_PROFILE_DEFAULT made definite for this store. */
int32_t profile_resolve(struct space *sp, int32_t profile);
/* A blob's descriptor, canonical JSON. */
struct bytes blob_kind_descriptor(int32_t kind);
const char *blob_kind_name(int32_t kind);
MUST_USE bool blob_kind_parse(struct bytes name, int32_t *out);

/* In the commit: S3.  `old` is the session's row, NULL when it is new; parts that it
 * names already are not touched.  `invalid`, reason unknown_ref, entity the part. */
MUST_USE belay_rc checkpoint_check(struct txn *t, const struct checkpoint_plan *plan);
MUST_USE belay_rc checkpoint_apply(struct txn *t, const struct checkpoint_plan *plan,
                                   const struct row *old);
/* Fills the session's columns (SESSION_CHECKPOINT and the refs); returns how many. */
size_t checkpoint_changes(const struct checkpoint_plan *plan, struct change out[PARTS]);

/* A manifest, decoded; refs are empty where there is none.  `corrupt`, reason
 * corrupt_manifest, when it is no manifest. */
struct manifest {
    struct bytes ref[PART_MANIFEST]; /* by PART_* */
    struct bytes turn_state;         /* canonical JSON */
    int64_t plugin_revision;         /* BELAY_NONE */
    struct bytes text;
};
MUST_USE belay_rc manifest_parse(struct bytes text, struct belay_arena *a,
                                 struct manifest *out, struct belay_error *err);
/* Reads and verifies the blob, then parses it.  not_found when it is not there. */
MUST_USE belay_rc manifest_load(struct space *sp, const char *ref,
                                struct belay_arena *a, struct manifest *out,
                                struct belay_error *err);

/* Every "execution_state_ref" of the frames (a JSON array of objects), in the arena.
 * `corrupt`, reason corrupt_frames, when they cannot be read or a ref is no sha256. */
MUST_USE belay_rc frames_refs(struct bytes frames, struct belay_arena *a,
                              const char *const **out, size_t *out_n,
                              struct belay_error *err);

MUST_USE belay_rc checkpoint_load(struct space *sp, const char *session_id,
                                  struct belay_arena *a,
                                  struct belay_checkpoint_info *out,
                                  struct belay_error *err);

#endif /* WORK_CHECKPOINT_H */
