/* exec.idle - a worker that waits for work which does not come: milliseconds of processor
 * time in 30 s of a process whose worker is one blocking claim on a SQLite file (ratio,
 * cpu_ms: the bar is in milliseconds), and the statements that it sends to SQLite in that
 * time.  cpu_ms_program: of `belay work`, where the program is built (BELAY_BUILD_ROOT). */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exec.h"
#include "program.h"

#define FILE_NAME "belay.db"
#define LANE "nothing"

/* --- statements --- */

/* SQLite gives an extension nothing to carry, so what it counts is here. */
static _Atomic uint64_t statements;

static int count_one(unsigned kind, void *arg, void *statement, void *text)
{
    (void)kind;
    (void)arg;
    (void)statement;
    (void)text;
    atomic_fetch_add(&statements, 1);
    return 0;
}

static int count_all(sqlite3 *db, char **message, const void *api)
{
    (void)message;
    (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, count_one, NULL);
}

/* --- a worker in this process --- */

static double cpu_ms(clockid_t clock)
{
    struct timespec t = { 0, 0 };

    if (clock_gettime(clock, &t))
        return 0;
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct idle {
    struct belay *b;
    int64_t wait_ms;
};

static bool wait_for_nothing(void *arg, unsigned i)
{
    static const char *const lane = LANE;
    const struct idle *idle = arg;
    const struct belay_claim_policy policy = { .size = sizeof(policy),
                                               .lanes = &lane,
                                               .n_lanes = 1,
                                               .worker = "worker",
                                               .max_wait_ms = idle->wait_ms };
    struct belay_arena *arena = NULL;
    struct belay_works works = { .n = 1 };
    struct belay_error err;

    (void)i;
    bool ok = !belay_arena_new(&arena, &err) &&
              !belay_execution_claim(idle->b, &policy, arena, &works, &err);
    belay_arena_free(arena);
    return ok ? works.n == 0 : bench_failed("claim", &err);
}

struct found {
    double cpu_ms, statements, program_ms;
};

static bool measure_here(struct found *found, const struct bench_folder *f,
                         int64_t wait_ms)
{
    struct idle idle = { bench_belay_open(f, FILE_NAME), wait_ms };
    uint64_t before = atomic_load(&statements);
    double start = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
    double took = idle.b ? bench_crew(1, wait_for_nothing, &idle) : 0;

    found->cpu_ms = cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - start;
    found->statements = (double)(atomic_load(&statements) - before);
    belay_close(idle.b);
    return took * 1e3 >= 0.9 * (double)wait_ms;
}

/* --- the program --- */

static pid_t start_program(const char *path, const struct bench_folder *f)
{
    char store[512];

    (void)snprintf(store, sizeof(store), "sqlite:%s/" FILE_NAME, f->path);
    (void)fflush(NULL);
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    pid_t pid = fork();
    if (pid == 0 && dup2(none, STDOUT_FILENO) >= 0 && dup2(none, STDERR_FILENO) >= 0)
        (void)execl(path, "belay", "--store", store, "work", "--lane", LANE, "--exec",
                    "true", (char *)NULL);
    if (pid == 0)
        _exit(127);
    if (none >= 0)
        (void)close(none);
    return pid;
}

/* Its processor time once it has started; 0, and said so, when it ended by itself. */
static double program_ms(const char *path, const struct bench_folder *f, int wait_ms)
{
    pid_t pid = start_program(path, f);
    clockid_t clock;

    if (pid < 0 || clock_getcpuclockid(pid, &clock))
        return 0;
    (void)poll(NULL, 0, 1000);
    double start = cpu_ms(clock);
    (void)poll(NULL, 0, wait_ms);
    double used = cpu_ms(clock) - start;
    bool alive = waitpid(pid, NULL, WNOHANG) == 0;
    if (alive && kill(pid, SIGTERM) == 0)
        (void)waitpid(pid, NULL, 0);
    if (!alive)
        (void)fprintf(stderr, "bench: belay work ended by itself\n");
    return alive ? used : 0;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    int wait_ms = o.smoke ? 2000 : 30000;
    struct found found = { 0, 0, 0 };
    struct bench_folder f;
    char path[512];

    if (!bench_folder_make(&f))
        return 1;
    bool ok = !sqlite3_auto_extension((void (*)(void))count_all) &&
              measure_here(&found, &f, wait_ms);
    bool program = bench_program_in(getenv("BELAY_BUILD_ROOT"), "belay", path);
    if (ok && program && !o.smoke) {
        found.program_ms = program_ms(path, &f, wait_ms);
        ok = found.program_ms > 0;
    }
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", found.cpu_ms);
        bench_field(&fields, "cpu_ms", found.cpu_ms);
        bench_field(&fields, "statements", found.statements);
        if (found.program_ms > 0)
            bench_field(&fields, "cpu_ms_program", found.program_ms);
        bench_field(&fields, "seconds", wait_ms / 1e3);
    }
    return bench_finish(&o, "exec.idle", &fields, ok);
}
