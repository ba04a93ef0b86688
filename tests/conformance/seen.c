/* Scan guards (rule 3 with DRIVER_SCAN_GUARDS): a plan says what scans must find.  Drivers that
 * do not say so are never handed any, and answer the same. */
#include "conformance.h"

static const struct bytes one[] = { { (const uint8_t *)"i", 1 } };
static const struct bytes two[] = { { (const uint8_t *)"i", 1 },
                                    { (const uint8_t *)"j", 1 } };

#define MANY 300

static bool guards_scans(const struct harness *h)
{
    return (h->driver->caps & DRIVER_SCAN_GUARDS) != 0;
}

/* i: a 1, b 2, c 2, d 9;  j: b 2, e 3 */
static belay_rc fill(struct txn *t, void *arg)
{
    static const struct {
        const char *index, *member;
        int64_t rank;
    } all[] = { { "i", "a", 1 }, { "i", "b", 2 }, { "i", "c", 2 },
                { "i", "d", 9 }, { "j", "b", 2 }, { "j", "e", 3 } };
    belay_rc rc = BELAY_OK;

    (void)arg;
    for (size_t i = 0; i < COUNT_OF(all) && !rc; i++)
        rc = txn_rank_add(t, bytes_str(all[i].index), all[i].rank,
                          bytes_str(all[i].member));
    return rc;
}

/* Members as words of three: index, member, rank, as in "ia1". */
struct guard_case {
    const char *what;
    const struct bytes *indexes;
    size_t n_indexes;
    int64_t min, max;
    size_t limit;
    const char *found;
    bool holds;
};

/* clang-format off */
static const struct guard_case rows[] = {
    { "the first",                   one, 1, -RANK_MAX, RANK_MAX, 1, "ia1",             true },
    { "the first two",               one, 1, -RANK_MAX, RANK_MAX, 2, "ia1 ib2",         true },
    { "up to the last of a rank",    one, 1, -RANK_MAX, RANK_MAX, 3, "ia1 ib2 ic2",     true },
    { "all of them",                 one, 1, -RANK_MAX, RANK_MAX, 9, "ia1 ib2 ic2 id9", true },
    { "a range",                     one, 1, 2,         8,        9, "ib2 ic2",         true },
    { "the first of a range",        one, 1, 2,         RANK_MAX, 1, "ib2",             true },
    { "nothing where nothing is",    one, 1, 3,         8,        1, "",                true },
    { "several indexes, merged",     two, 2, -RANK_MAX, RANK_MAX, 3, "ia1 ib2 jb2",     true },
    { "of several, one has none",    two, 2, 4,         RANK_MAX, 2, "id9",             true },
    { "nothing in several",          two, 2, 4,         8,        1, "",                true },
    { "another one is the first",    one, 1, -RANK_MAX, RANK_MAX, 1, "ib2",             false },
    { "it stands elsewhere",         one, 1, -RANK_MAX, RANK_MAX, 1, "ia2",             false },
    { "there are more of them",      one, 1, -RANK_MAX, RANK_MAX, 9, "ia1 ib2 ic2",     false },
    { "there are more in the range", one, 1, 2,         8,        9, "ib2",             false },
    { "there are fewer of them",     one, 1, 2,         8,        9, "ib2 ic2 id9",     false },
    { "fewer than all of them",      one, 1, -RANK_MAX, RANK_MAX, 5, "ia1 ib2 ic2 id9 ie9", false },
    { "another one is behind it",    one, 1, -RANK_MAX, RANK_MAX, 2, "ia1 ic2",         false },
    { "something where nothing is",  one, 1, 2,         8,        1, "",                false },
    { "out of order",                one, 1, -RANK_MAX, RANK_MAX, 2, "ib2 ia1",         false },
    { "another index comes between", two, 2, -RANK_MAX, RANK_MAX, 3, "ia1 ib2 ic2",     false },
    { "something in one of several", two, 2, 3,         8,        1, "",                false },
    { "of another index",            two, 2, 2,         2,        1, "jb2",             false },
};
/* clang-format on */

static size_t parse(const char *text, struct ranked *out)
{
    size_t n = 0;

    for (; *text; text += 3 + (text[3] == ' '))
        out[n++] =
            (struct ranked){ bytes_of(text, 1), bytes_of(text + 1, 1), text[2] - '0' };
    return n;
}

/* Commits an insert under a scan guard. */
static void commit_under(struct raw *r, const struct scan_guard *g, const char *id)
{
    raw_guard(r, id, 0);
    raw_insert(r, id, 5, 1);
    r->plan.scans = g;
    r->plan.n_scans = 1;
    CHECK_RC(r->h, raw_commit(r), BELAY_OK);
    r->plan.scans = NULL;
    r->plan.n_scans = 0;
}

