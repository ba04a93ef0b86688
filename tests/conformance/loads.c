/* Loads: rows and scans in one round trip. */
#include "conformance.h"
#include "store/trace.h"

/* Two indexes over things, one of them with a member that has no row. */
static belay_rc fill(struct txn *t, void *arg)
{
    static const char *const ids[] = { "a", "b", "c", "d" };
    belay_rc rc = BELAY_OK;

    (void)arg;
    for (size_t i = 0; i < COUNT_OF(ids) && !rc; i++) {
        rc = thing_insert(t, ids[i], 10 + (int64_t)i);
        if (!rc)
            rc = txn_rank_add(t, bytes_str(i % 2 ? "odd" : "even"), (int64_t)i,
                              bytes_str(ids[i]));
    }
    return rc ? rc : txn_rank_add(t, bytes_str("odd"), 9, bytes_str("no row"));
}

/* What is asked for; the same by one load, or by a get_many and scans. */
#define WANTS 4
#define SCANS 4

struct question {
    struct bytes index[2];
    struct value key[WANTS];
    struct row_want wants[WANTS];
    struct fetch fetch;
    struct scan scans[SCANS];
};

static void ask(struct question *q)
{
    *q = (struct question){
        .index = { bytes_str("even"), bytes_str("odd") },
        .key = { value_str("d"), value_str("absent"), value_str("a"), value_str("d") },
        .fetch = { .type = &row_thing },
    };
    for (size_t i = 0; i < WANTS; i++)
        q->wants[i] = (struct row_want){ &row_thing, &q->key[i] };
    struct scan all = { .indexes = q->index,
                        .n_indexes = 2,
                        .max_rank = RANK_MAX,
                        .limit = 100,
                        .fetch = &q->fetch,
                        .n_fetch = 1 };
    q->scans[0] = all;
    q->scans[1] = all;
    q->scans[1].descending = true;
    q->scans[1].limit = 2;
    q->scans[1].n_fetch = 0;
    q->scans[2] = all;
    q->scans[2].limit = 0; /* nothing, in between */
    q->scans[3] = all;
    q->scans[3].indexes = &q->index[1];
    q->scans[3].n_indexes = 1;
    q->scans[3].min_rank = 3;
}

static belay_rc one_by_one(struct txn *t, const struct question *q,
                           const struct row **rows, struct hits *hits)
{
    belay_rc rc = txn_get_many(t, q->wants, WANTS, rows);

    for (size_t i = 0; i < SCANS && !rc; i++)
        rc = txn_scan(t, &q->scans[i], &hits[i]);
    return rc;
}

static bool same_row(const struct row *a, const struct row *b)
{
    if (!a || !b)
        return !a && !b;
    return a->ver == b->ver && value_eq(&a->v[THING_ID], &b->v[THING_ID]) &&
           value_eq(&a->v[THING_N], &b->v[THING_N]);
}

static void compare_hits(struct tap *t, const struct hits *a, const struct hits *b,
                         size_t n_fetch)
{
    if (!TAP_EQ(t, a->n, b->n))
        return;
    for (size_t i = 0; i < a->n; i++) {
        const struct hit *x = &a->hit[i], *y = &b->hit[i];
        TAP_OK(t, bytes_eq(x->index, y->index) && bytes_eq(x->member, y->member));
        TAP_EQ(t, x->rank, y->rank);
        for (size_t j = 0; j < n_fetch; j++)
            TAP_OK(t, same_row(x->rows[j], y->rows[j]));
    }
}

struct both {
    struct tap *tap;
    struct harness *h; /* NULL: compare within the body */
    txn_body *before;  /* what the body does first; may be NULL */
    const struct row *rows[WANTS];
    struct hits hits[SCANS];
};

static belay_rc compare_body(struct txn *t, void *arg)
{
    struct both *b = arg;
    const struct row *rows[WANTS] = { 0 };
    struct hits hits[SCANS] = { 0 };
    struct question q;

    ask(&q);
    belay_rc rc = one_by_one(t, &q, rows, hits);
    if (rc)
        return rc;
    for (size_t i = 0; i < WANTS; i++)
        TAP_OK(b->tap, same_row(b->rows[i], rows[i]));
    for (size_t i = 0; i < SCANS; i++)
        compare_hits(b->tap, &b->hits[i], &hits[i], q.scans[i].n_fetch);
    return BELAY_OK;
}

