/* Running bodies: again after a conflict, not at all when it is too late, and answers
 * that are confirmed (T2, T4). */
#include "conformance.h"
#include "store/fault.h"

/* --- conflicts --- */

struct rerun {
    struct harness *h;
    unsigned runs, conflicts;
    const struct row *row;
    uint64_t last_id;
    bool ids_differ;
    char *word; /* in the arena */
};

static belay_rc disturbed(struct txn *t, void *arg)
{
    struct rerun *c = arg;
    belay_rc rc = thing_get(t, "a", &c->row);

    if (rc)
        return rc;
    c->ids_differ |= c->last_id != txn_id(t);
    c->last_id = txn_id(t);
    c->word = arena_alloc(txn_arena(t), 16);
    if (c->word)
        (void)snprintf(c->word, 16, "run %u", c->runs + 1);
    if (c->runs++ < c->conflicts)
        thing_set(c->h, "a", (int64_t)c->runs * 10);
    return thing_put(t, "a", row_i64(c->row, THING_N, 0) + 1);
}

static void runs_again_until_it_fits(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct rerun c = { .h = &h, .conflicts = 5 };
    if (!harness_open(&h, t, HARNESS_INTERLEAVED))
        return;

    thing_set(&h, "a", 1);
    CHECK_RC(&h, harness_run(&h, disturbed, &c), BELAY_OK);
    TAP_EQ(t, c.runs, 6);
    TAP_OK(t, c.ids_differ);
    TAP_STR(t, c.word, "run 6");
    TAP_EQ(t, c.row->v[THING_N].i, 50); /* what the last run read */
    TAP_EQ(t, thing_n(&h, "a"), 51);
}

static void gives_up_after_max_attempts(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct rerun c = { .h = &h, .conflicts = 1000 };
    struct store *store = NULL;
    struct space *space = NULL;
    if (!harness_open(&h, t, HARNESS_INTERLEAVED))
        return;

    thing_set(&h, "a", 1);
    struct store_options options = h.options;
    options.retry.max_attempts = 7;
    CHECK_RC(&h, store_open(&store, h.driver, &options, NULL), BELAY_OK);
    CHECK_RC(&h, store_space(store, bytes_str("default"), &space, NULL), BELAY_OK);
    arena_reset(&h.arena);
    CHECK_RC(&h, txn_run(space, disturbed, &c, NULL, &h.arena, &h.err),
             BELAY_CONTENTION);
    TAP_EQ(t, c.runs, 7);
    TAP_EQ(t, thing_n(&h, "a"), 70); /* others' writes, none of its own */
    store_close(store);
}

static void default_attempts_are_bounded(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct rerun c = { .h = &h, .conflicts = 1000000 };
    if (!harness_open(&h, t, HARNESS_INTERLEAVED))
        return;

    thing_set(&h, "a", 1);
    CHECK_RC(&h, harness_run(&h, disturbed, &c), BELAY_CONTENTION);
    TAP_OK(t, c.runs > 1 && c.runs < 100000);
}

/* --- answers that are confirmed (T4) --- */

struct pair {
    struct harness *h;
    unsigned runs;
    int64_t sum; /* as the answer said */
};

/* x + y is always 0.  Somebody changes both between the two reads of the first run. */
static belay_rc move_one(struct txn *t, void *arg)
{
    belay_rc rc = thing_put(t, "x", 1);

    (void)arg;
    return rc ? rc : thing_put(t, "y", -1);
}

static belay_rc read_pair(struct txn *t, struct pair *c, int64_t *sum)
{
    const struct row *x, *y;
    belay_rc rc = thing_get(t, "x", &x);

    if (!rc && c->runs++ == 0)
        CHECK_RC(c->h, harness_run_aside(c->h, move_one, NULL), BELAY_OK);
    rc = rc ? rc : thing_get(t, "y", &y);
    if (!rc)
        *sum = row_i64(x, THING_N, 0) + row_i64(y, THING_N, 0);
    return rc;
}

static belay_rc not_found_if_torn(struct txn *t, void *arg)
{
    int64_t sum = 0;
    belay_rc rc = read_pair(t, arg, &sum);

    if (!rc && sum != 0)
        rc = txn_fail(t, BELAY_NOT_FOUND, "torn", "half of it is missing");
    return rc;
}

static belay_rc corrupt_if_torn(struct txn *t, void *arg)
{
    int64_t sum = 0;
    belay_rc rc = read_pair(t, arg, &sum);

    if (!rc && sum != 0)
        rc = txn_fail(t, BELAY_CORRUPT, "torn", "the sum is wrong");
    return rc;
}

