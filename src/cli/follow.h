/* follow.h - items that are printed when they come, and how that ends. */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "cli/output.h"

/* Where an op_follow goes. */
struct follower {
    const struct operation *op;
    enum output_format format;
    bool quiet;
    int out, err; /* descriptors */
    struct output_rows rows;
};

/* Writes one item: its body as it is, a line of a table, or JSON on a line.
 * `unavailable`, reason `output`. */
MUST_USE belay_rc follow_emit(void *follower, const json_t *item,
                              struct belay_error *err);

/* INT, TERM and HUP trigger the cancel, once; the second one ends the process.  To be
 * started before other threads are, which take after this one. */
struct stopper {
    bool has_relay; /* set before it is started: signals can be handed on */
    struct belay_cancel *cancel; /* NULL: not started */
    int relay[2];                /* a pipe with a byte for each signal that came */
    atomic_bool is_relaying;     /* and nothing else happens by them */
    pthread_t thread;
    sigset_t signals, before;
    atomic_bool is_over;
};

MUST_USE belay_rc stopper_start(struct stopper *s, struct belay_error *err);
/* From now on signals are the caller's, those before included: a byte each, its number, is
 * to be read from the descriptor, which does not block. */
MUST_USE int stopper_relay(struct stopper *s);
void stopper_stop(struct stopper *s); /* fits CLEANUP; takes one not started */

#endif /* CLI_FOLLOW_H */
