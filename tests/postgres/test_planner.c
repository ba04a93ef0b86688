/* A pick gives what it was asked for and locks what it gives, whatever way the server
 * finds it (L8); and the way that it takes on our connections is the index of the ranks. */
#include <stdlib.h>

#include "pg.h"
#include "store/drivers/postgres/impl.h"

#define MEMBERS 100
#define PICKERS 5
#define LIMIT 7

/* A lane, whose workers take more at a time. */
#define LANE_MEMBERS 200
#define LANE_PICKERS 2
#define LANE_LIMIT 100

/* clang-format off */
static const char *const ways[] = {
    "-c enable_indexscan=off -c enable_indexonlyscan=off",
    "-c enable_indexscan=off -c enable_indexonlyscan=off -c enable_bitmapscan=off",
    "-c enable_nestloop=off",
    "-c enable_nestloop=off -c enable_hashjoin=off",
    "-c enable_nestloop=off -c enable_mergejoin=off",
    "-c enable_seqscan=off -c enable_sort=off",
    "-c enable_material=off -c enable_memoize=off",
    "-c plan_cache_mode=force_generic_plan",
    "-c plan_cache_mode=force_custom_plan -c from_collapse_limit=1 -c join_collapse_limit=1",
    "-c random_page_cost=0 -c cpu_tuple_cost=100",
    "-c parallel_setup_cost=0 -c parallel_tuple_cost=0 -c min_parallel_table_scan_size=0",
};
/* clang-format on */

/* Members of three indexes in turn, and the things that they name. */
static belay_rc fill(struct txn *t, void *arg)
{
    int first = *(int *)arg;
    belay_rc rc = BELAY_OK;
    char name[16], index[4];

    for (int i = first; i < first + 50 && rc == BELAY_OK; i++) {
        (void)snprintf(name, sizeof(name), "m%04d", i);
        (void)snprintf(index, sizeof(index), "i%d", i % 3);
        rc = txn_rank_add(t, bytes_str("all"), i, bytes_str(name));
        if (rc == BELAY_OK)
            rc = txn_rank_add(t, bytes_str(index), i, bytes_str(name));
        if (rc == BELAY_OK)
            rc = thing_insert(t, name, i);
    }
    return rc;
}

static belay_rc fill_lane(struct txn *t, void *arg)
{
    belay_rc rc = BELAY_OK;
    char name[16];

    (void)arg;
    for (int i = 0; i < LANE_MEMBERS && rc == BELAY_OK; i++) {
        (void)snprintf(name, sizeof(name), "lane%04d", i);
        rc = txn_rank_add(t, bytes_str("lane"), i, bytes_str(name));
        if (rc == BELAY_OK)
            rc = thing_insert(t, name, i);
    }
    return rc;
}

/* Pickers one after the other: each gets the next members, so no more were locked than
 * were given. */
static void pick_in_turn(struct harness *h, const struct bytes *indexes, size_t n,
                         size_t pickers, size_t limit)
{
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = { .indexes = indexes,
                         .n_indexes = n,
                         .max_rank = RANK_MAX,
                         .limit = limit,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct raw picker[PICKERS];

    for (size_t i = 0; i < pickers; i++) {
        struct read q = { .kind = READ_RANK, .rank = { .scan = &scan, .hold = true } };
        raw_begin(&picker[i], h);
        CHECK_RC(h, raw_read(&picker[i], &q), BELAY_OK);
        if (!TAP_EQ(h->t, q.rank.out.n, limit))
            continue;
        for (size_t k = 0; k < limit; k++) {
            const struct hit *hit = &q.rank.out.hit[k];
            TAP_EQ(h->t, hit->rank, i * limit + k);
            TAP_OK(h->t, hit->rows[0] && hit->rows[0]->v[THING_N].i == hit->rank);
        }
    }
    for (size_t i = 0; i < pickers; i++)
        raw_end(&picker[i]);
}

static void analyze(const struct harness *h)
{
    char words[256], schema[PG_SCHEMA_MAX];

    pg_schema_of(h->dir, schema);
    (void)snprintf(words, sizeof(words),
                   "ANALYZE %s.belay_rank; ANALYZE %s.belay_thing", schema, schema);
    TAP_OK(h->t, pg_test_run(pg_test_url(), words));
}

static void fill_indexes(struct harness *h)
{
    for (int first = 0; first < MEMBERS; first += 50)
        CHECK_RC(h, harness_run(h, fill, &first), BELAY_OK);
}

static void pick_from_indexes(struct harness *h)
{
    const struct bytes all = bytes_str("all");
    const struct bytes parts[] = { bytes_str("i0"), bytes_str("i1"), bytes_str("i2") };

    pick_in_turn(h, &all, 1, PICKERS, LIMIT);
    pick_in_turn(h, parts, COUNT_OF(parts), PICKERS, LIMIT);
}

static void fill_one_lane(struct harness *h)
{
    CHECK_RC(h, harness_run(h, fill_lane, NULL), BELAY_OK);
}

static void pick_from_lane(struct harness *h)
{
    const struct bytes lane = bytes_str("lane");

    pick_in_turn(h, &lane, 1, LANE_PICKERS, LANE_LIMIT);
}

/* In each way; statistics: of the empty tables, or of what is there. */
static void all_ways(struct tap *t, bool stale, void (*fill_it)(struct harness *h),
                     void (*pick)(struct harness *h))
{
    CLEANUP(harness_close) struct harness h;

    pg_setup_reset(pg_test_url());
    if (!harness_open(&h, t, 0))
        return;
    if (stale)
        analyze(&h);
    fill_it(&h);
    if (!stale)
        analyze(&h);
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        unsigned failed = t->failed;
        pg_setup.settings = ways[i];
        if (!harness_reopen(&h))
            continue;
        for (int again = 0; again < 2; again++)
            pick(&h);
        if (t->failed > failed)
            printf("# with %s\n", ways[i]);
    }
}

