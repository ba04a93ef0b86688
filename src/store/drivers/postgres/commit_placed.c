/* Rows that are put where they lie (places.h), and not looked for by their keys. */
#include <stdlib.h>

#include "store/drivers/postgres/commit_rows.h"

/* A row that is put, and its place. */
struct lying {
    struct pg_place place;
    struct item_of item;
};

/* Of more rows at once, to find a row's own values in the lists would take too long. */
#define PLACED_MAX 128

/* $1 ns, keys, new versions, the listed columns, the constant ones, the indexes, the places.
 * All lists are in the order of the places, in which the server scans them: a row's own values
 * stand where its place does.  What lay there is compared with what should have; if it was
 * something else, the first of those that were not met is the one to complain of. */
static const struct pg_sql *put_placed_sql(const struct pg_group *g,
                                           const struct pg_put *put, bool told)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    const struct row_type *type = g->type;
    unsigned ver = 2U + type->n_key, at = ver + 1;
    unsigned places = at + (unsigned)__builtin_popcountll(put->changed) + 1;
    const struct pg_shape shape = { .maker = "placed",
                                    .type = type,
                                    .a = put->changed,
                                    .b = put->constant,
                                    .flags = told };
    const struct pg_sql *known = pg_sql_known(g->s, &shape);

    if (known)
        return known;
    buf_append_str(&text, "WITH w AS (UPDATE ");
    pg_table(g->s, type->name, &text);
    buf_append_str(&text, " t SET ver = t.ver + 1");
    for (unsigned i = 0; i < type->n_columns; i++) {
        const struct column *c = &type->columns[i];
        if (pg_is_listed(put, i))
            buf_printf(&text,
                       ", \"%s\" = ($%u::%s[])[width_bucket(t.ctid, $%u::tid[])]",
                       c->name, at++, pg_type_name(c->type), places);
    }
    pg_set_constants(g, put, &at, &text);
    buf_printf(&text,
               " WHERE t.ctid = ANY ($%u::tid[]) AND t.ns IS NOT DISTINCT FROM $1"
               " RETURNING ",
               places);
    pg_columns(type, type->n_key, "t.", &text);
    buf_printf(&text,
               ", t.ver%s) %sSELECT \"%s\".belay1_guard(CASE WHEN array_agg(w.ver)"
               " IS DISTINCT FROM $%u::int8[]",
               told ? ", t.ctid" : "", told ? "SELECT g.ok, w.ctid FROM (" : "",
               g->s->schema, ver);
    for (unsigned i = 0; i < type->n_key; i++)
        buf_printf(&text, " OR array_agg(w.\"%s\") IS DISTINCT FROM $%u::%s[]",
                   type->columns[i].name, 2 + i, pg_type_name(type->columns[i].type));
    buf_append_str(&text, " THEN (SELECT min(k.i) FROM ");
    pg_unnest_keys(type, 2, &text);
    buf_printf(&text, ", $%u::int8[], $%u::int8[]) AS k(", ver, places - 1);
    pg_columns(type, type->n_key, "", &text);
    buf_append_str(&text,
                   ", ver, i) WHERE NOT EXISTS (SELECT FROM w WHERE w.ver = k.ver");
    for (unsigned i = 0; i < type->n_key; i++)
        buf_printf(&text, " AND w.\"%s\" = k.\"%s\"", type->columns[i].name,
                   type->columns[i].name);
    buf_printf(&text, ")) END)%s FROM w%s", told ? " AS ok" : "",
               told ? ") g LEFT JOIN w ON true" : "");
    return pg_sql_made(g->s, &shape, &text);
}

/* The order of the server's scan: of blocks, and in them. */
static int lying_cmp(const void *a, const void *b)
{
    return memcmp(((const struct lying *)a)->place.tid,
                  ((const struct lying *)b)->place.tid, PG_TID_LEN);
}

static struct pg_place place_of(const struct pg_group *g, const struct item_of *item)
{
    return pg_place_of_row(g->ns, &item->guard->ref, item->guard->ver);
}

/* In the order of their places; NULL: those of some are not known.  Most often they are of none:
 * the first one tells. */
static struct pg_place *find_places(const struct pg_group *g, struct item_of *item,
                                    size_t n)
{
    struct pg_place first = place_of(g, &item[0]);

    if (!pg_plans(g->s) || !pg_places_find(&g->s->places, &first, 1))
        return NULL;
    struct pg_place *met = arena_alloc(g->p->arena, n * sizeof(*met));
    struct lying *lying = arena_alloc(g->p->arena, n * sizeof(*lying));
    for (size_t i = 0; met && i < n; i++)
        met[i] = place_of(g, &item[i]);
    if (!met || !lying || !pg_places_find(&g->s->places, met, n))
        return NULL;
    for (size_t i = 0; i < n; i++)
        lying[i] = (struct lying){ met[i], item[i] };
    qsort(lying, n, sizeof(*lying), lying_cmp);
    for (size_t i = 0; i < n; i++) {
        met[i] = lying[i].place;
        item[i] = lying[i].item;
    }
    return met;
}

/* What was picked and is put will be put again, when its work is done; and then it rests. */
static struct pg_place *new_places(const struct pg_group *g, const struct item_of *item,
                                   size_t n)
{
    struct pg_place *made = arena_zalloc(g->p->arena, n, sizeof(*made));

    for (size_t i = 0; made && i < n; i++)
        made[i] = pg_place_of_row(g->ns, &item[i].guard->ref, item[i].effect->row.ver);
    return made;
}

static void arg_places(const struct pg_group *g, struct pg_call *c,
                       const struct pg_place *met, size_t n)
{
    struct value *v = pg_column_of(g->p, n);

    for (size_t i = 0; i < n && v; i++)
        v[i] = value_bytes(bytes_of(met[i].tid, PG_TID_LEN));
    if (v)
        pg_arg_places(g->p, c, v, n);
}

static void call_put_placed(const struct pg_group *g, const struct pg_put *put,
                            bool told, const struct item_of *item,
                            const struct pg_place *met, size_t n)
{
    struct pg_call *c = pg_add(g->p, put_placed_sql(g, put, told),
                               4U + g->type->n_key + g->type->n_columns);

    if (c) {
        c->tag = (int64_t)item[0].index;
        c->met = met;
        c->made = told ? new_places(g, item, n) : NULL;
        c->n_places = n;
    }
    pg_arg_bytes(g->p, c, g->ns);
    pg_arg_keys(g, c, item, n);
    pg_arg_numbers(g, c, item, n, NEW_VER);
    pg_arg_columns(g, c, put, item, n);
    pg_arg_numbers(g, c, item, n, GUARD_INDEX);
    arg_places(g, c, met, n);
}

bool pg_put_placed(const struct pg_group *g, const struct pg_put *put,
                   struct item_of *item, size_t n)
{
    const struct pg_place *met = find_places(g, item, n);

    if (!met)
        return false;
    bool told = !met[0].ours && n >= PG_MANY_ROWS;
    for (size_t at = 0, part; at < n; at += part) {
        part = n - at < PLACED_MAX ? n - at : PLACED_MAX;
        call_put_placed(g, put, told, item + at, met + at, part);
    }
    return true;
}
