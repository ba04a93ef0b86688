/* execution.h - units of work on lanes: submitted, claimed by workers, done once.
 *
 * An execution waits on its lane until a worker that has the capabilities it requires
 * claims it.  The worker holds it by a lease, through a handle that it shows with every
 * operation, and ends the attempt: complete, fail, cancel, delay or release.  While its
 * token is current a holder holds, however late (L5); once somebody else has taken over,
 * everything the first one tries is `lease_lost` and changes nothing (L4).
 *
 * Names and values are those of the engine's backend types that Belay follows (handle,
 * claim policy, frame, failure, lease renewal, completion, filter).  Structs that a caller
 * fills begin with their size; strings end with a NUL; optional ones are NULL.
 */
#ifndef BELAY_EXECUTION_H
#define BELAY_EXECUTION_H

#include <stddef.h>

#include <belay/open.h>
#include <belay/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the state of an execution: six dimensions, and the public state derived from them --- */

enum belay_phase {
    BELAY_PHASE_SUBMITTED = 0,
    BELAY_PHASE_RUNNABLE,
    BELAY_PHASE_ACTIVE,
    BELAY_PHASE_SUSPENDED,
    BELAY_PHASE_TERMINAL,
};

enum belay_ownership {
    BELAY_UNOWNED = 0,
    BELAY_LEASED,
    BELAY_LEASE_EXPIRED_RECLAIMABLE,
    BELAY_LEASE_REVOKED,
};

enum belay_eligibility {
    BELAY_ELIGIBLE_NOW = 0,
    BELAY_NOT_ELIGIBLE_UNTIL_TIME,
    BELAY_BLOCKED_BY_DEPENDENCIES,
    BELAY_BLOCKED_BY_BUDGET,
    BELAY_BLOCKED_BY_QUOTA,
    BELAY_BLOCKED_BY_ROUTE,
    BELAY_BLOCKED_BY_LANE_STATE,
    BELAY_BLOCKED_BY_OPERATOR,
    BELAY_NOT_APPLICABLE,
};

enum belay_blocking {
    BELAY_BLOCKING_NONE = 0,
    BELAY_WAITING_FOR_WORKER,
    BELAY_WAITING_FOR_RETRY_BACKOFF,
    BELAY_WAITING_FOR_RESUME_DELAY,
    BELAY_WAITING_FOR_DELAY,
    BELAY_WAITING_FOR_SIGNAL,
    BELAY_WAITING_FOR_APPROVAL,
    BELAY_WAITING_FOR_CALLBACK,
    BELAY_WAITING_FOR_TOOL_RESULT,
    BELAY_WAITING_FOR_CHILDREN,
    BELAY_WAITING_FOR_BUDGET,
    BELAY_WAITING_FOR_QUOTA,
    BELAY_WAITING_FOR_CAPABLE_WORKER,
    BELAY_WAITING_FOR_LOCALITY_MATCH,
    BELAY_PAUSED_BY_OPERATOR,
    BELAY_PAUSED_BY_POLICY,
    BELAY_PAUSED_BY_FLOW_CANCEL,
};

enum belay_terminal {
    BELAY_TERMINAL_NONE = 0,
    BELAY_TERMINAL_SUCCESS,
    BELAY_TERMINAL_FAILED,
    BELAY_TERMINAL_CANCELLED,
    BELAY_TERMINAL_EXPIRED,
    BELAY_TERMINAL_SKIPPED,
};

enum belay_attempt_state {
    BELAY_ATTEMPT_NONE = 0,
    BELAY_PENDING_FIRST_ATTEMPT,
    BELAY_RUNNING_ATTEMPT,
    BELAY_ATTEMPT_INTERRUPTED,
    BELAY_PENDING_RETRY_ATTEMPT,
    BELAY_PENDING_REPLAY_ATTEMPT,
    BELAY_ATTEMPT_TERMINAL,
};

