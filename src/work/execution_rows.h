/* execution_rows.h - the rows of executions, for the files of the noun.
 *
 *   exec_rows.c    reading an execution, changing it, where it stands
 *   exec_due.c     what time does to one: the same for claims and timers
 *   exec_finish.c  what ends an attempt, or the execution: the same for everybody
 *   exec_event.c   what is told about it
 *   exec_policy.c  its policy as JSON
 *
 * A body copies the row, edits the copy, takes a step, and writes the difference:
 *
 *     struct exec e;
 *     rc = exec_get(t, id, &e);                       // guarded
 *     e.v[EXEC_DELAY_UNTIL_MS] = value_i64(until);    // edit
 *     rc = exec_step(t, &e, STEP_DELAY);              // vector by the table, or wrong_state
 *     rc = exec_write(t, &e, now);                    // row and place (W1)
 */
#ifndef WORK_EXECUTION_ROWS_H
#define WORK_EXECUTION_ROWS_H

#include "policy/retry.h"
#include "policy/transition.h"
#include "work/execution.h"

#define EXECUTION_PREFIX "exe_"
#define ATTEMPT_PREFIX "att_"
#define GRANT_PREFIX "gra_"
#define WORKER_MAX 255
#define PAYLOAD_INLINE_MAX ((size_t)8192) /* longer ones go to a blob */
#define RESULT_INLINE_MAX ((size_t)8192)
#define EVENT_PAYLOAD_MAX ((size_t)4096) /* longer results are looked up */
#define TIME_NONE BELAY_TIME_NONE

struct exec {
    const struct row *row; /* as read; NULL: it is being created */
    struct bytes id;
    struct belay_vector vector; /* as it shall be */
    struct belay_vector was;    /* as the row has it */
    int64_t
        due_ms; /* leased: the rank it shall have; TIME_NONE: as it is, or its end */
    struct value v[EXEC_COLUMNS]; /* as they shall be; the vector's own columns are
                                     exec_write's */
};

/* --- exec_rows.c --- */

/* `invalid`, reason execution_id. */
MUST_USE belay_rc exec_check_id(const char *id, struct belay_error *err);
/* `invalid`, reason worker. */
MUST_USE belay_rc exec_check_worker(const char *worker, struct belay_error *err);
/* Guarded.  not_found, entity the id; `corrupt`. */
MUST_USE belay_rc exec_get(struct txn *t, struct bytes id, struct exec *out);
/* Of a row that was read.  `corrupt` naming the column, when it holds what it cannot. */
MUST_USE belay_rc exec_of(struct txn *t, const struct row *row, struct exec *out);
/* A row whose member stands in an index and is not there: `corrupt`. */
belay_rc exec_missing(struct txn *t, struct bytes index, struct bytes member);

static inline int64_t exec_i64(const struct exec *e, unsigned column, int64_t otherwise)
{
    return e->v[column].kind == VALUE_I64 ? e->v[column].i : otherwise;
}

static inline struct bytes exec_bytes(const struct exec *e, unsigned column)
{
    return e->v[column].kind == VALUE_NULL ? bytes_of(NULL, 0) : e->v[column].b;
}

/* A number, or NULL for TIME_NONE. */
struct value exec_time(int64_t ms);

/* The step on e->vector; wrong_state with the refusal's reason. */
MUST_USE belay_rc exec_step(struct txn *t, struct exec *e, enum step s);

/* Writes what was changed: the row (inserted when e->row is NULL), its entries in the indexes
 * it stands in and stood in (its place, `lost`, `deadlines`; executions and tags are
 * exec_submit's and exec_purge's), updated_at_ms.  Wakes the lane when it becomes ready,
 * and `execution/<id>` when its state changes.  Afterwards e->row is NULL-like: get it again
 * to change it again.  (V1, W1) */
MUST_USE belay_rc exec_write(struct txn *t, struct exec *e, int64_t now_ms);

/* The index it stands in by its vector, grant, lane and route; in the arena. */
MUST_USE bool exec_index(const struct exec *e, struct belay_arena *a,
                         struct bytes *out);
/* created_at_ms - priority * step: the priority counts first, then the age */
#define EXEC_ORDER_STEP ((int64_t)1000000000000)
int64_t exec_order(int64_t created_at_ms, int64_t priority);

/* What is posted when an execution changes, or has a new frame; in the arena. */
MUST_USE bool exec_topic(struct bytes id, struct belay_arena *a, struct bytes *out);
#define EVENTS_TOPIC "events"
#define TIMERS_TOPIC "timers"
/* Whoever waits for work or time looks again after this, woken or not; what is due sooner
 * wakes them when it is written. */
