/* Commits: atomicity, and which answer a plan gets (rules 2, 3 and 4). */
#include "conformance.h"

static bool same(struct harness *h, const struct buf *before)
{
    CLEANUP(buf_release) struct buf after = harness_dump(h);

    return bytes_eq(buf_view(before), buf_view(&after));
}

/* A plan of every shape, then one fault: nothing of it may be seen. */
static void good_part(struct raw *r, int64_t a_ver)
{
    raw_guard(r, "a", a_ver);
    raw_put(r, "a", a_ver + 1, 100);
    raw_rank(r, EFFECT_RANK_ADD, "index", "new", 0, 1);
    raw_log(r, "stream", 1);
    raw_feed(r, "feed", "news");
    raw_add(r, "a", 1, INT64_MIN, INT64_MAX);
}

enum fault_case { FAULTY_GUARD, FAULTY_RANK, FAULTY_COUNTER, FAULTY_RANGE };

static void fails_whole(struct tap *t, enum fault_case which, belay_rc want)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    raw_begin(&r, &h);
    int64_t ver = raw_ver(&r, "a");
    good_part(&r, ver);
    if (which == FAULTY_GUARD)
        raw_guard(&r, "gone", 5);
    if (which == FAULTY_RANK)
        raw_rank(&r, EFFECT_RANK_MOVE, "index", "nobody", 1, 2);
    if (which == FAULTY_COUNTER)
        raw_add(&r, "gone", 1, 0, 10);
    if (which == FAULTY_RANGE)
        raw_add(&r, "a", 1, 0, 1);
    CHECK_RC(&h, raw_commit(&r), want);
    TAP_EQ(t, r.result.conflict, which == FAULTY_GUARD);
    TAP_EQ(t, r.result.failed_guard, which == FAULTY_GUARD);
    raw_end(&r);
    TAP_OK(t, same(&h, &before));

    /* The same without the fault applies: it was only that. */
    raw_begin(&r, &h);
    good_part(&r, ver);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, !r.result.conflict);
    raw_end(&r);
    TAP_OK(t, !same(&h, &before));
}

static void a_conflict_applies_nothing(struct tap *t)
{
    fails_whole(t, FAULTY_GUARD, BELAY_OK);
}

static void corrupt_applies_nothing(struct tap *t)
{
    fails_whole(t, FAULTY_RANK, BELAY_CORRUPT);
}

static void not_found_applies_nothing(struct tap *t)
{
    fails_whole(t, FAULTY_COUNTER, BELAY_NOT_FOUND);
}

static void out_of_range_applies_nothing(struct tap *t)
{
    fails_whole(t, FAULTY_RANGE, BELAY_OUT_OF_RANGE);
}

static void bad_effects(struct raw *r, bool range, bool missing, bool corrupt)
{
    if (range)
        raw_add(r, "a", 100, 0, 10);
    if (missing)
        raw_add(r, "gone", 1, 0, 10);
    if (corrupt)
        raw_rank(r, EFFECT_RANK_REMOVE, "index", "nobody", 1, 0);
}

/* The wrong ones come first in the plan, so that order in it cannot be the reason. */
static void precedence(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    raw_begin(&r, &h);
    bad_effects(&r, true, true, true);
    raw_guard(&r, "a", 1);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, r.result.conflict);
    bad_effects(&r, true, true, true);
    CHECK_RC(&h, raw_commit(&r), BELAY_CORRUPT);
    bad_effects(&r, true, true, false);
    CHECK_RC(&h, raw_commit(&r), BELAY_NOT_FOUND);
    TAP_STR(t, r.err.entity, "thing");
    bad_effects(&r, true, false, false);
    CHECK_RC(&h, raw_commit(&r), BELAY_OUT_OF_RANGE);
    TAP_STR(t, r.err.reason, "count");
    raw_end(&r);
    TAP_EQ(t, thing_count(&h, "a"), 0);
}

static void guards_alone_are_checked(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    raw_begin(&r, &h);
    int64_t ver = raw_ver(&r, "a");
    raw_guard(&r, "a", ver);
    raw_guard(&r, "b", 0);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, !r.result.conflict);
    raw_guard(&r, "a", ver);
    raw_guard(&r, "b", 1);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, r.result.conflict);
    TAP_EQ(t, r.result.failed_guard, 1);
    raw_guard(&r, "a", 0);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, r.result.conflict);
    raw_end(&r);
    TAP_OK(t, same(&h, &before));
}

/* Rule 1: all questions of one read are answered from one snapshot that has every
 * commit which had returned. */
static void a_read_sees_what_was_committed(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    raw_begin(&r, &h);
    for (int64_t i = 1; i <= 20; i++) {
        struct raw w;
        raw_begin(&w, &h);
        int64_t ver = raw_ver(&w, "a");
        raw_guard(&w, "a", ver);
        if (ver)
            raw_put(&w, "a", ver + 1, i);
        else
            raw_insert(&w, "a", 7, i);
        CHECK_RC(&h, raw_commit(&w), BELAY_OK);
        raw_end(&w);
        struct raw fresh;
        raw_begin(&fresh, &h);
        const struct row *row = raw_row(&fresh, "a");
        if (TAP_OK(t, row != NULL))
            TAP_EQ(t, row->v[THING_N].i, i);
        raw_end(&fresh);
    }
    raw_end(&r);
}