enum belay_state {
    BELAY_STATE_ANY = 0, /* in a filter; no execution has it */
    BELAY_STATE_WAITING,
    BELAY_STATE_DELAYED,
    BELAY_STATE_RATE_LIMITED,
    BELAY_STATE_WAITING_CHILDREN,
    BELAY_STATE_ACTIVE,
    BELAY_STATE_SUSPENDED,
    BELAY_STATE_RESUMABLE,
    BELAY_STATE_COMPLETED,
    BELAY_STATE_FAILED,
    BELAY_STATE_CANCELLED,
    BELAY_STATE_EXPIRED,
    BELAY_STATE_SKIPPED,
};

struct belay_vector {
    int32_t phase, ownership, eligibility, blocking, outcome, attempt;
};

/* The public state of a vector: a total function. */
BELAY_API int belay_state_derive(const struct belay_vector *v);

/* Names on every door ("runnable", "eligible_now", "waiting_for_worker", ...); NULL for a
 * number that is none.  And back: false, and *out as it was. */
enum belay_dimension {
    BELAY_DIM_PHASE = 0,
    BELAY_DIM_OWNERSHIP,
    BELAY_DIM_ELIGIBILITY,
    BELAY_DIM_BLOCKING,
    BELAY_DIM_OUTCOME,
    BELAY_DIM_ATTEMPT_STATE,
    BELAY_DIM_STATE,
    BELAY_DIM_ATTEMPT_TYPE,
    BELAY_DIM_ATTEMPT_END,
    BELAY_DIM_HANDLE_KIND,
    BELAY_DIM_FAILURE_CLASS,
    BELAY_DIM_FRAME_KIND,
    BELAY_DIM_FRAME_MODE,
    BELAY_DIM_EVENT,
    BELAY_DIM_COUNT
};
BELAY_API const char *belay_value_name(int dimension, int value);
BELAY_API bool belay_value_parse(int dimension, const char *name, int *out);

/* --- attempts --- */

enum belay_attempt_type {
    BELAY_ATTEMPT_INITIAL = 0,
    BELAY_ATTEMPT_RETRY,
    BELAY_ATTEMPT_RECLAIM,
    BELAY_ATTEMPT_REPLAY,
    BELAY_ATTEMPT_FALLBACK, /* not used */
};

/* What became of an attempt. */
enum belay_attempt_end {
    BELAY_END_STARTED = 0, /* it is running */
    BELAY_END_SUSPENDED,   /* it is paused, and goes on with the next claim */
    BELAY_END_SUCCESS,
    BELAY_END_FAILURE,
    BELAY_END_CANCELLED,
    BELAY_END_INTERRUPTED_RECLAIMED,
};

struct belay_attempt {
    int64_t index; /* from 0 */
    const char *attempt_id;
    int32_t type, end; /* enum belay_attempt_type, belay_attempt_end */
    const char *worker;
    int64_t fence;                      /* of its last grant */
    int64_t started_at_ms, ended_at_ms; /* BELAY_TIME_NONE: not yet */
    int64_t frames;                     /* appended in all */
    const char *closed_reason; /* of its frames: attempt_success ...; NULL: open */
    const char *failure_class, *failure_message;
    int64_t previous_attempt_index; /* the one that it follows; -1: it is the first */
    const char *retry_reason; /* of a retry: why that one failed, as "class: message" or
                                 "class"; else NULL */
};

/* --- handles --- */

enum belay_backend_tag {
    BELAY_BACKEND_VALKEY = 1,
    BELAY_BACKEND_POSTGRES = 2,
    BELAY_BACKEND_SQLITE = 3,
    BELAY_BACKEND_MEMORY = 4,
};

enum belay_handle_kind {
    BELAY_HANDLE_FRESH = 0,
    BELAY_HANDLE_RESUMED,
    BELAY_HANDLE_SUSPENDED,
    BELAY_HANDLE_RECLAIMED,
};

/* What proves that its bearer holds an attempt.  The bytes are the library's. */
struct belay_handle {
    int32_t backend; /* enum belay_backend_tag */
    int32_t kind;    /* enum belay_handle_kind */
    const uint8_t *opaque;
    size_t opaque_len;
};

/* As one printable string ("blh1_" and base64url), in the arena, and back.  bad_handle,
 * with a reason: truncated, trailing_bytes, wire_version, backend_tag, kind, utf8, field,
 * text. */
