/* load.h - threads that do deeds while something happens to the server. */
#ifndef TESTS_SERVERS_LOAD_H
#define TESTS_SERVERS_LOAD_H

#include "deeds.h"

#define LOAD_DOERS 4

struct load_tally {
    unsigned ok, refused, unknown;
    int64_t times; /* it is there so often */
};

struct load_result {
    struct load_tally doer[LOAD_DOERS];
    unsigned ok, refused, unknown; /* of all */
};

/* Runs `disturb(arg)` beside the doers, which stop when it returns.  Checks that every
 * deed that was acknowledged is there, once, and that none is there that was not, but for
 * those of which nobody knows.  Any other failure than unavailability is a failed check. */
void load_run(struct harness *h, void (*disturb)(void *arg), void *arg);

/* The same with a space for each doer, and told what came of it. */
void load_run_in(struct harness *h, struct space *const spaces[LOAD_DOERS],
                 void (*disturb)(void *arg), void *arg, struct load_result *out);

#endif /* TESTS_SERVERS_LOAD_H */
