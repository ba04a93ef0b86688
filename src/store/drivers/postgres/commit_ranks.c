/* Ranks of a plan: what is removed, then what moves, then what is added.  A statement that
 * finds something else than it should raises a refusal; which one it was is found out
 * afterwards (refusal.c).
 *
 * What was picked, and what this process has added (places.h), is removed where it lies. */
#include <stdlib.h>

#include "store/drivers/postgres/impl.h"

#define TOLD_MIN 16 /* that many are told where they lie */

struct ranks {
    struct pg_store *s;
    struct pg_pipe *p;
    const struct plan *plan;
    const struct pg_picks *picks;
    bool *gone; /* by effect: it is done */
};

static struct pg_call *add_text(const struct ranks *r, struct buf *text, unsigned args)
{
    return pg_add(r->p, pg_sql_of(r->s, text), args);
}

/* Effects of one kind, as arrays: index, member, rank, and old rank. */
static struct pg_call *add_rank_call(const struct ranks *r, enum effect_kind kind,
                                     struct buf *text, bool rank, bool old_rank)
{
    size_t n = 0, most = r->plan->n_effects;
    struct value *v = arena_zalloc(r->p->arena, 4 * most, sizeof(*v));

    if (!v) {
        r->p->no_memory = true;
        return NULL;
    }
    for (size_t i = 0; i < most; i++) {
        const struct effect *e = &r->plan->effects[i];
        if (e->kind != kind || r->gone[i])
            continue;
        v[n] = value_text(e->rank.index);
        v[most + n] = value_text(e->rank.member);
        v[2 * most + n] = value_i64(e->rank.rank);
        v[3 * most + n] = value_i64(e->rank.old_rank);
        n++;
    }
    struct pg_call *c = add_text(r, text, 6);
    pg_arg_bytes(r->p, c, r->plan->ns);
    pg_arg_array(r->p, c, VALUE_TEXT, v, n);
    pg_arg_array(r->p, c, VALUE_TEXT, v + most, n);
    if (rank)
        pg_arg_array(r->p, c, VALUE_I64, v + 2 * most, n);
    if (old_rank)
        pg_arg_array(r->p, c, VALUE_I64, v + 3 * most, n);
    if (kind != EFFECT_RANK_ADD)
        pg_arg_i64(r->p, c, (int64_t)n);
    return c;
}

/* How many effects of a kind there are; *only is one of them. */
static size_t count_kind(const struct ranks *r, enum effect_kind kind,
                         const struct effect **only)
{
    size_t n = 0;

    for (size_t i = 0; i < r->plan->n_effects; i++) {
        if (r->plan->effects[i].kind == kind && !r->gone[i]) {
            *only = &r->plan->effects[i];
            n++;
        }
    }
    return n;
}

/* One change by itself, without arrays: $2 index, $3 member, then ranks. */
static void add_one_rank(const struct ranks *r, const struct effect *e,
                         struct buf *text)
{
    struct pg_call *c = add_text(r, text, 5);

    pg_arg_bytes(r->p, c, r->plan->ns);
    pg_arg_bytes(r->p, c, e->rank.index);
    pg_arg_bytes(r->p, c, e->rank.member);
    if (e->kind != EFFECT_RANK_REMOVE)
        pg_arg_i64(r->p, c, e->rank.rank);
    if (e->kind != EFFECT_RANK_ADD)
        pg_arg_i64(r->p, c, e->rank.old_rank);
}

static void remove_or_move_one(const struct ranks *r, const struct effect *e)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    bool moves = e->kind == EFFECT_RANK_MOVE;

    buf_append_str(&text, moves ? "WITH d AS (UPDATE " : "WITH d AS (DELETE FROM ");
    pg_table(r->s, "rank", &text);
    buf_printf(&text, "%s WHERE ", moves ? " SET rank = $4" : "");
    pg_where_index(r->s, "", "$2", &text);
    buf_printf(&text,
               " AND member = $3 AND rank = $%d RETURNING 1) SELECT"
               " \"%s\".belay1_refuse(NOT EXISTS (SELECT FROM d))",
               moves ? 5 : 4, r->s->schema);
    add_one_rank(r, e, &text);
}

/* Each member of a list u where it stands, as pg_find_each. */
static void find_members(const struct ranks *r, const char *rank, struct buf *out)
{
    buf_append_str(out, " CROSS JOIN LATERAL (SELECT x.ctid FROM ");
    pg_table(r->s, "rank", out);
    buf_append_str(out, " x WHERE ");
    pg_where_index(r->s, "x.", "u.idx", out);
    buf_printf(out, " AND x.rank = %s AND x.member = u.member LIMIT 1) t", rank);
}

static bool is_pick(const struct pg_pick *p, const struct effect *e)
{
    return p->rank == e->rank.old_rank && bytes_eq(p->member, e->rank.member) &&
           bytes_eq(p->index, e->rank.index);
}

