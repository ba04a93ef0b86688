#include "handoff.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLES 400
#define WARM_UP 10  /* statements, and the log up to its first checkpoint */
#define SLEEPY_MS 3 /* until the worker waits again */
#define ROWS 1000

/* --- who waits --- */

/* A worker tells when it has got something, by the monotonic clock, once it is done with
 * it; 0: it failed.  The first time it tells that it is there. */
struct worker {
    const struct bench_handoff *how;
    struct belay *b;
    struct belay_cancel *cancel;
    int out; /* where it tells */
    int in;  /* where it is heard */
};

static void *work(void *arg)
{
    const struct worker *w = arg;
    struct belay_arena *arena = NULL;
    double told = w->b && !belay_arena_new(&arena, NULL) ? bench_now() : 0;

    while (write(w->out, &told, sizeof(told)) == (ssize_t)sizeof(told) && told > 0) {
        told = w->how->wait(w->b, w->cancel, arena);
        belay_arena_reset(arena);
    }
    belay_arena_free(arena);
    return NULL;
}

static double hear(const struct worker *w)
{
    double told = 0;

    return read(w->in, &told, sizeof(told)) == (ssize_t)sizeof(told) ? told : 0;
}

static bool worker_make(struct worker *w, const struct bench_handoff *how)
{
    int ends[2];

    *w = (struct worker){ .how = how, .out = -1, .in = -1 };
    if (pipe(ends) || belay_cancel_new(&w->cancel, NULL))
        return false;
    w->in = ends[0];
    w->out = ends[1];
    return true;
}

static void worker_free(struct worker *w)
{
    belay_cancel_free(w->cancel);
    if (w->in >= 0)
        (void)close(w->in);
    if (w->out >= 0)
        (void)close(w->out);
}

/* The worker as a process, before there are threads or handles here. */
static pid_t start_process(struct worker *w, const struct bench_folder *f)
{
    (void)fflush(NULL);
    pid_t pid = fork();

    if (pid == 0) {
        (void)close(w->in);
        w->b = bench_belay_open(f, HANDOFF_TWO);
        (void)work(w);
        _exit(0);
    }
    (void)close(w->out);
    w->out = -1;
    return pid;
}

/* --- samples --- */

/* Seconds from the start of handing it over until the worker has got it, or 0. */
static double hand_over(struct belay *b, const struct worker *w)
{
    (void)poll(NULL, 0, SLEEPY_MS);
    double start = bench_now();
    double at = w->how->send(b) ? hear(w) : 0;

    return at > start ? at - start : 0;
}

/* Seconds of a one-row UPDATE, or 0. */
static double bare_commit(sqlite3_stmt *update, unsigned i)
{
    (void)poll(NULL, 0, SLEEPY_MS);
    (void)sqlite3_bind_int64(update, 1, i % ROWS);
    double start = bench_now();
    bool ok = sqlite3_step(update) == SQLITE_DONE;
    double took = bench_now() - start;

    return !sqlite3_reset(update) && ok ? took : 0;
}

struct samples {
    double threads[SAMPLES], processes[SAMPLES], bare[SAMPLES];
};

struct pair {
    struct belay *here;
    struct worker *worker;
};

static bool sample(struct samples *s, unsigned i, const struct pair *threads,
                   const struct pair *processes, sqlite3_stmt *update)
{
    s->bare[i] = bare_commit(update, i);
    s->threads[i] = hand_over(threads->here, threads->worker);
    s->processes[i] = hand_over(processes->here, processes->worker);
    return s->bare[i] > 0 && s->threads[i] > 0 && s->processes[i] > 0;
}

static bool sample_all(struct samples *s, unsigned n, const struct pair *threads,
                       const struct pair *processes, sqlite3_stmt *update)
{
    bool ok = hear(threads->worker) > 0 && hear(processes->worker) > 0;

    for (unsigned i = 0; i < WARM_UP && ok; i++)
        ok = sample(s, 0, threads, processes, update);
    for (unsigned i = 0; i < n && ok; i++)
        ok = sample(s, i, threads, processes, update);
    return ok;
}

/* Raw SQLite with rows to change. */
static sqlite3 *raw_open(const struct bench_folder *f)
{
    return bench_raw_open(
        f, "raw.db",
        "CREATE TABLE thing (id INTEGER PRIMARY KEY, n INTEGER, text TEXT) STRICT;"
        "WITH RECURSIVE i(n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM i"
        " WHERE n < 999) INSERT INTO thing SELECT n, 0, hex(randomblob(50)) FROM i");
}

static bool measure(struct samples *s, unsigned n, const struct bench_folder *f,
                    struct worker *thread, struct worker *process)
{
    pthread_t id;
    sqlite3 *db = raw_open(f);
    sqlite3_stmt *update =
        db ? bench_raw_prepare(db, "UPDATE thing SET n = n + 1 WHERE id = ?1") : NULL;
    struct belay *far = bench_belay_open(f, HANDOFF_TWO);
    thread->b = bench_belay_open(f, HANDOFF_ONE);
    bool ok = update && far && thread->b && !pthread_create(&id, NULL, work, thread);

    if (ok) {
        const struct pair threads = { thread->b, thread }, processes = { far, process };
        ok = sample_all(s, n, &threads, &processes, update);
        belay_cancel_trigger(thread->cancel);
        (void)pthread_join(id, NULL);
    }
    belay_close(thread->b);
    belay_close(far);
    (void)sqlite3_finalize(update);
    (void)sqlite3_close(db);
    return ok;
}

static void report(struct buf *fields, struct samples *s, unsigned n, double disk)
{
    double bare = bench_median(s->bare, n), one = bench_median(s->threads, n);
    double two = bench_median(s->processes, n);

    bench_field(fields, "ratio", one / bare);
    bench_field(fields, "ratio_processes", two / bare);
    bench_field(fields, "p50_ms", one * 1e3);
    bench_field(fields, "p99_ms", s->threads[n * 99 / 100] * 1e3); /* sorted by now */
    bench_field(fields, "p50_ms_processes", two * 1e3);
    bench_field(fields, "p99_ms_processes", s->processes[n * 99 / 100] * 1e3);
    bench_field(fields, "baseline_ms", bare * 1e3);
    bench_field(fields, "baseline_per_s", 1 / bare);
    bench_field(fields, "fdatasync_per_s", disk);
}

int bench_handoff(const struct bench_options *o, const char *name,
                  const struct bench_handoff *how)
{
    unsigned n = o->smoke ? 10 : SAMPLES;
    struct worker thread, process;
    struct samples s;
    struct bench_folder f;
    bool ok = bench_folder_make(&f) && (!how->prepare || how->prepare(&f));

    ok = worker_make(&thread, how) && ok;
    ok = worker_make(&process, how) && ok;
    pid_t pid = ok ? start_process(&process, &f) : -1;
    double disk = ok ? bench_fdatasync_rate(&f, o->smoke ? 0.05 : 0.5) : 0;
    ok = pid > 0 && disk > 0 && measure(&s, n, &f, &thread, &process);
    if (pid > 0 && kill(pid, SIGKILL) == 0) /* it still waits */
        (void)waitpid(pid, NULL, 0);
    worker_free(&thread);
    worker_free(&process);
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok)
        report(&fields, &s, n, disk);
    return bench_finish(o, name, &fields, ok);
}
