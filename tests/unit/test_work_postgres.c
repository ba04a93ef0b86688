#include "test_work_postgres.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "pgserver.h"

static struct {
    PGconn *admin;
    char name[PG_SCHEMA_MAX];
} schema;

static bool run(const char *words)
{
    PGresult *r = PQexec(schema.admin, words);
    bool ok = PQresultStatus(r) == PGRES_COMMAND_OK;

    if (!ok)
        printf("# %s: %s", words, PQerrorMessage(schema.admin));
    PQclear(r);
    return ok;
}

static void drop(void)
{
    char words[128];

    (void)snprintf(words, sizeof(words), "DROP SCHEMA IF EXISTS %s CASCADE",
                   schema.name);
    (void)run(words);
    PQfinish(schema.admin);
    schema.admin = NULL;
}

/* A name that nobody else has, and a connection that stays. */
static void begin(void)
{
    struct belay_clock clock = clock_system();

    (void)snprintf(schema.name, sizeof(schema.name), "work_%llx_%ld",
                   (unsigned long long)clock.wall_ms(clock.arg), (long)getpid());
    schema.admin = pg_test_connect(pg_test_url());
    if (!schema.admin || !run("SET client_min_messages = warning") || atexit(drop))
        exit(1);
}

belay_rc work_postgres_open(struct driver **out, const struct driver_config *config,
                            struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct postgres_options options = { .retry_jitter = -1 };

    if (!schema.admin)
        begin();
    options.schema = schema.name;
    belay_rc rc = pg_test_options(pg_test_url(), &options, &arena, err);
    return rc ? rc : postgres_open(out, &options, config, err);
}

bool work_postgres_empty(void)
{
    char words[512];

    (void)snprintf(
        words, sizeof(words),
        "DO $$ DECLARE t name; BEGIN FOR t IN SELECT tablename FROM pg_tables"
        " WHERE schemaname = '%s' AND tablename <> 'belay_layout' LOOP"
        " EXECUTE 'DELETE FROM %s.' || quote_ident(t); END LOOP; END $$",
        schema.name, schema.name);
    return run(words);
}
