/* Worlds on a PostgreSQL server, each in a schema of its own.
 *
 * A schema takes long to make, so this program keeps those it has made and empties them;
 * at its end they are dropped.  Everything here is done by one thread. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store_postgres.h"

#define SCHEMAS_MAX 64
#define NAME_MAX_LEN 64
#define WAIT_MS 20000

static struct {
    PGconn *admin;
    char dir[SCHEMAS_MAX][160]; /* whose it is; empty: nobody's */
    bool made[SCHEMAS_MAX];
    bool other_layout[SCHEMAS_MAX]; /* cannot be used again */
} schemas;

static const char *server_url(void)
{
    const char *url = getenv("BELAY_TEST_POSTGRES");

    if (url && *url)
        return url;
    printf("Bail out! BELAY_TEST_POSTGRES is not set; tests/run sets it\n");
    exit(1);
}

/* --- statements --- */

/* The chatter of cascades. */
static void no_notice(void *arg, const PGresult *r)
{
    (void)arg;
    (void)r;
}

static PGconn *admin(void)
{
    if (schemas.admin)
        return schemas.admin;
    schemas.admin = PQconnectdb(server_url());
    if (PQstatus(schemas.admin) != CONNECTION_OK) {
        printf("Bail out! no connection: %s", PQerrorMessage(schemas.admin));
        exit(1);
    }
    (void)PQsetNoticeReceiver(schemas.admin, no_notice, NULL);
    return schemas.admin;
}

static PGresult *run(const char *words)
{
    return PQexec(admin(), words);
}

static bool is_ok(const PGresult *r)
{
    ExecStatusType status = PQresultStatus(r);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Run for its effect. */
static bool did(const char *words)
{
    PGresult *r = run(words);
    bool ok = is_ok(r);

    if (!ok)
        printf("# %s: %s", words, PQerrorMessage(schemas.admin));
    PQclear(r);
    return ok;
}

/* --- schemas --- */

/* Nobody else's: programs of the same number may share a server, one after the other. */
static void name_of(size_t i, char out[NAME_MAX_LEN])
{
    static long long born;

    if (born == 0) {
        struct timespec now;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        born = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    }
    (void)snprintf(out, NAME_MAX_LEN, "nouns_%llx_%ld_%zu", born, (long)getpid(), i);
}

/* The number of the directory's schema; SCHEMAS_MAX: it has none. */
static size_t find(const char *dir)
{
    size_t i = 0;

    while (i < SCHEMAS_MAX && strcmp(schemas.dir[i], dir) != 0)
        i++;
    return i;
}

/* Connections that were closed, or whose process was killed, may have something to finish:
 * each tells its schema as the name of its program. */
static bool left_alone(const char *name)
{
    static const struct timespec pause = { .tv_nsec = 1000000 };
    char words[256];

    (void)snprintf(words, sizeof(words),
                   "SELECT FROM pg_stat_activity WHERE application_name = '%s'", name);
    for (int ms = 0; ms < WAIT_MS; ms++) {
        PGresult *r = run(words);
        bool alone = is_ok(r) && PQntuples(r) == 0;
        PQclear(r);
        if (alone)
            return true;
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    printf("# somebody is still in schema %s\n", name);
    return false;
}

static bool drop(const char *name)
{
    char words[256];

    (void)snprintf(words, sizeof(words), "DROP SCHEMA IF EXISTS %s CASCADE", name);
    return did(words);
}

static void drop_all(void)
{
    char name[NAME_MAX_LEN];

    for (size_t i = 0; i < SCHEMAS_MAX; i++) {
        name_of(i, name);
        if (schemas.made[i] && left_alone(name))
            (void)drop(name);
    }
    PQfinish(schemas.admin);
    schemas.admin = NULL;
}

static bool empty(const char *name)
{
    char words[512];

    (void)snprintf(
        words, sizeof(words),
        "DO $$ DECLARE t name; BEGIN FOR t IN SELECT tablename FROM pg_tables"
        " WHERE schemaname = '%s' AND tablename <> 'belay_layout' LOOP"
        " EXECUTE 'DELETE FROM %s.' || quote_ident(t); END LOOP; END $$",
        name, name);
    return did(words);
}

/* --- the store --- */

bool postgres_url(const char *dir, char *out, size_t size)
{
    static bool cleans_up;
    size_t i = find(dir) < SCHEMAS_MAX ? find(dir) : find("");
    char name[NAME_MAX_LEN];

    if (i == SCHEMAS_MAX)
        return false;
    if (!cleans_up)
        cleans_up = atexit(drop_all) == 0;
    name_of(i, name);
    (void)snprintf(schemas.dir[i], sizeof(schemas.dir[i]), "%s", dir);
    schemas.made[i] = true;
    int len = snprintf(out, size, "%s?schema=%s&application_name=%s", server_url(),
                       name, name);
    return len >= 0 && (size_t)len < size;
}

void postgres_forget(const char *dir)
{
    size_t i = find(dir);
    char name[NAME_MAX_LEN];

    if (!*dir || i == SCHEMAS_MAX)
        return;
    name_of(i, name);
    if (left_alone(name) && (schemas.other_layout[i] ? drop(name) : empty(name))) {
        schemas.dir[i][0] = '\0';
        schemas.other_layout[i] = false;
    }
}

/* --- below the library --- */

/* Byte strings of standard SQL, X'6f', are bits here. */
static void translate(const char *sql, char *out, size_t size)
{
    size_t len = 0;

    for (const char *at = sql; *at && len + 3 < size; at++) {
        if (at[0] == 'X' && at[1] == '\'') {
            memcpy(out + len, "'\\x", 3);
            len += 3;
            at++;
        } else {
            out[len++] = *at;
        }
    }
    out[len] = '\0';
}

/* In the directory's schema; NULL when it has none. */
static PGresult *run_in(const char *dir, const char *sql)
{
    char words[1024], name[NAME_MAX_LEN];
    size_t i = find(dir);

    if (i == SCHEMAS_MAX)
        return NULL;
    name_of(i, name);
    (void)snprintf(words, sizeof(words), "SET search_path = %s", name);
    if (!did(words))
        return NULL;
    translate(sql, words, sizeof(words));
    return run(words);
}

bool postgres_damage(const char *dir, const char *sql, char *why, size_t size)
{
    PGresult *r = run_in(dir, sql);
    bool ok = is_ok(r);
    /* A statement that meets nothing damages nothing: that would be a wrong test. */
    bool met = ok && strtol(PQcmdTuples(r), NULL, 10) > 0;

    if (met && strstr(sql, "belay_layout"))
        schemas.other_layout[find(dir)] = true;
    if (!ok)
        (void)snprintf(why, size, "%s", PQerrorMessage(schemas.admin));
    else
        (void)snprintf(why, size, "nothing was changed by: %s", sql);
    PQclear(r);
    return met;
}

bool postgres_ask(const char *dir, const char *sql, char *out, size_t size)
{
    PGresult *r = run_in(dir, sql);
    bool found = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) > 0;

    if (found)
        (void)snprintf(out, size, "%s", PQgetvalue(r, 0, 0));
    PQclear(r);
    return found;
}
