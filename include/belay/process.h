/* process.h - long-running processes: what they are, what happened to them, who may see
 * them, who runs them.
 *
 * A process is registered once, under an id of the caller's, with the types of events it
 * may have.  Its events are a log without gaps (E1); an event of a terminal type ends it,
 * in the same commit (E3).  An event of a waking type puts a batch into the inbox of the
 * session it is for, in the same commit: it is neither lost nor doubled by a crash.  A
 * worker holds a process by a lease; what it writes under the lease is refused once
 * somebody else holds it (L4).
 *
 * Ids of processes, sessions, frames and owners: 1 to 255 bytes of UTF-8 without control
 * characters.  Names of event types likewise, replay keys to 1024.  JSON texts: 1 MiB each.
 * Structs that a caller fills begin with their size; strings of a result end with a NUL;
 * optional ones are NULL where absent.
 *
 * Stable: everything below.  Structs that begin with their size may get members at their
 * end.
 */
#ifndef BELAY_PROCESS_H
#define BELAY_PROCESS_H

#include <stddef.h>

#include <belay/open.h>
#include <belay/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A session, or one agent frame of it.  They are two different scopes: what is granted to
 * a frame is not granted to its session. */
struct belay_scope {
    const char *session_id;
    const char *frame_id; /* NULL: the session itself */
};

enum belay_process_status {
    BELAY_PROCESS_ANY = 0, /* in a filter; no process has it */
    BELAY_PROCESS_RUNNING = 1,
    BELAY_PROCESS_COMPLETED = 2,
    BELAY_PROCESS_FAILED = 3,
    BELAY_PROCESS_CANCELLED = 4,
};

/* "running", "completed", "failed", "cancelled"; NULL for a number that is none. */
BELAY_API const char *belay_process_status_name(int status);

/* Kept for this long after its end, unless the registration says otherwise. */
#define BELAY_PROCESS_RETENTION_MS ((int64_t)7 * 24 * 60 * 60 * 1000)

/* --- registering --- */

struct belay_registration {
    uint32_t size; /* sizeof(struct belay_registration) */
    uint32_t reserved;
    const char *process_id;
    const char *input;           /* JSON object with a `type`; NULL: an external one */
    const char *event_types;     /* JSON array of {"name","payload_schema":{"schema"},
                                "semantics":{"terminal"?,"wake"?}}; the core types that
                                it lacks are added; NULL: those alone */
    struct belay_scope owner;    /* session_id NULL: "root" */
    const char *host_profile_id; /* NULL: "default" */
    const char *caused_by;       /* JSON; NULL: nothing */
    int64_t
        retention_ms; /* after its end; 0: the usual.  No part of what is compared */
};

/* A process as it is now. */
struct belay_process {
    const char *process_id;
    const char *registration_hash; /* 64 hex digits, of the canonical registration */
    const char *kind;              /* the type of its input */
    const char *input;             /* canonical JSON */
    const char *event_types;       /* canonical JSON array, the core types included */
    struct belay_scope owner;
    const char *host_profile_id;
    const char *caused_by;    /* JSON, or NULL */
    const char *external_ref; /* {"backend","id","metadata"?}, or NULL */
    const char *await_output; /* of one that has ended: JSON */
    int32_t status;           /* enum belay_process_status */
    int32_t reserved;
    int64_t last_sequence; /* of its events; 0: there is none */
    int64_t created_at_ms, updated_at_ms;
    int64_t finished_at_ms, purge_at_ms; /* BELAY_TIME_NONE while it runs */

    /* Who holds it, or NULL.  Past due and not taken over it is still held. */
    const char *lease_owner;
    int64_t fence; /* of the last grant; 0: never granted */
    int64_t lease_claimed_at_ms, lease_expires_at_ms;
};

struct belay_registered {
    const struct belay_process *process;
    bool created; /* false: it was there, with the same registration */
};

/* Registers a process.  Known with the same hash: the answer is the process as it is now.
 *
 *   registration_conflict  known with another hash; the message names both
 *   invalid                reasons process_id, input, event_types, owner, host_profile_id,
 *                          caused_by, retention, too_large
 *   wrong_state            reason deleting: the one before is being removed */
BELAY_API BELAY_MUST_USE belay_rc belay_process_register(
    struct belay *b, const struct belay_registration *registration,
    struct belay_arena *arena, struct belay_registered *out, struct belay_error *err);

