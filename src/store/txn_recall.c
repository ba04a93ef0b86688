/* Rows that a body need not ask for: recall.h says which, and why that is safe. */
#include "store/txn_impl.h"

#define SMALL_PLAN 32

bool txn_may_recall(const struct txn *t)
{
    return (t->driver->caps & DRIVER_FAR) && !t->founding &&
           !(t->options && t->options->read_only);
}

/* Who has run in vain asks. */
uint64_t txn_era(struct txn *t)
{
    if (t->run > 1 || t->failed || !txn_may_recall(t))
        return 0;
    return driver_era(t->driver, t->attempt);
}

struct txn_row *txn_take_for_granted(struct txn *t, const struct row_ref *ref,
                                     const struct row *row)
{
    struct txn_row *r = NULL;

    if (txn_remember(t, ref, row, &r))
        return NULL;
    r->recalled = t->recalled = true;
    return r;
}

struct txn_row *txn_recall(struct txn *t, const struct row_ref *ref)
{
    uint64_t era = txn_era(t);
    const struct row *row =
        era ? recall_get(&t->space->recall, ref, era, t->arena) : NULL;

    return row ? txn_take_for_granted(t, ref, row) : NULL;
}

belay_rc txn_hint(struct txn *t, const struct row_type *type, const struct value *key,
                  const struct row **out)
{
    struct row_ref ref;
    belay_rc rc = row_ref_make(&ref, type, key, t->arena, &t->err);
    uint64_t era = rc || !txn_may_recall(t) ? 0 : driver_era(t->driver, t->attempt);

    *out = era ? recall_hint(&t->space->recall, &ref, era, t->arena) : NULL;
    return rc ? rc : t->failed;
}

belay_rc txn_expect_none(struct txn *t, const struct row_type *type,
                         const struct value *key)
{
    struct row_ref ref;
    belay_rc rc = row_ref_make(&ref, type, key, t->arena, &t->err);

    if (rc || txn_era(t) == 0 || txn_find_row(t, &ref) || txn_recall(t, &ref))
        return rc;
    return txn_take_for_granted(t, &ref, NULL) ? BELAY_OK : t->failed;
}

void txn_spent(struct txn *t, const struct row_type *type, const struct value *key)
{
    struct row_ref ref;
    struct txn_row *r =
        txn_may_recall(t) && row_ref_make(&ref, type, key, t->arena, NULL) == BELAY_OK
            ? txn_find_row(t, &ref)
            : NULL;

    if (r)
        r->spent = true;
}

/* What is worth keeping of a row; false: nothing. */
static bool news_of(struct txn *t, const struct txn_row *r, struct recall_news *out)
{
    bool alone = r->ref.type->n_key == 0;

    switch (r->state) {
    case ROW_CHANGED:
        if (r->spent)
            break;
        *out = (struct recall_news){ r->ref, r->cur->v, r->base->ver + 1, .own = true };
        return true;
    case ROW_KEPT: /* one that everybody guards and hardly anybody changes */
        *out = (struct recall_news){ .ref = r->ref };
        if (alone && r->base && !r->recalled)
            *out =
                (struct recall_news){ r->ref, r->base->v, r->base->ver, .own = false };
        return out->v != NULL;
    case ROW_DELETED:
        break;
    case ROW_INSERTED: /* its version is in the plan: learn_inserted */
        return false;
    }
    recall_drop(&t->space->recall, &r->ref, false);
    return false;
}

/* New rows of a small plan.  Those of a large one are most often found again by a scan. */
static size_t learn_inserted(const struct txn *t, struct recall_news *out)
{
    size_t n = 0;

    for (size_t i = 0; i < t->plan.n_effects && t->rows.n <= SMALL_PLAN; i++) {
        const struct effect *e = &t->plan.effects[i];
        if (e->kind == EFFECT_INSERT)
            out[n++] =
                (struct recall_news){ e->row.ref, e->row.v, e->row.ver, .own = false };
    }
    return n;
}

/* What was read for later bodies, and that this one has not touched itself. */
static size_t learn_foreseen(const struct txn *t, struct recall_news *out)
{
    size_t n = 0;

    for (const struct foreseen_row *f = t->foreseen; f; f = f->next) {
        if (!txn_find_row(t, &f->ref))
            out[n++] =
                (struct recall_news){ f->ref, f->row->v, f->row->ver, .own = false };
    }
    return n;
}

static size_t n_foreseen(const struct txn *t)
{
    size_t n = 0;

    for (const struct foreseen_row *f = t->foreseen; f; f = f->next)
        n++;
    return n;
}

void txn_learn(struct txn *t, bool known)
{
    if (!txn_may_recall(t))
        return;
    uint64_t era = known ? driver_era(t->driver, t->attempt) : 0;
    txn_learn_sights(t, era);
    struct recall_news *news =
        era ? arena_alloc(t->arena, (t->rows.n + n_foreseen(t)) * sizeof(*news)) : NULL;
    size_t n = 0;

    for (struct entry *e = t->rows.first; e; e = e->next) {
        const struct txn_row *r = (const struct txn_row *)e;
        if (news)
            n += news_of(t, r, &news[n]);
        else if (r->state != ROW_KEPT) /* R1, or no memory */
            recall_drop(&t->space->recall, &r->ref, false);
    }
    if (news) {
        n += learn_inserted(t, &news[n]);
        n += learn_foreseen(t, &news[n]);
        recall_put(&t->space->recall, news, n,
                   &(struct recall_lesson){ era, t->pages, &t->plan });
    }
}

void txn_unlearn(struct txn *t, const struct plan_result *result)
{
    size_t i = 0, failed = result->failed_guard;

    if (!t->recalled)
        return;
    txn_unlearn_sights(t, result);
    for (struct entry *e = t->rows.first; e; e = e->next, i++) {
        const struct txn_row *r = (const struct txn_row *)e;
        bool in_vain = i == failed;
        if (!r->recalled || !r->base)
            continue;
        if (in_vain && r->ref.type->n_key == 0)
            recall_clear(
                &t->space->recall); /* a new epoch: whatever was before it may be
                                                another's */
        if (in_vain && r->ref.type->n_key == 0)
            sights_clear(&t->space->sights);
        recall_drop(&t->space->recall, &r->ref, in_vain);
    }
}
