/* A small plan as one statement.
 *
 * Most commits change a handful of rows of different types.  A statement for each costs
 * the server more than what it does, so they become parts of one: every write is a common
 * table expression, and the select behind them asks each whether it has met its row, in
 * the order in which rows are locked.  What such parts write is not seen by each other;
 * nothing in a plan needs that. */
#include <stdio.h>

#include "store/drivers/postgres/commit_rows.h"

#define RANKS_MAX 8

struct fused {
    struct pg_store *s;
    const struct plan *plan;
    struct buf parts, guards, refusals;
    unsigned n_parts;
    struct value *arg;
    unsigned n_args;
    int64_t new_row; /* the guard of an inserted row */
};

/* --- whether it is small --- */

static bool is_small_row(const struct item_of *items, size_t n, size_t at)
{
    const struct guard *g = items[at].guard;
    bool inserted = items[at].effect && items[at].effect->kind == EFFECT_INSERT;

    if (g->ver == 0 && !inserted)
        return false; /* an absence */
    for (size_t i = at + 1; i < n && items[i].guard->ref.type == g->ref.type; i++) {
        if ((items[i].guard->ver == 0) == (g->ver == 0))
            return false; /* two of a kind */
    }
    return true;
}

static bool is_small(const struct plan *plan, const struct item_of *items)
{
    unsigned ranks = 0, entries = 0;

    for (size_t i = 0; i < plan->n_guards; i++) {
        if (!is_small_row(items, plan->n_guards, i))
            return false;
    }
    for (size_t i = 0; i < plan->n_effects; i++) {
        enum effect_kind kind = plan->effects[i].kind;
        ranks += kind >= EFFECT_RANK_ADD && kind <= EFFECT_RANK_REMOVE;
        entries += kind == EFFECT_LOG_APPEND;
        if (kind == EFFECT_ADD || kind == EFFECT_RAISE || kind > EFFECT_LOG_APPEND)
            return false;
    }
    return ranks <= RANKS_MAX && entries <= 1 && plan->n_effects > 0;
}

/* --- parts --- */

/* The number of a new parameter. */
static unsigned arg(struct fused *f, struct value v)
{
    f->arg[f->n_args] = v;
    return ++f->n_args;
}

static void begin_part(struct fused *f, const char *words, const char *table)
{
    buf_printf(&f->parts, "%sc%u AS (%s ", f->n_parts > 0 ? ", " : "WITH ", f->n_parts,
               words);
    pg_table(f->s, table, &f->parts);
    f->n_parts++;
}

static void where_key(struct fused *f, const struct row_ref *ref)
{
    buf_append_str(&f->parts, " WHERE ns = $1");
    for (unsigned i = 0; i < ref->type->n_key; i++)
        buf_printf(&f->parts, " AND \"%s\" = $%u", ref->type->columns[i].name,
                   arg(f, ref->key[i]));
}

/* The part that was just made must have met its row. */
static void demand(struct fused *f, const struct item_of *item, const char *where)
{
    buf_printf(&f->guards, " WHEN NOT EXISTS (SELECT FROM c%u%s", f->n_parts - 1,
               where);
    if (*where)
        buf_printf(&f->guards, "$%u", arg(f, value_i64(item->guard->ver)));
    buf_printf(&f->guards, ") THEN $%u::int8", arg(f, value_i64((int64_t)item->index)));
}

static void refuse_unless_met(struct fused *f)
{
    buf_printf(&f->refusals, "%sNOT EXISTS (SELECT FROM c%u)",
               f->refusals.len > 0 ? " OR " : "", f->n_parts - 1);
}

static void add_put(struct fused *f, const struct item_of *item)
{
    const struct effect *e = item->effect;
    const struct row_type *type = e->row.ref.type;

    begin_part(f, "UPDATE", type->name);
    buf_printf(&f->parts, " SET ver = $%u", arg(f, value_i64(e->row.ver)));
    for (unsigned i = 0; i < type->n_columns; i++) {
        if ((e->row.changed >> i) & 1)
            buf_printf(&f->parts, ", \"%s\" = $%u", type->columns[i].name,
                       arg(f, e->row.v[i]));
    }
    where_key(f, &e->row.ref);
    buf_printf(&f->parts, " AND ver = $%u RETURNING 1)",
               arg(f, value_i64(item->guard->ver)));
    demand(f, item, "");
}

static void add_delete(struct fused *f, const struct item_of *item)
{
    begin_part(f, "DELETE FROM", item->guard->ref.type->name);
    where_key(f, &item->guard->ref);
    buf_printf(&f->parts, " AND ver = $%u RETURNING 1)",
               arg(f, value_i64(item->guard->ver)));
    demand(f, item, "");
}

/* Locked, unless its advisory lock does that. */
static void add_guard(struct fused *f, const struct item_of *item)
{
    begin_part(f, "SELECT ver FROM", item->guard->ref.type->name);
    where_key(f, &item->guard->ref);
    buf_append_str(&f->parts, item->guard->ref.type->n_key > 0 ? " FOR SHARE)" : ")");
    demand(f, item, " WHERE ver = ");
}

static void add_insert(struct fused *f, const struct item_of *item)
{
    const struct effect *e = item->effect;
    const struct row_type *type = e->row.ref.type;

    begin_part(f, "INSERT INTO", type->name);
    buf_append_str(&f->parts, " (ns, ver, ");
    pg_columns(type, type->n_columns, "", &f->parts);
    buf_printf(&f->parts, ") VALUES ($1, $%u", arg(f, value_i64(e->row.ver)));
    for (unsigned i = 0; i < type->n_columns; i++)
        buf_printf(&f->parts, ", $%u", arg(f, e->row.v[i]));
    buf_append_str(&f->parts, "))");
    f->new_row = (int64_t)item->index;
}

