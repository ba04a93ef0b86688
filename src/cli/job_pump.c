/* A job while its process runs. */
#include <errno.h>
#include <unistd.h>

#include "cli/job.h"

#define BACKOFF_MIN_US ((int64_t)20 * 1000)
#define BACKOFF_MAX_US ((int64_t)1000 * 1000)
/* How many reads of each pipe to catch up: what a pipe holds, and a little more. */
#define CATCH_UP_READS 4

/* --- with the other threads --- */

struct job_view job_look(struct run *r)
{
    worker_lock(r->worker);
    struct job_view view = { .hold = r->job->hold,
                             .is_stopped = r->job->is_stopped,
                             .is_killed = r->job->is_killed };
    worker_unlock(r->worker);
    return view;
}

bool job_holds(struct run *r)
{
    enum hold hold = job_look(r).hold;

    return hold == HOLD_HELD || hold == HOLD_ENDING;
}

static int milliseconds(int64_t us)
{
    if (us <= 0)
        return 0;
    return us > (int64_t)60 * 1000 * 1000 ? 60 * 1000 : (int)(us / 1000) + 1;
}

bool job_pause(struct run *r, int64_t *backoff_us)
{
    struct pollfd fd = { .fd = r->job->wake, .events = POLLIN };

    *backoff_us = *backoff_us ? *backoff_us * 2 : BACKOFF_MIN_US;
    if (*backoff_us > BACKOFF_MAX_US)
        *backoff_us = BACKOFF_MAX_US;
    if (poll(&fd, 1, milliseconds(*backoff_us)) > 0)
        worker_heard(r->job->wake);
    return job_holds(r);
}

bool job_is_lost_by(belay_rc rc)
{
    return rc == BELAY_LEASE_LOST || rc == BELAY_WRONG_STATE || rc == BELAY_NOT_FOUND ||
           rc == BELAY_BAD_HANDLE;
}

void job_lose(struct run *r, const struct belay_error *err)
{
    const char *why = err->reason[0] ? err->reason : belay_error_info(err->code)->name;

    worker_lock(r->worker);
    worker_lose(r->job, why);
    worker_unlock(r->worker);
}

/* What the store says of an execution that was ended under its holder, since "released" or
 * "terminal" says little; the reason itself where that is not known. */
static const char *explain(struct run *r, const char *reason)
{
    struct belay_execution e;

    if ((strcmp(reason, "released") != 0 && strcmp(reason, "terminal") != 0) ||
        belay_execution_describe(r->worker->belay, r->work->execution_id, &r->arena, &e,
                                 NULL) != BELAY_OK)
        return reason;
    if (e.failure_class == BELAY_FAILURE_TIMEOUT)
        return "timeout";
    if (e.state == BELAY_STATE_CANCELLED)
        return "cancelled";
    return e.state == BELAY_STATE_EXPIRED ? "expired" : reason;
}

void job_tell_loss(struct run *r)
{
    char reason[sizeof(r->job->lost_by)];

    worker_lock(r->worker);
    bool is_lost = r->job->hold == HOLD_LOST;
    memcpy(reason, r->job->lost_by, sizeof(reason));
    worker_unlock(r->worker);
    if (!is_lost || r->is_loss_told)
        return;
    r->is_loss_told = true;
    const struct log_field fields[] = {
        log_text("execution", bytes_str(r->work->execution_id)),
        log_number("attempt", r->work->attempt),
        log_text("reason", bytes_str(explain(r, reason))),
    };
    log_event(&r->worker->log, LOG_WARN, "job_lost", fields, COUNT_OF(fields));
}

/* --- output --- */

void job_store_output(struct run *r)
{
    int64_t backoff_us = 0;
    struct belay_error err;

    while (job_holds(r)) {
        belay_rc rc =
            output_store(&r->output, r->worker->belay, &r->work->handle, &err);
        if (rc == BELAY_OK)
            return;
        if (job_is_lost_by(rc)) {
            job_lose(r, &err);
        } else if (!worker_may_retry(rc)) {
            r->is_unstored = true;
            r->err = err;
            break;
        } else if (!job_pause(r, &backoff_us)) {
            break;
        }
    }
    output_drop(&r->output);
}

/* One read of each pipe that `found` says has something. */
static bool read_both(struct run *r, bool keeps, bool from_out, bool from_err)
{
    int64_t now = worker_now(r->worker);
    bool more = false;

    if (from_out && r->child.out >= 0)
        more |= output_read(&r->output, BELAY_FRAME_STDOUT, &r->child.out, keeps, now);
    if (from_err && r->child.err >= 0)
        more |= output_read(&r->output, BELAY_FRAME_STDERR, &r->child.err, keeps, now);
    return more;
}