static belay_rc load_and_compare(struct txn *t, void *arg)
{
    struct both *b = arg;
    struct question q;
    belay_rc rc = b->before ? b->before(t, NULL) : BELAY_OK;

    ask(&q);
    if (!rc)
        rc = txn_load(t, q.wants, WANTS, b->rows, q.scans, SCANS, b->hits);
    if (rc)
        return rc;
    return b->h ? harness_run_aside(b->h, compare_body, b) : compare_body(t, b);
}

static void as_get_many_and_scan(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct both b = { .tap = t, .h = &h };
    if (!harness_open(&h, t, HARNESS_INTERLEAVED))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, load_and_compare, &b), BELAY_OK);
    TAP_OK(t, b.rows[0] && b.rows[0] == b.rows[3] && !b.rows[1]);
    TAP_EQ(t, b.hits[0].n, 5);
    TAP_EQ(t, b.hits[2].n, 0);
    if (TAP_EQ(t, b.hits[3].n, 2)) {
        TAP_OK(t, bytes_eq(b.hits[3].hit[0].member, bytes_str("d")));
        TAP_OK(t, b.hits[3].hit[0].rows[0] && !b.hits[3].hit[1].rows[0]);
    }
}

/* --- T3 --- */

static belay_rc change_much(struct txn *t, void *arg)
{
    struct value key = value_str("b");
    const struct row *row;
    belay_rc rc = thing_put(t, "a", 100);

    (void)arg;
    rc = rc ? rc : thing_get(t, "b", &row);
    rc = rc ? rc : txn_delete(t, &row_thing, &key);
    rc = rc ? rc : txn_rank_remove(t, bytes_str("odd"), 1, bytes_str("b"));
    rc = rc ? rc : txn_rank_move(t, bytes_str("even"), 2, 7, bytes_str("c"));
    rc = rc ? rc : thing_insert(t, "mine", 55);
    return rc ? rc : txn_rank_add(t, bytes_str("odd"), 5, bytes_str("mine"));
}

static void own_writes(struct tap *t)
{
    static const char *const order[] = { "a", "d", "mine", "c", "no row" };
    static const int64_t n[] = { 100, 13, 55, 12 };
    CLEANUP(harness_close) struct harness h;
    struct both b = { .tap = t, .before = change_much };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, load_and_compare, &b), BELAY_OK);
    if (!TAP_EQ(t, b.hits[0].n, COUNT_OF(order)))
        return;
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        const struct row *row = b.hits[0].hit[i].rows[0];
        TAP_OK(t, bytes_eq(b.hits[0].hit[i].member, bytes_str(order[i])));
        if (i < COUNT_OF(n) && TAP_OK(t, row != NULL))
            TAP_EQ(t, row->v[THING_N].i, n[i]);
    }
    TAP_OK(t, b.hits[0].hit[4].rows[0] == NULL);
}

/* --- round trips --- */

static belay_rc load_only(struct txn *t, void *arg)
{
    const struct row *rows[WANTS];
    struct hits hits[SCANS];
    struct question q;

    (void)arg;
    ask(&q);
    return txn_load(t, q.wants, WANTS, rows, q.scans, SCANS, hits);
}

/* What was loaded is not asked for again. */
static belay_rc load_and_get(struct txn *t, void *arg)
{
    const struct row *row;
    belay_rc rc = load_only(t, arg);

    rc = rc ? rc : thing_get(t, "d", &row); /* wanted */
    rc = rc ? rc : thing_get(t, "absent", &row);
    rc = rc ? rc : thing_get(t, "c", &row); /* fetched */
    return rc ? rc : thing_get(t, "no row", &row);
}

static belay_rc load_and_write(struct txn *t, void *arg)
{
    belay_rc rc = load_only(t, arg);

    return rc ? rc : thing_put(t, "c", 1);
}

static belay_rc load_known_rows(struct txn *t, void *arg)
{
    const struct row *rows[WANTS];
    struct question q;

    (void)arg;
    ask(&q);
    belay_rc rc = txn_get_many(t, q.wants, WANTS, rows);
    return rc ? rc : txn_load(t, q.wants, WANTS, rows, NULL, 0, NULL);
}

static belay_rc load_nothing(struct txn *t, void *arg)
{
    struct hits hits[2] = { { .n = 9 }, { .n = 9 } };
    struct question q;

    (void)arg;
    ask(&q);
    q.scans[3].n_indexes = 0;
    belay_rc rc = txn_load(t, NULL, 0, NULL, NULL, 0, NULL);
    rc = rc ? rc : txn_load(t, NULL, 0, NULL, &q.scans[2], 2, hits);
    return rc || (hits[0].n == 0 && hits[1].n == 0) ? rc : BELAY_CORRUPT;
}

