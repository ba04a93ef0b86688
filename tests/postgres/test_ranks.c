/* Rank indexes whose entries are found by one number (schema.c): here all indexes of all
 * namespaces have the same. */
#include "pg.h"

#define MEMBERS 20 /* of an index */

static const char *const names[] = { "one", "two" };

/* Names are members as well: the same ones in both namespaces, at the same ranks. */
static struct bytes name_of(size_t index, int i, char out[16])
{
    (void)snprintf(out, 16, "%s%02d", names[index], i);
    return bytes_str(out);
}

/* Members of the two indexes stand in turn. */
static int64_t rank_of(size_t index, int i)
{
    return INT64_C(10) * i + (int64_t)index;
}

static void give_one_number(struct harness *h)
{
    char words[512], schema[PG_SCHEMA_MAX];

    pg_schema_of(h->dir, schema);
    (void)snprintf(
        words, sizeof(words),
        "CREATE OR REPLACE FUNCTION %s.belay2_place(ns text, idx text) RETURNS"
        " int8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT"
        " (length(ns) + length(idx))::int8 * 0 + 7';"
        " REINDEX INDEX %s.belay_rank_place",
        schema, schema);
    TAP_OK(h->t, pg_test_run(pg_test_url(), words));
    TAP_OK(h->t, harness_reopen(h));
}

static belay_rc fill(struct txn *t, void *arg)
{
    belay_rc rc = BELAY_OK;
    char name[16];

    (void)arg;
    for (size_t index = 0; index < COUNT_OF(names); index++) {
        for (int i = 0; i < MEMBERS && rc == BELAY_OK; i++) {
            struct bytes member = name_of(index, i, name);
            rc = txn_rank_add(t, bytes_str(names[index]), rank_of(index, i), member);
            if (rc == BELAY_OK)
                rc = thing_insert(t, name, i);
        }
    }
    return rc;
}

static void run_in(struct harness *h, struct space *sp, txn_body *body, void *arg,
                   belay_rc want)
{
    arena_reset(&h->arena);
    CHECK_RC(h, txn_run(sp, body, arg, NULL, &h->arena, &h->err), want);
}

/* Both namespaces have the same; the other one is given back. */
static struct space *open_filled(struct harness *h, struct tap *t)
{
    struct space *other = NULL;

    pg_setup_reset(pg_test_url());
    if (!harness_open(h, t, 0))
        return NULL;
    give_one_number(h);
    CHECK_RC(h, store_space(h->store, bytes_str("other"), &other, &h->err), BELAY_OK);
    if (other) {
        run_in(h, h->space, fill, NULL, BELAY_OK);
        run_in(h, other, fill, NULL, BELAY_OK);
    }
    return other;
}

/* --- looking --- */

struct look {
    struct scan scan;
    struct bytes index[2];
    struct buf line; /* "rank member, ..." */
};

static belay_rc look(struct txn *t, void *arg)
{
    struct look *l = arg;
    struct hits hits;
    belay_rc rc = txn_scan(t, &l->scan, &hits);

    buf_reset(&l->line);
    for (size_t i = 0; rc == BELAY_OK && i < hits.n; i++)
        buf_printf(&l->line, "%s%lld %.*s", i > 0 ? ", " : "",
                   (long long)hits.hit[i].rank, (int)hits.hit[i].member.len,
                   (const char *)hits.hit[i].member.ptr);
    buf_append_char(&l->line, '\0');
    return rc;
}

static struct scan scan_of(struct look *l, size_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        l->index[i] = bytes_str(names[first + i]);
    return (struct scan){
        .indexes = l->index, .n_indexes = n, .max_rank = RANK_MAX, .limit = 4
    };
}

static void expect_seen(struct harness *h, struct space *sp, struct look *l,
                        const char *want)
{
    run_in(h, sp, look, l, BELAY_OK);
    TAP_STR(h->t, (const char *)l->line.ptr, want);
}

/* The first four of each, in both namespaces. */
static void expect_firsts(struct harness *h, struct space *sp, const char *one,
                          const char *two)
{
    struct look l = { .line = { .ptr = NULL } };

    l.scan = scan_of(&l, 0, 1);
    expect_seen(h, sp, &l, one);
    l.scan = scan_of(&l, 1, 1);
    expect_seen(h, sp, &l, two);
    buf_release(&l.line);
}

#define FIRST_ONE "0 one00, 10 one01, 20 one02, 30 one03"
#define FIRST_TWO "1 two00, 11 two01, 21 two02, 31 two03"

