/* How many executions there are in each state, and on each lane: counted along the
 * indexes, without reading a row of them. */
#include <stdlib.h>

#include "work/exec_show.h"

/* Lanes stop being counted on one page behind so many entries. */
#define PAGE_ENTRIES_MAX 100000

/* --- counting --- */

static int by_member(const void *a, const void *b)
{
    return bytes_cmp(((const struct hit *)a)->member, ((const struct hit *)b)->member);
}

/* Executions whose lease was lost: they stand among the ready ones, but are active.
 * Sorted by member. */
static belay_rc lost_ones(struct txn *t, struct hits *out)
{
    const struct bytes index = bytes_str(LOST_INDEX);
    const struct scan scan = { .indexes = &index,
                               .n_indexes = 1,
                               .max_rank = RANK_MAX,
                               .limit = BELAY_COUNT_MAX };
    belay_rc rc = txn_scan(t, &scan, out);

    if (rc == BELAY_OK && out->n > 1)
        qsort(out->hit, out->n, sizeof(*out->hit), by_member);
    return rc;
}

static bool is_lost(const struct hits *lost, struct bytes member)
{
    const struct hit key = { .member = member };

    return lost->n > 0 &&
           bsearch(&key, lost->hit, lost->n, sizeof(*lost->hit), by_member) != NULL;
}

struct ready_count {
    int64_t n;           /* waiting, up to BELAY_COUNT_MAX */
    size_t scanned;      /* entries that were read */
    struct bytes oldest; /* ids grow with time */
};

static belay_rc count_ready(struct txn *t, const struct bytes *indexes,
                            size_t n_indexes, const struct hits *lost,
                            struct ready_count *out)
{
    const struct scan scan = { .indexes = indexes,
                               .n_indexes = n_indexes,
                               .min_rank = -RANK_MAX,
                               .max_rank = RANK_MAX,
                               .limit = BELAY_COUNT_MAX + lost->n };
    struct hits hits;
    belay_rc rc = txn_scan(t, &scan, &hits);

    *out = (struct ready_count){ .n = 0 };
    for (size_t i = 0; rc == BELAY_OK && i < hits.n && out->n < BELAY_COUNT_MAX; i++) {
        struct bytes member = hits.hit[i].member;
        out->scanned++;
        if (is_lost(lost, member))
            continue;
        if (out->n++ == 0 || bytes_cmp(member, out->oldest) < 0)
            out->oldest = member;
    }
    return rc;
}

/* --- states --- */

/* States that are told by the indexes they stand in; of `waiting` there is more. */
static const struct {
    enum belay_state state;
    const char *index;
} tellers[] = {
    { BELAY_STATE_WAITING, HELD_INDEX "waiting" },
    { BELAY_STATE_DELAYED, DELAYED_INDEX },
    { BELAY_STATE_RATE_LIMITED, HELD_INDEX "rate_limited" },
    { BELAY_STATE_WAITING_CHILDREN, HELD_INDEX "waiting_children" },
    { BELAY_STATE_ACTIVE, LEASED_INDEX },
    { BELAY_STATE_ACTIVE, LOST_INDEX },
    { BELAY_STATE_ACTIVE, HELD_INDEX "active" },
    { BELAY_STATE_SUSPENDED, HELD_INDEX "suspended" },
    { BELAY_STATE_RESUMABLE, HELD_INDEX "resumable" },
    { BELAY_STATE_COMPLETED, DONE_INDEX "success" },
    { BELAY_STATE_FAILED, DONE_INDEX "failed" },
    { BELAY_STATE_FAILED, DONE_INDEX "none" },
    { BELAY_STATE_CANCELLED, DONE_INDEX "cancelled" },
    { BELAY_STATE_EXPIRED, DONE_INDEX "expired" },
    { BELAY_STATE_SKIPPED, DONE_INDEX "skipped" },
};

static void add_count(int64_t *count, int64_t n)
{
    *count = *count + n < BELAY_COUNT_MAX ? *count + n : BELAY_COUNT_MAX;
}

static belay_rc count_states(struct txn *t, struct belay_execution_stats *out)
{
    struct bytes names[COUNT_OF(tellers) + 1];
    struct scan scans[COUNT_OF(names)];
    struct hits hits[COUNT_OF(names)];
    const size_t lanes = COUNT_OF(tellers);

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        names[i] = bytes_str(i == lanes ? LANE_INDEX : tellers[i].index);
        scans[i] = (struct scan){ .indexes = &names[i],
                                  .n_indexes = 1,
                                  .max_rank = RANK_MAX,
                                  .limit = BELAY_COUNT_MAX };
    }
    belay_rc rc = txn_load(t, NULL, 0, NULL, scans, COUNT_OF(scans), hits);
    if (rc)
        return rc;
    for (size_t i = 0; i < lanes; i++)
        add_count(&out->count[tellers[i].state], (int64_t)hits[i].n);
    out->lanes = (int64_t)hits[lanes].n;
    return BELAY_OK;
}