static void rank_entries_must_be_as_named(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    raw_begin(&r, &h);
    raw_rank(&r, EFFECT_RANK_ADD, "i", "m", 0, 5);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    raw_rank(&r, EFFECT_RANK_ADD, "i", "m", 0, 5);
    CHECK_RC(&h, raw_commit(&r), BELAY_CORRUPT);
    if (h.driver->caps & DRIVER_SEES_TWICE) {
        raw_rank(&r, EFFECT_RANK_ADD, "i", "m", 0, 6);
        CHECK_RC(&h, raw_commit(&r), BELAY_CORRUPT);
    }
    raw_rank(&r, EFFECT_RANK_MOVE, "i", "m", 4, 6);
    CHECK_RC(&h, raw_commit(&r), BELAY_CORRUPT);
    raw_rank(&r, EFFECT_RANK_REMOVE, "i", "m", 4, 0);
    CHECK_RC(&h, raw_commit(&r), BELAY_CORRUPT);
    raw_rank(&r, EFFECT_RANK_MOVE, "other", "m", 5, 6);
    CHECK_RC(&h, raw_commit(&r), BELAY_CORRUPT);
    raw_rank(&r, EFFECT_RANK_ADD, "other", "m", 0,
             5); /* another index: another place */
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    raw_rank(&r, EFFECT_RANK_MOVE, "i", "m", 5, 5);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    raw_rank(&r, EFFECT_RANK_REMOVE, "i", "m", 5, 0);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    raw_rank(&r, EFFECT_RANK_REMOVE, "i", "m", 5, 0);
    CHECK_RC(&h, raw_commit(&r), BELAY_CORRUPT);
    raw_end(&r);
}

/* One enters an index, one leaves it: both or neither. */
static void enters_and_leaves(struct tap *t)
{
    static const struct {
        const char *enters, *leaves;
        int64_t old_rank;
        belay_rc rc;
        const char *why;
    } rows[] = { { "there", "leaves", 2, BELAY_CORRUPT, "in the index already" },
                 { "new", "leaves", 3, BELAY_CORRUPT, "at another rank" },
                 { "new", "nobody", 2, BELAY_CORRUPT, "not in the index" },
                 { "there", "nobody", 2, BELAY_CORRUPT, "in the index" },
                 { "new", "leaves", 2, BELAY_OK, NULL } };
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    raw_begin(&r, &h);
    raw_rank(&r, EFFECT_RANK_ADD, "i", "there", 0, 1);
    raw_rank(&r, EFFECT_RANK_ADD, "i", "leaves", 0, 2);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CLEANUP(buf_release) struct buf before = harness_dump(&h);
        raw_rank(&r, EFFECT_RANK_REMOVE, "i", rows[i].leaves, rows[i].old_rank, 0);
        raw_rank(&r, EFFECT_RANK_ADD, "i", rows[i].enters, 0, 1);
        CHECK_RC(&h, raw_commit(&r), rows[i].rc);
        TAP_OK(t, !rows[i].why || strstr(r.err.message, rows[i].why) ||
                      strstr(r.err.message, "not as the plan expects")); /* naive */
        CLEANUP(buf_release) struct buf after = harness_dump(&h);
        TAP_EQ(t, bytes_eq(buf_view(&before), buf_view(&after)), rows[i].rc != 0);
    }
    raw_end(&r);
}

/* PUT and DELETE through the driver's door, with columns that are not named. */
static void put_keeps_other_columns(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    raw_begin(&r, &h);
    int64_t ver = raw_ver(&r, "a");
    raw_add(&r, "a", 5, 0, 10);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, r.results[0].known);
    TAP_EQ(t, r.results[0].value, 5);
    TAP_EQ(t, raw_ver(&r, "a"), ver); /* counters do not bump the version */
    raw_guard(&r, "a", ver);
    raw_put(&r, "a", ver + 1, 2); /* its values say count 0, but do not name it */
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, !r.result.conflict);
    raw_end(&r);
    TAP_EQ(t, thing_n(&h, "a"), 2);
    TAP_EQ(t, thing_count(&h, "a"), 5);
}

static const struct tap_case cases[] = {
    { "commits: a conflict applies nothing", a_conflict_applies_nothing },
    { "commits: corrupt applies nothing", corrupt_applies_nothing },
    { "commits: not_found applies nothing", not_found_applies_nothing },
    { "commits: out_of_range applies nothing", out_of_range_applies_nothing },
    { "commits: conflict goes before corrupt, not_found and out_of_range", precedence },
    { "commits: a plan without effects is only checked", guards_alone_are_checked },
    { "commits: a read sees every commit that had returned",
      a_read_sees_what_was_committed },
    { "commits: rank entries must be where the plan says",
      rank_entries_must_be_as_named },
    { "commits: one enters an index and one leaves it, or neither", enters_and_leaves },
    { "commits: a put changes the columns it names", put_keeps_other_columns },
};
const struct topic topic_commits = { cases, COUNT_OF(cases) };
