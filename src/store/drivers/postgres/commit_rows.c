/* Rows of a plan: locked in order, compared, written.
 *
 * Tables come in the order of their names and rows in the order of their keys, so that
 * plans which meet wait for each other in one direction; but for rows that are put where they
 * lie (commit_placed.c), which come in the order of their places.  A row that is alone in its
 * table, and several that are all put, are compared and written by one statement; others are
 * locked first, then written by one statement for each set of columns. */
#include <stdio.h>
#include <stdlib.h>

#include "store/drivers/postgres/commit_rows.h"

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

/* --- one row alone in its table --- */

/* "SELECT belay1_guard(CASE WHEN <found> THEN NULL ELSE $at END)" */
static void demand(const struct pg_group *g, const char *found, unsigned at,
                   struct buf *out)
{
    buf_printf(out,
               " SELECT \"%s\".belay1_guard(CASE WHEN %s THEN NULL ELSE $%u::int8 END)",
               g->s->schema, found, at);
}

static const struct pg_sql *put_one_sql(const struct pg_group *g, uint64_t changed)
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

static const struct pg_sql *delete_one_sql(const struct pg_group *g)
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
static const struct pg_sql *lock_one_sql(const struct pg_group *g)
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

static struct pg_call *add_one(const struct pg_group *g, const struct item_of *item,
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

static void add_one_row(const struct pg_group *g, const struct item_of *item)
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
static const struct pg_sql *lock_many_sql(const struct pg_group *g, bool written)
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

static void add_lock_many(const struct pg_group *g, const struct item_of *item,
                          size_t n)
{
    bool written = false;

    for (size_t i = 0; i < n; i++)
        written |= item[i].effect != NULL;
    struct pg_call *c = pg_add(g->p, lock_many_sql(g, written), 3U + g->type->n_key);
    if (c)
        c->tag = (int64_t)item[0].index;
    pg_arg_bytes(g->p, c, g->ns);
    pg_arg_keys(g, c, item, n);
    pg_arg_numbers(g, c, item, n, GUARD_VER);
    pg_arg_numbers(g, c, item, n, GUARD_INDEX);
}

static bool deletes(const struct item_of *item)
{
    return item->effect && item->effect->kind == EFFECT_DELETE;
}

static void add_delete_many(const struct pg_group *g)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    size_t n;
    struct item_of *gone = pg_items_of(g, deletes, &n);

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
    pg_arg_keys(g, c, gone, n);
}

/* --- item_inserts and absences --- */

static void add_inserts(const struct pg_group *g)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    size_t n;
    struct item_of *new = pg_items_of(g, item_inserts, &n);

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
        pg_arg_numbers(g, c, new, n, NEW_VER);
    for (unsigned i = 0; i < g->type->n_columns; i++) {
        if (n == 1)
            pg_arg_value(g->p, c, &new[0].effect->row.v[i]);
        else
            pg_arg_column(g, c, new, n, i);
    }
}

/* A row that should not be there, and that the plan does not insert. */
static void add_absences(const struct pg_group *g)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    unsigned next = 2U + g->type->n_key;
    size_t n;
    struct item_of *absent = pg_items_of(g, item_is_absence, &n);

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
    pg_arg_keys(g, c, absent, n);
    pg_arg_numbers(g, c, absent, n, GUARD_INDEX);
}

static void add_group(const struct pg_group *g)
{
    uint64_t put;
    size_t n;
    struct item_of *present = pg_items_of(g, item_is_present, &n);

    if (!present)
        return;
    if (n == 1) {
        add_one_row(g, &present[0]);
    } else if (n > 1 && (put = pg_columns_put(present, n))) {
        /* Who holds picks waits for nobody for long, in whatever order: what it claims and
         * what it completes are two sets of columns, each with most of its values in
         * common. */
        if (g->holds && n >= PG_MANY_ROWS)
            pg_put_rows_by_columns(g, present, n, true);
        else
            pg_put_rows(g, present, n, put, true, true);
    } else if (n > 1) {
        add_lock_many(g, present, n);
        add_delete_many(g);
        pg_put_rows_by_columns(g, present, n, false);
    }
    add_inserts(g);
    add_absences(g);
}

/* --- all of it --- */

/* The group that begins at item `first`. */
static struct pg_group group_at(struct pg_store *s, struct pg_pipe *p,
                                const struct plan *plan, struct item_of *items,
                                size_t first)
{
    struct pg_group g = { .s = s,
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
        plain = plain && !item_is_single(&items[i]);
    for (size_t i = 0; i < plan->n_effects; i++)
        plain = plain && plan->effects[i].kind != EFFECT_RANK_MOVE &&
                plan->effects[i].kind != EFFECT_RANK_REMOVE;
    return plain;
}

belay_rc pg_add_rows(struct pg_store *s, struct pg_pipe *p, const struct plan *plan,
                     bool holds, enum pg_added *added, struct belay_error *err)
{
    struct item_of *items = sorted_items(plan, p->arena);
    struct pg_advisory *locks =
        arena_zalloc(p->arena, 2 * plan->n_guards, sizeof(*locks));
    size_t n_locks = 0;

    if (!items || !locks)
        return err_no_memory(err, "a commit");
    for (size_t i = 0; i < plan->n_guards;) {
        struct pg_group g = group_at(s, p, plan, items, i);
        n_locks += pg_group_locks(&g, locks + n_locks);
        i += g.n;
    }
    if (n_locks > 0)
        pg_add_locks(s, p, locks, n_locks);
    if (pg_add_fused(s, p, plan, items)) {
        *added = !holds && is_plain(plan, items) ? PG_ADDED_WHOLE : PG_ADDED_ALL;
        return p->no_memory ? err_no_memory(err, "a commit") : BELAY_OK;
    }
    for (size_t i = 0; i < plan->n_guards;) {
        struct pg_group g = group_at(s, p, plan, items, i);
        g.holds = holds;
        add_group(&g);
        i += g.n;
    }
    return p->no_memory ? err_no_memory(err, "a commit") : BELAY_OK;
}
