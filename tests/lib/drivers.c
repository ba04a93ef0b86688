#include "drivers.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "naive.h"
#include "pgserver.h"
#include "redisserver.h"
#include "store/drivers/memory.h"
#include "store/drivers/postgres.h"
#include "store/drivers/sqlite.h"
#include "store/drivers/valkey.h"
#include "store/fault.h"
#include "store/trace.h"

static belay_rc open_memory(const struct driver_config *config, const char *dir,
                            struct driver **out, struct belay_error *err)
{
    (void)dir;
    return memory_open(out, config, err);
}

/* Both decorators with nothing armed: nobody may notice them. */
static belay_rc open_decorated(const struct driver_config *config, const char *dir,
                               struct driver **out, struct belay_error *err)
{
    struct driver *memory = NULL, *faulty = NULL;
    belay_rc rc = open_memory(config, dir, &memory, err);

    if (!rc)
        rc = fault_wrap(&faulty, memory, &config->clock, err);
    if (!rc)
        rc = trace_wrap(out, faulty, NULL, NULL, err);
    if (rc)
        driver_close(faulty ? faulty : memory);
    return rc;
}

static belay_rc open_naive(const struct driver_config *config, const char *dir,
                           struct driver **out, struct belay_error *err)
{
    (void)dir;
    return naive_open(out, config, err);
}

/* A driver that runs bodies one after the other. */
static belay_rc open_queued(const struct driver_config *config, const char *dir,
                            struct driver **out, struct belay_error *err)
{
    const struct shim_options options = { .drop = -1, .bodies = BODIES_QUEUED };
    struct driver *naive = NULL;
    belay_rc rc = open_naive(config, dir, &naive, err);

    if (!rc)
        rc = shim_wrap(out, naive, &options, err);
    if (rc)
        driver_close(naive);
    return rc;
}

static belay_rc open_sqlite(const struct driver_config *config, const char *dir,
                            struct driver **out, struct belay_error *err)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/store.db", dir);
    return sqlite_open(out, path, config, err);
}

static belay_rc open_sqlite_memory(const struct driver_config *config, const char *dir,
                                   struct driver **out, struct belay_error *err)
{
    (void)dir;
    return sqlite_open(out, ":memory:", config, err);
}

/* Schemas take long to make, so this program keeps those it has made and empties them.
 * A directory has the same one until it is forgotten. */
#define SCHEMAS_MAX 64

static struct {
    pthread_mutex_t mutex;
    char dir[SCHEMAS_MAX][TEMP_DIR_MAX]; /* empty: the schema is free */
} schemas = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* The number of the directory's schema; SCHEMAS_MAX: there is none left. */
static size_t find_schema(const char *dir)
{
    size_t found = SCHEMAS_MAX;

    pthread_mutex_lock(&schemas.mutex);
    for (size_t i = SCHEMAS_MAX; i > 0; i--) {
        if (schemas.dir[i - 1][0] == '\0')
            found = i - 1;
    }
    for (size_t i = 0; i < SCHEMAS_MAX; i++) {
        if (strcmp(schemas.dir[i], dir) == 0)
            found = i;
    }
    if (found < SCHEMAS_MAX)
        (void)snprintf(schemas.dir[found], TEMP_DIR_MAX, "%s", dir);
    pthread_mutex_unlock(&schemas.mutex);
    return found;
}

/* Nobody else's: another program may have this one's number later. */
static void schema_name(const char *dir, size_t i, char out[PG_SCHEMA_MAX])
{
    const char *last = strrchr(dir, '/');
    uint64_t beside = key_hash(bytes_of(dir, last ? (size_t)(last - dir) : 0));

    (void)snprintf(out, PG_SCHEMA_MAX, "t_%016llx_%d_%zu", (unsigned long long)beside,
                   (int)getpid(), i);
}

static belay_rc open_schema(const struct driver_config *config, const char *dir,
                            const char *url, struct postgres_options *options,
                            struct driver **out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    char schema[PG_SCHEMA_MAX];

    schema_name(dir, find_schema(dir), schema);
    options->schema = schema;
    belay_rc rc = pg_test_options(url, options, &arena, err);
    return rc ? rc : postgres_open(out, options, config, err);
}

static belay_rc open_postgres(const struct driver_config *config, const char *dir,
                              struct driver **out, struct belay_error *err)
{
    struct postgres_options options = { .retry_jitter = -1 };

    return open_schema(config, dir, pg_test_url(), &options, out, err);
}

/* Behind a pooler that gives each transaction another connection. */
static belay_rc open_pooled(const struct driver_config *config, const char *dir,
                            struct driver **out, struct belay_error *err)
{
    struct postgres_options options = { .retry_jitter = -1,
                                        .pooler = true,
                                        .listen = pg_test_url() };

    return open_schema(config, dir, pg_test_pooler_url(), &options, out, err);
}

static void forget_postgres(const char *dir)
{
    size_t i = find_schema(dir);
    char schema[PG_SCHEMA_MAX], words[512];

    schema_name(dir, i, schema);
    (void)snprintf(
        words, sizeof(words),
        "DO $$ DECLARE t name; BEGIN FOR t IN SELECT tablename FROM pg_tables"
        " WHERE schemaname = '%s' AND tablename <> 'belay_layout' LOOP"
        " EXECUTE 'DELETE FROM %s.' || quote_ident(t); END LOOP; END $$",
        schema, schema);
    if (i == SCHEMAS_MAX || !pg_test_run(pg_test_url(), words))
        return;
    pthread_mutex_lock(&schemas.mutex);
    schemas.dir[i][0] = '\0';
    pthread_mutex_unlock(&schemas.mutex);
}

static belay_rc open_valkey(const struct driver_config *config, const char *dir,
                            struct driver **out, struct belay_error *err)
{
    struct valkey_options options = { .retry_jitter = -1 };
    char host[REDIS_HOST_MAX], prefix[REDIS_PREFIX_MAX];

    redis_test_prefix(dir, prefix);
    options.port = (unsigned)redis_test_port(redis_test_url(), host);
    options.host = host;
    options.prefix = prefix;
    return valkey_open(out, &options, config, err);
}

static void forget_valkey(const char *dir)
{
    char prefix[REDIS_PREFIX_MAX];

    redis_test_prefix(dir, prefix);
    (void)redis_test_forget(redis_test_url(), prefix);
}

/* clang-format off */
const struct test_driver test_drivers[] = {
    { "memory",             open_memory,        false, true,  false, NULL },
    { "memory+trace+fault", open_decorated,     false, true,  false, NULL },
    { "sqlite",             open_sqlite,        true,  false, false, NULL },
    { "sqlite:memory",      open_sqlite_memory, false, false, false, NULL },
    { "postgres",           open_postgres,      true,  true,  true,  forget_postgres },
    { "postgres+pgbouncer", open_pooled,        true,  true,  true,  forget_postgres },
    { "valkey",             open_valkey,        true,  true,  false, forget_valkey },
    { "naive",              open_naive,         false, true,  false, NULL },
    { "naive+queue",        open_queued,        false, true,  false, NULL },
};
/* clang-format on */
const size_t n_test_drivers = COUNT_OF(test_drivers);

const struct test_driver *test_driver_find(const char *name)
{
    for (size_t i = 0; i < n_test_drivers; i++) {
        if (strcmp(test_drivers[i].name, name) == 0)
            return &test_drivers[i];
    }
    return NULL;
}
