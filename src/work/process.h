/* process.h - processes, as transaction bodies.
 *
 * What must be true (beside L1 to L7, E1 to E3)
 *   P1  every event, every change of status, lease or external ref guards and writes the
 *       process's own row; its last_seq is the head of the log, without gaps (E1)
 *   P2  status, terminal_seq and the end row come with the event that ended it (E3); a
 *       terminal status is final (D2)
 *   P3  a wake and the batch it puts into an inbox are one commit; one batch for a target
 *       and wake id, ever, unless that batch was taken out by hand
 *   P4  a completed batch settles its wake in the commit that completes it
 *   P5  what ends a process shows a lease that is held, or names an authority, and is
 *       checked in the commit that ends it (L4)
 *   P6  every change of which grants there are guards and writes the count of the process
 *       and that of the session: who decides from all of them guards those
 *   P7  a process that is gone has left its fences below the namespace's floor (L2)
 *
 * Types are the public ones of <belay/process.h>.  Strings and structs were checked by the
 * door as far as NULL and sizes go, not their content.
 */
#ifndef WORK_PROCESS_H
#define WORK_PROCESS_H

#include <belay/process.h>

#include "work/lease.h"

/* Registrations that were read, for all calls of a handle. */
struct proc_book;
MUST_USE belay_rc proc_book_open(struct proc_book **out, struct belay_error *err);
void proc_book_close(struct proc_book *b); /* takes NULL */

/* What the calls of one handle share. */
struct proc_site {
    struct space *space;
    struct proc_book *book;
    struct bytes principal; /* who asks, as the door knows it; may be empty */
    struct host *host;      /* NULL: the handle keeps apart from its host's others */
};

/* Words of the public numbers; NULL for one that is none. */
const char *proc_status_name(int status);
const char *proc_change_name(int kind);
const char *proc_wake_state_name(int state);
const char *proc_authority_name(int authority);

/* --- process_register.c, process_show.c, process_list.c --- */
MUST_USE belay_rc proc_register(const struct proc_site *site,
                                const struct belay_registration *r,
                                struct belay_arena *a, struct belay_registered *out,
                                struct belay_error *err);
MUST_USE belay_rc proc_show(const struct proc_site *site, const char *process_id,
                            struct belay_arena *a, const struct belay_process **out,
                            struct belay_error *err);
MUST_USE belay_rc proc_list(const struct proc_site *site,
                            const struct belay_process_page *page,
                            struct belay_arena *a, struct belay_processes *out,
                            struct belay_error *err);
MUST_USE belay_rc proc_set_ref(const struct proc_site *site, const char *process_id,
                               const char *ref, const struct belay_process_lease *lease,
                               struct belay_arena *a, const struct belay_process **out,
                               struct belay_error *err);

/* --- process_append.c --- */
MUST_USE belay_rc proc_append(const struct proc_site *site,
                              const struct belay_event_draft *draft,
                              struct belay_arena *a, struct belay_appended *out,
                              struct belay_error *err);
MUST_USE belay_rc proc_complete(const struct proc_site *site,
                                const struct belay_process_end *end,
                                struct belay_arena *a, struct belay_completed *out,
                                struct belay_error *err);
MUST_USE belay_rc proc_cancel(const struct proc_site *site, const char *process_id,
                              const char *reason, struct belay_arena *a,
                              struct belay_appended *out, struct belay_error *err);

/* --- process_read.c --- */
MUST_USE belay_rc proc_events(const struct proc_site *site,
                              const struct belay_process_event_request *request,
                              struct belay_arena *a, struct belay_process_events *out,
                              struct belay_error *err);
/* The first one of request->event_type; `timeout`. */
MUST_USE belay_rc proc_wait_event(const struct proc_site *site,
                                  const struct belay_process_event_request *request,
                                  struct belay_arena *a,
                                  const struct belay_process_event **out,
                                  struct belay_error *err);
MUST_USE belay_rc proc_await(const struct proc_site *site, const char *process_id,
                             int64_t wait_ms, struct belay_cancel *cancel,
                             struct belay_arena *a, const struct belay_process **out,
                             struct belay_error *err);

/* --- process_wake.c --- */
MUST_USE belay_rc proc_wakes(const struct proc_site *site,
                             const struct belay_wake_page *page, struct belay_arena *a,
                             struct belay_wakes *out, struct belay_error *err);
MUST_USE belay_rc proc_ack(const struct proc_site *site, const char *process_id,
                           int64_t sequence, bool *out_settled,
                           struct belay_error *err);

/* --- process_lease.c --- */
MUST_USE belay_rc proc_lease(const struct proc_site *site, const char *process_id,
                             const char *owner_id, int64_t lease_ms,
                             const struct belay_incarnation *incarnation,
                             struct belay_arena *a,
                             const struct belay_process_lease **out,
                             struct belay_error *err);
MUST_USE belay_rc proc_renew(const struct proc_site *site,
                             const struct belay_process_lease *lease, int64_t lease_ms,
                             int64_t *out_expires_at_ms, struct belay_error *err);
MUST_USE belay_rc proc_release(const struct proc_site *site,
                               const struct belay_process_lease *lease,
                               bool *out_released, struct belay_error *err);
MUST_USE belay_rc proc_lease_text(const struct belay_process_lease *lease,
                                  struct belay_arena *a, const char **out,
                                  struct belay_error *err);
MUST_USE belay_rc proc_lease_parse(const char *text, struct belay_arena *a,
                                   const struct belay_process_lease **out,
                                   struct belay_error *err);

/* --- process_grants.c, process_grant_list.c, process_forget.c --- */
MUST_USE belay_rc proc_grant(const struct proc_site *site,
                             const struct belay_scope *scope, const char *process_id,
                             const char *kind, const char *label,
                             struct belay_error *err);
MUST_USE belay_rc proc_revoke(const struct proc_site *site,
                              const struct belay_scope *scope, const char *process_id,
                              bool *out_revoked, struct belay_error *err);
MUST_USE belay_rc proc_transfer(const struct proc_site *site,
                                const struct belay_scope *from,
                                const struct belay_scope *to,
                                const char *const *process_ids, size_t n,
                                struct belay_error *err);
MUST_USE belay_rc proc_has_grant(const struct proc_site *site,
                                 const struct belay_scope *scope,
                                 const char *process_id, bool *out,
                                 struct belay_error *err);
MUST_USE belay_rc proc_grants(const struct proc_site *site,
                              const struct belay_grant_page *page,
                              struct belay_arena *a, struct belay_process_grants *out,
                              struct belay_error *err);
MUST_USE belay_rc proc_forget_session(const struct proc_site *site,
                                      const char *session_id, bool cancel,
                                      const char *reason, struct belay_arena *a,
                                      struct belay_forget_report *out,
                                      struct belay_error *err);

/* --- process_changes.c --- */
MUST_USE belay_rc proc_changes(const struct proc_site *site,
                               const struct belay_change_request *request,
                               struct belay_arena *a, struct belay_process_changes *out,
                               struct belay_error *err);

/* --- process_remove.c --- */
MUST_USE belay_rc proc_delete(const struct proc_site *site, const char *process_id,
                              bool force, struct belay_error *err);

#endif /* WORK_PROCESS_H */
