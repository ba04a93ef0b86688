/* Ranks of a plan: what is removed, then what moves, then what is added.  A statement that
 * finds something else than it should raises a refusal; which one it was is found out
 * afterwards (refusal.c). */
#include "store/drivers/postgres/impl.h"

struct ranks {
    struct pg_store *s;
    struct pg_pipe *p;
    const struct plan *plan;
    const struct pg_picks *picks;
    bool *gone; /* by effect: a removal that is done; NULL: none is */
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
        if (e->kind != kind || (r->gone && r->gone[i]))
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
        if (r->plan->effects[i].kind == kind && !(r->gone && r->gone[i])) {
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
    buf_printf(&text,
               "%s WHERE ns = $1 AND idx = $2 AND member = $3 AND rank = $%d RETURNING"
               " 1) SELECT \"%s\".belay1_refuse(NOT EXISTS (SELECT FROM d))",
               moves ? " SET rank = $4" : "", moves ? 5 : 4, r->s->schema);
    add_one_rank(r, e, &text);
}

/* Each member of a list u where it stands, as pg_find_each. */
static void find_members(const struct ranks *r, const char *rank, struct buf *out)
{
    buf_append_str(out, " CROSS JOIN LATERAL (SELECT x.ctid FROM ");
    pg_table(r->s, "rank", out);
    buf_printf(out,
               " x WHERE x.ns = $1 AND x.idx = u.idx AND x.rank = %s AND x.member ="
               " u.member LIMIT 1) t",
               rank);
}

/* Where a member lies that is to be removed, if the transaction has picked it. */
static const struct pg_pick *pick_of(const struct pg_picks *picks,
                                     const struct effect *e)
{
    for (; picks; picks = picks->next) {
        for (size_t i = 0; i < picks->n; i++) {
            const struct pg_pick *p = &picks->pick[i];
            if (p->rank == e->rank.old_rank && bytes_eq(p->member, e->rank.member) &&
                bytes_eq(p->index, e->rank.index))
                return p;
        }
    }
    return NULL;
}

/* What was picked is removed where it lies, without looking for it. */
static void add_picked_removes(struct ranks *r)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    size_t n = 0, most = r->plan->n_effects;
    struct value *v = r->picks ? arena_zalloc(r->p->arena, most, sizeof(*v)) : NULL;

    r->gone = v ? arena_zalloc(r->p->arena, most, sizeof(*r->gone)) : NULL;
    for (size_t i = 0; i < most && r->gone; i++) {
        const struct effect *e = &r->plan->effects[i];
        const struct pg_pick *p =
            e->kind == EFFECT_RANK_REMOVE ? pick_of(r->picks, e) : NULL;
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
    buf_printf(&text,
               ") u WHERE x.ctid = u.tid AND x.rank = u.old RETURNING 1) SELECT"
               " \"%s\".belay1_refuse((SELECT count(*) FROM m) <> $6::int8)",
               r->s->schema);
    (void)add_rank_call(r, EFFECT_RANK_MOVE, &text, true, true);
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
    (void)add_rank_call(r, EFFECT_RANK_ADD, &text, true, false);
}

void pg_add_ranks(struct pg_store *s, struct pg_pipe *p, const struct plan *plan,
                  const struct pg_picks *picks)
{
    struct ranks r = { .s = s, .p = p, .plan = plan, .picks = picks };

    add_picked_removes(&r);
    add_rank_removes(&r);
    add_rank_moves(&r);
    add_rank_adds(&r);
}
