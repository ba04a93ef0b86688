/* cut.h - what a disk may hold after its power failed at some point.
 *
 * A cut follows the record of a disk (disk.h).  What a file held at its last sync is
 * safe; of what was written after it, in pieces of at most one sector, any part may
 * have arrived in any order.  A file's name is safe after the first sync of its folder.
 */
#ifndef TESTS_CRASH_CUT_H
#define TESTS_CRASH_CUT_H

#include "base/rng.h"
#include "disk.h"

/* Which of the unsynced pieces arrived. */
enum cut_how {
    CUT_NONE,
    CUT_ALL,
    CUT_PREFIX,  /* those before a random one */
    CUT_HOLE,    /* all but one */
    CUT_RANDOM,  /* each with an even chance */
    CUT_TORN,    /* a random part, one of them garbage */
    CUT_NO_DATA, /* the sizes, but zeroes where the files had grown */
    CUT_HOWS
};

struct piece; /* private to cut.c */

struct cut_file {
    struct disk_bytes safe;
    struct piece *pieces; /* unsynced, oldest first */
    size_t n_pieces, cap_pieces;
    bool exists;           /* the name, as programs see it */
    struct disk_bytes old; /* what a name that was removed may still stand for */
};

struct cut {
    struct cut_file files[DISK_FILES];
    bool powersafe;
};

void cut_init(struct cut *c, const struct disk_image *start, bool powersafe);
void cut_release(struct cut *c);

/* One event further. */
void cut_follow(struct cut *c, const struct disk_event *e);

/* Whether anything is unsynced. */
bool cut_is_open(const struct cut *c);

/* What is left.  out is reused: it must be zero or an image from before. */
void cut_image(const struct cut *c, enum cut_how how, struct rng *rng,
               struct disk_image *out);

#endif /* TESTS_CRASH_CUT_H */
