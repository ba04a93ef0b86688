/* bench.h - figures that mean something on a noisy machine.
 *
 * A benchmark alternates rounds of the thing and of a baseline and prints the ratio of
 * their medians, never a bare time.  The last line is JSON:
 *
 *     {"bench":"store.memory","ratio":0.41,"per_s":...,"baseline_per_s":...,...}
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct bench_options {
    bool smoke; /* --smoke: prove that it runs, do not measure */
    bool tap;   /* --tap: one TAP line instead of the figures' bar deciding anything */
};

struct bench_options bench_parse(int argc, char **argv);

/* Seconds by the monotonic clock. */
double bench_now(void);

/* Sorts in place. */
double bench_median(double *values, unsigned n);

/* Appends ,"name":value with four significant digits. */
void bench_field(struct buf *out, const char *name, double value);

/* Whether raw one-row SQLite commits are as many as this disk allows (at least 0.45 of
 * its fdatasync rate); says so on stderr when they are not.  A smoke run is not judged.
 */
bool bench_plausible(const struct bench_options *o, double commits_per_s,
                     double fdatasync_per_s);

/* Prints the JSON line, or the TAP line of a smoke run.  Returns the exit code: 1 when
 * `ok` is false. */
int bench_finish(const struct bench_options *o, const char *name, struct buf *fields,
                 bool ok);

#endif /* BENCH_BENCH_H */
