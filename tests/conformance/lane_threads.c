/* Lanes with many workers, and one who reads their feed along. */
#include <stdatomic.h>
#include <stdlib.h>

#include "lanes.h"

#define WORKERS 4

struct lane {
    struct harness *h;
    bool mortal; /* every third batch is picked by one who dies */
    atomic_int failed, workers_left, taken[LANE_ROWS], completed[LANE_ROWS];
    char seen[2 * LANE_ROWS][8]; /* entries as the reader met them */
    size_t n_seen;
};

static belay_rc run_in(struct lane *l, struct belay_arena *a, txn_body *body, void *arg)
{
    belay_rc rc = BELAY_CONTENTION;

    while (rc == BELAY_CONTENTION) {
        arena_reset(a);
        rc = txn_run(l->h->space, body, arg, NULL, a, NULL);
    }
    return rc;
}

static belay_rc any_ready(struct txn *t, void *arg)
{
    const struct scan scan = {
        .indexes = &lane_ready, .n_indexes = 1, .max_rank = RANK_MAX, .limit = 1
    };
    struct hits hits = { .n = 0 };
    belay_rc rc = txn_scan(t, &scan, &hits);

    *(bool *)arg = hits.n > 0;
    return rc;
}

/* Others may hold what is left: there is nothing to do when nothing is ready. */
static void work(struct lane *l, unsigned worker)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct batch b = { .limit = LANE_BATCH };
    bool more = true;

    (void)snprintf(b.worker, sizeof(b.worker), "w%u", worker);
    for (unsigned round = worker; more && !l->failed; round++) {
        b.dies = l->mortal && round % 3 == 0;
        belay_rc rc = run_in(l, &arena, lane_claim, &b);
        if (rc == BELAY_WRONG_STATE && b.dies)
            continue;
        for (size_t i = 0; i < b.n && !rc; i++)
            l->taken[b.id[i]]++;
        if (!rc && b.n > 0)
            rc = run_in(l, &arena, lane_complete, &b);
        for (size_t i = 0; i < b.n && !rc; i++)
            l->completed[b.id[i]]++;
        if (!rc && b.n == 0)
            rc = run_in(l, &arena, any_ready, &more);
        l->failed += rc != BELAY_OK;
    }
    l->workers_left--;
}

struct page {
    struct feed_pos after;
    struct feed_entries out;
};

static belay_rc page_body(struct txn *t, void *arg)
{
    struct page *p = arg;

    return txn_feed_read(t, lane_feed, p->after, 70, &p->out);
}

/* What was appended may take a moment to appear. */
static bool waits_for_more(struct lane *l, unsigned *waited)
{
    if (l->n_seen == COUNT_OF(l->seen) || ++*waited > 500)
        return false;
    harness_pass_us(l->h, 10000);
    return true;
}

/* Page by page until there is nothing left and nobody who writes. */
static void read_along(struct lane *l)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct page p = { .after = { 0 } };
    unsigned waited = 0;
    bool last = false;

    l->n_seen = 0;
    do {
        bool ended = l->workers_left == 0; /* asked before the read */
        l->failed += run_in(l, &arena, page_body, &p) != BELAY_OK;
        for (size_t i = 0; i < p.out.n && !l->failed; i++) {
            const struct feed_entry *e = &p.out.entry[i];
            l->failed += l->n_seen == COUNT_OF(l->seen) || e->data.len > 7 ||
                         feed_pos_cmp(e->pos, p.after) <= 0;
            if (l->failed)
                return;
            memcpy(l->seen[l->n_seen++], e->data.ptr, e->data.len);
            p.after = e->pos;
        }
        last = ended && p.out.n == 0 && !waits_for_more(l, &waited);
    } while (!last && !l->failed);
}

static void work_or_read(void *arg, unsigned i)
{
    if (i < WORKERS)
        work(arg, i);
    else
        read_along(arg);
}

/* Each row was taken, then completed, once; the whole feed is what was read along. */
static void check_steps(struct tap *t, struct lane *l, struct lane *again)
{
    char stage[LANE_ROWS] = { 0 };
    unsigned wrong = 0;

    TAP_EQ(t, l->n_seen, 2 * LANE_ROWS);
    for (size_t i = 0; i < l->n_seen; i++) {
        char *at = &stage[lane_number(bytes_str(l->seen[i]))];
        wrong += *at != (l->seen[i][0] == 'c' ? 0 : 'c');
        *at = l->seen[i][0];
    }
    TAP_EQ(t, wrong, 0);
    *again = (struct lane){ .h = l->h };
    read_along(again);
    TAP_EQ(t, again->failed, 0);
    TAP_EQ(t, again->n_seen, l->n_seen);
    TAP_OK(t, memcmp(again->seen, l->seen, sizeof(l->seen)) == 0);
}

static void lane_by_threads(struct tap *t, bool mortal)
{
    CLEANUP(harness_close) struct harness h;
    struct lane *l = calloc(2, sizeof(*l));
    unsigned wrong = 0;

    if (lane_open(&h, t, HARNESS_REAL_TIME) && TAP_OK(t, l)) {
        l->h = &h;
        l->mortal = mortal;
        l->workers_left = WORKERS;
        crew_run(t, WORKERS + 1, work_or_read, l);
        TAP_EQ(t, l->failed, 0);
        for (int i = 0; i < LANE_ROWS; i++)
            wrong += l->taken[i] != 1 || l->completed[i] != 1;
        TAP_EQ(t, wrong, 0);
        check_steps(t, l, l + 1);
    }
    free(l);
}

static void none_is_lost(struct tap *t)
{
    lane_by_threads(t, false);
}

static void none_is_lost_by_the_dead(struct tap *t)
{
    lane_by_threads(t, true);
}

static const struct tap_case cases[] = {
    { "lanes: threads: every row is taken once, and its steps are read in order",
      none_is_lost },
    { "lanes: threads: also when workers die with what they have picked",
      none_is_lost_by_the_dead },
};
const struct topic topic_lane_threads = { cases, COUNT_OF(cases) };
