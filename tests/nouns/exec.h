/* exec.h - executions, for the files that test them.
 *
 * A case submits, claims and ends work through these; what a call leaves out is usual:
 * lane "l", worker "w", a lease of a minute, one at a time, no waiting.
 */
#ifndef TESTS_NOUNS_EXEC_H
#define TESTS_NOUNS_EXEC_H

#include <belay/execution.h>

#include "nouns.h"

#define HOUR (60 * MINUTE)
/* After a lease's end nobody else has the work for so long, in a world that was made
 * quick: more than a case takes from one call to the next, and little to wait for. */
#define GRACE_MS ((int64_t)300)
#define PAST_GRACE_MS (GRACE_MS + 20)
/* A delay that a case waits for: a server's time cannot be moved. */
#define SHORT_MS ((int64_t)60)

/* Opens the store again with that grace; nothing may be held or kept in its handles. */
bool quick(struct world *w);

/* --- submitting and claiming --- */

/* The id; NULL when it was refused, and that is a failure. */
const char *submit(struct world *w, struct belay_submission s);
belay_rc submit_try(struct world *w, struct belay_submission s,
                    struct belay_submitted *out);
/* n of them on a lane, in one transaction; ids[n]. */
bool submit_many(struct world *w, const char *lane, size_t n, const char **ids);

struct belay_retry_policy retry_fixed(int64_t max_retries, int64_t delay_ms);

belay_rc claim_try(struct world *w, struct belay_claim_policy p,
                   struct belay_works *out);
struct belay_works claim(struct world *w, struct belay_claim_policy p);
/* One of this lane; NULL: there is nothing. */
const struct belay_work *work_on(struct world *w, const char *lane);
/* Likewise, with a lease that has ended already. */
const struct belay_work *work_late(struct world *w, const char *lane);

/* --- what a holder does --- */

/* Of one item; out may be NULL. */
belay_rc complete(struct world *w, const struct belay_handle *h, const char *result,
                  struct belay_ended *out);
belay_rc fail(struct world *w, const struct belay_handle *h, int failure_class,
              struct belay_ended *out);
belay_rc frame(struct world *w, const struct belay_handle *h, const char *bytes);

/* --- looking --- */

struct belay_execution look(struct world *w, const char *id);
/* "active/leased/not_applicable/none/none/running_attempt/active" */
const char *vector_of(struct world *w, const char *id);
int state_of(struct world *w, const char *id);
/* "initial ended_failure, retry started": type and end of each, in order. */
const char *attempts_of(struct world *w, const char *id);
/* What each of them follows: "first, after 0 (transient: it did not work), after 1". */
const char *lineage_of(struct world *w, const char *id);
/* Events of one execution, "acquired released(delay) completion:success"; NULL: of all. */
const char *events_of(struct world *w, const char *id);
/* Likewise after a cursor; and the cursor of what is next. */
const char *events_after(struct world *w, const char *id, const char *cursor);
const char *events_now(struct world *w);
/* "out" of all kept frames of an attempt, and what closed it: "a b c|attempt_success" */
const char *frames_of(struct world *w, const char *id, int64_t attempt);
/* What came of it, or the code's name. */
const char *result_of(struct world *w, const char *id);
size_t completions_of(struct world *w, const char *id);

/* All that can be read of an execution but its events, as one text. */
const char *all_of(struct world *w, const char *id);
/* And of every one, of lanes, counts and the feed: what a refused call must not have
 * changed (L4). */
const char *all_work(struct world *w);

/* --- states --- */

/* An execution of its own lane that was brought somewhere. */
struct cell {
    const char *lane, *id;
    const struct belay_work *held; /* who holds it, or held it last; NULL: nobody */
    const char *grant_id;
    int64_t until_ms; /* of its delay */
};

struct condition {
    const char *name;
    char code; /* its column */
    int state;
    bool (*make)(struct world *w, struct cell *c);
    int64_t pass_ms; /* then so much time, and the timers; 0: nothing */
    bool hurried;    /* it does not stay there by itself */
};
extern const struct condition conditions[];
extern const size_t n_conditions;
const struct condition *condition_named(const char *name);

/* Brings the cells there, each on the lane that it has. */
bool cells_make(struct world *w, const struct condition *in, struct cell *cells,
                size_t n);

/* --- operations --- */

/* What an operation did, beside its code. */
enum deed {
    DID_IT,
    DID_NOTHING, /* there was nothing to do, which is no error */
    DID_BEFORE,  /* it had been done before */
};

/* A column for each of `conditions`, in their order.  Done:
 *   W D A C F X  and its state is waiting, delayed, active, completed, failed, cancelled
 *   +            and its state is the same
 *   -            there was nothing to do    R  it was done before
 * Refused:
 *   r e v t      lease_lost: released, expired, revoked, terminal
 *   T N s        wrong_state: terminal, not_terminal, any other reason
 *   0            not_found                  o  timeout
 * A blank: there never was a holder to ask. */
struct operation {
    const char *name;
    belay_rc (*run)(struct world *w, const struct cell *c, enum deed *did);
    const char *does;
    bool by_id; /* it names an execution, and nothing else */
};
extern const struct operation operations[];
extern const size_t n_operations;

/* Those that a holder has. */
struct holder_deed {
    const char *name;
    belay_rc (*run)(struct world *w, const struct belay_handle *h);
};
extern const struct holder_deed holder_deeds[];
extern const size_t n_holder_deeds;

/* --- time --- */

/* Everything that is due now is seen to; the counts of all steps together. */
struct belay_timer_report timers(struct world *w);
/* Monotonic milliseconds, of the machine. */
int64_t machine_ms(void);

#endif /* TESTS_NOUNS_EXEC_H */
