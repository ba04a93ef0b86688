/* Commits and the disk: who waits for it, who need not, who is told when it fails. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/drivers/sqlite/impl.h"
#include "store/txn.h"
#include "tap.h"
#include "testvfs.h"
#include "things.h"

/* --- a disk that can be stopped --- */

struct lab {
    struct tap *t;
    struct testvfs vfs;
    char dir[128], path[192];
    atomic_bool watching, stopped, fails;
    atomic_uint syncs, writes, waiting; /* of the log, while watching */
};

static void nap(void)
{
    struct belay_clock clock = clock_system();

    clock.sleep_us(clock.arg, 200);
}

static int on_disk(void *arg, struct vfs_call *call)
{
    struct lab *l = arg;

    if (call->part != VFS_WAL || !atomic_load(&l->watching))
        return SQLITE_OK;
    atomic_fetch_add(&l->writes, call->op == VFS_WRITE);
    if (call->op != VFS_SYNC)
        return SQLITE_OK;
    atomic_fetch_add(&l->syncs, 1);
    atomic_fetch_add(&l->waiting, 1);
    while (atomic_load(&l->stopped))
        nap();
    atomic_fetch_sub(&l->waiting, 1);
    return atomic_load(&l->fails) ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static bool lab_make(struct lab *l, struct tap *t)
{
    const char *base = getenv("TMPDIR");

    *l = (struct lab){ .t = t };
    (void)snprintf(l->dir, sizeof(l->dir), "%s/belay-XXXXXX",
                   base && *base ? base : "/tmp");
    if (!TAP_OK(t, mkdtemp(l->dir) != NULL))
        return false;
    (void)snprintf(l->path, sizeof(l->path), "%s/a.db", l->dir);
    testvfs_install(&l->vfs, NULL, on_disk, l);
    return true;
}

static void lab_remove(struct lab *l)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-belay", "-wake" };
    char path[256];

    testvfs_remove(&l->vfs);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", l->path, ends[i]);
        (void)unlink(path);
    }
    (void)rmdir(l->dir);
}

static void await(const atomic_uint *n, unsigned at_least)
{
    while (atomic_load(n) < at_least)
        nap();
}

/* --- handles --- */

struct handle {
    struct driver *driver;
    struct store *store;
    struct space *space;
};

static bool handle_open(struct lab *l, struct handle *h)
{
    struct driver_config config = { &schema_things, clock_system(), random_system() };
    struct store_options options = { .schema = &schema_things,
                                     .clock = config.clock,
                                     .random = config.random };
    struct belay_error err = { .code = 0 };

    *h = (struct handle){ .driver = NULL };
    belay_rc rc = sqlite_open(&h->driver, l->path, &config, &err);
    if (!rc)
        rc = store_open(&h->store, h->driver, &options, &err);
    if (!rc)
        rc = store_space(h->store, bytes_str("default"), &h->space, &err);
    return rc ? TAP_STR(l->t, err.message, "") : true;
}

static void handle_close(struct handle *h)
{
    store_close(h->store);
    driver_close(h->driver);
}

/* Part `no` is set to n; read is what it was before. */
struct deed {
    struct handle *h;
    int64_t no, n, read;
    int rows; /* that many, from `no` on; 0: one */
    bool only_reads;
    atomic_uint runs;
    pthread_t thread;
    belay_rc rc;
    atomic_bool done;
};

static belay_rc do_row(struct txn *t, struct deed *d, int64_t no)
{
    const struct value v[PART_COLUMNS] = { value_str("p"), value_i64(no),
                                           value_i64(d->n) };
    const struct change change = { PART_N, v[PART_N] };
    const struct row *row;
    belay_rc rc = txn_get(t, &row_part, v, &row);

    if (rc)
        return rc;
    d->read = row ? row_i64(row, PART_N, 0) : 0;
    if (d->only_reads)
        return BELAY_OK;
    return row ? txn_put(t, &row_part, v, &change, 1) : txn_insert(t, &row_part, v);
}

