/* Several programs on one schema: who makes it, who may use it, who wakes whom. */
#include "base/clock.h"
#include "base/hash.h"
#include "pg.h"
#include "sharing.h"

static belay_rc open_in(const char *dir, struct driver **out, struct belay_error *err)
{
    const struct driver_config config = { .schema = &schema_things,
                                          .clock = clock_system(),
                                          .random = random_system() };

    return pg_driver.open(&config, dir, out, err);
}

/* --- making the schema --- */

/* Statements in which every %s is the schema of the directory. */
static bool run_in(const char *dir, const char *words)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    char schema[PG_SCHEMA_MAX];

    pg_schema_of(dir, schema);
    for (const char *at = words; *at; at++) {
        if (at[0] == '%' && at[1] == 's') {
            buf_append_str(&text, schema);
            at++;
        } else {
            buf_append_char(&text, *at);
        }
    }
    buf_append_char(&text, '\0');
    return pg_test_run(pg_test_url(), (const char *)text.ptr);
}

static void checks_the_format(struct tap *t)
{
    struct belay_error err = { .code = 0 };
    struct driver *d = NULL;

    pg_setup_reset(pg_test_url());
    TAP_OK(t, run_in("format", "CREATE SCHEMA %s; CREATE TABLE %s.customers (id int)"));
    TAP_EQ(t, open_in("format", &d, &err), BELAY_UNSUPPORTED_FORMAT);
    TAP_OK(t, strstr(err.message, "another program"));
    TAP_OK(t, run_in("format", "DROP TABLE %s.customers"));
    if (TAP_EQ(t, open_in("format", &d, &err), BELAY_OK))
        driver_close(d);
    TAP_OK(t, run_in("format", "UPDATE %s.belay_layout SET layout = 3"));
    TAP_EQ(t, open_in("format", &d, &err), BELAY_UNSUPPORTED_FORMAT);
    TAP_EQ(t, err.expected, 2);
    TAP_EQ(t, err.actual, 3);
    pg_driver.forget("format");
}

/* --- a schema of an earlier program --- */

/* What layout 1 had in place of what layout 2 has. */
static const char to_layout_1[] =
    "DROP INDEX %s.belay_rank_place; DROP FUNCTION %s.belay2_place(text, text);"
    " ALTER TABLE %s.belay_rank REPLICA IDENTITY DEFAULT,"
    " ADD CONSTRAINT belay_rank_place PRIMARY KEY (ns, idx, rank, member);"
    " UPDATE %s.belay_layout SET layout = 1";

/* The first field of what a query in the schema of the directory finds. */
static void expect_in(struct tap *t, const char *dir, const char *query,
                      const char *want)
{
    char words[512], schema[PG_SCHEMA_MAX], out[256] = "";
    PGconn *pg = pg_test_connect(pg_test_url());

    pg_schema_of(dir, schema);
    (void)snprintf(words, sizeof(words), "SET search_path = %s", schema);
    PQclear(PQexec(pg, words));
    TAP_OK(t, pg_test_ask(pg, query, out, sizeof(out)));
    TAP_STR(t, out, want);
    PQfinish(pg);
}

static void expect_layout_2(struct tap *t, const char *dir)
{
    expect_in(t, dir, "SELECT string_agg(layout::text, ' ') FROM belay_layout", "2");
    expect_in(t, dir,
              "SELECT count(*) FROM pg_constraint WHERE conrelid ="
              " 'belay_rank'::regclass AND contype = 'p'",
              "0");
    expect_in(t, dir,
              "SELECT string_agg(indisunique || ' ' || substring(pg_get_indexdef("
              "indexrelid) FROM 'INDEX [a-z_]*'), ', ') || string_agg("
              "pg_get_indexdef(indexrelid, 1, true) || ', ' ||"
              " pg_get_indexdef(indexrelid, 2, true) || ', ' ||"
              " pg_get_indexdef(indexrelid, 3, true) || ', ' ||"
              " pg_get_indexdef(indexrelid, 4, true), '') FROM pg_index WHERE indrelid"
              " = 'belay_rank'::regclass",
              "true INDEX belay_rank_placebelay2_place(ns, idx), rank, member, ns");
    expect_in(t, dir,
              "SELECT relreplident FROM pg_class WHERE oid = 'belay_rank'::regclass",
              "f");
}

