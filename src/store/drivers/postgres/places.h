/* places.h - where rows and members of ranks lie, as far as this process knows.
 *
 * Who picks work reads its row, changes it, and changes it again when the work is done: each
 * time the server would look for it by its key, the length of an index.  The place of what was
 * read or written is known, and what lies there is compared with the key and the version that
 * the statement has anyway: a place that is no longer right (somebody has changed the row,
 * a table was rewritten) is a conflict, and forgotten.
 *
 * Bounded: older places make room.  Memory that cannot be had is no error.
 */
#ifndef STORE_DRIVERS_POSTGRES_PLACES_H
#define STORE_DRIVERS_POSTGRES_PLACES_H

#include <pthread.h>

#include "store/plan.h"

#define PG_TID_LEN 6 /* as the server writes it */

/* A row under a version, or a member at a rank. */
struct pg_place {
    uint64_t hash;
    int64_t ver;
    uint8_t tid[PG_TID_LEN];
    bool known;
    bool ours; /* this process has written it there: it was not read */
};

struct pg_places {
    pthread_mutex_t mutex;
    struct pg_place *sets; /* made when used */
};

void pg_places_init(struct pg_places *p);
void pg_places_release(struct pg_places *p);

/* Without a place yet. */
struct pg_place pg_place_of_row(struct bytes ns, const struct row_ref *ref,
                                int64_t ver);
struct pg_place pg_place_of_member(struct bytes ns, struct bytes index,
                                   struct bytes member, int64_t rank);

/* Fills in those that are known; false: not all of them are. */
bool pg_places_find(struct pg_places *p, struct pg_place *list, size_t n);
/* Remembers those with a place. */
void pg_places_learn(struct pg_places *p, const struct pg_place *list, size_t n);
void pg_places_forget(struct pg_places *p, const struct pg_place *list, size_t n);

#endif /* STORE_DRIVERS_POSTGRES_PLACES_H */
