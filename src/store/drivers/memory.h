/* memory.h - the reference driver: everything in this process, nothing on disk.
 *
 * Bodies of many threads truly interleave on it: reads and commits are short critical
 * sections, and nothing is held between them except picks.  So conflicts happen here as
 * they do on a database server, and the other drivers are compared with this one.
 */
#ifndef STORE_DRIVERS_MEMORY_H
#define STORE_DRIVERS_MEMORY_H

#include "store/driver.h"

/* An empty store.  `invalid` when the dictionary is faulty.  config is copied; the
 * schema it names is borrowed. */
MUST_USE belay_rc memory_open(struct driver **out, const struct driver_config *config,
                              struct belay_error *err);

#endif /* STORE_DRIVERS_MEMORY_H */
