/* wakefile.h - wake-ups between the processes on one host that share a database file.
 *
 * PATH-wake is one page, mapped by every process:
 *
 *     word 0        magic and version
 *     word 1        futex: counts posts
 *     word 2        how many watchers sleep on it (a hint: it saves the system call)
 *     words 4..7    how far the write-ahead log is on the disk (struct sync_marks)
 *     words 16..    a counter per bucket of topics
 *
 * A post adds one to its topic's bucket and to the futex word and wakes the sleepers. A
 * process that listens has one thread asleep on the futex; when it wakes it compares
 * the buckets with what it saw before and wakes its own listeners of those that
 * changed. Nothing runs while nothing is posted.  The page is a hint and is trusted for
 * nothing: wrong content causes spurious or lost wake-ups, which the safety timer
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

/* Opens or creates PATH-wake (mode as file_lock_open) and maps it.  A file that is too
 * short, truncated by somebody, or of another version is replaced, never trusted; a
 * symbolic link is refused.  The hub's posts of this process go to the others, and
 * theirs to it, from then on. */
MUST_USE belay_rc wakefile_open(struct wakefile **out, const char *database_path,
                                struct wake_hub *hub, struct belay_error *err);

/* Tells the other processes.  Called after a commit that posted the topic. */
void wakefile_post(struct wakefile *w, struct bytes ns, struct bytes topic);

struct sync_marks *wakefile_marks(struct wakefile *w);

/* Stops the watcher, unmaps.  Takes NULL. */
void wakefile_close(struct wakefile *w);

#endif /* STORE_DRIVERS_SQLITE_WAKEFILE_H */