/* Among picks from..end - 1; end: none of them. */
static size_t find_pick(const struct pg_picks *picks, size_t from, size_t end,
                        const struct effect *e)
{
    while (from < end && !is_pick(&picks->pick[from], e))
        from++;
    return from;
}

/* Where a member lies that is to be removed, if the transaction has picked it.  Most often it
 * is the one behind the last that was found: *next. */
static const struct pg_pick *pick_of(const struct pg_picks *picks,
                                     const struct effect *e, size_t *next)
{
    for (; picks; picks = picks->next) {
        size_t from = *next < picks->n ? *next : 0;
        size_t at = find_pick(picks, from, picks->n, e);
        if (at == picks->n) {
            at = find_pick(picks, 0, from, e);
            if (at == from)
                continue;
        }
        *next = at + 1;
        return &picks->pick[at];
    }
    return NULL;
}

/* --- what is removed where it lies --- */

/* A removal, and the place of its member. */
struct lying {
    uint8_t tid[PG_TID_LEN];
    const struct effect *effect;
};
struct removal {
    struct lying *list;
    size_t n;
    struct pg_place *met; /* those of them that are only remembered */
    size_t n_met;
};

static void lies(struct ranks *r, struct removal *out, size_t i, const uint8_t *tid)
{
    struct lying *at = &out->list[out->n++];

    memcpy(at->tid, tid, PG_TID_LEN);
    at->effect = &r->plan->effects[i];
    r->gone[i] = true;
}

static void find_picked(struct ranks *r, struct removal *out)
{
    size_t next = 0;

    for (size_t i = 0; i < r->plan->n_effects && r->picks; i++) {
        const struct effect *e = &r->plan->effects[i];
        const struct pg_pick *p =
            e->kind == EFFECT_RANK_REMOVE ? pick_of(r->picks, e, &next) : NULL;
        if (p)
            lies(r, out, i, p->tid);
    }
}

/* Members whose places are known from when they were added. */
static void find_added(struct ranks *r, struct removal *out)
{
    size_t most = r->plan->n_effects, n = 0;
    size_t *at = arena_alloc(r->p->arena, most * sizeof(*at));

    out->met = arena_alloc(r->p->arena, most * sizeof(*out->met));
    if (!at || !out->met)
        return;
    for (size_t i = 0; i < most; i++) {
        const struct effect *e = &r->plan->effects[i];
        if (e->kind != EFFECT_RANK_REMOVE || r->gone[i])
            continue;
        out->met[n] = pg_place_of_member(r->plan->ns, e->rank.index, e->rank.member,
                                         e->rank.old_rank);
        at[n++] = i;
    }
    if (n > 0)
        (void)pg_places_find(&r->s->places, out->met, n);
    for (size_t i = 0; i < n; i++) {
        if (!out->met[i].known)
            continue;
        out->met[out->n_met] = out->met[i];
        lies(r, out, at[i], out->met[out->n_met++].tid);
    }
}

static int lying_cmp(const void *a, const void *b)
{
    return memcmp(a, b, PG_TID_LEN); /* the order of the server's scan: of blocks */
}

/* Others may have moved what is only remembered, so what lay there is compared with what should:
 * $1 ns, then lists in the order of their places.  (If it came in another order, that would be
 * a conflict, and never a wrong removal.) */
static void placed_removes_sql(const struct ranks *r, bool picked, struct buf *text)
{
    buf_append_str(text, "WITH d AS (DELETE FROM ");
    pg_table(r->s, "rank", text);
    if (picked)
        buf_printf(text,
                   " WHERE ctid = ANY ($1::tid[]) RETURNING 1) SELECT"
                   " \"%s\".belay1_refuse((SELECT count(*) FROM d) <> $2::int8)",
                   r->s->schema);
    else
        buf_printf(text,
                   " WHERE ctid = ANY ($2::tid[]) AND ns IS NOT DISTINCT FROM $1"
                   " RETURNING idx, member, rank) SELECT \"%s\".belay1_refuse("
                   "array_agg(d.member) IS DISTINCT FROM $3::text[] OR"
                   " array_agg(d.rank) IS DISTINCT FROM $4::int8[] OR"
                   " array_agg(d.idx) IS DISTINCT FROM $5::text[]) FROM d",
                   r->s->schema);
}

