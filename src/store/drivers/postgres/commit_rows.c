/* Rows of a plan: locked in order, compared, written.
 *
 * Tables come in the order of their names and rows in the order of their keys, so that
 * plans which meet wait for each other in one direction.  A row that is alone in its
 * table, and several that are all put, are compared and written by one statement; others are
 * locked first, then written by one statement for each set of columns.
 *
 * Absences have no row to lock.  Whoever guards one without inserting it, and whoever
 * inserts, take advisory locks: one per bucket of keys, shared, and one per key, which
 * the guard takes for itself.  An insert of many rows takes the buckets for itself
 * instead of a lock per key.
 *
 * A row that is the only one of its type in a namespace (the epoch) is guarded by
 * everybody and written by hardly anybody.  Locking the row itself would write to it each
 * time, so it has an advisory lock, too: shared by those who guard it, exclusive for who
 * writes it. */
#include <stdio.h>
#include <stdlib.h>

#include "store/drivers/postgres/commit_rows.h"

#define BUCKETS 64
#define KEY_LOCKS_MAX 32
#define CONSTANTS_MIN 16

/* The items of one table. */
struct group {
    struct pg_store *s;
    struct pg_pipe *p;
    struct bytes ns;
    const struct row_type *type;
    struct item_of *item;
    size_t n;
    bool holds; /* the transaction holds picks */
};

static int item_cmp(const void *a, const void *b)
{
    const struct row_ref *x = &((const struct item_of *)a)->guard->ref;
    const struct row_ref *y = &((const struct item_of *)b)->guard->ref;
    int order = strcmp(x->type->name, y->type->name);

    return order ? order : bytes_cmp(x->enc, y->enc);
}

static int effect_cmp(const void *a, const void *b)
{
    const struct row_ref *x = &(*(const struct effect *const *)a)->row.ref;
    const struct row_ref *y = &(*(const struct effect *const *)b)->row.ref;
    int order = strcmp(x->type->name, y->type->name);

    return order ? order : bytes_cmp(x->enc, y->enc);
}

static bool is_row_effect(const struct effect *e)
{
    return e->kind == EFFECT_INSERT || e->kind == EFFECT_PUT ||
           e->kind == EFFECT_DELETE;
}

/* Guards in the order of tables and keys, each with its effect. */
static struct item_of *sorted_items(const struct plan *plan, struct belay_arena *a)
{
    struct item_of *items = arena_zalloc(a, plan->n_guards, sizeof(*items));
    const struct effect **effects = arena_zalloc(a, plan->n_effects, sizeof(*effects));
    size_t n = 0, at = 0;

    if (!items || !effects)
        return NULL;
    for (size_t i = 0; i < plan->n_guards; i++)
        items[i] = (struct item_of){ .guard = &plan->guards[i], .index = i };
    for (size_t i = 0; i < plan->n_effects; i++) {
        if (is_row_effect(&plan->effects[i]))
            effects[n++] = &plan->effects[i];
    }
    qsort(items, plan->n_guards, sizeof(*items), item_cmp);
    qsort(effects, n, sizeof(*effects), effect_cmp);
    for (size_t i = 0; i < plan->n_guards && at < n; i++) {
        if (row_ref_eq(&items[i].guard->ref, &effects[at]->row.ref))
            items[i].effect = effects[at++];
    }
    return items;
}

static bool inserts(const struct item_of *item)
{
    return item->effect && item->effect->kind == EFFECT_INSERT;
}

static bool is_absence(const struct item_of *item)
{
    return item->guard->ver == 0 && !inserts(item);
}

/* The only row of its type, which is locked without touching it. */
static bool is_single(const struct item_of *item)
{
    return item->guard->ref.type->n_key == 0 && item->guard->ver != 0;
}

static bool is_present(const struct item_of *item)
{
    return item->guard->ver != 0;
}