static belay_rc add_members(struct txn *t, void *arg)
{
    belay_rc rc = BELAY_OK;
    char name[16];

    (void)arg;
    for (int i = 0; i < 40 && rc == BELAY_OK; i++) {
        (void)snprintf(name, sizeof(name), "m%02d", i);
        rc = txn_rank_add(t, bytes_str(i % 2 ? "odd" : "even"), i, bytes_str(name));
    }
    return rc;
}

static belay_rc remove_members(struct txn *t, void *arg)
{
    belay_rc rc = txn_rank_remove(t, bytes_str("odd"), 1, bytes_str("m01"));

    (void)arg;
    for (int i = 0; i < 2 && rc == BELAY_OK; i++)
        rc = txn_rank_remove(t, bytes_str("even"), INT64_C(2) * i,
                             bytes_str(i == 0 ? "m00" : "m02"));
    return rc;
}

static void brings_up_to_date(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;

    pg_setup_reset(pg_test_url());
    if (!harness_open(&h, t, 0))
        return;
    expect_layout_2(t, h.dir);
    thing_set(&h, "a", 1);
    CHECK_RC(&h, harness_run(&h, add_members, NULL), BELAY_OK);
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    TAP_OK(t, memmem(before.ptr, before.len, "rank \"odd\" 39 \"m39\"", 18));
    TAP_OK(t, run_in(h.dir, to_layout_1));
    TAP_OK(t, harness_reopen(&h));
    expect_layout_2(t, h.dir);
    CLEANUP(buf_release) struct buf after = harness_dump(&h);
    TAP_OK(t, bytes_eq(buf_view(&before), buf_view(&after)));
    CHECK_RC(&h, harness_run(&h, remove_members, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, remove_members, NULL), BELAY_CORRUPT);
}

struct comers {
    const char *dir;
    belay_rc rc[4];
};

static void come(void *arg, unsigned i)
{
    struct comers *c = arg;
    struct driver *d = NULL;

    c->rc[i] = open_in(c->dir, &d, NULL);
    if (c->rc[i] == BELAY_OK)
        driver_close(d);
}

/* Whoever comes first does it, and the others find it done. */
static void many_bring_up_to_date(struct tap *t)
{
    struct comers c = { .dir = "many" };

    pg_setup_reset(pg_test_url());
    come(&c, 0);
    for (int again = 0; again < 5; again++) {
        TAP_OK(t, run_in(c.dir, to_layout_1));
        crew_run(t, COUNT_OF(c.rc), come, &c);
        for (size_t i = 0; i < COUNT_OF(c.rc); i++)
            TAP_EQ(t, c.rc[i], BELAY_OK);
        expect_layout_2(t, c.dir);
    }
    pg_driver.forget(c.dir);
}

/* A dictionary that has grown since the tables were made. */
static void adds_columns(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;

    pg_setup_reset(pg_test_url());
    if (!harness_open(&h, t, 0))
        return;
    thing_set(&h, "a", 1);
    TAP_OK(t, run_in(h.dir, "ALTER TABLE %s.belay_thing DROP COLUMN text;"
                            " DROP TABLE %s.belay_part"));
    TAP_OK(t, harness_reopen(&h));
    TAP_EQ(t, thing_n(&h, "a"), 1);
    thing_set(&h, "b", 2);
    TAP_EQ(t, thing_n(&h, "b"), 2);
}

/* A dump that was loaded into a server whose transactions have other numbers: the
 * entries are there, and what comes after a raised epoch comes behind them. */
static void restored_elsewhere(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct deed d;

    pg_setup_reset(pg_test_url());
    if (!harness_open(&h, t, 0))
        return;
    deed_found(&h, &d, 0);
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    TAP_OK(t, run_in(h.dir, "UPDATE %s.belay_feed SET xid = xid + 1000000000000;"
                            " UPDATE %s.belay_epoch SET epoch = epoch + 1"));
    TAP_EQ(t, deed_times(&h, &d), 1);
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    TAP_EQ(t, deed_times(&h, &d), 2);
}

/* --- roles, as the manual grants them --- */

static const char roles[] =
    "DROP ROLE IF EXISTS t_engine; DROP ROLE IF EXISTS t_reader;"
    " CREATE ROLE t_engine LOGIN; CREATE ROLE t_reader LOGIN";
static const char grants[] =
    "GRANT USAGE ON SCHEMA %s TO t_engine, t_reader;"
    " GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO t_engine;"
    " GRANT SELECT ON ALL TABLES IN SCHEMA %s TO t_reader";

/* The server's URL with another user. */
static void url_of(const char *user, char out[PG_URL_MAX])
{
    const char *rest = strchr(pg_test_url(), '@');

    (void)snprintf(out, PG_URL_MAX, "postgres://%s%s", user, rest ? rest : "");
}