static void what_scans_must_find(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0) || !guards_scans(&h))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct ranked found[8];
        const struct scan_guard g = { .indexes = rows[i].indexes,
                                      .n_indexes = rows[i].n_indexes,
                                      .min_rank = rows[i].min,
                                      .max_rank = rows[i].max,
                                      .limit = rows[i].limit,
                                      .found = found,
                                      .n = parse(rows[i].found, found) };
        unsigned failed = t->failed;
        struct raw r;
        raw_begin(&r, &h);
        commit_under(&r, &g, rows[i].what);
        TAP_EQ(t, r.result.conflict, !rows[i].holds);
        if (!rows[i].holds) {
            TAP_OK(t, r.result.failed_guard == GUARD_NONE);
            TAP_EQ(t, r.result.failed_scan, 0);
        }
        raw_end(&r);
        TAP_EQ(t, thing_n(&h, rows[i].what), rows[i].holds ? 1 : INT64_MIN);
        if (t->failed > failed)
            printf("# %s\n", rows[i].what);
    }
}

/* Before the effects of the plan itself; and the second of two is the one that fails. */
static void effects_come_after(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!harness_open(&h, t, 0) || !guards_scans(&h))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    const struct ranked first = { one[0], bytes_str("a"), 1 };
    const struct scan_guard g[] = {
        { .indexes = one,
          .n_indexes = 1,
          .min_rank = -RANK_MAX,
          .max_rank = RANK_MAX,
          .limit = 1,
          .found = &first,
          .n = 1 },
        { .indexes = two + 1, .n_indexes = 1, .min_rank = 3, .max_rank = 3, .limit = 1 }
    };
    raw_begin(&r, &h);
    raw_rank(&r, EFFECT_RANK_REMOVE, "i", "a", 1, 0);
    r.plan.scans = g;
    r.plan.n_scans = 2;
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    TAP_OK(t, r.result.conflict);
    TAP_EQ(t, r.result.failed_scan, 1);
    raw_end(&r);
    for (unsigned i = 0; i < 2; i++) {
        raw_begin(&r, &h);
        raw_rank(&r, i == 0 ? EFFECT_RANK_REMOVE : EFFECT_RANK_ADD, "i", "a", 1, 1);
        r.plan.scans = g;
        r.plan.n_scans = 1;
        CHECK_RC(&h, raw_commit(&r), BELAY_OK);
        TAP_EQ(t, r.result.conflict, i == 1); /* it is no longer there */
        raw_end(&r);
    }
}

/* That a scan has found a member says where it stands, there and nowhere else. */
static void what_was_found_stands_there(struct tap *t)
{
    static const struct {
        const char *index, *member;
        int64_t rank;
        belay_rc rc;
    } removes[] = { { "i", "a", 2, BELAY_CORRUPT },
                    { "j", "a", 1, BELAY_CORRUPT },
                    { "i", "b", 1, BELAY_CORRUPT },
                    { "j", "e", 3, BELAY_OK }, /* which it has not */
                    { "i", "a", 1, BELAY_OK } };
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0) || !guards_scans(&h))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    const struct ranked first = { one[0], bytes_str("a"), 1 };
    const struct scan_guard g = { .indexes = one,
                                  .n_indexes = 1,
                                  .min_rank = -RANK_MAX,
                                  .max_rank = RANK_MAX,
                                  .limit = 1,
                                  .found = &first,
                                  .n = 1 };
    for (size_t i = 0; i < COUNT_OF(removes); i++) {
        struct raw r;
        raw_begin(&r, &h);
        raw_rank(&r, EFFECT_RANK_REMOVE, removes[i].index, removes[i].member,
                 removes[i].rank, 0);
        r.plan.scans = &g;
        r.plan.n_scans = 1;
        if (removes[i].rank == 1) /* one enters along with it */
            raw_rank(&r, EFFECT_RANK_ADD, removes[i].index, "n", 0, 7);
        CHECK_RC(&h, raw_commit(&r), removes[i].rc);
        TAP_OK(t, !r.result.conflict);
        raw_end(&r);
    }
}

/* More indexes, and more members, than a byte says. */
static belay_rc fill_many(struct txn *t, void *arg)
{
    const struct ranked *all = arg;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < MANY && !rc; i++)
        rc = txn_rank_add(t, all[i].index, all[i].rank, all[i].member);
    return rc;
}

