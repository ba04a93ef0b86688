#include "cli/work.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/op_args.h"
#include "base/clock.h"
#include "cli/job_socket.h"
#include "cli/worker.h"

/* --- what the command line says --- */

static int64_t number_of(const struct op_call *call, const char *name, int64_t absent)
{
    const struct op_value *value = op_get(call, name);

    return value ? value->number : absent;
}

/* "host:pid", in the arena. */
static belay_rc name_worker(const struct op_call *call, struct belay_arena *a,
                            const char **out, struct belay_error *err)
{
    char host[128] = "", name[192];
    struct bytes copy;

    *out = op_str(call, "worker");
    if (*out)
        return BELAY_OK;
    if (gethostname(host, sizeof(host) - 1) || !bytes_is_id(bytes_str(host), 127))
        (void)snprintf(host, sizeof(host), "localhost");
    (void)snprintf(name, sizeof(name), "%s:%ld", host, (long)getpid());
    if (!arena_copy(a, bytes_str(name), &copy))
        return err_no_memory(err, "the worker's name");
    *out = (const char *)copy.ptr;
    return BELAY_OK;
}

static belay_rc read_plan(const struct op_call *call, struct belay_arena *a,
                          struct work_plan *out, struct belay_error *err)
{
    const char *result = op_str(call, "result");

    *out = (struct work_plan){
        .command = op_str(call, "exec"),
        .concurrency = (size_t)number_of(call, "concurrency", 1),
        .max_jobs = number_of(call, "max", 0),
        .lease_ms = number_of(call, "lease", BELAY_EXECUTION_LEASE_MS),
        .grace_ms = number_of(call, "grace", 5000),
        .drains = number_of(call, "drain", 0) != 0,
        .keeps_stdout = result && strcmp(result, "stdout") == 0,
    };
    belay_rc rc = name_worker(call, a, &out->worker, err);
    if (rc == BELAY_OK)
        rc = op_strs(call, "lane", a, &out->lanes, &out->n_lanes, err);
    if (rc == BELAY_OK)
        rc = op_strs(call, "capability", a, &out->capabilities, &out->n_capabilities,
                     err);
    return rc;
}

/* --- beginning and end --- */

/* Standard error, or, of a pipe, another way into it that does not block: the one we were
 * given is shared with whoever else has it. */
static int open_log(void)
{
    struct stat info;
    int fd = -1;

    if (fstat(STDERR_FILENO, &info) == 0 && S_ISFIFO(info.st_mode))
        fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 ? fd : STDERR_FILENO;
}

/* What is in the worker besides the plan; worker_release takes what is there. */
static belay_rc prepare(struct worker *w, struct belay_error *err)
{
    belay_rc rc = belay_cancel_new(&w->stop, err);

    if (rc == BELAY_OK)
        rc = socket_directory_new(&w->directory, err);
    if (rc)
        return rc;
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->jobs = calloc(w->plan.concurrency, sizeof(*w->jobs));
    if (!w->jobs)
        return err_no_memory(err, "the slots of a worker");
    bool has_all = w->wake >= 0;
    for (size_t i = 0; i < w->plan.concurrency; i++) {
        w->jobs[i] = (struct job){
            .worker = w,
            .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
            .kill_us = DEADLINE_NONE,
        };
        has_all = has_all && w->jobs[i].wake >= 0;
    }
    if (!has_all)
        return err_reason(err, BELAY_UNAVAILABLE, "descriptors",
                          "too many files are open");
    return BELAY_OK;
}

static void release(struct worker *w)
{
    for (size_t i = 0; w->jobs && i < w->plan.concurrency; i++) {
        if (w->jobs[i].wake >= 0)
            (void)close(w->jobs[i].wake);
    }
    free(w->jobs);
    if (w->wake >= 0)
        (void)close(w->wake);
    if (w->log.fd != STDERR_FILENO)
        (void)close(w->log.fd);
    socket_directory_free(w->directory);
    belay_cancel_free(w->stop);
    belay_close(w->belay);
    (void)pthread_mutex_destroy(&w->mutex);
}

/* Threads that were started; those of the slots come last. */
struct crew {
    pthread_t threads[4 + WORK_CONCURRENCY_MAX];
    size_t n;
};

static bool start(struct crew *crew, void *(*run)(void *), void *arg)
{
    if (pthread_create(&crew->threads[crew->n], NULL, run, arg))
        return false;
    crew->n++;
    return true;
}

