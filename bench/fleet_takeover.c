/* fleet.takeover - from the SIGKILL of a holder whose lease is of one hour to the grant of
 * its subject to another process that waits for it: p99 of milliseconds, against 20 ms
 * (`ratio` is the part of it).  Beside it, as the limit, from SIGKILL to the pidfd that says
 * so. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <belay/fleet.h>

#include "bench.h"
#include "pinned.h"

#define ROUNDS_MAX 300
#define BAR_MS 20.0

static const struct belay_contest_subject subject = { "subject", 7, 1 };
static const struct belay_contest_terms terms = { "owner", 5, 3600000 };

struct page {
    _Atomic uint32_t is_held;
    _Atomic uint64_t killed_at; /* ns */
};

/* A process that holds the subject until it is killed. */
static void be_holder(const char *name, struct page *p)
{
    struct belay_fleet_options o = { .size = sizeof(o) };
    struct belay_contest_claim claim;
    struct belay_fleet *f;
    struct belay_error err;

    if (belay_fleet_join(name, &o, &f, &err) ||
        belay_contest_try(f, &subject, &terms, &claim, &err) || !claim.is_claimed)
        _exit(3);
    p->is_held = 1;
    for (;;)
        (void)pause();
}

/* A process that kills the holder while the other one waits. */
static void be_killer(pid_t holder, struct page *p)
{
    (void)usleep(3000);
    p->killed_at = (uint64_t)bench_ns();
    (void)kill(holder, SIGKILL);
    _exit(0);
}

/* ms from the kill to the grant; negative when it failed. */
static double take_over(struct belay_fleet *f, const char *name, struct page *p)
{
    struct belay_contest_claim claim;
    struct belay_error err;
    pid_t holder, killer;

    p->is_held = 0;
    if ((holder = fork()) == 0)
        be_holder(name, p);
    for (unsigned i = 0; i < 100000 && !p->is_held; i++)
        (void)usleep(50);
    if ((killer = fork()) == 0)
        be_killer(holder, p);
    belay_rc rc = belay_contest_claim(f, &subject, &terms, 10000, NULL, &claim, &err);
    double at = bench_ns();
    (void)waitpid(killer, NULL, 0);
    (void)waitpid(holder, NULL, 0);
    if (rc != BELAY_OK || belay_contest_release(&claim.guard, NULL, &err) != BELAY_OK)
        return -1;
    return (at - (double)p->killed_at) / 1e6;
}

/* ms from the kill to the pidfd. */
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

static int measure(struct belay_fleet *f, const char *name, struct page *p,
                   const struct bench_options *o)
{
    unsigned n = o->smoke ? 5 : ROUNDS_MAX;
    double times[ROUNDS_MAX], limits[ROUNDS_MAX];
    bool ok = true;

    for (unsigned i = 0; i < n && ok; i++) {
        times[i] = take_over(f, name, p);
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
    return bench_finish(o, "fleet.takeover", &fields, ok);
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    struct belay_fleet_options options = { .size = sizeof(options) };
    struct page *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct belay_fleet *f;
    struct belay_error err;
    char name[32];

    bench_fleet_name(name);
    if (p == MAP_FAILED || belay_fleet_join(name, &options, &f, &err)) {
        (void)fprintf(stderr, "fleet.takeover: cannot begin\n");
        return 1;
    }
    int code = measure(f, name, p, &o);
    belay_fleet_leave(f);
    if (belay_fleet_remove(name, NULL, &err) != BELAY_OK)
        code = 1;
    return code;
}
