/* granted.h - work that was granted before something happened to the server, and what its
 * holder may still do with it (X10). */
#ifndef TESTS_SERVERS_GRANTED_H
#define TESTS_SERVERS_GRANTED_H

#include <belay/session.h>

#include "tap.h"

/* One program on a store. */
struct grantee {
    struct tap *t;
    char url[300];
    struct belay *b;
    struct belay_arena *arena;
    struct belay_error err;
};

/* False, with a failed check, when the store does not open. */
bool grantee_open(struct grantee *g, struct tap *t, const char *url);
void grantee_close(struct grantee *g); /* also when it did not open */

/* A batch goes into an inbox of its own and is claimed; NULL, with a failed check, when it
 * is not granted. */
const struct belay_claim *grantee_claim(struct grantee *g);

/* The claim can be renewed and its batch completed. */
void grantee_stands(struct grantee *g, const struct belay_claim *claim);
/* Both are lease_lost, reason epoch. */
void grantee_lost(struct grantee *g, const struct belay_claim *claim);
/* Work comes in; claiming, renewing, completing and giving back are `unavailable`, reason
 * epoch, and `belay epoch show` and `belay doctor` say so. */
void grantee_refused(struct grantee *g, const struct belay_claim *claim);

/* `belay epoch raise`. */
void grantee_raise(struct grantee *g);

/* What `belay epoch show` says; -1, with a failed check, when it does not. */
int64_t grantee_epoch(struct grantee *g);

/* How often the audit log has a raise for that reason. */
unsigned grantee_raises(struct grantee *g, const char *reason);

#endif /* TESTS_SERVERS_GRANTED_H */