static belay_rc sum_of_pair(struct txn *t, void *arg)
{
    struct pair *c = arg;

    return read_pair(t, c, &c->sum);
}

static void torn_reads_never_surface(struct tap *t)
{
    txn_body *const bodies[] = { not_found_if_torn, corrupt_if_torn, sum_of_pair };

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        CLEANUP(harness_close) struct harness h;
        struct pair c = { .h = &h };
        if (!harness_open(&h, t, HARNESS_INTERLEAVED))
            return;
        thing_set(&h, "x", 0);
        thing_set(&h, "y", 0);
        CHECK_RC(&h, harness_run(&h, bodies[i], &c), BELAY_OK);
        TAP_EQ(t, c.sum, 0);
        /* Run again, unless all its reads were of one snapshot anyway. */
        TAP_EQ(t, c.runs, h.driver->caps & DRIVER_SNAPSHOT ? 1 : 2);
    }
}

static belay_rc fail_for_good(struct txn *t, void *arg)
{
    const struct row *x, *y;
    belay_rc rc = thing_get(t, "x", &x);

    ++*(unsigned *)arg;
    rc = rc ? rc : thing_get(t, "y", &y);
    if (rc)
        return rc;
    rc = txn_fail(t, BELAY_NOT_FOUND, "why", "no %s", "entry");
    err_entity(txn_error(t), bytes_str("entry"));
    err_numbers(txn_error(t), 4, 5);
    return rc;
}

static void a_confirmed_error_keeps_its_words(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    unsigned runs = 0;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fail_for_good, &runs), BELAY_NOT_FOUND);
    TAP_EQ(t, runs, 1);
    TAP_EQ(t, h.err.code, BELAY_NOT_FOUND);
    TAP_STR(t, h.err.reason, "why");
    TAP_STR(t, h.err.entity, "entry");
    TAP_STR(t, h.err.message, "no entry");
    TAP_EQ(t, h.err.expected, 4);
    TAP_EQ(t, h.err.actual, 5);
}

/* --- failing leaves nothing behind --- */

struct mess {
    belay_rc answer;
    struct belay_cancel *cancel;
    struct harness *h;
    bool late;
};

static belay_rc make_a_mess(struct txn *t, void *arg)
{
    const struct mess *c = arg;
    const struct bytes name = bytes_str("mess");
    struct value key = value_str("gone");
    struct scan scan = { .indexes = &name, .n_indexes = 1, .limit = 5 };
    struct hits hits;
    const struct row *row;
    belay_rc rc = thing_put(t, "a", 99);

    rc = rc ? rc : thing_insert(t, "new", 1);
    rc = rc ? rc : thing_get(t, "gone", &row);
    rc = rc ? rc : txn_delete(t, &row_thing, &key);
    rc = rc ? rc : thing_add(t, "a", 5);
    rc = rc ? rc : txn_pick(t, &scan, &hits);
    rc = rc ? rc : txn_rank_add(t, name, 1, name);
    rc = rc ? rc : txn_log_append(t, name, 1, name);
    rc = rc ? rc : txn_feed_append(t, name, name, NULL);
    rc = rc ? rc : txn_chunk_put(t, name, 0, name);
    rc = rc ? rc : txn_wake(t, name);
    if (c->cancel)
        belay_cancel_trigger(c->cancel);
    if (c->late)
        fake_advance_us(&c->h->clock, 1000);
    if (!rc && c->answer)
        rc = txn_fail(t, c->answer, "", "of no use");
    return rc;
}

static void check_mess(struct harness *h, struct mess *c,
                       const struct txn_options *options, belay_rc want)
{
    CLEANUP(buf_release) struct buf before = harness_dump(h);
    struct wake_counts woken = wake_hub_counts(h->driver->hub);

    arena_reset(&h->arena);
    CHECK_RC(h, txn_run(h->space, make_a_mess, c, options, &h->arena, &h->err), want);
    TAP_EQ(h->t, h->err.code, want);
    CLEANUP(buf_release) struct buf after = harness_dump(h);
    TAP_OK(h->t, bytes_eq(buf_view(&before), buf_view(&after)));
    TAP_EQ(h->t, wake_hub_counts(h->driver->hub).posted, woken.posted);
    thing_set(h, "next caller", (int64_t)want); /* finds the store as usable as ever */
}