void job_catch_up(struct run *r)
{
    for (int i = 0; i < CATCH_UP_READS && read_both(r, true, true, true); i++) {
        if (!output_has_room(&r->output))
            job_store_output(r);
    }
    job_store_output(r);
}

/* --- input and the beginning --- */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* As much as fits; a child that reads nothing of it is no failure. */
static void feed(struct run *r)
{
    while (r->input.len > 0) {
        ssize_t n = write(r->child.in, r->input.ptr, r->input.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break;
        r->input = bytes_of(r->input.ptr + n, r->input.len - (size_t)n);
    }
    close_fd(&r->child.in);
}

static void hear_failure(struct run *r)
{
    int why;
    ssize_t n = read(r->child.failure, &why, sizeof(why));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == (ssize_t)sizeof(why)) {
        r->not_run = why;
    } else { /* it runs */
        worker_lock(r->worker);
        worker_began(r->worker);
        worker_unlock(r->worker);
    }
    close_fd(&r->child.failure);
}

/* --- the loop --- */

enum { FD_WAKE, FD_END, FD_IN, FD_OUT, FD_ERR, FD_FAILURE, FD_SOCKET };
#define FDS (FD_SOCKET + SOCKET_FDS)

static void fill(const struct run *r, struct pollfd fds[FDS])
{
    fds[FD_WAKE] = (struct pollfd){ .fd = r->job->wake, .events = POLLIN };
    fds[FD_END] =
        (struct pollfd){ .fd = r->has_ended ? -1 : r->child.pidfd, .events = POLLIN };
    fds[FD_IN] = (struct pollfd){ .fd = r->child.in, .events = POLLOUT };
    fds[FD_OUT] = (struct pollfd){ .fd = r->child.out, .events = POLLIN };
    fds[FD_ERR] = (struct pollfd){ .fd = r->child.err, .events = POLLIN };
    fds[FD_FAILURE] = (struct pollfd){ .fd = r->child.failure, .events = POLLIN };
    socket_poll(&r->socket, worker_now(r->worker), fds + FD_SOCKET);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Somebody ends what the job has left, too, and wakes us when that is done. */
static bool is_ended_for(const struct job_view *view)
{
    return view->hold == HOLD_LOST || view->is_stopped;
}

static int timeout_of(struct run *r)
{
    int64_t now = worker_now(r->worker);
    int64_t at = least(output_deadline(&r->output), socket_deadline(&r->socket, now));
    struct job_view view = job_look(r);

    if (r->has_ended && !is_ended_for(&view))
        at = least(at, r->ended_us + JOB_LINGER_US);
    return at == DEADLINE_NONE ? -1 : milliseconds(at - now);
}

/* The process has ended, and what it started has let go of the pipes or had its time: with
 * an attempt that is ended for it, until KILL was sent. */
static bool is_done(struct run *r)
{
    struct job_view view = job_look(r);

    if (!r->has_ended)
        return false;
    if (r->child.out < 0 && r->child.err < 0)
        return true;
    if (is_ended_for(&view))
        return view.is_killed;
    return worker_now(r->worker) >= r->ended_us + JOB_LINGER_US;
}

static void see_end(struct run *r)
{
    r->has_ended = true;
    r->ended_us = worker_now(r->worker);
    close_fd(&r->child.in);
}

/* What one poll found. */
static void serve(struct run *r, const struct pollfd fds[FDS])
{
    enum hold hold = job_look(r).hold;
    bool keeps = !r->is_unstored && hold == HOLD_HELD;

    if (hold == HOLD_LOST)
        job_tell_loss(r);
    if (fds[FD_WAKE].revents)
        worker_heard(r->job->wake);
    if (fds[FD_FAILURE].revents)
        hear_failure(r);
    if (fds[FD_IN].revents)
        feed(r);
    if (!keeps)
        output_drop(&r->output);
    (void)read_both(r, keeps, fds[FD_OUT].revents != 0, fds[FD_ERR].revents != 0);
    if (fds[FD_END].revents)
        see_end(r);
    socket_serve(&r->socket, fds + FD_SOCKET, &r->worker->clock, job_answer, r);
    if (output_is_due(&r->output, worker_now(r->worker)))
        job_store_output(r);
}

void job_pump(struct run *r)
{
    struct pollfd fds[FDS];

    while (!is_done(r)) {
        fill(r, fds);
        if (poll(fds, FDS, timeout_of(r)) >= 0)
            serve(r, fds);
    }
    if (r->child.failure >= 0)
        hear_failure(r);
}
