/* Locks for what no row stands for.
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

static int advisory_cmp(const void *a, const void *b)
{
    const struct pg_advisory *x = a, *y = b;

    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    return (int)y->exclusive - (int)x->exclusive;
}

static int32_t class_of(const struct pg_group *g, const char *level)
{
    char name[192];
    int n =
        snprintf(name, sizeof(name), "%s/%s/%s", g->s->schema, g->type->name, level);

    return (int32_t)(uint32_t)key_hash(bytes_of(name, (size_t)n));
}

/* Locks of one table's absences and item_inserts, behind `out`; returns how many. */
size_t pg_group_locks(const struct pg_group *g, struct pg_advisory *out)
{
    size_t n = 0, n_inserts = 0;

    for (size_t i = 0; i < g->n; i++)
        n_inserts += item_inserts(&g->item[i]);
    bool many = n_inserts > KEY_LOCKS_MAX;
    int32_t buckets = class_of(g, "bucket"), keys = class_of(g, "key");
    for (size_t i = 0; i < g->n; i++) {
        bool inserted = item_inserts(&g->item[i]);
        /* The namespace is part of the key. */
        uint64_t hash = g->item[i].guard->ref.hash ^ (key_hash(g->ns) << 1);
        if (item_is_single(&g->item[i]))
            out[n++] = (struct pg_advisory){ keys, (int32_t)(uint32_t)(hash >> 8),
                                             g->item[i].effect != NULL };
        if (!inserted && !item_is_absence(&g->item[i]))
            continue;
        out[n++] = (struct pg_advisory){ buckets, (int32_t)(hash % BUCKETS),
                                         many && inserted };
        if (!many || !inserted)
            out[n++] =
                (struct pg_advisory){ keys, (int32_t)(uint32_t)(hash >> 8), !inserted };
    }
    return n;
}

void pg_add_locks(struct pg_store *s, struct pg_pipe *p, struct pg_advisory *lock,
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
