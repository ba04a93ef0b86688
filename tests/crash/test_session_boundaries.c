/* Every call on sessions and inboxes, cut short at every write and failed at every call
 * of the disk (promises L9, S3, X1, X3, X5).
 *
 *     test_session_boundaries [--ways N] [case]
 *
 * Each call is made on the same store, on a disk in memory.  Killed at any write, or
 * with the power cut there, it has happened or not; failed by any call of the disk it
 * says so in a code.  Whatever is left is sound, and the same call again brings about
 * what the first one was for.  --ways adds random disks to the cuts.
 */
#include <stdlib.h>

#include "cut.h"
#include "session_lab.h"

/* clang-format off */
static const struct kind kinds[] = {
    { "read",         VFS_READ,     SQLITE_IOERR_READ,    false },
    { "write",        VFS_WRITE,    SQLITE_IOERR_WRITE,   false },
    { "short write",  VFS_WRITE,    SQLITE_IOERR_WRITE,   true },
    { "disk full",    VFS_WRITE,    SQLITE_FULL,          true },
    { "sync",         VFS_SYNC,     SQLITE_IOERR_FSYNC,   false },
    { "shm busy",     VFS_SHM_LOCK, SQLITE_BUSY,          false },
    { "shm lock",     VFS_SHM_LOCK, SQLITE_IOERR_SHMLOCK, false },
};
/* clang-format on */

/* --- afterwards --- */

enum outcome { NOT_DONE = 1, DONE = 2, EITHER = NOT_DONE | DONE };

/* Opens what is left: sound, and as `may` allows; then the call is made again. */
static void look(struct lab *l, unsigned may)
{
    CLEANUP(buf_release) struct buf now = { .ptr = NULL };

    l->runs++;
    if (lab_open(l, 1000 + l->runs)) {
        lab_complain(l, "cannot be opened", l->err.message);
        return;
    }
    lab_check(l);
    lab_dump(l, &now);
    bool not_done = bytes_eq(buf_view(&now), buf_view(&l->before));
    bool done = bytes_eq(buf_view(&now), buf_view(&l->after));
    if (!(not_done && may & NOT_DONE) && !(done && may & DONE) &&
        !(l->op->steps && may == EITHER))
        lab_complain(l, "neither what was there nor what should be",
                     not_done ? "before"
                     : done   ? "after"
                              : "between");
    if (l->op->run(l))
        lab_complain(l, "again", l->err.message);
    lab_view(l, &now);
    if (!bytes_eq(buf_view(&now), buf_view(&l->goal))) {
        lab_complain(l, "another end", "");
        buf_append_char(&now, '\0');
        if (l->wrong < 3)
            printf("%s\n--- not\n%.*s\n", (char *)now.ptr, (int)l->goal.len,
                   (char *)l->goal.ptr);
    }
    if (l->runs % 4 == 0)
        lab_check(l);
    lab_close(l);
}

/* --- undisturbed --- */

/* The call once, undisturbed and recorded. */
static bool record(struct lab *l)
{
    disk_load(&l->disk, &l->start);
    disk_forget_events(&l->disk);
    l->disk.recording = true;
    belay_rc rc = lab_open(l, 2);
    rc = rc ? rc : l->op->run(l);
    disk_mark(&l->disk, 1);
    if (!CHECK_RC(l->t, rc, BELAY_OK)) {
        printf("# %s\n", l->err.message);
        return false;
    }
    lab_dump(l, &l->after);
    lab_view(l, &l->goal);
    lab_check(l);
    lab_close(l);
    l->disk.recording = false;
    return TAP_OK(l->t, !bytes_eq(buf_view(&l->before), buf_view(&l->after)));
}

/* --- cuts --- */

static void cut_once(struct lab *l, const struct cut *cut, enum cut_how how,
                     struct rng *rng, bool acked)
{
    struct disk_image left = { .files[0].exists = false };

    cut_image(cut, how, rng, &left);
    disk_load(&l->disk, &left);
    disk_image_release(&left);
    look(l, acked ? DONE : EITHER);
}