BELAY_API BELAY_MUST_USE belay_rc belay_handle_text(const struct belay_handle *h,
                                                    struct belay_arena *arena,
                                                    const char **out,
                                                    struct belay_error *err);
BELAY_API BELAY_MUST_USE belay_rc belay_handle_parse(const char *text,
                                                     struct belay_arena *arena,
                                                     struct belay_handle *out,
                                                     struct belay_error *err);

/* What is in a handle. */
struct belay_handle_info {
    const char *ns, *execution_id, *attempt_id, *lease_id, *lane, *worker;
    int64_t attempt; /* its index */
    int64_t fence;
    int64_t lease_ms;
};
BELAY_API BELAY_MUST_USE belay_rc belay_handle_read(const struct belay_handle *h,
                                                    struct belay_arena *arena,
                                                    struct belay_handle_info *out,
                                                    struct belay_error *err);

/* --- submitting --- */

#define BELAY_PRIORITY_MAX 9000
#define BELAY_SUBMIT_MAX 1000
#define BELAY_KEY_WINDOW_MS ((int64_t)24 * 60 * 60 * 1000)
#define BELAY_RETENTION_MS ((int64_t)7 * 24 * 60 * 60 * 1000)
#define BELAY_EXECUTION_LEASE_MS ((int64_t)30 * 1000)
#define BELAY_MAX_RETRIES 3
#define BELAY_MAX_RECLAIMS 100
#define BELAY_MAX_REPLAYS 10
#define BELAY_PAYLOAD_MAX ((size_t)1 << 20)

enum belay_backoff {
    BELAY_BACKOFF_EXPONENTIAL = 0,
    BELAY_BACKOFF_FIXED = 1,
};

enum belay_failure_class {
    BELAY_FAILURE_UNSET = 0, /* refused: say which */
    BELAY_FAILURE_TRANSIENT,
    BELAY_FAILURE_PERMANENT,
    BELAY_FAILURE_INFRA_CRASH,
    BELAY_FAILURE_TIMEOUT,
    BELAY_FAILURE_CANCELLED,
};

/* When a failed attempt is followed by another.  Transient, infra_crash and timeout may
 * be; permanent and cancelled never are. */
struct belay_retry_policy {
    uint32_t size;
    int32_t backoff;      /* enum belay_backoff */
    int64_t max_retries;  /* 0: none */
    int64_t delay_ms;     /* fixed: the delay, -1: none, again at once; exponential: the
                             first; 0: 1 s */
    int64_t max_delay_ms; /* exponential: not below the first; 0: 60 s */
    double multiplier;    /* exponential; 0: 2 */
    bool no_jitter;       /* exponential: not spread over half to all of the delay */
    const char *const *retryable; /* classes that may be, or what `detail` of a failure
                                     says; NULL: all that may be */
    size_t n_retryable;
};

struct belay_tag {
    const char *key, *value;
};

/* What is submitted.  Zero means the usual one everywhere. */
struct belay_submission {
    uint32_t size;
    int32_t priority;     /* 0 to BELAY_PRIORITY_MAX: greater ones first */
    const char *lane;     /* 1 to 64 bytes, each printable ASCII */
    const char *kind;     /* free text for the worker; NULL: "" */
    const void *payload;  /* NULL: none */
    size_t payload_len;   /* at most BELAY_PAYLOAD_MAX */
    bool payload_is_json; /* checked, and kept in canonical form */
    int64_t delay_ms;     /* not before now + delay ... */
    int64_t run_at_ms;    /* ... or this time: the later one */
    int64_t deadline_ms;  /* terminal `expired` after this; 0: none */
    int64_t
        attempt_timeout_ms; /* an attempt fails with `timeout` after this; 0: none */
    const struct belay_retry_policy *retry; /* NULL: no retries */
    const char *const *requires; /* capabilities; order and repetition do not matter */
    size_t n_requires;
    const struct belay_tag *tags;
    size_t n_tags;
    const char *session; /* whose inbox hears of the end */
    const char *process; /* registered (process.h): the end appends an event there */
    const char *traceparent, *tracestate;
    const char *creator;
    const char *key;       /* idempotency: one execution for it within the window */
    int64_t key_window_ms; /* of a key; 0: BELAY_KEY_WINDOW_MS */
    int64_t max_reclaims;  /* 0: BELAY_MAX_RECLAIMS; -1: none, the first loss ends it */
    int64_t retention_ms;  /* once terminal; 0: BELAY_RETENTION_MS; -1: none, the timers
                              remove it as soon as it has ended */
    const char *process_event; /* of which type; NULL: "execution.completed" */
};

