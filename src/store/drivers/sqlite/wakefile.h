/* wakefile.h - wake-ups between the processes on one host that share a database file.
 *
 * PATH-wake is one page, mapped by every process:
 *
 *     word 0        magic and version
 *     word 1        futex: counts posts
 *     word 2        how many watchers sleep on it (a hint: it saves the system call)
 *     words 4..7    how far the write-ahead log is on the disk (struct sync_marks)
 *     words 16..    for each bucket of topics a futex: counts posts by two; bit 0 says
 *                   that somebody sleeps on it
 *
 * A listener sleeps on the buckets of its topics itself: a post adds to its topic's bucket
 * and wakes whoever sleeps there, nobody else.  Where the kernel cannot wait for several
 * words (before Linux 5.16), or the topics are too many, the process has a watcher, one
 * thread asleep on word 1; when it wakes it compares all buckets with what it saw before
 * and wakes its process's listeners of those that changed.  Both ways may be used on one
 * file at once.  Nothing runs while nothing is posted.  The page is a hint and is trusted
 * for nothing: wrong content causes spurious or lost wake-ups, which the safety timer
 * covers.
 */
#ifndef STORE_DRIVERS_SQLITE_WAKEFILE_H
#define STORE_DRIVERS_SQLITE_WAKEFILE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "store/wake.h"

struct wakefile;

/* Commits to the log are numbered, under the file lock.  Those after `synced` may be seen
 * by others and still be lost with the power: who has read while it was behind `begun`
 * syncs the log before he tells anybody.  Wrong content costs a sync too many, or one too
 * few of a reader's; a writer never relies on it for its own. */
struct sync_marks {
    _Atomic uint64_t begun;
    _Atomic uint64_t synced;
};

/* How the listeners of this process sleep. */
enum wake_way {
    WAKE_ON_BUCKETS, /* themselves, where they can */
    WAKE_BY_WATCHER,
};

/* Opens or creates PATH-wake (mode as file_lock_open) and maps it.  A file that is too
 * short, truncated by somebody, or of another version is replaced, never trusted; a
 * symbolic link is refused.  The hub's posts of this process go to the others, and
 * theirs to it, from then on. */
MUST_USE belay_rc wakefile_open(struct wakefile **out, const char *database_path,
                                struct wake_hub *hub, enum wake_way way,
                                struct belay_error *err);

/* Tells the other processes.  Called after a commit that posted the topic. */
void wakefile_post(struct wakefile *w, struct bytes ns, struct bytes topic);

struct sync_marks *wakefile_marks(struct wakefile *w);

/* Stops the watcher, unmaps.  Takes NULL. */
void wakefile_close(struct wakefile *w);

#endif /* STORE_DRIVERS_SQLITE_WAKEFILE_H */