static void round_trips(struct tap *t)
{
    static const struct {
        const char *what;
        txn_body *body;
        unsigned reads, commits;
    } rows[] = {
        { "one load", load_only, 1, 0 },
        { "a load, then its rows", load_and_get, 1, 0 },
        { "load, decide, commit", load_and_write, 1, 1 },
        { "a load of rows that are known", load_known_rows, 1, 0 },
        { "a load of nothing", load_nothing, 0, 0 },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CLEANUP(harness_close) struct harness h;
        if (!harness_open(&h, t, HARNESS_TRACE))
            return;
        CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
        trace_reset(h.trace);
        CHECK_RC(&h, harness_run(&h, rows[i].body, NULL), BELAY_OK);
        struct trace_counts c = trace_counts(h.trace);
        bool held = TAP_EQ(t, c.attempts, 1);
        held &= TAP_EQ(t, c.reads, rows[i].reads);
        held &= TAP_EQ(t, c.commits, rows[i].commits);
        if (!held)
            printf("# in row: %s\n", rows[i].what);
    }
}

/* --- guards --- */

struct guarded {
    struct harness *h;
    const char *touch;
    unsigned runs;
};

static belay_rc load_and_decide(struct txn *t, void *arg)
{
    struct guarded *c = arg;
    belay_rc rc = load_only(t, NULL);

    if (!rc && c->runs++ == 0 && c->touch)
        thing_set(c->h, c->touch, 1);
    return rc ? rc : thing_insert(t, "decision", 1);
}

static void loaded_rows_are_guarded(struct tap *t)
{
    static const struct {
        const char *touched;
        unsigned runs;
    } rows[] = {
        { NULL, 1 },     { "elsewhere", 1 }, { "d", 2 }, /* wanted, and fetched */
        { "absent", 2 }, { "c", 2 },         { "no row", 2 },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CLEANUP(harness_close) struct harness h;
        struct guarded c = { .h = &h, .touch = rows[i].touched };
        if (!harness_open(&h, t, HARNESS_INTERLEAVED))
            return;
        CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
        CHECK_RC(&h, harness_run(&h, load_and_decide, &c), BELAY_OK);
        if (!TAP_EQ(t, c.runs, rows[i].runs))
            printf("# in row: %s\n", rows[i].touched ? rows[i].touched : "nothing");
    }
}

/* --- what is refused --- */

static belay_rc load_too_much(struct txn *t, void *arg)
{
    const struct row *rows[WANTS];
    struct hits hits[SCANS];
    struct question q;

    (void)arg;
    ask(&q);
    q.scans[1].limit = 65537;
    return txn_load(t, q.wants, WANTS, rows, q.scans, SCANS, hits);
}

static belay_rc load_bad_index(struct txn *t, void *arg)
{
    struct hits hits[SCANS];
    struct question q;

    (void)arg;
    ask(&q);
    q.index[1] = bytes_str("");
    return txn_load(t, NULL, 0, NULL, q.scans, SCANS, hits);
}

static belay_rc load_bad_key(struct txn *t, void *arg)
{
    struct value key = value_i64(7);
    struct row_want want = { &row_thing, &key };
    const struct row *row;

    (void)arg;
    return txn_load(t, &want, 1, &row, NULL, 0, NULL);
}

static void refused(struct tap *t)
{
    txn_body *const bodies[] = { load_too_much, load_bad_index, load_bad_key };

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        CLEANUP(harness_close) struct harness h;
        if (!harness_open(&h, t, HARNESS_TRACE))
            return;
        trace_reset(h.trace);
        TAP_OK(t, harness_run(&h, bodies[i], NULL) != BELAY_OK);
        TAP_EQ(t, trace_counts(h.trace).reads, 0); /* before anything is asked */
    }
}

static const struct tap_case cases[] = {
    { "loads: rows and scans are what get_many and scan give", as_get_many_and_scan },
    { "loads: a body sees what it wrote before", own_writes },
    { "loads: one round trip, and none for nothing", round_trips },
    { "loads: rows are guarded, wanted or fetched, present or not",
      loaded_rows_are_guarded },
    { "loads: what a get or a scan refuses is refused before it is asked", refused },
};
const struct topic topic_loads = { cases, COUNT_OF(cases) };
