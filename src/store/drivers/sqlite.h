/* sqlite.h - the default driver: one file, many processes, every acknowledged commit on
 * disk. */
#ifndef STORE_DRIVERS_SQLITE_H
#define STORE_DRIVERS_SQLITE_H

#include "store/driver.h"

/* Opens or creates the database at `path` (":memory:": one in memory, for this handle
 * alone).  Refused with found and expected (`unsupported_format`): another program's
 * file, or one whose format this program is too old for.  `unavailable` with what and
 * why: a folder that is not there, a directory, a read-only file or folder, a file that
 * is no database, a full disk, a network file system. */
MUST_USE belay_rc sqlite_open(struct driver **out, const char *path,
                              const struct driver_config *config,
                              struct belay_error *err);

/* The longest this handle has waited for the lock between processes. */
int64_t sqlite_longest_lock_wait_us(const struct driver *d);

/* Whether opening `path` would wait: `unavailable`, reason locked, naming the holder,
 * when the store's lock is held and was not free once within a few seconds.  Creates
 * nothing; whatever else is wrong is left to sqlite_open. */
MUST_USE belay_rc sqlite_look(const char *path, const struct belay_clock *clock,
                              struct belay_error *err);

#endif /* STORE_DRIVERS_SQLITE_H */
