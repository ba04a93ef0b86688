/* Scans that need not be asked, since the commit sees to it that they find what they found
 * before: sight.h says why that is safe. */
#include "store/txn_impl.h"

/* A scan of which something can be kept at all, by a body that may take it for granted. */
static bool is_sight(struct txn *t, const struct scan *s)
{
    if (!s->again || s->after || s->descending || s->cover ||
        s->n_fetch > SCAN_FETCH_KEPT || t->ranks.n > 0 ||
        !(t->driver->caps & DRIVER_SCAN_GUARDS) || txn_era(t) == 0)
        return false;
    for (size_t i = 0; i < s->n_fetch; i++) {
        /* With a prefix it may be another one next time. */
        if (s->fetch[i].type->n_key != 1 || !recall_keeps(s->fetch[i].type))
            return false;
    }
    return true;
}

static bool are_sights(struct txn *t, const struct scan *scans, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!scan_shows_nothing(&scans[i]) && !is_sight(t, &scans[i]))
            return false;
    }
    return n > 0;
}

/* A scan of the body's, for as long as the run lasts; NULL: no memory. */
static struct txn_sight *make(struct txn *t, const struct scan *scan,
                              const struct hits *hits)
{
    struct txn_sight *x = arena_zalloc(t->arena, 1, sizeof(*x));
    struct bytes *indexes = arena_zalloc(t->arena, scan->n_indexes, sizeof(*indexes));
    struct fetch *fetch = arena_zalloc(t->arena, scan->n_fetch, sizeof(*fetch));

    if (!x || !indexes || !fetch)
        return NULL;
    *x = (struct txn_sight){ .scan = *scan, .hits = *hits };
    for (size_t i = 0; i < scan->n_indexes; i++) {
        if (!arena_copy(t->arena, scan->indexes[i], &indexes[i]))
            return NULL;
    }
    for (size_t i = 0; i < scan->n_fetch; i++)
        fetch[i] = scan->fetch[i];
    x->scan.indexes = indexes;
    x->scan.fetch = fetch;
    return x;
}

/* Their rows: not asked for, so guarded like those that are recalled, also where what is asked
 * would be a hint: that is of a moment ago, and this may be of any time. */
static bool take_rows(struct txn *t, const struct scan *scan, const struct hit *hit)
{
    for (size_t i = 0; i < scan->n_fetch; i++) {
        struct row_ref ref;
        if (fetch_ref(&ref, &scan->fetch[i], hit->member, t->arena, &t->err))
            return false;
        struct txn_row *r = txn_find_row(t, &ref);
        if (!r)
            r = txn_recall(t, &ref); /* this program may have changed it since */
        if (!r)
            r = txn_take_for_granted(t, &ref, hit->rows[i]);
        if (!r)
            return false;
        r->sighted = true;
    }
    return true;
}

static bool recall_one(struct txn *t, const struct scan *scan, struct hits *out)
{
    struct txn_sight *x = make(t, scan, &(struct hits){ .n = 0 });

    *out = (struct hits){ .n = 0 };
    if (scan_shows_nothing(scan))
        return true;
    if (!x || !sight_recall(&t->space->sights, scan, txn_era(t), t->arena, &x->hits))
        return false;
    x->next = t->sights;
    t->sights = x;
    *out = x->hits;
    return true;
}

bool txn_recall_sights(struct txn *t, const struct scan *scans, size_t n,
                       struct hits *out)
{
    bool known = are_sights(t, scans, n);

    /* What is picked first: where others compete, nothing is known of that. */
    for (size_t i = 0; i < n && known; i++)
        known = !scans[i].pick || recall_one(t, &scans[i], &out[i]);
    for (size_t i = 0; i < n && known; i++)
        known = scans[i].pick || recall_one(t, &scans[i], &out[i]);
    for (size_t i = 0; i < n && known; i++) {
        for (size_t k = 0; k < out[i].n && known; k++)
            known = take_rows(t, &scans[i], &out[i].hit[k]);
    }
    t->recalled |= known;
    if (!known)
        txn_end_sights(t, SIGHT_UNUSED);
    return known;
}

void txn_end_sights(struct txn *t, enum sight_end how)
{
    for (const struct txn_sight *x = t->sights; x; x = x->next)
        sight_end(&t->space->sights, &x->scan, how);
    t->sights = NULL;
}

