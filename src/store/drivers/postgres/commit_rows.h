/* commit_rows.h - what commit_rows.c and commit_fused.c share. */
#ifndef STORE_DRIVERS_POSTGRES_COMMIT_ROWS_H
#define STORE_DRIVERS_POSTGRES_COMMIT_ROWS_H

#include "store/drivers/postgres/impl.h"

/* A guard with what the plan does to its row. */
struct item_of {
    const struct guard *guard;
    const struct effect *effect; /* NULL: it is only guarded */
    size_t index;                /* of the guard */
};

/* All of a plan but its advisory locks as one statement, when it is small: at most one
 * row that is there and one new row of each type, ranks, one log entry, nothing else.
 * False: it is not.  Items are in the order in which their rows are locked. */
bool pg_add_fused(struct pg_store *s, struct pg_pipe *p, const struct plan *plan,
                  const struct item_of *items);

#endif /* STORE_DRIVERS_POSTGRES_COMMIT_ROWS_H */
