/* Where things lie is a hint (places.h): what was moved is found again, and whoever lies there
 * now is left alone. */
#include "pg.h"

#define MEMBERS 40

static struct bytes name_of(int i, char out[16])
{
    (void)snprintf(out, 16, "m%04d", i);
    return bytes_str(out);
}

/* Things in a lane, behind others that will go. */
static belay_rc fill(struct txn *t, void *arg)
{
    belay_rc rc = BELAY_OK;
    char name[16];

    (void)arg;
    for (int i = 0; i < 2 * MEMBERS && rc == BELAY_OK; i++) {
        (void)name_of(i, name);
        rc = txn_rank_add(t, bytes_str(i < MEMBERS ? "chaff" : "lane"), i,
                          bytes_str(name));
        if (rc == BELAY_OK)
            rc = thing_insert(t, name, 0);
    }
    return rc;
}

/* Picked, and put from the lane to the held ones. */
static belay_rc take(struct txn *t, void *arg)
{
    const struct bytes lane = bytes_str("lane"), held = bytes_str("held");
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = { .indexes = &lane,
                         .n_indexes = 1,
                         .max_rank = RANK_MAX,
                         .limit = MEMBERS,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct hits hits;
    char name[16];
    belay_rc rc = txn_pick(t, &scan, &hits);

    *(size_t *)arg = rc ? 0 : hits.n;
    for (size_t i = 0; rc == BELAY_OK && i < hits.n; i++) {
        (void)name_of(MEMBERS + (int)i, name);
        rc = txn_rank_remove(t, lane, hits.hit[i].rank, hits.hit[i].member);
        if (rc == BELAY_OK)
            rc = txn_rank_add(t, held, (int64_t)i, hits.hit[i].member);
        if (rc == BELAY_OK)
            rc = thing_put(t, name, 1);
    }
    return rc;
}

/* What was taken is done. */
static belay_rc end(struct txn *t, void *arg)
{
    belay_rc rc = BELAY_OK;
    char name[16];

    (void)arg;
    for (int i = 0; i < MEMBERS && rc == BELAY_OK; i++) {
        struct bytes member = name_of(MEMBERS + i, name);
        rc = txn_rank_remove(t, bytes_str("held"), i, member);
        if (rc == BELAY_OK)
            rc = thing_put(t, name, 2);
    }
    return rc;
}

/* In the schema of the harness, which the words name as %s. */
static void run(const struct harness *h, const char *before, const char *after)
{
    char words[256], schema[PG_SCHEMA_MAX];

    pg_schema_of(h->dir, schema);
    (void)snprintf(words, sizeof(words), "%s %s.%s", before, schema, after);
    TAP_OK(h->t, pg_test_run(pg_test_url(), words));
}

static bool open_filled(struct harness *h, struct tap *t)
{
    size_t taken = 0;

    pg_setup_reset(pg_test_url());
    if (!harness_open(h, t, 0))
        return false;
    CHECK_RC(h, harness_run(h, fill, NULL), BELAY_OK);
    CHECK_RC(h, harness_run(h, take, &taken), BELAY_OK);
    return TAP_EQ(t, taken, MEMBERS);
}

static void check_done(struct harness *h)
{
    char name[16];

    for (int i = MEMBERS; i < 2 * MEMBERS; i++) {
        (void)name_of(i, name);
        TAP_EQ(h->t, thing_n(h, name), 2);
    }
}

static void unmoved(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;

    if (!open_filled(&h, t))
        return;
    CHECK_RC(&h, harness_run(&h, end, NULL), BELAY_OK);
    check_done(&h);
}

/* Both tables are written anew, without the chaff: everything lies elsewhere. */
static void rewritten(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;

    if (!open_filled(&h, t))
        return;
    run(&h, "DELETE FROM", "belay_rank WHERE idx = 'chaff'");
    run(&h, "DELETE FROM", "belay_thing WHERE id < 'm0040'");
    run(&h, "VACUUM FULL", "belay_rank");
    run(&h, "VACUUM FULL", "belay_thing");
    CHECK_RC(&h, harness_run(&h, end, NULL), BELAY_OK);
    check_done(&h);
}

static void expect_held(const struct harness *h, const char *n)
{
    char words[256], schema[PG_SCHEMA_MAX], out[32] = "";
    PGconn *pg = pg_test_connect(pg_test_url());

    pg_schema_of(h->dir, schema);
    (void)snprintf(words, sizeof(words),
                   "SELECT count(*) FROM %s.belay_rank WHERE idx = 'held'", schema);
    TAP_OK(h->t, pg_test_ask(pg, words, out, sizeof(out)));
    TAP_STR(h->t, out, n);
    PQfinish(pg);
}

/* Others lie where the held ones lay: there are more of them than were places. */
static void replaced(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    char words[256], schema[PG_SCHEMA_MAX];

    if (!open_filled(&h, t))
        return;
    run(&h, "DELETE FROM", "belay_rank WHERE idx = 'held'");
    run(&h, "VACUUM", "belay_rank");
    pg_schema_of(h.dir, schema);
    (void)snprintf(words, sizeof(words),
                   "INSERT INTO %s.belay_rank SELECT ns, 'held', rank, member || i FROM"
                   " %s.belay_rank, generate_series(1, 10) AS i WHERE idx = 'chaff'",
                   schema, schema);
    TAP_OK(t, pg_test_run(pg_test_url(), words));
    CHECK_RC(&h, harness_run(&h, end, NULL), BELAY_CORRUPT);
    expect_held(&h, "400");
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "places: what was taken is ended where it lies", unmoved },
        { "places: in a table that was rewritten it is found again", rewritten },
        { "places: who lies there now is left alone", replaced },
    };
    return tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&pg_driver, argc, argv);
}
