/* lock.h - one writer at a time among all processes on a database file.
 *
 * SQLite before 3.51.3 can lose committed frames when a checkpoint and a commit of two
 * connections meet, so every write transaction and every checkpoint of every Belay
 * process holds this lock, outermost.  It is an open-file-description lock on a file of
 * its own, PATH-belay:
 *
 *     byte 0   turnstile: who waits for the write byte holds it, so that waiters queue
 *              one behind the other and the one who just released does not win again
 *     byte 1   write
 *     byte 64  text of the holder, "pid 1234\n" padded with spaces to 32 bytes
 *
 * Within a process only one thread at a time may use a lock (the group's leader).
 * After fork the child must close its copy without using it: an OFD lock belongs to the
 * open file, which the child shares.
 */
#ifndef STORE_DRIVERS_SQLITE_LOCK_H
#define STORE_DRIVERS_SQLITE_LOCK_H

#include <belay/hooks.h>

#include "base/err.h"

struct file_lock {
    int fd; /* -1: no lock is needed (a store in memory) */
    bool held;
    bool named; /* this process's name is in the file */
    int64_t longest_wait_us;
    struct belay_clock clock;
};

/* Opens or creates the lock file with the mode of the database file (0600 if it is not
 * there yet), close-on-exec.  `unavailable` with what and why: no such folder,
 * read-only, a directory, a symbolic link (refused). */
MUST_USE belay_rc file_lock_open(struct file_lock *l, const char *database_path,
                                 const struct belay_clock *clock,
                                 struct belay_error *err);

/* Waits as long as it takes.  EINTR is not an error. */
MUST_USE belay_rc file_lock_take(struct file_lock *l, struct belay_error *err);
void file_lock_release(struct file_lock *l);

/* Who holds it now, for doctor: false when nobody does.  Writes a NUL-terminated text.
 */
bool file_lock_holder(const struct file_lock *l, char *out, size_t len);

void file_lock_close(struct file_lock *l);

#endif /* STORE_DRIVERS_SQLITE_LOCK_H */
