#include "pg.h"

#include <stdlib.h>

struct pg_setup pg_setup;

void pg_setup_reset(const char *url)
{
    pg_setup =
        (struct pg_setup){ .home = url, .url = url, .options = { .retry_jitter = -1 } };
}

void pg_schema_of(const char *dir, char out[PG_SCHEMA_MAX])
{
    (void)snprintf(out, PG_SCHEMA_MAX, "t_%016llx",
                   (unsigned long long)key_hash(bytes_str(dir)));
}

static belay_rc open_setup(const struct driver_config *config, const char *dir,
                           struct driver **out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct postgres_param settings = { "options", pg_setup.settings };
    struct postgres_options options = pg_setup.options;
    char schema[PG_SCHEMA_MAX];

    pg_schema_of(dir, schema);
    options.schema = schema;
    belay_rc rc =
        postgres_options_from_uri(&options, bytes_str(strchr(pg_setup.url, ':') + 1),
                                  &settings, pg_setup.settings ? 1 : 0, &arena, err);
    return rc ? rc : postgres_open(out, &options, config, err);
}

static void forget(const char *dir)
{
    char words[128], schema[PG_SCHEMA_MAX];

    pg_schema_of(dir, schema);
    (void)snprintf(words, sizeof(words), "DROP SCHEMA IF EXISTS %s CASCADE", schema);
    (void)pg_test_run(pg_setup.home, words);
}

const struct test_driver pg_driver = { .name = "postgres",
                                       .open = open_setup,
                                       .durable = true,
                                       .hides = true,
                                       .waits = true,
                                       .forget = forget };

/* --- on a bad network --- */

static void use(const char *url, const struct limits *limits)
{
    pg_setup_reset(pg_test_url());
    pg_setup.url = url;
    pg_setup.options.listen = pg_test_url();
    pg_setup.options.request_timeout_ms = limits->request_timeout_ms;
    pg_setup.options.retries = limits->retries;
    pg_setup.options.retry_first_ms = limits->retry_first_ms;
    pg_setup.options.retry_base = limits->retry_base;
    pg_setup.options.retry_jitter = limits->retry_jitter;
}

static int connections(void)
{
    PGconn *pg = pg_test_connect(pg_test_url());
    char n[16] = "";
    bool told = pg && pg_test_ask(pg,
                                  "SELECT count(*) FROM pg_stat_activity WHERE"
                                  " application_name = 'belay'",
                                  n, sizeof(n));

    PQfinish(pg);
    return told ? (int)strtol(n, NULL, 10) : -1;
}

const struct fault_target pg_target = { .driver = &pg_driver,
                                        .home = pg_test_url,
                                        .use = use,
                                        .untried = "?sslmode=disable",
                                        .connections = connections };
