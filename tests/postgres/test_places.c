/* Where things lie is a hint (places.h): what was moved is found again, and whoever lies there
 * now is left alone. */
#include <pthread.h>
#include <unistd.h>

#include "pg.h"

#define MEMBERS 40
#define LOOKS 10000 /* of a millisecond */

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

static void expect_in(const struct harness *h, const char *index, const char *n)
{
    char words[256], schema[PG_SCHEMA_MAX], out[32] = "";
    PGconn *pg = pg_test_connect(pg_test_url());

    pg_schema_of(h->dir, schema);
    (void)snprintf(words, sizeof(words),
                   "SELECT count(*) FROM %s.belay_rank WHERE idx = '%s'", schema,
                   index);
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
    expect_in(&h, "held", "400");
}

/* What is picked now and what was added before are removed at once. */
struct turn {
    size_t picked, runs;
};

static belay_rc end_and_pick(struct txn *t, void *arg)
{
    struct turn *turn = arg;
    const struct bytes chaff = bytes_str("chaff");
    struct scan scan = {
        .indexes = &chaff, .n_indexes = 1, .max_rank = RANK_MAX, .limit = MEMBERS
    };
    struct hits hits;
    belay_rc rc = txn_pick(t, &scan, &hits);

    turn->picked = rc ? 0 : hits.n;
    turn->runs++;
    if (rc == BELAY_OK)
        rc = end(t, NULL);
    for (size_t i = turn->picked; i > 0 && rc == BELAY_OK; i--) /* not in their order */
        rc = txn_rank_remove(t, chaff, hits.hit[i - 1].rank, hits.hit[i - 1].member);
    return rc;
}

static void together(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct turn turn = { 0 };

    if (!open_filled(&h, t))
        return;
    CHECK_RC(&h, harness_run(&h, end_and_pick, &turn), BELAY_OK);
    TAP_EQ(t, turn.picked, MEMBERS);
    TAP_EQ(t, turn.runs, 1); /* they were where they were thought to be */
    expect_in(&h, "chaff", "0");
    expect_in(&h, "held", "0");
    check_done(&h);
}

/* One of those that were added is at another rank: damage, and nothing is removed. */
static void not_together(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct turn turn = { 0 };

    if (!open_filled(&h, t))
        return;
    run(&h, "UPDATE", "belay_rank SET rank = 500 WHERE member = 'm0060'");
    CHECK_RC(&h, harness_run(&h, end_and_pick, &turn), BELAY_CORRUPT);
    expect_in(&h, "chaff", "40");
    expect_in(&h, "held", "40");
}

/* --- many, each with a value of its own --- */

#define MANY 300 /* more than one statement */

static belay_rc fill_many(struct txn *t, void *arg)
{
    belay_rc rc = BELAY_OK;
    char name[16];

    (void)arg;
    for (int i = 0; i < MANY && rc == BELAY_OK; i++) {
        /* Where they lie has nothing to do with their names. */
        (void)name_of(i * 7 % MANY, name);
        rc = txn_rank_add(t, bytes_str("many"), 0, bytes_str(name));
        if (rc == BELAY_OK)
            rc = thing_insert(t, name, 0);
    }
    return rc;
}

static int64_t value_of(int turn, int i)
{
    return turn * 1000 + i;
}

/* The first of them are picked, and stay in the index. */
struct share {
    int turn;
    int from, to;
    bool picks;
    int runs;
};

