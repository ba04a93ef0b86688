/* Counters: bounds at commit, without a guard. */
#include "conformance.h"

struct add {
    const char *id;
    int64_t delta, min, max;
    struct txn_sum sum;
};

static belay_rc add_body(struct txn *t, void *arg)
{
    struct add *c = arg;
    struct value key = value_str(c->id);

    c->sum = (struct txn_sum){ .known = false };
    return txn_add(t, &row_thing, &key, THING_COUNT, c->delta, c->min, c->max, &c->sum);
}

static belay_rc add_to(struct harness *h, const char *id, int64_t delta, int64_t min,
                       int64_t max, int64_t *out)
{
    struct add c = { .id = id, .delta = delta, .min = min, .max = max };
    belay_rc rc = harness_run(h, add_body, &c);

    if (!rc && TAP_OK(h->t, c.sum.known))
        *out = c.sum.value;
    return rc;
}

static void adds_and_bounds(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    int64_t sum = 0;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    CHECK_RC(&h, add_to(&h, "a", 3, 0, 5, &sum), BELAY_OK);
    TAP_EQ(t, sum, 3);
    CHECK_RC(&h, add_to(&h, "a", 2, 0, 5, &sum), BELAY_OK);
    TAP_EQ(t, sum, 5);
    CHECK_RC(&h, add_to(&h, "a", 1, 0, 5, &sum), BELAY_OUT_OF_RANGE);
    TAP_STR(t, h.err.reason, "count");
    CHECK_RC(&h, add_to(&h, "a", -6, 0, 5, &sum), BELAY_OUT_OF_RANGE);
    CHECK_RC(&h, add_to(&h, "a", -5, 0, 5, &sum), BELAY_OK);
    TAP_EQ(t, sum, 0);
    CHECK_RC(&h, add_to(&h, "a", 0, 0, 5, &sum), BELAY_OK);
    CHECK_RC(&h, add_to(&h, "a", 0, 1, 5, &sum), BELAY_OUT_OF_RANGE);
    TAP_EQ(t, thing_count(&h, "a"), 0);
}

static void i64_overflow(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    int64_t sum = 0;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    CHECK_RC(&h, add_to(&h, "a", INT64_MAX, INT64_MIN, INT64_MAX, &sum), BELAY_OK);
    TAP_EQ(t, sum, INT64_MAX);
    CHECK_RC(&h, add_to(&h, "a", 1, INT64_MIN, INT64_MAX, &sum), BELAY_OUT_OF_RANGE);
    CHECK_RC(&h, add_to(&h, "a", INT64_MIN, INT64_MIN, INT64_MAX, &sum), BELAY_OK);
    TAP_EQ(t, sum, -1);
    CHECK_RC(&h, add_to(&h, "a", INT64_MIN, INT64_MIN, INT64_MAX, &sum),
             BELAY_OUT_OF_RANGE);
    TAP_EQ(t, thing_count(&h, "a"), -1);
}

static void missing_row(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    int64_t sum = 0;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, add_to(&h, "nobody", 1, 0, 5, &sum), BELAY_NOT_FOUND);
    TAP_STR(t, h.err.entity, "thing");
    TAP_EQ(t, thing_n(&h, "nobody"), INT64_MIN);
}

static belay_rc set_null(struct txn *t, void *arg)
{
    struct value v[THING_COLUMNS] = { value_str(arg) };

    return txn_insert(t, &row_thing, v);
}

static void null_counts_as_zero(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    int64_t sum = 0;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, set_null, (void *)(uintptr_t) "a"), BELAY_OK);
    CHECK_RC(&h, add_to(&h, "a", 2, 0, 5, &sum), BELAY_OK);
    TAP_EQ(t, sum, 2);
}

/* --- several in one body --- */

struct several {
    struct tap *t;
    int64_t base; /* count of a before */
    struct txn_sum sums[3];
};

