#include "pinned.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

bool bench_pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set) == 0;
}

double bench_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

double bench_percentile(double *values, unsigned n, double p)
{
    (void)bench_median(values, n); /* sorts */
    unsigned at = (unsigned)(p / 100 * n);

    return values[at < n ? at : n - 1];
}

void bench_limit(const struct bench_options *o, struct buf *out, const char *name,
                 double *values, unsigned n)
{
    char spread_name[64];
    double median = bench_median(values, n);
    double spread = (values[n * 3 / 4] - values[n / 4]) / median;

    (void)snprintf(spread_name, sizeof(spread_name), "%s_spread", name);
    bench_field(out, name, median);
    bench_field(out, spread_name, spread);
    if (!o->smoke && spread > 0.10)
        (void)fprintf(stderr, "bench: %s moved by %.0f %% within the run\n", name,
                      spread * 100);
}

void bench_fleet_name(char out[32])
{
    (void)snprintf(out, 32, "bench-%ld", (long)getpid());
}