static void cut_everywhere(struct lab *l, uint64_t ways)
{
    struct disk_event *events = l->disk.events;
    size_t n = l->disk.n_events;
    bool acked = false;
    struct rng rng;
    struct cut cut;

    l->disk.events = NULL; /* the record is ours now */
    l->disk.n_events = l->disk.cap_events = 0;
    rng_init(&rng, 7);
    cut_init(&cut, &l->start, false);
    for (size_t i = 0; i < n; i++) {
        cut_follow(&cut, &events[i]);
        acked |= events[i].kind == DISK_MARK;
        (void)snprintf(l->what, sizeof(l->what), "killed after write %zu of %zu", i + 1,
                       n);
        cut_once(l, &cut, CUT_ALL, &rng, acked);
        if (!cut_is_open(&cut))
            continue;
        (void)snprintf(l->what, sizeof(l->what), "power lost after write %zu of %zu",
                       i + 1, n);
        if (events[i].kind != DISK_WRITE) /* between syncs the same as before */
            cut_once(l, &cut, CUT_NONE, &rng, acked);
        for (uint64_t j = 0; j < ways; j++)
            cut_once(
                l, &cut,
                (enum cut_how)(CUT_PREFIX + rng_below(&rng, CUT_HOWS - CUT_PREFIX)),
                &rng, acked);
    }
    cut_release(&cut);
    for (size_t i = 0; i < n; i++)
        free(events[i].data);
    free(events);
}

/* --- failures --- */

/* What may be left when the call has answered so. */
static unsigned may_be(const struct lab *l, belay_rc rc)
{
    if (!rc)
        return DONE;
    if (rc == BELAY_POISONED || rc == BELAY_UNKNOWN_OUTCOME || l->op->steps)
        return EITHER;
    return NOT_DONE;
}

static bool poisons(const struct lab *l, belay_rc rc)
{
    return rc == BELAY_POISONED || rc == BELAY_UNKNOWN_OUTCOME ||
           l->kind->op == VFS_WRITE || l->kind->op == VFS_SYNC;
}

/* The answer is a code and words; the next call works, unless the handle says that it
 * must not be used any more (X5).  Returns what may be left then. */
static unsigned check_answer(struct lab *l, belay_rc rc)
{
    bool known =
        rc == BELAY_POISONED || rc == BELAY_UNKNOWN_OUTCOME || rc == BELAY_UNAVAILABLE;

    if (!known || (belay_rc)l->err.code != rc || strlen(l->err.message) < 8)
        lab_complain(l, belay_error_info((int)rc)->name, l->err.message);
    if (may_be(l, rc) == NOT_DONE && !poisons(l, rc)) {
        CLEANUP(buf_release) struct buf now = { .ptr = NULL };
        lab_dump(l, &now);
        if (!bytes_eq(buf_view(&now), buf_view(&l->before)))
            lab_complain(l, "it failed, and yet something changed", "");
    }
    belay_rc next = l->op->run(l);
    if (next == BELAY_OK)
        return DONE;
    if (!poisons(l, rc) || next != BELAY_POISONED)
        lab_complain(l, "the next call", l->err.message);
    return may_be(l, rc);
}

/* The n-th call of the disk fails; false when it was not met. */
static bool fail_once(struct lab *l, const struct kind *kind, uint64_t n)
{
    (void)snprintf(l->what, sizeof(l->what), "%s, call %llu", kind->name,
                   (unsigned long long)n);
    disk_load(&l->disk, &l->start);
    if (lab_open(l, 2)) {
        lab_complain(l, "cannot be opened", l->err.message);
        return false;
    }
    l->left = n;
    l->hit = false;
    l->kind = kind;
    belay_rc rc = l->op->run(l);
    bool hit = l->hit;
    unsigned may = may_be(l, rc);
    l->failed += rc != BELAY_OK;
    if (rc && hit)
        may = check_answer(l, rc);
    else if (rc)
        lab_complain(l, "without a failure", l->err.message);
    l->kind = NULL;
    lab_close(l);
    if (hit)
        look(l, may);
    return hit;
}

/* --- cases --- */