struct belay_submitted {
    const char *execution_id;
    int32_t state;  /* enum belay_state, of the existing one when it is a duplicate */
    bool duplicate; /* the key was used for the same submission before */
};

/* All of them in one transaction, or none: n is 1 to BELAY_SUBMIT_MAX, out has n entries.
 * `invalid` with a reason: lane, priority, payload, too_large, deadline, retry, requires
 * (message: empty_token, comma_in_token, control_or_whitespace, not_utf8, too_many_tokens,
 * too_many_bytes), tag, key, ...; key_conflict: the key was used for another submission. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_submit(
    struct belay *b, const struct belay_submission *items, size_t n,
    struct belay_arena *arena, struct belay_submitted *out, struct belay_error *err);

/* --- claiming --- */

#define BELAY_WORK_MAX 1000

/* Who asks for work. */
struct belay_claim_policy {
    uint32_t size;
    const char *const *lanes;
    size_t n_lanes;     /* 1 to 64 */
    const char *worker; /* 1 to 255 bytes */
    const char *const *capabilities;
    size_t n_capabilities;
    size_t max;                  /* 0: 1; at most BELAY_WORK_MAX */
    int64_t lease_ms;            /* 0: BELAY_EXECUTION_LEASE_MS; -1: past due at once */
    int64_t max_wait_ms;         /* how long to wait for work; 0: not at all */
    struct belay_cancel *cancel; /* ends the waiting; may be NULL */
};

/* One piece of work that is held. */
struct belay_work {
    struct belay_handle handle;
    const char *execution_id, *lane, *kind;
    int64_t attempt;      /* its index, from 0 */
    int32_t attempt_type; /* enum belay_attempt_type */
    int64_t fence, expires_at_ms;
    const void *payload; /* NULL: none */
    size_t payload_len;
    bool payload_is_json;
    const struct belay_tag *tags;
    size_t n_tags;
    const char *session, *process, *traceparent, *tracestate;
    int64_t timeout_at_ms, deadline_at_ms; /* BELAY_TIME_NONE: none */
    int64_t submitted_at_ms;
};

struct belay_works {
    const struct belay_work *work;
    size_t n;           /* 0: nothing to do, which is no error */
    int64_t next_at_ms; /* n 0: when something becomes due by itself; BELAY_TIME_NONE.
                           One that has passed: more is due, ask again */
};

/* By priority, then age, of all those lanes together.  What is due (delays, retries, lost
 * leases) is seen to first, so that nothing else has to run.
 *
 * One whose payload is missing or corrupt fails, permanent, and is not among them; one whose
 * payload cannot be read for the moment is released, and the error is the call's where there
 * is no other. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_claim(
    struct belay *b, const struct belay_claim_policy *policy, struct belay_arena *arena,
    struct belay_works *out, struct belay_error *err);

/* --- grants: a scheduler decides who may claim what --- */

struct belay_grant {
    const char *grant_id; /* "gra_..." */
    const char *execution_id, *partition_key /* the namespace */, *lane, *worker;
    int32_t kind; /* enum belay_handle_kind: what claiming it will give */
    int64_t expires_at_ms;
};

