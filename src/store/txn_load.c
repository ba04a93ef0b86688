/* Several questions at once: rows and scans in one round trip, or none where they are known. */
#include "store/txn_impl.h"

/* A scan among several questions. */
struct load_scan {
    struct scan wider;
    struct scan behind; /* where the next member stands behind its last rank, or what is
                                read ahead (sight.h) */
    struct read *q, *beyond; /* NULL: not asked */
};

/* The questions of one round trip: rows that are not known yet, then scans. */
struct load {
    struct read *q;
    size_t n;
    struct row_ref *refs; /* of all rows wanted */
    size_t n_rows;        /* of them asked for */
    struct load_scan *scans;
    struct hits *known; /* of each scan, without being asked */
    bool ahead;         /* what later bodies will ask for is read, too */
};

static belay_rc load_rows(struct txn *t, struct load *l, const struct row_want *wants,
                          size_t n)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < n && !rc; i++) {
        rc = row_ref_make(&l->refs[i], wants[i].type, wants[i].key, t->arena, &t->err);
        if (!rc && !txn_find_row(t, &l->refs[i]) && !txn_recall(t, &l->refs[i]))
            l->q[l->n++] = (struct read){ .kind = READ_ROW, .row.ref = l->refs[i] };
    }
    l->n_rows = l->n;
    return rc;
}

static struct read *load_rank(struct load *l, const struct scan *scan, bool hold)
{
    struct read *q = &l->q[l->n++];

    *q = (struct read){ .kind = READ_RANK, .rank = { .scan = scan, .hold = hold } };
    return q;
}

/* A scan, and what later bodies will ask for, in the same round trip: nothing of that is held.
 * Where members are all there is to it, it begins with what the scan itself finds. */
static void load_ahead(struct load *l, const struct scan *scan, struct load_scan *s)
{
    s->behind = *scan;
    s->behind.max_rank = RANK_MAX;
    s->behind.limit += scan->ahead;
    if (scan->pick || scan->n_fetch > 0)
        s->q = load_rank(l, scan, scan->pick);
    s->beyond = load_rank(l, &s->behind, false);
}

/* Of what was read ahead, too: what the scan finds. */
static struct hits find_shown(const struct scan *scan, const struct hits *all)
{
    struct hits shown = { .hit = all->hit };

    while (shown.n < all->n && shown.n < scan->limit &&
           all->hit[shown.n].rank <= scan->max_rank)
        shown.n++;
    return shown;
}

static belay_rc load_scan(struct txn *t, struct load *l, const struct scan *scan,
                          size_t i)
{
    struct load_scan *s = &l->scans[i];
    bool next = false;
    belay_rc rc = txn_check_scan(t, scan);

    if (rc || scan_shows_nothing(scan) || txn_recall_scan(t, scan, &l->known[i]))
        return rc;
    if (l->ahead) {
        load_ahead(l, scan, s);
        return BELAY_OK;
    }
    s->wider = txn_widened(t, scan);
    s->wider.limit += txn_ahead(t, scan, &next);
    s->q = load_rank(l, &s->wider, scan->pick);
    if (!next)
        return BELAY_OK;
    s->behind = (struct scan){ .indexes = scan->indexes,
                               .n_indexes = 1,
                               .min_rank = scan->max_rank + 1,
                               .max_rank = scan_beyond(scan),
                               .limit = 1 };
    s->beyond = load_rank(l, &s->behind, false);
    return BELAY_OK;
}

static belay_rc load_questions(struct txn *t, struct load *l,
                               const struct row_want *wants, size_t n_wants,
                               const struct scan *scans, size_t n_scans)
{
    l->q = arena_zalloc(t->arena, n_wants + 2 * n_scans, sizeof(*l->q));
    l->refs = arena_zalloc(t->arena, n_wants, sizeof(*l->refs));
    l->scans = arena_zalloc(t->arena, n_scans, sizeof(*l->scans));
    l->known = arena_zalloc(t->arena, n_scans, sizeof(*l->known));
    if (!l->q || !l->refs || !l->scans || !l->known)
        return txn_no_memory(t);
    belay_rc rc = load_rows(t, l, wants, n_wants);
    if (!rc && l->n == 0 && n_scans > 0 &&
        txn_recall_sights(t, scans, n_scans, l->known))
        return BELAY_OK;
    l->ahead = !rc && txn_may_see_ahead(t, scans, n_scans);
    for (size_t i = 0; i < n_scans && !rc; i++)
        rc = load_scan(t, l, &scans[i], i);
    return rc;
}

/* What became of a scan. */
static belay_rc load_hits(struct txn *t, const struct scan *scan, const struct load *l,
                          size_t i, struct hits *out)
{
    const struct load_scan *s = &l->scans[i];
    belay_rc rc = BELAY_OK;

    *out = l->known[i];
    if (l->ahead && s->beyond) {
        const struct hits *all = &s->beyond->rank.out;
        *out = s->q ? s->q->rank.out : find_shown(scan, all);
        rc = txn_keep_sight(t, scan, all);
    } else if (s->q) {
        *out = s->q->rank.out;
        rc = txn_keep_page(t, scan, out, s->beyond ? &s->beyond->rank.out : NULL);
    }
    return rc ? rc : txn_take_hits(t, scan, out);
}

belay_rc txn_load(struct txn *t, const struct row_want *wants, size_t n_wants,
                  const struct row **rows, const struct scan *scans, size_t n_scans,
                  struct hits *hits)
{
    struct load l = { .n = 0 };
    struct txn_row *r;
    belay_rc rc = load_questions(t, &l, wants, n_wants, scans, n_scans);

    if (!rc && l.n > 0)
        rc = txn_ask(t, l.q, l.n);
    for (size_t i = 0; i < l.n_rows && !rc; i++)
        rc = txn_remember(t, &l.q[i].row.ref, l.q[i].row.out, &r);
    for (size_t i = 0; i < n_scans && !rc; i++)
        rc = load_hits(t, &scans[i], &l, i, &hits[i]);
    for (size_t i = 0; i < n_wants && !rc; i++)
        rows[i] = txn_find_row(t, &l.refs[i])->cur;
    return rc ? rc : t->failed;
}

belay_rc txn_foresee(struct txn *t, const struct row_want *wants, size_t n)
{
    struct load l = { .n = 0 };

    if (txn_era(t) == 0)
        return t->failed;
    l.q = arena_zalloc(t->arena, n, sizeof(*l.q));
    struct foreseen_row *seen = arena_zalloc(t->arena, n, sizeof(*seen));
    if (!l.q || !seen)
        return txn_no_memory(t);
    for (size_t i = 0; i < n; i++) {
        struct read *q = &l.q[l.n];
        *q = (struct read){ .kind = READ_ROW };
        belay_rc rc =
            row_ref_make(&q->row.ref, wants[i].type, wants[i].key, t->arena, &t->err);
        if (rc)
            return rc;
        l.n += !txn_find_row(t, &q->row.ref) &&
               !recall_get(&t->space->recall, &q->row.ref, txn_era(t), t->arena);
    }
    belay_rc rc = l.n > 0 ? txn_ask(t, l.q, l.n) : BELAY_OK;
    for (size_t i = 0; i < l.n && !rc; i++) {
        seen[i] = (struct foreseen_row){ t->foreseen, l.q[i].row.ref, l.q[i].row.out };
        if (seen[i].row)
            t->foreseen = &seen[i];
    }
    return rc;
}