static void scans(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct look l = { .line = { .ptr = NULL } };
    struct space *other = open_filled(&h, t);
    struct scan_cursor after = { .rank = 10,
                                 .member = bytes_str("one01"),
                                 .index = bytes_str("one") };

    if (!other)
        return;
    expect_firsts(&h, h.space, FIRST_ONE, FIRST_TWO);
    expect_firsts(&h, other, FIRST_ONE, FIRST_TWO);
    l.scan = scan_of(&l, 0, 1);
    l.scan.descending = true;
    expect_seen(&h, other, &l, "190 one19, 180 one18, 170 one17, 160 one16");
    l.scan = scan_of(&l, 0, 2);
    expect_seen(&h, other, &l, "0 one00, 1 two00, 10 one01, 11 two01");
    l.scan.after = &after;
    expect_seen(&h, other, &l, "11 two01, 20 one02, 21 two02, 30 one03");
    l.scan = scan_of(&l, 0, 1);
    l.scan.after = &after;
    expect_seen(&h, other, &l, "20 one02, 30 one03, 40 one04, 50 one05");
    buf_release(&l.line);
}

/* Questions that are alike go in one statement. */
static void scans_together(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct look l[2] = { { .line = { .ptr = NULL } }, { .line = { .ptr = NULL } } };
    struct read q[2];
    struct raw r;

    if (!open_filled(&h, t) || !raw_begin(&r, &h))
        return;
    for (size_t i = 0; i < 2; i++) {
        l[i].scan = scan_of(&l[i], i, 1);
        q[i] = (struct read){ .kind = READ_RANK, .rank.scan = &l[i].scan };
    }
    CHECK_RC(&h, driver_read(h.driver, r.attempt, q, 2, &r.arena, &r.err), BELAY_OK);
    for (size_t i = 0; i < 2; i++) {
        TAP_EQ(t, q[i].rank.out.n, 4);
        for (size_t k = 0; k < q[i].rank.out.n; k++) {
            const struct hit *hit = &q[i].rank.out.hit[k];
            char name[16];
            TAP_EQ(t, hit->rank, rank_of(i, (int)k));
            TAP_OK(t, bytes_eq(hit->member, name_of(i, (int)k, name)));
        }
    }
    raw_end(&r);
}

/* --- picks --- */

/* What a picker gets, which keeps it: "rank rank ..." */
static void pick(struct raw *r, struct harness *h, size_t first, size_t n,
                 const char *want)
{
    CLEANUP(buf_release) struct buf line = { .ptr = NULL };
    struct look l = { .line = { .ptr = NULL } };
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = scan_of(&l, first, n);
    struct read q = { .kind = READ_RANK, .rank = { .scan = &scan, .hold = true } };

    scan.fetch = &fetch;
    scan.n_fetch = 1;
    if (!raw_begin(r, h))
        return;
    CHECK_RC(h, raw_read(r, &q), BELAY_OK);
    for (size_t i = 0; i < q.rank.out.n; i++) {
        const struct hit *hit = &q.rank.out.hit[i];
        buf_printf(&line, "%s%lld", i > 0 ? " " : "", (long long)hit->rank);
        TAP_OK(h->t, hit->rows[0] && hit->rows[0]->v[THING_N].i == hit->rank / 10);
    }
    buf_append_char(&line, '\0');
    TAP_STR(h->t, (const char *)line.ptr, want);
}

static void picks(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw picker[4];

    if (!open_filled(&h, t))
        return;
    pick(&picker[0], &h, 0, 1, "0 10 20 30");
    pick(&picker[1], &h, 1, 1, "1 11 21 31");
    pick(&picker[2], &h, 0, 2, "40 41 50 51");
    pick(&picker[3], &h, 0, 1, "60 70 80 90");
    for (size_t i = 0; i < COUNT_OF(picker); i++)
        raw_end(&picker[i]);
}

static belay_rc take_two(struct txn *t, void *arg)
{
    struct look l = { .line = { .ptr = NULL } };
    struct scan scan = scan_of(&l, 1, 1);
    struct hits hits;

    (void)arg;
    scan.limit = 2;
    belay_rc rc = txn_pick(t, &scan, &hits);
    for (size_t i = 0; rc == BELAY_OK && i < hits.n; i++)
        rc = txn_rank_remove(t, l.index[0], hits.hit[i].rank, hits.hit[i].member);
    return rc;
}

static void picks_are_removed(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct space *other = open_filled(&h, t);

    if (!other)
        return;
    run_in(&h, other, take_two, NULL, BELAY_OK);
    expect_firsts(&h, other, FIRST_ONE, "21 two02, 31 two03, 41 two04, 51 two05");
    expect_firsts(&h, h.space, FIRST_ONE, FIRST_TWO);
}