static void many_must_be_found(struct tap *t)
{
    static char names[MANY][8];
    struct ranked all[MANY], first[MANY];
    struct bytes indexes[MANY];
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0) || !guards_scans(&h))
        return;

    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "m%03zu", i);
        indexes[i] = bytes_str(names[i]);
        all[i] = (struct ranked){ indexes[i], indexes[i], 5 };
        first[i] = (struct ranked){ one[0], indexes[i], (int64_t)i };
    }
    CHECK_RC(&h, harness_run(&h, fill_many, all), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, fill_many, first), BELAY_OK);
    for (unsigned i = 0; i < 4; i++) {
        bool several = i % 2 == 0, lacks_one = i >= 2;
        const struct scan_guard g = { .indexes = several ? indexes : one,
                                      .n_indexes = several ? MANY : 1,
                                      .min_rank = -RANK_MAX,
                                      .max_rank = RANK_MAX,
                                      .limit = MANY + 1,
                                      .found = several ? all : first,
                                      .n = MANY - lacks_one };
        struct raw r;
        raw_begin(&r, &h);
        commit_under(&r, &g, names[i]);
        TAP_EQ(t, r.result.conflict, lacks_one);
        raw_end(&r);
    }
}

/* What another attempt holds is about to be taken. */
static void held_by_others(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw other, r;
    if (!harness_open(&h, t, 0) || !guards_scans(&h))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    const struct ranked first = { one[0], bytes_str("a"), 1 };
    struct scan_guard g = { .indexes = one,
                            .n_indexes = 1,
                            .min_rank = -RANK_MAX,
                            .max_rank = RANK_MAX,
                            .limit = 1,
                            .unheld = true,
                            .found = &first,
                            .n = 1 };
    const struct scan scan = { .indexes = one,
                               .n_indexes = 1,
                               .min_rank = -RANK_MAX,
                               .max_rank = RANK_MAX,
                               .limit = 1 };
    struct read q = { .kind = READ_RANK, .rank = { .scan = &scan, .hold = true } };
    raw_begin(&other, &h);
    CHECK_RC(&h, raw_read(&other, &q), BELAY_OK);
    raw_begin(&r, &h);
    commit_under(&r, &g, "x");
    TAP_OK(t, r.result.conflict);
    raw_end(&r);
    g.unheld = false;
    raw_begin(&r, &h);
    commit_under(&r, &g, "x");
    TAP_OK(t, !r.result.conflict);
    raw_end(&r);
    raw_end(&other);
    g.unheld = true;
    raw_begin(&r, &h);
    commit_under(&r, &g, "y");
    TAP_OK(t, !r.result.conflict);
    raw_end(&r);
}

/* --- the same scan again and again, on every driver --- */

struct taking {
    int member; /* 0: none */
    unsigned runs;
};

/* Takes the first of both indexes. */
static belay_rc take_body(struct txn *t, void *arg)
{
    struct taking *k = arg;
    const struct scan scan = { .indexes = two,
                               .n_indexes = 2,
                               .min_rank = -RANK_MAX,
                               .max_rank = RANK_MAX,
                               .limit = 1,
                               .pick = true,
                               .again = true,
                               .ahead = 3 };
    struct hits hits = { .n = 0 };
    belay_rc rc = txn_load(t, NULL, 0, NULL, &scan, 1, &hits);

    k->runs++;
    k->member = rc || hits.n == 0 ? 0 : hits.hit[0].member.ptr[0];
    if (rc || hits.n == 0)
        return rc;
    return txn_rank_remove(t, hits.hit[0].index, hits.hit[0].rank, hits.hit[0].member);
}

static void asked_again(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    for (const char *want = "abbced"; *want; want++) {
        struct taking k = { .runs = 0 };
        CHECK_RC(&h, harness_run(&h, take_body, &k), BELAY_OK);
        TAP_EQ(t, k.member, *want);
        TAP_EQ(t, k.runs, 1);
    }
    struct taking k = { .runs = 0 };
    CHECK_RC(&h, harness_run(&h, take_body, &k), BELAY_OK);
    TAP_EQ(t, k.member, 0);
}

/* Somebody who is not this program puts one in front. */
static void newcomers_are_seen(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct taking k = { .runs = 0 };
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, take_body, &k), BELAY_OK);
    raw_begin(&r, &h);
    raw_rank(&r, EFFECT_RANK_ADD, "j", "z", 0, 1);
    CHECK_RC(&h, raw_commit(&r), BELAY_OK);
    raw_end(&r);
    CHECK_RC(&h, harness_run(&h, take_body, &k), BELAY_OK);
    TAP_EQ(t, k.member, 'z');
    CHECK_RC(&h, harness_run(&h, take_body, &k), BELAY_OK);
    TAP_EQ(t, k.member, 'b');
}

static const struct tap_case cases[] = {
    { "a plan may say what scans must find", what_scans_must_find },
    { "scan guards are about what was before the plan", effects_come_after },
    { "what a scan guard has found stands there and nowhere else",
      what_was_found_stands_there },
    { "a scan guard may be about many indexes and members", many_must_be_found },
    { "a scan guard may ask that nobody holds anything", held_by_others },
    { "a scan that is asked again finds what is there", asked_again },
    { "a scan that is asked again finds newcomers", newcomers_are_seen },
};

const struct topic topic_seen = { cases, COUNT_OF(cases) };
