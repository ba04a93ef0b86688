#include "cli/job.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"

/* --- the command --- */

static const char no_argv[] = "the payload has no command: it must be an object with "
                              "\"argv\", a list of strings, "
                              "where the worker has no --exec";

/* The strings of a list, in the arena; NULL: it is none, or there is no memory. */
static char **strings_of(const json_t *list, struct belay_arena *a)
{
    size_t n = json_array_size(list);
    char **out = n > 0 ? arena_zalloc(a, n + 1, sizeof(*out)) : NULL;

    for (size_t i = 0; out && i < n; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        struct bytes copy;
        if (!text || !arena_copy(a, bytes_str(text), &copy))
            return NULL;
        out[i] = (char *)copy.ptr;
    }
    return out;
}

/* What to run; NULL: nothing can be. */
static char **command_of(struct run *r)
{
    static char shell[] = "/bin/sh", option[] = "-c";
    const char *command = r->worker->plan.command;
    json_t *payload = NULL;
    struct bytes text;

    if (command) {
        char **words = arena_zalloc(&r->arena, 4, sizeof(*words));
        if (!words || !arena_copy(&r->arena, bytes_str(command), &text))
            return NULL;
        words[0] = shell;
        words[1] = option;
        words[2] = (char *)text.ptr;
        return words;
    }
    if (!r->work->payload || json_read(bytes_of(r->work->payload, r->work->payload_len),
                                       BELAY_PAYLOAD_MAX, &payload, NULL))
        return NULL;
    char **words = strings_of(json_object_get(payload, "argv"), &r->arena);
    json_decref(payload);
    return words;
}

/* The trace is that of who submitted the work; the worker's own is another one's. */
static char **environment_of(struct run *r)
{
    static const char *const without[] = {
        "BELAY_",
        "TRACEPARENT=",
        "TRACESTATE=",
        NULL,
    };
    const struct belay_work *work = r->work;
    char attempt[I64_TEXT_MAX], fence[I64_TEXT_MAX];

    (void)bytes_put_i64(attempt, work->attempt);
    (void)bytes_put_i64(fence, work->fence);
    const struct child_variable variables[] = {
        { "BELAY_EXECUTION", work->execution_id },
        { "BELAY_ATTEMPT", attempt },
        { "BELAY_FENCE", fence },
        { "BELAY_LANE", work->lane },
        { "BELAY_KIND", work->kind ? work->kind : "" },
        { "BELAY_HANDLE", r->handle },
        { "BELAY_SOCKET", r->socket.path },
        { "BELAY_NAMESPACE", belay_namespace(r->worker->belay) },
        { "TRACEPARENT", work->traceparent },
        { "TRACESTATE", work->tracestate },
    };
    return child_environment(environ, without, variables, COUNT_OF(variables),
                             &r->arena);
}

/* --- beginning --- */

/* How many frames the attempt has.  Only one that goes on has any. */
static belay_rc count_frames(struct run *r, int64_t *out, struct belay_error *err)
{
    const struct belay_frame_request request = {
        .size = sizeof(request),
        .execution_id = r->work->execution_id,
        .attempt = r->work->attempt,
        .after_seq = INT64_MAX, /* none of them themselves */
        .limit = 1,
    };
    struct belay_frames frames = { .last_seq = 0 };
    int64_t backoff_us = 0;
    belay_rc rc = BELAY_OK;

    if (r->work->handle.kind == BELAY_HANDLE_RESUMED) {
        do
            rc = belay_execution_frames(r->worker->belay, &request, &r->arena, &frames,
                                        err);
        while (rc != BELAY_OK && worker_may_retry(rc) && job_pause(r, &backoff_us));
    }
    *out = frames.last_seq;
    return rc;
}

/* Everything before the process. */
static belay_rc prepare(struct run *r, struct belay_error *err)
{
    worker_lock(r->worker);
    uint64_t number = r->worker->n_served++;
    worker_unlock(r->worker);
    belay_rc rc = belay_handle_text(&r->work->handle, &r->arena, &r->handle, err);
    if (rc)
        return rc;
    return socket_open(&r->socket, r->worker->directory, number, err);
}