/* The next execution that `policy` would claim, set aside for policy->worker until
 * now + grant_ms (1 to 60000).  out->grant_id NULL: nothing to do. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_grant(
    struct belay *b, const struct belay_claim_policy *policy, int64_t grant_ms,
    struct belay_arena *arena, struct belay_grant *out, struct belay_error *err);
/* Exactly this execution, whatever capabilities the worker has: for operators. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_grant_one(
    struct belay *b, const char *execution_id, const char *worker, int64_t grant_ms,
    struct belay_arena *arena, struct belay_grant *out, struct belay_error *err);
/* not_found: there is no such grant (any more); wrong_state, reason worker: it is
 * somebody else's; wrong_state, reason expired; corrupt, reason payload: it cannot be read,
 * and the execution has failed. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_claim_grant(
    struct belay *b, const char *grant_id, const char *worker, int64_t lease_ms,
    struct belay_arena *arena, struct belay_work *out, struct belay_error *err);

/* --- what a holder does ---
 *
 * All of them: bad_handle (other_backend, other_namespace, ...); wrong_state, reason
 * handle_kind, for a suspended handle; not_found; lease_lost with a reason (superseded,
 * revoked, expired, released, terminal, epoch).  Repeating what was done is no error. */

struct belay_lease_renewal {
    int64_t expires_at_ms, fence;
};
BELAY_API BELAY_MUST_USE belay_rc belay_execution_renew(
    struct belay *b, const struct belay_handle *h, int64_t lease_ms /* 0: as claimed */,
    struct belay_lease_renewal *out /* may be NULL */, struct belay_error *err);

/* percent 0 to 100, -1: as it is; message NULL: as it is. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_progress(struct belay *b,
                                                           const struct belay_handle *h,
                                                           int percent,
                                                           const char *message,
                                                           struct belay_error *err);

enum belay_frame_kind {
    BELAY_FRAME_STDOUT = 0,
    BELAY_FRAME_STDERR,
    BELAY_FRAME_EVENT,
    BELAY_FRAME_BLOB,
};

enum belay_frame_mode {
    BELAY_FRAME_DURABLE = 0,
};

#define BELAY_FRAME_MAX ((size_t)65536)

struct belay_frame {
    uint32_t size;
    int32_t kind; /* enum belay_frame_kind */
    int32_t mode; /* enum belay_frame_mode */
    const void *bytes;
    size_t len;
    int64_t
        seq; /* the caller's own, growing: one that is not above the last was appended
                    before and is left out; 0: none */
    const char *frame_type, *correlation_id; /* may be NULL */
    int64_t caller_seq; /* what readers see as the caller's number, where somebody hands
                           on frames of others and numbers them himself; 0: seq; -1:
                           there is none */
};

struct belay_frame_appended {
    int64_t seq;         /* of the last one */
    int64_t frame_count; /* of the attempt, in all */
    int64_t repeated;    /* of the given ones: appended before, and left out now */
};

/* Frames of the attempt, in order, all or none; the last 10,000 are kept (retention).
 * n 1 to 1000, 1 MiB in all; `invalid`, reason frame_too_large, for one over
 * BELAY_FRAME_MAX. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_append_frames(
    struct belay *b, const struct belay_handle *h, const struct belay_frame *frames,
    size_t n, struct belay_frame_appended *out, struct belay_error *err);

struct belay_completion {
    uint32_t size;
    bool result_is_json;
    const struct belay_handle *handle;
    const void *result; /* NULL: none */
    size_t result_len;
};

struct belay_failure {
    uint32_t size;
    int32_t failure_class; /* enum belay_failure_class */
    const struct belay_handle *handle;
    const char *message; /* up to 4096 bytes */
    const void *detail;  /* up to 64 KiB; UTF-8 of up to 128 bytes names a category */
    size_t detail_len;
};

enum belay_fail_outcome {
    BELAY_RETRY_SCHEDULED = 0,
    BELAY_TERMINAL_FAILURE = 1,
};

/* What became of one item. */
struct belay_ended {
    belay_rc code; /* BELAY_OK, or why not; err has the rest */
    struct belay_error err;
    int32_t outcome;        /* of a failure: enum belay_fail_outcome */
    int64_t delay_until_ms; /* of a retry; BELAY_TIME_NONE */
    bool replayed;          /* it had been done before */
};

