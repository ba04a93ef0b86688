/* Ranks as a body changes them, and what it sees of its own changes (T3). */
#include "conformance.h"

/* Scans "i" (or what c->scan says) into a line "rank member, ...". */
struct view {
    struct scan scan;
    struct buf out;
};

static const struct bytes index_i = { (const uint8_t *)"i", 1 };

static struct scan whole_scan(void)
{
    return (struct scan){ .indexes = &index_i,
                          .n_indexes = 1,
                          .min_rank = -RANK_MAX,
                          .max_rank = RANK_MAX,
                          .limit = 100 };
}

static belay_rc view_in(struct txn *t, const struct scan *scan, struct buf *out)
{
    struct hits hits;
    belay_rc rc = txn_scan(t, scan, &hits);

    buf_reset(out);
    for (size_t i = 0; i < hits.n && !rc; i++)
        buf_printf(out, "%s%lld%.*s", i ? " " : "", (long long)hits.hit[i].rank,
                   (int)hits.hit[i].member.len, (const char *)hits.hit[i].member.ptr);
    buf_append_char(out, '\0');
    return rc;
}

static belay_rc view_body(struct txn *t, void *arg)
{
    struct view *v = arg;

    return view_in(t, &v->scan, &v->out);
}

static void check_view(struct harness *h, const char *want)
{
    struct view v = { .scan = whole_scan() };

    CHECK_RC(h, harness_run(h, view_body, &v), BELAY_OK);
    TAP_STR(h->t, (const char *)v.out.ptr, want);
    buf_release(&v.out);
}

static belay_rc rank_add(struct txn *t, const char *member, int64_t rank)
{
    return txn_rank_add(t, index_i, rank, bytes_str(member));
}

static belay_rc rank_move(struct txn *t, const char *member, int64_t from, int64_t to)
{
    return txn_rank_move(t, index_i, from, to, bytes_str(member));
}

static belay_rc rank_remove(struct txn *t, const char *member, int64_t from)
{
    return txn_rank_remove(t, index_i, from, bytes_str(member));
}

static belay_rc fill(struct txn *t, void *arg)
{
    belay_rc rc = rank_add(t, "a", 10);

    (void)arg;
    rc = rc ? rc : rank_add(t, "b", 20);
    rc = rc ? rc : rank_add(t, "c", 20);
    rc = rc ? rc : rank_add(t, "d", 30);
    return rc ? rc : rank_add(t, "e", -5);
}

static belay_rc shuffle(struct txn *t, void *arg)
{
    belay_rc rc = rank_move(t, "a", 10, 40);

    (void)arg;
    rc = rc ? rc : rank_remove(t, "b", 20);
    rc = rc ? rc : rank_add(t, "z", 20);
    return rc ? rc : rank_move(t, "e", -5, 20);
}

static void adds_moves_removes(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    check_view(&h, "");
    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    check_view(&h, "-5e 10a 20b 20c 30d");
    CHECK_RC(&h, harness_run(&h, shuffle, NULL), BELAY_OK);
    check_view(&h, "20c 20e 20z 30d 40a");
}

/* --- a body's own changes in its scans --- */

struct own {
    struct tap *t;
    struct buf out;
};

static void sees(struct txn *t, struct own *c, struct scan scan, const char *want)
{
    belay_rc rc = view_in(t, &scan, &c->out);

    TAP_EQ(c->t, rc, BELAY_OK);
    TAP_STR(c->t, (const char *)c->out.ptr, want);
}

static belay_rc own_changes(struct txn *t, void *arg)
{
    struct own *c = arg;
    struct scan scan = whole_scan();
    struct scan_cursor after = { .rank = 20,
                                 .member = bytes_str("c"),
                                 .index = index_i };
    belay_rc rc = shuffle(t, NULL);

    sees(t, c, scan, "20c 20e 20z 30d 40a");
    scan.limit = 2;
    sees(t, c, scan, "20c 20e");
    scan.after = &after;
    sees(t, c, scan, "20e 20z");
    scan.limit = 100;
    scan.max_rank = 30;
    sees(t, c, scan, "20e 20z 30d");
    scan = whole_scan();
    scan.descending = true;
    sees(t, c, scan, "40a 30d 20z 20e 20c");
    scan.limit = 3;
    sees(t, c, scan, "40a 30d 20z");
    scan.after =
        &(struct scan_cursor){ .rank = 20, .member = bytes_str("z"), .index = index_i };
    sees(t, c, scan, "20e 20c");
    scan = whole_scan();
    scan.min_rank = 31;
    sees(t, c, scan, "40a");
    return rc;
}

static void own_ranks_in_scans(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct own c = { .t = t };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, own_changes, &c), BELAY_OK);
    check_view(&h, "20c 20e 20z 30d 40a");
    buf_release(&c.out);
}

