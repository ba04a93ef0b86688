/* proc.h - processes, for the files that test them.
 *
 * A case registers, appends and looks through these; what a call leaves out is usual:
 * process "p", owner session "root", a lease of a minute, no waiting.
 */
#ifndef TESTS_NOUNS_PROC_H
#define TESTS_NOUNS_PROC_H

#include <belay/process.h>

#include "nouns.h"

/* Types that most cases declare: `producer.line` needs {"line":text}; `producer.wake`
 * wakes with its /text; `producer.done` completes with /result. */
extern const char proc_types[];

/* --- registering --- */

belay_rc enroll_try(struct world *w, struct belay_registration r,
                    struct belay_registered *out);
/* One with proc_types, or those given.  NULL when it was refused, and that is a failure. */
const struct belay_process *enroll(struct world *w, struct belay_registration r);
/* With this id and proc_types. */
void enroll_id(struct world *w, const char *id);

const struct belay_process *proc_now(struct world *w, const char *id);
int proc_status(struct world *w, const char *id);

/* --- events --- */

belay_rc note_try(struct world *w, struct belay_event_draft d,
                  struct belay_appended *out);
/* The event; NULL when it failed. */
const struct belay_process_event *note(struct world *w, struct belay_event_draft d);
/* {"line":text} of producer.line to process `id`. */
int64_t line(struct world *w, const char *id, const char *what);
/* producer.wake with {"text":what} for a session. */
const struct belay_process_event *wake(struct world *w, const char *id,
                                       const char *session, const char *what);

belay_rc finish_try(struct world *w, struct belay_process_end e,
                    struct belay_completed *out);
/* Completes by the operator's authority with {"type":"success","value":1}. */
void finish_process(struct world *w, const char *id);
#define SUCCESS "{\"type\":\"success\",\"value\":1}"

struct belay_process_events read_events(struct world *w,
                                        struct belay_process_event_request r);
/* The first of a type after a sequence. */
belay_rc wait_type(struct world *w, const char *id, const char *type, int64_t after,
                   int64_t wait_ms, struct belay_cancel *cancel,
                   const struct belay_process_event **out);
/* "1:producer.line 2:..." after a sequence. */
const char *log_of(struct world *w, const char *id, int64_t after);
/* Sequences of wakes that are not settled: "2 3". */
const char *wake_seqs(struct world *w, const char *id, int64_t after);
/* "1 queued, 2 duplicate": all of them. */
const char *wake_states(struct world *w, const char *id);
bool ack(struct world *w, const char *id, int64_t seq);

/* --- leases --- */

const struct belay_process_lease *hold(struct world *w, const char *id,
                                       const char *owner, int64_t lease_ms);
belay_rc hold_try(struct world *w, const char *id, const char *owner, int64_t lease_ms);

/* --- grants --- */

struct belay_scope scope(const char *session, const char *frame);
void give(struct world *w, const char *session, const char *frame, const char *id);
bool has(struct world *w, const char *session, const char *frame, const char *id);
/* "p q" of a scope; live: running ones alone. */
const char *granted(struct world *w, const char *session, const char *frame, bool live);
/* "s s/f t" of a process. */
const char *holders(struct world *w, const char *id);

/* "p q" of a page; status BELAY_PROCESS_ANY: all. */
const char *procs(struct world *w, struct belay_process_page page);
/* "registered p, ended p" after a cursor (NULL: all); and the cursor behind. */
const char *changes(struct world *w, const char *after, const char **next);

/* All that can be read of a process, as one text. */
const char *all_of_process(struct world *w, const char *id);
/* And of all of them, their grants, the feed, and the sessions "s", "t", "u". */
const char *all_processes(struct world *w);

#endif /* TESTS_NOUNS_PROC_H */
