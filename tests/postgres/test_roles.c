/* The roles of docs/postgres.md, made as it says: the owner makes the tables, the engine
 * works with them, the reader reads. */
#include <stdlib.h>

#include "base/attr.h"
#include "cli.h"
#include "pgserver.h"
#include "tap.h"

/* --- the words of the manual --- */

static const char *const to_set_up[] = {
    "CREATE ROLE belay LOGIN",
    "CREATE DATABASE belay OWNER belay ENCODING 'UTF8' TEMPLATE template0",
};

static const char to_name[] =
    "CREATE ROLE belay_engine LOGIN; CREATE ROLE belay_reader LOGIN";

static const char to_grant[] =
    "GRANT USAGE ON SCHEMA belay TO belay_engine, belay_reader;"
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA belay TO "
    "belay_engine;"
    "GRANT SELECT ON ALL TABLES IN SCHEMA belay TO belay_reader;"
    "ALTER DEFAULT PRIVILEGES FOR ROLE belay IN SCHEMA belay"
    "    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO belay_engine;"
    "ALTER DEFAULT PRIVILEGES FOR ROLE belay IN SCHEMA belay GRANT SELECT ON TABLES TO"
    "    belay_reader;"
    "GRANT pg_read_all_stats TO belay_engine";

static const char *const to_clean_up[] = {
    "DROP DATABASE IF EXISTS belay WITH (FORCE)",
    "DROP ROLE IF EXISTS belay_engine",
    "DROP ROLE IF EXISTS belay_reader",
    "DROP ROLE IF EXISTS belay",
};

/* --- hands --- */

/* The server's URL with another user, and the database belay. */
static const char *url_of(char out[PG_URL_MAX], const char *user)
{
    const char *host = strchr(pg_test_url(), '@');
    int n = host ? (int)strcspn(host + 1, "/") : 0;

    (void)snprintf(out, PG_URL_MAX, "postgres://%s@%.*s/belay", user, n,
                   host ? host + 1 : "");
    return out;
}

static bool run_all(const char *const *words, size_t n)
{
    bool ok = true;

    for (size_t i = 0; i < n; i++)
        ok = pg_test_run(pg_test_url(), words[i]) && ok;
    return ok;
}

static void check_cli(struct tap *t, const char *user, const char *words, int status,
                      const char *text)
{
    char url[PG_URL_MAX];
    struct cli c;

    cli_run(&c, "", url_of(url, user), words);
    bool said = !text || strstr(c.text, text);
    if (!TAP_EQ(t, c.status, status) || !TAP_OK(t, said))
        printf("# %s: %s: %s\n", user, words, c.text);
}

/* A statement that the role may not run. */
static void check_forbidden(struct tap *t, const char *user, const char *words)
{
    char url[PG_URL_MAX];
    PGconn *pg = pg_test_connect(url_of(url, user));
    PGresult *r = pg ? PQexec(pg, words) : NULL;

    if (!TAP_STR(t, r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL, "42501"))
        printf("# %s: %s\n", user, words);
    PQclear(r);
    PQfinish(pg);
}

/* A hash of everything that is stored. */
static void hash_store(struct tap *t, char out[64])
{
    char url[PG_URL_MAX];
    PGconn *pg = pg_test_connect(url_of(url, "postgres"));

    out[0] = '\0';
    TAP_OK(t,
           pg && pg_test_ask(
                     pg,
                     "SELECT md5(string_agg(x, '')) FROM (SELECT query_to_xml(format("
                     "'SELECT * FROM belay.%I t ORDER BY t::text', tablename), true,"
                     " true, '')::text AS x FROM pg_tables WHERE schemaname = 'belay'"
                     " AND tablename <> 'belay_waiter' ORDER BY tablename) q",
                     out, 64));
    PQfinish(pg);
}

/* --- cases, in this order --- */

static void needs_its_owner(struct tap *t)
{
    (void)run_all(to_clean_up, COUNT_OF(to_clean_up));
    TAP_OK(t, run_all(to_set_up, COUNT_OF(to_set_up)) &&
                  pg_test_run(pg_test_url(), to_name));
    check_cli(t, "belay_engine", "namespace ls", 77, "as its owner (belay doctor)");
    check_cli(t, "belay_reader", "namespace ls", 77, "as its owner (belay doctor)");
    check_cli(t, "belay", "doctor", 0, "durable");
    check_cli(t, "belay_engine", "namespace ls", 77, "grant");
}