/* The items for which `is` holds. */
static struct item_of *pick_items(const struct group *g,
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

/* --- arguments by arrays --- */

static struct value *column_of(struct pg_pipe *p, size_t n)
{
    struct value *v = arena_zalloc(p->arena, n, sizeof(*v));

    if (!v)
        p->no_memory = true;
    return v;
}

static void arg_keys(const struct group *g, struct pg_call *c,
                     const struct item_of *item, size_t n)
{
    struct value *v = column_of(g->p, n);

    for (unsigned part = 0; part < g->type->n_key && v; part++) {
        for (size_t i = 0; i < n; i++)
            v[i] = item[i].guard->ref.key[part];
        pg_arg_array(g->p, c, g->type->columns[part].type, v, n);
    }
}

enum number_of { GUARD_VER, GUARD_INDEX, NEW_VER };

static void arg_numbers(const struct group *g, struct pg_call *c,
                        const struct item_of *item, size_t n, enum number_of which)
{
    struct value *v = column_of(g->p, n);

    for (size_t i = 0; i < n && v; i++)
        v[i] = value_i64(which == GUARD_VER     ? item[i].guard->ver
                         : which == GUARD_INDEX ? (int64_t)item[i].index
                                                : item[i].effect->row.ver);
    if (v)
        pg_arg_array(g->p, c, VALUE_I64, v, n);
}

static void arg_column(const struct group *g, struct pg_call *c,
                       const struct item_of *item, size_t n, unsigned column)
{
    struct value *v = column_of(g->p, n);

    for (size_t i = 0; i < n && v; i++)
        v[i] = item[i].effect->row.v[column];
    if (v)
        pg_arg_array(g->p, c, g->type->columns[column].type, v, n);
}

/* --- one row alone in its table --- */

/* "SELECT belay1_guard(CASE WHEN <found> THEN NULL ELSE $at END)" */
static void demand(const struct group *g, const char *found, unsigned at,
                   struct buf *out)
{
    buf_printf(out,
               " SELECT \"%s\".belay1_guard(CASE WHEN %s THEN NULL ELSE $%u::int8 END)",
               g->s->schema, found, at);
}

static const struct pg_sql *put_one_sql(const struct group *g, uint64_t changed)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    unsigned key = 2, next = key + g->type->n_key;

    buf_append_str(&text, "WITH u AS (UPDATE ");
    pg_table(g->s, g->type->name, &text);
    buf_printf(&text, " SET ver = $%u", next + 2);
    for (unsigned i = 0, at = next + 3; i < g->type->n_columns; i++) {
        if ((changed >> i) & 1)
            buf_printf(&text, ", \"%s\" = $%u", g->type->columns[i].name, at++);
    }
    buf_append_str(&text, " WHERE ");
    pg_where_key(g->type, key, &text);
    buf_printf(&text, " AND ver = $%u RETURNING 1)", next);
    demand(g, "EXISTS (SELECT FROM u)", next + 1, &text);
    return pg_sql_of(g->s, &text);
}

static const struct pg_sql *delete_one_sql(const struct group *g)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    unsigned next = 2U + g->type->n_key;

    buf_append_str(&text, "WITH u AS (DELETE FROM ");
    pg_table(g->s, g->type->name, &text);
    buf_append_str(&text, " WHERE ");
    pg_where_key(g->type, 2, &text);
    buf_printf(&text, " AND ver = $%u RETURNING 1)", next);
    demand(g, "EXISTS (SELECT FROM u)", next + 1, &text);
    return pg_sql_of(g->s, &text);
}

/* Locks it, and looks at the version it has then. */
static const struct pg_sql *lock_one_sql(const struct group *g)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    unsigned next = 2U + g->type->n_key;

    buf_append_str(&text, "WITH l AS MATERIALIZED (SELECT ver FROM ");
    pg_table(g->s, g->type->name, &text);
    buf_append_str(&text, " WHERE ");
    pg_where_key(g->type, 2, &text);
    buf_append_str(&text, g->type->n_key > 0 ? " FOR SHARE)" : ")");
    char found[64];
    (void)snprintf(found, sizeof(found), "EXISTS (SELECT FROM l WHERE ver = $%u)",
                   next);
    demand(g, found, next + 1, &text);
    return pg_sql_of(g->s, &text);
}

static struct pg_call *add_one(const struct group *g, const struct item_of *item,
                               const struct pg_sql *sql, unsigned more)
{
    struct pg_call *c = pg_add(g->p, sql, 3U + g->type->n_key + more);

    if (c)
        c->tag = (int64_t)item->index;
    pg_arg_key(g->p, c, g->ns, &item->guard->ref);
    pg_arg_i64(g->p, c, item->guard->ver);
    pg_arg_i64(g->p, c, (int64_t)item->index);
    return c;
}