/* The process as it is.  not_found, entity the id, as of every call that names one. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_get(struct belay *b,
                                                    const char *process_id,
                                                    struct belay_arena *arena,
                                                    const struct belay_process **out,
                                                    struct belay_error *err);

struct belay_process_page {
    uint32_t size;             /* sizeof(struct belay_process_page) */
    int32_t status;            /* enum belay_process_status */
    const char *owner_session; /* NULL: anybody's */
    const char *kind;          /* of the input; NULL: any */
    const char *host_profile_id;
    int64_t created_from_ms, created_to_ms; /* inclusive; 0: open */
    const char *cursor;                     /* NULL: from the beginning */
    size_t limit;                           /* 1 to 1000; 0: 100 */
};

struct belay_processes {
    const struct belay_process *items; /* without input and event_types */
    size_t n;
    const char *next_cursor; /* NULL: there is no more */
};

/* Running ones are ordered by id, ended ones by when they are purged, all of them (or of
 * one owner) by when they were registered. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_list(
    struct belay *b, const struct belay_process_page *page, struct belay_arena *arena,
    struct belay_processes *out, struct belay_error *err);

/* --- leases --- */

#define BELAY_PROCESS_LEASE_MS ((int64_t)15 * 60 * 1000) /* the usual one */

/* Who holds, so that others can find out whether that is still alive; all may be empty. */
struct belay_incarnation {
    uint32_t size; /* sizeof(struct belay_incarnation) */
    uint32_t reserved;
    const char *host_id, *boot_id, *fleet_member;
    int64_t pid, process_start; /* 0: not known */
};

/* A lease, as it is granted: the proof of holding. */
struct belay_process_lease {
    const char *process_id;
    const char *owner_id;
    const char *lease_token; /* 64 hex digits: the seed's hash of public facts */
    const char *lease_id;    /* 32 hex digits, random: what a stranger cannot know */
    int64_t fence;
    int64_t claimed_at_ms, expires_at_ms;
};

/* Grants the process to its owner for lease_ms (0 is legal: past due at once; `invalid`,
 * reason lease, above a day), with a greater fence than ever before.  Whoever owns it
 * already gets a new lease, and the one before is dead.  Ended processes can be leased.
 *
 *   lease_held  somebody else holds it, and is not past due: entity the owner, expected
 *               is when that ends */
BELAY_API BELAY_MUST_USE belay_rc belay_process_lease(
    struct belay *b, const char *process_id, const char *owner_id, int64_t lease_ms,
    const struct belay_incarnation *incarnation, struct belay_arena *arena,
    const struct belay_process_lease **out, struct belay_error *err);

/* Moves its end to now + lease_ms, never nearer (L6).  Unlike other leases one that is past
 * due is not renewed: lease_lost, reason expired.  Others: superseded, released, epoch. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_renew(
    struct belay *b, const struct belay_process_lease *lease, int64_t lease_ms,
    int64_t *out_expires_at_ms, struct belay_error *err);

/* Gives it back; its fence stays.  One that holds nothing any more is no error and changes
 * nothing: *out_released (may be NULL) tells. */
BELAY_API BELAY_MUST_USE belay_rc
belay_process_release(struct belay *b, const struct belay_process_lease *lease,
                      bool *out_released, struct belay_error *err);

/* A lease as one printable string, and back: enough of it to prove holding.  bad_handle. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_lease_text(
    const struct belay_process_lease *lease, struct belay_arena *arena,
    const char **out, struct belay_error *err);
BELAY_API BELAY_MUST_USE belay_rc belay_process_lease_parse(
    const char *text, struct belay_arena *arena, const struct belay_process_lease **out,
    struct belay_error *err);

/* --- events --- */

/* By whose authority a process ends that ends without a lease. */
enum belay_authority {
    BELAY_AUTHORITY_NONE = 0,
    BELAY_AUTHORITY_OWNER = 1, /* who registered it: lease_held while somebody has it */
    BELAY_AUTHORITY_EXTERNAL =
        2, /* the system that runs it: its input is external, or it
                                     has an external ref; lease_held likewise */
    BELAY_AUTHORITY_OPERATOR = 3,  /* whoever may do anything */
    BELAY_AUTHORITY_EXECUTION = 4, /* an execution of the process, whose end its type
                                      declares so: in answers, not for callers */
};

