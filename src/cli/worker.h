/* worker.h - what the threads of `belay work` share.
 *
 * Invariants
 *   W1  a job's process group exists, if only as a zombie, while `group` is not 0: it is
 *       reaped by the job's thread after that was set to 0, under the mutex
 *   W2  once a job is HOLD_LOST or HOLD_OVER, nothing is written for its attempt
 *   W3  a lease is renewed while it is HOLD_HELD or HOLD_ENDING
 *   W4  nobody calls the store or logs with the mutex held
 */
#ifndef CLI_WORKER_H
#define CLI_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <belay/execution.h>

#include "api/ops.h"
#include "base/arena.h"
#include "base/log.h"
#include "base/park.h"

/* What the command line says. */
struct work_plan {
    const char *const *lanes, *const *capabilities;
    size_t n_lanes, n_capabilities;
    const char *worker;
    const char *command; /* for the shell; NULL: the payload's argv */
    size_t concurrency;
    int64_t max_jobs; /* 0: no end */
    int64_t lease_ms, grace_ms;
    bool drains, keeps_stdout; /* as the result */
};

/* What one claim gave; lives until the last job of it and whoever renews it have let go.
 */
struct haul {
    struct belay_arena arena;
    struct belay_works works;
    atomic_uint refs;
};

MUST_USE struct haul *haul_new(void); /* with one reference; NULL: no memory */
void haul_release(struct haul *h);    /* takes NULL */

enum hold {
    HOLD_NONE,   /* the slot is free */
    HOLD_HELD,   /* an attempt is held */
    HOLD_ENDING, /* a call that ends it is under way, and will say if it was lost */
    HOLD_LOST,   /* somebody took it away */
    HOLD_OVER,   /* it was ended, by the job itself or for it */
};

/* How jobs ended. */
enum tally { TALLY_COMPLETED, TALLY_FAILED, TALLY_RELEASED, TALLY_LOST, TALLY_COUNT };

/* A slot, and the job in it.  Guarded by the worker's mutex, but for what its thread
 * alone uses. */
struct job {
    struct worker *worker;
    pthread_t thread;
    int wake; /* an eventfd: another thread changed something here */
    struct haul *haul;
    const struct belay_work *work; /* NULL: the slot is free */
    enum hold hold;
    char lost_by[32];   /* why, of HOLD_LOST */
    bool is_stopped;    /* told to end: its work is given back */
    pid_t group;        /* of processes; 0: none */
    int64_t due_us;     /* when the lease is past due, by our own clock */
    int64_t overdue_us; /* since when that was seen; 0: it was not */
    int64_t renew_us;   /* DEADLINE_NONE: just being done */
    bool is_doubted;    /* renew once more after that: it may be lost */
    int64_t kill_us;    /* TERM was sent, KILL follows then; DEADLINE_NONE */
    bool is_killed;
};

/* Of something of the worker's own (descriptors, processes, memory), so that work which
 * was claimed could not be started.  As many as ran then may run, and after a pause one
 * more, to see whether there is room again. */
struct shortage {
    bool is_on;
    unsigned n;       /* how often in a row nothing could be started */
    size_t most;      /* so many have run */
    int64_t pause_us; /* the last one */
    int64_t until_us; /* its end */
    char message[256];
};

struct worker {
    const struct op_call *call;
    struct belay *belay;
    struct work_plan plan;
    struct belay_clock clock;
    struct log_sink log;
    char *directory; /* of sockets */

    pthread_mutex_t mutex;
    int wake; /* the main thread's eventfd */
    struct parker claimer, keeper, watcher, timers;
    struct belay_cancel *stop;     /* triggered at the very end */
    struct belay_cancel *claiming; /* ends the claim under way; NULL: there is none */
    struct job *jobs;              /* plan.concurrency of them */
    size_t n_running;
    int64_t admitted; /* jobs, those included that a claim may give */
    struct shortage shortage;
    bool is_closing;   /* nothing more is claimed */
    bool is_claimed;   /* the claimer has ended */
    bool is_over;      /* every thread ends */
    unsigned n_stops;  /* how often a signal said so */
    uint64_t n_served; /* of sockets: a name for the next */
    int64_t tallies[TALLY_COUNT];
    belay_rc rc; /* why it gave up; BELAY_OK */
    struct belay_error err;
};

int64_t worker_now(const struct worker *w); /* monotonic microseconds */
void worker_lock(struct worker *w);
void worker_unlock(struct worker *w);
/* Until somebody wakes the parker, or that time. */
void worker_rest(const struct worker *w, struct parker *p, int64_t until_us);
void worker_post(int fd);  /* wakes who polls an eventfd */
void worker_heard(int fd); /* takes the wake-ups */

/* Whether the same call may succeed later. */
bool worker_may_retry(belay_rc rc);

/* The pause that follows that one (0: there was none) when something fails again. */
int64_t worker_backoff(int64_t pause_us);

struct belay_claim_policy worker_policy(const struct worker *w, size_t max);

/* --- with the mutex held --- */

/* An attempt begins in a free slot; takes over one reference of the haul. */
void worker_assign(struct job *j, struct haul *h, const struct belay_work *work);
/* Its work cannot be started: less is claimed for a while. */
void worker_fall_short(struct job *j, const char *message);
/* A job runs. */
void worker_began(struct worker *w);
/* For how many jobs there is room, by what was short. */
size_t worker_allows(const struct worker *w);
/* The slot is free again, or has the next one (may be NULL); the old haul is let go.
 * TALLY_COUNT: it does not count. */
void worker_next(struct job *j, enum tally how, struct haul *h);
/* The attempt is not held any more: its processes are ended and nothing is written.  Its
 * thread logs why. */
void worker_lose(struct job *j, const char *why);
/* TERM to the group, and KILL when the grace has passed. */
void worker_terminate(struct job *j);
/* To the group, and to the job's own process where it has left that. */
void worker_signal(const struct job *j, int number);
/* Whether its own process has ended. */
bool worker_has_ended(const struct job *j);
/* Room for one job more, which is given back where none comes. */
MUST_USE bool worker_admit(struct worker *w);
void worker_unadmit(struct worker *w);
/* Nothing more is claimed. */
void worker_close(struct worker *w);

/* --- threads --- */

void *work_claimer(void *worker);
void *work_keeper(void *worker);
void *work_watcher(void *worker);
void *work_timers(void *worker);
void *job_thread(void *job);

/* The main thread's part: returns when nothing is left to do. */
void work_supervise(struct worker *w, int signals);

#endif /* CLI_WORKER_H */
