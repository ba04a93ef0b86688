/* The WAL-reset bug of SQLite before 3.51.3, and the lock that keeps it away.
 *
 *     test_wal_reset [--seed S] [--rounds N] [--seconds N] [case]
 *
 * A checkpoint reads the header of the WAL's index and then how many frames are copied.
 * If between the two somebody else begins the log anew - all its frames had been copied
 * by an earlier checkpoint - the old length is written down as copied: frames of the
 * new log up to there count as copied though they are not, and are lost with the next
 * reset.  SQLite calls xUnfetch on the database file just between the two reads, so a
 * hook there holds the window open as long as one likes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "ledger.h"
#include "testvfs.h"

/* WAL_CKPT_LOCK, the slot of the shared memory that every checkpoint takes first. */
#define CHECKPOINT_SLOT 1

/* How long the checkpointer waits for the other one, who may be kept out. */
#define PATIENCE_US ((int64_t)100000)

/* The log after the window must grow past its old end before the next checkpoint. */
#define STEPS_BEFORE 6
#define STEPS_AFTER 16

struct plan_of_run {
    uint64_t seed, rounds, seconds;
};

static bool sqlite_has_the_bug(void)
{
    int v = sqlite3_libversion_number();

    return v < 3051003 && v != 3050007 && v != 3044006;
}

/* --- plain SQLite, one thread --- */

struct raw {
    sqlite3 *a;
    bool armed;
    unsigned inserted;
    unsigned met; /* times the window was used */
};

static void insert(struct raw *r)
{
    if (sqlite3_exec(r->a, "INSERT INTO t VALUES (randomblob(600))", NULL, NULL,
                     NULL) == SQLITE_OK)
        r->inserted++;
}

static int commit_in_the_window(void *arg, struct vfs_call *call)
{
    struct raw *r = arg;

    if (r->armed && call->op == VFS_UNFETCH) {
        r->armed = false;
        r->met++;
        insert(r); /* the first one begins the log anew */
    }
    return SQLITE_OK;
}

static sqlite3 *raw_open(struct tap *t, const char *path)
{
    sqlite3 *db = NULL;

    TAP_EQ(t, sqlite3_open(path, &db), SQLITE_OK);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
    TAP_EQ(t,
           sqlite3_exec(db,
                        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
                        "CREATE TABLE IF NOT EXISTS t (x); SELECT count(*) FROM t",
                        NULL, NULL, NULL),
           SQLITE_OK);
    return db;
}