/* What was picked, and what this process has added, is removed without looking for it. */
static void add_placed_removes(struct ranks *r)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    size_t most = r->plan->n_effects;
    struct removal all = { .list = arena_alloc(r->p->arena, most * sizeof(*all.list)) };
    struct value *v = arena_alloc(r->p->arena, 4 * most * sizeof(*v));

    if (!all.list || !v)
        return; /* they are looked for */
    find_picked(r, &all);
    if (pg_plans(r->s))
        find_added(r, &all);
    if (all.n == 0)
        return;
    qsort(all.list, all.n, sizeof(*all.list), lying_cmp);
    for (size_t i = 0; i < all.n; i++) {
        const struct effect *e = all.list[i].effect;
        v[i] = value_bytes(bytes_of(all.list[i].tid, PG_TID_LEN));
        v[most + i] = value_text(e->rank.member);
        v[2 * most + i] = value_i64(e->rank.old_rank);
        v[3 * most + i] = value_text(e->rank.index);
    }
    bool picked = all.n_met == 0; /* they are locked since they were read */
    placed_removes_sql(r, picked, &text);
    struct pg_call *c = add_text(r, &text, 5);
    if (!picked)
        pg_arg_bytes(r->p, c, r->plan->ns);
    pg_arg_places(r->p, c, v, all.n);
    if (picked) {
        pg_arg_i64(r->p, c, (int64_t)all.n);
    } else {
        pg_arg_array(r->p, c, VALUE_TEXT, v + most, all.n);
        pg_arg_array(r->p, c, VALUE_I64, v + 2 * most, all.n);
        pg_arg_array(r->p, c, VALUE_TEXT, v + 3 * most, all.n);
    }
    if (c) {
        c->met = all.met;
        c->n_places = all.n_met;
    }
}

static void add_rank_removes(const struct ranks *r)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    const struct effect *only = NULL;
    size_t n = count_kind(r, EFFECT_RANK_REMOVE, &only);

    if (n == 1)
        remove_or_move_one(r, only);
    if (n < 2)
        return;
    buf_append_str(&text, "WITH d AS (DELETE FROM ");
    pg_table(r->s, "rank", &text);
    buf_append_str(&text, " WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM"
                          " unnest($2::text[], $3::text[], $4::int8[]) AS"
                          " u(idx, member, rank)");
    find_members(r, "u.rank", &text);
    buf_printf(&text,
               ")) RETURNING 1) SELECT \"%s\".belay1_refuse((SELECT count(*) FROM d)"
               " <> $5::int8)",
               r->s->schema);
    (void)add_rank_call(r, EFFECT_RANK_REMOVE, &text, false, true);
}

static void add_rank_moves(const struct ranks *r)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    const struct effect *only = NULL;
    size_t n = count_kind(r, EFFECT_RANK_MOVE, &only);

    if (n == 1)
        remove_or_move_one(r, only);
    if (n < 2)
        return;
    buf_append_str(&text, "WITH m AS (UPDATE ");
    pg_table(r->s, "rank", &text);
    buf_append_str(&text,
                   " x SET rank = u.rank FROM (SELECT t.ctid AS tid, u.rank, u.old FROM"
                   " unnest($2::text[], $3::text[], $4::int8[], $5::int8[]) AS"
                   " u(idx, member, rank, old)");
    find_members(r, "u.old", &text);
    buf_printf(
        &text,
        ") u WHERE x.ctid = u.tid AND x.rank IS NOT DISTINCT FROM u.old RETURNING"
        " 1) SELECT \"%s\".belay1_refuse((SELECT count(*) FROM m) <> $6::int8)",
        r->s->schema);
    (void)add_rank_call(r, EFFECT_RANK_MOVE, &text, true, true);
}

/* What the answer of a call says where it lies. */
static void remember_adds(const struct ranks *r, struct pg_call *c, size_t n)
{
    c->made = arena_zalloc(r->p->arena, n, sizeof(*c->made));
    for (size_t i = 0; i < r->plan->n_effects && c->made; i++) {
        const struct effect *e = &r->plan->effects[i];
        if (e->kind == EFFECT_RANK_ADD && !r->gone[i])
            c->made[c->n_places++] = pg_place_of_member(r->plan->ns, e->rank.index,
                                                        e->rank.member, e->rank.rank);
    }
}

static void add_rank_adds(const struct ranks *r)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    const struct effect *only = NULL;
    size_t n = count_kind(r, EFFECT_RANK_ADD, &only);

    if (n == 0)
        return;
    buf_append_str(&text, "INSERT INTO ");
    pg_table(r->s, "rank", &text);
    buf_append_str(&text, " (ns, idx, member, rank) ");
    if (n == 1) {
        buf_append_str(&text, "VALUES ($1, $2, $3, $4)");
        add_one_rank(r, only, &text);
        return;
    }
    buf_append_str(&text, "SELECT $1, u.* FROM"
                          " unnest($2::text[], $3::text[], $4::int8[]) AS u");
    bool told = n >= TOLD_MIN && pg_plans(r->s);
    buf_append_str(&text, told ? " RETURNING ctid" : "");
    struct pg_call *c = add_rank_call(r, EFFECT_RANK_ADD, &text, true, false);
    if (c && told)
        remember_adds(r, c, n);
}

void pg_add_ranks(struct pg_store *s, struct pg_pipe *p, const struct plan *plan,
                  const struct pg_picks *picks)
{
    struct ranks r = { .s = s, .p = p, .plan = plan, .picks = picks };

    r.gone = arena_zalloc(p->arena, plan->n_effects, sizeof(*r.gone));
    if (!r.gone) {
        p->no_memory = true;
        return;
    }
    add_placed_removes(&r);
    add_rank_removes(&r);
    add_rank_moves(&r);
    add_rank_adds(&r);
}
