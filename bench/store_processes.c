/* store.processes - 4 processes with 16 callers each on one file, against 1 process
 * with 64; and the longest any of them waited for the lock between processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disk.h"
#include "store/drivers/sqlite.h"

#define ROWS 10000
#define ROUNDS 5
#define PROCESSES 4

/* What a child tells its parent. */
struct report {
    double per_s;
    int64_t longest_wait_us;
};

static void child(const struct bench_folder *f, unsigned callers, double seconds,
                  int out)
{
    struct bench_store b;
    struct report r = { 0, 0 };

    if (bench_store_open(&b, f, "belay.db")) {
        r.per_s = bench_update_rate(&b, ROWS, callers, seconds);
        r.longest_wait_us = sqlite_longest_lock_wait_us(b.driver);
        bench_store_close(&b);
    }
    ssize_t n = write(out, &r, sizeof(r));
    _exit(n == (ssize_t)sizeof(r) ? 0 : 1);
}

/* The sum of what n processes reach together; 0 when one failed. */
static double run_processes(const struct bench_folder *f, unsigned n, unsigned callers,
                            double seconds, int64_t *longest_us)
{
    int pipes[2];
    double sum = 0;
    bool ok = true;

    if (pipe(pipes))
        return 0;
    for (unsigned i = 0; i < n; i++) {
        if (fork() == 0)
            child(f, callers, seconds, pipes[1]);
    }
    (void)close(pipes[1]);
    for (unsigned i = 0; i < n; i++) {
        struct report r;
        ok = read(pipes[0], &r, sizeof(r)) == (ssize_t)sizeof(r) && r.per_s > 0 && ok;
        sum += ok ? r.per_s : 0;
        if (ok && r.longest_wait_us > *longest_us)
            *longest_us = r.longest_wait_us;
    }
    (void)close(pipes[0]);
    for (unsigned i = 0; i < n; i++)
        (void)wait(NULL);
    return ok ? sum : 0;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    double seconds = o.smoke ? 0.1 : 1.0;
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    double one[ROUNDS], four[ROUNDS], disk[ROUNDS], ratio[ROUNDS], wait_ms[ROUNDS];
    struct bench_folder f;
    struct bench_store b;
    bool ok = bench_folder_make(&f);

    if (!ok)
        return 1;
    ok = bench_store_open(&b, &f, "belay.db") && bench_fill(&b, ROWS);
    bench_store_close(&b);
    for (unsigned i = 0; i < rounds && ok; i++) {
        int64_t ignored = 0, longest_us = 0;
        disk[i] = bench_fdatasync_rate(&f, seconds / 2);
        one[i] = run_processes(&f, 1, 64, seconds, &ignored);
        four[i] = run_processes(&f, PROCESSES, 64 / PROCESSES, seconds, &longest_us);
        wait_ms[i] = (double)longest_us / 1000;
        ok = disk[i] > 0 && one[i] > 0 && four[i] > 0;
        ratio[i] = ok ? four[i] / one[i] : 0;
    }
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(ratio, rounds));
        bench_field(&fields, "per_s", bench_median(four, rounds));
        bench_field(&fields, "baseline_per_s", bench_median(one, rounds));
        bench_field(&fields, "longest_wait_ms", bench_median(wait_ms, rounds));
        bench_field(&fields, "fdatasync_per_s", bench_median(disk, rounds));
    }
    return bench_finish(&o, "store.processes", &fields, ok);
}