/* What can be claimed, by anybody or by whom it is granted to. */
static belay_rc count_waiting(struct txn *t, int64_t *count)
{
    struct ready_count waiting;
    struct bytes *ready, *all = NULL;
    struct hits lost;
    size_t n;
    belay_rc rc = lost_ones(t, &lost);

    if (rc == BELAY_OK)
        rc = exec_ready_indexes(t, bytes_of("", 0), &ready, &n);
    if (rc)
        return rc;
    all = arena_zalloc(txn_arena(t), n + 1, sizeof(*all));
    if (!all)
        return err_no_memory(txn_error(t), "indexes");
    if (n > 0)
        memcpy(all, ready, n * sizeof(*all));
    all[n] = bytes_str(GRANTED_INDEX);
    rc = count_ready(t, all, n + 1, &lost, &waiting);
    if (rc == BELAY_OK)
        add_count(count, waiting.n);
    return rc;
}

static belay_rc count_body(struct txn *t, void *arg)
{
    struct belay_execution_stats *out = arg;
    int64_t now_ms;

    *out = (struct belay_execution_stats){ .size = out->size };
    belay_rc rc = txn_now(t, &now_ms);
    if (rc == BELAY_OK)
        rc = count_states(t, out);
    if (rc == BELAY_OK)
        rc = count_waiting(t, &out->count[BELAY_STATE_WAITING]);
    if (rc == BELAY_OK)
        rc = exec_next_due(t, now_ms, &out->next_due_at_ms);
    return rc;
}

belay_rc exec_count(const struct exec_site *site, struct belay_execution_stats *out,
                    struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_execution_stats stats = { .size = out->size };
    belay_rc rc = txn_run(site->space, count_body, &stats, &look_only, &arena, err);

    if (rc == BELAY_OK)
        *out = stats;
    return rc;
}

/* --- lanes --- */

struct laning {
    struct bytes after;
    size_t limit;

    /* Of one run of the body. */
    struct belay_lane *items;
    size_t n;
    bool more;
};

static belay_rc lane_missing(struct txn *t, struct bytes lane)
{
    belay_rc rc = txn_fail(t, BELAY_CORRUPT, "lane", "lane %.*s: has no row",
                           (int)lane.len, (const char *)lane.ptr);

    err_entity(txn_error(t), lane);
    return rc;
}

static belay_rc fill_lane(struct txn *t, const struct hit *hit, const struct hits *lost,
                          struct belay_lane *out, size_t *scanned)
{
    struct bytes *ready;
    struct ready_count count = { .n = 0 };
    const struct row *oldest = NULL;

    if (!hit->rows[0])
        return lane_missing(t, hit->member);
    belay_rc rc = exec_ready_indexes(t, hit->member, &ready, &out->routes);
    if (rc == BELAY_OK)
        rc = count_ready(t, ready, out->routes, lost, &count);
    if (rc == BELAY_OK && count.n > 0) {
        struct value key = value_text(count.oldest);
        rc = txn_peek(t, &row_execution, &key, &oldest);
    }
    if (rc)
        return rc;
    if (!show_text(txn_arena(t), hit->member, &out->lane))
        return err_no_memory(txn_error(t), "lanes");
    out->created_at_ms = row_i64(hit->rows[0], LANE_CREATED_AT_MS, TIME_NONE);
    out->waiting = count.n;
    out->oldest_at_ms =
        oldest ? row_i64(oldest, EXEC_CREATED_AT_MS, TIME_NONE) : TIME_NONE;
    *scanned += count.scanned;
    return BELAY_OK;
}

static belay_rc lanes_body(struct txn *t, void *arg)
{
    struct laning *l = arg;
    const struct bytes index = bytes_str(LANE_INDEX);
    const struct fetch fetch = { &row_lane, NULL };
    const struct scan_cursor after = { .member = l->after, .index = index };
    const struct scan scan = { .indexes = &index,
                               .n_indexes = 1,
                               .max_rank = RANK_MAX,
                               .after = l->after.ptr ? &after : NULL,
                               .limit = l->limit + 1,
                               .fetch = &fetch,
                               .n_fetch = 1 };
    struct hits hits, lost;
    size_t scanned = 0;
    belay_rc rc = txn_scan(t, &scan, &hits);

    if (rc == BELAY_OK)
        rc = lost_ones(t, &lost);
    if (rc)
        return rc;
    l->n = 0;
    l->items = arena_zalloc(txn_arena(t), l->limit, sizeof(*l->items));
    if (!l->items)
        return err_no_memory(txn_error(t), "lanes");
    while (rc == BELAY_OK && l->n < hits.n && l->n < l->limit &&
           scanned < PAGE_ENTRIES_MAX) {
        rc = fill_lane(t, &hits.hit[l->n], &lost, &l->items[l->n], &scanned);
        l->n++;
    }
    l->more = l->n < hits.n;
    return rc;
}

belay_rc exec_lanes(const struct exec_site *site, const char *after, size_t limit,
                    struct belay_arena *a, struct belay_lanes *out,
                    struct belay_error *err)
{
    struct laning l = { .after = after ? bytes_str(after) : bytes_of(NULL, 0) };
    belay_rc rc = look_limit(limit, &l.limit, err);

    if (rc == BELAY_OK && after)
        rc = lane_check(after, err);
    if (rc == BELAY_OK)
        rc = txn_run(site->space, lanes_body, &l, &look_only, a, err);
    if (rc == BELAY_OK)
        *out =
            (struct belay_lanes){ .items = l.items,
                                  .n = l.n,
                                  .next_after = l.more ? l.items[l.n - 1].lane : NULL };
    return rc;
}
