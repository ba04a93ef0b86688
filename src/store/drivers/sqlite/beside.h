/* beside.h - opening the files that stand beside a database file: PATH-belay,
 * PATH-wake.
 */
#ifndef STORE_DRIVERS_SQLITE_BESIDE_H
#define STORE_DRIVERS_SQLITE_BESIDE_H

#include "base/err.h"

/* Opens PATH`suffix` for reading and writing, close-on-exec, or creates it with the
 * database file's mode (whatever the umask; 0600 when there is no database file yet)
 * and, when root creates it, the database file's owner.  `what` names it in messages.
 *
 * A database path that is itself a symbolic link stands for the file it leads to, as it
 * does for SQLite: all names of one database share one file.  The file that is opened
 * must be a regular one; a symbolic link in its place is refused.
 *
 *   BELAY_INVALID      "WHAT: the path is too long: PATHsuffix"
 *   BELAY_UNAVAILABLE  "WHAT PATHsuffix: why" */
MUST_USE belay_rc beside_open(int *out_fd, const char *database_path,
                              const char *suffix, const char *what,
                              struct belay_error *err);

#endif /* STORE_DRIVERS_SQLITE_BESIDE_H */
