/* op_json.h - records of inboxes, sessions and blobs as JSON, and back.
 *
 * Fields have the names of the headers' members and of the specification; one that is
 * absent is null.  Stored JSON stands in an answer as what it is.  Where it is nested so
 * deeply that the answer around it could not be written, `<field>_text` has it as a
 * string and the field itself is null.
 */
#ifndef API_OP_JSON_H
#define API_OP_JSON_H

#include <belay/session.h>

#include "api/op_handlers.h"
#include "base/arena.h"

/* --- out ---
 *
 * As with Jansson a value that could not be made is NULL, and NULL is passed on: one check
 * at the end covers all of them.  What else can be wrong, stored JSON that is none, stays
 * in the maker. */

struct op_maker {
    belay_rc rc; /* BELAY_OK, or `corrupt` */
    struct belay_error *err;
};

/* Gives the answer out, or says what failed. */
MUST_USE belay_rc op_made(const struct op_maker *m, json_t *result, int failed,
                          json_t **out);

/* Fields of an object; not 0 when there is no memory. */
int op_set_text(json_t *object, const char *name, const char *text); /* NULL: null */
int op_set_i64(json_t *object, const char *name, int64_t n);
int op_set_time(json_t *object, const char *name, int64_t ms); /* negative: null */
int op_set_bool(json_t *object, const char *name, bool yes);
/* Stored JSON; NULL: null. */
int op_set_json(struct op_maker *m, json_t *object, const char *name, const char *text);
int op_set_json_bytes(struct op_maker *m, json_t *object, const char *name,
                      struct bytes text);
/* The object, or NULL when some of it could not be made. */
json_t *op_whole(json_t *object, int failed);

json_t *op_json_batch(struct op_maker *m, const struct belay_batch *batch);
/* `handle` is its text. */
json_t *op_json_claim(struct op_maker *m, const struct belay_claim *claim,
                      const char *handle);
json_t *op_json_committed(struct op_maker *m, const struct belay_committed *c);
/* With config and agent_frames where they are known. */
json_t *op_json_head(struct op_maker *m, const struct belay_head *head);
/* A node is what was committed. */
json_t *op_json_node(struct op_maker *m, const struct belay_node *node);
json_t *op_json_usage(const struct belay_usage *usage);
json_t *op_json_meta(struct op_maker *m, const char *session_id,
                     const struct belay_session_meta *meta);
json_t *op_json_entry(struct op_maker *m, const struct belay_commit_entry *entry);
json_t *op_json_checkpoint(struct op_maker *m,
                           const struct belay_checkpoint_info *info);
json_t *op_json_attachment(const struct belay_attachment *attachment);
json_t *op_json_pin(const struct belay_pin *pin);
json_t *op_json_gc(const struct belay_gc_report *report, bool dry_run);

/* --- in --- */

/* A claim: its handle; or an object with session_id, claim_id, lease_token, lease_id and
 * batches or batch_ids, or with a `handle`; or an object whose `claim` is one of these.
 * Blanks around a text do not count.  bad_handle otherwise. */
MUST_USE belay_rc op_read_claim(struct bytes text, struct belay_arena *a,
                                const struct belay_claim **out,
                                struct belay_error *err);
MUST_USE belay_rc op_read_claim_json(const json_t *value, struct belay_arena *a,
                                     const struct belay_claim **out,
                                     struct belay_error *err);

/* A commit.  Strings of *out are in the arena or in `value`, which must live as long.
 * `invalid`, reason `field` with the field's name as entity, for fields that are not
 * known or have the wrong type. */
MUST_USE belay_rc op_read_commit(const json_t *value, struct belay_arena *a,
                                 struct belay_commit *out, struct belay_error *err);

/* "any", or a revision from 0; false for anything else. */
MUST_USE bool op_read_revision(struct bytes text, int64_t *out);

/* "never", "payload_default" or "group:G"; *group is G, else NULL. */
MUST_USE bool op_read_merge(struct bytes text, int32_t *out, const char **group);

/* The number of a name in a list that ends with NULL, or -1. */
int32_t op_read_name(const char *const *names, struct bytes text);

/* Names by their numbers; they end with NULL. */
extern const char *const op_delivery_names[]; /* less BELAY_DELIVERY_UNSET: from 1 */
extern const char *const op_slot_names[];     /* likewise */
extern const char *const op_boundary_names[];
extern const char *const op_profile_names[];
extern const char *const op_kind_names[];

/* Standard base64 with its padding, decoded into the arena; NULL when it is none or there
 * is no memory (*no_memory). */
const void *op_base64(struct bytes text, struct belay_arena *a, size_t *len,
                      bool *no_memory);
/* And back, as a JSON string; NULL: no memory. */
json_t *op_to_base64(struct bytes content);

#endif /* API_OP_JSON_H */
