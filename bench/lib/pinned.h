/* pinned.h - nanoseconds: what benchmarks of shared memory need besides bench.h.
 *
 * Times of a few nanoseconds mean something only beside a limit measured in the same run on
 * the same cores; and when the limit itself moves, they mean little, which is then said.
 */
#ifndef BENCH_PINNED_H
#define BENCH_PINNED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "bench.h"

/* This thread on that processor from now on; false where there is none such. */
bool bench_pin(int cpu);

/* Nanoseconds of the monotonic clock. */
double bench_ns(void);

/* Sorts; the p-th percentile, 0 to 100. */
double bench_percentile(double *values, unsigned n, double p);

/* Appends the median of a limit and how far its middle half spreads, as `name` and
 * `name_spread`; says on standard error when that is over 10 %.  A smoke run is not judged. */
void bench_limit(const struct bench_options *o, struct buf *out, const char *name,
                 double *values, unsigned n);

/* A name for a fleet of this process alone. */
void bench_fleet_name(char out[32]);

#endif /* BENCH_PINNED_H */
