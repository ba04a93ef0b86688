/* Arguments of many rows. */
#include "store/drivers/postgres/commit_rows.h"

struct item_of *pg_items_of(const struct pg_group *g,
                            bool (*is)(const struct item_of *), size_t *n)
{
    struct item_of *out = arena_zalloc(g->p->arena, g->n, sizeof(*out));

    *n = 0;
    if (!out)
        g->p->no_memory = true;
    for (size_t i = 0; out && i < g->n; i++) {
        if (is(&g->item[i]))
            out[(*n)++] = g->item[i];
    }
    return out;
}

struct value *pg_column_of(struct pg_pipe *p, size_t n)
{
    struct value *v = arena_zalloc(p->arena, n, sizeof(*v));

    if (!v)
        p->no_memory = true;
    return v;
}

void pg_arg_keys(const struct pg_group *g, struct pg_call *c,
                 const struct item_of *item, size_t n)
{
    struct value *v = pg_column_of(g->p, n);

    for (unsigned part = 0; part < g->type->n_key && v; part++) {
        for (size_t i = 0; i < n; i++)
            v[i] = item[i].guard->ref.key[part];
        pg_arg_array(g->p, c, g->type->columns[part].type, v, n);
    }
}

void pg_arg_numbers(const struct pg_group *g, struct pg_call *c,
                    const struct item_of *item, size_t n, enum number_of which)
{
    struct value *v = pg_column_of(g->p, n);

    for (size_t i = 0; i < n && v; i++)
        v[i] = value_i64(which == GUARD_VER     ? item[i].guard->ver
                         : which == GUARD_INDEX ? (int64_t)item[i].index
                                                : item[i].effect->row.ver);
    if (v)
        pg_arg_array(g->p, c, VALUE_I64, v, n);
}

void pg_arg_column(const struct pg_group *g, struct pg_call *c,
                   const struct item_of *item, size_t n, unsigned column)
{
    struct value *v = pg_column_of(g->p, n);

    for (size_t i = 0; i < n && v; i++)
        v[i] = item[i].effect->row.v[column];
    if (v)
        pg_arg_array(g->p, c, g->type->columns[column].type, v, n);
}