static belay_rc several_body(struct txn *t, void *arg)
{
    struct several *c = arg;
    struct value a = value_str("a"), b = value_str("b");
    belay_rc rc = txn_add(t, &row_thing, &a, THING_COUNT, 5, 0, 5, &c->sums[0]);

    if (!rc)
        rc = txn_add(t, &row_thing, &b, THING_COUNT, 7, 0, 9, &c->sums[1]);
    if (!rc)
        rc = txn_raise(t, &row_thing, &a, THING_HIGH, 4);
    if (!rc)
        rc = txn_feed_append(t, bytes_str("f"), bytes_str("x"), NULL);
    if (!rc) /* the bounds hold after each step: 5 - 4, not -4 */
        rc = txn_add(t, &row_thing, &a, THING_COUNT, -4, 0, 5, &c->sums[2]);
    const struct row *row = NULL;
    if (!rc)
        rc = thing_get(t, "a", &row);
    if (!rc && TAP_OK(c->t, row != NULL)) { /* T3 */
        TAP_EQ(c->t, row->v[THING_COUNT].i, c->base + 1);
        TAP_EQ(c->t, row->v[THING_HIGH].i, 4);
    }
    return rc;
}

static void several_adds_in_one_body(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct several c = { .t = t };
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    thing_set(&h, "b", 1);
    CHECK_RC(&h, harness_run(&h, several_body, &c), BELAY_OK);
    TAP_EQ(t, c.sums[0].value, 5);
    TAP_EQ(t, c.sums[1].value, 7);
    TAP_EQ(t, c.sums[2].value, 1);
    TAP_EQ(t, thing_count(&h, "a"), 1);
    TAP_EQ(t, thing_count(&h, "b"), 7);
    c.base = 1; /* 1 + 5 is out of range, so nothing of it is applied */
    CHECK_RC(&h, harness_run(&h, several_body, &c), BELAY_OUT_OF_RANGE);
    TAP_EQ(t, thing_count(&h, "a"), 1);
    TAP_EQ(t, thing_count(&h, "b"), 7);
}

static belay_rc add_to_inserted(struct txn *t, void *arg)
{
    struct add *c = arg;
    struct value v[THING_COLUMNS], key = value_str("new");
    const struct row *row;

    thing_values(v, "new", 1);
    v[THING_COUNT] = value_i64(10);
    belay_rc rc = txn_insert(t, &row_thing, v);
    if (!rc)
        rc = txn_add(t, &row_thing, &key, THING_COUNT, c->delta, c->min, c->max,
                     &c->sum);
    if (!rc)
        rc = thing_put(t, "new", 2); /* must not take the counter along */
    if (!rc)
        rc = thing_get(t, "new", &row);
    return rc ? rc : row->v[THING_COUNT].i == 10 + c->delta ? BELAY_OK : BELAY_CORRUPT;
}

static void add_to_a_row_of_the_same_body(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct add c = { .delta = 3, .min = 0, .max = 12 };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, add_to_inserted, &c), BELAY_OUT_OF_RANGE);
    TAP_EQ(t, thing_n(&h, "new"), INT64_MIN);
    c.max = 13;
    CHECK_RC(&h, harness_run(&h, add_to_inserted, &c), BELAY_OK);
    TAP_OK(t, c.sum.known);
    TAP_EQ(t, c.sum.value, 13);
    TAP_EQ(t, thing_count(&h, "new"), 13);
    TAP_EQ(t, thing_n(&h, "new"), 2);
}

static belay_rc insert_after_add(struct txn *t, void *arg)
{
    struct tap *tap = arg;
    const struct row *row = NULL;
    belay_rc rc = thing_add(t, "new", 5);

    if (!rc)
        rc = thing_insert(t, "new", 1);
    if (!rc)
        rc = thing_get(t, "new", &row);
    if (!rc && TAP_OK(tap, row != NULL))
        TAP_EQ(tap, row->v[THING_COUNT].i, 5);
    return rc;
}

