/* load.h - threads that do deeds while something happens to the server. */
#ifndef TESTS_POSTGRES_LOAD_H
#define TESTS_POSTGRES_LOAD_H

#include "pg.h"

#define LOAD_DOERS 4

struct load_tally {
    unsigned ok, refused, unknown;
};

/* Runs `disturb(arg)` beside the doers, which stop when it returns.  Checks that every
 * deed that was acknowledged is there, once, and that none is there that was not, but for
 * those of which nobody knows.  Any other failure than unavailability is a failed check. */
void load_run(struct harness *h, void (*disturb)(void *arg), void *arg);

#endif /* TESTS_POSTGRES_LOAD_H */
