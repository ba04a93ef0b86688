/* process_event.h - events: as the log has them, and what appending one does.
 *
 * An entry of the log is one line of JSON, a newline, and the payload as it is:
 *
 *   {"at":ms,"type":t,"hash":h,"key"?:k,"fence"?:n,"authority"?:a,"terminal"?:status,
 *    "wake"?:{"id","session","frame"?,"dedupe","input"},"apart"?:true}
 *
 * so that reading an event parses nothing of its payload.  A payload of more than
 * EVENT_INLINE_MAX bytes is `apart`, in a row of its own.
 */
#ifndef WORK_PROCESS_EVENT_H
#define WORK_PROCESS_EVENT_H

#include <jansson.h>

#include "work/process_rows.h"

/* A wake that an event makes; bytes are somebody else's. */
struct event_wake {
    struct bytes id, session, frame, dedupe, input; /* frame.ptr NULL: none */
};

/* An event, written or about to be. */
struct proc_event {
    struct bytes type, hash, key; /* key.ptr NULL: none */
    struct bytes payload;         /* canonical */
    int64_t seq, at_ms, fence;
    int authority, terminal; /* 0: none */
    bool wakes, apart;
    struct event_wake wake;
};

/* --- process_entry.c --- */

/* The log of a process, in the arena; false: no memory. */
MUST_USE bool event_stream(struct bytes process, struct belay_arena *a,
                           struct bytes *out);
/* As an entry, behind what is in `out`; its payload too, unless it is apart. */
void event_encode(const struct proc_event *e, struct buf *out);
/* And back; what it has is in the arena, but for the payload, which is the entry's (or
 * empty, where it is apart).  `corrupt`. */
MUST_USE belay_rc event_decode(struct txn *t, struct bytes process,
                               const struct log_entry *entry, struct proc_event *out);

/* Whose it is, for the answer. */
struct event_facts_of {
    struct bytes process, owner_session;
    struct bytes caused_by; /* of the process; ptr NULL: nothing */
};
/* As the caller sees it, in the arena.  wake_row: its row, or NULL. */
MUST_USE belay_rc event_show(struct txn *t, const struct event_facts_of *of,
                             const struct proc_event *e, const struct row *wake_row,
                             struct belay_arena *a, struct belay_process_event *out);
/* What is kept beside events, in one round trip: payloads that are apart are put into the
 * events, rows of wakes into `wakes` (n of them; NULL: none).  `corrupt`. */
MUST_USE belay_rc event_fetch(struct txn *t, struct bytes process,
                              struct proc_event *events, size_t n,
                              const struct row **wakes);

/* --- process_wake.c --- */

/* In the body that appends the event: puts the wake into its target's inbox, or finds that
 * it was there, or that the target is gone, and keeps what became of it (P3). */
MUST_USE belay_rc wake_deliver(struct txn *t, const struct event_facts_of *of,
                               const struct proc_event *e);

/* In the body that takes a batch out of an inbox: its wake, if it is one, is settled so
 * (P4). */
MUST_USE belay_rc wake_settle(struct txn *t, const struct row *batch,
                              enum belay_wake_state state);

/* In the body that removes a process: its wake goes, and its batch, if it is in an inbox,
 * is that of no event any more. */
MUST_USE belay_rc wake_forget(struct txn *t, struct bytes process, int64_t seq);

/* A wake as its caller sees it, in the arena; e: the event it belongs to.  `corrupt`. */
MUST_USE belay_rc wake_show(struct txn *t, const struct event_facts_of *of,
                            const struct proc_event *e, const struct row *row,
                            struct belay_arena *a, const struct belay_wake **out);

/* process:<id>:event:<seq>:wake, in the arena. */
MUST_USE bool wake_source_key(struct bytes process, int64_t seq, struct belay_arena *a,
                              struct bytes *out);

#endif /* WORK_PROCESS_EVENT_H */
