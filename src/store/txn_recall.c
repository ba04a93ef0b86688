/* Rows that a body need not ask for: recall.h says which, and why that is safe. */
#include "store/txn_impl.h"

#define SMALL_PLAN 32

static bool may_recall(const struct txn *t)
{
    return (t->driver->caps & DRIVER_FAR) && !t->founding &&
           !(t->options && t->options->read_only);
}

/* The era in which a row may be taken for granted; 0: it must be asked for.  Who has run in
 * vain asks. */
static uint64_t era_of(struct txn *t)
{
    if (t->run > 1 || t->failed || !may_recall(t))
        return 0;
    return driver_era(t->driver, t->attempt);
}

/* Remembers a row, or that there is none, without having looked. */
static struct txn_row *take_for_granted(struct txn *t, const struct row_ref *ref,
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
    uint64_t era = era_of(t);
    const struct row *row =
        era ? recall_get(&t->space->recall, ref, era, t->arena) : NULL;

    return row ? take_for_granted(t, ref, row) : NULL;
}

belay_rc txn_hint(struct txn *t, const struct row_type *type, const struct value *key,
                  const struct row **out)
{
    struct row_ref ref;
    belay_rc rc = row_ref_make(&ref, type, key, t->arena, &t->err);
    uint64_t era = rc || !may_recall(t) ? 0 : driver_era(t->driver, t->attempt);

    *out = era ? recall_hint(&t->space->recall, &ref, era, t->arena) : NULL;
    return rc ? rc : t->failed;
}

belay_rc txn_expect_none(struct txn *t, const struct row_type *type,
                         const struct value *key)
{
    struct row_ref ref;
    belay_rc rc = row_ref_make(&ref, type, key, t->arena, &t->err);

    if (rc || era_of(t) == 0 || txn_find_row(t, &ref) || txn_recall(t, &ref))
        return rc;
    return take_for_granted(t, &ref, NULL) ? BELAY_OK : t->failed;
}

void txn_spent(struct txn *t, const struct row_type *type, const struct value *key)
{
    struct row_ref ref;
    struct txn_row *r =
        may_recall(t) && row_ref_make(&ref, type, key, t->arena, NULL) == BELAY_OK
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
        *out = (struct recall_news){ r->ref, r->cur->v, r->base->ver + 1 };
        return true;
    case ROW_KEPT: /* one that everybody guards and hardly anybody changes */
        *out = (struct recall_news){ r->ref, NULL, 0 };
        if (alone && r->base && !r->recalled)
            *out = (struct recall_news){ r->ref, r->base->v, r->base->ver };
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
            out[n++] = (struct recall_news){ e->row.ref, e->row.v, e->row.ver };
    }
    return n;
}

void txn_learn(struct txn *t, bool known)
{
    if (!may_recall(t))
        return;
    uint64_t era = known ? driver_era(t->driver, t->attempt) : 0;
    struct recall_news *news =
        era ? arena_alloc(t->arena, t->rows.n * sizeof(*news)) : NULL;
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
        recall_put(&t->space->recall, news, n, era);
    }
}

void txn_unlearn(struct txn *t, size_t failed)
{
    size_t i = 0;

    if (!t->recalled)
        return;
    for (struct entry *e = t->rows.first; e; e = e->next, i++) {
        const struct txn_row *r = (const struct txn_row *)e;
        bool in_vain = i == failed;
        if (!r->recalled || !r->base)
            continue;
        if (in_vain && r->ref.type->n_key == 0)
            recall_clear(
                &t->space->recall); /* a new epoch: whatever was before it may be
                                                another's */
        recall_drop(&t->space->recall, &r->ref, in_vain);
    }
}
