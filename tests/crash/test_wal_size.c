/* The size of the WAL: bounded under load, bounded with a slow reader, small again
 * after. */
#include <stdlib.h>

#include "disk.h"
#include "rig.h"
#include "testvfs.h"

#define MIB ((size_t)1 << 20)
#define CHUNK (MIB - 4096)

/* Limits as documented in wal.c, and what one commit may add to them. */
#define PASSIVE (15000 * (size_t)4120)
#define RESTART (64 * MIB)
#define WAIT (256 * MIB)
#define SLACK (6 * MIB)

/* WAL_CKPT_LOCK: the first thing a checkpoint takes. */
#define CHECKPOINT_SLOT 1

struct lab {
    struct tap *t;
    struct disk disk;
    struct testvfs vfs;
    struct rig rig;
    struct fake_clock clock;
    uint8_t *chunk;
    int64_t n;
    void *attempt;      /* the slow reader's */
    size_t slept_us;    /* by a writer that waits for it */
    size_t patience_us; /* then the reader ends; 0: never */
    bool swap;          /* a new reader takes its place whenever a checkpoint begins */
};

static void reader_end(struct lab *l)
{
    if (l->attempt)
        driver_end(l->rig.driver, l->attempt);
    free(l->attempt);
    l->attempt = NULL;
}

static void *reader_begin(struct lab *l);

static int count_sleep(void *arg, struct vfs_call *call)
{
    struct lab *l = arg;

    if (l->swap && call->op == VFS_SHM_LOCK && call->amount == CHECKPOINT_SLOT &&
        call->flags & SQLITE_SHM_EXCLUSIVE) {
        void *next = reader_begin(l);
        reader_end(l);
        l->attempt = next;
        l->patience_us = l->slept_us + 20000;
    }
    if (call->op != VFS_SLEEP)
        return SQLITE_OK;
    l->slept_us += (size_t)call->amount;
    if (l->patience_us && l->slept_us >= l->patience_us)
        reader_end(l); /* the writer waits in this very thread */
    return SQLITE_BUSY;
}

static bool lab_open(struct lab *l, struct tap *t)
{
    memset(l, 0, sizeof(*l));
    l->t = t;
    l->chunk = calloc(1, CHUNK);
    if (!l->chunk)
        abort();
    disk_install(&l->disk);
    testvfs_install(&l->vfs, &l->disk.vfs, count_sleep, l);
    rig_init(&l->rig);
    atomic_store(&l->clock.wall_ms, (int64_t)1750000000000);
    l->rig.clock = fake_clock_hook(&l->clock);
    return CHECK_RC(t, rig_open(&l->rig), BELAY_OK);
}

static void lab_close(struct lab *l)
{
    reader_end(l);
    rig_release(&l->rig);
    testvfs_remove(&l->vfs);
    disk_release(&l->disk);
    free(l->chunk);
}

static belay_rc chunk_body(struct txn *t, void *arg)
{
    struct lab *l = arg;

    return txn_chunk_put(t, bytes_str("load"), l->n % 8, bytes_of(l->chunk, CHUNK));
}

/* About a mebibyte each; the file stays at eight of them. */
static size_t commit_mib(struct lab *l, unsigned n)
{
    size_t largest = 0;

    for (unsigned i = 0; i < n; i++) {
        l->n++;
        memset(l->chunk, (int)l->n,
               CHUNK); /* pages that do not change are not written */
        if (!CHECK_RC(l->t, rig_run(&l->rig, chunk_body, l), BELAY_OK)) {
            printf("# %s\n", l->rig.err.message);
            break;
        }
        size_t size = disk_size(&l->disk, "-wal");
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* A read-only attempt that has read and is not ended. */
static void *reader_begin(struct lab *l)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    void *attempt = calloc(1, l->rig.driver->attempt_size);
    struct read q = { .kind = READ_CHUNK, .chunk = { .upload = bytes_str("load") } };

    if (!attempt)
        abort();
    CHECK_RC(l->t, driver_begin(l->rig.driver, attempt, bytes_str("default"), NULL),
             BELAY_OK);
    CHECK_RC(l->t, driver_read(l->rig.driver, attempt, &q, 1, &arena, NULL), BELAY_OK);
    return attempt;
}

static void steady_load(struct tap *t)
{
    struct lab l;

    if (lab_open(&l, t)) {
        size_t largest = commit_mib(&l, 200);
        printf("# 200 MiB written, the WAL at most %zu MiB\n", largest / MIB);
        TAP_OK(t, largest <= PASSIVE + SLACK);
    }
    lab_close(&l);
}

static void slow_reader(struct tap *t)
{
    struct lab l;

    if (lab_open(&l, t)) {
        (void)commit_mib(&l, 10);
        l.attempt = reader_begin(&l);
        size_t held = commit_mib(&l, 100);
        TAP_OK(t, held > RESTART); /* it cannot be begun anew */
        TAP_OK(t, held < 120 * MIB);
        reader_end(&l);
        size_t after = commit_mib(&l, 200);
        printf("# with a reader %zu MiB, after it %zu MiB\n", held / MIB, after / MIB);
        TAP_OK(t, after <= held + SLACK); /* used again, not grown */
        TAP_EQ(t, rig_sqlite(&l.rig)->wal_pages <= 8300, 1);
    }
    lab_close(&l);
}

static void writers_wait(struct tap *t)
{
    struct lab l;

    if (lab_open(&l, t)) {
        (void)commit_mib(&l, 10);
        l.attempt = reader_begin(&l);
        (void)commit_mib(&l, 240);
        size_t before = l.slept_us;
        l.patience_us = before + 3000000; /* it ends three seconds into the wait */
        size_t largest = commit_mib(&l, 100);
        printf("# the WAL at most %zu MiB; writers waited %zu ms\n", largest / MIB,
               (l.slept_us - before) / 1000);
        TAP_OK(t, l.attempt == NULL);
        TAP_OK(t, largest <= WAIT + SLACK);
    }
    lab_close(&l);
}

/* One reader after the other, each begun before the last has ended: the log is copied
 * each time and yet never free. */
static void overlapping_readers(struct tap *t)
{
    struct lab l;
    size_t largest = 0;

    if (lab_open(&l, t)) {
        for (unsigned i = 0; i < 160; i++) {
            void *next = reader_begin(&l);
            reader_end(&l);
            l.attempt = next;
            l.patience_us = l.slept_us + 20000; /* a short one, too */
            size_t size = commit_mib(&l, 1);
            largest = size > largest ? size : largest;
        }
        printf("# 160 MiB under readers that overlap, the WAL at most %zu MiB\n",
               largest / MIB);
        TAP_OK(t, largest <= RESTART + SLACK);
    }
    lab_close(&l);
}

/* The worst of these: each has seen the last commit, so that everything can be copied,
 * and each is there at the next one, so that the log is not begun anew. */
static void fast_readers(struct tap *t)
{
    struct lab l;

    if (lab_open(&l, t)) {
        l.swap = true;
        size_t largest = commit_mib(&l, 160);
        printf("# 160 MiB, a reader whenever one is not wanted: at most %zu MiB\n",
               largest / MIB);
        TAP_OK(t, largest <= RESTART + SLACK);
    }
    lab_close(&l);
}

static const struct tap_case cases[] = {
    { "wal: bounded under a steady load", steady_load },
    { "wal: grows with a slow reader, is used again after", slow_reader },
    { "wal: writers wait for a reader that is too slow", writers_wait },
    { "wal: bounded under readers that overlap", overlapping_readers },
    { "wal: bounded under readers that are always up to date", fast_readers },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
