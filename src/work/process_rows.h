/* process_rows.h - the rows of processes, for the files of the noun.
 *
 *   process_rows.c   reading a process, changing it, where it stands; the feed
 *   process_book.c   registrations, read once
 *   process_entry.c  an event as the log has it
 *   process_apply.c  what appending an event does, the same for everybody
 *   process_wake.c   wakes: delivering, settling, listing
 *   process_show.c   a process as its caller sees it
 *
 * A body copies the row, edits the copy and writes the difference:
 *
 *     struct proc p;
 *     rc = proc_get(t, id, &p);                        // guarded
 *     p.v[PROCESS_UPDATED_AT_MS] = value_i64(now);     // edit
 *     rc = proc_write(t, &p);                          // row and places (P1)
 */
#ifndef WORK_PROCESS_ROWS_H
#define WORK_PROCESS_ROWS_H

#include "policy/process_event.h"
#include "policy/registration.h"
#include "work/process.h"

#define PROCESS_JSON_MAX ((size_t)1 << 20)
#define EVENT_INLINE_MAX ((size_t)8192) /* longer payloads have a row of their own */
#define EXECUTION_EVENT_TYPE "execution.completed"
#define CHANGES_TOPIC "processes"

/* An id of the caller's: `invalid`, with this reason. */
MUST_USE belay_rc proc_check_id(const char *id, const char *reason,
                                struct belay_error *err);
/* Its session is an id, its frame is none or one; `invalid`, with this reason. */
MUST_USE belay_rc proc_check_scope(const struct belay_scope *scope, const char *reason,
                                   struct belay_error *err);

/* prefix + name, in the arena; false: no memory. */
MUST_USE bool proc_name(const char *prefix, struct bytes name, struct belay_arena *a,
                        struct bytes *out);
/* What is posted when a process has a new event, or changes. */
MUST_USE bool proc_topic(struct bytes id, struct belay_arena *a, struct bytes *out);

/* The status of a word of PROCESS_STATUS; -1: none. */
int proc_status_of(struct bytes word);
/* Of the rules' states, and back; of one that is not deleting. */
static inline int proc_status(enum process_state state)
{
    return (int)state + BELAY_PROCESS_RUNNING;
}
static inline enum process_state proc_state(int status)
{
    return (enum process_state)(status - BELAY_PROCESS_RUNNING);
}

/* A scope as the rules have it. */
struct scope proc_scope(const struct belay_scope *scope);

/* One JSON text of a caller's.  `invalid`, with this reason. */
MUST_USE belay_rc proc_read_json(const char *text, const char *reason, json_t **out,
                                 struct belay_error *err);

/* --- a process --- */

struct proc {
    const struct row *row; /* as read */
    struct bytes id, hash;
    int status; /* enum belay_process_status, or PROC_DELETING */
    int64_t last_seq;
    struct lease lease;
    struct value v[PROCESS_COLUMNS]; /* as they shall be */
};
#define PROC_DELETING 0

static inline int64_t proc_i64(const struct proc *p, unsigned column, int64_t otherwise)
{
    return p->v[column].kind == VALUE_I64 ? p->v[column].i : otherwise;
}

/* not_found, entity the id. */
belay_rc proc_unknown(struct txn *t, struct bytes id);
/* `corrupt`, naming the column. */
belay_rc proc_corrupt(struct txn *t, const struct row *row, unsigned column);
/* Of a row that was read, also of one that is being deleted.  `corrupt`. */
MUST_USE belay_rc proc_of(struct txn *t, const struct row *row, struct proc *out);
/* Guarded.  not_found, also of one that is being deleted. */
MUST_USE belay_rc proc_get(struct txn *t, struct bytes id, struct proc *out);
/* Likewise of what another call has read; row may be NULL. */
MUST_USE belay_rc proc_found(struct txn *t, struct bytes id, const struct row *row,
                             struct proc *out);

/* Where one of this status stands beside `processes`; in the arena. */
MUST_USE bool proc_status_index(struct bytes status, struct belay_arena *a,
                                struct bytes *out);
/* Writes what was changed, and moves it where its status says. */
MUST_USE belay_rc proc_write(struct txn *t, struct proc *p);

/* Whether the lease is held: lease_lost with its reason (L4).  The epoch as epoch_in gave
 * it. */
MUST_USE belay_rc proc_hold(struct txn *t, const struct proc *p,
                            const struct belay_process_lease *lease, int64_t epoch);
belay_rc proc_lease_lost(struct txn *t, struct bytes id, const char *reason);
/* Somebody else holds it and is not past due: lease_held. */
MUST_USE belay_rc proc_unheld(struct txn *t, const struct proc *p, int64_t now_ms);

/* Tells the feed what has changed, of the process as it shall be. */
MUST_USE belay_rc proc_tell(struct txn *t, const struct proc *p, int kind,
                            int64_t now_ms, struct bytes detail);

/* --- process_show.c --- */

/* The rows beside it; NULL: there is none, or it is not asked for. */
struct proc_parts {
    const struct row *spec, *ref, *end;
};
/* As its caller sees it, in the arena.  `whole`: with input and event types. */
MUST_USE belay_rc proc_decode(struct txn *t, const struct proc *p,
                              const struct proc_parts *parts, bool whole,
                              struct belay_arena *a, struct belay_process *out);
/* The process with all that is beside it, as it is after what this body wrote. */
MUST_USE belay_rc proc_describe(struct txn *t, struct bytes id, struct belay_arena *a,
                                const struct belay_process **out);

#endif /* WORK_PROCESS_ROWS_H */
