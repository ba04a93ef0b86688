/* The n-th call of the disk fails, once or for ever, for every n (promise X5).
 *
 *     test_io_errors [--steps N] [--ways N] [case]
 *
 * For each kind of failure a workload is run again and again, the failure one call
 * later each time, until it ends without having met it.  After each run the store is
 * opened again: on what programs saw, and on what is left when the power fails, too.
 */
#include <stdlib.h>

#include "cut.h"
#include "ledger.h"
#include "testvfs.h"

/* clang-format off */
static const struct kind {
    const char *name; enum vfs_op op; int code; bool half; bool loses;
} kinds[] = {
    { "read",        VFS_READ,     SQLITE_IOERR_READ,       false, false },
    { "short read",  VFS_READ,     SQLITE_IOERR_SHORT_READ, true,  false },
    { "write",       VFS_WRITE,    SQLITE_IOERR_WRITE,      false, false },
    { "short write", VFS_WRITE,    SQLITE_IOERR_WRITE,      true,  false },
    { "disk full",   VFS_WRITE,    SQLITE_FULL,             true,  false },
    { "sync",        VFS_SYNC,     SQLITE_IOERR_FSYNC,      false, false },
    { "lossy sync",  VFS_SYNC,     SQLITE_IOERR_FSYNC,      false, true },
    { "truncate",    VFS_TRUNCATE, SQLITE_IOERR_TRUNCATE,   false, false },
    { "size",        VFS_SIZE,     SQLITE_IOERR_FSTAT,      false, false },
    { "lock",        VFS_LOCK,     SQLITE_IOERR_LOCK,       false, false },
    { "shm lock",    VFS_SHM_LOCK, SQLITE_IOERR_SHMLOCK,    false, false },
    { "shm map",     VFS_SHM_MAP,  SQLITE_IOERR_SHMMAP,     false, false },
    { "open",        VFS_OPEN,     SQLITE_CANTOPEN,         false, false },
    { "delete",      VFS_DELETE,   SQLITE_IOERR_DELETE,     false, false },
    { "access",      VFS_ACCESS,   SQLITE_IOERR_ACCESS,     false, false },
};
/* clang-format on */

struct plan_of_run {
    uint64_t steps;
    uint64_t ways; /* 4: a used and a new file, each once and for ever */
};

struct lab {
    struct tap *t;
    struct disk disk;
    struct testvfs vfs;
    struct rig rig;
    struct fake_clock clock;
    uint64_t steps;

    const struct kind *kind;
    bool sticky, armed, hit;
    bool opened;           /* before, a rollback journal may still be played back */
    uint64_t left;         /* calls until it happens */
    bool sync_failed[4];   /* of that part, by a handle that is still open */
    unsigned synced_again; /* X5 */

    int64_t acked, tried;
    unsigned runs, wrong;
    char what[96]; /* this run, for diagnostics */
};

static int strike(void *arg, struct vfs_call *call)
{
    struct lab *l = arg;

    if (call->op == VFS_SLEEP)
        return SQLITE_BUSY; /* nobody else would move */
    if (l->opened && call->op == VFS_SYNC && l->sync_failed[call->part])
        if (l->synced_again++ < 4)
            printf("# %s: part %d is synced again\n", l->what, (int)call->part);
    if (!l->armed || call->op != l->kind->op)
        return SQLITE_OK;
    if (l->hit ? !l->sticky : --l->left > 0)
        return SQLITE_OK;
    l->hit = true;
    call->half = l->kind->half;
    /* A database file that ends early reads as zeroes for SQLite: not an error. */
    if (l->kind->code == SQLITE_IOERR_SHORT_READ && call->part == VFS_DB)
        return SQLITE_IOERR_READ;
    if (call->op == VFS_SYNC)
        l->sync_failed[call->part] = true;
    if (l->kind->loses)
        disk_lose(&l->disk, call->part == VFS_WAL ? "-wal" : ".db");
    return l->kind->code;
}

static void complain(struct lab *l, const char *what)
{
    if (l->wrong++ < 8)
        printf("# %s: %s\n", l->what, what);
}

/* --- one run --- */

/* What a failing call may say: something of the family, in words. */
static void check_error(struct lab *l, belay_rc rc, const char *doing)
{
    char text[400];
    bool known =
        rc == BELAY_POISONED || rc == BELAY_UNKNOWN_OUTCOME || rc == BELAY_UNAVAILABLE;

    if (known && strlen(l->rig.err.message) > 8 && (belay_rc)l->rig.err.code == rc)
        return;
    (void)snprintf(text, sizeof(text), "%s: %s (%d): %s", doing,
                   belay_error_info((int)rc)->name, l->rig.err.code,
                   l->rig.err.message);
    complain(l, text);
}

