/* replay.h - schedules as files, and making them smaller.
 *
 * A file has a word and its numbers per line; `#` begins a comment:
 *
 *     seed 17
 *     salt 0
 *     ops 60
 *     faults late,death
 *     prune 0
 *     without-op ACTOR OPERATION
 *     without-fault ACTOR OPERATION POINT
 */
#ifndef SIMULATION_REPLAY_H
#define SIMULATION_REPLAY_H

#include "sim.h"

#define MASKS_MAX 4096

struct replay {
    struct setup setup;
    struct mask *no_ops, *no_faults; /* what setup points to */
};

/* `all`, `none` or names with commas; false: no such fault. */
MUST_USE bool replay_faults(const char *text, uint32_t *out);

/* NULL, or what is wrong with the file. */
MUST_USE const char *replay_read(struct replay *r, const char *path);
void replay_release(struct replay *r);

/* Leaves out operations and faults while the same rule is still broken, and writes what
 * is left.  NULL, or why not. */
MUST_USE const char *replay_shrink(struct sim *s, const struct setup *failing,
                                   const char *path);

#endif /* SIMULATION_REPLAY_H */
