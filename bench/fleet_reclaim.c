/* fleet.reclaim - `belay work` is killed with SIGKILL while it runs a job under a lease of one
 * hour; another worker of the host runs it: p99 of milliseconds from the kill to the first
 * instruction of the job there, against 100 ms (`ratio` is the part of it), on a SQLite
 * file.  Beside it, as the limit, from SIGKILL to the pidfd that says so. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <belay/fleet.h>

#include "api/handle.h"
#include "exec.h"
#include "pinned.h"
#include "program.h"

#define ROUNDS_MAX 200
#define BAR_MS 100.0
#define FILE_NAME "belay.db"
#define LANE "work"
#define PATIENCE_S 20.0

/* --- the job: this program, started by a worker --- */

struct line {
    double at; /* ns */
    pid_t worker;
};

/* Says when and by whom it was started; the first of a round stays. */
static int be_job(const char *path)
{
    struct line l = { .at = bench_ns(), .worker = getppid() };
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    off_t before = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);

    if (fd < 0 || write(fd, &l, sizeof(l)) != (ssize_t)sizeof(l))
        return 1;
    (void)close(fd);
    if (before == 0)
        (void)pause(); /* until it is killed along with its worker */
    return 0;
}

/* Line i of the file, once it is there. */
static bool read_line(const char *path, unsigned i, struct line *out)
{
    for (double end = bench_now() + PATIENCE_S; bench_now() < end; (void)usleep(200)) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n =
            fd < 0 ? 0 : pread(fd, out, sizeof(*out), (off_t)(i * sizeof(struct line)));
        if (fd >= 0)
            (void)close(fd);
        if (n == (ssize_t)sizeof(*out))
            return true;
    }
    (void)fprintf(stderr, "fleet.reclaim: the job did not start\n");
    return false;
}

/* --- workers --- */

struct rig {
    struct bench_folder folder;
    struct belay *b;
    char program[512], self[512], store[512], exec[1200], jobs[512];
    pid_t workers[2];
};

static bool start_worker(struct rig *r, pid_t *out)
{
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    pid_t pid = fork();

    if (pid == 0 && dup2(none, STDOUT_FILENO) >= 0 && dup2(none, STDERR_FILENO) >= 0)
        (void)execl(r->program, "belay", "--store", r->store, "work", "--lane", LANE,
                    "--lease", "1h", "--exec", r->exec, (char *)NULL);
    if (pid == 0)
        _exit(127);
    if (none >= 0)
        (void)close(none);
    *out = pid;
    return pid > 0;
}

/* Until so many members are in the fleet of the store. */
static bool wait_members(struct rig *r, int members)
{
    struct belay_fleet_options o = { .size = sizeof(o) };

    for (double end = bench_now() + PATIENCE_S; bench_now() < end; (void)usleep(2000)) {
        struct belay_fleet_status status = { .size = sizeof(status) };
        struct belay_fleet *f;
        if (belay_fleet_observe(r->b->fleet, &o, &f, NULL) != BELAY_OK)
            continue;
        belay_rc rc = belay_fleet_status(f, &status, NULL);
        belay_fleet_leave(f);
        if (rc == BELAY_OK && status.members == members)
            return true;
    }
    (void)fprintf(stderr, "fleet.reclaim: the workers did not start\n");
    return false;
}

static void end_worker(pid_t *pid, int signal)
{
    if (*pid > 0 && kill(*pid, signal) == 0)
        (void)waitpid(*pid, NULL, 0);
    *pid = 0;
}

/* --- a round --- */

/* ms from the kill to the job's second start; negative when it failed. */
static double reclaim(struct rig *r)
{
    struct line first, second = { .at = 0 };
    double killed_at = 0;

    for (unsigned i = 0; i < 2; i++) {
        if (r->workers[i] == 0 && !start_worker(r, &r->workers[i]))
            return -1;
    }
    (void)unlink(r->jobs);
    if (!wait_members(r, 2) || !bench_submit(r->b, LANE, 1, NULL) ||
        !read_line(r->jobs, 0, &first))
        return -1;
    (void)usleep(3000);
    for (unsigned i = 0; i < 2; i++) {
        if (r->workers[i] != first.worker)
            continue;
        killed_at = bench_ns();
        (void)kill(r->workers[i], SIGKILL);
        if (!read_line(r->jobs, 1, &second))
            return -1;
        end_worker(&r->workers[i], SIGKILL);
    }
    return killed_at > 0 ? (second.at - killed_at) / 1e6 : -1;
}

static double pidfd_limit(void)
{
    pid_t child = fork();

    if (child == 0)
        for (;;)
            (void)pause();
    int fd = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd p = { .fd = fd, .events = POLLIN };
    (void)usleep(500);
    double start = bench_ns();
    (void)kill(child, SIGKILL);
    int n = poll(&p, 1, 10000);
    double ms = (bench_ns() - start) / 1e6;
    (void)waitpid(child, NULL, 0);
    (void)close(fd);
    return n == 1 ? ms : -1;
}

static int measure(struct rig *r, const struct bench_options *o)
{
    unsigned n = o->smoke ? 3 : ROUNDS_MAX;
    double times[ROUNDS_MAX], limits[ROUNDS_MAX];
    bool ok = true;

    for (unsigned i = 0; i < n && ok; i++) {
        times[i] = reclaim(r);
        limits[i] = pidfd_limit();
        ok = times[i] >= 0 && limits[i] >= 0;
    }
    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_percentile(times, n, 99) / BAR_MS);
        bench_field(&fields, "p50_ms", bench_percentile(times, n, 50));
        bench_field(&fields, "p99_ms", bench_percentile(times, n, 99));
        bench_field(&fields, "max_ms", times[n - 1]);
        bench_limit(o, &fields, "pidfd_ms", limits, n);
    }
    return bench_finish(o, "fleet.reclaim", &fields, ok);
}

/* This program, and `belay` in the folder above its own. */
static bool find_programs(struct rig *r)
{
    char above[600];
    ssize_t n = readlink("/proc/self/exe", r->self, sizeof(r->self) - 1);

    if (n <= 0)
        return false;
    r->self[n] = '\0';
    (void)snprintf(above, sizeof(above), "%s", r->self);
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(above, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return bench_program_in(above, "belay", r->program);
}

int main(int argc, char **argv)
{
    struct rig r = { .b = NULL };

    if (argc == 3 && strcmp(argv[1], "--job") == 0)
        return be_job(argv[2]);
    struct bench_options o = bench_parse(argc, argv);
    if (!find_programs(&r) || !bench_folder_make(&r.folder)) {
        (void)fprintf(stderr, "fleet.reclaim: cannot begin\n");
        return 1;
    }
    (void)snprintf(r.store, sizeof(r.store), "sqlite:%s/" FILE_NAME, r.folder.path);
    (void)snprintf(r.jobs, sizeof(r.jobs), "%s/jobs", r.folder.path);
    (void)snprintf(r.exec, sizeof(r.exec), "exec '%s' --job '%s'", r.self, r.jobs);
    r.b = bench_belay_open(&r.folder, FILE_NAME);
    int code = r.b ? measure(&r, &o) : 1;
    for (unsigned i = 0; i < 2; i++)
        end_worker(&r.workers[i], SIGTERM);
    belay_close(r.b);
    bench_folder_remove(&r.folder);
    return code;
}