#define EXEC_RELOOK_MS ((int64_t)5000)

/* --- holding --- */

/* Whether the handle's bearer holds it: BELAY_OK, or lease_lost with its reason (W2).  Only
 * reads; `epoch` as epoch_in gave it. */
MUST_USE belay_rc exec_hold(struct txn *t, const struct exec *e,
                            const struct exec_handle *h, int64_t epoch);
/* Whether the bearer was the last holder, and the lease ended: what it did then may be
 * what it asks for now (a repeated call). */
bool exec_was_last(const struct exec *e, const struct exec_handle *h);

/* The execution of a handle, held: epoch_in, exec_get, exec_hold in one round trip. */
MUST_USE belay_rc exec_open(struct txn *t, const struct exec_handle *h,
                            struct exec *out);

/* What a grant needs, drawn before the body. */
struct exec_ticket {
    char lease_id[LEASE_ID_HEX + 1];
    char attempt_id[ID_MAX];
};
struct exec_granting {
    const struct exec_site *site;
    struct lease_holder holder;
    int64_t now_ms, epoch, lease_ms;
    const struct row *spec;
    const struct exec_ticket *ticket;
};
/* Grants it: steps (claim, claim resumed or reclaim, as its vector says), counts, archives
 * the attempt before, leases.  The caller writes it and tells the event that is returned. */
MUST_USE belay_rc exec_grant_lease(struct txn *t, struct exec *e,
                                   const struct exec_granting *g, int *out_event);
/* As the claimer gets it, in the arena; payloads in blobs are left out (len 0, blob set). */
MUST_USE belay_rc exec_work_of(struct txn *t, const struct exec *e,
                               const struct exec_granting *g, struct belay_work *out,
                               struct bytes *out_blob);

/* The tags of a spec row, in the arena, sorted by key; `corrupt`. */
MUST_USE belay_rc exec_tags_of(struct txn *t, const struct row *spec,
                               const struct belay_tag **out, size_t *out_n);
/* Its trace context, in `a`; NULL where there is none.  `corrupt`. */
MUST_USE belay_rc exec_trace_of(struct txn *t, const struct row *spec,
                                struct belay_arena *a, const char **out_parent,
                                const char **out_state);

/* --- exec_policy.c --- */

/* What is frozen at submission, as JSON and back:
 * {"max_reclaims":n,"attempt_timeout_ms":n,"deadline_ms":n,"retention_ms":n,
 *  "retry":{"max_retries":n,"backoff":{"type":"fixed","delay_ms":n} or
 *  {"type":"exponential","initial_delay_ms":n,"max_delay_ms":n,"multiplier":r,
 *  "jitter":b},"retryable":[...]}}; what is usual is left out. */
struct exec_policy {
    struct retry_policy retry;
    int64_t attempt_timeout_ms, deadline_ms; /* 0: none */
    int64_t max_reclaims;
};
/* How long it is kept once it has ended. */
int64_t exec_policy_retention(const struct belay_submission *s);
MUST_USE belay_rc exec_policy_write(const struct belay_submission *s,
                                    struct belay_arena *a, struct bytes *out,
                                    struct belay_error *err);
/* Of a spec row.  `corrupt`. */
MUST_USE belay_rc exec_policy_read(struct txn *t, const struct row *spec,
                                   struct exec_policy *out);

/* --- exec_event.c --- */

/* Events of one run of a body: appended to the feed as one entry (of at most 256 KiB;
 * more when there is more) by event_flush, at the end. */
struct event_list {
    struct buf text;
    struct txn *t;
    size_t n;
};
struct event_facts {
    enum belay_event_type type;
    int64_t at_ms, fence;
    enum belay_terminal outcome; /* of a completion */
    struct bytes worker, reason;
    struct bytes result; /* of a completion, however long; ptr NULL: none */
    bool result_is_json;
};
void event_list_init(struct event_list *l, struct txn *t);
void event_list_release(struct event_list *l);
/* {"type","execution","lane","at","outcome"?,"fence"?,"worker"?,"reason"?,"flow"?,
 * "payload"? (JSON as text, so that its depth does not matter) or "payload_base64"?,
 * "payload_apart"? true} */
MUST_USE belay_rc event_add(struct event_list *l, const struct exec *e,
                            const struct event_facts *f);
MUST_USE belay_rc event_flush(struct event_list *l);

/* --- exec_finish.c --- */

