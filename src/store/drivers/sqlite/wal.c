/* The write-ahead log: checkpoints only here, only under the lock; and syncs, which are
 * waited for outside it, so that the next group runs meanwhile.
 *
 *   15,000 pages   a passive checkpoint: copies what no reader needs any more; the more
 *                  commits it waits for, the fewer pages a commit costs here
 *   64 MiB         RESTART: waits for readers, so that the next commit begins in front
 *   256 MiB        writers wait: somebody reads for too long
 *
 * The file is never truncated while it is in use: growing it again costs.
 */
#include "store/drivers/sqlite/impl.h"

#define PAGE 4096
#define PASSIVE_PAGES 15000
#define RESTART_PAGES ((64 << 20) / PAGE)
#define WAIT_PAGES ((256 << 20) / PAGE)
#define RETRY_PAGES 1000
#define RESTART_WAIT_MS 50
#define FULL_WAIT_MS 1000
#define FULL_WAITS 30

/* True when every frame was copied; *out_frames tells how many there are. */
static bool checkpoint(struct sqlite_store *s, int mode, int wait_ms, int *out_frames)
{
    int frames = 0, copied = 0;

    *out_frames = 0;
    if (atomic_load(&s->poisoned))
        return false;
    (void)sqlite3_busy_timeout(s->writer->db, wait_ms);
    int rc = sqlite3_wal_checkpoint_v2(s->writer->db, NULL, mode, &frames, &copied);
    (void)sqlite3_busy_timeout(s->writer->db, 5000);
    if ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_FULL)
        atomic_store(&s->poisoned, true); /* X5: an fsync may have failed */
    *out_frames = frames;
    return rc == SQLITE_OK && frames == copied;
}

/* --- commits --- */

belay_rc wal_commit(struct sqlite_store *s, bool wrote, struct belay_error *err)
{
    if (!s->walfile || !wrote)
        return conn_run_plain(s->writer, SQL_COMMIT, "commit", err);
    /* Counted before anybody can see it. */
    uint64_t own = atomic_fetch_add(&s->begun, 1) + 1;
    uint64_t mark = atomic_fetch_add(&wakefile_marks(s->wakefile)->begun, 1) + 1;
    walfile_sync_later(s->walfile);
    belay_rc rc = conn_run_plain(s->writer, SQL_COMMIT, "commit", err);
    walfile_sync_again(s->walfile);
    if (rc == BELAY_OK) {
        atomic_store(&s->written_mark, mark);
        atomic_store(&s->written, own);
    }
    return rc;
}

struct wal_point wal_seen(const struct sqlite_store *s)
{
    struct wal_point p = { 0, 0 };

    if (s->walfile) {
        p.own = atomic_load(&s->begun);
        p.all = atomic_load(&wakefile_marks(s->wakefile)->begun);
    }
    return p;
}

static void raise_to(_Atomic uint64_t *number, uint64_t to)
{
    uint64_t before = atomic_load(number);

    while (before < to && !atomic_compare_exchange_weak(number, &before, to))
        continue;
}

/* Commits are numbered and put into the log under the lock: whoever has synced after his
 * own has synced all before it. */
static belay_rc sync_log(struct sqlite_store *s, struct belay_error *err)
{
    uint64_t own = atomic_load(&s->written), mark = atomic_load(&s->written_mark);

    if (atomic_load(&s->poisoned))
        return store_poisoned(err);
    if (walfile_sync(s->walfile)) {
        atomic_store(&s->poisoned, true); /* X5 */
        return store_poisoned(err);
    }
    raise_to(&s->durable, own);
    raise_to(&wakefile_marks(s->wakefile)->synced, mark);
    return BELAY_OK;
}

/* X1: what this process has written is durable when its own sync says so.  The page is
 * asked about the others' only. */
static bool is_durable(const struct sqlite_store *s, struct wal_point upto)
{
    return atomic_load(&s->durable) >= upto.own &&
           atomic_load(&wakefile_marks(s->wakefile)->synced) >= upto.all;
}

belay_rc wal_sync(struct sqlite_store *s, struct wal_point upto,
                  struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (!s->walfile || is_durable(s, upto))
        return BELAY_OK;
    pthread_mutex_lock(&s->sync_mutex);
    while (s->syncing && !is_durable(s, upto))
        pthread_cond_wait(&s->sync_done, &s->sync_mutex);
    if (!is_durable(s, upto)) {
        s->syncing = true;
        pthread_mutex_unlock(&s->sync_mutex);
        rc = sync_log(s, err);
        pthread_mutex_lock(&s->sync_mutex);
        s->syncing = false;
        pthread_cond_broadcast(&s->sync_done);
    }
    pthread_mutex_unlock(&s->sync_mutex);
    return rc;
}

/* --- checkpoints --- */

bool wal_is_due(struct sqlite_store *s)
{
    if (s->wal_pages < s->wal_pages_before && s->wal_full_at > PASSIVE_PAGES)
        s->wal_full_at = PASSIVE_PAGES; /* the log was begun anew */
    s->wal_pages_before = s->wal_pages;
    return s->path && s->wal_pages >= s->wal_full_at;
}

void wal_after_commit(struct sqlite_store *s)
{
    int frames;
    bool done = checkpoint(s, SQLITE_CHECKPOINT_PASSIVE, 0, &frames);
    /* That all is copied is not enough here: readers that are always up to date keep
     * the log from being begun anew all the same. */
    if (s->wal_pages >= RESTART_PAGES)
        done = checkpoint(s, SQLITE_CHECKPOINT_RESTART, RESTART_WAIT_MS, &frames);
    for (int i = 0; !done && s->wal_pages >= WAIT_PAGES && i < FULL_WAITS; i++)
        done = checkpoint(s, SQLITE_CHECKPOINT_RESTART, FULL_WAIT_MS, &frames);
    /* If a reader is in the way, again soon, but not at every commit. */
    s->wal_full_at = (int64_t)s->wal_pages + RETRY_PAGES;
}

belay_rc wal_recover(struct sqlite_store *s, struct belay_error *err)
{
    int frames = 0;

    s->wal_full_at = PASSIVE_PAGES;
    if (!s->path)
        return BELAY_OK;
    bool done = checkpoint(s, SQLITE_CHECKPOINT_PASSIVE, 0, &frames);
    if (atomic_load(&s->poisoned))
        return conn_error(s->writer, "recover", err);
    /* What was read from the log may be in the kernel's memory alone: a sync before us
     * may have failed and dropped it.  The file has it now; but a power loss would leave
     * the rest of the log, older than the file.  One synced write begins the log anew, and
     * what is left of the old one counts for nothing. */
    if (done && frames > 0 &&
        sqlite3_exec(s->writer->db, "PRAGMA user_version = " LAYOUT_TEXT, NULL, NULL,
                     NULL))
        return conn_error(s->writer, "begin the log anew", err);
    return BELAY_OK;
}
