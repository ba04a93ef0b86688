/* pgserver.h - PostgreSQL servers for tests.
 *
 * The one that a test may use is in its environment (tests/run starts it).  A case that
 * stops or breaks its server starts one of its own: testserver.h. */
#ifndef TESTS_PGSERVER_H
#define TESTS_PGSERVER_H

#include <libpq-fe.h>
#include <stdio.h>

#include "store/drivers/postgres.h"

#define PG_SCHEMA_MAX 64
#define PG_URL_MAX 256

/* The server of this run, and the pooler before it; end the program with a message when
 * there is none. */
const char *pg_test_url(void);
const char *pg_test_pooler_url(void);

/* keywords and values of a URL without a query. */
MUST_USE belay_rc pg_test_options(const char *url, struct postgres_options *out,
                                  struct belay_arena *a, struct belay_error *err);

/* A plain connection, NULL with a line on standard output when there is none. */
PGconn *pg_test_connect(const char *url);

/* Statements run for their effect on a connection of their own; false when one fails. */
bool pg_test_run(const char *url, const char *words);

/* The first field of the first row as text into out; false when there is none. */
bool pg_test_ask(PGconn *pg, const char *words, char *out, size_t size);

#endif /* TESTS_PGSERVER_H */
