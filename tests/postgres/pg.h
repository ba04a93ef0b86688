/* pg.h - stores on a PostgreSQL server, opened as a case wants them. */
#ifndef TESTS_POSTGRES_PG_H
#define TESTS_POSTGRES_PG_H

#include "deeds.h"
#include "faults.h"
#include "harness.h"
#include "pgserver.h"

/* What harness_open opens with; set by a case before that.  pg_setup_reset gives a
 * server and the driver's defaults. */
struct pg_setup {
    const char *home;     /* of the server itself: schemas are dropped there */
    const char *url;      /* without a query */
    const char *settings; /* -c name=value ...; NULL: none */
    struct postgres_options options; /* but for the URL and the schema */
};
extern struct pg_setup pg_setup;
void pg_setup_reset(const char *url);

/* For tap_main: the driver that harness_open finds. */
extern const struct test_driver pg_driver;

/* The same for faults_main and killed_main. */
extern const struct fault_target pg_target;

/* The schema of a harness in this directory. */
void pg_schema_of(const char *dir, char out[PG_SCHEMA_MAX]);

#endif /* TESTS_POSTGRES_PG_H */