/* "owner", "external", "operator", "execution"; NULL for any other number. */
BELAY_API const char *belay_authority_name(int authority);

struct belay_event_draft {
    uint32_t size;     /* sizeof(struct belay_event_draft) */
    int32_t authority; /* enum belay_authority; for terminal types without a lease */
    const char *process_id;
    const char *event_type;
    const char *payload; /* JSON */
    const char
        *replay_key; /* NULL: none.  The same key and content again is answered with
                               the first event */
    struct belay_scope wake_target;          /* session_id NULL: none */
    const struct belay_process_lease *lease; /* NULL: none; else it must be held */
};

/* What became of a wake. */
enum belay_wake_state {
    BELAY_WAKE_QUEUED = 1,       /* its batch is in the inbox, or held from there */
    BELAY_WAKE_CONSUMED = 2,     /* its batch was completed */
    BELAY_WAKE_ACKNOWLEDGED = 3, /* belay_process_ack */
    BELAY_WAKE_CANCELLED = 4,    /* its batch was taken out of the inbox */
    BELAY_WAKE_DUPLICATE = 5,    /* the same wake was there, or had been consumed */
    BELAY_WAKE_TARGET_GONE = 6,  /* the session was deleted */
};

/* "queued", "consumed", "acknowledged", "cancelled", "duplicate", "target_gone". */
BELAY_API const char *belay_wake_state_name(int state);

struct belay_wake {
    const char *wake_id; /* "wake:" and 64 hex digits: of target and dedupe key */
    struct belay_scope target;
    const char *process_id;
    int64_t sequence;
    const char *event_type;
    const char *dedupe_key;
    const char *input;             /* text */
    const char *process_caused_by; /* JSON, or NULL */
    int64_t created_at_ms;
    int32_t state; /* enum belay_wake_state */
    int32_t reserved;
    int64_t enqueue_seq;   /* of its batch; 0: it has none */
    int64_t settled_at_ms; /* when it left `queued`; BELAY_TIME_NONE */
};

struct belay_process_event {
    const char *process_id;
    int64_t sequence; /* from 1, without gaps */
    const char *event_type;
    const char *payload; /* canonical JSON */
    size_t payload_len;
    const char *payload_hash; /* of type and payload */
    const char *replay_key;
    const char *owner_session; /* whose it is: the scope of the invocation */
    int64_t occurred_at_ms;
    int32_t terminal;              /* the status it gave; 0: none */
    int32_t authority;             /* of a terminal one without a lease */
    int64_t fence;                 /* of the lease it was written under; 0: none */
    const struct belay_wake *wake; /* NULL: it wakes nobody */
};

struct belay_appended {
    const struct belay_process_event *event;
    bool replayed; /* it was there: nothing was appended */
};

/* Appends an event, and does what its type declares, in one commit.
 *
 * In this order: not_found; replay_conflict (the key was used for another type or
 * payload); lease_lost; `invalid`, reasons undeclared (the type), replay_key (terminal
 * types and process.cancel_requested need one), payload (it is not what the schema says),
 * pointer (it selects nothing), await_output (it does not agree with the state);
 * wrong_state, reason terminal (it has ended already); `invalid`, reason wake_target (it
 * wakes, and nobody is named) or authority (a terminal type, and neither lease nor
 * authority; or an authority that this process does not know); lease_held. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_append(
    struct belay *b, const struct belay_event_draft *draft, struct belay_arena *arena,
    struct belay_appended *out, struct belay_error *err);

struct belay_process_end {
    uint32_t size;     /* sizeof(struct belay_process_end) */
    int32_t authority; /* enum belay_authority; without a lease */
    const char *process_id;
    const char *await_output; /* JSON, `type` success, failure or cancelled */
    const struct belay_process_lease *lease; /* NULL: by authority */
    struct belay_scope wake_target; /* where the declared type wakes; NULL: none */
};

struct belay_completed {
    const struct belay_process *process;
    bool replayed; /* it had ended so before */
};

