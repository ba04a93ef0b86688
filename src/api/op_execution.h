/* op_execution.h - executions as JSON, and back.
 *
 * Fields have the names of interface and headers; one that is absent is null.  A payload, a
 * result or a frame is JSON or a text in its own field, or bytes in `<field>_base64`.
 */
#ifndef API_OP_EXECUTION_H
#define API_OP_EXECUTION_H

#include "api/handle.h"
#include "api/op_args.h"
#include "api/op_read.h"

/* --- out --- */

/* The name of a value of a dimension; null where it has none. */
int op_set_value(json_t *object, const char *name, int dimension, int value);
/* JSON or bytes; null where ptr is NULL. */
int op_set_data(struct op_maker *m, json_t *object, const char *name,
                struct bytes content, bool is_json);
/* A text where it is one, else bytes; null where ptr is NULL. */
int op_set_text_or_bytes(json_t *object, const char *name, struct bytes content);

/* `whole`: as `show` has it, with what lists leave out. */
json_t *op_json_execution(struct op_maker *m, const struct belay_execution *e,
                          bool whole);
/* {"items":[...]}-like list of works, each with its handle; `invalid` handles stay in the
 * maker. */
json_t *op_json_works(struct op_maker *m, const struct belay_works *works,
                      struct belay_arena *a);
json_t *op_json_work(struct op_maker *m, const struct belay_work *work,
                     struct belay_arena *a);
json_t *op_json_grant(const struct belay_grant *grant);
json_t *op_json_attempt(const struct belay_attempt *attempt);
json_t *op_json_frame(const struct belay_frame_row *frame);
json_t *op_json_event(struct op_maker *m, const struct belay_event *event);
json_t *op_json_lane(const struct belay_lane *lane);
/* {code, reason, entity, message} of an item that was not done. */
json_t *op_json_error(const struct belay_error *err);

/* --- in --- */

/* Why a 0 is refused where that of a struct means "not given". */
#define OP_ZERO_NO_LIMIT "must be above 0; leave it out for none"
#define OP_ZERO_NO_KEY "must be above 0; leave the key out to have none remembered"
/* Why a time is refused beside a delay. */
#define OP_DELAY_GIVEN(delay) "not together with " delay ": both say when"

/* A submission as POST /v1/executions has it.  Strings of *out are in the arena or in
 * `value`, which must live as long. */
MUST_USE belay_rc op_read_submission(const json_t *value, struct belay_arena *a,
                                     struct belay_submission *out,
                                     struct belay_error *err);
/* Who asks for work: {lanes, worker, capabilities?, max?, lease_ms?, wait_ms?}. */
MUST_USE belay_rc op_read_policy(const json_t *value, struct belay_arena *a,
                                 struct belay_claim_policy *out,
                                 struct belay_error *err);
/* Completions {handle, result?}; each handle in the arena. */
MUST_USE belay_rc op_read_completion(const json_t *value, struct belay_arena *a,
                                     struct belay_completion *out,
                                     struct belay_error *err);
/* Many values of a file: a list, {"items":[...]}, or one value a line.  The caller
 * json_decref()s *out, a list of 1 to max. */
MUST_USE belay_rc op_read_many(struct bytes text, size_t max, json_t **out,
                               struct belay_error *err);
/* fixed:D or exp:D..D, the second not below the first and that above 0, into the policy;
 * false: it is neither. */
MUST_USE bool op_read_backoff(struct bytes text, struct belay_retry_policy *out);

/* Tags k=v of a repeated argument.  `invalid`, reason tag. */
MUST_USE belay_rc op_tags(const struct op_call *call, const char *name,
                          struct belay_arena *a, const struct belay_tag **out,
                          size_t *n, struct belay_error *err);
/* The handle that is named. */
MUST_USE belay_rc op_handle(const struct op_call *call, struct belay_arena *a,
                            struct belay_handle *out, struct belay_error *err);

/* Names by their numbers; they end with NULL. */
extern const char *const op_state_names[];         /* from 1 */
extern const char *const op_failure_class_names[]; /* from 1 */
extern const char *const op_frame_kind_names[];
extern const char *const op_frame_mode_names[];
extern const char *const op_event_names[];

#endif /* API_OP_EXECUTION_H */
