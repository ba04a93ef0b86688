/* Rows that are put by one statement, found by their keys. */
#include "store/drivers/postgres/commit_rows.h"

void pg_set_constants(const struct pg_group *g, const struct pg_put *put, unsigned *at,
                      struct buf *text)
{
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        if ((put->constant >> i) & 1)
            buf_printf(text, ", \"%s\" = $%u", g->type->columns[i].name, (*at)++);
    }
}

void pg_arg_columns(const struct pg_group *g, struct pg_call *c,
                    const struct pg_put *put, const struct item_of *item, size_t n)
{
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        if (pg_is_listed(put, i))
            pg_arg_column(g, c, item, n, i);
    }
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        if ((put->constant >> i) & 1)
            pg_arg_value(g->p, c, &item[0].effect->row.v[i]);
    }
}

/* $1 ns, keys, new versions, the listed columns, then the constant ones.  Guarded: then the
 * versions that the rows must have, in u.want, and their indexes; of those that have another
 * version it complains. */
static const struct pg_sql *put_many_sql(const struct pg_group *g,
                                         const struct pg_put *put)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    CLEANUP(buf_release) struct buf lists = { .ptr = NULL };
    CLEANUP(buf_release) struct buf names = { .ptr = NULL };
    unsigned next = 2U + g->type->n_key, at = next + 1;
    const struct pg_shape shape = { .maker = "put",
                                    .type = g->type,
                                    .a = put->changed,
                                    .b = put->constant,
                                    .flags = put->guarded };
    const struct pg_sql *known = pg_sql_known(g->s, &shape);

    if (known)
        return known;
    buf_append_str(&text, put->guarded ? "WITH w AS (UPDATE " : "UPDATE ");
    pg_table(g->s, g->type->name, &text);
    buf_append_str(&text, " t SET ver = u.ver");
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        const struct column *c = &g->type->columns[i];
        if (!pg_is_listed(put, i))
            continue;
        buf_printf(&text, ", \"%s\" = u.\"%s\"", c->name, c->name);
        buf_printf(&lists, ", $%u::%s[]", at++, pg_type_name(c->type));
        buf_printf(&names, ", \"%s\"", c->name);
    }
    pg_set_constants(g, put, &at, &text);
    pg_meet_begin(g->s, "FROM", &text);
    pg_unnest_keys(g->type, 2, &text);
    buf_printf(&text, ", $%u::int8[]", next);
    buf_append(&text, buf_view(&lists));
    if (put->guarded)
        buf_printf(&text, ", $%u::int8[], $%u::int8[]", at, at + 1);
    buf_append_str(&text, ") AS u(");
    pg_columns(g->type, g->type->n_key, "", &text);
    buf_append_str(&text, ", ver");
    buf_append(&text, buf_view(&names));
    buf_append_str(&text, put->guarded ? ", want, i)" : ")");
    pg_meet_end(g->s, g->type, &text);
    if (put->guarded) /* who changed the row meanwhile has changed its version */
        buf_printf(&text,
                   " AND t.ver = u.want RETURNING u.i) SELECT \"%s\".belay1_guard(CASE"
                   " WHEN (SELECT count(*) FROM w) <> cardinality($%u::int8[]) THEN"
                   " (SELECT min(i) FROM unnest($%u::int8[]) AS k(i) WHERE i NOT IN"
                   " (SELECT w.i FROM w)) END)",
                   g->s->schema, at + 1, at + 1);
    return lists.failed || names.failed ? NULL : pg_sql_made(g->s, &shape, &text);
}

static void call_put_many(const struct pg_group *g, const struct pg_put *put,
                          const struct item_of *item, size_t n)
{
    struct pg_call *c =
        pg_add(g->p, put_many_sql(g, put), 4U + g->type->n_key + g->type->n_columns);

    if (c)
        c->tag = (int64_t)item[0].index;
    pg_arg_bytes(g->p, c, g->ns);
    pg_arg_keys(g, c, item, n);
    pg_arg_numbers(g, c, item, n, NEW_VER);
    pg_arg_columns(g, c, put, item, n);
    if (put->guarded) {
        pg_arg_numbers(g, c, item, n, GUARD_VER);
        pg_arg_numbers(g, c, item, n, GUARD_INDEX);
    }
}

/* The columns that become the same in all rows.  A list of a few values is as good as one,
 * and every combination is a statement of its own. */
static uint64_t constant_columns(const struct pg_group *g, const struct item_of *item,
                                 size_t n, uint64_t changed)
{
    uint64_t constant = n < PG_MANY_ROWS ? 0 : changed;

    for (unsigned c = 0; c < g->type->n_columns; c++) {
        for (size_t i = 1; i < n && ((constant >> c) & 1); i++) {
            if (!value_eq(&item[0].effect->row.v[c], &item[i].effect->row.v[c]))
                constant &= ~(UINT64_C(1) << c);
        }
    }
    return constant && pg_texts_are_few(g->s) ? constant : 0;
}

void pg_put_rows(const struct pg_group *g, struct item_of *item, size_t n,
                 uint64_t changed, bool guarded, bool all)
{
    struct item_of *same = arena_zalloc(g->p->arena, n, sizeof(*same));
    struct pg_put put = { .changed = changed, .guarded = guarded };
    size_t m = 0;

    if (!same) {
        g->p->no_memory = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct effect *e = item[i].effect;
        if (e && e->kind == EFFECT_PUT && (all || e->row.changed == changed)) {
            same[m++] = item[i];
            item[i].effect = NULL; /* done */
        }
    }
    put.constant = constant_columns(g, same, m, changed);
    if (!guarded || !pg_put_placed(g, &put, same, m))
        call_put_many(g, &put, same, m);
}

void pg_put_rows_by_columns(const struct pg_group *g, struct item_of *item, size_t n,
                            bool guarded)
{
    for (size_t i = 0; i < n; i++) {
        const struct effect *e = item[i].effect;
        if (e && e->kind == EFFECT_PUT)
            pg_put_rows(g, item, n, e->row.changed, guarded, false);
    }
}

uint64_t pg_columns_put(const struct item_of *item, size_t n)
{
    uint64_t changed = 0;

    for (size_t i = 0; i < n; i++) {
        const struct effect *e = item[i].effect;
        if (!e || e->kind != EFFECT_PUT)
            return 0;
        changed |= e->row.changed;
    }
    return changed;
}