static void add_one_row(const struct group *g, const struct item_of *item)
{
    const struct effect *e = item->effect;

    if (!e)
        (void)add_one(g, item, lock_one_sql(g), 0);
    if (e && e->kind == EFFECT_DELETE)
        (void)add_one(g, item, delete_one_sql(g), 0);
    if (!e || e->kind != EFFECT_PUT)
        return;
    struct pg_call *c =
        add_one(g, item, put_one_sql(g, e->row.changed), 1U + g->type->n_columns);
    pg_arg_i64(g->p, c, e->row.ver);
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        if ((e->row.changed >> i) & 1)
            pg_arg_value(g->p, c, &e->row.v[i]);
    }
}

/* --- several --- */

/* $1 ns, keys, versions, indexes. */
static const struct pg_sql *lock_many_sql(const struct group *g, bool written)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    unsigned next = 2U + g->type->n_key;

    buf_append_str(&text, "WITH k AS MATERIALIZED (SELECT * FROM ");
    pg_unnest_keys(g->type, 2, &text);
    buf_printf(&text, ", $%u::int8[], $%u::int8[]) AS k(", next, next + 1);
    pg_columns(g->type, g->type->n_key, "", &text);
    buf_append_str(&text,
                   ", want, i)), l AS MATERIALIZED (SELECT k.i, t.ver = k.want AS"
                   " ok FROM k");
    pg_find_each(g->s, g->type, "k", "x.ver",
                 written ? " FOR NO KEY UPDATE" : " FOR SHARE", &text);
    buf_append_char(&text, ')');
    buf_printf(
        &text,
        " SELECT \"%s\".belay1_guard(CASE WHEN (SELECT count(*) FROM l WHERE ok) <>"
        " cardinality($%u::int8[]) THEN (SELECT min(k.i) FROM k LEFT JOIN l ON"
        " l.i = k.i WHERE l.ok IS NOT TRUE) END)",
        g->s->schema, next);
    return pg_sql_of(g->s, &text);
}

static void add_lock_many(const struct group *g, const struct item_of *item, size_t n)
{
    bool written = false;

    for (size_t i = 0; i < n; i++)
        written |= item[i].effect != NULL;
    struct pg_call *c = pg_add(g->p, lock_many_sql(g, written), 3U + g->type->n_key);
    if (c)
        c->tag = (int64_t)item[0].index;
    pg_arg_bytes(g->p, c, g->ns);
    arg_keys(g, c, item, n);
    arg_numbers(g, c, item, n, GUARD_VER);
    arg_numbers(g, c, item, n, GUARD_INDEX);
}

/* How rows are put by one statement. */
struct put {
    uint64_t changed;  /* columns */
    uint64_t constant; /* of them, those that become the same in all rows */
    bool guarded;      /* it looks at the versions, too: the rows are not locked yet */
    bool placed;       /* and meets them where they lie */
};

/* A changed column that each row has a value of its own for. */
static bool is_listed(const struct put *put, unsigned column)
{
    return ((put->changed & ~put->constant) >> column) & 1;
}

/* What follows the rows of a guarded put: the versions they must have, in u.want, and a
 * complaint of those that have another. */
static void put_guard(const struct group *g, unsigned indexes, struct buf *text)
{
    buf_printf(text,
               " AND t.ver = u.want RETURNING u.i) SELECT \"%s\".belay1_guard(CASE"
               " WHEN (SELECT count(*) FROM w) <> cardinality($%u::int8[]) THEN"
               " (SELECT min(i) FROM unnest($%u::int8[]) AS k(i) WHERE i NOT IN"
               " (SELECT w.i FROM w)) END)",
               g->s->schema, indexes, indexes);
}

/* $1 ns, keys, new versions, the listed columns, then the constant ones.  Guarded: then the
 * versions that the rows must have, and their indexes.  Placed: then where they lie. */
static const struct pg_sql *put_many_sql(const struct group *g, const struct put *put)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    CLEANUP(buf_release) struct buf lists = { .ptr = NULL };
    CLEANUP(buf_release) struct buf names = { .ptr = NULL };
    unsigned next = 2U + g->type->n_key, at = next + 1;
    const struct pg_shape shape = { .maker = "put",
                                    .type = g->type,
                                    .a = put->changed,
                                    .b = put->constant,
                                    .flags = put->guarded * 2U + put->placed };
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
        put_guard(g, at + 1, &text);
    return lists.failed || names.failed ? NULL : pg_sql_made(g->s, &shape, &text);
}

/* The columns that become the same in all rows.  A list of a few values is as good as one,
 * and every combination is a statement of its own. */
