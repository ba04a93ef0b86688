/* Picks: hidden from other pickers, for a while, and for speed only. */
#include <stdatomic.h>

#include "conformance.h"

static const struct bytes jobs = { (const uint8_t *)"jobs", 4 };

static belay_rc fill(struct txn *t, void *arg)
{
    const char *const members[] = { "a", "b", "c", "d" };
    belay_rc rc = BELAY_OK;

    (void)arg;
    for (size_t i = 0; i < COUNT_OF(members) && !rc; i++) {
        rc = txn_rank_add(t, jobs, (int64_t)i, bytes_str(members[i]));
        rc = rc ? rc : thing_insert(t, members[i], 0);
    }
    return rc;
}

static struct scan job_scan(size_t limit)
{
    return (struct scan){ .indexes = &jobs,
                          .n_indexes = 1,
                          .min_rank = -RANK_MAX,
                          .max_rank = RANK_MAX,
                          .limit = limit };
}

/* What an attempt picks (or scans), as a word of its members. */
static void check_read(struct raw *r, size_t limit, bool hold, const char *want)
{
    struct scan scan = job_scan(limit);
    struct read q = { .kind = READ_RANK, .rank = { .scan = &scan, .hold = hold } };
    char got[16] = "";

    CHECK_RC(r->h, raw_read(r, &q), BELAY_OK);
    for (size_t i = 0; i < q.rank.out.n && i < sizeof(got) - 1; i++)
        got[i] = (char)q.rank.out.hit[i].member.ptr[0];
    TAP_STR(r->h->t, got, want);
}

static void check_pick(struct raw *r, size_t limit, const char *want)
{
    check_read(r, limit, true, want);
}

/* What is hidden from a picker, or all where nothing needs hiding. */
static const char *hidden(struct tap *t, const char *want, const char *all)
{
    return ((const struct test_driver *)t->arg)->hides ? want : all;
}

static void pickers_get_different_members(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw one, two, three;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    raw_begin(&one, &h);
    raw_begin(&two, &h);
    raw_begin(&three, &h);
    check_pick(&one, 2, "ab");
    check_pick(&two, 1, hidden(t, "c", "a"));
    check_pick(&three, 9, hidden(t, "d", "abcd"));
    raw_end(&one);
    check_pick(&two, 9, hidden(t, "abc", "abcd")); /* its own and what is free again */
    raw_end(&two);
    raw_end(&three);
    raw_begin(&one, &h);
    check_pick(&one, 9, "abcd");
    raw_end(&one);
}

static void holds_are_seen_by_pickers_only(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw holder, other;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    raw_begin(&holder, &h);
    raw_begin(&other, &h);
    check_pick(&holder, 2, "ab");
    check_read(&other, 9, false, "abcd");
    CLEANUP(buf_release) struct buf during = harness_dump(&h);
    TAP_OK(t, bytes_eq(buf_view(&before), buf_view(&during)));
    raw_end(&other);
    raw_end(&holder);
}

/* Where holds are locks, a commit that touches what is held: it is done after the hold,
 * and finds what the holder has left. */
struct mover {
    struct harness *h;
    struct raw holder;
    bool holder_removes;
    belay_rc got;
    atomic_bool done;
};

static void hold_or_move(void *arg, unsigned i)
{
    struct mover *m = arg;
    struct raw other;

    if (i == 0) {
        harness_pass_us(m->h, 100000);
        TAP_OK(m->h->t, !atomic_load(&m->done));
        if (m->holder_removes) {
            raw_rank(&m->holder, EFFECT_RANK_REMOVE, "jobs", "a", 0, 0);
            CHECK_RC(m->h, raw_commit(&m->holder), BELAY_OK);
        }
        raw_end(&m->holder);
        return;
    }
    raw_begin(&other, m->h);
    raw_rank(&other, EFFECT_RANK_REMOVE, "jobs", "a", 0, 0);
    raw_rank(&other, EFFECT_RANK_MOVE, "jobs", "b", 1, 50);
    m->got = raw_commit(&other);
    atomic_store(&m->done, true);
    raw_end(&other);
}