/* --- changes --- */

/* So many members of an index, from the first on: removed, or moved by some. */
struct shift {
    size_t index, n;
    int64_t by;     /* 0: removed */
    const char *as; /* as if they were another index's; NULL: their own's */
};

static belay_rc shift(struct txn *t, void *arg)
{
    const struct shift *c = arg;
    struct bytes index = bytes_str(c->as ? c->as : names[c->index]);
    belay_rc rc = BELAY_OK;
    char name[16];

    for (int i = 0; (size_t)i < c->n && rc == BELAY_OK; i++) {
        struct bytes member = name_of(c->index, i, name);
        int64_t rank = rank_of(c->index, i);
        rc = c->by != 0 ? txn_rank_move(t, index, rank, rank + c->by, member)
                        : txn_rank_remove(t, index, rank, member);
    }
    return rc;
}

static void changes(struct tap *t)
{
    static const struct {
        struct shift shift;
        const char *one, *two;
    } steps[] = {
        { { 0, 1, 5, NULL }, "5 one00, 10 one01, 20 one02, 30 one03", FIRST_TWO },
        { { 0, 1, 0, NULL }, NULL, NULL }, /* it stands elsewhere */
        { { 1, 3, 500, NULL },
          "5 one00, 10 one01, 20 one02, 30 one03",
          "31 two03, 41 two04, 51 two05, 61 two06" },
        { { 0, 1, 0, "two" }, NULL, NULL },
        { { 1, 4, 0, "one" }, NULL, NULL },
        { { 0, 3, 7, "two" }, NULL, NULL },
    };
    CLEANUP(harness_close) struct harness h;
    struct space *other = open_filled(&h, t);

    for (size_t i = 0; other && i < COUNT_OF(steps); i++) {
        struct shift c = steps[i].shift;
        run_in(&h, other, shift, &c, steps[i].one ? BELAY_OK : BELAY_CORRUPT);
        if (steps[i].one)
            expect_firsts(&h, other, steps[i].one, steps[i].two);
    }
    if (!other)
        return;
    expect_firsts(&h, other, "5 one00, 10 one01, 20 one02, 30 one03",
                  "31 two03, 41 two04, 51 two05, 61 two06");
    expect_firsts(&h, h.space, FIRST_ONE, FIRST_TWO);
    run_in(&h, h.space, shift, &(struct shift){ .index = 0, .n = MEMBERS }, BELAY_OK);
    expect_firsts(&h, h.space, "", FIRST_TWO);
}

/* --- what it costs --- */

struct entry {
    const char *index, *member;
    int64_t rank;
};

static belay_rc add(struct txn *t, void *arg)
{
    const struct entry *e = arg;

    return txn_rank_add(t, bytes_str(e->index), e->rank, bytes_str(e->member));
}

static void the_same_place_is_taken(struct tap *t)
{
    struct entry own = { "one", "one00", 0 }, taken = { "two", "one00", 0 };
    struct entry next = { "two", "one00", 1 };
    CLEANUP(harness_close) struct harness h;
    struct space *other = open_filled(&h, t);

    if (!other)
        return;
    run_in(&h, other, add, &own, BELAY_CORRUPT);
    run_in(&h, other, add, &taken, BELAY_CONTENTION);
    expect_firsts(&h, other, FIRST_ONE, FIRST_TWO);
    run_in(&h, other, add, &next, BELAY_OK);
    expect_firsts(&h, other, FIRST_ONE, "1 one00, 1 two00, 11 two01, 21 two02");
}

/* --- all of a namespace --- */

static void erased(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct space *other = open_filled(&h, t);
    bool more = true;

    if (!other)
        return;
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    TAP_OK(t, memmem(before.ptr, before.len, "rank \"two\" 191 \"two19\"", 22));
    while (more && !driver_erase(h.driver, bytes_str("other"), 7, &more, NULL))
        continue;
    TAP_OK(t, !more);
    CLEANUP(buf_release) struct buf after = harness_dump(&h);
    TAP_OK(t, bytes_eq(buf_view(&before), buf_view(&after)));
    expect_firsts(&h, h.space, FIRST_ONE, FIRST_TWO);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "ranks: indexes of one number are scanned apart", scans },
        { "ranks: so they are together with others", scans_together },
        { "ranks: they are picked from apart", picks },
        { "ranks: what is picked is removed from its own", picks_are_removed },
        { "ranks: what is moved or removed is their own", changes },
        { "ranks: a member has one rank of theirs for itself",
          the_same_place_is_taken },
        { "ranks: one namespace is erased", erased },
    };
    return tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&pg_driver, argc, argv);
}
