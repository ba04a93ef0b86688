/* The main thread of a worker: signals, leases by its own clock, and the end of processes.
 */
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/worker.h"

/* How long a lease may be seen past due before it is given up: after a pause of the whole
 * process the keeper shall ask first. */
#define OVERDUE_US ((int64_t)500 * 1000)

/* --- signals --- */

/* The first one drains; the second ends the jobs and gives their work back; a third does
 * not wait for them. */
static void stop(struct worker *w)
{
    w->n_stops++;
    worker_close(w);
    for (size_t i = 0; i < w->plan.concurrency && w->n_stops > 1; i++) {
        struct job *j = &w->jobs[i];
        if (!j->work || worker_has_ended(j)) /* what has ended by itself is done */
            continue;
        j->is_stopped = true;
        worker_terminate(j);
        if (w->n_stops > 2 && j->group)
            j->kill_us = 0;
        worker_post(j->wake);
    }
}

static void take_signals(struct worker *w, int signals)
{
    struct signalfd_siginfo info;

    while (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        worker_lock(w);
        stop(w);
        const struct log_field fields[] = {
            log_number("signal", info.ssi_signo),
            log_number("running", (int64_t)w->n_running),
        };
        worker_unlock(w);
        log_event(&w->log, LOG_INFO, "stopping", fields, COUNT_OF(fields));
    }
}

/* --- time --- */

/* A lease that could not be renewed in time: somebody else may hold it. */
static void judge_lease(struct job *j, int64_t now)
{
    if ((j->hold != HOLD_HELD && j->hold != HOLD_ENDING) || now < j->due_us)
        return;
    if (j->overdue_us == 0)
        j->overdue_us = now;
    else if (now - j->overdue_us >= OVERDUE_US)
        worker_lose(j, "past_due");
}

static void judge_grace(struct job *j, int64_t now)
{
    if (j->group == 0 || j->is_killed || now < j->kill_us)
        return;
    worker_signal(j, SIGKILL);
    j->is_killed = true;
    worker_post(j->wake);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When this job is to be looked at again. */
static int64_t next_look(const struct job *j)
{
    int64_t at = DEADLINE_NONE;

    if (j->hold == HOLD_HELD || j->hold == HOLD_ENDING)
        at = j->overdue_us ? j->overdue_us + OVERDUE_US : j->due_us;
    if (j->group && !j->is_killed)
        at = least(at, j->kill_us);
    return at;
}

/* Looks at all jobs, and says when to do so again. */
static int64_t look(struct worker *w)
{
    int64_t next = DEADLINE_NONE, now = worker_now(w);

    for (size_t i = 0; i < w->plan.concurrency; i++) {
        struct job *j = &w->jobs[i];
        if (!j->work)
            continue;
        judge_lease(j, now);
        judge_grace(j, now);
        next = least(next, next_look(j));
    }
    return next;
}

static int timeout_ms(const struct worker *w, int64_t until_us)
{
    int64_t left = until_us - worker_now(w);

    if (until_us == DEADLINE_NONE)
        return -1;
    if (left <= 0)
        return 0;
    return left > (int64_t)3600 * 1000 * 1000 ? 3600 * 1000 : (int)(left / 1000) + 1;
}

void work_supervise(struct worker *w, int signals)
{
    for (;;) {
        worker_lock(w);
        int64_t next = look(w);
        bool is_done = w->is_closing && w->is_claimed && w->n_running == 0;
        worker_unlock(w);
        if (is_done)
            return;
        struct pollfd fds[] = {
            { .fd = signals, .events = POLLIN },
            { .fd = w->wake, .events = POLLIN },
        };
        (void)poll(fds, COUNT_OF(fds), timeout_ms(w, next));
        worker_heard(w->wake);
        take_signals(w, signals);
    }
}