/* Who may not change the tables of an earlier program is told what to do. */
static void check_not_updated(struct tap *t, const char *dir)
{
    struct belay_error err = { .code = 0 };
    struct driver *d = NULL;

    TAP_EQ(t, open_in(dir, &d, &err), BELAY_DENIED);
    TAP_STR(t, err.reason, "schema");
    TAP_OK(t, strstr(err.message, "open the store once as its owner"));
    expect_in(t, dir, "SELECT layout FROM belay_layout", "1");
}

static void roles_are_enough(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    char engine[PG_URL_MAX], reader[PG_URL_MAX];

    url_of("t_engine", engine);
    url_of("t_reader", reader);
    pg_setup_reset(pg_test_url());
    TAP_OK(t, pg_test_run(pg_test_url(), roles));
    if (!harness_open(&h, t, 0))
        return;
    thing_set(&h, "a", 1);
    TAP_OK(t, run_in(h.dir, grants));

    pg_setup.url = engine;
    if (TAP_OK(t, harness_reopen(&h))) {
        thing_set(&h, "a", 2);
        thing_set(&h, "b", 1);
        thing_drop(&h, "b");
    }
    pg_setup.url = reader;
    if (TAP_OK(t, harness_reopen(&h))) {
        struct deed d = { .id = "a" };
        TAP_EQ(t, thing_n(&h, "a"), 2);
        CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_DENIED);
    }
    TAP_OK(t, run_in(h.dir, to_layout_1));
    check_not_updated(t, h.dir);
    pg_setup.url = engine;
    check_not_updated(t, h.dir);
    pg_setup.url = pg_test_url();
    TAP_OK(t, harness_reopen(&h));
    pg_setup.url = engine;
    if (TAP_OK(t, harness_reopen(&h)))
        CHECK_RC(&h, harness_run(&h, add_members, NULL), BELAY_OK);
    TAP_OK(t, run_in(h.dir, "DROP OWNED BY t_engine, t_reader"));
    TAP_OK(t, pg_test_run(pg_test_url(), "DROP ROLE t_engine; DROP ROLE t_reader"));
}

/* --- settings of the server that must not matter --- */

struct isolation {
    struct harness *h;
    struct deed deed;
    unsigned failed[4];
};

static void do_fifty(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct isolation *c = arg;

    for (int n = 0; n < 50; n++) {
        struct deed d = c->deed;
        struct belay_error err = { .code = 0 };
        arena_reset(&arena);
        belay_rc rc = txn_run(c->h->space, deed_body, &d, NULL, &arena, &err);
        if (rc && c->failed[i]++ == 0)
            printf("# %s: %s\n", belay_error_info((int)rc)->name, err.message);
    }
}

static void any_isolation(struct tap *t)
{
    static const char *const levels[] = {
        "-c default_transaction_isolation=serializable",
        "-c default_transaction_isolation=repeatable\\ read",
        "-c default_transaction_isolation=read\\ uncommitted",
        ("-c default_transaction_deferrable=on -c default_transaction_isolation="
         "serializable"),
    };

    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        CLEANUP(harness_close) struct harness h;
        struct isolation c = { .h = &h };
        bool more = true;

        pg_setup_reset(pg_test_url());
        pg_setup.settings = levels[i];
        if (!harness_open(&h, t, HARNESS_REAL_TIME))
            return;
        deed_found(&h, &c.deed, 0);
        crew_run(t, COUNT_OF(c.failed), do_fifty, &c);
        for (size_t k = 0; k < COUNT_OF(c.failed); k++)
            TAP_EQ(t, c.failed[k], 0);
        TAP_EQ(t, deed_times(&h, &c.deed), 200);
        while (more && !driver_erase(h.driver, bytes_str("default"), 100, &more, NULL))
            continue;
        TAP_OK(t, !more);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_case own[] = {
        { "sharing: a layout of the future and a stranger's tables are refused",
          checks_the_format },
        { "sharing: an earlier layout is brought up to date", brings_up_to_date },
        { "sharing: by many who come first at once", many_bring_up_to_date },
        { "sharing: what a later dictionary has is added", adds_columns },
        { "sharing: feeds of another server's dump are read", restored_elsewhere },
        { "sharing: roles that may not create anything", roles_are_enough },
        { "sharing: the default isolation does not matter", any_isolation },
    };
    return sharing_main(&pg_target, own, COUNT_OF(own), argc, argv);
}