static uint64_t constant_columns(const struct group *g, const struct item_of *item,
                                 size_t n, uint64_t changed)
{
    uint64_t constant = n < CONSTANTS_MIN ? 0 : changed;

    for (unsigned c = 0; c < g->type->n_columns; c++) {
        for (size_t i = 1; i < n && ((constant >> c) & 1); i++) {
            if (!value_eq(&item[0].effect->row.v[c], &item[i].effect->row.v[c]))
                constant &= ~(UINT64_C(1) << c);
        }
    }
    return constant && pg_texts_are_few(g->s) ? constant : 0;
}

/* Where the rows of a list lie; NULL: that is not known of all of them.  Only of those that a
 * pick has just read: who comes by the index clears a page of versions that nobody sees any
 * more, and makes room for the next one there. */
static struct pg_place *find_places(const struct group *g, const struct item_of *item,
                                    size_t n)
{
    struct pg_place *met =
        g->holds && pg_plans(g->s) ? arena_zalloc(g->p->arena, n, sizeof(*met)) : NULL;

    for (size_t i = 0; met && i < n; i++) {
        const struct guard *guard = item[i].guard;
        met[i] = pg_place_of_row(g->ns, &guard->ref, guard->ver);
    }
    return met && pg_places_find(&g->s->places, met, n) ? met : NULL;
}

static void arg_places(const struct group *g, struct pg_call *c,
                       const struct pg_place *met, size_t n)
{
    struct value *v = column_of(g->p, n);

    for (size_t i = 0; i < n && v; i++)
        v[i] = value_bytes(bytes_of(met[i].tid, PG_TID_LEN));
    if (v)
        pg_arg_places(g->p, c, v, n);
}

static void call_put_many(const struct group *g, struct put *put,
                          const struct item_of *item, size_t n)
{
    const struct pg_place *met = put->guarded ? find_places(g, item, n) : NULL;

    put->placed = met != NULL;
    struct pg_call *c =
        pg_add(g->p, put_many_sql(g, put), 5U + g->type->n_key + g->type->n_columns);
    if (c) {
        c->tag = (int64_t)item[0].index;
        c->met = met;
        c->n_places = n;
    }
    pg_arg_bytes(g->p, c, g->ns);
    arg_keys(g, c, item, n);
    arg_numbers(g, c, item, n, NEW_VER);
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        if (is_listed(put, i))
            arg_column(g, c, item, n, i);
    }
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        if ((put->constant >> i) & 1)
            pg_arg_value(g->p, c, &item[0].effect->row.v[i]);
    }
    if (put->guarded) {
        arg_numbers(g, c, item, n, GUARD_VER);
        arg_numbers(g, c, item, n, GUARD_INDEX);
    }
    if (put->placed)
        arg_places(g, c, met, n);
}

/* All puts that change the columns `changed`, or with `all` every put, and those columns
 * whether it changes them or not: it has the values of the version that it guards. */
static void add_put_many(const struct group *g, struct item_of *item, size_t n,
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

/* One statement for each set of columns. */
static void add_puts_by_columns(const struct group *g, struct item_of *item, size_t n,
                                bool guarded)
{
    for (size_t i = 0; i < n; i++) {
        const struct effect *e = item[i].effect;
        if (e && e->kind == EFFECT_PUT)
            add_put_many(g, item, n, e->row.changed, guarded, false);
    }
}

/* The columns that any of them changes, where all of them are put; else 0. */
static uint64_t columns_put(const struct item_of *item, size_t n)
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

static bool deletes(const struct item_of *item)
{
    return item->effect && item->effect->kind == EFFECT_DELETE;
}

static void add_delete_many(const struct group *g)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    size_t n;
    struct item_of *gone = pick_items(g, deletes, &n);

    if (!gone || n == 0)
        return;
    buf_append_str(&text, "DELETE FROM ");
    pg_table(g->s, g->type->name, &text);
    buf_append_str(&text, " t");
    pg_meet_begin(g->s, "USING", &text);
    pg_unnest_keys(g->type, 2, &text);
    buf_append_str(&text, ") AS u(");
    pg_columns(g->type, g->type->n_key, "", &text);
    buf_append_char(&text, ')');
    pg_meet_end(g->s, g->type, &text);
    struct pg_call *c = pg_add(g->p, pg_sql_of(g->s, &text), 1U + g->type->n_key);
    pg_arg_bytes(g->p, c, g->ns);
    arg_keys(g, c, gone, n);
}

/* --- inserts and absences --- */

