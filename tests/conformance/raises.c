/* Rows of which a plan writes the version and no column, along with what else a driver may
 * check by writing it: members that enter an index, an entry of a log.  Whatever is refused,
 * and however late, nothing of it stays (rules 2 and 3). */
#include "conformance.h"

#define BIG (((int64_t)1 << 53) + 1) /* no double is this number */

static bool same(struct harness *h, const struct buf *before)
{
    CLEANUP(buf_release) struct buf after = harness_dump(h);

    return bytes_eq(buf_view(before), buf_view(&after));
}

static void raise_row(struct raw *r, const char *id, int64_t ver)
{
    raw_guard(r, id, ver);
    raw_put(r, id, ver + 1, 0);
    r->effects[r->plan.n_effects - 1].row.changed = 0;
}

/* A store with something of everything, and an attempt. */
static bool begin(struct raw *r, struct harness *h, struct tap *t)
{
    if (!harness_open(h, t, 0))
        return false;
    thing_set(h, "a", 7);
    thing_set(h, "b", 8);
    if (!raw_begin(r, h))
        return false;
    raw_add(r, "a", 3, 0, 10);
    raw_rank(r, EFFECT_RANK_ADD, "index", "old", 0, 5);
    for (int64_t i = 1; i <= 6; i++)
        raw_log(r, "stream", i);
    CHECK_RC(h, raw_commit(r), BELAY_OK);
    return true;
}

static void refuse(struct raw *r, belay_rc want, bool conflict,
                   const struct buf *before)
{
    CHECK_RC(r->h, raw_commit(r), want);
    TAP_EQ(r->h->t, r->result.conflict, conflict);
    TAP_OK(r->h->t, same(r->h, before));
}

static void a_raise_keeps_the_columns(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!begin(&r, &h, t))
        return;

    int64_t ver = raw_ver(&r, "a");
    for (int64_t i = 0; i < 3; i++) {
        raise_row(&r, "a", ver + i);
        raw_rank(&r, EFFECT_RANK_ADD, "index", i == 0 ? "x" : i == 1 ? "y" : "z", 0, i);
        raw_log(&r, "stream", 7 + i);
        CHECK_RC(&h, raw_commit(&r), BELAY_OK);
        TAP_OK(t, !r.result.conflict);
    }
    raise_row(&r, "a", ver + 3);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK); /* and nothing else */
    raw_end(&r);
    raw_begin(&r, &h);
    TAP_EQ(t, raw_ver(&r, "a"), ver + 4);
    raw_end(&r);
    TAP_EQ(t, thing_n(&h, "a"), 7);
    TAP_EQ(t, thing_count(&h, "a"), 3);
}

static void good_part(struct raw *r, const char *member, int64_t seq)
{
    raw_rank(r, EFFECT_RANK_ADD, "index", member, 0, 1);
    raw_rank(r, EFFECT_RANK_ADD, "another", member, 0, 1);
    raw_log(r, "stream", seq);
}

static void a_stale_raise_is_a_conflict(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!begin(&r, &h, t))
        return;

    int64_t a = raw_ver(&r, "a"), b = raw_ver(&r, "b");
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    const int64_t wrong[] = { b - 1, b + 1 };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        raise_row(&r, "a", a);
        raise_row(&r, "b", wrong[i]);
        good_part(&r, "new", 7);
        refuse(&r, BELAY_OK, true, &before);
        TAP_EQ(t, r.result.failed_guard, 1);
    }
    raise_row(&r, "a", a);
    raise_row(&r, "gone", 5);
    good_part(&r, "new", 7);
    refuse(&r, BELAY_OK, true, &before);
    TAP_EQ(t, r.result.failed_guard, 1);
    raise_row(&r, "a", a);
    raise_row(&r, "b", b);
    good_part(&r, "new", 7);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK); /* it was only that */
    TAP_OK(t, !r.result.conflict);
    raw_end(&r);
}

static void a_stale_raise_goes_before_all_else(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!begin(&r, &h, t))
        return;

    int64_t a = raw_ver(&r, "a");
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    for (int stale = 1; stale >= 0; stale--) {
        belay_rc corrupt = stale ? BELAY_OK : BELAY_CORRUPT;
        raise_row(&r, "a", a - stale);
        raw_rank(&r, EFFECT_RANK_REMOVE, "index", "old", 4, 0);
        refuse(&r, corrupt, stale, &before);
        raise_row(&r, "a", a - stale);
        raw_rank(&r, EFFECT_RANK_MOVE, "index", "nobody", 4, 5);
        refuse(&r, corrupt, stale, &before);
        raise_row(&r, "a", a - stale);
        raw_rank(&r, EFFECT_RANK_ADD, "index", "old", 0, 5);
        refuse(&r, corrupt, stale, &before);
        raise_row(&r, "a", a - stale);
        raw_log(&r, "stream", 8);
        refuse(&r, corrupt, stale, &before);
        raise_row(&r, "a", a - stale);
        raw_log(&r, "stream", 6);
        refuse(&r, corrupt, stale, &before);
        raise_row(&r, "a", a - stale);
        raw_add(&r, "gone", 1, 0, 10);
        refuse(&r, stale ? BELAY_OK : BELAY_NOT_FOUND, stale, &before);
        raise_row(&r, "a", a - stale);
        raw_add(&r, "a", 100, 0, 10);
        refuse(&r, stale ? BELAY_OK : BELAY_OUT_OF_RANGE, stale, &before);
        raise_row(&r, "a", a - stale);
        raw_add(&r, "gone", 1, 0, 10);
        raw_add(&r, "a", 100, 0, 10);
        raw_rank(&r, EFFECT_RANK_ADD, "index", "old", 0, 5);
        refuse(&r, corrupt, stale, &before);
    }
    raw_end(&r);
}

