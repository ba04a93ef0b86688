/* registration.h - a process as it is registered: made complete, checked, and put into
 * the form whose hash is its identity.
 *
 *   {"id":"..","input":{"type":"..",...},"event_types":[...],"provenance":
 *    {"owner_scope":{"session_id":"..","agent_frame_id":".."?},"host_profile_id":"..",
 *     "caused_by":V?}}
 *
 * in this order; in `input` the type first and the rest sorted; event types as
 * event_type_write writes them, the core types that were missing behind the others; all
 * free-form JSON canonical.  The order of the event types is part of the identity, the
 * order of keys is not, and neither is a default that is spelled out.
 *
 * Pure: memory comes from the arena it is handed.
 */
#ifndef POLICY_REGISTRATION_H
#define POLICY_REGISTRATION_H

#include "base/hash.h"
#include "policy/event_type.h"
#include "policy/process_scope.h"

#define PROCESS_ID_MAX 255
#define PROCESS_PROFILE_MAX 255
#define REGISTRATION_MAX 1048576 /* bytes of the canonical form */

/* What is asked for.  All borrowed. */
struct registration {
    struct bytes id;
    const json_t *input; /* an object with a "type"; NULL: external, metadata null */
    const json_t *event_types; /* an array of declarations; NULL: none but the core */
    struct scope owner;        /* session with a NULL ptr: "root" */
    struct bytes host_profile; /* NULL ptr: "default" */
    const json_t *caused_by;   /* NULL: nothing */
};

/* What is stored.  Texts are in the arena; those of JSON are parts of `canonical`. */
struct registration_ready {
    struct bytes id;
    struct scope owner;
    struct bytes host_profile;
    struct bytes canonical;
    struct bytes input, event_types, provenance;
    struct bytes caused_by; /* NULL ptr: nothing */
    char hash[SHA256_HEX_LEN + 1];
};

/* Reads {"id","input"?,"event_types"?,"provenance"?{"owner_scope"?,"host_profile_id"?,
 * "caused_by"?}}, borrowing.  null counts as absent.  `invalid` (reason "registration")
 * for other members and shapes.  Nothing is checked beyond that. */
MUST_USE belay_rc registration_read(const json_t *value, struct registration *out,
                                    struct belay_error *err);

/* Completes, checks, writes and hashes.  `invalid`:
 *   reason "process_id"    blank ("process id is blank"), too long, not an id
 *   reason "scope"         "owner scope must include a session id", parts that are no ids
 *   reason "host_profile"  blank, too long, not an id
 *   reason "input"         no object with a string "type" that is an id
 *   reason "event_types"   not an array, over EVENT_TYPES_MAX, "an empty event type",
 *                          "duplicate event type `X`"
 *   reasons of event_type_read for the first declaration that cannot be read
 *   reason "too_large"     over REGISTRATION_MAX
 *   reason "too_deep"      the whole nests deeper than JSON_DEPTH_MAX
 * Blank is what is empty or white space alone.  *out is untouched on failure. */
MUST_USE belay_rc registration_prepare(const struct registration *in,
                                       struct belay_arena *a,
                                       struct registration_ready *out,
                                       struct belay_error *err);

/* --- what hangs on a process --- */

/* Where it lives elsewhere: {"backend":"..","id":"..","metadata":V?}. */
struct external_ref {
    struct bytes backend, id;
    const json_t *metadata; /* NULL: none */
};

/* What a grant is called: {"kind":".."?,"label":".."?}. */
struct handle_descriptor {
    struct bytes kind, label; /* NULL ptr: none */
};

#define DESCRIPTOR_TEXT_MAX 255
#define EXTERNAL_TEXT_MAX 255

/* Borrowing; null counts as absent.  `invalid` (reason "external_ref", "descriptor") for
 * other members and shapes, for backend and id that are no ids of EXTERNAL_TEXT_MAX bytes,
 * for a kind or label over DESCRIPTOR_TEXT_MAX bytes. */
MUST_USE belay_rc external_ref_read(const json_t *value, struct external_ref *out,
                                    struct belay_error *err);
MUST_USE belay_rc handle_descriptor_read(const json_t *value,
                                         struct handle_descriptor *out,
                                         struct belay_error *err);

/* Append the canonical form, in the order above. */
MUST_USE belay_rc external_ref_write(const struct external_ref *r, struct buf *out,
                                     struct belay_error *err);
void handle_descriptor_write(const struct handle_descriptor *d, struct buf *out);

#endif /* POLICY_REGISTRATION_H */