static void add_inserts(const struct group *g)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    size_t n;
    struct item_of *new = pick_items(g, inserts, &n);

    if (!new || n == 0)
        return;
    buf_append_str(&text, "INSERT INTO ");
    pg_table(g->s, g->type->name, &text);
    buf_append_str(&text, " (ns, ver, ");
    pg_columns(g->type, g->type->n_columns, "", &text);
    buf_append_str(&text, n == 1 ? ") VALUES ($1, $2"
                                 : ") SELECT $1, u.* FROM unnest($2::int8[]");
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        buf_printf(&text, ", $%u", 3 + i);
        if (n > 1)
            buf_printf(&text, "::%s[]", pg_type_name(g->type->columns[i].type));
    }
    buf_append_str(&text, n == 1 ? ")" : ") AS u");
    struct pg_call *c = pg_add(g->p, pg_sql_of(g->s, &text), 2U + g->type->n_columns);
    if (c)
        c->tag = (int64_t) new[0].index;
    pg_arg_bytes(g->p, c, g->ns);
    if (n == 1)
        pg_arg_i64(g->p, c, new[0].effect->row.ver);
    else
        arg_numbers(g, c, new, n, NEW_VER);
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        if (n == 1)
            pg_arg_value(g->p, c, &new[0].effect->row.v[i]);
        else
            arg_column(g, c, new, n, i);
    }
}

/* A row that should not be there, and that the plan does not insert. */
static void add_absences(const struct group *g)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    unsigned next = 2U + g->type->n_key;
    size_t n;
    struct item_of *absent = pick_items(g, is_absence, &n);

    if (!absent || n == 0)
        return;
    buf_printf(&text, "SELECT \"%s\".belay1_guard((SELECT min(k.i) FROM ",
               g->s->schema);
    if (g->type->n_key == 0)
        buf_append_str(&text, "unnest(");
    else
        pg_unnest_keys(g->type, 2, &text);
    buf_printf(&text, "%s$%u::int8[]) AS k(", g->type->n_key > 0 ? ", " : "", next);
    pg_columns(g->type, g->type->n_key, "", &text);
    buf_printf(&text, "%si)", g->type->n_key > 0 ? ", " : "");
    pg_find_each(g->s, g->type, "k", "x.ver", "", &text);
    buf_append_str(&text, "))");
    struct pg_call *c = pg_add(g->p, pg_sql_of(g->s, &text), 2U + g->type->n_key);
    if (c)
        c->tag = (int64_t)absent[0].index;
    pg_arg_bytes(g->p, c, g->ns);
    arg_keys(g, c, absent, n);
    arg_numbers(g, c, absent, n, GUARD_INDEX);
}

static void add_group(const struct group *g)
{
    uint64_t put;
    size_t n;
    struct item_of *present = pick_items(g, is_present, &n);

    if (!present)
        return;
    if (n == 1) {
        add_one_row(g, &present[0]);
    } else if (n > 1 && (put = columns_put(present, n))) {
        /* Who holds picks waits for nobody for long, in whatever order: what it claims and
         * what it completes are two sets of columns, each with most of its values in
         * common. */
        if (g->holds && n >= CONSTANTS_MIN)
            add_puts_by_columns(g, present, n, true);
        else
            add_put_many(g, present, n, put, true, true);
    } else if (n > 1) {
        add_lock_many(g, present, n);
        add_delete_many(g);
        add_puts_by_columns(g, present, n, false);
    }
    add_inserts(g);
    add_absences(g);
}

/* --- advisory locks --- */

struct advisory {
    int32_t class, object;
    bool exclusive;
};

static int advisory_cmp(const void *a, const void *b)
{
    const struct advisory *x = a, *y = b;

    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    return (int)y->exclusive - (int)x->exclusive;
}

static int32_t class_of(const struct group *g, const char *level)
{
    char name[192];
    int n =
        snprintf(name, sizeof(name), "%s/%s/%s", g->s->schema, g->type->name, level);

    return (int32_t)(uint32_t)key_hash(bytes_of(name, (size_t)n));
}