static belay_rc nothing_body(struct txn *t, void *arg)
{
    struct value key = value_str("w0");
    const struct row *row;

    (void)arg;
    return txn_get(t, &row_thing, &key, &row);
}

/* Once a write has failed the handle acknowledges nothing any more, whatever the disk
 * says by then (X5). */
static void check_poisoned(struct lab *l, struct ledger_step *s)
{
    struct txn_options read_only = { .read_only = true };
    uint64_t left = l->left;
    bool sticky = l->sticky;

    l->sticky = false; /* the disk is well again */
    for (int i = 0; i < 2; i++) {
        *s = (struct ledger_step){ .slot = 0, .rig = &l->rig };
        if (rig_run(&l->rig, ledger_body, s) != BELAY_POISONED)
            complain(l, "a handle whose disk had failed went on writing");
        if (txn_run(l->rig.space, nothing_body, NULL, &read_only, &l->rig.arena,
                    &l->rig.err) != BELAY_POISONED)
            complain(l, "a handle whose disk had failed went on reading");
    }
    l->sticky = sticky;
    l->left = left;
}

static bool poisons(const struct lab *l, belay_rc rc)
{
    return rc == BELAY_POISONED || rc == BELAY_UNKNOWN_OUTCOME ||
           l->kind->op == VFS_WRITE || l->kind->op == VFS_SYNC;
}

static void work(struct lab *l, struct ledger_step *s)
{
    belay_rc rc = rig_open(&l->rig);

    if (rc) {
        check_error(l, rc, "open");
        return;
    }
    l->opened = true;
    for (uint64_t i = 0; i < l->steps && !rc; i++) {
        *s =
            (struct ledger_step){ .slot = 0, .checkpoint = i % 3 == 2, .rig = &l->rig };
        fake_advance_us(&l->clock, 300000);
        l->tried = l->acked + 1;
        rc = rig_run(&l->rig, ledger_body, s);
        if (!rc)
            l->acked = s->step;
        else
            check_error(l, rc, "step");
        if (rc && poisons(l, rc))
            check_poisoned(l, s);
    }
    l->opened = false;
    rig_close(&l->rig);
}

/* --- afterwards --- */

/* The store is opened again, which makes everything safe that a sync which failed may have
 * lost: after that nothing depends on what only the kernel's memory holds. */
static void go_on(struct lab *l)
{
    if (rig_open(&l->rig))
        complain(l, "cannot go on");
    else
        rig_close(&l->rig);
}

/* Opened on a disk that works: all that was acknowledged is there, and perhaps the step
 * that failed. */
static void check_after(struct lab *l, const char *when)
{
    struct ledger sums;
    char why[200], text[256];

    if (rig_open(&l->rig)) {
        (void)snprintf(text, sizeof(text), "%s: cannot be opened: %.200s", when,
                       l->rig.err.message);
        complain(l, text);
        return;
    }
    bool adds_up = ledger_check(&l->rig, &sums, why);
    const char *intact = rig_integrity(&l->rig, text);
    if (strcmp(intact, "ok") != 0)
        complain(l, intact);
    else if (!adds_up && sums.total > 0)
        complain(l, why);
    else if (sums.total < l->acked || sums.total > l->tried) {
        (void)snprintf(text, sizeof(text), "%s: %lld steps, %lld acknowledged", when,
                       (long long)sums.total, (long long)l->acked);
        complain(l, text);
    }
    rig_close(&l->rig);
}

static void check_power_loss(struct lab *l, const struct disk_image *start)
{
    struct disk_image left = { .files[0].exists = false };
    struct rng rng;
    struct cut cut;

    rng_init(&rng, l->runs);
    cut_init(&cut, start, false);
    for (size_t i = 0; i < l->disk.n_events; i++)
        cut_follow(&cut, &l->disk.events[i]);
    for (int i = 0; i < 2; i++) {
        cut_image(&cut, i ? CUT_RANDOM : CUT_NONE, &rng, &left);
        disk_load(&l->disk, &left);
        check_after(l, i ? "after power loss, some arrived" : "after power loss");
    }
    disk_image_release(&left);
    cut_release(&cut);
}

/* One run; false when the failure was not met. */
static bool run_once(struct lab *l, const struct disk_image *start, int64_t steps,
                     uint64_t n, struct ledger_step *s)
{
    (void)snprintf(l->what, sizeof(l->what), "%s, call %llu, %s, %s", l->kind->name,
                   (unsigned long long)n, l->sticky ? "for ever" : "once",
                   steps > 0 ? "on a used file" : "on a new file");
    l->runs++;
    l->acked = l->tried = steps;
    disk_load(&l->disk, start);
    disk_forget_events(&l->disk);
    memset(l->sync_failed, 0, sizeof(l->sync_failed));
    l->left = n;
    l->hit = false;
    l->armed = l->disk.recording = true;
    work(l, s);
    l->armed = false;
    if (l->kind->loses && l->hit)
        go_on(l);
    l->disk.recording = false;
    if (!l->hit)
        return false;
    check_after(l, "afterwards");
    check_power_loss(l, start);
    return true;
}