/* The process has begun: from now on it is ended with the attempt. */
static void enter(struct run *r)
{
    struct job *j = r->job;

    worker_lock(r->worker);
    j->group = r->child.pid;
    if (j->hold == HOLD_LOST || j->is_stopped)
        worker_terminate(j);
    worker_unlock(r->worker);
    const struct log_field fields[] = {
        log_text("execution", bytes_str(r->work->execution_id)),
        log_number("attempt", r->work->attempt),
        log_text("lane", bytes_str(r->work->lane)),
        log_number("pid", (int64_t)r->child.pid),
    };
    log_event(&r->worker->log, LOG_INFO, "job_started", fields, COUNT_OF(fields));
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* Its process is reaped, and what it left of its group ended where it must be. */
static struct ending leave(struct run *r)
{
    struct job *j = r->job;
    siginfo_t info = { 0 };

    worker_lock(r->worker);
    if (j->hold == HOLD_LOST || j->is_stopped)
        worker_signal(j, SIGKILL);
    bool is_stopped = j->is_stopped;
    j->group = 0;
    worker_unlock(r->worker);
    (void)waitid(P_PID, (id_t)r->child.pid, &info, WEXITED);
    close_fd(&r->child.pidfd);
    close_fd(&r->child.in);
    close_fd(&r->child.out);
    close_fd(&r->child.err);
    close_fd(&r->child.failure);
    return job_judge(r, info.si_code, info.si_status, is_stopped);
}

/* Runs the job up to its end, which is not written yet. */
static struct ending run(struct run *r)
{
    char **argv = command_of(r);
    struct belay_error err;
    int64_t n_frames;

    if (!argv)
        return job_failure(BELAY_FAILURE_PERMANENT, no_argv);
    belay_rc rc = count_frames(r, &n_frames, &err);
    if (rc)
        return job_failure(BELAY_FAILURE_INFRA_CRASH, err.message);
    output_begin(&r->output, n_frames, r->worker->plan.keeps_stdout);
    rc = prepare(r, &err);
    char **environment = rc == BELAY_OK ? environment_of(r) : NULL;
    if (rc == BELAY_OK && !environment)
        rc = err_no_memory(&err, "an environment");
    if (rc == BELAY_OK && !job_holds(r))
        return (struct ending){ .how = ENDING_RELEASE };
    if (rc == BELAY_OK)
        rc = child_spawn(argv, environment, &r->child, &err);
    if (rc == BELAY_INVALID)
        return job_failure(BELAY_FAILURE_PERMANENT, err.message);
    if (rc)
        return job_not_started(err.message);
    enter(r);
    job_pump(r);
    return leave(r);
}

/* --- the slot --- */

static void run_one(struct run *r)
{
    r->work = r->job->work;
    r->input = bytes_of(r->work->payload, r->work->payload_len);
    r->has_ended = false;
    r->is_loss_told = false;
    r->not_run = 0;
    r->is_unstored = false;
    r->by_verb = TALLY_COUNT;
    output_begin(&r->output, 0, r->worker->plan.keeps_stdout);

    struct ending e = run(r);
    socket_close(&r->socket);
    job_conclude(r, &e);
    arena_reset(&r->arena);
}

/* False: there will be no more. */
static bool wait_for_work(struct job *j)
{
    for (;;) {
        worker_lock(j->worker);
        bool has_work = j->work != NULL, is_over = j->worker->is_over;
        worker_unlock(j->worker);
        if (has_work || is_over)
            return has_work;
        struct pollfd fd = { .fd = j->wake, .events = POLLIN };
        (void)poll(&fd, 1, -1);
        worker_heard(j->wake);
    }
}

void *job_thread(void *job)
{
    struct run r = { .job = job };

    r.worker = r.job->worker;
    socket_init(&r.socket);
    if (!output_init(&r.output)) { /* no slot, but the worker goes on to its end */
        struct belay_error err;
        belay_rc rc = err_no_memory(&err, "the output of a job");
        worker_lock(r.worker);
        r.worker->rc = rc;
        r.worker->err = err;
        worker_close(r.worker);
        worker_unlock(r.worker);
        return NULL;
    }
    while (wait_for_work(r.job))
        run_one(&r);
    output_release(&r.output);
    arena_release(&r.arena);
    return NULL;
}