static void what_entered_leaves_again(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!begin(&r, &h, t))
        return;

    int64_t a = raw_ver(&r, "a");
    int64_t rank = h.driver->caps & DRIVER_SEES_TWICE ? 6 : 5; /* it stands at 5 */
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    raise_row(&r, "a", a);
    raw_rank(&r, EFFECT_RANK_ADD, "another", "new", 0, 1);
    raw_rank(&r, EFFECT_RANK_ADD, "index", "old", 0, rank);
    raw_rank(&r, EFFECT_RANK_ADD, "third", "new", 0, 1);
    raw_log(&r, "stream", 7);
    refuse(&r, BELAY_CORRUPT, false, &before);
    raise_row(&r, "a", a);
    raw_rank(&r, EFFECT_RANK_ADD, "another", "new", 0, 1);
    raw_rank(&r, EFFECT_RANK_ADD, "third", "new", 0, 1);
    raw_log(&r, "stream", 6);
    refuse(&r, BELAY_CORRUPT, false, &before);
    raw_end(&r);
}

/* A plan of new rows, raised ones and members that enter, and of nothing else, may have a short
 * way of its own. */
static void few_things(struct raw *r, const char *new_row, int64_t a)
{
    raw_guard(r, new_row, 0);
    raw_insert(r, new_row, 9, 1);
    raise_row(r, "a", a);
    raw_rank(r, EFFECT_RANK_ADD, "another", "new", 0, 1);
}

static void a_short_plan_leaves_nothing(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!begin(&r, &h, t))
        return;

    int64_t a = raw_ver(&r, "a"), b = raw_ver(&r, "b");
    int64_t rank = h.driver->caps & DRIVER_SEES_TWICE ? 6 : 5; /* it stands at 5 */
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    const int64_t wrong[] = { b - 1, b + 1 };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        few_things(&r, "new", a);
        raise_row(&r, "b", wrong[i]);
        refuse(&r, BELAY_OK, true, &before);
        TAP_EQ(t, r.result.failed_guard, 2);
    }
    few_things(&r, "new", a);
    raise_row(&r, "gone", 5);
    refuse(&r, BELAY_OK, true, &before);
    TAP_EQ(t, r.result.failed_guard, 2);
    few_things(&r, "b", a); /* which is there */
    refuse(&r, BELAY_OK, true, &before);
    TAP_EQ(t, r.result.failed_guard, 0);
    few_things(&r, "new", a);
    raw_rank(&r, EFFECT_RANK_ADD, "index", "old", 0, rank);
    raw_rank(&r, EFFECT_RANK_ADD, "third", "new", 0, 1);
    refuse(&r, BELAY_CORRUPT, false, &before);

    few_things(&r, "new", a);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, !r.result.conflict);
    raw_end(&r);
    raw_begin(&r, &h);
    TAP_EQ(t, raw_ver(&r, "a"), a + 1);
    TAP_EQ(t, raw_ver(&r, "new"), 9);
    raw_end(&r);
    TAP_EQ(t, thing_n(&h, "a"), 7);
    TAP_EQ(t, thing_n(&h, "new"), 1);
}

/* A log that lost its beginning has as many entries as the number of one that is not its
 * last. */
static void a_trimmed_log_ends_where_it_ends(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!begin(&r, &h, t))
        return;

    int64_t a = raw_ver(&r, "a");
    raw_log(&r, "stream", 1);
    r.effects[0].kind = EFFECT_LOG_TRIM;
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    const int64_t wrong[] = { 1, 5, 6, 8 };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        raise_row(&r, "a", a);
        good_part(&r, "new", wrong[i]);
        refuse(&r, BELAY_CORRUPT, false, &before);
    }
    raise_row(&r, "a", a);
    good_part(&r, "new", 7);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, !r.result.conflict);
    raw_end(&r);
}

static void large_versions_are_exact(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    raw_begin(&r, &h);
    raw_guard(&r, "big", 0);
    raw_insert(&r, "big", BIG, 1);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    raise_row(&r, "big", BIG - 1);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, r.result.conflict);
    raise_row(&r, "big", BIG);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, !r.result.conflict);
    raise_row(&r, "big", BIG);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, r.result.conflict);
    raw_end(&r);
    raw_begin(&r, &h);
    TAP_EQ(t, raw_ver(&r, "big"), BIG + 1);
    raw_end(&r);
}

static const struct tap_case cases[] = {
    { "raises: a row gets the next version and keeps its columns",
      a_raise_keeps_the_columns },
    { "raises: a version that is not the expected one is a conflict",
      a_stale_raise_is_a_conflict },
    { "raises: that goes before whatever else is wrong",
      a_stale_raise_goes_before_all_else },
    { "raises: what entered an index before something was refused leaves it again",
      what_entered_leaves_again },
    { "raises: a short plan that is refused leaves nothing",
      a_short_plan_leaves_nothing },
    { "raises: a log without its beginning goes on behind its last entry",
      a_trimmed_log_ends_where_it_ends },
    { "raises: versions are exact beyond 2^53", large_versions_are_exact },
};
const struct topic topic_raises = { cases, COUNT_OF(cases) };
