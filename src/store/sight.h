/* sight.h - what scans of this program will most likely find when they are asked again.
 *
 * Where a driver guards scans (DRIVER_SCAN_GUARDS), a body that asks what its program asked
 * before is answered from what was read then, with what the program itself has done to the
 * indexes since; the plan says what the scan must find, and a commit that meets anything else
 * is a conflict.  The body then runs again and asks.  So nothing rests on what is kept here but
 * the number of round trips.
 *
 *   S1  Only what was read along with a commit that stands is kept (R1), and it is recalled in
 *       that era only (R2).
 *   S2  Every plan of this program that stands does to what is kept what it did to the indexes;
 *       where its outcome is not known, nothing is kept.
 *   S3  What was recalled in vain goes, and is not read ahead again for a while, each time for a
 *       longer one (as R3): many who compete for the same members do better by holding them.
 *   S4  What is picked is recalled, or read ahead, only by a body that is the only one to pick
 *       there; when there are several in this program, that is a competition, too.
 *
 * Bounded: the one that was not used for the longest time makes room.  Memory that cannot be had
 * is no error.
 */
#ifndef STORE_SIGHT_H
#define STORE_SIGHT_H

#include <pthread.h>

#include "store/read.h"

#define SIGHTS_MAX 32
#define SCAN_FETCH_KEPT 2 /* of scans that fetch more, nothing is kept */
#define SIGHT_BYTES_MAX ((size_t)128 << 10) /* of one: it is cut short there */

/* So many times it is asked for before it is kept again: at first, and at most. */
#define SIGHT_DISTRUST 8
#define SIGHT_DISTRUST_MAX 1024

struct sight;

struct sights {
    pthread_mutex_t mutex;
    struct sight *first; /* the latest used first */
    size_t n;
};

void sights_init(struct sights *s);
void sights_release(struct sights *s);
void sights_clear(struct sights *s);

/* What the scan will most likely find, in the arena; false: it must be asked. */
MUST_USE bool sight_recall(struct sights *s, const struct scan *scan, uint64_t era,
                           struct belay_arena *a, struct hits *out);

/* Before it is asked: whether it is worth the while to read ahead. */
MUST_USE bool sight_ask(struct sights *s, const struct scan *scan);

/* How it ended with what was recalled, or asked: called once for each. */
enum sight_end {
    SIGHT_STOOD,  /* the commit has seen it */
    SIGHT_UNUSED, /* it was not looked at, or not by a commit */
    SIGHT_FALSE,  /* the scan finds something else, or a row has changed */
    SIGHT_GONE,   /* likewise, perhaps, for another's sake */
    SIGHT_ASKED,  /* it was asked */
};
void sight_end(struct sights *s, const struct scan *scan, enum sight_end how);

/* Keeps what the scan finds from its first rank to the highest: all of it, or the first `most`
 * members. */
void sight_put(struct sights *s, const struct scan *scan, uint64_t era,
               const struct hits *found, size_t most);

/* A plan of this program stands. */
void sights_apply(struct sights *s, const struct plan *plan);

#endif /* STORE_SIGHT_H */
