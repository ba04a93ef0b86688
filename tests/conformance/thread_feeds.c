/* Many callers at once: feeds, namespaces, lost replies. */
#include <stdatomic.h>
#include <stdlib.h>

#include "conformance.h"
#include "store/fault.h"

#define WRITERS 4
#define COMMITS 100
#define PER_COMMIT 2
#define OWN_ENTRIES ((size_t)COMMITS * PER_COMMIT) /* of one writer */
#define ENTRIES (WRITERS * OWN_ENTRIES)

static const struct bytes feed = { (const uint8_t *)"f", 1 };

struct river {
    struct harness *h;
    bool trim;
    atomic_int failed, writers_left;
    struct txn_pos pos[ENTRIES]; /* as acknowledged, by number of the entry */
    int64_t seen[ENTRIES];       /* numbers, in the order the tailer met them */
    struct feed_pos seen_at[ENTRIES];
    size_t n_seen;
};

struct entry_call {
    int64_t first;
    struct txn_pos *pos;
};

static belay_rc write_body(struct txn *t, void *arg)
{
    const struct entry_call *c = arg;
    belay_rc rc = BELAY_OK;

    for (int64_t i = 0; i < PER_COMMIT && !rc; i++) {
        int64_t number = c->first + i;
        rc = txn_feed_append(t, feed, bytes_of(&number, sizeof(number)), &c->pos[i]);
    }
    return rc;
}

static void write_all(struct river *r, unsigned writer)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };

    for (int64_t i = 0; i < COMMITS; i++) {
        int64_t first = ((int64_t)writer * COMMITS + i) * PER_COMMIT;
        struct entry_call c = { .first = first, .pos = &r->pos[first] };
        arena_reset(&arena);
        if (txn_run(r->h->space, write_body, &c, NULL, &arena, NULL))
            r->failed++;
    }
    r->writers_left--;
}

struct page {
    struct feed_pos after;
    struct feed_entries out;
};

static belay_rc page_body(struct txn *t, void *arg)
{
    struct page *c = arg;

    return txn_feed_read(t, feed, c->after, 7, &c->out);
}

static belay_rc trim_body(struct txn *t, void *arg)
{
    return txn_feed_trim(t, feed, *(struct feed_pos *)arg);
}

/* Takes one page behind the cursor; what it finds must lie behind, in order. */
static void take_page(struct river *r, struct page *p)
{
    for (size_t i = 0; i < p->out.n; i++) {
        const struct feed_entry *e = &p->out.entry[i];
        if (r->n_seen == ENTRIES || e->data.len != sizeof(int64_t) ||
            feed_pos_cmp(e->pos, p->after) <= 0) {
            r->failed++;
            return;
        }
        memcpy(&r->seen[r->n_seen], e->data.ptr, sizeof(int64_t));
        r->seen_at[r->n_seen++] = e->pos;
        p->after = e->pos;
    }
}

static void tail(struct river *r)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct page p = { .after = { 0 } };

    while (!r->failed) {
        bool last = r->writers_left == 0; /* asked before the read */
        arena_reset(&arena);
        if (txn_run(r->h->space, page_body, &p, NULL, &arena, NULL))
            r->failed++;
        if (feed_pos_cmp(p.out.trimmed, p.after) > 0)
            r->failed++; /* only what the tailer has read is trimmed here */
        bool empty = p.out.n == 0;
        take_page(r, &p);
        if (empty && last)
            return;
        if (r->trim && !empty &&
            txn_run(r->h->space, trim_body, &p.after, NULL, &arena, NULL))
            r->failed++;
    }
}

static void write_or_tail(void *arg, unsigned i)
{
    if (i < WRITERS)
        write_all(arg, i);
    else
        tail(arg);
}

/* Every acknowledged entry once, at the position that was acknowledged. */
static void check_river(struct tap *t, const struct river *r)
{
    static unsigned times[ENTRIES];

    memset(times, 0, sizeof(times));
    TAP_EQ(t, r->failed, 0);
    TAP_EQ(t, r->n_seen, ENTRIES);
    for (size_t i = 0; i < r->n_seen; i++) {
        int64_t number = r->seen[i];
        if (!TAP_OK(t, number >= 0 && (size_t)number < ENTRIES))
            return;
        times[number]++;
        if (r->pos[number].known)
            TAP_EQ(t, feed_pos_cmp(r->pos[number].pos, r->seen_at[i]), 0);
    }
    for (size_t i = 0; i < ENTRIES; i++) {
        TAP_EQ(t, times[i], 1);
        bool next = i % OWN_ENTRIES != 0; /* the one before is the same writer's */
        if (next && r->pos[i].known && r->pos[i - 1].known)
            TAP_OK(t, feed_pos_cmp(r->pos[i - 1].pos, r->pos[i].pos) < 0);
    }
}

static void run_river(struct tap *t, bool trim)
{
    CLEANUP(harness_close) struct harness h;
    struct river *r = calloc(1, sizeof(*r));
    if (!harness_open(&h, t, HARNESS_REAL_TIME) || !r) {
        free(r);
        return;
    }
    r->h = &h;
    r->trim = trim;
    r->writers_left = WRITERS;
    crew_run(t, WRITERS + 1, write_or_tail, r);
    check_river(t, r);
    free(r);
}

