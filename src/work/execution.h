/* execution.h - executions, as transaction bodies.
 *
 * What must be true (beside L1 to L8)
 *   W1  every change of an execution guards and writes its row, through exec_write
 *       (execution_rows.h): vector by the table, public state derived, exactly one place
 *   W2  its holder is who shows the fence triple (lease id, fence, attempt id) of the last
 *       grant while ownership is `leased`; nothing else is asked (L5)
 *   W3  attempts = grants minus resumes; attempt rows + the current one add up to that
 *   W4  whatever ends an execution appends a completion and, if it belongs to a session,
 *       a batch to its inbox, in the same commit
 *   W5  a terminal execution leaves only by replay; it ends once for each time it began
 *   W6  every grant has a greater fence than the one before (L2), resumed or not
 *
 * Types are the public ones of <belay/execution.h>.  Strings and structs were checked by
 * the door as far as NULL and sizes go, not their content.
 */
#ifndef WORK_EXECUTION_H
#define WORK_EXECUTION_H

#include <belay/execution.h>

#include "work/lanes.h"
#include "work/lease.h"

#define RECLAIM_GRACE_MS ((int64_t)1000)

/* What the nouns of one handle share. */
struct exec_site {
    struct space *space;
    struct lane_book *lanes;
    struct bytes principal; /* who asks, as the door knows it; may be empty */
    enum belay_backend_tag backend;
    int64_t grace_ms;  /* after a lease's end, before somebody else may have it */
    struct host *host; /* NULL: the handle keeps apart from its host's others */
};

/* --- handles (exec_handle.c) --- */

struct exec_handle {
    int32_t backend, kind;
    struct bytes ns, execution, attempt_id, lease_id, lane, worker;
    int64_t attempt, fence, lease_ms;
};
MUST_USE belay_rc handle_encode(const struct exec_handle *h, struct belay_arena *a,
                                struct belay_handle *out, struct belay_error *err);
/* Bytes of the result are the handle's own.  bad_handle. */
MUST_USE belay_rc handle_decode(const struct belay_handle *h, struct exec_handle *out,
                                struct belay_error *err);
/* Also of this store, namespace and (unless any) not suspended. */
MUST_USE belay_rc handle_check(const struct exec_site *site,
                               const struct belay_handle *h, struct exec_handle *out,
                               struct belay_error *err);
MUST_USE belay_rc handle_text(const struct belay_handle *h, struct belay_arena *a,
                              const char **out, struct belay_error *err);
MUST_USE belay_rc handle_parse(const char *text, struct belay_arena *a,
                               struct belay_handle *out, struct belay_error *err);

/* --- exec_submit.c --- */
MUST_USE belay_rc exec_submit(const struct exec_site *site,
                              const struct belay_submission *items, size_t n,
                              struct belay_arena *a, struct belay_submitted *out,
                              struct belay_error *err);

/* --- exec_claim.c, exec_grant.c --- */
MUST_USE belay_rc exec_claim(const struct exec_site *site,
                             const struct belay_claim_policy *policy,
                             struct belay_arena *a, struct belay_works *out,
                             struct belay_error *err);
MUST_USE belay_rc exec_grant(const struct exec_site *site,
                             const struct belay_claim_policy *policy, int64_t grant_ms,
                             struct belay_arena *a, struct belay_grant *out,
                             struct belay_error *err);
MUST_USE belay_rc exec_grant_one(const struct exec_site *site, const char *execution_id,
                                 const char *worker, int64_t grant_ms,
                                 struct belay_arena *a, struct belay_grant *out,
                                 struct belay_error *err);
MUST_USE belay_rc exec_claim_grant(const struct exec_site *site, const char *grant_id,
                                   const char *worker, int64_t lease_ms,
                                   struct belay_arena *a, struct belay_work *out,
                                   struct belay_error *err);

/* --- exec_attempt.c: what a holder does and goes on --- */
MUST_USE belay_rc exec_renew(const struct exec_site *site, const struct belay_handle *h,
                             int64_t lease_ms, struct belay_lease_renewal *out,
                             struct belay_error *err);
MUST_USE belay_rc exec_progress(const struct exec_site *site,
                                const struct belay_handle *h, int percent,
                                const char *message, struct belay_error *err);
MUST_USE belay_rc exec_delay(const struct exec_site *site, const struct belay_handle *h,
                             int64_t until_ms, struct belay_error *err);
MUST_USE belay_rc exec_release(const struct exec_site *site,
                               const struct belay_handle *h, struct belay_error *err);

/* --- exec_end.c: what ends an attempt --- */
MUST_USE belay_rc exec_complete(const struct exec_site *site,
                                const struct belay_completion *items, size_t n,
                                const struct belay_claim_policy *next,
                                struct belay_arena *a, struct belay_ended *out,
                                struct belay_works *next_out, struct belay_error *err);
MUST_USE belay_rc exec_fail(const struct exec_site *site,
                            const struct belay_failure *items, size_t n,
                            struct belay_arena *a, struct belay_ended *out,
                            struct belay_error *err);
