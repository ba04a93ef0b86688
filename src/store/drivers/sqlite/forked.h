/* forked.h - descriptors that must not live on in a forked child.
 *
 * An open-file-description lock lasts as long as any copy of its descriptor, so a child
 * that was forked and never executed anything would keep a dead parent's lock.  Which
 * descriptors a process has is a fact about the process: this list is the one piece of
 * state of the driver that is not in a handle.
 */
#ifndef STORE_DRIVERS_SQLITE_FORKED_H
#define STORE_DRIVERS_SQLITE_FORKED_H

#include <stdbool.h>

#include "base/err.h"

/* From now on a child closes fd as its first act. */
MUST_USE belay_rc forked_watch(int fd, struct belay_error *err);

/* Closes fd, unless this is a child in which it was closed already. */
void forked_close(int fd);

#endif /* STORE_DRIVERS_SQLITE_FORKED_H */