static void run_op(struct tap *t, const struct op *op, bool cuts)
{
    struct lab *l = calloc(1, sizeof(*l));
    const uint64_t *ways = t->arg;

    if (!l)
        abort();
    if (lab_init(l, t)) {
        l->op = op;
        (void)snprintf(l->what, sizeof(l->what), "undisturbed");
        if (record(l) && cuts)
            cut_everywhere(l, *ways);
        for (size_t i = 0; !cuts && i < COUNT_OF(kinds); i++) {
            uint64_t n = 1;
            while (fail_once(l, &kinds[i], n))
                n++;
            if (!TAP_OK(t, n > 1))
                printf("# %s: never met\n", kinds[i].name);
        }
    }
    printf("# %u disks looked at, %u calls failed, %u wrong\n", l->runs, l->failed,
           l->wrong);
    TAP_EQ(t, l->wrong, 0);
    TAP_OK(t, l->runs > 4);
    TAP_OK(t, cuts || l->failed > 0);
    lab_release(l);
}

/* clang-format off */
static void cut_enqueue(struct tap *t)  { run_op(t, &lab_ops[OP_ENQUEUE], true); }
static void cut_claim(struct tap *t)    { run_op(t, &lab_ops[OP_CLAIM], true); }
static void cut_renew(struct tap *t)    { run_op(t, &lab_ops[OP_RENEW], true); }
static void cut_commit(struct tap *t)   { run_op(t, &lab_ops[OP_COMMIT], true); }
static void cut_gc(struct tap *t)       { run_op(t, &lab_ops[OP_GC], true); }
static void cut_delete(struct tap *t)   { run_op(t, &lab_ops[OP_DELETE], true); }
static void fail_enqueue(struct tap *t) { run_op(t, &lab_ops[OP_ENQUEUE], false); }
static void fail_claim(struct tap *t)   { run_op(t, &lab_ops[OP_CLAIM], false); }
static void fail_renew(struct tap *t)   { run_op(t, &lab_ops[OP_RENEW], false); }
static void fail_commit(struct tap *t)  { run_op(t, &lab_ops[OP_COMMIT], false); }
static void fail_gc(struct tap *t)      { run_op(t, &lab_ops[OP_GC], false); }
static void fail_delete(struct tap *t)  { run_op(t, &lab_ops[OP_DELETE], false); }
static void cut_append(struct tap *t)   { run_op(t, &lab_ops[OP_APPEND], true); }
static void cut_settle(struct tap *t)   { run_op(t, &lab_ops[OP_SETTLE], true); }
static void cut_forget(struct tap *t)   { run_op(t, &lab_ops[OP_FORGET], true); }
static void cut_remove(struct tap *t)   { run_op(t, &lab_ops[OP_REMOVE], true); }
static void fail_append(struct tap *t)  { run_op(t, &lab_ops[OP_APPEND], false); }

static const struct tap_case cases[] = {
    { "cut: an enqueue is whole or not there",               cut_enqueue },
    { "cut: a claim is whole or not there",                  cut_claim },
    { "cut: a renewal is whole or not there",                cut_renew },
    { "cut: a commit is whole or not there",                 cut_commit },
    { "cut: a collection goes on where it was stopped",      cut_gc },
    { "cut: a deletion goes on where it was stopped",        cut_delete },
    { "io: an enqueue that fails says so and changes nothing",  fail_enqueue },
    { "io: a claim that fails says so and changes nothing",     fail_claim },
    { "io: a renewal that fails says so and changes nothing",   fail_renew },
    { "io: a commit that fails says so and changes nothing",    fail_commit },
    { "io: a collection that fails says so and can go on",      fail_gc },
    { "io: a deletion that fails says so and can go on",        fail_delete },
    { "cut: an event and its wake are there together, or neither", cut_append },
    { "cut: a commit and the wake it settles go together",      cut_settle },
    { "cut: a session is forgotten with all that follows, or not", cut_forget },
    { "cut: a removal goes on where it was stopped",            cut_remove },
    { "io: an event that fails says so and changes nothing",    fail_append },
};
/* clang-format on */

int main(int argc, char **argv)
{
    uint64_t ways = option_u64(&argc, argv, "--ways", 1);

    return tap_main(cases, COUNT_OF(cases), &ways, argc, argv);
}
