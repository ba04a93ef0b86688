#include "pgserver.h"

#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "program.h"
#include "store/drivers/postgres.h"

#define USER "postgres"

/* --- programs --- */

/* Debian keeps each version's programs in a folder of its own; the newest comes last. */
static bool debian_has(const char *name, char out[512])
{
    glob_t found;
    bool ok = false;

    if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &found))
        return false;
    for (size_t i = found.gl_pathc; i > 0 && !ok; i--)
        ok = bench_program_in(found.gl_pathv[i - 1], name, out);
    globfree(&found);
    return ok;
}

bool bench_pg_program(const char *name, char out[512])
{
    const char *only = getenv("BELAY_TEST_PGBIN");

    if (bench_program_in(only ? only : getenv("PATH"), name, out))
        return true;
    if (!only && debian_has(name, out))
        return true;
    (void)fprintf(stderr, "bench: %s is not installed\n", name);
    return false;
}

/* --- what the keeper does --- */

/* PostgreSQL does not run for root: then it runs for the user postgres. */
static bool become_user(void)
{
    const struct passwd *user = getuid() == 0 ? getpwnam(USER) : NULL;

    if (getuid() != 0)
        return true;
    return user && initgroups(USER, user->pw_gid) == 0 && setgid(user->pw_gid) == 0 &&
           setuid(user->pw_uid) == 0;
}

static pid_t spawn(const char *folder, const char *const *argv)
{
    char program[512];

    return bench_pg_program(argv[0], program)
               ? bench_keeper_spawn(folder, program, argv, become_user)
               : -1;
}

