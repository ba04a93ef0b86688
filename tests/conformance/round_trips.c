/* Round trips are part of the contract. */
#include "conformance.h"
#include "store/trace.h"

static belay_rc get_one(struct txn *t, void *arg)
{
    const struct row *row;

    (void)arg;
    return thing_get(t, "a", &row);
}

static belay_rc get_same_twice(struct txn *t, void *arg)
{
    belay_rc rc = get_one(t, arg);

    return rc ? rc : get_one(t, arg);
}

static belay_rc get_two(struct txn *t, void *arg)
{
    const struct row *row;
    belay_rc rc = get_one(t, arg);

    return rc ? rc : thing_get(t, "b", &row);
}

static belay_rc get_many(struct txn *t, void *arg)
{
    struct value keys[] = { value_str("a"), value_str("b"), value_str("c"),
                            value_str("a") };
    struct row_want wants[] = { { &row_thing, &keys[0] },
                                { &row_thing, &keys[1] },
                                { &row_thing, &keys[2] },
                                { &row_thing, &keys[3] },
                                { &row_head, NULL } };
    const struct row *out[COUNT_OF(wants)];

    (void)arg;
    return txn_get_many(t, wants, COUNT_OF(wants), out);
}

static belay_rc peek_two(struct txn *t, void *arg)
{
    struct value a = value_str("a"), b = value_str("b");
    const struct row *row;
    belay_rc rc = txn_peek(t, &row_thing, &a, &row);

    (void)arg;
    return rc ? rc : txn_peek(t, &row_thing, &b, &row);
}

static belay_rc get_and_put(struct txn *t, void *arg)
{
    (void)arg;
    return thing_put(t, "a", 7);
}

static belay_rc insert_one(struct txn *t, void *arg)
{
    (void)arg;
    return thing_insert(t, "minted", 7);
}

static belay_rc add_one(struct txn *t, void *arg)
{
    (void)arg;
    return thing_add(t, "a", 1);
}

static belay_rc scan_with(struct txn *t, bool pick)
{
    const struct bytes indexes[] = { bytes_str("i"), bytes_str("j") };
    struct value owner = value_str("o");
    struct fetch fetch[] = { { .type = &row_thing },
                             { .type = &row_part, .prefix = &owner } };
    struct scan scan = { .indexes = indexes,
                         .n_indexes = 2,
                         .max_rank = RANK_MAX,
                         .limit = 10,
                         .fetch = fetch,
                         .n_fetch = 2 };
    struct hits hits;

    return pick ? txn_pick(t, &scan, &hits) : txn_scan(t, &scan, &hits);
}

static belay_rc scan_and_fetch(struct txn *t, void *arg)
{
    (void)arg;
    return scan_with(t, false);
}

/* What a claim is made of. */
static belay_rc pick_and_write(struct txn *t, void *arg)
{
    belay_rc rc = scan_with(t, true);
    struct value key = value_str("1");
    struct change change = { THING_N, value_i64(2) };

    (void)arg;
    rc = rc ? rc : txn_put(t, &row_thing, &key, &change, 1);
    rc = rc ? rc : txn_rank_remove(t, bytes_str("i"), 1, bytes_str("1"));
    return rc ? rc : txn_feed_append(t, bytes_str("f"), bytes_str("x"), NULL);
}

static belay_rc fail_after_one(struct txn *t, void *arg)
{
    belay_rc rc = get_one(t, arg);

    return rc ? rc : txn_fail(t, BELAY_NOT_FOUND, "", "no");
}

static belay_rc fail_after_two(struct txn *t, void *arg)
{
    belay_rc rc = get_two(t, arg);

    return rc ? rc : txn_fail(t, BELAY_NOT_FOUND, "", "no");
}

static belay_rc fill(struct txn *t, void *arg)
{
    belay_rc rc = thing_insert(t, "1", 1);

    (void)arg;
    rc = rc ? rc : thing_insert(t, "a", 1);
    rc = rc ? rc : txn_rank_add(t, bytes_str("i"), 1, bytes_str("1"));
    return rc ? rc : txn_rank_add(t, bytes_str("j"), 2, bytes_str("2"));
}

/* clang-format off */
static const struct {
    const char *what; txn_body *body; belay_rc answer;
    unsigned reads, commits;
    bool check; /* the commit only confirms: a driver of snapshots saves it */
} rows[] = {
    { "one get",                  get_one,        BELAY_OK,        1, 0, false },
    { "the same row twice",       get_same_twice, BELAY_OK,        1, 0, false },
    { "two gets are confirmed",   get_two,        BELAY_OK,        2, 1, true },
    { "many in one",              get_many,       BELAY_OK,        1, 0, false },
    { "peeks are not guarded",    peek_two,       BELAY_OK,        2, 0, false },
    { "get and put",              get_and_put,    BELAY_OK,        1, 1, false },
    { "insert of a minted key",   insert_one,     BELAY_OK,        0, 1, false },
    { "add",                      add_one,        BELAY_OK,        0, 1, false },
    { "scan with fetches",        scan_and_fetch, BELAY_OK,        1, 0, false },
    { "pick, decide, commit",     pick_and_write, BELAY_OK,        1, 1, false },
    { "an error from one",        fail_after_one, BELAY_NOT_FOUND, 1, 0, false },
    { "an error from two",        fail_after_two, BELAY_NOT_FOUND, 2, 1, true },
};
/* clang-format on */

static void counts(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CLEANUP(harness_close) struct harness h;
        if (!harness_open(&h, t, HARNESS_TRACE))
            return;
        CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
        trace_reset(h.trace);
        CHECK_RC(&h, harness_run(&h, rows[i].body, NULL), rows[i].answer);
        struct trace_counts c = trace_counts(h.trace);
        bool saved = rows[i].check && (h.driver->caps & DRIVER_SNAPSHOT);
        bool held = TAP_EQ(t, c.attempts, 1);
        held &= TAP_EQ(t, c.reads, rows[i].reads);
        held &= TAP_EQ(t, c.commits, saved ? 0 : rows[i].commits);
        held &= TAP_EQ(t, c.conflicts, 0);
        if (!held)
            printf("# in row: %s\n", rows[i].what);
    }
}

static void many_is_one_question_each(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, HARNESS_TRACE))
        return;

    trace_reset(h.trace);
    CHECK_RC(&h, harness_run(&h, get_many, NULL), BELAY_OK);
    TAP_EQ(t, trace_counts(h.trace).reads, 1);
    TAP_OK(t, trace_counts(h.trace).questions >= 4);
}

static void budgets_hold(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, HARNESS_TRACE))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    trace_budget(h.trace, 2);
    CHECK_RC(&h, harness_run(&h, pick_and_write, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, get_and_put, NULL), BELAY_OK);
    trace_budget(h.trace, 1);
    CHECK_RC(&h, harness_run(&h, get_and_put, NULL), BELAY_MISUSE);
    TAP_STR(t, h.err.reason, "round_trips");
    trace_budget(h.trace, 0);
    CHECK_RC(&h, harness_run(&h, get_and_put, NULL), BELAY_OK);
}

static const struct tap_case cases[] = {
    { "round trips: as many as the contract says", counts },
    { "round trips: several rows are one", many_is_one_question_each },
    { "round trips: a budget refuses the one too many", budgets_hold },
};
const struct topic topic_round_trips = { cases, COUNT_OF(cases) };