/* n items (1 to 1000) in one transaction, each done or not by itself, also where a handle
 * is none: out says.  Of a single one, without a next, the error is also the call's.  next
 * not NULL: claims in the same transaction (without waiting); next_out then has what came of
 * it.  What was claimed and cannot be handed out is no error of this call: n is 0 then. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_complete(
    struct belay *b, const struct belay_completion *items, size_t n,
    const struct belay_claim_policy *next, struct belay_arena *arena,
    struct belay_ended *out, struct belay_works *next_out, struct belay_error *err);
BELAY_API BELAY_MUST_USE belay_rc belay_execution_fail(
    struct belay *b, const struct belay_failure *items, size_t n,
    struct belay_arena *arena, struct belay_ended *out, struct belay_error *err);

/* The same attempt goes on later: at until_ms. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_delay(struct belay *b,
                                                        const struct belay_handle *h,
                                                        int64_t until_ms,
                                                        struct belay_error *err);
/* The work is given back: the same attempt, eligible now, nothing charged. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_release(struct belay *b,
                                                          const struct belay_handle *h,
                                                          struct belay_error *err);
/* The holder ends it as cancelled. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_abort(struct belay *b,
                                                        const struct belay_handle *h,
                                                        const char *reason,
                                                        struct belay_error *err);

/* --- control --- */

/* wrong_state, reason terminal, when it has ended in another way; being cancelled
 * already is no error.  source NULL: operator_override. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_cancel(struct belay *b,
                                                         const char *execution_id,
                                                         const char *reason,
                                                         const char *source,
                                                         struct belay_error *err);
/* A terminal one once more: counters of retries and reclaims begin anew, failure and
 * result go, a deadline counts from now.  wrong_state: not terminal; reason replays: at
 * most BELAY_MAX_REPLAYS. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_replay(struct belay *b,
                                                         const char *execution_id,
                                                         const char *reason,
                                                         struct belay_error *err);
BELAY_API BELAY_MUST_USE belay_rc belay_execution_set_priority(struct belay *b,
                                                               const char *execution_id,
                                                               int priority,
                                                               struct belay_error *err);
/* Ends a lease: the work can be claimed again at once.  expected_lease_id NULL: whatever
 * it is; lease_lost, reason superseded, where another one is current.  No live lease is no
 * error: *out_revoked says. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_revoke(
    struct belay *b, const char *execution_id, const char *expected_lease_id,
    const char *reason, bool *out_revoked, struct belay_error *err);
/* Sets tags; a value of NULL removes one. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_tag(struct belay *b,
                                                      const char *execution_id,
                                                      const struct belay_tag *tags,
                                                      size_t n,
                                                      struct belay_error *err);

/* --- looking --- */

struct belay_execution {
    const char *id, *ns, *lane, *kind;
    int32_t state; /* enum belay_state */
    int32_t priority;
    struct belay_vector vector;
    const char *blocking_detail;
    int64_t attempt; /* current or last; -1: none yet */
    int64_t attempts, retries, reclaims, replays;
    int64_t fence;
    const char *attempt_id, *worker; /* of the last grant; NULL: none */
    int64_t lease_expires_at_ms;     /* BELAY_TIME_NONE: nobody holds it */
    int64_t created_at_ms, started_at_ms, updated_at_ms, finished_at_ms;
    int64_t delay_until_ms, deadline_at_ms, timeout_at_ms;
    const struct belay_tag *tags;
    size_t n_tags;
    const char *const *requires;
    size_t n_requires;
    const char *flow, *session, *process, *creator, *key;
    int progress_percent; /* -1: none */
    const char *progress_message;
    int64_t progress_at_ms;
    int32_t failure_class; /* 0: none */
    const char *failure_message;
    const void *failure_detail;
    size_t failure_detail_len;
    const char *cancel_reason, *cancelled_by;
    bool has_result;
    const char *policy;                   /* as it was submitted, JSON */
    const char *traceparent, *tracestate; /* likewise; NULL: none */
};

BELAY_API BELAY_MUST_USE belay_rc belay_execution_describe(struct belay *b,
                                                           const char *execution_id,
                                                           struct belay_arena *arena,
                                                           struct belay_execution *out,
                                                           struct belay_error *err);

struct belay_execution_filter {
    uint32_t size;
    int32_t state; /* BELAY_STATE_ANY */
    const char *lane, *flow;
    const char *tag_key, *tag_value;
    int64_t created_from_ms, created_to_ms; /* 0: open */
    size_t limit;                           /* 1 to 1000; 0: 100 */
    const char *cursor;                     /* NULL: from the beginning */
};