/* clang-format off */
static const char *const writes[] = {
    "namespace create other",
    "queue enqueue s --delivery after_current_turn_commit --slot join --payload 1",
    "queue enqueue s --delivery earliest_safe_boundary --slot exclusive --payload 2 --payload 3",
    "queue claim s --owner o",
    "session commit s --expect 0 --file commit",
    "session meta set s --name n",
    "session tombstone s n1",
    "session vacuum s",
    "attachment intent s a --uri file:a",
    "attachment commit s a",
    "attachment intent s b --uri file:b",
    "blob put commit",
    "gc --grace 0s",
    "blob put --pin p commit",
    "epoch raise",
};

static const char *const last_writes[] = {
    "attachment forget s b",
    "blob unpin p",
    "clock reset",
    "session delete s --confirm s",
    "namespace delete other --confirm other",
};

static const char *const looks[] = {
    "namespace ls", "queue ls s", "session show s", "session ls", "session log s",
    "session nodes s", "session path s", "session node s n2", "session checkpoint s",
    "session meta show s", "attachment ls s", "blob pins", "doctor", "check", "epoch show",
    "clock show", "audit ls", "audit verify",
};

static const char commits[] =
    "echo '{\"graph\":{\"type\":\"append\",\"nodes\":[{\"node_id\":\"n1\",\"kind\":\"plugin\","
    "\"plugin_type\":\"t\",\"body\":{}},{\"node_id\":\"n2\",\"kind\":\"plugin\","
    "\"plugin_type\":\"t\",\"body\":{}}]},\"checkpoint\":{\"turn_state\":{\"turn_index\":1}}}'"
    " > commit";
/* clang-format on */

/* The reader tries first, and leaves nothing. */
static void check_writes(struct tap *t, const char *const *words, size_t n)
{
    char before[64], after[64];

    for (size_t i = 0; i < n; i++) {
        hash_store(t, before);
        check_cli(t, "belay_reader", words[i], 77, "denied");
        hash_store(t, after);
        TAP_STR(t, after, before);
        check_cli(t, "belay_engine", words[i], 0, NULL);
    }
}

static void engine_writes(struct tap *t)
{
    char url[PG_URL_MAX];

    TAP_OK(t, shell_run(commits));
    TAP_OK(t, pg_test_run(url_of(url, "postgres"), to_grant));
    check_writes(t, writes, COUNT_OF(writes));
}

static void both_read(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(looks); i++) {
        check_cli(t, "belay_engine", looks[i], 0, NULL);
        check_cli(t, "belay_reader", looks[i], 0, NULL);
    }
    check_writes(t, last_writes, COUNT_OF(last_writes));
}

static void engine_makes_nothing(struct tap *t)
{
    static const char *const forbidden[] = {
        "CREATE TABLE belay.more (n int)",
        "DROP TABLE belay.belay_slot",
        "ALTER TABLE belay.belay_slot ADD COLUMN more int",
        "TRUNCATE belay.belay_slot",
        "CREATE SCHEMA more",
        "SELECT * FROM another.secret",
    };
    char url[PG_URL_MAX];

    TAP_OK(t,
           pg_test_run(url_of(url, "postgres"),
                       "CREATE SCHEMA another; CREATE TABLE another.secret (n int)"));
    for (size_t i = 0; i < COUNT_OF(forbidden); i++) {
        check_forbidden(t, "belay_engine", forbidden[i]);
        check_forbidden(t, "belay_reader", forbidden[i]);
    }
}

/* A table and a column that a later version would bring. */
static void what_comes_later(struct tap *t)
{
    char url[PG_URL_MAX];

    TAP_OK(t, pg_test_run(url_of(url, "belay"),
                          "DROP TABLE belay.belay_slot; ALTER TABLE belay.belay_epoch"
                          " DROP COLUMN epoch"));
    check_cli(t, "belay_engine", "epoch show", 77, "as its owner (belay doctor)");
    check_cli(t, "belay", "doctor", 0, NULL);
    check_cli(t, "belay_engine", "namespace create later", 0, NULL);
    check_cli(t, "belay_reader", "namespace ls", 0, "later");
    TAP_OK(t, run_all(to_clean_up, COUNT_OF(to_clean_up)));
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "roles: who may not make the schema says that its owner has to",
          needs_its_owner },
        { "roles: the engine writes what the reader is denied", engine_writes },
        { "roles: the engine and the reader read everything", both_read },
        { "roles: the engine makes no tables and sees no other schema",
          engine_makes_nothing },
        { "roles: what the owner adds later is theirs, too", what_comes_later },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
