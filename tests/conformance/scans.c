/* Scans: order, pages, bounds, and the rows that members name. */
#include "conformance.h"

/* Three indexes with ties within and between them, and one that is empty. */
static const char *const names[] = { "one", "two", "three", "empty" };
static const struct {
    int index;
    int64_t rank;
    const char *member;
} entries[] = {
    { 0, 1, "b" },  { 0, 1, "a" },        { 0, 1, "a\x01" }, { 0, 2, "c" },
    { 0, 9, "z" },  { 1, 1, "a" },        { 1, 1, "b" },     { 1, 5, "m" },
    { 1, 0, "q" },  { 2, 1, "a" },        { 2, -3, "neg" },  { 2, 2, "c" },
    { 2, 2, "aa" }, { 2, 9, "\xc3\xa4" },
};

static belay_rc fill(struct txn *t, void *arg)
{
    belay_rc rc = BELAY_OK;

    (void)arg;
    for (size_t i = 0; i < COUNT_OF(entries) && !rc; i++)
        rc = txn_rank_add(t, bytes_str(names[entries[i].index]), entries[i].rank,
                          bytes_str(entries[i].member));
    return rc;
}

/* Whether entry a comes before entry b in scan order, told by other means than
 * scan_cmp. */
static bool comes_before(size_t a, size_t b)
{
    if (entries[a].rank != entries[b].rank)
        return entries[a].rank < entries[b].rank;
    int order = strcmp(entries[a].member, entries[b].member);
    if (order == 0)
        order = strcmp(names[entries[a].index], names[entries[b].index]);
    return order < 0;
}

/* The entries in order, as indexes into the table. */
static void sort_entries(size_t order[COUNT_OF(entries)])
{
    for (size_t i = 0; i < COUNT_OF(entries); i++) {
        size_t at = 0;
        for (size_t j = 0; j < COUNT_OF(entries); j++)
            at += comes_before(j, i);
        order[at] = i;
    }
}

struct page {
    struct scan scan;
    struct hits hits;
};

static belay_rc scan_body(struct txn *t, void *arg)
{
    struct page *p = arg;

    return txn_scan(t, &p->scan, &p->hits);
}

static void all_names(struct bytes out[COUNT_OF(names)])
{
    for (size_t i = 0; i < COUNT_OF(names); i++)
        out[i] = bytes_str(names[i]);
}

static bool is_entry(const struct hit *hit, size_t entry)
{
    return hit->rank == entries[entry].rank &&
           bytes_eq(hit->member, bytes_str(entries[entry].member)) &&
           bytes_eq(hit->index, bytes_str(names[entries[entry].index]));
}

/* Pages of `limit` through all of it must give each entry once, in order. */
static void page_through(struct harness *h, bool descending, size_t limit)
{
    struct bytes indexes[COUNT_OF(names)];
    size_t order[COUNT_OF(entries)], n = 0;
    struct scan_cursor cursor;
    char member[8], index[8];

    all_names(indexes);
    sort_entries(order);
    struct page p = { .scan = { .indexes = indexes,
                                .n_indexes = COUNT_OF(names),
                                .min_rank = -RANK_MAX,
                                .max_rank = RANK_MAX,
                                .descending = descending,
                                .limit = limit } };
    do {
        if (!CHECK_RC(h, harness_run(h, scan_body, &p), BELAY_OK))
            return;
        for (size_t i = 0; i < p.hits.n; i++, n++) {
            if (!TAP_OK(h->t, n < COUNT_OF(entries)))
                return;
            size_t want = order[descending ? COUNT_OF(entries) - 1 - n : n];
            TAP_OK(h->t, is_entry(&p.hits.hit[i], want));
        }
        if (p.hits.n > 0) { /* the arena is reset before the next page */
            const struct hit *last = &p.hits.hit[p.hits.n - 1];
            memcpy(member, last->member.ptr, last->member.len);
            memcpy(index, last->index.ptr, last->index.len);
            cursor = (struct scan_cursor){ .rank = last->rank,
                                           .member = bytes_of(member, last->member.len),
                                           .index = bytes_of(index, last->index.len) };
            p.scan.after = &cursor;
        }
    } while (p.hits.n > 0);
    TAP_EQ(h->t, n, COUNT_OF(entries));
}

static void pages(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    for (size_t limit = 1; limit <= COUNT_OF(entries) + 1; limit++) {
        page_through(&h, false, limit);
        page_through(&h, true, limit);
    }
}

/* min, max and cursors that name no entry, against counting by hand. */
static void bounds(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct bytes indexes[COUNT_OF(names)];
    if (!harness_open(&h, t, 0))
        return;

    all_names(indexes);
    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    for (int64_t min = -4; min <= 10; min++) {
        for (int64_t max = -4; max <= 10; max++) {
            struct page p = { .scan = { .indexes = indexes,
                                        .n_indexes = COUNT_OF(names),
                                        .min_rank = min,
                                        .max_rank = max,
                                        .descending = (min + max) & 1,
                                        .limit = 100 } };
            size_t want = 0;
            for (size_t i = 0; i < COUNT_OF(entries); i++)
                want += entries[i].rank >= min && entries[i].rank <= max;
            CHECK_RC(&h, harness_run(&h, scan_body, &p), BELAY_OK);
            TAP_EQ(t, p.hits.n, want);
        }
    }
}