struct belay_executions {
    const struct belay_execution *items;
    size_t n;
    const char *next_cursor; /* NULL: there is no more.  A page may be short, or empty,
                                where few match, and still have one */
};

/* Newest first without a state; with one, in the order in which their turn comes, or in
 * which they ended.  Progress, failure, cancellation and whether there is a result are not
 * looked up for a list: those members are as if there were none. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_list(
    struct belay *b, const struct belay_execution_filter *filter,
    struct belay_arena *arena, struct belay_executions *out, struct belay_error *err);

struct belay_result {
    int32_t state;
    bool has_result, is_json;
    const void *bytes;
    size_t len;
    int32_t failure_class;
    const char *failure_message;
};
/* wrong_state, reason not_terminal, before it has ended. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_result(struct belay *b,
                                                         const char *execution_id,
                                                         struct belay_arena *arena,
                                                         struct belay_result *out,
                                                         struct belay_error *err);

struct belay_attempts {
    const struct belay_attempt *items;
    size_t n;
};
BELAY_API BELAY_MUST_USE belay_rc belay_execution_attempts(struct belay *b,
                                                           const char *execution_id,
                                                           struct belay_arena *arena,
                                                           struct belay_attempts *out,
                                                           struct belay_error *err);

/* Why it is not running. */
struct belay_why {
    int32_t state;
    int32_t reason;        /* enum belay_blocking; none: it runs, or has ended */
    const char *detail;    /* a sentence */
    const char *waits_for; /* the thing: a worker of lane L, a time, ... */
    int64_t next_at_ms;    /* when that may change by itself; BELAY_TIME_NONE */
    int64_t ahead; /* waiting work that comes first, up to 1000; -1: not known */
};
BELAY_API BELAY_MUST_USE belay_rc belay_execution_why(struct belay *b,
                                                      const char *execution_id,
                                                      struct belay_arena *arena,
                                                      struct belay_why *out,
                                                      struct belay_error *err);

struct belay_frame_row {
    int64_t attempt, seq;
    int32_t kind, mode;
    int64_t at_ms;
    const void *bytes;
    size_t len;
    const char *frame_type, *correlation_id;
    int64_t caller_seq; /* as the caller numbered it; 0: not at all */
};

struct belay_frame_request {
    uint32_t size;
    const char *execution_id;
    int64_t attempt;   /* -1: the current or last one */
    int64_t after_seq; /* 0: from the first that is kept */
    size_t limit;      /* 1 to 1000; 0: 100 */
    int64_t wait_ms;   /* for the first one; 0: not at all */
    struct belay_cancel *cancel;
};

struct belay_frames {
    const struct belay_frame_row *items;
    size_t n;
    int64_t attempt, last_seq, frame_count;
    bool closed; /* no more will come of this attempt */
    const char *closed_reason;
    int64_t attempts; /* of the execution: an older one is followed by the next */
    bool terminal;    /* the execution has ended */
};
BELAY_API BELAY_MUST_USE belay_rc belay_execution_frames(
    struct belay *b, const struct belay_frame_request *request,
    struct belay_arena *arena, struct belay_frames *out, struct belay_error *err);

/* Waits until it is terminal.  `timeout` when wait_ms has passed; *out_state is its state
 * then, too. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_wait(
    struct belay *b, const char *execution_id, int64_t wait_ms,
    struct belay_cancel *cancel, int *out_state, struct belay_error *err);

struct belay_lane {
    const char *lane;
    int64_t created_at_ms;
    int64_t waiting;      /* counted up to BELAY_COUNT_MAX */
    int64_t oldest_at_ms; /* of those; BELAY_TIME_NONE */
    size_t routes;        /* different sets of required capabilities */
};
#define BELAY_COUNT_MAX 10000

struct belay_lanes {
    const struct belay_lane *items;
    size_t n;
    const char *next_after; /* NULL: no more */
};
BELAY_API BELAY_MUST_USE belay_rc belay_lane_list(struct belay *b, const char *after,
                                                  size_t limit,
                                                  struct belay_arena *arena,
                                                  struct belay_lanes *out,
                                                  struct belay_error *err);

