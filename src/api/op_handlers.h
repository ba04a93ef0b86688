/* op_handlers.h - what the rows of the table call. */
#ifndef API_OP_HANDLERS_H
#define API_OP_HANDLERS_H

#include "api/ops.h"

op_handler op_version;
op_handler op_errors;
op_handler op_help;
op_handler op_completion;
op_handler op_man;
op_handler op_namespace_ls;
op_handler op_namespace_create;
op_handler op_namespace_delete;
op_handler op_epoch_show;
op_handler op_epoch_raise;
op_handler op_clock_show;
op_handler op_clock_reset;
op_handler op_audit_ls;
op_handler op_audit_verify;
op_handler op_check;
op_handler op_doctor;

op_handler op_queue_enqueue;
op_handler op_queue_claim;
op_handler op_queue_renew;
op_handler op_queue_abandon;
op_handler op_queue_complete;
op_handler op_queue_cancel;
op_handler op_queue_drop;
op_handler op_queue_ls;
op_handler op_session_commit;
op_handler op_session_show;
op_handler op_session_ls;
op_handler op_session_log;
op_handler op_session_nodes;
op_handler op_session_path;
op_handler op_session_node;
op_handler op_session_checkpoint;
op_handler op_session_meta_show;
op_handler op_session_meta_set;
op_handler op_session_tombstone;
op_handler op_session_vacuum;
op_handler op_session_heal;
op_handler op_session_delete;
op_handler op_attachment_intent;
op_handler op_attachment_commit;
op_handler op_attachment_ls;
op_handler op_attachment_forget;
op_handler op_blob_put;
op_handler op_blob_get;
op_handler op_blob_pin;
op_handler op_blob_unpin;
op_handler op_blob_pins;
op_handler op_gc;

op_handler op_submit;
op_handler op_submit_batch;
op_handler op_ls;
op_handler op_show;
op_handler op_why;
op_handler op_result;
op_handler op_wait;
op_handler op_attempts;
op_handler op_logs;
op_handler op_cancel;
op_handler op_replay;
op_handler op_priority;
op_handler op_revoke;
op_handler op_tag;
op_handler op_work;
op_handler op_claim;
op_handler op_grant;
op_handler op_renew;
op_handler op_complete;
op_handler op_complete_batch;
op_handler op_fail;
op_handler op_progress;
op_handler op_frame;
op_handler op_delay;
op_handler op_release;
op_handler op_abort;
op_handler op_lane_ls;
op_handler op_events;
op_handler op_stats;
op_handler op_timers;

op_handler op_fleet_status;
op_handler op_fleet_events;
op_handler op_fleet_publish;
op_handler op_fleet_reset;
op_handler op_fleet_rm;
op_handler op_contest_claim;
op_handler op_contest_release;
op_handler op_contest_ls;
op_handler op_cache_get;
op_handler op_cache_put;
op_handler op_cache_rm;
op_handler op_cache_reset;
op_handler op_cache_ls;

/* 0 when the answer's `ok` is true, else 1. */
op_exit op_exit_of_ok;
/* The exit status of the error in the answer's `code`, else as op_exit_of_ok. */
op_exit op_exit_of_code;
/* 0 when the answer's `cancelled` is true, else that of wrong_state. */
op_exit op_exit_of_cancelled;
/* By the answer's `outcome`: 0, 75 for what is incomplete, 1 for what was refused, and
 * that of the error for what failed. */
op_exit op_exit_of_gc;
/* 0 when all completed, that of timeout when some have not ended, else 1. */
op_exit op_exit_of_wait;
/* 0 for a completed one, else 1. */
op_exit op_exit_of_result;
/* 0 when every item was done, else that of the first error. */
op_exit op_exit_of_items;
/* That of a command that was run; 0 when there was none. */
op_exit op_exit_of_command;

/* The names that op_completion takes; ends with NULL. */
extern const char *const op_completion_shells[];

/* Gives the answer out, unless `failed` says that some of it could not be made. Jansson
 * takes a NULL for every value and answers it with a failure, so that one check at the
 * end covers all of them. */
MUST_USE belay_rc op_finish(json_t *result, int failed, json_t **out,
                            struct belay_error *err);

/* A string, with what is not UTF-8 made visible; NULL: no memory. */
json_t *op_text(struct bytes text);

/* The answer of a list; a cursor that is NULL says that there is no more. */
MUST_USE belay_rc op_list(json_t *items, json_t *cursor, int failed, json_t **out,
                          struct belay_error *err);

/* Who asks. */
const char *op_principal(const struct op_call *call);

/* Turns a finished text into {"text":"..."}. */
MUST_USE belay_rc op_prose(const struct buf *text, json_t **out,
                           struct belay_error *err);

#endif /* API_OP_HANDLERS_H */