/* Appends process.completed, process.failed or process.cancelled as the output says, under
 * the key process:<id>:terminal:<type>.  A lease is checked, and ended, in the same
 * commit.  The same output again is the same answer; another one is replay_conflict (same
 * kind) or wrong_state, reason terminal. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_complete(
    struct belay *b, const struct belay_process_end *end, struct belay_arena *arena,
    struct belay_completed *out, struct belay_error *err);

/* Asks a process to end: appends process.cancel_requested, once for each reason (NULL: none
 * is given).  It only records the wish; whoever runs the process watches for it. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_cancel(
    struct belay *b, const char *process_id, const char *reason,
    struct belay_arena *arena, struct belay_appended *out, struct belay_error *err);

/* Where it runs elsewhere: {"backend","id","metadata"?}, replacing what was there.  lease
 * may be NULL. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_set_external_ref(
    struct belay *b, const char *process_id, const char *external_ref,
    const struct belay_process_lease *lease, struct belay_arena *arena,
    const struct belay_process **out, struct belay_error *err);

/* --- reading and waiting --- */

struct belay_process_event_request {
    uint32_t size;   /* sizeof(struct belay_process_event_request) */
    bool wakes_only; /* those whose wake is not settled yet */
    const char *process_id;
    const char *event_type; /* NULL: any */
    int64_t after;          /* sequence, exclusive; 0: from the first */
    int64_t tail;           /* > 0: from the last so many on, instead of `after` */
    size_t limit;           /* 1 to 1000; 0: 100 */
    int64_t wait_ms;        /* how long to wait while there is none; 0: not at all */
    struct belay_cancel *cancel;
};

struct belay_process_events {
    const struct belay_process_event *items; /* ascending */
    size_t n;
    int64_t last_sequence; /* of the process when it was looked at */
    int64_t next_after;    /* to go on with: nothing between is missing */
    int32_t status;        /* of the process, likewise */
    int32_t reserved;
};

/* None, even after waiting, is an answer and no error. */
BELAY_API BELAY_MUST_USE belay_rc
belay_process_events(struct belay *b, const struct belay_process_event_request *request,
                     struct belay_arena *arena, struct belay_process_events *out,
                     struct belay_error *err);

/* The first event of request->event_type after request->after; `timeout` when there is none
 * after wait_ms.  The end of the process does not end it.  limit does not matter. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_wait_event(
    struct belay *b, const struct belay_process_event_request *request,
    struct belay_arena *arena, const struct belay_process_event **out,
    struct belay_error *err);

/* The process once it has ended, with its await_output; `timeout` when it has not after
 * wait_ms. */
BELAY_API BELAY_MUST_USE belay_rc
belay_process_await(struct belay *b, const char *process_id, int64_t wait_ms,
                    struct belay_cancel *cancel, struct belay_arena *arena,
                    const struct belay_process **out, struct belay_error *err);

/* --- wakes --- */

struct belay_wake_page {
    uint32_t size; /* sizeof(struct belay_wake_page) */
    bool all;      /* also those that are settled */
    const char *process_id;
    int64_t after; /* sequence, exclusive */
    size_t limit;  /* 1 to 1000; 0: 100 */
};

struct belay_wakes {
    const struct belay_wake *items; /* ascending sequence */
    size_t n;
    int64_t next_after; /* to go on with; 0: there is no more */
};

BELAY_API BELAY_MUST_USE belay_rc belay_process_wakes(
    struct belay *b, const struct belay_wake_page *page, struct belay_arena *arena,
    struct belay_wakes *out, struct belay_error *err);

/* Settles a wake that is queued; its batch leaves the inbox unless somebody is working on
 * it.  Anything else is no error: *out_settled (may be NULL) tells. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_ack(struct belay *b,
                                                    const char *process_id,
                                                    int64_t sequence, bool *out_settled,
                                                    struct belay_error *err);

/* --- handle grants: who may address a process --- */

struct belay_process_grant {
    struct belay_scope scope;
    const char *process_id;
    const char *kind, *label; /* its descriptor; NULL: none */
    int32_t status;           /* of the process */
    int32_t reserved;
    int64_t granted_at_ms;
};

/* Grants it, or replaces the descriptor (kind and label, NULL or 1 to 255 bytes). */
BELAY_API BELAY_MUST_USE belay_rc belay_process_grant(
    struct belay *b, const struct belay_scope *scope, const char *process_id,
    const char *kind, const char *label, struct belay_error *err);

