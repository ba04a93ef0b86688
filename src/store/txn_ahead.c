/* Scans that need not be asked, since the row that covers their index need not be either; and
 * what is read along for that.  recall.h says why that is safe. */
#include "store/txn_impl.h"

/* A scan of which something can be kept at all. */
static bool is_covered(const struct txn *t, const struct scan *s)
{
    return s->cover && s->n_indexes == 1 && !s->after && !s->descending && !s->pick &&
           s->n_fetch <= 1 && s->hints == 0 && t->ranks.n == 0;
}

/* Its cover, if the body has it without having asked: nobody else has changed it for a while
 * then, and pages are worth the trouble. */
static const struct txn_row *cover_of(struct txn *t, const struct scan *s)
{
    struct row_ref ref;

    if (!is_covered(t, s) || txn_era(t) == 0 ||
        row_ref_make(&ref, s->cover->type, s->cover->key, t->arena, NULL))
        return NULL;
    const struct txn_row *r = txn_find_row(t, &ref);
    return r && r->recalled && r->base ? r : NULL;
}

/* The rows of what was found: not asked for, so guarded like those that are recalled. */
static bool remember_rows(struct txn *t, const struct scan *s, const struct hits *hits)
{
    for (size_t i = 0; i < hits->n && s->n_fetch > 0; i++) {
        struct row_ref ref;
        if (fetch_ref(&ref, &s->fetch[0], hits->hit[i].member, t->arena, &t->err))
            return false;
        if (!txn_find_row(t, &ref) &&
            !txn_take_for_granted(t, &ref, hits->hit[i].rows[0]))
            return false;
    }
    return true;
}

bool txn_recall_scan(struct txn *t, const struct scan *scan, struct hits *out)
{
    const struct txn_row *cover = cover_of(t, scan);

    return cover &&
           recall_scan(&t->space->recall, &cover->ref, cover->base->ver, txn_era(t),
                       scan, t->arena, out) &&
           remember_rows(t, scan, out);
}

size_t txn_ahead(struct txn *t, const struct scan *scan, bool *next)
{
    bool covered = cover_of(t, scan) != NULL;

    *next = covered && scan->max_rank < RANK_MAX;
    return covered ? scan->ahead : 0;
}

/* The last rank up to which a scan has seen everything. */
static int64_t seen_up_to(const struct scan *s, const struct hits *found,
                          const struct hits *next)
{
    if (found->n >= s->limit + s->ahead) /* others may stand at the last one's rank */
        return found->hit[found->n - 1].rank - 1;
    if (s->grows)
        return found->n > 0 ? found->hit[found->n - 1].rank : s->min_rank - 1;
    if (!next)
        return s->max_rank;
    return next->n > 0 ? next->hit[0].rank - 1 : scan_beyond(s);
}

/* What was found, as it was found: what the body makes of it is its own. */
static belay_rc copy_hits(struct txn *t, const struct scan *scan,
                          const struct hits *found, struct recall_page *page)
{
    struct recalled_hit *hit = arena_zalloc(t->arena, found->n, sizeof(*hit));

    if (!hit)
        return txn_no_memory(t);
    for (size_t i = 0; i < found->n; i++) {
        hit[i].rank = found->hit[i].rank;
        hit[i].member = found->hit[i].member;
        hit[i].row = found->hit[i].rows[0];
        if (fetch_ref(&hit[i].ref, &scan->fetch[0], hit[i].member, t->arena, NULL))
            hit[i].row = NULL; /* whoever comes to it will find out */
    }
    page->hit = hit;
    page->n = found->n;
    return BELAY_OK;
}

static belay_rc keep(struct txn *t, const struct txn_row *cover,
                     const struct scan *scan, const struct hits *found,
                     const struct hits *next)
{
    struct recall_page *page = arena_alloc(t->arena, sizeof(*page));

    if (!page)
        return txn_no_memory(t);
    *page = (struct recall_page){ .next = t->pages,
                                  .cover = cover->ref,
                                  .from = scan->min_rank,
                                  .to = seen_up_to(scan, found, next) };
    if (!arena_copy(t->arena, scan->indexes[0], &page->index))
        return txn_no_memory(t);
    if (scan->n_fetch == 0 && found->n > 0)
        page->to = found->hit[0].rank - 1;
    belay_rc rc = scan->n_fetch > 0 ? copy_hits(t, scan, found, page) : BELAY_OK;
    if (!rc)
        t->pages = page;
    return rc;
}

belay_rc txn_keep_page(struct txn *t, const struct scan *scan, struct hits *io,
                       const struct hits *next)
{
    const struct txn_row *cover = cover_of(t, scan);
    belay_rc rc = cover ? keep(t, cover, scan, io, next) : BELAY_OK;

    if (t->ranks.n == 0 && io->n > scan->limit) {
        io->ahead = io->n - scan->limit;
        io->n = scan->limit;
    }
    return rc;
}
