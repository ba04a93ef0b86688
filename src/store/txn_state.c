#include <string.h>

#include "store/txn_impl.h"

void entry_map_init(struct entry_map *m, struct entry **slots, size_t cap)
{
    memset(slots, 0, cap * sizeof(*slots));
    *m = (struct entry_map){ .slots = slots, .cap = cap };
    m->last = &m->first;
}

struct entry *entry_find(const struct entry_map *m, uint64_t hash, struct bytes key)
{
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct entry *e = m->slots[i];
        if (!e || (e->hash == hash && bytes_eq(e->key, key)))
            return e;
    }
}

static void place(struct entry **slots, size_t cap, struct entry *e)
{
    size_t i = e->hash & (cap - 1);

    while (slots[i])
        i = (i + 1) & (cap - 1);
    slots[i] = e;
}

bool entry_add(struct entry_map *m, struct entry *e, struct belay_arena *a)
{
    if (2 * (m->n + 1) > m->cap) {
        struct entry **slots = arena_zalloc(a, 2 * m->cap, sizeof(struct entry *));
        if (!slots)
            return false;
        for (struct entry *old = m->first; old; old = old->next)
            place(slots, 2 * m->cap, old);
        m->slots = slots;
        m->cap *= 2;
    }
    place(m->slots, m->cap, e);
    e->next = NULL;
    *m->last = e;
    m->last = &e->next;
    m->n++;
    return true;
}

struct txn_row *txn_find_row(const struct txn *t, const struct row_ref *ref)
{
    return (struct txn_row *)entry_find(&t->rows, ref->hash, ref->enc);
}

belay_rc txn_remember(struct txn *t, const struct row_ref *ref, const struct row *base,
                      struct txn_row **out)
{
    struct txn_row *r = txn_find_row(t, ref);

    if (!r) {
        r = arena_alloc(t->arena, sizeof(*r));
        if (!r)
            return txn_no_memory(t);
        *r = (struct txn_row){ .entry = { .hash = ref->hash, .key = ref->enc },
                               .ref = *ref,
                               .base = base,
                               .cur = base };
        if (base && t->n_ops > 0)
            r->cur = txn_with_counters(t, ref, base);
        if ((base && !r->cur) || !entry_add(&t->rows, &r->entry, t->arena))
            return txn_no_memory(t);
    }
    *out = r;
    return BELAY_OK;
}

/* index 00 member, in the arena; false: no memory. */
static bool rank_key(struct txn *t, struct bytes index, struct bytes member,
                     struct bytes *out)
{
    uint8_t *key = arena_alloc(t->arena, index.len + member.len + 2);

    if (!key)
        return false;
    key_put_text(key_put_text(key, index), member);
    *out = bytes_of(key, index.len + member.len + 2);
    return true;
}

belay_rc txn_find_rank(struct txn *t, struct bytes index, struct bytes member,
                       struct txn_rank **out)
{
    struct bytes key;

    if (!rank_key(t, index, member, &key))
        return txn_no_memory(t);
    *out = (struct txn_rank *)entry_find(&t->ranks, key_hash(key), key);
    return BELAY_OK;
}

belay_rc txn_remember_rank(struct txn *t, struct bytes index, struct bytes member,
                           struct txn_rank **out)
{
    struct txn_rank *r = arena_zalloc(t->arena, 1, sizeof(*r));

    if (!r || !rank_key(t, index, member, &r->entry.key))
        return txn_no_memory(t);
    r->entry.hash = key_hash(r->entry.key);
    r->index = bytes_of(r->entry.key.ptr, index.len);
    r->member = bytes_of(r->entry.key.ptr + index.len + 1, member.len);
    if (!entry_add(&t->ranks, &r->entry, t->arena))
        return txn_no_memory(t);
    *out = r;
    return BELAY_OK;
}

/* What one counter effect makes of a value; a hint, so overflow just stays put. */
static int64_t counted(const struct effect *e, const struct value *v)
{
    int64_t old = v->kind == VALUE_I64 ? v->i : 0;
    int64_t sum = old;

    if (e->kind == EFFECT_RAISE)
        return old > e->counter.amount ? old : e->counter.amount;
    return __builtin_add_overflow(old, e->counter.amount, &sum) ? old : sum;
}

const struct row *txn_with_counter(struct txn *t, const struct row *row,
                                   const struct effect *e)
{
    size_t len = row->type->n_columns * sizeof(struct value);
    struct row *copy = arena_alloc(t->arena, sizeof(*copy) + len);

    if (!copy)
        return NULL;
    struct value *v = (struct value *)(copy + 1);
    memcpy(v, row->v, len);
    v[e->counter.column] = value_i64(counted(e, &v[e->counter.column]));
    *copy = (struct row){ .type = row->type, .ver = row->ver, .v = v };
    return copy;
}

const struct row *txn_with_counters(struct txn *t, const struct row_ref *ref,
                                    const struct row *row)
{
    for (struct txn_op *op = t->ops; op && row; op = op->next) {
        const struct effect *e = &op->effect;
        if ((e->kind == EFFECT_ADD || e->kind == EFFECT_RAISE) &&
            row_ref_eq(&e->counter.ref, ref))
            row = txn_with_counter(t, row, e);
    }
    return row;
}