static belay_rc put_share(struct txn *t, void *arg)
{
    struct share *share = arg;
    const struct bytes many = bytes_str("many");
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = { .indexes = &many,
                         .n_indexes = 1,
                         .max_rank = RANK_MAX,
                         .limit = (size_t)share->to,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    belay_rc rc = BELAY_OK;
    struct hits hits;
    char name[16];

    share->runs++;
    if (share->picks)
        rc = txn_pick(t, &scan, &hits);
    for (int i = share->from; i < share->to && rc == BELAY_OK; i++) {
        (void)name_of(i, name);
        rc = thing_put(t, name, value_of(share->turn, i));
    }
    return rc;
}

static void check_share(struct harness *h, const struct share *share)
{
    char name[16];

    for (int i = share->from; i < share->to; i++) {
        (void)name_of(i, name);
        TAP_EQ(h->t, thing_n(h, name), value_of(share->turn, i));
    }
}

/* Picked and put, then put where they lie, some of them twice, so that they lie in yet another
 * order; and all of them again. */
static void own_values(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct share all = { .turn = 1, .to = MANY, .picks = true };
    struct share some = { .turn = 2, .from = 50, .to = 90, .picks = true };

    pg_setup_reset(pg_test_url());
    if (!harness_open(&h, t, 0))
        return;
    CHECK_RC(&h, harness_run(&h, fill_many, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, put_share, &all), BELAY_OK);
    check_share(&h, &all);
    CHECK_RC(&h, harness_run(&h, put_share, &some), BELAY_OK);
    check_share(&h, &some);
    all.turn = 3;
    all.picks = false;
    CHECK_RC(&h, harness_run(&h, put_share, &all), BELAY_OK);
    check_share(&h, &all);
    all.turn = 4;
    all.picks = true;
    CHECK_RC(&h, harness_run(&h, put_share, &all), BELAY_OK);
    check_share(&h, &all);
    /* They were where they were thought to be. */
    TAP_EQ(t, all.runs, 3);
    TAP_EQ(t, some.runs, 1);
}

/* Somebody has changed one of them: the plan is a conflict, and changes none. */
static void one_has_changed(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct share all = { .turn = 1, .to = MANY, .picks = true };
    char name[16];
    struct raw raw;

    pg_setup_reset(pg_test_url());
    if (!harness_open(&h, t, 0))
        return;
    CHECK_RC(&h, harness_run(&h, fill_many, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, put_share, &all), BELAY_OK);
    TAP_OK(t, raw_begin(&raw, &h));
    for (int i = 0; i < 6; i++) {
        (void)name_of(i, name);
        int64_t ver = raw_ver(&raw, name);
        raw_guard(&raw, name, ver);
        raw_put(&raw, name, ver + 1, i);
    }
    run(&h, "UPDATE", "belay_thing SET ver = ver + 1 WHERE id = 'm0004'");
    CHECK_RC(&h, raw_commit(&raw), BELAY_OK);
    TAP_OK(t, raw.result.conflict);
    TAP_EQ(t, raw.result.failed_guard, 4);
    raw_end(&raw);
    check_share(&h, &all);
}

/* --- somebody is faster than the looks that explain a refusal --- */

struct planned {
    struct raw raw;
    belay_rc rc;
};

static void *commit_planned(void *arg)
{
    struct planned *p = arg;

    p->rc = raw_commit(&p->raw);
    return NULL;
}

static void plan_end_of(struct raw *r, const char *member, int64_t rank)
{
    int64_t ver = raw_ver(r, member);

    raw_guard(r, member, ver);
    raw_put(r, member, ver + 1, 2);
    raw_rank(r, EFFECT_RANK_REMOVE, "held", member, rank, 0);
}

/* So many wait for a table of this schema. */
static bool somebody_waits(const struct harness *h, PGconn *pg, const char *n)
{
    char words[256], schema[PG_SCHEMA_MAX], out[16] = "";

    pg_schema_of(h->dir, schema);
    (void)snprintf(words, sizeof(words),
                   "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation ="
                   " '%s.belay_rank'::regclass",
                   schema);
    for (int i = 0; i < LOOKS; i++) {
        if (pg_test_ask(pg, words, out, sizeof(out)) && strcmp(out, n) == 0)
            return true;
        (void)usleep(1000);
    }
    return false;
}

/* A plan with outdated places is refused.  Between the look at a guard and the look at its
 * member somebody takes the member, as one may: a conflict, and nothing is damaged.  Two
 * locks upon the ranks hold the plan, and then the look at the member before that one; they
 * are granted in order. */
static void taken_between_looks(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    char lock[128], take_it[512], schema[PG_SCHEMA_MAX];
    struct planned p;
    pthread_t thread;

    if (!open_filled(&h, t))
        return;
    run(&h, "DELETE FROM", "belay_rank WHERE idx = 'chaff'");
    run(&h, "VACUUM FULL", "belay_rank");
    pg_schema_of(h.dir, schema);
    (void)snprintf(lock, sizeof(lock),
                   "BEGIN; LOCK TABLE %s.belay_rank IN ACCESS EXCLUSIVE MODE", schema);
    (void)snprintf(take_it, sizeof(take_it),
                   "UPDATE %s.belay_thing SET ver = ver + 1 WHERE id = 'm0041';"
                   " DELETE FROM %s.belay_rank WHERE idx = 'held' AND member = 'm0041';"
                   " COMMIT",
                   schema, schema);
    PGconn *watch = pg_test_connect(pg_test_url());
    PGconn *first = pg_test_connect(pg_test_url());
    PGconn *second = pg_test_connect(pg_test_url());

    TAP_OK(t, raw_begin(&p.raw, &h));
    plan_end_of(&p.raw, "m0040", 0);
    plan_end_of(&p.raw, "m0041", 1); /* two of a kind are done where they lie */
    PQclear(PQexec(first, lock));
    TAP_OK(t, pthread_create(&thread, NULL, commit_planned, &p) == 0);
    TAP_OK(t, somebody_waits(&h, watch, "1")); /* the plan */
    TAP_OK(t, PQsendQuery(second, lock));
    TAP_OK(t, somebody_waits(&h, watch, "2"));
    PQclear(PQexec(first, "COMMIT"));
    for (PGresult *got; (got = PQgetResult(second));)
        PQclear(got);
    TAP_OK(t, somebody_waits(&h, watch, "1")); /* the first look at a member */
    PQclear(PQexec(second, take_it));
    (void)pthread_join(thread, NULL);
    CHECK_RC(&h, p.rc, BELAY_OK);
    TAP_OK(t, p.raw.result.conflict);
    raw_end(&p.raw);
    PQfinish(first);
    PQfinish(second);
    PQfinish(watch);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "places: what was taken is ended where it lies", unmoved },
        { "places: in a table that was rewritten it is found again", rewritten },
        { "places: who lies there now is left alone", replaced },
        { "places: what is picked and what was added are removed together", together },
        { "places: or none of it is", not_together },
        { "places: each row gets its own values", own_values },
        { "places: one row that has changed is a conflict of all", one_has_changed },
        { "places: taken between two looks is a conflict", taken_between_looks },
    };
    return tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&pg_driver, argc, argv);
}