static void mover_waits(struct tap *t, bool holder_removes, belay_rc want,
                        const char *left)
{
    CLEANUP(harness_close) struct harness h;
    struct mover m = { .h = &h, .holder_removes = holder_removes };
    struct raw after;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    raw_begin(&m.holder, &h);
    check_pick(&m.holder, 3, "abc");
    crew_run(t, 2, hold_or_move, &m);
    CHECK_RC(&h, m.got, want);
    raw_begin(&after, &h);
    check_read(&after, 9, false, left);
    raw_end(&after);
}

static void anybody_may_remove_what_is_held(struct tap *t)
{
    if (((const struct test_driver *)t->arg)->waits) {
        mover_waits(t, false, BELAY_OK, "cdb");
        mover_waits(t, true, BELAY_CORRUPT, "bcd");
        return;
    }
    CLEANUP(harness_close) struct harness h;
    struct raw holder, other;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    raw_begin(&holder, &h);
    raw_begin(&other, &h);
    check_pick(&holder, 3, "abc");
    raw_rank(&other, EFFECT_RANK_REMOVE, "jobs", "a", 0, 0);
    raw_rank(&other, EFFECT_RANK_MOVE, "jobs", "b", 1, 50);
    CHECK_RC(&h, raw_commit(&other), BELAY_OK);
    raw_end(&other);
    /* The holder's commit on the same place comes too late. */
    raw_rank(&holder, EFFECT_RANK_REMOVE, "jobs", "a", 0, 0);
    CHECK_RC(&h, raw_commit(&holder), BELAY_CORRUPT);
    raw_end(&holder);
    raw_begin(&other, &h);
    check_read(&other, 9, false, "cdb");
    raw_end(&other);
}

static void the_holder_may_remove(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    raw_begin(&r, &h);
    check_pick(&r, 2, "ab");
    raw_rank(&r, EFFECT_RANK_REMOVE, "jobs", "a", 0, 0);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    check_pick(&r, 9, "bcd"); /* b was given back with the attempt */
    raw_end(&r);
}

static void holds_lapse(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw dead, next;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    raw_begin(&dead, &h);
    check_pick(&dead, 2, "ab");
    harness_pass_us(&h, HOLD_MAX_US / 2);
    raw_begin(&next, &h);
    check_pick(&next, 1, hidden(t, "c", "a"));
    raw_end(&next);
    harness_pass_us(&h, HOLD_MAX_US);
    raw_begin(&next, &h);
    check_pick(&next, 9, "abcd");
    raw_end(&dead); /* takes nothing from the new holder */
    struct raw third;
    raw_begin(&third, &h);
    check_pick(&third, 9, hidden(t, "", "abcd"));
    raw_end(&third);
    raw_end(&next);
}

/* --- claims, as bodies make them --- */

struct claim {
    struct harness *h;
    unsigned runs;
    char got[4];
    bool outlive; /* lets its own hold lapse and somebody else claim, once */
};

static belay_rc claim_body(struct txn *t, void *arg);

static void claim_aside(struct claim *c)
{
    struct claim other = { .h = c->h };

    harness_pass_us(c->h, HOLD_MAX_US + 1000000);
    CHECK_RC(c->h, harness_run_aside(c->h, claim_body, &other), BELAY_OK);
    TAP_STR(c->h->t, other.got, "a");
}

/* Takes the first job: its row is fetched, so guarded, and marked. */
static belay_rc claim_body(struct txn *t, void *arg)
{
    struct claim *c = arg;
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = job_scan(1);
    struct hits hits;

    scan.fetch = &fetch;
    scan.n_fetch = 1;
    c->got[0] = 0;
    belay_rc rc = txn_pick(t, &scan, &hits);
    if (rc || hits.n == 0)
        return rc ? rc : txn_fail(t, BELAY_NOT_FOUND, "", "no job");
    c->got[0] = (char)hits.hit[0].member.ptr[0];
    c->got[1] = 0;
    if (c->runs++ == 0 && c->outlive)
        claim_aside(c);
    struct value key = value_text(hits.hit[0].member);
    struct change change = { THING_N, value_i64(1) };
    rc = txn_put(t, &row_thing, &key, &change, 1);
    return rc ? rc : txn_rank_remove(t, jobs, hits.hit[0].rank, hits.hit[0].member);
}

