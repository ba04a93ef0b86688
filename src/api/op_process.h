/* op_process.h - processes as JSON, and what their handlers share. */
#ifndef API_OP_PROCESS_H
#define API_OP_PROCESS_H

#include "api/handle.h"
#include "api/op_args.h"

op_handler op_process_register;
op_handler op_process_show;
op_handler op_process_ls;
op_handler op_process_external_ref;
op_handler op_process_append;
op_handler op_process_complete;
op_handler op_process_cancel;
op_handler op_process_delete;
op_handler op_process_events;
op_handler op_process_await;
op_handler op_process_wakes;
op_handler op_process_ack;
op_handler op_process_changes;
op_handler op_process_lease;
op_handler op_process_renew;
op_handler op_process_release;
op_handler op_process_grant;
op_handler op_process_revoke;
op_handler op_process_transfer;
op_handler op_process_grants;
op_handler op_process_forget_session;

/* 0 for one that completed, else 1. */
op_exit op_exit_of_process;

/* Names by their numbers less 1; they end with NULL. */
extern const char *const op_status_names[];
extern const char *const op_authority_names[];

/* Where the calls of a handler work, for who asks. */
struct proc_site op_processes(const struct op_call *call);
/* The scope of two arguments; its session is NULL where the first is absent. */
struct belay_scope op_scope(const struct op_call *call, const char *session,
                            const char *frame);
/* The lease of --with-lease, or NULL.  bad_handle. */
MUST_USE belay_rc op_lease(const struct op_call *call, const char *name,
                           struct belay_arena *a,
                           const struct belay_process_lease **out,
                           struct belay_error *err);

/* `whole`: with input and event types. */
json_t *op_json_process(struct op_maker *m, const struct belay_process *p, bool whole);
json_t *op_json_process_event(struct op_maker *m, const struct belay_process_event *e);
json_t *op_json_wake(struct op_maker *m, const struct belay_wake *w);
json_t *op_json_process_change(const struct belay_process_change *c);
json_t *op_json_process_grant(const struct belay_process_grant *g);
/* With its handle. */
json_t *op_json_process_lease(struct op_maker *m, const struct belay_process_lease *l,
                              struct belay_arena *a);

#endif /* API_OP_PROCESS_H */