MUST_USE belay_rc exec_abort(const struct exec_site *site, const struct belay_handle *h,
                             const char *reason, struct belay_error *err);

/* --- exec_control.c --- */
MUST_USE belay_rc exec_cancel(const struct exec_site *site, const char *execution_id,
                              const char *reason, const char *source,
                              struct belay_error *err);
MUST_USE belay_rc exec_replay(const struct exec_site *site, const char *execution_id,
                              const char *reason, struct belay_error *err);
MUST_USE belay_rc exec_set_priority(const struct exec_site *site,
                                    const char *execution_id, int priority,
                                    struct belay_error *err);
MUST_USE belay_rc exec_revoke(const struct exec_site *site, const char *execution_id,
                              const char *expected_lease_id, const char *reason,
                              bool *out_revoked, struct belay_error *err);
MUST_USE belay_rc exec_tag(const struct exec_site *site, const char *execution_id,
                           const struct belay_tag *tags, size_t n,
                           struct belay_error *err);

/* --- exec_frames.c --- */
MUST_USE belay_rc exec_append_frames(const struct exec_site *site,
                                     const struct belay_handle *h,
                                     const struct belay_frame *frames, size_t n,
                                     struct belay_frame_appended *out,
                                     struct belay_error *err);
MUST_USE belay_rc exec_frames(const struct exec_site *site,
                              const struct belay_frame_request *request,
                              struct belay_arena *a, struct belay_frames *out,
                              struct belay_error *err);

/* --- exec_list.c, exec_show.c, exec_why.c, exec_wait.c --- */
MUST_USE belay_rc exec_describe(const struct exec_site *site, const char *execution_id,
                                struct belay_arena *a, struct belay_execution *out,
                                struct belay_error *err);
MUST_USE belay_rc exec_list(const struct exec_site *site,
                            const struct belay_execution_filter *filter,
                            struct belay_arena *a, struct belay_executions *out,
                            struct belay_error *err);
MUST_USE belay_rc exec_result(const struct exec_site *site, const char *execution_id,
                              struct belay_arena *a, struct belay_result *out,
                              struct belay_error *err);
MUST_USE belay_rc exec_attempts(const struct exec_site *site, const char *execution_id,
                                struct belay_arena *a, struct belay_attempts *out,
                                struct belay_error *err);
MUST_USE belay_rc exec_why(const struct exec_site *site, const char *execution_id,
                           struct belay_arena *a, struct belay_why *out,
                           struct belay_error *err);
MUST_USE belay_rc exec_wait(const struct exec_site *site, const char *execution_id,
                            int64_t wait_ms, struct belay_cancel *cancel,
                            int *out_state, struct belay_error *err);
MUST_USE belay_rc exec_lanes(const struct exec_site *site, const char *after,
                             size_t limit, struct belay_arena *a,
                             struct belay_lanes *out, struct belay_error *err);
MUST_USE belay_rc exec_count(const struct exec_site *site,
                             struct belay_execution_stats *out,
                             struct belay_error *err);

/* --- exec_events.c --- */
MUST_USE belay_rc exec_events(const struct exec_site *site,
                              const struct belay_event_request *request,
                              struct belay_arena *a, struct belay_events *out,
                              struct belay_error *err);

/* --- exec_timers.c --- */
MUST_USE belay_rc exec_timers_step(const struct exec_site *site,
                                   const struct belay_scanner_filter *filter,
                                   struct belay_timer_report *out,
                                   struct belay_error *err);
MUST_USE belay_rc exec_timers_run(const struct exec_site *site,
                                  const struct belay_scanner_filter *filter,
                                  struct belay_cancel *cancel, struct belay_error *err);

/* What one process of a host has who runs timers with this filter (may be NULL). */
struct host_seat timers_seat(const struct belay_scanner_filter *f);

/* --- exec_dead.c --- */

/* Leases of this namespace whose holders are dead by the host's evidence are lost now.  Goes
 * over what is leased, page by page; *out_lost is how many were found. */
MUST_USE belay_rc exec_dead_sweep(const struct exec_site *site, int64_t *out_lost,
                                  struct belay_error *err);

/* --- exec_serve.c: every namespace of a store that the filter admits --- */

/* One step in each, added up.  One that cannot be served does not keep the others from it:
 * the first such error is the answer. */
MUST_USE belay_rc exec_timers_pass(struct store *s, int64_t grace_ms,
                                   const struct belay_scanner_filter *filter,
                                   struct belay_timer_report *out,
                                   struct belay_error *err);
/* Adds what one step did to what others did; the next time is the earliest. */
void timer_report_add(struct belay_timer_report *to,
                      const struct belay_timer_report *r);
/* Passes when something is due and every 5 seconds, until cancelled, by one process of a
 * host.  The store is that of the site's space. */
MUST_USE belay_rc exec_timers_serve(const struct exec_site *site,
                                    const struct belay_scanner_filter *filter,
                                    struct belay_cancel *cancel,
                                    struct belay_error *err);

#endif /* WORK_EXECUTION_H */
