/* Power loss at every write and sync of a scripted workload (promises L9, X1, X3).
 *
 *     test_power_loss [--seed S] [--subsets N] [--steps N] [case]
 *
 * The workload runs once, on a disk in memory that records what is done to it.  Then,
 * for every point of the record, several disks are made that the power loss could have
 * left (cut.h): each must open, be intact, and hold exactly what was acknowledged, or
 * that and the one transaction that was under way.  --subsets repeats the random ones.
 */
#include <stdlib.h>

#include "cut.h"
#include "ledger.h"

struct plan_of_run {
    uint64_t seed, subsets, steps;
};

struct lab {
    struct tap *t;
    struct disk disk;
    struct rig rig;
    struct fake_clock clock;
    struct rng rng;
    uint64_t steps;
    bool unsynced;    /* commits are not synced: it must lose something */
    struct buf *dump; /* [i]: after i acknowledgements */
    size_t acked;
    unsigned points, cuts, again;
    unsigned lost, wrong; /* cuts that were older than the last answer; other states */
};

static void lab_open(struct lab *l, struct tap *t)
{
    const struct plan_of_run *plan = t->arg;

    memset(l, 0, sizeof(*l));
    l->t = t;
    l->steps = plan->steps;
    rng_init(&l->rng, plan->seed);
    disk_install(&l->disk);
    rig_init(&l->rig);
    atomic_store(&l->clock.wall_ms, (int64_t)1750000000000);
    atomic_store(&l->clock.mono_us, 1000000);
    l->rig.clock = fake_clock_hook(&l->clock);
    l->dump = calloc(l->steps + 2, sizeof(*l->dump));
    if (!l->dump)
        abort();
}

static void lab_close(struct lab *l)
{
    rig_release(&l->rig);
    disk_release(&l->disk);
    for (size_t i = 0; i < l->steps + 2; i++)
        buf_release(&l->dump[i]);
    free(l->dump);
}

/* --- the workload --- */

static bool open_store(struct lab *l)
{
    if (!CHECK_RC(l->t, rig_open(&l->rig), BELAY_OK)) {
        printf("# %s\n", l->rig.err.message);
        return false;
    }
    if (l->unsynced) { /* as if it had been done already */
        struct sqlite_store *store = rig_sqlite(&l->rig);
        atomic_store(&store->durable, UINT64_MAX);
        atomic_store(&wakefile_marks(store->wakefile)->synced, UINT64_MAX);
    }
    return true;
}

static void keep_dump(struct lab *l)
{
    buf_release(&l->dump[l->acked]);
    l->dump[l->acked] = rig_dump(&l->rig);
    TAP_OK(l->t, !l->dump[l->acked].failed);
}

/* Founds the namespace, which takes commits of its own, and changes nothing else. */
static belay_rc found_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_chunk_drop(t, bytes_str("none"), 0);
}

static void work(struct lab *l)
{
    struct ledger_step *s = calloc(1, sizeof(*s));

    if (!s)
        abort();
    l->disk.recording = true;
    if (open_store(l))
        keep_dump(l);
    for (size_t i = 1; l->rig.driver && i <= l->steps; i++) {
        *s = (struct ledger_step){ .slot = i % 3 == 0,
                                   .checkpoint = i % 6 == 0,
                                   .rig = &l->rig };
        fake_advance_us(&l->clock, 300000);
        txn_body *body = i == 1 ? found_body : ledger_body;
        if (!CHECK_RC(l->t, rig_run(&l->rig, body, s), BELAY_OK))
            break;
        l->acked = i;
        disk_mark(&l->disk, i);
        keep_dump(l);
        if (i % 10 == 9) { /* closed and opened again, the WAL left as it is */
            rig_close(&l->rig);
            if (!open_store(l))
                break;
        }
    }
    rig_close(&l->rig);
    l->disk.recording = false;
    free(s);
}

/* --- what is left --- */

static void complain(struct lab *l, size_t at, int how, const char *what)
{
    if (l->wrong++ < 5)
        printf("# point %zu, kind %d: %s\n", at, how, what);
}

/* Which acknowledgement the store is at; -1: at none. */
static int64_t state_of(struct lab *l, const struct buf *dump, size_t near)
{
    for (size_t i = near + 1; i + 1 > 0; i--) {
        if (l->dump[i].ptr && dump->len == l->dump[i].len &&
            memcmp(dump->ptr, l->dump[i].ptr, dump->len) == 0)
            return (int64_t)i;
        if (i == 0)
            break;
    }
    return -1;
}

/* Opens what is left and compares; true when it may be so. */
static bool look(struct lab *l, size_t at, int how, size_t acked, bool keep_open)
{
    CLEANUP(buf_release) struct buf dump = { .ptr = NULL };
    char text[128];

    if (rig_open(&l->rig)) {
        complain(l, at, how, l->rig.err.message);
        return false;
    }
    dump = rig_dump(&l->rig);
    int64_t state = dump.failed ? -1 : state_of(l, &dump, acked);
    const char *intact = rig_integrity(&l->rig, text);
    if (!keep_open)
        rig_close(&l->rig);
    if (strcmp(intact, "ok") != 0)
        complain(l, at, how, intact);
    else if (state < 0)
        complain(l, at, how, "neither what was acknowledged nor that and one more");
    else if ((size_t)state < acked)
        l->lost++;
    return state >= (int64_t)acked && strcmp(intact, "ok") == 0;
}