/* Removing what a scan would have shown does not make it shorter. */
static belay_rc remove_first_two(struct txn *t, void *arg)
{
    struct own *c = arg;
    struct scan scan = whole_scan();
    belay_rc rc = rank_remove(t, "e", -5);

    rc = rc ? rc : rank_remove(t, "a", 10);
    scan.limit = 2;
    sees(t, c, scan, "20b 20c");
    return rc;
}

static void a_limit_counts_what_is_left(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct own c = { .t = t };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, remove_first_two, &c), BELAY_OK);
    check_view(&h, "20b 20c 30d");
    buf_release(&c.out);
}

/* Several changes of one member become one. */
static belay_rc there_and_back(struct txn *t, void *arg)
{
    belay_rc rc = rank_move(t, "a", 10, 11);

    (void)arg;
    rc = rc ? rc : rank_move(t, "a", 11, 12);
    rc = rc ? rc : rank_remove(t, "b", 20);
    rc = rc ? rc : rank_add(t, "b", 21);
    rc = rc ? rc : rank_add(t, "new", 1);
    rc = rc ? rc : rank_remove(t, "new", 1);
    rc = rc ? rc : rank_move(t, "d", 30, 31);
    return rc ? rc : rank_remove(t, "d", 31);
}

static void changes_add_up(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, there_and_back, NULL), BELAY_OK);
    check_view(&h, "-5e 12a 20c 21b");
}

/* --- corrupt --- */

static belay_rc add_twice(struct txn *t, void *arg)
{
    belay_rc rc = rank_add(t, "twice", 1);

    (void)arg;
    return rc ? rc : rank_add(t, "twice", 1);
}

static belay_rc add_present(struct txn *t, void *arg)
{
    (void)arg;
    return rank_add(t, "a", 10);
}

static belay_rc move_absent(struct txn *t, void *arg)
{
    (void)arg;
    return rank_move(t, "nobody", 10, 11);
}

static belay_rc remove_elsewhere(struct txn *t, void *arg)
{
    (void)arg;
    return rank_remove(t, "a", 11);
}

static void entries_out_of_place(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    txn_body *const bodies[] = { add_twice, add_present, move_absent,
                                 remove_elsewhere };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    for (size_t i = 0; i < COUNT_OF(bodies); i++)
        CHECK_RC(&h, harness_run(&h, bodies[i], NULL), BELAY_CORRUPT);
    check_view(&h, "-5e 10a 20b 20c 30d");
}

/* --- limits --- */

static belay_rc add_at(struct txn *t, void *arg)
{
    return rank_add(t, "far", *(int64_t *)arg);
}

static void ranks_within_2_53(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const int64_t bad[] = { RANK_MAX + 1, -RANK_MAX - 1, INT64_MAX, INT64_MIN };
    int64_t rank = RANK_MAX;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, add_at, &rank), BELAY_OK);
    check_view(&h, "9007199254740992far");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        rank = bad[i];
        CHECK_RC(&h, harness_run(&h, add_at, &rank), BELAY_INVALID);
    }
}

/* Neighbours that a double could confuse just below the limit. */
static belay_rc add_neighbours(struct txn *t, void *arg)
{
    belay_rc rc = rank_add(t, "x", RANK_MAX);

    (void)arg;
    rc = rc ? rc : rank_add(t, "y", RANK_MAX - 1);
    rc = rc ? rc : rank_add(t, "z", -RANK_MAX + 1);
    return rc ? rc : rank_add(t, "w", -RANK_MAX);
}

static void exact_to_the_last_one(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct view v = { .scan = whole_scan() };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, add_neighbours, NULL), BELAY_OK);
    check_view(&h, "-9007199254740992w -9007199254740991z 9007199254740991y "
                   "9007199254740992x");
    v.scan.max_rank = RANK_MAX - 1;
    v.scan.min_rank = -RANK_MAX + 1;
    CHECK_RC(&h, harness_run(&h, view_body, &v), BELAY_OK);
    TAP_STR(t, (const char *)v.out.ptr, "-9007199254740991z 9007199254740991y");
    buf_release(&v.out);
}

static const struct tap_case cases[] = {
    { "ranks: add, move and remove", adds_moves_removes },
    { "ranks: a body's scans show its own changes", own_ranks_in_scans },
    { "ranks: a limit counts what a body has left", a_limit_counts_what_is_left },
    { "ranks: several changes of a member become one", changes_add_up },
    { "ranks: an entry that is not as named is corrupt", entries_out_of_place },
    { "ranks: beyond 2^53 is invalid", ranks_within_2_53 },
    { "ranks: exact up to 2^53 both ways", exact_to_the_last_one },
};
const struct topic topic_ranks = { cases, COUNT_OF(cases) };