void txn_end_asked(struct txn *t)
{
    for (const struct txn_sight *x = t->asked; x; x = x->next)
        sight_end(&t->space->sights, &x->scan, SIGHT_ASKED);
    t->asked = NULL;
}

static bool ask_one(struct txn *t, const struct scan *scan)
{
    struct txn_sight *x = make(t, scan, &(struct hits){ .n = 0 });

    if (!x)
        return false;
    x->next = t->asked;
    t->asked = x;
    return sight_ask(&t->space->sights, scan);
}

bool txn_may_see_ahead(struct txn *t, const struct scan *scans, size_t n)
{
    bool worth = are_sights(t, scans, n);

    if (!worth)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (scans[i].pick && !scan_shows_nothing(&scans[i]))
            worth &= ask_one(t, &scans[i]); /* others are told, at any rate */
    }
    for (size_t i = 0; i < n && worth; i++)
        worth = scans[i].pick || scan_shows_nothing(&scans[i]) || ask_one(t, &scans[i]);
    return worth;
}

belay_rc txn_keep_sight(struct txn *t, const struct scan *scan,
                        const struct hits *found)
{
    struct txn_sight *x = make(t, scan, found);

    if (!x)
        return txn_no_memory(t);
    x->next = t->seen;
    t->seen = x;
    return BELAY_OK;
}

/* --- at the end of a run --- */

static belay_rc make_guard(struct txn *t, const struct txn_sight *x,
                           struct scan_guard *out)
{
    struct ranked *found = arena_zalloc(t->arena, x->hits.n, sizeof(*found));

    if (!found)
        return txn_no_memory(t);
    for (size_t i = 0; i < x->hits.n; i++)
        found[i] = (struct ranked){ x->hits.hit[i].index, x->hits.hit[i].member,
                                    x->hits.hit[i].rank };
    *out = (struct scan_guard){ .indexes = x->scan.indexes,
                                .n_indexes = x->scan.n_indexes,
                                .min_rank = x->scan.min_rank,
                                .max_rank = x->scan.max_rank,
                                .limit = x->scan.limit,
                                .unheld = x->scan.pick,
                                .found = found,
                                .n = x->hits.n };
    return BELAY_OK;
}

belay_rc txn_guard_sights(struct txn *t, struct plan *plan)
{
    size_t n = 0;
    belay_rc rc = BELAY_OK;

    for (const struct txn_sight *x = t->sights; x; x = x->next)
        n++;
    if (n == 0)
        return BELAY_OK;
    struct scan_guard *scans = arena_zalloc(t->arena, n, sizeof(*scans));
    if (!scans)
        return txn_no_memory(t);
    for (const struct txn_sight *x = t->sights; x && rc == BELAY_OK; x = x->next)
        rc = make_guard(t, x, &scans[plan->n_scans++]);
    plan->scans = scans;
    return rc;
}

/* S1, S2 */
void txn_learn_sights(struct txn *t, uint64_t era)
{
    struct sights *s = &t->space->sights;

    if (!(t->driver->caps & DRIVER_SCAN_GUARDS))
        return;
    if (era == 0) {
        t->sights = NULL;
        sights_clear(s);
        return;
    }
    for (const struct txn_sight *x = t->seen; x; x = x->next)
        sight_put(s, &x->scan, era, &x->hits, x->scan.limit + x->scan.ahead);
    sights_apply(s, &t->plan);
    txn_end_sights(t, SIGHT_STOOD);
}

/* Whether the row whose guard did not hold was named by what was recalled. */
static bool was_sighted(const struct txn *t, size_t failed)
{
    for (const struct entry *e = t->rows.first; e; e = e->next, failed--) {
        if (failed == 0)
            return ((const struct txn_row *)e)->sighted;
    }
    return false;
}

/* S3 */
void txn_unlearn_sights(struct txn *t, const struct plan_result *result)
{
    bool by_row = was_sighted(t, result->failed_guard);
    size_t i = 0;

    for (const struct txn_sight *x = t->sights; x; x = x->next, i++) {
        bool is_false = result->failed_guard == GUARD_NONE ? i == result->failed_scan
                                                           : by_row && x->scan.pick;
        sight_end(&t->space->sights, &x->scan, is_false ? SIGHT_FALSE : SIGHT_GONE);
    }
    t->sights = NULL;
}