static void insert_behind_an_add(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, insert_after_add, t), BELAY_OK);
    TAP_EQ(t, thing_count(&h, "new"), 5);
}

/* --- no guard, no bump --- */

struct meeting {
    struct harness *h;
    unsigned runs;
};

static belay_rc add_one(struct txn *t, void *arg)
{
    return thing_add(t, arg, 1);
}

static belay_rc put_while_others_add(struct txn *t, void *arg)
{
    struct meeting *c = arg;
    belay_rc rc = thing_put(t, "a", 50);

    if (!rc && c->runs++ == 0)
        CHECK_RC(c->h, harness_run_aside(c->h, add_one, (void *)(uintptr_t) "a"),
                 BELAY_OK);
    return rc;
}

static void adds_disturb_no_put(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct meeting c = { .h = &h };
    if (!harness_open(&h, t, HARNESS_INTERLEAVED))
        return;

    thing_set(&h, "a", 1);
    CHECK_RC(&h, harness_run(&h, put_while_others_add, &c), BELAY_OK);
    TAP_EQ(t, c.runs, 1);
    TAP_EQ(t, thing_count(&h, "a"), 1);
    TAP_EQ(t, thing_n(&h, "a"), 50);
}

static belay_rc add_while_others_put(struct txn *t, void *arg)
{
    struct meeting *c = arg;

    if (c->runs++ == 0)
        thing_set(c->h, "a", 60);
    return thing_add(t, "a", 1);
}

static void puts_disturb_no_add(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct meeting c = { .h = &h };
    if (!harness_open(&h, t, HARNESS_INTERLEAVED))
        return;

    thing_set(&h, "a", 1);
    CHECK_RC(&h, harness_run(&h, add_while_others_put, &c), BELAY_OK);
    TAP_EQ(t, c.runs, 1);
    TAP_EQ(t, thing_count(&h, "a"), 1);
    TAP_EQ(t, thing_n(&h, "a"), 60);
}

static belay_rc raise_body(struct txn *t, void *arg)
{
    struct value key = value_str("a");

    return txn_raise(t, &row_thing, &key, THING_HIGH, *(int64_t *)arg);
}

static belay_rc see_high(struct txn *t, void *arg)
{
    const struct row *row;
    belay_rc rc = thing_get(t, "a", &row);

    *(int64_t *)arg = !rc && row ? row_i64(row, THING_HIGH, INT64_MIN) : INT64_MIN;
    return rc;
}

static void raising(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const int64_t to[] = { 5, 3, -9, 5, INT64_MAX, 7 };
    const int64_t want[] = { 5, 5, 5, 5, INT64_MAX, INT64_MAX };
    int64_t value = 1, got = 0;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, raise_body, &value), BELAY_NOT_FOUND);
    thing_set(&h, "a", 1);
    for (size_t i = 0; i < COUNT_OF(to); i++) {
        value = to[i];
        CHECK_RC(&h, harness_run(&h, raise_body, &value), BELAY_OK);
        CHECK_RC(&h, harness_run(&h, see_high, &got), BELAY_OK);
        TAP_EQ(t, got, want[i]);
    }
}

static const struct tap_case cases[] = {
    { "counters: add stays within min..max, both included", adds_and_bounds },
    { "counters: an add beyond i64 is out_of_range", i64_overflow },
    { "counters: an add to a row that is not there is not_found", missing_row },
    { "counters: NULL counts as 0", null_counts_as_zero },
    { "counters: several adds of one body are applied in order or not at all",
      several_adds_in_one_body },
    { "counters: an add to a row that the same body inserted",
      add_to_a_row_of_the_same_body },
    { "counters: a body that adds and then inserts reads both", insert_behind_an_add },
    { "counters: an add is no conflict for who puts", adds_disturb_no_put },
    { "counters: a put is no conflict for who adds", puts_disturb_no_add },
    { "counters: raise never lowers", raising },
};
const struct topic topic_counters = { cases, COUNT_OF(cases) };