static belay_rc do_deed(struct txn *t, void *arg)
{
    struct deed *d = arg;
    belay_rc rc = do_row(t, d, d->no);

    for (int i = 1; i < d->rows && !rc; i++)
        rc = do_row(t, d, d->no + i);
    atomic_fetch_add(&d->runs, 1);
    return rc;
}

static void *call(void *arg)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct deed *d = arg;
    const struct txn_options options = { .read_only = d->only_reads };

    d->rc = txn_run(d->h->space, do_deed, d, &options, &arena, NULL);
    atomic_store(&d->done, true);
    return NULL;
}

static void start(struct lab *l, struct deed *d)
{
    TAP_EQ(l->t, pthread_create(&d->thread, NULL, call, d), 0);
}

static belay_rc finish(struct deed *d)
{
    (void)pthread_join(d->thread, NULL);
    return d->rc;
}

static belay_rc at_once(struct deed *d)
{
    (void)call(d);
    return d->rc;
}

/* --- cases --- */

static void frames_go_together(struct tap *t)
{
    struct lab l;
    struct handle h;

    if (!lab_make(&l, t))
        return;
    if (handle_open(&l, &h)) {
        struct deed warm = { .h = &h, .n = 1 };
        struct deed many = { .h = &h, .no = 1, .n = 1, .rows = 400 };
        TAP_EQ(t, at_once(&warm), BELAY_OK);
        atomic_store(&l.watching, true);
        TAP_EQ(t, at_once(&many), BELAY_OK);
        TAP_EQ(t, atomic_load(&l.syncs), 1);
        TAP_EQ(t, atomic_load(&l.writes), 1); /* some ten frames of two writes each */
        handle_close(&h);
    }
    lab_remove(&l);
}

static void groups_overlap_the_disk(struct tap *t)
{
    struct lab l;
    struct handle h;

    if (!lab_make(&l, t))
        return;
    if (handle_open(&l, &h)) {
        struct deed warm = { .h = &h, .n = 1 };
        struct deed first = { .h = &h, .n = 2 }, second = { .h = &h, .n = 3 };
        TAP_EQ(t, at_once(&warm), BELAY_OK);
        atomic_store(&l.stopped, true);
        atomic_store(&l.watching, true);
        start(&l, &first);
        await(&l.waiting, 1);
        start(&l, &second);
        await(&second.runs, 1); /* it runs while the first one waits for the disk, */
        TAP_EQ(t, second.read, 2);
        TAP_OK(t, !atomic_load(&second.done)); /* but what it saw may yet be lost */
        TAP_OK(t, !atomic_load(&first.done));
        atomic_store(&l.stopped, false);
        TAP_EQ(t, finish(&first), BELAY_OK);
        TAP_EQ(t, finish(&second), BELAY_OK);
        handle_close(&h);
    }
    lab_remove(&l);
}

/* Of this handle, and of another one as if it were another process. */
static void reader_waits(struct lab *l, struct handle *writer, struct handle *reader)
{
    struct deed write = { .h = writer, .n = 7 };
    struct deed read = { .h = reader, .only_reads = true };

    atomic_store(&l->stopped, true);
    atomic_store(&l->watching, true);
    start(l, &write);
    await(&l->waiting, 1);
    start(l, &read);
    if (reader == writer) {
        for (int i = 0; i < 50; i++)
            nap();
    } else {
        await(&l->waiting, 2); /* it syncs by itself */
    }
    TAP_OK(l->t, !atomic_load(&read.done));
    atomic_store(&l->stopped, false);
    TAP_EQ(l->t, finish(&write), BELAY_OK);
    TAP_EQ(l->t, finish(&read), BELAY_OK);
    TAP_EQ(l->t, read.read, 7);
    atomic_store(&l->watching, false);
}

static void readers_wait_for_the_disk(struct tap *t)
{
    struct lab l;
    struct handle a, b;

    if (!lab_make(&l, t))
        return;
    if (handle_open(&l, &a)) {
        struct deed warm = { .h = &a, .n = 1 };
        TAP_EQ(t, at_once(&warm), BELAY_OK);
        reader_waits(&l, &a, &a);
        if (handle_open(&l, &b)) {
            reader_waits(&l, &a, &b);
            handle_close(&b);
        }
        handle_close(&a);
    }
    lab_remove(&l);
}