static void odd_cursors(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct bytes one = bytes_str("one");
    struct scan_cursor after = { .rank = 1,
                                 .member = bytes_str("aa"),
                                 .index = bytes_str("zzz") };
    struct page p = { .scan = { .indexes = &one,
                                .n_indexes = 1,
                                .min_rank = -RANK_MAX,
                                .max_rank = RANK_MAX,
                                .after = &after,
                                .limit = 100 } };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, scan_body, &p), BELAY_OK);
    TAP_EQ(t, p.hits.n, 3); /* 1b 2c 9z */
    p.scan.descending = true;
    CHECK_RC(&h, harness_run(&h, scan_body, &p), BELAY_OK);
    TAP_EQ(t, p.hits.n, 2); /* 1a\x01 1a */
    after.rank = -RANK_MAX;
    CHECK_RC(&h, harness_run(&h, scan_body, &p), BELAY_OK);
    TAP_EQ(t, p.hits.n, 0);
    p.scan.descending = false;
    p.scan.min_rank = 2; /* the cursor lies before the range */
    CHECK_RC(&h, harness_run(&h, scan_body, &p), BELAY_OK);
    TAP_EQ(t, p.hits.n, 2);
    p.scan.max_rank = 2;
    after.rank = 5; /* and behind it */
    CHECK_RC(&h, harness_run(&h, scan_body, &p), BELAY_OK);
    TAP_EQ(t, p.hits.n, 0);
}

static void nothing_asked_for(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct bytes one = bytes_str("one");
    struct page p = {
        .scan = { .indexes = &one, .n_indexes = 1, .max_rank = RANK_MAX },
        .hits = { .n = 99 },
    };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, scan_body, &p), BELAY_OK);
    TAP_EQ(t, p.hits.n, 0);
    p.scan.limit = 10;
    p.scan.n_indexes = 0;
    p.hits.n = 99;
    CHECK_RC(&h, harness_run(&h, scan_body, &p), BELAY_OK);
    TAP_EQ(t, p.hits.n, 0);
    p.scan.n_indexes = 1;
    p.scan.limit = 1000000;
    CHECK_RC(&h, harness_run(&h, scan_body, &p), BELAY_INVALID);
    TAP_STR(t, h.err.reason, "too_large");
}

/* --- fetches --- */

static belay_rc fill_fetch(struct txn *t, void *arg)
{
    struct value part[PART_COLUMNS] = { value_str("own\"er"), value_i64(-7),
                                        value_i64(70) };
    belay_rc rc = txn_insert(t, &row_part, part);

    (void)arg;
    part[PART_NO] = value_i64(0);
    part[PART_N] = value_i64(71);
    rc = rc ? rc : txn_insert(t, &row_part, part);
    rc = rc ? rc : thing_insert(t, "-7", 700);
    rc = rc ? rc : txn_rank_add(t, bytes_str("parts"), 1, bytes_str("-7"));
    rc = rc ? rc : txn_rank_add(t, bytes_str("parts"), 2, bytes_str("0"));
    return rc ? rc : txn_rank_add(t, bytes_str("parts"), 3, bytes_str("12"));
}

static void fetches(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct bytes index = bytes_str("parts");
    struct value owner = value_str("own\"er");
    struct fetch fetch[] = { { .type = &row_part, .prefix = &owner },
                             { .type = &row_thing } };
    struct page p = { .scan = { .indexes = &index,
                                .n_indexes = 1,
                                .max_rank = RANK_MAX,
                                .limit = 10,
                                .fetch = fetch,
                                .n_fetch = 2 } };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fill_fetch, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, scan_body, &p), BELAY_OK);
    if (!TAP_EQ(t, p.hits.n, 3))
        return;
    const struct row *const *first = p.hits.hit[0].rows;
    const struct row *const *second = p.hits.hit[1].rows;
    const struct row *const *third = p.hits.hit[2].rows;
    if (TAP_OK(t, first[0] && first[1] && second[0])) {
        TAP_EQ(t, first[0]->v[PART_N].i, 70);
        TAP_EQ(t, first[1]->v[THING_N].i, 700);
        TAP_EQ(t, second[0]->v[PART_N].i, 71);
    }
    TAP_OK(t, !second[1] && !third[0] && !third[1]);
}

static belay_rc add_no_number(struct txn *t, void *arg)
{
    return txn_rank_add(t, bytes_str("parts"), 4, bytes_str(arg));
}