/* A store with some steps in it, its WAL not yet copied. */
static int64_t make_used(struct lab *l, struct ledger_step *s, struct disk_image *out)
{
    int64_t steps = 0;

    if (!CHECK_RC(l->t, rig_open(&l->rig), BELAY_OK))
        return 0;
    for (; steps < 5; steps++) {
        *s = (struct ledger_step){ .slot = 0, .rig = &l->rig };
        CHECK_RC(l->t, rig_run(&l->rig, ledger_body, s), BELAY_OK);
    }
    rig_close(&l->rig);
    disk_save(&l->disk, out);
    return steps;
}

static void run_kind(struct tap *t, const struct kind *kind)
{
    const struct plan_of_run *plan = t->arg;
    struct lab *l = calloc(1, sizeof(*l));
    struct ledger_step *s = calloc(1, sizeof(*s));
    struct disk_image empty = { .files[0].exists = false };
    struct disk_image used = { .files[0].exists = false };
    uint64_t last = 0;

    if (!l || !s)
        abort();
    l->t = t;
    l->kind = kind;
    l->steps = plan->steps;
    disk_install(&l->disk);
    testvfs_install(&l->vfs, &l->disk.vfs, strike, l);
    rig_init(&l->rig);
    atomic_store(&l->clock.wall_ms, (int64_t)1750000000000);
    l->rig.clock = fake_clock_hook(&l->clock);
    int64_t steps = make_used(l, s, &used);
    for (uint64_t way = 0; way < plan->ways; way++) {
        bool fresh = way & 1;
        l->sticky = way & 2;
        for (last = 1; run_once(l, fresh ? &empty : &used, fresh ? 0 : steps, last, s);)
            last++;
    }
    TAP_EQ(t, l->wrong, 0);
    TAP_EQ(t, l->synced_again, 0);
    printf("# %s: %u runs, %u wrong\n", kind->name, l->runs, l->wrong);
    disk_image_release(&used);
    rig_release(&l->rig);
    testvfs_remove(&l->vfs);
    disk_release(&l->disk);
    free(s);
    free(l);
}

/* clang-format off */
static void kind_0(struct tap *t) { run_kind(t, &kinds[0]); }
static void kind_1(struct tap *t) { run_kind(t, &kinds[1]); }
static void kind_2(struct tap *t) { run_kind(t, &kinds[2]); }
static void kind_3(struct tap *t) { run_kind(t, &kinds[3]); }
static void kind_4(struct tap *t) { run_kind(t, &kinds[4]); }
static void kind_5(struct tap *t) { run_kind(t, &kinds[5]); }
static void kind_6(struct tap *t) { run_kind(t, &kinds[6]); }
static void kind_7(struct tap *t) { run_kind(t, &kinds[7]); }
static void kind_8(struct tap *t) { run_kind(t, &kinds[8]); }
static void kind_9(struct tap *t) { run_kind(t, &kinds[9]); }
static void kind_10(struct tap *t) { run_kind(t, &kinds[10]); }
static void kind_11(struct tap *t) { run_kind(t, &kinds[11]); }
static void kind_12(struct tap *t) { run_kind(t, &kinds[12]); }
static void kind_13(struct tap *t) { run_kind(t, &kinds[13]); }
static void kind_14(struct tap *t) { run_kind(t, &kinds[14]); }

static const struct tap_case cases[] = {
    { "io: reading fails",                      kind_0 },
    { "io: reading gives too little",           kind_1 },
    { "io: writing fails",                      kind_2 },
    { "io: writing stops half-way",             kind_3 },
    { "io: the disk is full",                   kind_4 },
    { "io: syncing fails",                      kind_5 },
    { "io: syncing fails and loses its data",   kind_6 },
    { "io: truncating fails",                   kind_7 },
    { "io: asking for the size fails",          kind_8 },
    { "io: locking the file fails",             kind_9 },
    { "io: locking the shared memory fails",    kind_10 },
    { "io: mapping the shared memory fails",    kind_11 },
    { "io: opening fails",                      kind_12 },
    { "io: deleting fails",                     kind_13 },
    { "io: asking for a name fails",            kind_14 },
};
/* clang-format on */

int main(int argc, char **argv)
{
    struct plan_of_run plan = { .steps = option_u64(&argc, argv, "--steps", 6),
                                .ways = option_u64(&argc, argv, "--ways", 4) };

    return tap_main(cases, COUNT_OF(cases), &plan, argc, argv);
}