static void readers_sync_nothing(struct tap *t)
{
    struct lab l;
    struct handle h;

    if (!lab_make(&l, t))
        return;
    if (handle_open(&l, &h)) {
        struct deed write = { .h = &h, .n = 1 };
        struct deed read = { .h = &h, .only_reads = true };
        TAP_EQ(t, at_once(&write), BELAY_OK);
        atomic_store(&l.watching, true);
        TAP_EQ(t, at_once(&read), BELAY_OK);
        TAP_EQ(t, atomic_load(&l.syncs), 0);
        handle_close(&h);
    }
    lab_remove(&l);
}

/* X5 */
static void a_failed_sync_is_known_to_all(struct tap *t)
{
    struct lab l;
    struct handle h;

    if (!lab_make(&l, t))
        return;
    if (handle_open(&l, &h)) {
        struct deed warm = { .h = &h, .n = 1 };
        struct deed first = { .h = &h, .n = 2 }, second = { .h = &h, .n = 3 };
        struct deed third = { .h = &h, .only_reads = true };
        TAP_EQ(t, at_once(&warm), BELAY_OK);
        atomic_store(&l.fails, true);
        atomic_store(&l.stopped, true);
        atomic_store(&l.watching, true);
        start(&l, &first);
        await(&l.waiting, 1);
        start(&l, &second);
        await(&second.runs, 1);
        atomic_store(&l.stopped, false);
        TAP_EQ(t, finish(&first), BELAY_UNKNOWN_OUTCOME);
        TAP_EQ(t, finish(&second), BELAY_UNKNOWN_OUTCOME);
        TAP_EQ(t, atomic_load(&l.syncs), 1); /* a second try would say it is there */
        TAP_EQ(t, at_once(&third), BELAY_POISONED);
        handle_close(&h);
    }
    lab_remove(&l);
}

/* X1: the page that processes share is a hint, whoever wrote what there. */
static void the_page_is_not_believed(struct tap *t)
{
    struct lab l;
    struct handle h;

    if (!lab_make(&l, t))
        return;
    if (handle_open(&l, &h)) {
        struct deed write = { .h = &h, .n = 1 };
        struct wakefile *page = ((struct sqlite_store *)h.driver)->wakefile;
        TAP_EQ(t, at_once(&write), BELAY_OK);
        atomic_store(&wakefile_marks(page)->synced, UINT64_MAX);
        atomic_store(&l.watching, true);
        TAP_EQ(t, at_once(&write), BELAY_OK);
        TAP_EQ(t, atomic_load(&l.syncs), 1);
        handle_close(&h);
    }
    lab_remove(&l);
}

static void others_rows_are_seen(struct tap *t)
{
    struct lab l;
    struct handle a, b;

    if (!lab_make(&l, t))
        return;
    if (handle_open(&l, &a)) {
        if (handle_open(&l, &b)) {
            for (int64_t n = 1; n <= 20; n += 2) { /* each has the row in mind */
                struct deed one = { .h = &a, .n = n }, two = { .h = &b, .n = n + 1 };
                TAP_EQ(t, at_once(&one), BELAY_OK);
                TAP_EQ(t, one.read, n - 1);
                TAP_EQ(t, at_once(&two), BELAY_OK);
                TAP_EQ(t, two.read, n);
            }
            handle_close(&b);
        }
        handle_close(&a);
    }
    lab_remove(&l);
}

static const struct tap_case cases[] = {
    { "sync: the frames of a commit are one write and one sync", frames_go_together },
    { "sync: a group runs while the one before it waits for the disk",
      groups_overlap_the_disk },
    { "sync: nobody reads out what is not on the disk yet", readers_wait_for_the_disk },
    { "sync: a reader with nothing to wait for syncs nothing", readers_sync_nothing },
    { "sync: when it fails, nobody who rests on it is told it is there",
      a_failed_sync_is_known_to_all },
    { "sync: no page of another's talks a writer out of it", the_page_is_not_believed },
    { "rows: what another handle wrote is seen, whatever this one has in mind",
      others_rows_are_seen },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