static bool make_cluster(const char *folder)
{
    const char *const argv[] = { "initdb",      "-D",     "data",
                                 "-U",          USER,     "--auth=trust",
                                 "--no-locale", "-EUTF8", "--no-sync",
                                 NULL };
    pid_t pid = spawn(folder, argv);
    int status = 1;

    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static pid_t start_server(void *arg)
{
    const struct bench_pg *pg = arg;
    const char *folder = pg->folder.path;
    char data[300], sockets[300];
    const char *const argv[] = { "postgres",
                                 "-D",
                                 data,
                                 sockets,
                                 "--listen_addresses=",
                                 "--fsync=on",
                                 "--synchronous_commit=on",
                                 "--full_page_writes=on",
                                 "--autovacuum=on",
                                 "--shared_buffers=256MB",
                                 "--max_wal_size=4GB",
                                 "--max_connections=100",
                                 NULL };

    if (!make_cluster(folder))
        return -1;
    (void)snprintf(data, sizeof(data), "%s/data", folder);
    (void)snprintf(sockets, sizeof(sockets), "--unix_socket_directories=%s", folder);
    return spawn(folder, argv);
}

static bool answers(void *arg)
{
    const struct bench_pg *pg = arg;

    return PQping(pg->url) == PQPING_OK;
}

/* --- a server of one's own --- */

/* A folder on a disk that the server's user can reach. */
static bool make_folder(struct bench_pg *pg)
{
    const struct passwd *user = getpwnam(USER);

    if (!bench_keeper_folder(&pg->folder))
        return false;
    return getuid() != 0 ||
           (user && chown(pg->folder.path, user->pw_uid, user->pw_gid) == 0);
}

static void name_server(struct bench_pg *pg)
{
    struct buf url = { .ptr = NULL };

    buf_append_str(&url, "postgres://" USER "@");
    for (const char *at = pg->folder.path; *at; at++)
        buf_printf(&url, *at == '/' ? "%%2F" : "%c", *at);
    buf_append_str(&url, "/postgres");
    (void)snprintf(pg->url, sizeof(pg->url), "%.*s", (int)url.len,
                   (const char *)url.ptr);
    buf_release(&url);
}

static bool start_own(struct bench_pg *pg)
{
    const struct bench_kept kept = { .what = "PostgreSQL",
                                     .stop = SIGINT,
                                     .start = start_server,
                                     .answers = answers,
                                     .arg = pg,
                                     .folder = &pg->folder };

    if (!make_folder(pg))
        return false;
    name_server(pg);
    return bench_keeper_start(&pg->keeper, &kept);
}

static const char *given_server(const struct bench_options *o)
{
    const char *url = getenv("BELAY_BENCH_POSTGRES");

    if ((!url || !*url) && o->smoke)
        url = getenv("BELAY_TEST_POSTGRES");
    return url && *url ? url : NULL;
}

bool bench_pg_open(struct bench_pg *pg, const struct bench_options *o)
{
    const char *url = given_server(o);
    char words[256];

    *pg = (struct bench_pg){ .keeper.leash = -1 };
    (void)snprintf(pg->schema, sizeof(pg->schema), "bench_%ld", (long)getpid());
    if (url) {
        (void)snprintf(pg->url, sizeof(pg->url), "%s", url);
        if (!bench_folder_make(&pg->folder))
            return false;
    } else if (!start_own(pg)) {
        return false;
    }
    (void)snprintf(words, sizeof(words), "CREATE SCHEMA %s_raw", pg->schema);
    return bench_pg_do(pg, words);
}

void bench_pg_close(struct bench_pg *pg)
{
    char words[256];

    if (pg->keeper.pid == 0 && pg->folder.path[0]) {
        (void)snprintf(words, sizeof(words),
                       "SET client_min_messages = error;"
                       "DROP SCHEMA IF EXISTS %s, %s_raw CASCADE",
                       pg->schema, pg->schema);
        (void)bench_pg_do(pg, words);
        bench_folder_remove(&pg->folder);
    }
    bench_keeper_end(&pg->keeper);
    *pg = (struct bench_pg){ .keeper.leash = -1 };
}

/* --- connections --- */

PGconn *bench_pg_connect(const struct bench_pg *pg)
{
    PGconn *c = PQconnectdb(pg->url);
    char words[128];

    (void)snprintf(words, sizeof(words), "SET search_path = %s_raw", pg->schema);
    if (PQstatus(c) == CONNECTION_OK && bench_pg_run(c, words))
        return c;
    (void)fprintf(stderr, "bench: no connection: %s", PQerrorMessage(c));
    PQfinish(c);
    return NULL;
}

bool bench_pg_run(PGconn *c, const char *words)
{
    PGresult *r = PQexec(c, words);
    bool ok =
        PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;

    if (!ok)
        (void)fprintf(stderr, "bench: %s: %s", words, PQerrorMessage(c));
    PQclear(r);
    return ok;
}

bool bench_pg_do(const struct bench_pg *pg, const char *words)
{
    PGconn *c = bench_pg_connect(pg);
    bool ok = c && bench_pg_run(c, words);

    PQfinish(c);
    return ok;
}

bool bench_pg_store(struct bench_store *b, const struct bench_pg *pg, unsigned pool,
                    const struct schema *schema)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct driver_config config = { schema, clock_system(), random_system() };
    struct store_options options = { .schema = schema,
                                     .clock = config.clock,
                                     .random = config.random };
    struct postgres_options server = { .pool = pool };
    struct belay_error err;
    const char *rest = strchr(pg->url, ':');

    *b = (struct bench_store){ .driver = NULL };
    belay_rc rc = postgres_options_from_uri(&server, bytes_str(rest ? rest + 1 : ""),
                                            NULL, 0, &arena, &err);
    server.schema = pg->schema;
    if (rc || postgres_open(&b->driver, &server, &config, &err) ||
        store_open(&b->store, b->driver, &options, &err) ||
        store_space(b->store, bytes_str("default"), &b->space, &err))
        return bench_failed("open", &err);
    return true;
}

struct belay *bench_pg_belay(const struct bench_pg *pg, unsigned pool)
{
    struct belay_error err;
    struct belay *b = NULL;
    char url[1024];

    (void)snprintf(url, sizeof(url), "%s?schema=%s&pool=%u", pg->url, pg->schema, pool);
    if (belay_open(url, NULL, &b, &err))
        (void)bench_failed("open", &err);
    return b;
}