/* Missing is fine, grant or process: *out_revoked (may be NULL) tells. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_revoke(struct belay *b,
                                                       const struct belay_scope *scope,
                                                       const char *process_id,
                                                       bool *out_revoked,
                                                       struct belay_error *err);

/* Moves the grants of n processes (1 to 1000) with their descriptors; all must be granted
 * to `from`, else not_found and nothing moves. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_transfer(
    struct belay *b, const struct belay_scope *from, const struct belay_scope *to,
    const char *const *process_ids, size_t n, struct belay_error *err);

BELAY_API BELAY_MUST_USE belay_rc
belay_process_has_grant(struct belay *b, const struct belay_scope *scope,
                        const char *process_id, bool *out, struct belay_error *err);

struct belay_grant_page {
    uint32_t size;            /* sizeof(struct belay_grant_page) */
    bool live;                /* of running processes alone */
    struct belay_scope scope; /* whose; or ... */
    const char *process_id;   /* ... of which process: not_found; one of them is NULL */
    const char *cursor;       /* NULL: from the beginning */
    size_t limit;             /* 1 to 1000; 0: 100 */
};

struct belay_process_grants {
    const struct belay_process_grant
        *items; /* of a scope: by process id; of a process: by
                                                session, then frame */
    size_t n;
    const char *next_cursor; /* NULL: there is no more */
};

BELAY_API BELAY_MUST_USE belay_rc belay_process_grants(
    struct belay *b, const struct belay_grant_page *page, struct belay_arena *arena,
    struct belay_process_grants *out, struct belay_error *err);

struct belay_forget_report {
    const char *session_id;
    int64_t revoked;               /* grants, not processes */
    const char *const *cancel_ids; /* running, and granted to nobody any more; sorted */
    size_t n_cancel;
    const char *const *preserved_ids; /* running, and granted to others; sorted */
    size_t n_preserved;
    bool cancel_requested; /* of all of cancel_ids, in the same commit */
};

/* Revokes every grant of a session and of all its frames, in one commit.  With `cancel` the
 * processes that nobody else has are asked to end in the same commit, for this reason
 * (NULL: a usual one); without, the caller does what the list says. */
BELAY_API BELAY_MUST_USE belay_rc
belay_process_forget_session(struct belay *b, const char *session_id, bool cancel,
                             const char *reason, struct belay_arena *arena,
                             struct belay_forget_report *out, struct belay_error *err);

/* --- what changes --- */

enum belay_process_change_kind {
    BELAY_CHANGE_REGISTERED = 1,
    BELAY_CHANGE_EXTERNAL_REF = 2,
    BELAY_CHANGE_CANCEL_REQUESTED = 3,
    BELAY_CHANGE_ENDED = 4,
    BELAY_CHANGE_DELETED = 5,
    BELAY_CHANGE_EVENT_REFUSED =
        6, /* an execution's event could not be appended: detail */
};

/* "registered", "external_ref", "cancel_requested", "ended", "deleted", "event_refused". */
BELAY_API const char *belay_process_change_name(int kind);

struct belay_process_change {
    const char *cursor; /* behind it */
    const char *process_id;
    const char *registration_hash;
    const char *detail; /* NULL: none */
    int32_t kind;       /* enum belay_process_change_kind */
    int32_t status;     /* of the process then */
    int64_t at_ms;
    int64_t sequence; /* of its last event then */
};

struct belay_change_request {
    uint32_t size; /* sizeof(struct belay_change_request) */
    uint32_t reserved;
    const char *after; /* a cursor; NULL: from the first that is kept */
    size_t limit;      /* 1 to 1000; 0: 100 */
    int64_t wait_ms;   /* how long to wait while there is none */
    struct belay_cancel *cancel;
};

struct belay_process_changes {
    const struct belay_process_change *items; /* in the order of their commits */
    size_t n;
    const char *cursor; /* to go on with */
    bool trimmed;       /* what came right after `after` is not kept any more */
};

/* Every change of a process's record and every deletion, in order, none missing.  An event
 * that changes nothing but the log is in that alone. */
BELAY_API BELAY_MUST_USE belay_rc
belay_process_changed_since(struct belay *b, const struct belay_change_request *request,
                            struct belay_arena *arena,
                            struct belay_process_changes *out, struct belay_error *err);

/* --- removing --- */

/* Removes a process that has ended, with its events, grants and wakes; wakes that are in an
 * inbox stay there.  force: also one that runs, or is held.  wrong_state, reason running;
 * lease_held.  The fences of whoever has its id next are greater than all of its own. */
BELAY_API BELAY_MUST_USE belay_rc belay_process_delete(struct belay *b,
                                                       const char *process_id,
                                                       bool force,
                                                       struct belay_error *err);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_PROCESS_H */
