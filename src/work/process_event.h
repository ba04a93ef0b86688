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

#include "work/process_book.h"

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

/* The same outside of bodies, without its sequence; `corrupt` without a message. */
MUST_USE belay_rc event_read(struct bytes data, struct belay_arena *a,
                             struct proc_event *out, struct belay_error *err);

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

/* --- process_apply.c --- */

/* What shall be appended, made ready before the body. */
struct proc_draft {
    struct bytes process, type, key; /* key.ptr NULL: none */
    const json_t *payload;
    struct bytes payload_text; /* canonical */
    struct scope target;
    bool has_target;
    const struct belay_process_lease *lease; /* NULL: none */
    int authority;                           /* enum belay_authority */
    const struct proc_reg *reg;

    /* Judged as far as that depends on nothing but the registration. */
    char hash[SHA256_HEX_LEN + 1];
    bool plain;       /* it means nothing but itself */
    belay_rc refused; /* BELAY_OK: it is not, or that depends */
    struct belay_error why;
};
/* Fills in the judgement.  Fails only for want of memory and the like. */
MUST_USE belay_rc draft_judge(struct proc_draft *d, struct belay_arena *a,
                              struct belay_error *err);

struct proc_applied {
    struct proc_event event;
    struct proc process; /* as it is then */
    bool replayed;
    bool stale; /* the process has another registration: nothing was done */
};
/* In a body: everything that an event brings about, in the order of belay_process_append (P1 to P5). */
MUST_USE belay_rc append_in(struct txn *t, const struct proc_draft *d,
                            struct proc_applied *out);

/* --- process_append.c --- */

#define CANCEL_REASON_MAX 4096
/* The wish that a process ends: type, payload and key of d->process.  *payload is the
 * caller's.  `invalid`, reason reason. */
MUST_USE belay_rc cancel_draft(struct proc_draft *d, const char *reason,
                               json_t **payload, struct belay_arena *a,
                               struct belay_error *err);

#endif /* WORK_PROCESS_EVENT_H */
