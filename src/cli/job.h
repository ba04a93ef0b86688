/* job.h - one job: from what was claimed to how it ended.
 *
 * A slot's thread runs one job after the other.  It starts the process, hands the payload
 * to it, stores what it prints, serves its socket, waits for its end, and writes how that
 * was - unless the attempt was lost or ended meanwhile.
 */
#ifndef CLI_JOB_H
#define CLI_JOB_H

#include "cli/job_output.h"
#include "cli/job_socket.h"
#include "cli/job_spawn.h"
#include "cli/worker.h"

/* How long after the job's own process its pipes may stay open. */
#define JOB_LINGER_US ((int64_t)2 * 1000 * 1000)

/* What the thread of a slot alone knows. */
struct run {
    struct job *job;
    struct worker *worker;
    const struct belay_work *work;
    struct belay_arena arena; /* of this job */
    const char *handle;       /* as text */
    struct output output;
    struct job_socket socket;
    struct child child;
    struct bytes input; /* what is left of the payload */
    bool has_ended;     /* the process */
    int64_t ended_us;
    bool is_loss_told;
    int not_run;      /* errno: why its command could not be run; 0 */
    bool is_unstored; /* some of its output could not be stored: err says why */
    struct belay_error err;
    enum tally
        by_verb; /* how the job ended its attempt itself; TALLY_COUNT: it did not */
    const char *said; /* how the log calls that */
};

/* What other threads have decided. */
struct job_view {
    enum hold hold;
    bool is_stopped, is_killed;
};
struct job_view job_look(struct run *r);

/* Whether something may be written for the attempt. */
bool job_holds(struct run *r);

/* Sleeps before a call is repeated; false: it is not ours any more. */
MUST_USE bool job_pause(struct run *r, int64_t *backoff_us);

/* The store says that somebody else has it, or nobody. */
bool job_is_lost_by(belay_rc rc);
void job_lose(struct run *r, const struct belay_error *err);
/* Logs once that the attempt was lost, and why, if it was. */
void job_tell_loss(struct run *r);

/* Stores what was printed so far, however long that takes; what cannot be stored is
 * dropped and noted. */
void job_store_output(struct run *r);
/* Reads what the pipes hold now, and stores it. */
void job_catch_up(struct run *r);

/* Feeds, reads and serves until the process has ended and nothing more comes of it. */
void job_pump(struct run *r);

/* --- how it ends --- */

enum ending_how { ENDING_COMPLETE, ENDING_FAIL, ENDING_RELEASE };

struct ending {
    enum ending_how how;
    bool is_short; /* it was not started, for want of something of the worker's own */
    int32_t failure_class;
    char message[512];
    struct bytes detail;
};

/* What the end of a process means. */
struct ending job_judge(struct run *r, int code, int status, bool is_stopped);
struct ending job_failure(int32_t failure_class, const char *message);
struct ending job_not_started(const char *message);

/* Writes it, and frees the slot or gives it the next job. */
void job_conclude(struct run *r, const struct ending *e);

/* --- its verbs --- */

/* One request of its socket (socket_answer). */
void job_answer(void *run, struct bytes line, struct buf *out);

#endif /* CLI_JOB_H */
