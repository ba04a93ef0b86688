/* deeds.h - things that must happen once, whatever happens to the server meanwhile. */
#ifndef TESTS_SERVERS_DEEDS_H
#define TESTS_SERVERS_DEEDS_H

#include "harness.h"

/* Something that must happen once: a thing is read and its number raised by one, its
 * counter too, and an entry goes into its feed. */
struct deed {
    char id[16];
    struct space *space;
    unsigned runs;
};
belay_rc deed_body(struct txn *t, void *arg);
/* Inserts the thing, into h->space or another one. */
void deed_found(struct harness *h, struct deed *d, unsigned i);
void deed_found_in(struct harness *h, struct space *space, struct deed *d, unsigned i);

/* How often it happened; a failed check when its traces do not agree. */
int64_t deed_times(struct harness *h, const struct deed *d);

#endif /* TESTS_SERVERS_DEEDS_H */
