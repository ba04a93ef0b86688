/* rowcache.h - rows the writer has read or written lately.
 *
 * Bodies mostly read what a body before them wrote: the head of a session, an inbox, the
 * batch that was just claimed.  The writer's connection remembers such rows, so that no
 * statement is run for them.  What is remembered is what the connection would read: it is
 * forgotten when anything was rolled back, and at the begin of a turn when SQLite says
 * that somebody else has written (the same word its own page cache rests on).
 *
 * A fixed number of slots, one row each, small rows only; a row takes the slot of another.
 * Rows with counters, which change without their version, are not kept.
 */
#ifndef STORE_DRIVERS_SQLITE_ROWCACHE_H
#define STORE_DRIVERS_SQLITE_ROWCACHE_H

#include "store/key.h"

struct rowcache;

struct rowcache *rowcache_new(void); /* NULL: no memory */
void rowcache_free(struct rowcache *c);

/* The row, copied into the arena; *out = NULL: it is not remembered.  False: no memory. */
MUST_USE bool rowcache_get(const struct rowcache *c, struct bytes ns,
                           const struct row_ref *ref, struct belay_arena *a,
                           const struct row **out);
/* A row as it is now; without memory it is only forgotten. */
void rowcache_put(struct rowcache *c, struct bytes ns, const struct row_ref *ref,
                  int64_t ver, const struct value *v);
void rowcache_drop(struct rowcache *c, struct bytes ns, const struct row_ref *ref);
void rowcache_clear(struct rowcache *c);

#endif /* STORE_DRIVERS_SQLITE_ROWCACHE_H */