static void a_lapsed_holder_grants_nothing_twice(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct claim c = { .h = &h, .outlive = true };
    if (!harness_open(&h, t, HARNESS_INTERLEAVED))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, claim_body, &c), BELAY_OK);
    TAP_EQ(t, c.runs, 2);
    TAP_STR(t, c.got, "b");
    TAP_EQ(t, thing_n(&h, "a"), 1);
    TAP_EQ(t, thing_n(&h, "b"), 1);
    TAP_EQ(t, thing_n(&h, "c"), 0);
}

static belay_rc pick_and_fail(struct txn *t, void *arg)
{
    struct scan scan = job_scan(9);
    struct hits hits;
    belay_rc rc = txn_pick(t, &scan, &hits);

    *(size_t *)arg = rc ? 0 : hits.n;
    return rc ? rc : txn_fail(t, BELAY_WRONG_STATE, "", "changed its mind");
}

static void holds_end_with_a_body_that_fails(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    size_t n = 0;
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, pick_and_fail, &n), BELAY_WRONG_STATE);
    TAP_EQ(t, n, 4);
    raw_begin(&r, &h);
    check_pick(&r, 9, "abcd");
    raw_end(&r);
}

/* --- several indexes --- */

static belay_rc fill_lanes(struct txn *t, void *arg)
{
    const struct bytes low = bytes_str("low"), high = bytes_str("high");
    belay_rc rc = txn_rank_add(t, low, 5, bytes_str("e"));

    (void)arg;
    rc = rc ? rc : txn_rank_add(t, low, 1, bytes_str("a"));
    rc = rc ? rc : txn_rank_add(t, high, 2, bytes_str("b"));
    rc = rc ? rc : txn_rank_add(t, high, 5, bytes_str("e"));
    return rc ? rc : txn_rank_add(t, high, 3, bytes_str("c"));
}

static void picks_merge_indexes(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const struct bytes lanes[] = { bytes_str("low"), bytes_str("high") };
    const char *const want[] = { "alow", "bhigh", "chigh", "ehigh", "elow" };
    struct scan scan = {
        .indexes = lanes, .n_indexes = 2, .max_rank = RANK_MAX, .limit = 9
    };
    struct read q = { .kind = READ_RANK, .rank = { .scan = &scan, .hold = true } };
    struct raw one, two;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill_lanes, NULL), BELAY_OK);
    raw_begin(&one, &h);
    CHECK_RC(&h, raw_read(&one, &q), BELAY_OK);
    if (TAP_EQ(t, q.rank.out.n, COUNT_OF(want))) {
        for (size_t i = 0; i < COUNT_OF(want); i++) {
            const struct hit *hit = &q.rank.out.hit[i];
            TAP_EQ(t, hit->member.ptr[0], want[i][0]);
            TAP_OK(t, bytes_eq(hit->index, bytes_str(want[i] + 1)));
        }
    }
    raw_end(&one);

    raw_begin(&one, &h);
    raw_begin(&two, &h);
    scan.limit = 4; /* the member "e" is held in one index and free in the other */
    CHECK_RC(&h, raw_read(&one, &q), BELAY_OK);
    CHECK_RC(&h, raw_read(&two, &q), BELAY_OK);
    if (TAP_EQ(t, q.rank.out.n, hidden(t, "1", "4")[0] - '0'))
        TAP_OK(t, bytes_eq(q.rank.out.hit[q.rank.out.n - 1].index,
                           bytes_str(hidden(t, "low", "high"))));
    raw_end(&one);
    raw_end(&two);
}

static const struct tap_case cases[] = {
    { "picks: two pickers get different members until one has ended",
      pickers_get_different_members },
    { "picks: scans and dumps show what is held where it was",
      holds_are_seen_by_pickers_only },
    { "picks: a commit may move and remove what another one holds",
      anybody_may_remove_what_is_held },
    { "picks: the holder's own commit removes and gives the rest back",
      the_holder_may_remove },
    { "picks: a hold that is never ended lapses after HOLD_MAX_US", holds_lapse },
    { "picks: who has outlived its hold grants nothing twice",
      a_lapsed_holder_grants_nothing_twice },
    { "picks: holds end with a body that fails", holds_end_with_a_body_that_fails },
    { "picks: several indexes are merged by rank, member and index",
      picks_merge_indexes },
};
const struct topic topic_picks = { cases, COUNT_OF(cases) };