/* Locks of one table's absences and inserts, behind `out`; returns how many. */
static size_t group_locks(const struct group *g, struct advisory *out)
{
    size_t n = 0, n_inserts = 0;

    for (size_t i = 0; i < g->n; i++)
        n_inserts += inserts(&g->item[i]);
    bool many = n_inserts > KEY_LOCKS_MAX;
    int32_t buckets = class_of(g, "bucket"), keys = class_of(g, "key");
    for (size_t i = 0; i < g->n; i++) {
        bool inserted = inserts(&g->item[i]);
        /* The namespace is part of the key. */
        uint64_t hash = g->item[i].guard->ref.hash ^ (key_hash(g->ns) << 1);
        if (is_single(&g->item[i]))
            out[n++] = (struct advisory){ keys, (int32_t)(uint32_t)(hash >> 8),
                                          g->item[i].effect != NULL };
        if (!inserted && !is_absence(&g->item[i]))
            continue;
        out[n++] =
            (struct advisory){ buckets, (int32_t)(hash % BUCKETS), many && inserted };
        if (!many || !inserted)
            out[n++] =
                (struct advisory){ keys, (int32_t)(uint32_t)(hash >> 8), !inserted };
    }
    return n;
}

static void add_locks(struct pg_store *s, struct pg_pipe *p, struct advisory *lock,
                      size_t n)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    struct value *v = arena_zalloc(p->arena, 3 * n, sizeof(*v));
    size_t m = 0;

    if (!v) {
        p->no_memory = true;
        return;
    }
    qsort(lock, n, sizeof(*lock), advisory_cmp);
    for (size_t i = 0; i < n; i++) { /* the exclusive one comes first among equals */
        if (i > 0 && lock[i].class == lock[i - 1].class &&
            lock[i].object == lock[i - 1].object)
            continue;
        v[m] = value_i64(lock[i].class);
        v[n + m] = value_i64(lock[i].object);
        v[2 * n + m] = value_i64(lock[i].exclusive);
        m++;
    }
    buf_append_str(&text,
                   "SELECT CASE WHEN x = 1 THEN pg_advisory_xact_lock(a::int4,"
                   " b::int4) ELSE pg_advisory_xact_lock_shared(a::int4, b::int4)"
                   " END FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS"
                   " l(a, b, x)");
    struct pg_call *c = pg_add(p, pg_sql_of(s, &text), 3);
    for (unsigned i = 0; i < 3; i++)
        pg_arg_array(p, c, VALUE_I64, v + i * n, m);
}

/* --- all of it --- */

/* The group that begins at item `first`. */
static struct group group_at(struct pg_store *s, struct pg_pipe *p,
                             const struct plan *plan, struct item_of *items,
                             size_t first)
{
    struct group g = { .s = s,
                       .p = p,
                       .ns = plan->ns,
                       .type = items[first].guard->ref.type,
                       .item = &items[first] };

    while (first + g.n < plan->n_guards && items[first + g.n].guard->ref.type == g.type)
        g.n++;
    return g;
}

/* Whether it looks at nothing that may change while it waits for a lock, but rows that it
 * guards and writes: the only one of its type is read behind its advisory lock, a member
 * of a rank may be held. */
static bool is_plain(const struct plan *plan, const struct item_of *items)
{
    bool plain = true;

    for (size_t i = 0; i < plan->n_guards; i++)
        plain = plain && !is_single(&items[i]);
    for (size_t i = 0; i < plan->n_effects; i++)
        plain = plain && plan->effects[i].kind != EFFECT_RANK_MOVE &&
                plan->effects[i].kind != EFFECT_RANK_REMOVE;
    return plain;
}

belay_rc pg_add_rows(struct pg_store *s, struct pg_pipe *p, const struct plan *plan,
                     bool holds, enum pg_added *added, struct belay_error *err)
{
    struct item_of *items = sorted_items(plan, p->arena);
    struct advisory *locks = arena_zalloc(p->arena, 2 * plan->n_guards, sizeof(*locks));
    size_t n_locks = 0;

    if (!items || !locks)
        return err_no_memory(err, "a commit");
    for (size_t i = 0; i < plan->n_guards;) {
        struct group g = group_at(s, p, plan, items, i);
        n_locks += group_locks(&g, locks + n_locks);
        i += g.n;
    }
    if (n_locks > 0)
        add_locks(s, p, locks, n_locks);
    if (pg_add_fused(s, p, plan, items)) {
        *added = !holds && is_plain(plan, items) ? PG_ADDED_WHOLE : PG_ADDED_ALL;
        return p->no_memory ? err_no_memory(err, "a commit") : BELAY_OK;
    }
    for (size_t i = 0; i < plan->n_guards;) {
        struct group g = group_at(s, p, plan, items, i);
        g.holds = holds;
        add_group(&g);
        i += g.n;
    }
    return p->no_memory ? err_no_memory(err, "a commit") : BELAY_OK;
}
