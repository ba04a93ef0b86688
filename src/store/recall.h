/* recall.h - rows as this program left them, so that they need not be asked for again.
 *
 * Where a read costs a round trip (DRIVER_FAR), a transaction begins with what its program
 * wrote or confirmed itself: who claims work completes it, and knows its row.  A recalled row
 * is guarded like one that was read; the commit finds out whether it still stands, and so does
 * the check of an answer that writes nothing (T4).  If it does not, the body runs again
 * and asks.
 *
 *   R1  Only what a commit has shown to stand is kept: nothing of a commit whose outcome was not
 *       told, and nothing that was merely read, but for rows that are alone in their type.
 *   R2  What was kept in one era of the server (driver.h) is not recalled in another: versions
 *       of lost writes may come again.
 *   R3  A row that others change is not kept for a while: a recall in vain costs a run.  It
 *       is remembered as a hint.
 *
 * Bounded: older rows make room.  Memory that cannot be had is no error.
 */
#ifndef STORE_RECALL_H
#define STORE_RECALL_H

#include <pthread.h>

#include "store/key.h"

/* Sets of a few rows each; rows that are larger than this are not kept. */
#define RECALL_SETS 1024
#define RECALL_WAYS 4
#define RECALL_ROW_MAX ((size_t)4096)

/* So many commits pass before a row that was recalled in vain is kept again. */
#define RECALL_DISTRUST 8

struct recall {
    pthread_mutex_t mutex;
    struct recalled *
        *sets; /* RECALL_SETS * RECALL_WAYS, the latest first; made when used */
};

void recall_init(struct recall *r);
void recall_release(struct recall *r);
void recall_clear(struct recall *r);

/* The row as it was kept in this era, copied into the arena; NULL: there is none, or no
 * memory. */
const struct row *recall_get(struct recall *r, const struct row_ref *ref, uint64_t era,
                             struct belay_arena *a);

/* The same, and also one that is not kept just now: how it was when this program last knew it.
 * For guesses that are looked at again. */
const struct row *recall_hint(struct recall *r, const struct row_ref *ref, uint64_t era,
                              struct belay_arena *a);

/* A row with its values under a version. */
struct recall_news {
    struct row_ref ref;
    const struct value *v;
    int64_t ver;
};

/* Keeps them. */
void recall_put(struct recall *r, const struct recall_news *news, size_t n,
                uint64_t era);

/* It no longer stands.  in_vain: that was found out by recalling it. */
void recall_drop(struct recall *r, const struct row_ref *ref, bool in_vain);

#endif /* STORE_RECALL_H */