/* How an attempt, or an execution, ends. */
struct exec_ending {
    enum step
        step; /* STEP_COMPLETE, _FAIL, _RETRY, _CANCEL, _EXPIRE, _RECLAIM_CAPPED */
    int64_t now_ms, delay_until_ms;
    struct bytes result; /* ptr NULL: none */
    struct bytes result_blob;
    bool result_is_json;
    int32_t failure_class;
    struct bytes message, detail, cancel_reason, cancel_source;
    struct bytes
        reason; /* blocking detail: execution_deadline, max_reclaims_exceeded ... */
};
/* Steps, writes the row and the end row, archives the attempt where another follows, tells
 * the event, and (W4) enqueues to the session when the execution ends.  Reads the end row
 * only when it has something to put there; a body that ends many loads them first. */
MUST_USE belay_rc exec_finish(struct txn *t, struct exec *e,
                              const struct exec_ending *how, struct event_list *events);

/* {"attempts","execution","failure"?,"failure_class"?,"lane","outcome","produced_at_ms",
 * "result"? or "result_base64"? or "result_len"?: how an execution ended, in canonical form
 * but for the closing brace.  A result that is longer than EVENT_PAYLOAD_MAX, or nested so
 * deeply that nothing can be around it, is told by its length alone. */
void exec_end_facts(struct buf *out, const struct exec *e,
                    const struct exec_ending *how);

/* A failure by its class and the policy: STEP_RETRY with the time, or STEP_FAIL; `random`
 * for the jitter. */
MUST_USE belay_rc exec_judge_failure(struct txn *t, const struct exec *e,
                                     const struct row *spec, uint64_t random,
                                     struct exec_ending *io);

/* The last attempt as a row (W3), when it is certain that another one follows it: at a retry,
 * at a replay, and when a lost one is taken over.  So the attempts of an execution are the
 * rows 0..attempts-1, but for the last one as long as that has none: it is in the
 * execution's own row. */
MUST_USE belay_rc exec_archive(struct txn *t, const struct exec *e,
                               enum belay_attempt_end end, int64_t now_ms,
                               const char *closed_reason, int32_t failure_class,
                               struct bytes message);
/* Why the frames of an attempt that ended so are closed. */
const char *exec_closed_reason(const struct exec *e);

/* Deletes all rows, logs and entries of a terminal one, in a bounded step; *out_left: there is
 * more (frames).  */
MUST_USE belay_rc exec_purge(struct txn *t, struct exec *e, const struct row *spec,
                             bool *out_left);

/* --- exec_due.c --- */

struct due_count {
    int64_t promoted, expired_leases, timed_out, expired, purged, capped, ungranted;
    int64_t put_off; /* leases that were looked at too early: their rank was moved */
};
/* How many of those that were looked at are not as they were. */
static inline int64_t due_moved(const struct due_count *n)
{
    return n->promoted + n->expired_leases + n->timed_out + n->expired + n->purged +
           n->capped + n->ungranted + n->put_off;
}
/* Does to one what its time asks for, or moves it to when that is.  `corrupt` rows are left
 * where they are.  random: for jitter. */
MUST_USE belay_rc exec_due(struct txn *t, const struct exec_site *site,
                           const struct row *row, const struct row *spec,
                           int64_t now_ms, uint64_t random, struct event_list *events,
                           struct due_count *count);

/* An execution whose holder was proved dead: what is due of it, else its lease is lost now
 * (transition T18, without waiting for its end and the grace).  Nothing happens unless the
 * lease is still the one that the evidence is about. */
#define HOLDER_DEAD "holder_dead" /* reason of the `expired` event then */
struct exec_bereaved {
    const struct row *row; /* guarded; NULL: it is gone */
    const struct row *spec;
    struct bytes lease_id; /* of the grant to whoever died */
};
MUST_USE belay_rc exec_bereave(struct txn *t, const struct exec_site *site,
                               const struct exec_bereaved *b, int64_t now_ms,
                               uint64_t random, struct event_list *events,
                               struct due_count *count);

/* The earliest time at which something becomes due by itself, after now; TIME_NONE. */
MUST_USE belay_rc exec_next_due(struct txn *t, int64_t now_ms, int64_t *out_ms);

/* Waits until it is woken, next_ms (TIME_NONE: none) or the deadline has come, or
 * EXEC_RELOOK_MS have passed.  `cancelled`. */
#define NO_DEADLINE_US INT64_MAX
MUST_USE belay_rc exec_rest(struct space *sp, struct listener *l, int64_t next_ms,
                            int64_t deadline_us, struct belay_error *err);

#endif /* WORK_EXECUTION_ROWS_H */
