/* commit_rows.h - what the files that write rows share: commit_rows.c (the order of it, and rows
 * that are alone), commit_puts.c (rows that are put by one statement),
 * commit_placed.c (and where they lie), commit_locks.c (absences),
 * commit_lists.c (arguments of many rows), commit_fused.c (small plans). */
#ifndef STORE_DRIVERS_POSTGRES_COMMIT_ROWS_H
#define STORE_DRIVERS_POSTGRES_COMMIT_ROWS_H

#include "store/drivers/postgres/impl.h"

/* From so many rows on a statement is made for what they have in common. */
#define PG_MANY_ROWS 16

/* A guard with what the plan does to its row. */
struct item_of {
    const struct guard *guard;
    const struct effect *effect; /* NULL: it is only guarded */
    size_t index;                /* of the guard */
};

/* The items of one table. */
struct pg_group {
    struct pg_store *s;
    struct pg_pipe *p;
    struct bytes ns;
    const struct row_type *type;
    struct item_of *item;
    size_t n;
    bool holds; /* the transaction holds picks */
};

static inline bool item_inserts(const struct item_of *item)
{
    return item->effect && item->effect->kind == EFFECT_INSERT;
}

static inline bool item_is_absence(const struct item_of *item)
{
    return item->guard->ver == 0 && !item_inserts(item);
}

/* The only row of its type, which is locked without touching it. */
static inline bool item_is_single(const struct item_of *item)
{
    return item->guard->ref.type->n_key == 0 && item->guard->ver != 0;
}

static inline bool item_is_present(const struct item_of *item)
{
    return item->guard->ver != 0;
}

/* --- commit_lists.c --- */

/* The items for which `is` holds. */
struct item_of *pg_items_of(const struct pg_group *g,
                            bool (*is)(const struct item_of *), size_t *n);
/* Room for a value of each; NULL (and no_memory) when there is none. */
struct value *pg_column_of(struct pg_pipe *p, size_t n);
/* Of n items: their keys, an array for each part; a number; a column's new values. */
void pg_arg_keys(const struct pg_group *g, struct pg_call *c,
                 const struct item_of *item, size_t n);
enum number_of { GUARD_VER, GUARD_INDEX, NEW_VER };
void pg_arg_numbers(const struct pg_group *g, struct pg_call *c,
                    const struct item_of *item, size_t n, enum number_of which);
void pg_arg_column(const struct pg_group *g, struct pg_call *c,
                   const struct item_of *item, size_t n, unsigned column);

/* --- commit_puts.c, commit_placed.c --- */

/* How rows are put by one statement. */
struct pg_put {
    uint64_t changed;  /* columns */
    uint64_t constant; /* of them, those that become the same in all rows */
    bool guarded;      /* it looks at the versions, too: the rows are not locked yet */
};

/* A changed column that each row has a value of its own for. */
static inline bool pg_is_listed(const struct pg_put *put, unsigned column)
{
    return ((put->changed & ~put->constant) >> column) & 1;
}

/* ", column = $n" for those that are the same in all rows. */
void pg_set_constants(const struct pg_group *g, const struct pg_put *put, unsigned *at,
                      struct buf *text);
/* The listed columns, then the constant ones. */
void pg_arg_columns(const struct pg_group *g, struct pg_call *c,
                    const struct pg_put *put, const struct item_of *item, size_t n);
/* Guarded puts where the rows lie (places.h), in the order of their places; false: that is not
 * known of all of them. */
bool pg_put_placed(const struct pg_group *g, const struct pg_put *put,
                   struct item_of *item, size_t n);

/* The columns that any of them changes, where all of them are put; else 0. */
uint64_t pg_columns_put(const struct item_of *item, size_t n);
/* All puts that change the columns `changed`, or with `all` every put, and those columns
 * whether it changes them or not: it has the values of the version that it guards.  guarded:
 * the rows are not locked yet. */
void pg_put_rows(const struct pg_group *g, struct item_of *item, size_t n,
                 uint64_t changed, bool guarded, bool all);
/* One statement for each set of columns. */
void pg_put_rows_by_columns(const struct pg_group *g, struct item_of *item, size_t n,
                            bool guarded);

/* --- commit_locks.c --- */

struct pg_advisory {
    int32_t class, object;
    bool exclusive;
};
/* Locks of one table's absences and inserts, behind `out`; returns how many, at most two an
 * item. */
size_t pg_group_locks(const struct pg_group *g, struct pg_advisory *out);
/* All of them, in one order for everybody. */
void pg_add_locks(struct pg_store *s, struct pg_pipe *p, struct pg_advisory *lock,
                  size_t n);

/* --- commit_fused.c --- */

/* All of a plan but its advisory locks as one statement, when it is small: at most one
 * row that is there and one new row of each type, ranks, one log entry, nothing else.
 * False: it is not.  Items are in the order in which their rows are locked. */
bool pg_add_fused(struct pg_store *s, struct pg_pipe *p, const struct plan *plan,
                  const struct item_of *items);

#endif /* STORE_DRIVERS_POSTGRES_COMMIT_ROWS_H */
