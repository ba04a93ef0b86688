/* testvfs.h - a SQLite VFS between SQLite and another one, with a hook before each call.
 *
 * Registered as the default, it sees every operation of every connection of the
 * process, so that code under test needs no hook of its own.  The hook may count, wait,
 * end the process, or say what the operation answers instead of being done.
 */
#ifndef TESTS_TESTVFS_H
#define TESTS_TESTVFS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum vfs_op {
    VFS_OPEN,
    VFS_READ,
    VFS_WRITE,
    VFS_TRUNCATE,
    VFS_SYNC,
    VFS_SIZE,
    VFS_LOCK,
    VFS_UNFETCH, /* a checkpoint, between reading the WAL's header and the rest of it */
    VFS_SHM_MAP,
    VFS_SHM_LOCK, /* taking one; giving one back is not shown */
    VFS_DELETE,
    VFS_ACCESS,
    VFS_SLEEP, /* any answer but SQLITE_OK: it does not sleep */
    VFS_OPS
};

enum vfs_part { VFS_DB, VFS_WAL, VFS_JOURNAL, VFS_OTHER };

struct vfs_call {
    enum vfs_op op;
    enum vfs_part part;
    int64_t offset; /* VFS_READ, VFS_WRITE; VFS_TRUNCATE: the new size */
    int amount;     /* bytes; VFS_SHM_LOCK: the first slot; VFS_SLEEP: microseconds */
    int flags; /* VFS_SHM_LOCK: SQLITE_SHM_*; VFS_LOCK: the lock; VFS_OPEN: flags */
    bool half; /* set by the hook: the first half of it is done all the same */
};

/* What the operation answers: SQLITE_OK lets it be done.  Called from any thread. */
typedef int vfs_hook(void *arg, struct vfs_call *call);

struct testvfs {
    sqlite3_vfs vfs;
    sqlite3_vfs *base;
    vfs_hook *hook; /* NULL: none */
    void *arg;
};

/* Makes v the default VFS, over `base` (NULL: over the one that is the default now).  v
 * must live until testvfs_remove, which needs all files closed and makes the base the
 * default again.  The hook may be changed while no connection is in use. */
void testvfs_install(struct testvfs *v, sqlite3_vfs *base, vfs_hook *hook, void *arg);
void testvfs_remove(struct testvfs *v);

#endif /* TESTS_TESTVFS_H */
