#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct bench_options bench_parse(int argc, char **argv)
{
    struct bench_options o = { .smoke = false };

    for (int i = 1; i < argc; i++) {
        o.smoke |= strcmp(argv[i], "--smoke") == 0;
        o.tap |= strcmp(argv[i], "--tap") == 0;
    }
    return o;
}

double bench_now(void)
{
    struct belay_clock clock = clock_system();

    return (double)clock.mono_us(clock.arg) / 1e6;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, unsigned n)
{
    qsort(values, n, sizeof(*values), ascending);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void bench_field(struct buf *out, const char *name, double value)
{
    buf_printf(out, ",\"%s\":%.4g", name, value);
}

bool bench_plausible(const struct bench_options *o, double commits_per_s,
                     double fdatasync_per_s)
{
    if (o->smoke || commits_per_s >= 0.45 * fdatasync_per_s)
        return true;
    (void)fprintf(
        stderr,
        "bench: implausible baseline: %.0f commits/s on a disk of %.0f fdatasync/s\n",
        commits_per_s, fdatasync_per_s);
    return false;
}

int bench_finish(const struct bench_options *o, const char *name, struct buf *fields,
                 bool ok)
{
    buf_append_char(fields, '\0');
    if (o->tap)
        printf("# {\"bench\":\"%s\"%s}\n%sok 1 - %s runs\n1..1\n", name,
               (const char *)fields->ptr, ok ? "" : "not ", name);
    else
        printf("{\"bench\":\"%s\"%s}\n", name, (const char *)fields->ptr);
    buf_release(fields);
    return ok ? 0 : 1;
}
