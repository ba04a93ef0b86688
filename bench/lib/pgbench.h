/* pgbench.h - PostgreSQL's own benchmark program as a baseline. */
#ifndef BENCH_PGBENCH_H
#define BENCH_PGBENCH_H

#include "pgserver.h"

/* Transactions a second of `clients` clients that run the script over and over, with
 * prepared statements, in the baseline's schema; 0, and said why, when it fails.  Less
 * than a second is ten runs of each client. */
double bench_pgbench(const struct bench_pg *pg, const char *script, unsigned clients,
                     double seconds);

/* A table `thing` of the same shape as row_thing's, with rows 0..n-1 of bench_fill, and
 * the script that updates a random one of them. */
bool bench_raw_things(const struct bench_pg *pg, unsigned n);
void bench_raw_update(unsigned n, char out[256]);

#endif /* BENCH_PGBENCH_H */