/* How many there are in each state, each counted up to BELAY_COUNT_MAX. */
struct belay_execution_stats {
    uint32_t size;
    int64_t count[BELAY_STATE_SKIPPED + 1];
    int64_t lanes;
    int64_t next_due_at_ms; /* BELAY_TIME_NONE */
};
BELAY_API BELAY_MUST_USE belay_rc belay_execution_count(
    struct belay *b, struct belay_execution_stats *out, struct belay_error *err);

/* --- what happened: completions and the history of leases --- */

enum belay_event_type {
    BELAY_EVENT_COMPLETION = 0, /* terminal, in whatever way */
    BELAY_EVENT_ACQUIRED,
    BELAY_EVENT_RELEASED, /* retry, delay, release; ending is a completion */
    BELAY_EVENT_EXPIRED,
    BELAY_EVENT_REVOKED,
    BELAY_EVENT_RECLAIMED,
    BELAY_EVENT_REPLAY_INITIATED,
};

struct belay_event {
    const char *cursor;
    int32_t type; /* enum belay_event_type */
    const char *execution_id, *lane;
    int64_t produced_at_ms;
    int32_t outcome;     /* enum belay_terminal, of a completion */
    const void *payload; /* of a completion: the result; NULL: none */
    size_t payload_len;
    bool payload_is_json;
    bool payload_gone; /* there was a result, longer than 4 KiB, and it is not kept any
                          more: the execution was replayed or purged since */
    int64_t fence;     /* 0: there was no grant */
    const char *worker, *reason, *flow;
};

/* The seed's filter: what is set must be equal, what is missing does not match; nothing
 * set matches everything. */
struct belay_scanner_filter {
    uint32_t size;
    const char *ns;
    const char *tag_key, *tag_value;
};
BELAY_API bool belay_scanner_filter_is_noop(const struct belay_scanner_filter *f);
BELAY_API bool belay_scanner_filter_matches(const struct belay_scanner_filter *f,
                                            const char *ns,
                                            const struct belay_tag *tags,
                                            size_t n_tags);

struct belay_event_request {
    uint32_t size;
    const char
        *after;     /* a cursor; NULL: from the oldest that is kept; "now": from here */
    uint32_t types; /* bit per enum belay_event_type; 0: all */
    const char *execution_id; /* NULL: of all */
    const struct belay_scanner_filter *filter;
    size_t limit; /* 1 to 1000; 0: 100 */
    int64_t wait_ms;
    struct belay_cancel *cancel;
};

struct belay_events {
    const struct belay_event *items;
    size_t n;
    const char *cursor; /* to go on with, whether or not something was found */
    bool trimmed;       /* something between `after` and here is not kept any more */
};
/* Prefix-closed: whoever goes on with the cursor misses nothing and sees nothing twice. */
BELAY_API BELAY_MUST_USE belay_rc belay_execution_events(
    struct belay *b, const struct belay_event_request *request,
    struct belay_arena *arena, struct belay_events *out, struct belay_error *err);

/* --- timers --- */

struct belay_timer_report {
    int64_t promoted, expired_leases, timed_out, expired;
    int64_t purged; /* executions and processes */
    int64_t keys, capped;
    int64_t next_due_at_ms; /* BELAY_TIME_NONE: nothing waits for a time */
    bool busy;              /* another process does it just now */
    bool more;              /* something is due still */
};
/* One bounded step of everything that happens by itself: delays, retries, lost leases,
 * attempt timeouts, deadlines, retention.  Any process may call it; one at a time works. */
BELAY_API BELAY_MUST_USE belay_rc belay_timers_step(
    struct belay *b, const struct belay_scanner_filter *filter /* may be NULL */,
    struct belay_timer_report *out, struct belay_error *err);
/* Steps when something is due, asleep in between, until cancelled (BELAY_CANCELLED). */
BELAY_API BELAY_MUST_USE belay_rc
belay_timers_run(struct belay *b, const struct belay_scanner_filter *filter,
                 struct belay_cancel *cancel, struct belay_error *err);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_EXECUTION_H */