static void feeds_are_prefix_closed(struct tap *t)
{
    run_river(t, false);
}

static void feeds_are_trimmed_behind_the_tailer(struct tap *t)
{
    run_river(t, true);
}

/* --- founding --- */

struct crowd {
    struct harness *h;
    atomic_int ok, unknown, failed;
};

static belay_rc insert_own(struct txn *t, void *arg)
{
    char id[16];

    (void)snprintf(id, sizeof(id), "t%u", *(unsigned *)arg);
    return thing_insert(t, id, 1);
}

static void first_commit(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct crowd *c = arg;
    struct space *sp = NULL;
    char name[8];

    /* Two namespaces that nobody has seen, four threads each. */
    (void)snprintf(name, sizeof(name), "new%u", i % 2);
    belay_rc rc = store_space(c->h->store, bytes_str(name), &sp, NULL);
    rc = rc ? rc : txn_run(sp, insert_own, &i, NULL, &arena, NULL);
    if (rc)
        c->failed++;
    else
        c->ok++;
}

static void eight_found_two_namespaces(struct tap *t)
{
    for (int round = 0; round < 10; round++) {
        CLEANUP(harness_close) struct harness h;
        struct crowd c = { .h = &h };
        if (!harness_open(&h, t, HARNESS_REAL_TIME | HARNESS_UNFOUNDED))
            return;
        crew_run(t, 8, first_commit, &c);
        TAP_EQ(t, c.failed, 0);
        TAP_EQ(t, c.ok, 8);
    }
}

/* --- slots and lost replies --- */

static belay_rc add_one(struct txn *t, void *arg)
{
    (void)arg;
    return thing_add(t, "a", 1);
}

#define ADDERS 6
#define ADDS 60

static void add_or_disturb(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct crowd *c = arg;
    const enum fault_kind kinds[] = { FAULT_AFTER, FAULT_LOST, FAULT_LATE,
                                      FAULT_CONFLICT };

    for (int n = 0; n < ADDS; n++) {
        struct fault f = { .op = FAULT_ON_COMMIT,
                           .kind = kinds[n % 4],
                           .nth = 1 + (unsigned)n % 3,
                           .late_calls = (unsigned)n % 11 };
        if (i == 0 && fault_arm(c->h->faulty, &f, NULL))
            c->failed++;
        arena_reset(&arena);
        belay_rc rc = txn_run(c->h->space, add_one, NULL, NULL, &arena, NULL);
        c->ok += rc == BELAY_OK;
        c->unknown += rc == BELAY_UNKNOWN_OUTCOME;
        c->failed += rc != BELAY_OK && rc != BELAY_UNKNOWN_OUTCOME;
    }
}

static belay_rc count_slot(void *arg, const struct item *item, struct belay_error *err)
{
    (void)err;
    *(size_t *)arg += item->kind == ITEM_ROW && item->row->type == &row_slot;
    return BELAY_OK;
}

static size_t slots(struct harness *h)
{
    size_t n = 0;

    CHECK_RC(h, driver_walk(h->driver, bytes_str("default"), count_slot, &n, NULL),
             BELAY_OK);
    return n;
}

static void lost_replies_in_a_crowd(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct crowd c = { .h = &h };
    if (!harness_open(&h, t, HARNESS_REAL_TIME | HARNESS_FAULTS))
        return;

    thing_set(&h, "a", 0);
    crew_run(t, ADDERS, add_or_disturb, &c);
    fault_clear(h.faulty);
    TAP_EQ(t, c.failed, 0);
    TAP_EQ(t, c.ok + c.unknown, ADDERS * ADDS);
    int64_t count = thing_count(&h, "a");
    TAP_OK(t, count >= c.ok && count <= c.ok + c.unknown);
    TAP_OK(t, fault_count(h.faulty) > 10);
}

static void add_calmly(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct crowd *c = arg;

    (void)i;
    for (int n = 0; n < ADDS; n++) {
        arena_reset(&arena);
        if (txn_run(c->h->space, add_one, NULL, NULL, &arena, NULL))
            c->failed++;
    }
}

static void slots_follow_concurrency(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct crowd c = { .h = &h };
    if (!harness_open(&h, t, HARNESS_REAL_TIME | HARNESS_FAULTS))
        return;

    thing_set(&h, "a", 0);
    for (int round = 0; round < 3; round++)
        crew_run(t, ADDERS, add_calmly, &c);
    TAP_EQ(t, c.failed, 0);
    TAP_EQ(t, thing_count(&h, "a"), 3 * ADDERS * ADDS);
    TAP_OK(t, slots(&h) >= 1 && slots(&h) <= ADDERS);
}

static const struct tap_case cases[] = {
    { "threads: who follows a feed meets every entry once, in order",
      feeds_are_prefix_closed },
    { "threads: a feed is trimmed behind who follows it",
      feeds_are_trimmed_behind_the_tailer },
    { "threads: eight found two namespaces", eight_found_two_namespaces },
    { "threads: replies are lost in a crowd", lost_replies_in_a_crowd },
    { "threads: there are at most as many slots as callers", slots_follow_concurrency },
};
const struct topic topic_thread_feeds = { cases, COUNT_OF(cases) };