static void stale(struct tap *t)
{
    all_ways(t, true, fill_indexes, pick_from_indexes);
}

static void fresh(struct tap *t)
{
    all_ways(t, false, fill_indexes, pick_from_indexes);
}

static void lane(struct tap *t)
{
    all_ways(t, true, fill_one_lane, pick_from_lane);
    all_ways(t, false, fill_one_lane, pick_from_lane);
}

/* --- the way that is taken --- */

static belay_rc shift_some(struct txn *t, void *arg)
{
    const struct bytes all = bytes_str("all"), i0 = bytes_str("i0");
    int n = *(int *)arg; /* from there on, so many */
    belay_rc rc = BELAY_OK;
    char name[16];

    for (int i = 3 * n; i < 6 * n && rc == BELAY_OK; i += 3) {
        (void)snprintf(name, sizeof(name), "m%04d", i);
        rc = txn_rank_move(t, all, i, i + 1000, bytes_str(name));
        if (rc == BELAY_OK)
            rc = txn_rank_remove(t, i0, i, bytes_str(name));
    }
    return rc;
}

static void scan_all_ways(struct harness *h, const struct bytes *indexes, size_t n)
{
    const struct scan_cursor after = { .rank = 3,
                                       .member = bytes_str("m0003"),
                                       .index = indexes[0] };

    for (unsigned way = 0; way < 4; way++) {
        struct scan scan[] = { { .indexes = indexes,
                                 .n_indexes = n,
                                 .max_rank = RANK_MAX,
                                 .limit = LIMIT,
                                 .descending = way & 1,
                                 .after = way & 2 ? &after : NULL },
                               { .n_indexes = 0 } };
        struct read q[2] = { { .kind = READ_RANK }, { .kind = READ_RANK } };
        struct raw r;
        scan[1] = scan[0];
        q[0].rank.scan = &scan[0];
        q[1].rank.scan = &scan[1];
        for (size_t reads = 1; reads <= 2;
             reads++) { /* alone, and two that are alike */
            raw_begin(&r, h);
            CHECK_RC(h, driver_read(h->driver, r.attempt, q, reads, &r.arena, &r.err),
                     BELAY_OK);
            TAP_OK(h->t, q[0].rank.out.n > 0);
            raw_end(&r);
        }
    }
}

static belay_rc add_parts(struct txn *t, void *arg)
{
    belay_rc rc = BELAY_OK;
    char no[16];

    (void)arg;
    for (int i = 1; i <= 20 && rc == BELAY_OK; i++) {
        const struct value v[PART_COLUMNS] = { value_text(bytes_str("o")), value_i64(i),
                                               value_i64(0) };
        (void)snprintf(no, sizeof(no), "%d", i);
        rc = txn_rank_add(t, bytes_str("parts"), i, bytes_str(no));
        if (rc == BELAY_OK)
            rc = txn_insert(t, &row_part, v);
    }
    return rc;
}