/* The slots first, the claimer last: it finds all of them there. */
static bool start_all(struct worker *w, struct crew *crew)
{
    bool started = start(crew, work_keeper, w) && start(crew, work_watcher, w) &&
                   start(crew, work_timers, w);

    for (size_t i = 0; started && i < w->plan.concurrency; i++)
        started = start(crew, job_thread, &w->jobs[i]);
    return started && start(crew, work_claimer, w);
}

static void end_all(struct worker *w, struct crew *crew)
{
    worker_lock(w);
    w->is_over = true;
    worker_close(w);
    for (size_t i = 0; i < w->plan.concurrency; i++)
        worker_post(w->jobs[i].wake);
    worker_unlock(w);
    belay_cancel_trigger(w->stop);
    parker_wake(&w->keeper);
    parker_wake(&w->watcher);
    parker_wake(&w->timers);
    for (size_t i = 0; i < crew->n; i++)
        (void)pthread_join(crew->threads[i], NULL);
}

/* TERM and INT come through a descriptor, in the main thread only.  A store has threads of
 * its own, which take after this one: so they are blocked before it is opened. */
struct signals {
    int fd; /* -1: not taken over */
    sigset_t before;
};

static belay_rc take_over(struct signals *s, struct belay_error *err)
{
    sigset_t taken;

    (void)signal(SIGCHLD,
                 SIG_DFL); /* ignored ones would be reaped by nobody knows whom */
    (void)sigemptyset(&taken);
    (void)sigaddset(&taken, SIGTERM);
    (void)sigaddset(&taken, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &taken, &s->before);
    s->fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->fd >= 0)
        return BELAY_OK;
    (void)pthread_sigmask(SIG_SETMASK, &s->before, NULL);
    return err_reason(err, BELAY_UNAVAILABLE, "descriptors", "too many files are open");
}

/* They stay blocked: one that comes while the worker ends asks for what is done, and must
 * not kill it before it has said so. */
static void give_up_signals(struct signals *s)
{
    if (s->fd >= 0)
        (void)close(s->fd);
}

static belay_rc supervise(struct worker *w, int signals, struct belay_error *err)
{
    struct crew crew = { .n = 0 };
    belay_rc rc = BELAY_OK;

    if (start_all(w, &crew))
        work_supervise(w, signals);
    else
        rc =
            err_reason(err, BELAY_UNAVAILABLE, "threads", "no more threads can be had");
    end_all(w, &crew);
    if (rc == BELAY_OK && w->rc != BELAY_OK) {
        rc = w->rc;
        *err = w->err;
    }
    return rc;
}

static belay_rc answer(const struct worker *w, json_t **out, struct belay_error *err)
{
    static const char *const names[TALLY_COUNT] = { "completed", "failed", "released",
                                                    "lost" };
    struct op_maker m = { .err = err };
    json_t *result = json_object();
    int64_t jobs = 0;
    int failed = !result;

    for (size_t i = 0; i < TALLY_COUNT; i++)
        jobs += w->tallies[i];
    failed |= op_set_i64(result, "jobs", jobs);
    for (size_t i = 0; i < TALLY_COUNT; i++)
        failed |= op_set_i64(result, names[i], w->tallies[i]);
    return op_made(&m, result, failed, out);
}

/* With the signals taken over. */
static belay_rc run(const struct op_call *call, const struct work_plan *plan,
                    int signals, json_t **out, struct belay_error *err)
{
    /* Jobs end with their worker, or soon after: nobody else goes on with their leases. */
    const struct belay_options options = { .size = sizeof(options),
                                           .ns = call->ns,
                                           .host = BELAY_HOST_BOUND,
                                           .fleet_dir = call->fleet_dir };
    struct worker w = {
        .call = call,
        .plan = *plan,
        .clock = clock_system(),
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .wake = -1,
    };

    w.log = (struct log_sink){ .fd = open_log(),
                               .format = LOG_KEY_VALUE,
                               .least = call->is_quiet ? LOG_ERROR : LOG_INFO,
                               .clock = w.clock,
                               .mutex = PTHREAD_MUTEX_INITIALIZER };
    belay_rc rc = belay_open(call->store, &options, &w.belay, err);
    if (rc == BELAY_OK)
        rc = prepare(&w, err);
    if (rc == BELAY_OK)
        rc = supervise(&w, signals, err);
    if (rc == BELAY_OK)
        rc = answer(&w, out, err);
    release(&w);
    return rc;
}

belay_rc work_run(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct signals signals CLEANUP(give_up_signals) = { .fd = -1 };
    struct work_plan plan;

    belay_rc rc = read_plan(call, &arena, &plan, err);
    if (rc == BELAY_OK)
        rc = take_over(&signals, err);
    return rc == BELAY_OK ? run(call, &plan, signals.fd, out, err) : rc;
}
