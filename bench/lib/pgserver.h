/* pgserver.h - the PostgreSQL server of a benchmark.
 *
 * One of its own, on a real disk and with durable settings (keeper.h).  BELAY_BENCH_POSTGRES
 * may name another one; a smoke run also takes the tests' (BELAY_TEST_POSTGRES).  What a
 * benchmark makes there is in two schemas of its own, dropped at the end.
 */
#ifndef BENCH_PGSERVER_H
#define BENCH_PGSERVER_H

#include <libpq-fe.h>

#include "inbox.h"
#include "keeper.h"

struct bench_pg {
    struct bench_folder folder; /* on the server's disk, or the working directory's */
    char url[512];              /* without options */
    char schema[64];            /* Belay's tables; "<schema>_raw" has the baseline's */
    struct bench_keeper keeper; /* none: the server is somebody else's */
};

/* Before any thread is started.  False, and said why, when there is no server. */
bool bench_pg_open(struct bench_pg *pg, const struct bench_options *o);
void bench_pg_close(struct bench_pg *pg); /* also when it did not open */

/* Where a program of PostgreSQL is; false when it is not installed. */
bool bench_pg_program(const char *name, char out[512]);

/* A plain connection that looks into the baseline's schema; NULL, and said why. */
PGconn *bench_pg_connect(const struct bench_pg *pg);
/* Statements for their effect, each in a transaction of its own where it wants one. */
bool bench_pg_run(PGconn *c, const char *words);
/* The same on a connection of their own. */
bool bench_pg_do(const struct bench_pg *pg, const char *words);

/* Stores on the server, as those of disk.h and inbox.h; `pool` connections at most. */
bool bench_pg_store(struct bench_store *b, const struct bench_pg *pg, unsigned pool,
                    const struct schema *schema);
struct belay *bench_pg_belay(const struct bench_pg *pg, unsigned pool);

#endif /* BENCH_PGSERVER_H */
