#include <assert.h>

#include "store/txn_impl.h"

/* Versions are drawn at random so that a row that was deleted and made again cannot
 * satisfy an old guard, and counted up from there. */
#define VERSION_BITS 48

static int64_t first_version(struct txn *t)
{
    if (!t->drawn) {
        t->seed = rng_next(&t->store->rng);
        t->drawn = true;
        rng_init(&t->versions, t->seed);
    }
    return (int64_t)(rng_next(&t->versions) >> (64 - VERSION_BITS)) + 1;
}

/* The values of a new row: as the body sees them, but counters as they were inserted,
 * since the body's counter effects come on top. */
static const struct value *inserted_values(struct txn *t, const struct txn_row *r)
{
    const struct row_type *type = r->ref.type;
    struct value *v = arena_alloc(t->arena, type->n_columns * sizeof(*v));

    if (!v)
        return NULL;
    for (unsigned i = 0; i < type->n_columns; i++)
        v[i] = type->columns[i].counter ? r->initial[i] : r->cur->v[i];
    return v;
}

/* Columns that were put as they were read. */
static uint64_t same_columns(const struct txn_row *r)
{
    uint64_t same = 0;

    for (unsigned i = 0; i < r->ref.type->n_columns; i++) {
        if ((r->changed >> i & 1) && value_eq(&r->base->v[i], &r->cur->v[i]))
            same |= UINT64_C(1) << i;
    }
    return same;
}

/* The effect of one row, if it has one. */
static belay_rc row_effect(struct txn *t, const struct txn_row *r, struct plan *plan)
{
    struct effect *e = &plan->effects[plan->n_effects];

    e->row.ref = r->ref;
    switch (r->state) {
    case ROW_KEPT:
        return BELAY_OK;
    case ROW_INSERTED:
        e->kind = EFFECT_INSERT;
        e->row.ver = first_version(t);
        e->row.v = inserted_values(t, r);
        if (!e->row.v)
            return txn_no_memory(t);
        break;
    case ROW_CHANGED:
        assert(r->base); /* or it would be ROW_INSERTED */
        e->kind = EFFECT_PUT;
        e->row.ver = r->base->ver + 1;
        e->row.v = r->cur->v;
        e->row.changed = r->changed;
        e->row.same = same_columns(r);
        break;
    case ROW_DELETED:
        if (!r->base)
            return BELAY_OK; /* inserted and deleted again: only its absence is left */
        e->kind = EFFECT_DELETE;
        break;
    }
    plan->n_effects++;
    return BELAY_OK;
}

static void rank_effect(const struct txn_rank *r, struct plan *plan)
{
    struct effect *e = &plan->effects[plan->n_effects];

    if (!r->had && !r->has)
        return;
    e->kind = !r->had  ? EFFECT_RANK_ADD
              : r->has ? EFFECT_RANK_MOVE
                       : EFFECT_RANK_REMOVE;
    e->rank.index = r->index;
    e->rank.member = r->member;
    e->rank.old_rank = r->old_rank;
    e->rank.rank = r->rank;
    plan->n_effects++;
}

/* The clock mark goes along with a commit whose body asked for the time, at most once a
 * second: the one who moves persisted_ms writes it. */
static belay_rc mark_effect(struct txn *t, struct plan *plan)
{
    struct effect *e = &plan->effects[plan->n_effects];
    struct space *sp = t->space;

    if (!t->has_now || t->founding || plan->n_effects == 0)
        return BELAY_OK;
    pthread_mutex_lock(&sp->mutex);
    bool due = store_clock_persist_due(&sp->clock, t->now_ms);
    if (due)
        sp->clock.persisted_ms = t->now_ms;
    pthread_mutex_unlock(&sp->mutex);
    if (!due)
        return BELAY_OK;

    e->kind = EFFECT_RAISE;
    e->counter.column = CLOCK_MARK_MS;
    e->counter.amount = t->now_ms;
    belay_rc rc = row_ref_make(&e->counter.ref, &row_clock, NULL, t->arena, &t->err);
    if (rc)
        return txn_broken(t, rc);
    plan->n_effects++;
    return BELAY_OK;
}

static belay_rc add_effects(struct txn *t, struct plan *plan)
{
    belay_rc rc = BELAY_OK;

    for (struct entry *e = t->rows.first; e && !rc; e = e->next)
        rc = row_effect(t, (struct txn_row *)e, plan);
    for (struct entry *e = t->ranks.first; e && !rc; e = e->next)
        rank_effect((struct txn_rank *)e, plan);
    for (struct txn_op *op = t->ops; op && !rc; op = op->next)
        plan->effects[plan->n_effects++] = op->effect;
    return rc ? rc : mark_effect(t, plan);
}

belay_rc txn_make_plan(struct txn *t, bool with_effects, struct plan *out,
                       struct plan_result *result)
{
    size_t n_effects = t->rows.n + t->ranks.n + t->n_ops + 1 + SLOT_EFFECTS;
    struct plan plan = { .id = t->id, .ns = t->space->name, .topics = t->topics };

    plan.guards =
        arena_alloc(t->arena, (t->rows.n + SLOT_GUARDS) * sizeof(struct guard));
    if (!plan.guards)
        return txn_no_memory(t);
    for (struct entry *e = t->rows.first; e; e = e->next) {
        struct txn_row *r = (struct txn_row *)e;
        plan.guards[plan.n_guards++] = (struct guard){
            .ref = r->ref,
            .ver = r->base ? r->base->ver : 0,
            .read = !r->assumed && !r->recalled,
            .inserted = with_effects && r->state == ROW_INSERTED,
        };
    }
    *result = (struct plan_result){ .conflict = false };
    if (with_effects) {
        plan.effects = arena_zalloc(t->arena, n_effects, sizeof(*plan.effects));
        result->effects = arena_zalloc(t->arena, n_effects, sizeof(*result->effects));
        if (!plan.effects || !result->effects)
            return txn_no_memory(t);
        belay_rc rc = add_effects(t, &plan);
        if (rc == BELAY_OK && plan.n_effects > 0)
            rc = txn_guard_sights(t, &plan);
        if (rc)
            return rc;
    }
    *out = plan;
    return BELAY_OK;
}

static bool is_collected(const struct effect *e)
{
    return e->kind > EFFECT_DELETE &&
           (e->kind < EFFECT_RANK_ADD || e->kind > EFFECT_RANK_REMOVE);
}

void txn_hand_out(struct txn *t)
{
    size_t i = 0;

    /* What the body collected stands in the plan in that order, behind the effects of
     * rows and ranks. */
    while (i < t->plan.n_effects && !is_collected(&t->plan.effects[i]))
        i++;
    for (struct txn_op *op = t->ops; op; op = op->next) {
        const struct effect_result *r = &t->result.effects[i++];
        if (op->sum)
            *op->sum = (struct txn_sum){ .known = r->known, .value = r->value };
        if (op->pos)
            *op->pos = (struct txn_pos){ .known = r->known, .pos = r->pos };
    }
    txn_post_topics(t);
}

void txn_post_topics(struct txn *t)
{
    for (const struct plan_topic *w = t->topics; w; w = w->next) {
        if (t->result.told)
            wake_post(t->driver->hub, t->space->name, w->name);
        else
            driver_wake(t->driver, t->space->name, w->name);
    }
}
