#include <stdlib.h>

#include "store/drivers/postgres/impl.h"

/* --- texts that were used before --- */

const struct pg_sql *pg_sql_of(struct pg_store *s, struct buf *text)
{
    struct pg_texts *t = &s->texts;
    uint64_t hash = key_hash(buf_view(text));
    struct pg_sql *found = NULL;

    buf_append_char(text, '\0');
    if (text->failed)
        return NULL;
    pthread_mutex_lock(&t->mutex);
    struct pg_sql **chain = &t->chain[hash % PG_SQL_CHAINS];
    for (found = *chain; found; found = found->next) {
        if (found->hash == hash && strcmp(found->text, (const char *)text->ptr) == 0)
            break;
    }
    if (!found && t->n < PG_SQL_MAX) {
        found = malloc(sizeof(*found) + text->len);
        if (found) {
            found->hash = hash;
            found->number = t->n++;
            memcpy(found->text, text->ptr, text->len);
            found->next = *chain;
            *chain = found;
        }
    }
    pthread_mutex_unlock(&t->mutex);
    buf_reset(text);
    return found;
}

static bool is_shape(const struct pg_shape *x, const struct pg_shape *y)
{
    return x->maker == y->maker && x->type == y->type && x->other == y->other &&
           x->a == y->a && x->b == y->b && x->flags == y->flags;
}

static size_t place_of(const struct pg_shape *x)
{
    uint64_t mixed =
        ((uint64_t)(uintptr_t)x->maker * 31 + (uint64_t)(uintptr_t)x->type +
         (uint64_t)(uintptr_t)x->other * 7 + x->a * 131 + x->b + x->flags) *
        UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(mixed >> 56) % PG_SHAPES;
}

const struct pg_sql *pg_sql_known(struct pg_store *s, const struct pg_shape *shape)
{
    size_t at = place_of(shape);

    pthread_mutex_lock(&s->texts.mutex);
    const struct pg_sql *sql =
        is_shape(&s->texts.made[at].shape, shape) ? s->texts.made[at].sql : NULL;
    pthread_mutex_unlock(&s->texts.mutex);
    return sql;
}

const struct pg_sql *pg_sql_made(struct pg_store *s, const struct pg_shape *shape,
                                 struct buf *text)
{
    size_t at = place_of(shape);
    const struct pg_sql *sql = pg_sql_of(s, text);

    pthread_mutex_lock(&s->texts.mutex);
    if (sql) {
        s->texts.made[at].shape = *shape;
        s->texts.made[at].sql = sql;
    }
    pthread_mutex_unlock(&s->texts.mutex);
    return sql;
}

bool pg_texts_are_few(struct pg_store *s)
{
    pthread_mutex_lock(&s->texts.mutex);
    bool few = s->texts.n < PG_SQL_MAX / 4;
    pthread_mutex_unlock(&s->texts.mutex);
    return few;
}

void pg_texts_release(struct pg_texts *t)
{
    for (unsigned i = 0; i < PG_SQL_CHAINS; i++) {
        while (t->chain[i]) {
            struct pg_sql *next = t->chain[i]->next;
            free(t->chain[i]);
            t->chain[i] = next;
        }
    }
    (void)pthread_mutex_destroy(&t->mutex);
}

/* --- pieces of texts --- */

void pg_table(const struct pg_store *s, const char *name, struct buf *out)
{
    buf_printf(out, "\"%s\".\"belay_%s\"", s->schema, name);
}

const char *pg_type_name(enum value_kind kind)
{
    switch (kind) {
    case VALUE_I64:
        return "bigint";
    case VALUE_BYTES:
        return "bytea";
    case VALUE_JSON: /* compared by its bytes, which the server's own types change */
    case VALUE_TEXT:
    case VALUE_NULL:
        break;
    }
    return "text";
}

void pg_columns(const struct row_type *type, unsigned n, const char *prefix,
                struct buf *out)
{
    for (unsigned i = 0; i < n; i++)
        buf_printf(out, "%s%s\"%s\"", i > 0 ? ", " : "", prefix, type->columns[i].name);
}

void pg_unnest_keys(const struct row_type *type, unsigned first, struct buf *out)
{
    buf_append_str(out, "unnest(");
    for (unsigned i = 0; i < type->n_key; i++)
        buf_printf(out, "%s$%u::%s[]", i > 0 ? ", " : "", first + i,
                   pg_type_name(type->columns[i].type));
}

void pg_key_match(const struct row_type *type, const char *a, const char *b,
                  struct buf *out)
{
    if (type->n_key == 0)
        buf_append_str(out, "true");
    for (unsigned i = 0; i < type->n_key; i++)
        buf_printf(out, "%s%s.\"%s\" = %s.\"%s\"", i > 0 ? " AND " : "", a,
                   type->columns[i].name, b, type->columns[i].name);
}

void pg_find_each(const struct pg_store *s, const struct row_type *type, const char *k,
                  const char *what, const char *lock, struct buf *out)
{
    buf_printf(out, " CROSS JOIN LATERAL (SELECT %s FROM ", what);
    pg_table(s, type->name, out);
    buf_append_str(out, " x WHERE x.ns = $1 AND ");
    pg_key_match(type, "x", k, out);
    buf_printf(out, " LIMIT 1%s) t", lock);
}

bool pg_plans(const struct pg_store *s)
{
    return !s->pooler && !s->own_options;
}

void pg_meet_begin(const struct pg_store *s, const char *word, struct buf *out)
{
    buf_printf(out, " %s %s", word,
               pg_plans(s) ? "" : "(SELECT t.ctid AS tid, u.* FROM ");
}

void pg_meet_end(const struct pg_store *s, const struct row_type *type, struct buf *out)
{
    if (!pg_plans(s)) {
        pg_find_each(s, type, "u", "x.ctid", "", out);
        buf_append_str(out, ") u WHERE t.ctid = u.tid");
        return;
    }
    buf_printf(out,
               " WHERE t.ns = ANY (ARRAY[CASE WHEN u.\"%s\" IS NULL THEN NULL ELSE $1"
               " END]) AND ",
               type->columns[0].name);
    pg_key_match(type, "t", "u", out);
}

void pg_where_key(const struct row_type *type, unsigned first, struct buf *out)
{
    buf_append_str(out, "ns = $1");
    for (unsigned i = 0; i < type->n_key; i++)
        buf_printf(out, " AND \"%s\" = $%u", type->columns[i].name, first + i);
}

void pg_where_index(const struct pg_store *s, const char *x, const char *index,
                    struct buf *out)
{
    buf_printf(out, "\"%s\".belay2_place(%sns, %sidx) = \"%s\".belay2_place($1, %s)",
               s->schema, x, x, s->schema, index);
    buf_printf(out, " AND %sns = $1 AND %sidx = %s", x, x, index);
}

void pg_where_ns(const struct pg_store *s, const char *name, struct buf *out)
{
    buf_append_str(out, "ns = $1");
    if (strcmp(name, "rank") == 0) /* nothing but its number comes first in its index */
        buf_printf(out,
                   " AND \"%s\".belay2_place(ns, idx) BETWEEN"
                   " \"%s\".belay2_place($1, '') & ~" PG_INDEX_BITS
                   "::int8 AND \"%s\".belay2_place($1, '') | " PG_INDEX_BITS,
                   s->schema, s->schema, s->schema);
}
