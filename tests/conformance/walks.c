/* Walks, snapshots of every shape, and what is left after reopening. */
#include <sched.h>
#include <stdatomic.h>

#include "conformance.h"

/* --- order --- */

static const char *const names[] = { "b", "a", "\xc3\xa4", "B", "aa", "a\x01" };

static belay_rc fill_one(struct txn *t, void *arg)
{
    struct bytes name = bytes_str(arg);
    struct value part[PART_COLUMNS] = { value_text(name), value_i64(10), value_i64(0) };
    belay_rc rc = thing_insert(t, arg, 1);

    for (int64_t i = 1; i <= 3 && !rc; i++) {
        part[PART_NO] = value_i64((i - 2) * 300);
        rc = txn_insert(t, &row_part, part);
        rc = rc ? rc : txn_log_append(t, name, i, name);
        rc = rc ? rc : txn_feed_append(t, name, name, NULL);
        rc = rc ? rc : txn_chunk_put(t, name, 300 * (3 - i), name);
        rc = rc ? rc : txn_rank_add(t, name, 2 - i, bytes_str(names[i]));
    }
    return rc ? rc : txn_rank_add(t, name, 1, bytes_str("tie"));
}

struct walk {
    struct tap *t;
    size_t n, stop_at;
    struct belay_arena arena;
    struct item last;
    struct row last_row;
};

static int key_cmp(const struct row *a, const struct row *b)
{
    int order = strcmp(a->type->name, b->type->name);

    for (unsigned i = 0; i < a->type->n_key && order == 0; i++) {
        if (a->v[i].kind == VALUE_I64)
            order = a->v[i].i < b->v[i].i ? -1 : a->v[i].i > b->v[i].i;
        else
            order = bytes_cmp(a->v[i].b, b->v[i].b);
    }
    return order;
}

static int item_cmp(const struct item *a, const struct item *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == ITEM_ROW)
        return key_cmp(a->row, b->row);
    int order = bytes_cmp(a->name, b->name);
    if (order == 0)
        order = a->number < b->number ? -1 : a->number > b->number;
    return order ? order : bytes_cmp(a->member, b->member);
}

/* Items are borrowed for the call, so the last one is copied. */
static void remember(struct walk *w, const struct item *item)
{
    bool ok = true;

    w->last = *item;
    if (item->kind == ITEM_ROW) {
        unsigned n = item->row->type->n_columns;
        struct value *v = arena_zalloc(&w->arena, n, sizeof(*v));
        ok = v != NULL;
        for (unsigned i = 0; i < n && ok; i++) {
            v[i] = item->row->v[i];
            ok = v[i].b.len == 0 || arena_copy(&w->arena, v[i].b, &v[i].b);
        }
        w->last_row = *item->row;
        w->last_row.v = v;
        w->last.row = &w->last_row;
    } else {
        ok = arena_copy(&w->arena, item->name, &w->last.name) &&
             (item->member.len == 0 ||
              arena_copy(&w->arena, item->member, &w->last.member));
    }
    TAP_OK(w->t, ok);
}

static belay_rc visit(void *arg, const struct item *item, struct belay_error *err)
{
    struct walk *w = arg;

    if (w->n > 0)
        TAP_OK(w->t, item_cmp(&w->last, item) < 0);
    bool same_feed = item->kind == ITEM_FEED && w->n > 0 && w->last.kind == ITEM_FEED &&
                     bytes_eq(w->last.name, item->name);
    if (item->kind == ITEM_FEED)
        TAP_EQ(w->t, item->number, same_feed ? w->last.number + 1 : 1);
    remember(w, item);
    if (++w->n == w->stop_at)
        return err_set(err, BELAY_THROTTLED, "enough");
    return BELAY_OK;
}

static void walks_are_in_order(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct walk w = { .t = t };
    if (!harness_open(&h, t, 0))
        return;

    for (size_t i = 0; i < COUNT_OF(names); i++)
        CHECK_RC(&h, harness_run(&h, fill_one, (void *)(uintptr_t)names[i]), BELAY_OK);
    CHECK_RC(&h, driver_walk(h.driver, bytes_str("default"), visit, &w, &h.err),
             BELAY_OK);
    /* Six names with one thing and three of each other shape, and a tie; behind them
     * the rows of the namespace. */
    TAP_OK(t, w.n >= COUNT_OF(names) * (1 + 5 * 3 + 1) + 4);
    size_t all = w.n;
    w.n = 0;
    w.stop_at = 5;
    CHECK_RC(&h, driver_walk(h.driver, bytes_str("default"), visit, &w, &h.err),
             BELAY_THROTTLED);
    TAP_EQ(t, w.n, 5);
    TAP_STR(t, h.err.message, "enough");
    w.n = 0;
    w.stop_at = 0;
    CHECK_RC(&h, driver_walk(h.driver, bytes_str("defaul"), visit, &w, NULL), BELAY_OK);
    TAP_EQ(t, w.n, 0);
    CHECK_RC(&h, driver_walk(h.driver, bytes_str("default"), visit, &w, NULL),
             BELAY_OK);
    TAP_EQ(t, w.n, all);
    arena_release(&w.arena);
}

/* --- reopening --- */