static void add_row(struct fused *f, const struct item_of *item)
{
    if (!item->effect)
        add_guard(f, item);
    else if (item->effect->kind == EFFECT_PUT)
        add_put(f, item);
    else if (item->effect->kind == EFFECT_DELETE)
        add_delete(f, item);
    else
        add_insert(f, item);
}

static void add_rank(struct fused *f, const struct effect *e)
{
    struct value index = value_text(e->rank.index), member = value_text(e->rank.member);
    char at[16];

    if (e->kind == EFFECT_RANK_ADD) {
        begin_part(f, "INSERT INTO", "rank");
        buf_append_str(&f->parts, " (ns, idx, member, rank) VALUES ($1");
        buf_printf(&f->parts, ", $%u", arg(f, index));
        buf_printf(&f->parts, ", $%u", arg(f, member));
        buf_printf(&f->parts, ", $%u))", arg(f, value_i64(e->rank.rank)));
        return;
    }
    begin_part(f, e->kind == EFFECT_RANK_MOVE ? "UPDATE" : "DELETE FROM", "rank");
    if (e->kind == EFFECT_RANK_MOVE)
        buf_printf(&f->parts, " SET rank = $%u", arg(f, value_i64(e->rank.rank)));
    (void)snprintf(at, sizeof(at), "$%u", arg(f, index));
    buf_append_str(&f->parts, " WHERE ");
    pg_where_index(f->s, "", at, &f->parts);
    buf_printf(&f->parts, " AND member = $%u", arg(f, member));
    buf_printf(&f->parts, " AND rank = $%u RETURNING 1)",
               arg(f, value_i64(e->rank.old_rank)));
    refuse_unless_met(f);
}

static void add_entry(struct fused *f, const struct effect *e)
{
    unsigned stream = arg(f, value_text(e->log.stream));
    unsigned seq = arg(f, value_i64(e->log.seq));

    begin_part(f, "INSERT INTO", "log");
    buf_printf(&f->parts, " (ns, stream, seq, data) VALUES ($1, $%u, $%u, $%u))",
               stream, seq, arg(f, value_bytes(e->log.data)));
    buf_printf(&f->refusals, "%scoalesce((SELECT max(seq) FROM ",
               f->refusals.len > 0 ? " OR " : "");
    pg_table(f->s, "log", &f->refusals);
    buf_printf(&f->refusals,
               " WHERE ns = $1 AND stream = $%u) <> $%u::int8 - 1, false)", stream,
               seq);
}

/* --- all of it --- */

static void add_parts(struct fused *f, const struct item_of *items)
{
    (void)arg(f, value_text(f->plan->ns));
    for (size_t i = 0; i < f->plan->n_guards; i++)
        add_row(f, &items[i]);
    for (size_t i = 0; i < f->plan->n_effects; i++) {
        const struct effect *e = &f->plan->effects[i];
        if (e->kind >= EFFECT_RANK_ADD && e->kind <= EFFECT_RANK_REMOVE)
            add_rank(f, e);
        else if (e->kind == EFFECT_LOG_APPEND)
            add_entry(f, e);
    }
    buf_append_str(&f->parts, " SELECT ");
    if (f->guards.len > 0) {
        buf_printf(&f->parts, "\"%s\".belay1_guard(CASE", f->s->schema);
        buf_append(&f->parts, buf_view(&f->guards));
        buf_append_str(&f->parts, " END)");
    }
    if (f->refusals.len > 0) {
        buf_printf(&f->parts, "%s\"%s\".belay1_refuse(", f->guards.len > 0 ? ", " : "",
                   f->s->schema);
        buf_append(&f->parts, buf_view(&f->refusals));
        buf_append_char(&f->parts, ')');
    }
    if (f->guards.len == 0 && f->refusals.len == 0)
        buf_append_char(&f->parts, '1');
}

/* Parameters of all parts, at most. */
static size_t most_args(const struct plan *plan)
{
    size_t n = 1;

    for (size_t i = 0; i < plan->n_guards; i++)
        n += plan->guards[i].ref.type->n_columns + SCHEMA_KEY_MAX + 4U;
    return n + 4 * plan->n_effects;
}

bool pg_add_fused(struct pg_store *s, struct pg_pipe *p, const struct plan *plan,
                  const struct item_of *items)
{
    struct fused f = { .s = s, .plan = plan };

    if (!is_small(plan, items))
        return false;
    size_t most = most_args(plan);
    f.arg = arena_zalloc(p->arena, most, sizeof(*f.arg));
    if (!f.arg) {
        p->no_memory = true;
        return true;
    }
    add_parts(&f, items);
    bool failed = f.parts.failed || f.guards.failed || f.refusals.failed;
    struct pg_call *c =
        failed ? NULL : pg_add(p, pg_sql_of(s, &f.parts), (unsigned)most);
    if (c)
        c->tag = f.new_row;
    for (unsigned i = 0; i < f.n_args && c; i++)
        pg_arg_value(p, c, &f.arg[i]);
    p->no_memory |= failed;
    buf_release(&f.parts);
    buf_release(&f.guards);
    buf_release(&f.refusals);
    return true;
}
