/* Ranks of a plan: what is removed, then what moves, then what is added.  A statement that
 * finds something else than it should raises a refusal; which one it was is found out
 * afterwards (refusal.c).
 *
 * What was picked, and what this process has added (places.h), is removed where it lies. */
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

/* Where a member lies that is to be removed, if the transaction has picked it.  Most often it
 * is the one behind the last that was found, *last. */
static const struct pg_pick *pick_of(const struct pg_picks *picks,
                                     const struct effect *e, size_t *last)
{
    for (; picks; picks = picks->next) {
        for (size_t i = 1; i <= picks->n; i++) {
            size_t at = (*last + i) % picks->n;
            if (is_pick(&picks->pick[at], e)) {
                *last = at;
                return &picks->pick[at];
            }
        }
    }
    return NULL;
}

/* What was picked is removed where it lies, without looking for it. */
static void add_picked_removes(struct ranks *r)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    size_t n = 0, most = r->plan->n_effects, last = SIZE_MAX;
    struct value *v = r->picks ? arena_zalloc(r->p->arena, most, sizeof(*v)) : NULL;

    for (size_t i = 0; i < most && v; i++) {
        const struct effect *e = &r->plan->effects[i];
        const struct pg_pick *p = e->kind == EFFECT_RANK_REMOVE && !r->gone[i]
                                      ? pick_of(r->picks, e, &last)
                                      : NULL;
        if (!p)
            continue;
        v[n++] = value_bytes(bytes_of(p->tid, PG_TID_LEN));
        r->gone[i] = true;
    }
    if (n == 0)
        return;
    buf_append_str(&text, "WITH d AS (DELETE FROM ");
    pg_table(r->s, "rank", &text);
    buf_printf(&text,
               " WHERE ctid = ANY ($1::tid[]) RETURNING 1) SELECT"
               " \"%s\".belay1_refuse((SELECT count(*) FROM d) <> $2::int8)",
               r->s->schema);
    struct pg_call *c = add_text(r, &text, 2);
    pg_arg_places(r->p, c, v, n);
    pg_arg_i64(r->p, c, (int64_t)n);
}

/* The removals that are left, and where their members lie. */
static struct pg_place *find_added(const struct ranks *r, size_t **out_at,
                                   size_t *out_n)
{
    size_t most = r->plan->n_effects;
    struct pg_place *met = arena_alloc(r->p->arena, most * sizeof(*met));
    size_t *at = arena_alloc(r->p->arena, most * sizeof(*at));

    *out_n = 0;
    if (!met || !at)
        return NULL;
    for (size_t i = 0; i < most; i++) {
        const struct effect *e = &r->plan->effects[i];
        if (e->kind != EFFECT_RANK_REMOVE || r->gone[i])
            continue;
        met[*out_n] = pg_place_of_member(r->plan->ns, e->rank.index, e->rank.member,
                                         e->rank.old_rank);
        at[(*out_n)++] = i;
    }
    if (*out_n > 0)
        (void)pg_places_find(&r->s->places, met, *out_n);
    *out_at = at;
    return met;
}

/* $1 ns, then lists, and how many. */
static void placed_removes_sql(const struct ranks *r, struct buf *text)
{
    buf_append_str(text, "WITH d AS (DELETE FROM ");
    pg_table(r->s, "rank", text);
    buf_printf(
        text,
        " x USING unnest($2::tid[], $3::text[], $4::text[], $5::int8[]) AS"
        " u(tid, idx, member, rank) WHERE x.ctid = u.tid AND x.ns IS NOT DISTINCT"
        " FROM $1 AND x.idx IS NOT DISTINCT FROM u.idx AND x.member IS NOT"
        " DISTINCT FROM u.member AND x.rank IS NOT DISTINCT FROM u.rank"
        " RETURNING 1) SELECT \"%s\".belay1_refuse((SELECT count(*) FROM d) <>"
        " $6::int8)",
        r->s->schema);
}

/* Members whose places are known from when they were added, likewise; but others may have
 * moved them since, so what lies there is looked at. */
static void add_placed_removes(const struct ranks *r)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    size_t n = 0, most, *at = NULL;
    struct pg_place *met = find_added(r, &at, &most);
    struct value *v = met ? arena_alloc(r->p->arena, 4 * most * sizeof(*v)) : NULL;

    for (size_t i = 0; i < most && v; i++) {
        const struct effect *e = &r->plan->effects[at[i]];
        if (!met[i].known)
            continue;
        met[n] = met[i];
        v[n] = value_bytes(bytes_of(met[n].tid, PG_TID_LEN));
        v[most + n] = value_text(e->rank.index);
        v[2 * most + n] = value_text(e->rank.member);
        v[3 * most + n] = value_i64(e->rank.old_rank);
        r->gone[at[i]] = true;
        n++;
    }
    if (n == 0)
        return;
    placed_removes_sql(r, &text);
    struct pg_call *c = add_text(r, &text, 6);
    pg_arg_bytes(r->p, c, r->plan->ns);
    pg_arg_places(r->p, c, v, n);
    pg_arg_array(r->p, c, VALUE_TEXT, v + most, n);
    pg_arg_array(r->p, c, VALUE_TEXT, v + 2 * most, n);
    pg_arg_array(r->p, c, VALUE_I64, v + 3 * most, n);
    pg_arg_i64(r->p, c, (int64_t)n);
    if (c) {
        c->met = met;
        c->n_places = n;
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
    add_picked_removes(&r);
    if (pg_plans(s))
        add_placed_removes(&r);
    add_rank_removes(&r);
    add_rank_moves(&r);
    add_rank_adds(&r);
}