static void durable_as_said(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const struct test_driver *entry = t->arg;
    if (!harness_open(&h, t, 0))
        return;

    TAP_EQ(t, driver_durability(h.driver) != DURABILITY_INLINE, entry->durable);
    if (!entry->durable)
        return;
    CHECK_RC(&h, harness_run(&h, fill_one, (void *)(uintptr_t) "a"), BELAY_OK);
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    if (!harness_reopen(&h))
        return;
    CLEANUP(buf_release) struct buf after = harness_dump(&h);
    TAP_OK(t, bytes_eq(buf_view(&before), buf_view(&after)));
    TAP_EQ(t, thing_n(&h, "a"), 1);
    thing_set(&h, "a", 2);
    TAP_EQ(t, thing_n(&h, "a"), 2);
}

/* --- one read of every shape is of one snapshot (rule 1) --- */

#define STEPS 200

struct pulse {
    struct harness *h;
    atomic_bool done;
    atomic_int torn, failed, reads;
};

/* The n-th state: every shape says n. */
static belay_rc beat(struct txn *t, void *arg)
{
    int64_t n = *(int64_t *)arg;
    struct bytes name = bytes_str("p"), number = bytes_of(arg, sizeof(n));
    belay_rc rc = n == 1 ? thing_insert(t, "p", n) : thing_put(t, "p", n);

    if (!rc && n == 1)
        rc = txn_rank_add(t, name, n, name);
    else if (!rc)
        rc = txn_rank_move(t, name, n - 1, n, name);
    rc = rc ? rc : txn_log_append(t, name, n, number);
    rc = rc ? rc : txn_log_trim(t, name, n - 1);
    rc = rc ? rc : txn_feed_append(t, name, number, NULL);
    return rc ? rc : txn_chunk_put(t, name, 0, number);
}

static int64_t number_in(struct bytes b)
{
    int64_t n = -1;

    if (b.len == sizeof(n))
        memcpy(&n, b.ptr, sizeof(n));
    return n;
}

/* Whether all answers of one read tell the same state. */
static bool is_whole(const struct read q[5])
{
    if (!q[0].row.out || q[1].rank.out.n != 1 || q[2].log.out.n != 1 ||
        !q[4].chunk.found)
        return false;
    int64_t n = q[0].row.out->v[THING_N].i;
    const struct feed_entries *feed = &q[3].feed.out;

    return q[1].rank.out.hit[0].rank == n && q[2].log.out.entry[0].seq == n &&
           q[1].rank.out.hit[0].rows[0] &&
           q[1].rank.out.hit[0].rows[0]->v[THING_N].i == n &&
           number_in(q[4].chunk.out) == n && feed->n == (size_t)n &&
           number_in(feed->entry[feed->n - 1].data) == n;
}

static void look_once(struct pulse *p, void *attempt, struct belay_arena *a)
{
    struct bytes name = bytes_str("p");
    struct value key = value_text(name);
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = { .indexes = &name,
                         .n_indexes = 1,
                         .max_rank = RANK_MAX,
                         .limit = 5,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct read q[] = {
        { .kind = READ_ROW },
        { .kind = READ_RANK, .rank = { .scan = &scan } },
        { .kind = READ_LOG, .log = { .stream = name, .limit = 5 } },
        { .kind = READ_FEED, .feed = { .feed = name, .limit = STEPS + 1 } },
        { .kind = READ_CHUNK, .chunk = { .upload = name } },
    };
    struct driver *d = p->h->driver;

    memset(attempt, 0, d->attempt_size);
    if (row_ref_make(&q[0].row.ref, &row_thing, &key, a, NULL) ||
        driver_begin(d, attempt, bytes_str("default"), NULL)) {
        p->failed++;
        return;
    }
    if (driver_read(d, attempt, q, COUNT_OF(q), a, NULL))
        p->failed++;
    else if (!is_whole(q))
        p->torn++;
    driver_end(d, attempt);
    p->reads++;
}

static void beat_or_look(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    CLEANUP(arena_release) struct belay_arena own = { .first = NULL };
    struct pulse *p = arg;

    if (i == 0) {
        for (int64_t n = 2; n <= STEPS; n++) {
            arena_reset(&arena);
            if (txn_run(p->h->space, beat, &n, NULL, &arena, NULL))
                p->failed++;
            while (p->reads < n / 2 && !p->failed && !p->torn)
                (void)sched_yield(); /* until the others have kept up */
        }
        p->done = true;
        return;
    }
    void *attempt = arena_alloc(&own, p->h->driver->attempt_size);
    while (attempt && !p->done && !p->failed && !p->torn) {
        arena_reset(&arena);
        look_once(p, attempt, &arena);
    }
}

static void one_read_is_one_snapshot(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct pulse p = { .h = &h };
    int64_t first = 1;
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;

    CHECK_RC(&h, harness_run(&h, beat, &first), BELAY_OK);
    crew_run(t, 3, beat_or_look, &p);
    TAP_EQ(t, p.failed, 0);
    TAP_EQ(t, p.torn, 0);
    TAP_OK(t, p.reads >= STEPS / 2);
}

static const struct tap_case cases[] = {
    { "walks: in the same order everywhere, until the visitor says no",
      walks_are_in_order },
    { "walks: what is durable is there after reopening", durable_as_said },
    { "threads: one read of every shape is of one snapshot", one_read_is_one_snapshot },
};
const struct topic topic_walks = { cases, COUNT_OF(cases) };