static int64_t count_rows(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int64_t n = -1;

    if (sqlite3_open(path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "SELECT count(x) FROM t", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
    return n;
}

static void plain_sqlite_loses(struct tap *t)
{
    struct rig rig;
    struct testvfs vfs;
    struct raw r = { .a = NULL };
    char text[128];

    rig_init(&rig);
    testvfs_install(&vfs, NULL, commit_in_the_window, &r);
    r.a = raw_open(t, rig.path);
    sqlite3 *b = raw_open(t, rig.path);
    for (int i = 0; i < 30; i++)
        insert(&r);
    /* The first checkpoint copies everything, the second meets the reset. */
    (void)sqlite3_wal_checkpoint_v2(r.a, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    r.armed = true;
    (void)sqlite3_wal_checkpoint_v2(b, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    TAP_EQ(t, r.met, 1);
    /* Past the old end, so that the next checkpoint copies what comes after it only;
     * the commit that follows begins the log anew over what was not copied. */
    for (int i = 0; i < 60; i++)
        insert(&r);
    (void)sqlite3_wal_checkpoint_v2(r.a, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    insert(&r);
    (void)sqlite3_close(b);
    (void)sqlite3_close(r.a);
    int64_t rows = count_rows(rig.path);
    const char *intact = rig_integrity(&rig, text);
    printf("# SQLite %s: %u rows committed, %lld found, integrity: %.60s\n",
           sqlite3_libversion(), r.inserted, (long long)rows, intact);
    bool lost = rows != r.inserted || strcmp(intact, "ok") != 0;
    TAP_EQ(t, lost, sqlite_has_the_bug());
    testvfs_remove(&vfs);
    rig_release(&rig);
}

/* --- two stores of Belay, one step at a time --- */

/* The committer does as many steps as it is asked to. */
struct duel {
    struct rig checkpointer, committer;
    pthread_t checkpointing;
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    unsigned asked, done;
    bool checkpoint_next, stop;
    atomic_bool armed;
    unsigned windows, inside; /* how often it was held open, and used */
    int64_t acked[2];
    unsigned failed;
};

static bool take_step(struct rig *rig, unsigned slot, bool checkpoint, int64_t *acked)
{
    struct ledger_step s = { .slot = slot, .checkpoint = checkpoint, .rig = rig };

    if (rig_run(rig, ledger_body, &s)) {
        printf("# step: %s\n", rig->err.message);
        return false;
    }
    *acked = s.step;
    return true;
}

static void *commit_when_asked(void *arg)
{
    struct duel *d = arg;

    pthread_mutex_lock(&d->mutex);
    while (!d->stop) {
        if (d->asked == d->done) {
            pthread_cond_wait(&d->moved, &d->mutex);
            continue;
        }
        bool checkpoint = d->checkpoint_next;
        pthread_mutex_unlock(&d->mutex);
        bool ok = take_step(&d->committer, 1, checkpoint, &d->acked[1]);
        pthread_mutex_lock(&d->mutex);
        d->done++;
        d->failed += !ok;
        pthread_cond_broadcast(&d->moved);
    }
    pthread_mutex_unlock(&d->mutex);
    return NULL;
}

/* True when the step was taken at once. */
static bool ask_for_step(struct duel *d, bool checkpoint, int64_t patience_us)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += patience_us % 1000000 * 1000;
    until.tv_sec += patience_us / 1000000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&d->mutex);
    while (d->done < d->asked) /* one of before, that was kept out */
        if (pthread_cond_timedwait(&d->moved, &d->mutex, &until))
            break;
    bool idle = d->done == d->asked;
    if (idle) {
        d->checkpoint_next = checkpoint;
        d->asked++;
        pthread_cond_broadcast(&d->moved);
    }
    while (d->done < d->asked)
        if (pthread_cond_timedwait(&d->moved, &d->mutex, &until))
            break;
    bool taken = idle && d->done == d->asked;
    pthread_mutex_unlock(&d->mutex);
    return taken;
}

/* Before the checkpoint reads the header the other one copies all there is; after it
 * the other one begins the log anew. */
static int hold_open(void *arg, struct vfs_call *call)
{
    struct duel *d = arg;

    if (!atomic_load(&d->armed) || !pthread_equal(pthread_self(), d->checkpointing))
        return SQLITE_OK;
    if (call->op == VFS_SHM_LOCK && call->amount == CHECKPOINT_SLOT &&
        call->flags & SQLITE_SHM_EXCLUSIVE) {
        (void)ask_for_step(d, true, PATIENCE_US);
    } else if (call->op == VFS_UNFETCH) {
        atomic_store(&d->armed, false);
        d->windows++;
        d->inside += ask_for_step(d, false, PATIENCE_US);
    }
    return SQLITE_OK;
}

static void without_lock(struct rig *rig)
{
    file_lock_close(&rig_sqlite(rig)->lock);
}

/* Says whether the file is whole and has all that was acknowledged. */
static bool duel_check(struct duel *d, char why[200])
{
    struct ledger sums;
    char text[128];

    if (rig_open(&d->checkpointer)) {
        (void)snprintf(why, 200, "open: %.190s", d->checkpointer.err.message);
        return false;
    }
    bool fine = ledger_check(&d->checkpointer, &sums, why);
    if (fine && (sums.steps[0] < d->acked[0] || sums.steps[1] < d->acked[1])) {
        fine = false;
        (void)snprintf(why, 200,
                       "lost: %lld and %lld acknowledged, %lld and %lld there",
                       (long long)d->acked[0], (long long)d->acked[1],
                       (long long)sums.steps[0], (long long)sums.steps[1]);
    }
    const char *intact = rig_integrity(&d->checkpointer, text);
    if (fine && strcmp(intact, "ok") != 0) {
        fine = false;
        (void)snprintf(why, 200, "integrity: %s", intact);
    }
    rig_close(&d->checkpointer);
    return fine;
}

/* One duel on a new file; true when nothing was lost. */
static bool fight(struct tap *t, bool locked, struct duel *d, char why[200])
{
    struct testvfs vfs;
    pthread_t thread;

    memset(d, 0, sizeof(*d));
    pthread_mutex_init(&d->mutex, NULL);
    pthread_cond_init(&d->moved, NULL);
    rig_init(&d->checkpointer);
    rig_init(&d->committer);
    memcpy(d->committer.path, d->checkpointer.path, sizeof(d->committer.path));
    d->checkpointing = pthread_self();
    testvfs_install(&vfs, NULL, hold_open, d);
    CHECK_RC(t, rig_open(&d->checkpointer), BELAY_OK);
    CHECK_RC(t, rig_open(&d->committer), BELAY_OK);
    if (!locked) {
        without_lock(&d->checkpointer);
        without_lock(&d->committer);
    }
    TAP_EQ(t, pthread_create(&thread, NULL, commit_when_asked, d), 0);
    for (int i = 0; i < STEPS_BEFORE; i++) {
        d->failed += !take_step(&d->checkpointer, 0, false, &d->acked[0]);
        (void)ask_for_step(d, false, 100 * PATIENCE_US);
    }
    atomic_store(&d->armed, true);
    d->failed += !take_step(&d->checkpointer, 0, true, &d->acked[0]);
    atomic_store(&d->armed, false);
    for (int i = 0; i < STEPS_AFTER; i++)
        (void)ask_for_step(d, i == STEPS_AFTER - 3, 100 * PATIENCE_US);
    pthread_mutex_lock(&d->mutex);
    d->stop = true;
    pthread_cond_broadcast(&d->moved);
    pthread_mutex_unlock(&d->mutex);
    TAP_EQ(t, pthread_join(thread, NULL), 0);
    rig_close(&d->committer);
    rig_close(&d->checkpointer);
    bool fine = duel_check(d, why);
    rig_release(&d->committer);
    rig_release(&d->checkpointer);
    testvfs_remove(&vfs);
    pthread_mutex_destroy(&d->mutex);
    pthread_cond_destroy(&d->moved);
    return fine;
}

static void unlocked_stores_lose(struct tap *t)
{
    const struct plan_of_run *plan = t->arg;
    struct duel d;
    unsigned lost = 0, rounds = 0, inside = 0;
    char why[200] = "", last[200] = "";

    for (; rounds < plan->rounds; rounds++) {
        if (!fight(t, false, &d, why)) {
            lost++;
            memcpy(last, why, sizeof(last));
        }
        inside += d.inside;
    }
    printf("# without the lock: %u duels, the window was used in %u, %u damaged (%s)\n",
           rounds, inside, lost, last);
    if (sqlite_has_the_bug())
        TAP_OK(t, lost > 0);
    else
        TAP_EQ(t, lost, 0);
}

static void locked_stores_do_not(struct tap *t)
{
    const struct plan_of_run *plan = t->arg;
    struct duel d;
    unsigned windows = 0;
    char why[200];

    for (unsigned i = 0; i < plan->rounds; i++) {
        if (!TAP_OK(t, fight(t, true, &d, why)))
            printf("# %s\n", why);
        TAP_EQ(t, d.failed, 0);
        TAP_EQ(t, d.inside, 0); /* nobody gets in between */
        windows += d.windows;
    }
    printf("# with the lock: %u duels, the window was met %u times, used never\n",
           (unsigned)plan->rounds, windows);
}

/* --- two processes, at random --- */

struct delays {
    struct rng rng;
};

static int delay(void *arg, struct vfs_call *call)
{
    struct delays *d = arg;

    if (call->op == VFS_UNFETCH ||
        (call->op == VFS_SHM_LOCK && call->flags & SQLITE_SHM_EXCLUSIVE))
        usleep((unsigned)rng_below(&d->rng, 3000));
    return SQLITE_OK;
}

/* Takes steps until the time is over, and tells the last one. */
static void process_main(struct rig *rig, unsigned slot, const struct plan_of_run *plan,
                         bool locked, int out)
{
    struct testvfs vfs;
    struct delays d;
    int64_t acked = 0;
    int64_t end = now_us() + (int64_t)plan->seconds * 1000000;
    unsigned n = 0;

    rng_init(&d.rng, plan->seed * 2 + slot);
    testvfs_install(&vfs, NULL, delay, &d);
    if (rig_open(rig))
        _exit(1);
    if (!locked)
        without_lock(rig);
    while (now_us() < end && take_step(rig, slot, n++ % 2 == slot, &acked))
        ;
    rig_close(rig);
    _exit(write(out, &acked, sizeof(acked)) != sizeof(acked));
}

static bool race(struct tap *t, bool locked, char why[200], int64_t *steps)
{
    struct duel d;
    pid_t pid[2];
    int pipes[2][2];

    memset(&d, 0, sizeof(d));
    rig_init(&d.checkpointer);
    fflush(stdout);
    for (unsigned i = 0; i < 2; i++) {
        TAP_EQ(t, pipe(pipes[i]), 0);
        pid[i] = fork();
        if (pid[i] == 0)
            process_main(&d.checkpointer, i, t->arg, locked, pipes[i][1]);
        close(pipes[i][1]);
    }
    for (unsigned i = 0; i < 2; i++) {
        int status = 0;
        ssize_t got = read(pipes[i][0], &d.acked[i], sizeof(d.acked[i]));
        TAP_EQ(t, waitpid(pid[i], &status, 0), pid[i]);
        close(pipes[i][0]);
        if (locked)
            TAP_OK(t, got == sizeof(d.acked[i]) && status == 0);
    }
    bool fine = duel_check(&d, why);
    *steps = d.acked[0] + d.acked[1];
    rig_release(&d.checkpointer);
    return fine;
}

static void processes_with_the_lock(struct tap *t)
{
    char why[200] = "";
    int64_t steps = 0;

    if (!TAP_OK(t, race(t, true, why, &steps)))
        printf("# %s\n", why);
    printf("# two processes with delays, with the lock: %lld steps, nothing lost\n",
           (long long)steps);
}

/* What chance finds is printed, not demanded. */
static void processes_without(struct tap *t)
{
    char why[200] = "";
    int64_t steps = 0;
    bool fine = race(t, false, why, &steps);

    printf("# two processes with delays, without the lock: %lld steps, %s%s\n",
           (long long)steps, fine ? "nothing lost this time" : "damaged: ", why);
    TAP_OK(t, steps > 0 || !fine);
}

static const struct tap_case cases[] = {
    { "wal reset: SQLite alone loses commits when a checkpoint meets a reset",
      plain_sqlite_loses },
    { "wal reset: so do two stores that were robbed of the lock",
      unlocked_stores_lose },
    { "wal reset: with the lock nobody gets into the window and nothing is lost",
      locked_stores_do_not },
    { "wal reset: two processes, delays everywhere, with the lock",
      processes_with_the_lock },
    { "wal reset: the same without the lock, for the record", processes_without },
};

int main(int argc, char **argv)
{
    struct plan_of_run plan = {
        .seed = option_u64(&argc, argv, "--seed", 1),
        .rounds = option_u64(&argc, argv, "--rounds", 10),
        .seconds = option_u64(&argc, argv, "--seconds", 4),
    };

    printf("# seed %llu, SQLite %s\n", (unsigned long long)plan.seed,
           sqlite3_libversion());
    return tap_main(cases, COUNT_OF(cases), &plan, argc, argv);
}