/* The power fails again while the store recovers (X3). */
static void cut_again(struct lab *l, size_t at, int how, size_t acked,
                      const struct disk_image *left)
{
    struct disk_image second = { .files[0].exists = false };
    struct cut cut;

    disk_forget_events(&l->disk);
    disk_load(&l->disk, left);
    l->disk.recording = true;
    (void)look(l, at, how, acked, false);
    l->disk.recording = false;
    struct disk_event *events = l->disk.events;
    size_t n = l->disk.n_events;
    cut_init(&cut, left, l->disk.powersafe);
    for (size_t i = 0; i < n; i++) {
        cut_follow(&cut, &events[i]);
        if (rng_below(&l->rng, 4) != 0)
            continue;
        cut_image(&cut, rng_below(&l->rng, 2) ? CUT_RANDOM : CUT_TORN, &l->rng,
                  &second);
        disk_load(&l->disk, &second);
        (void)look(l, at, how, acked, false);
        l->again++;
    }
    cut_release(&cut);
    disk_image_release(&second);
}

/* A store that was left like this works: the next step commits, all adds up. */
static void go_on(struct lab *l, size_t at, int how)
{
    struct ledger_step *s = calloc(1, sizeof(*s));
    struct ledger sums;
    char why[200];

    if (!s)
        abort();
    s->slot = 1;
    if (rig_run(&l->rig, ledger_body, s))
        complain(l, at, how, l->rig.err.message);
    else if (!ledger_check(&l->rig, &sums, why))
        complain(l, at, how, why);
    rig_close(&l->rig);
    free(s);
}

static void cut_once(struct lab *l, const struct cut *cut, size_t at, enum cut_how how,
                     size_t acked)
{
    struct disk_image left = { .files[0].exists = false };
    uint64_t dice = rng_below(&l->rng, 64);

    cut_image(cut, how, &l->rng, &left);
    disk_load(&l->disk, &left);
    bool goes_on = dice < 4 && !l->unsynced;
    bool held = look(l, at, (int)how, acked, goes_on);
    if (goes_on && held)
        go_on(l, at, (int)how);
    rig_close(&l->rig);
    if (dice == 63 && !l->unsynced)
        cut_again(l, at, (int)how, acked, &left);
    l->cuts++;
    disk_image_release(&left);
}

static void cut_everywhere(struct lab *l)
{
    const struct plan_of_run *plan = l->t->arg;
    struct disk_image empty = { .files[0].exists = false };
    struct disk_event *events = l->disk.events;
    size_t n = l->disk.n_events, acked = 0;
    struct cut cut;

    l->disk.events = NULL; /* the record of the workload is ours now */
    l->disk.n_events = l->disk.cap_events = 0;
    cut_init(&cut, &empty, l->disk.powersafe);
    for (size_t i = 0; i < n; i++) {
        cut_follow(&cut, &events[i]);
        if (events[i].kind == DISK_MARK)
            acked = events[i].offset;
        bool writes = events[i].kind == DISK_WRITE || events[i].kind == DISK_TRUNCATE;
        l->points++;
        if (!writes) /* between syncs the same as before */
            cut_once(l, &cut, i, CUT_NONE, acked);
        if (!cut_is_open(&cut))
            continue;
        cut_once(l, &cut, i, CUT_ALL, acked);
        for (uint64_t j = 0; j < plan->subsets; j++) {
            for (enum cut_how how = CUT_PREFIX; how < CUT_HOWS; how++)
                cut_once(l, &cut, i, how, acked);
        }
    }
    cut_release(&cut);
    for (size_t i = 0; i < n; i++)
        free(events[i].data);
    free(events);
}

/* --- cases --- */

static void run_lab(struct tap *t, bool powersafe, bool unsynced)
{
    struct lab l;

    lab_open(&l, t);
    l.disk.powersafe = powersafe;
    l.unsynced = unsynced;
    work(&l);
    if (TAP_EQ(t, l.acked, l.steps))
        cut_everywhere(&l);
    printf("# %u points, %u power losses and %u during recovery, %u lost, %u wrong\n",
           l.points, l.cuts, l.again, l.lost, l.wrong);
    TAP_EQ(t, l.wrong, 0);
    if (unsynced)
        TAP_OK(t, l.lost > 0);
    else
        TAP_EQ(t, l.lost, 0);
    lab_close(&l);
}

static void full_on_a_plain_disk(struct tap *t)
{
    run_lab(t, false, false);
}

static void full_on_a_powersafe_disk(struct tap *t)
{
    run_lab(t, true, false);
}

static void unsynced_loses(struct tap *t)
{
    run_lab(t, true, true);
}

static const struct tap_case cases[] = {
    { "power loss: a disk that tears sectors loses nothing that was acknowledged",
      full_on_a_plain_disk },
    { "power loss: nor does one that writes only what it is told",
      full_on_a_powersafe_disk },
    { "power loss: without the sync of a commit acknowledged ones are lost",
      unsynced_loses },
};

int main(int argc, char **argv)
{
    struct plan_of_run plan = {
        .seed = option_u64(&argc, argv, "--seed", 1),
        .subsets = option_u64(&argc, argv, "--subsets", 1),
        .steps = option_u64(&argc, argv, "--steps", 24),
    };

    printf("# seed %llu, subsets %llu, steps %llu\n", (unsigned long long)plan.seed,
           (unsigned long long)plan.subsets, (unsigned long long)plan.steps);
    return tap_main(cases, COUNT_OF(cases), &plan, argc, argv);
}
