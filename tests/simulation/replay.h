/* replay.h - schedules as files, and making them smaller.
 *
 * A file has a word and its numbers per line; `#` begins a comment.  It says everything
 * that a seed would be asked for, so that new kinds of operations change nothing:
 *
 *     seed 17                     faults and turns are drawn from it
 *     salt 0                      and turns from this
 *     prune 0                     1: at any time
 *     nouns 1                     inboxes, sessions and blobs; without the line: things
 *     executions 1                executions, likewise
 *     actors 3 ... fault-steps 99 the numbers of struct swarm, each on its line
 *     rate late 250000            of a million points
 *     op 0 10 hunt 1234567        actor, number, kind, its own randomness
 *     without-fault 0 10 3        actor, operation, point
 */
#ifndef SIMULATION_REPLAY_H
#define SIMULATION_REPLAY_H

#include "sim.h"

#define MASKS_MAX 4096

struct replay {
    struct setup setup;
    struct mask *no_ops, *no_faults; /* what setup points to */
    struct fixed_op *fixed;
    struct swarm swarm;
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
