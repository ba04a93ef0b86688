/* walfile.h - between SQLite's writing connection and its write-ahead log.
 *
 * SQLite writes a commit frame by frame, two calls each, and waits for the disk before
 * anybody else may write.  Here the frames of a commit are collected and written with
 * one call, and the wait is taken apart from the commit: COMMIT returns when all of it
 * is written, walfile_sync when it is on the disk, and in between the next transaction
 * may run.  What SQLite is told of the disk is the same: every write comes before the
 * sync that follows it.
 *
 * SQLite's own sync is left out only between walfile_sync_later and walfile_sync_again,
 * which stand around COMMIT, and not when the log's header is new.  Whoever calls them owes
 * a walfile_sync before he tells anybody.
 */
#ifndef STORE_DRIVERS_SQLITE_WALFILE_H
#define STORE_DRIVERS_SQLITE_WALFILE_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"

struct walfile;

/* Puts itself before the log of a connection that is in WAL mode.  It goes when the
 * connection closes its log; *out stays valid until walfile_free. */
MUST_USE belay_rc walfile_attach(struct walfile **out, sqlite3 *db,
                                 struct belay_error *err);
void walfile_free(struct walfile *w); /* after the connection is closed; takes NULL */

/* The next syncs of the connection are left to walfile_sync; and no more. */
void walfile_sync_later(struct walfile *w);
void walfile_sync_again(struct walfile *w);

/* Waits until all that was written to the log, by any process, is on the disk.  From any
 * thread, one at a time.  An SQLite code. */
MUST_USE int walfile_sync(struct walfile *w);

#endif /* STORE_DRIVERS_SQLITE_WALFILE_H */