static void members_that_are_no_number(struct tap *t)
{
    const char *const bad[] = { "x",  "007", "+1",  " 1",
                                "1 ", "-0",  "1.0", "9223372036854775808" };
    struct bytes index = bytes_str("parts");
    struct value owner = value_str("o");
    struct fetch fetch = { .type = &row_part, .prefix = &owner };

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CLEANUP(harness_close) struct harness h;
        struct page p = { .scan = { .indexes = &index,
                                    .n_indexes = 1,
                                    .max_rank = RANK_MAX,
                                    .limit = 10,
                                    .fetch = &fetch,
                                    .n_fetch = 1 } };
        if (!harness_open(&h, t, 0))
            return;
        CHECK_RC(&h, harness_run(&h, add_no_number, (void *)(uintptr_t)bad[i]),
                 BELAY_OK);
        CHECK_RC(&h, harness_run(&h, scan_body, &p), BELAY_CORRUPT);
        p.scan.n_fetch = 0;
        CHECK_RC(&h, harness_run(&h, scan_body, &p), BELAY_OK);
        TAP_EQ(t, p.hits.n, 1);
    }
}

/* Fetched rows are guarded, absent ones too. */
struct guarded {
    struct harness *h;
    const char *touch;
    unsigned runs;
};

static belay_rc scan_and_write(struct txn *t, void *arg)
{
    struct guarded *c = arg;
    struct bytes index = bytes_str("parts");
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .max_rank = RANK_MAX,
                         .limit = 10,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct hits hits;
    belay_rc rc = txn_scan(t, &scan, &hits);

    if (!rc && c->runs++ == 0 && c->touch)
        thing_set(c->h, c->touch, 1);
    return rc ? rc : thing_insert(t, "decision", (int64_t)hits.n);
}

static void fetched_rows_are_guarded(struct tap *t)
{
    const char *const touched[] = { NULL, "-7", "12", "elsewhere" };
    const unsigned runs[] = { 1, 2, 2, 1 };

    for (size_t i = 0; i < COUNT_OF(touched); i++) {
        CLEANUP(harness_close) struct harness h;
        struct guarded c = { .h = &h, .touch = touched[i] };
        if (!harness_open(&h, t, HARNESS_INTERLEAVED))
            return;
        CHECK_RC(&h, harness_run(&h, fill_fetch, NULL), BELAY_OK);
        CHECK_RC(&h, harness_run(&h, scan_and_write, &c), BELAY_OK);
        TAP_EQ(t, c.runs, runs[i]);
    }
}

/* A body's own rows and ranks in a scan with a fetch. */
static belay_rc own_fetch(struct txn *t, void *arg)
{
    struct tap *tap = arg;
    struct bytes index = bytes_str("own");
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .max_rank = RANK_MAX,
                         .limit = 10,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct hits hits = { .n = 0 };
    belay_rc rc = thing_insert(t, "mine", 5);

    rc = rc ? rc : txn_rank_add(t, index, 1, bytes_str("mine"));
    rc = rc ? rc : txn_rank_add(t, index, 2, bytes_str("no row"));
    rc = rc ? rc : txn_scan(t, &scan, &hits);
    if (rc || !TAP_EQ(tap, hits.n, 2))
        return rc;
    if (TAP_OK(tap, hits.hit[0].rows[0] != NULL))
        TAP_EQ(tap, hits.hit[0].rows[0]->v[THING_N].i, 5);
    TAP_OK(tap, hits.hit[1].rows[0] == NULL);
    return rc;
}

/* The entry is the store's, its row was changed by the body. */
static belay_rc changed_fetch(struct txn *t, void *arg)
{
    struct tap *tap = arg;
    struct bytes index = bytes_str("parts");
    struct value key = value_str("-7");
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .max_rank = 1,
                         .limit = 10,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct hits hits = { .n = 0 };
    belay_rc rc = thing_put(t, "-7", 701);

    rc = rc ? rc : txn_scan(t, &scan, &hits);
    if (rc || !TAP_OK(tap, hits.n == 1 && hits.hit[0].rows[0]))
        return rc;
    TAP_EQ(tap, hits.hit[0].rows[0]->v[THING_N].i, 701);
    rc = txn_delete(t, &row_thing, &key);
    rc = rc ? rc : txn_scan(t, &scan, &hits);
    TAP_OK(tap, hits.n == 1 && !hits.hit[0].rows[0]);
    return rc;
}

static void own_rows_in_scans(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, own_fetch, t), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, fill_fetch, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, changed_fetch, t), BELAY_OK);
}

static const struct tap_case cases[] = {
    { "scans: pages of any size give each entry once, in both directions", pages },
    { "scans: min and max are included", bounds },
    { "scans: a cursor need not name an entry", odd_cursors },
    { "scans: no limit and no index give nothing", nothing_asked_for },
    { "scans: members name rows, by prefix and by number", fetches },
    { "scans: a member that is no number is corrupt when its row is asked for",
      members_that_are_no_number },
    { "scans: fetched rows are guarded, present or not", fetched_rows_are_guarded },
    { "scans: a fetch gives a body its own rows", own_rows_in_scans },
};
const struct topic topic_scans = { cases, COUNT_OF(cases) };