static void a_failed_body_leaves_nothing(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct mess c = { .h = &h };
    const belay_rc codes[] = { BELAY_NOT_FOUND, BELAY_CORRUPT, BELAY_POISONED,
                               BELAY_UNKNOWN_OUTCOME, BELAY_NO_MEMORY };
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    thing_set(&h, "gone", 1);
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        c.answer = codes[i];
        check_mess(&h, &c, NULL, codes[i]);
    }
    c.answer = BELAY_OK; /* it was the answer alone: the same body commits */
    CHECK_RC(&h, harness_run(&h, make_a_mess, &c), BELAY_OK);
    TAP_EQ(t, thing_n(&h, "a"), 99);
    TAP_EQ(t, thing_n(&h, "gone"), INT64_MIN);
}

static void cancelled_and_late_leave_nothing(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct belay_cancel *cancel = NULL;
    struct mess c = { .h = &h };
    struct txn_options options = { .cancel = NULL };
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    thing_set(&h, "gone", 1);
    c.late = true;
    options.deadline_us = fake_mono_us(&h.clock) + 500;
    check_mess(&h, &c, &options, BELAY_TIMEOUT); /* passes while the body runs */
    check_mess(&h, &c, &options, BELAY_TIMEOUT); /* has passed before */
    options.deadline_us = 0;
    c.late = false;
    CHECK_RC(&h, belay_cancel_new(&cancel, NULL), BELAY_OK);
    options.cancel = c.cancel = cancel;
    check_mess(&h, &c, &options, BELAY_CANCELLED);
    check_mess(&h, &c, &options, BELAY_CANCELLED);
    belay_cancel_free(cancel);
    options.cancel = c.cancel = NULL;
    options.deadline_us = fake_mono_us(&h.clock) + 1000000;
    arena_reset(&h.arena);
    CHECK_RC(&h, txn_run(h.space, make_a_mess, &c, &options, &h.arena, &h.err),
             BELAY_OK);
}

/* A store that answers again is used again: nothing stays poisoned. */
static void unavailable_leaves_nothing(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct mess c = { .h = &h };
    const enum fault_op ops[] = { FAULT_ON_BEGIN, FAULT_ON_READ, FAULT_ON_COMMIT };
    if (!harness_open(&h, t, HARNESS_FAULTS))
        return;

    thing_set(&h, "a", 1);
    thing_set(&h, "gone", 1);
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        struct fault f = { .op = ops[i], .kind = FAULT_BEFORE, .nth = 1 };
        CHECK_RC(&h, fault_arm(h.faulty, &f, NULL), BELAY_OK);
        check_mess(&h, &c, NULL, BELAY_UNAVAILABLE);
    }
}

static belay_rc ignore_failures(struct txn *t, void *arg)
{
    const struct row *row = NULL;

    *(belay_rc *)arg = thing_get(t, "a", &row);
    (void)!thing_insert(t, "new", 1);
    return BELAY_OK;
}

/* T5 */
static void a_failed_call_fails_the_transaction(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct fault f = { .op = FAULT_ON_READ, .kind = FAULT_BEFORE, .nth = 1 };
    belay_rc got = BELAY_OK;
    if (!harness_open(&h, t, HARNESS_FAULTS))
        return;

    CHECK_RC(&h, fault_arm(h.faulty, &f, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, ignore_failures, &got), BELAY_UNAVAILABLE);
    CHECK_RC(&h, got, BELAY_UNAVAILABLE);
    TAP_EQ(t, h.err.code, BELAY_UNAVAILABLE);
    TAP_EQ(t, thing_n(&h, "new"), INT64_MIN);
    CHECK_RC(&h, harness_run(&h, ignore_failures, &got), BELAY_OK);
    TAP_EQ(t, thing_n(&h, "new"), 1);
}

static const struct tap_case cases[] = {
    { "attempts: a conflict runs the body again, results are the last run's",
      runs_again_until_it_fits },
    { "attempts: contention after max_attempts", gives_up_after_max_attempts },
    { "attempts: bounded by default, too", default_attempts_are_bounded },
    { "attempts: an answer from two round trips is never torn",
      torn_reads_never_surface },
    { "attempts: a confirmed error keeps its words",
      a_confirmed_error_keeps_its_words },
    { "attempts: a body that fails leaves nothing behind",
      a_failed_body_leaves_nothing },
    { "attempts: cancelled or out of time leaves nothing behind",
      cancelled_and_late_leave_nothing },
    { "attempts: an unavailable store leaves nothing behind",
      unavailable_leaves_nothing },
    { "attempts: a call that failed fails the transaction even if the body goes on",
      a_failed_call_fails_the_transaction },
};
const struct topic topic_attempts = { cases, COUNT_OF(cases) };
