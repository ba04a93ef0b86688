/* Rows that are put by one statement. */
#include "store/drivers/postgres/commit_rows.h"

/* How rows are put by one statement. */
struct put {
    uint64_t changed;  /* columns */
    uint64_t constant; /* of them, those that become the same in all rows */
    bool guarded;      /* it looks at the versions, too: the rows are not locked yet */
    bool placed;       /* and meets them where they lie */
    bool told;         /* the answer says where they lie now */
};

/* A changed column that each row has a value of its own for. */
static bool is_listed(const struct put *put, unsigned column)
{
    return ((put->changed & ~put->constant) >> column) & 1;
}

/* What follows the rows of a guarded put: the versions they must have, in u.want, and a
 * complaint of those that have another. */
static void put_guard(const struct pg_group *g, const struct put *put, unsigned indexes,
                      struct buf *text)
{
    buf_printf(text,
               " AND t.ver = u.want RETURNING u.i%s) %sSELECT \"%s\".belay1_guard(CASE"
               " WHEN (SELECT count(*) FROM w) <> cardinality($%u::int8[]) THEN"
               " (SELECT min(i) FROM unnest($%u::int8[]) AS k(i) WHERE i NOT IN"
               " (SELECT w.i FROM w)) END)%s",
               put->told ? ", t.ctid" : "",
               put->told ? "SELECT g.ok, w.ctid FROM (" : "", g->s->schema, indexes,
               indexes, put->told ? " AS ok) g LEFT JOIN w ON true" : "");
}

/* $1 ns, keys, new versions, the listed columns, then the constant ones.  Guarded: then the
 * versions that the rows must have, and their indexes.  Placed: then where they lie. */
static const struct pg_sql *put_many_sql(const struct pg_group *g,
                                         const struct put *put)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    CLEANUP(buf_release) struct buf lists = { .ptr = NULL };
    CLEANUP(buf_release) struct buf names = { .ptr = NULL };
    unsigned next = 2U + g->type->n_key, at = next + 1;
    const struct pg_shape shape = { .maker = "put",
                                    .type = g->type,
                                    .a = put->changed,
                                    .b = put->constant,
                                    .flags = put->told * 4U + put->guarded * 2U +
                                             put->placed };
    const struct pg_sql *known = pg_sql_known(g->s, &shape);

    if (known)
        return known;
    buf_append_str(&text, put->guarded ? "WITH w AS (UPDATE " : "UPDATE ");
    pg_table(g->s, g->type->name, &text);
    buf_append_str(&text, " t SET ver = u.ver");
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        const struct column *c = &g->type->columns[i];
        if (!is_listed(put, i))
            continue;
        buf_printf(&text, ", \"%s\" = u.\"%s\"", c->name, c->name);
        buf_printf(&lists, ", $%u::%s[]", at++, pg_type_name(c->type));
        buf_printf(&names, ", \"%s\"", c->name);
    }
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        if ((put->constant >> i) & 1)
            buf_printf(&text, ", \"%s\" = $%u", g->type->columns[i].name, at++);
    }
    if (put->placed)
        buf_append_str(&text, " FROM ");
    else
        pg_meet_begin(g->s, "FROM", &text);
    pg_unnest_keys(g->type, 2, &text);
    buf_printf(&text, ", $%u::int8[]", next);
    buf_append(&text, buf_view(&lists));
    if (put->guarded)
        buf_printf(&text, ", $%u::int8[], $%u::int8[]", at, at + 1);
    if (put->placed)
        buf_printf(&text, ", $%u::tid[]", at + 2);
    buf_append_str(&text, ") AS u(");
    pg_columns(g->type, g->type->n_key, "", &text);
    buf_append_str(&text, ", ver");
    buf_append(&text, buf_view(&names));
    buf_append_str(&text, put->guarded ? ", want, i" : "");
    buf_append_str(&text, put->placed ? ", tid)" : ")");
    if (put->placed) {
        pg_where_placed(g->type, &text);
    } else {
        pg_meet_end(g->s, g->type, &text);
    }
    if (put->guarded) /* who changed the row meanwhile has changed its version */
        put_guard(g, put, at + 1, &text);
    return lists.failed || names.failed ? NULL : pg_sql_made(g->s, &shape, &text);
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

static struct pg_place place_of(const struct pg_group *g, const struct item_of *item)
{
    return pg_place_of_row(g->ns, &item->guard->ref, item->guard->ver);
}

/* Where the rows of a list lie; NULL: that is not known of all of them.  Most often it is known
 * of none: the first one tells. */
static struct pg_place *find_places(const struct pg_group *g,
                                    const struct item_of *item, size_t n)
{
    struct pg_place first = place_of(g, &item[0]);

    if (!pg_plans(g->s) || !pg_places_find(&g->s->places, &first, 1))
        return NULL;
    struct pg_place *met = arena_zalloc(g->p->arena, n, sizeof(*met));
    for (size_t i = 0; met && i < n; i++)
        met[i] = place_of(g, &item[i]);
    return met && pg_places_find(&g->s->places, met, n) ? met : NULL;
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

static void call_put_many(const struct pg_group *g, struct put *put,
                          const struct item_of *item, size_t n)
{
    const struct pg_place *met = put->guarded ? find_places(g, item, n) : NULL;

    put->placed = met != NULL;
    put->told = met && !met[0].ours && n >= PG_MANY_ROWS;
    struct pg_call *c =
        pg_add(g->p, put_many_sql(g, put), 5U + g->type->n_key + g->type->n_columns);
    if (c) {
        c->tag = (int64_t)item[0].index;
        c->met = met;
        c->made = put->told ? new_places(g, item, n) : NULL;
        c->n_places = n;
    }
    pg_arg_bytes(g->p, c, g->ns);
    pg_arg_keys(g, c, item, n);
    pg_arg_numbers(g, c, item, n, NEW_VER);
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        if (is_listed(put, i))
            pg_arg_column(g, c, item, n, i);
    }
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        if ((put->constant >> i) & 1)
            pg_arg_value(g->p, c, &item[0].effect->row.v[i]);
    }
    if (put->guarded) {
        pg_arg_numbers(g, c, item, n, GUARD_VER);
        pg_arg_numbers(g, c, item, n, GUARD_INDEX);
    }
    if (put->placed)
        arg_places(g, c, met, n);
}

void pg_put_rows(const struct pg_group *g, struct item_of *item, size_t n,
                 uint64_t changed, bool guarded, bool all)
{
    struct item_of *same = arena_zalloc(g->p->arena, n, sizeof(*same));
    struct put put = { .changed = changed, .guarded = guarded };
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