/* With rows whose keys have a part in common. */
static void scan_parts(struct harness *h)
{
    const struct value owner = value_text(bytes_str("o"));
    const struct bytes parts = bytes_str("parts");
    const struct fetch fetch = { .type = &row_part, .prefix = &owner };
    struct scan scan = { .indexes = &parts,
                         .n_indexes = 1,
                         .max_rank = RANK_MAX,
                         .limit = LIMIT,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct read q[2] = { { .kind = READ_RANK }, { .kind = READ_RANK } };
    struct raw r;

    CHECK_RC(h, harness_run(h, add_parts, NULL), BELAY_OK);
    q[0].rank.scan = &scan;
    q[1].rank.scan = &scan;
    for (size_t reads = 1; reads <= 2; reads++) {
        raw_begin(&r, h);
        CHECK_RC(h, driver_read(h->driver, r.attempt, q, reads, &r.arena, &r.err),
                 BELAY_OK);
        if (TAP_OK(h->t, q[0].rank.out.n > 0))
            TAP_OK(h->t, q[0].rank.out.hit[0].rows[0]);
        raw_end(&r);
    }
}

/* Everything that finds entries of ranks, once. */
static void use_ranks(struct harness *h)
{
    const struct bytes parts[] = { bytes_str("i0"), bytes_str("i1"), bytes_str("i2") };
    int one = 1, some = 5;
    bool more = true;

    fill_indexes(h);
    pick_from_indexes(h);
    scan_all_ways(h, parts, 1);
    scan_all_ways(h, parts, COUNT_OF(parts));
    scan_parts(h);
    CHECK_RC(h, harness_run(h, shift_some, &one), BELAY_OK);
    CHECK_RC(h, harness_run(h, shift_some, &some), BELAY_OK);
    CHECK_RC(h, harness_run(h, shift_some, &some), BELAY_CORRUPT); /* and why */
    CHECK_RC(h, driver_erase(h->driver, bytes_str("gone"), 10, &more, NULL), BELAY_OK);
}

static int depth_of(const char *line)
{
    return (int)strspn(line, " ");
}

/* A node that meets ranks: where they lie, or by their place in the index, in order.  Lines
 * are those of a plan; a node that does not begin with an arrow is the first. */
static bool is_good_node(const PGresult *plan, int i)
{
    const char *node = PQgetvalue(plan, i, 0), *parent = "";
    const char *cond = i + 1 < PQntuples(plan) ? PQgetvalue(plan, i + 1, 0) : "";

    if (strstr(node, "Insert on") || strstr(node, "Update on") ||
        strstr(node, "Delete on") || strstr(node, "Tid Scan on"))
        return true;
    for (int k = i - 1; k >= 0 && *parent == '\0'; k--) {
        const char *line = PQgetvalue(plan, k, 0);
        if ((strstr(line, "->") || k == 0) && depth_of(line) < depth_of(node))
            parent = line;
    }
    return strstr(node, " using belay_rank_place on ") && !strstr(parent, "Sort") &&
           strstr(cond, "Index Cond: ") && strstr(cond, "hashtext(");
}

/* The rows that members name: each by all of its key, not all of a prefix at once. */
static bool is_good_fetch(const PGresult *plan, int i)
{
    const char *cond = i + 1 < PQntuples(plan) ? PQgetvalue(plan, i + 1, 0) : "";

    return strstr(cond, "Index Cond: ") && strstr(cond, "(no = ");
}

/* How often the plan of a statement comes to the ranks. */
static int check_plan(struct tap *t, PGconn *pg, const char *name, int n_args)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    bool good = true;
    int met = 0;

    buf_printf(&text, "EXPLAIN (COSTS OFF) EXECUTE %s", name);
    for (int i = 0; i < n_args; i++)
        buf_append_str(&text, i == 0 ? "(NULL" : ", NULL");
    buf_append_str(&text, n_args > 0 ? ")" : "");
    buf_append_char(&text, '\0');
    PGresult *plan = PQexec(pg, (const char *)text.ptr);
    TAP_EQ(t, PQresultStatus(plan), PGRES_TUPLES_OK);
    for (int i = 0; i < PQntuples(plan); i++) {
        if (strstr(PQgetvalue(plan, i, 0), " on belay_part "))
            good = is_good_fetch(plan, i) && good;
        if (!strstr(PQgetvalue(plan, i, 0), " on belay_rank"))
            continue;
        good = is_good_node(plan, i) && good;
        met++;
    }
    if (!TAP_OK(t, good)) {
        for (int i = 0; i < PQntuples(plan); i++)
            printf("# %s\n", PQgetvalue(plan, i, 0));
    }
    PQclear(plan);
    return met;
}

/* What the store has prepared, as it is planned. */
static void by_the_index(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    int met = 0;

    pg_setup_reset(pg_test_url());
    if (!harness_open(&h, t, 0))
        return;
    analyze(&h);
    use_ranks(&h);
    const struct pg_store *s = (const struct pg_store *)h.driver;
    for (struct pg_conn *c = s->idle; c; c = c->next) {
        PGresult *r = PQexec(c->pg, "SELECT name, cardinality(parameter_types) FROM"
                                    " pg_prepared_statements WHERE statement LIKE"
                                    " '%belay\\_rank%'");
        TAP_EQ(t, PQresultStatus(r), PGRES_TUPLES_OK);
        for (int i = 0; i < PQntuples(r); i++)
            met += check_plan(t, c->pg, PQgetvalue(r, i, 0),
                              (int)strtol(PQgetvalue(r, i, 1), NULL, 10));
        PQclear(r);
    }
    TAP_OK(t, met >= 25);
    printf("# ranks are met %d times\n", met);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "planner: picks are exact while its statistics are stale", stale },
        { "planner: picks are exact while its statistics are fresh", fresh },
        { "planner: so are the batches of a lane", lane },
        { "planner: ranks are found by their index, in order", by_the_index },
    };
    return tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&pg_driver, argc, argv);
}
