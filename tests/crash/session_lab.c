#include "session_lab.h"

#include <stdlib.h>

#include "api/handle.h"
#include "store/dump.h"
#include "work/check.h"

#define START_MS ((int64_t)1750000000000)

void lab_complain(struct lab *l, const char *what, const char *more)
{
    if (l->wrong++ < 8)
        printf("# %s, %s: %s: %s\n", l->op ? l->op->name : "", l->what, what, more);
}

/* --- the store --- */

static int strike(void *arg, struct vfs_call *call)
{
    struct lab *l = arg;

    if (!l->kind || call->op != l->kind->op || l->hit || --l->left > 0)
        return SQLITE_OK;
    l->hit = true;
    call->half = l->kind->half;
    return l->kind->code;
}

void lab_close(struct lab *l)
{
    belay_session_close(l->s);
    belay_close(l->b);
    l->s = NULL;
    l->b = NULL;
}

belay_rc lab_open(struct lab *l, uint64_t seed)
{
    struct belay_clock clock = fake_clock_hook(&l->clock);
    struct belay_random random = fake_random_hook(&l->random);
    struct belay_options options = {
        .size = sizeof(options), .ns = "default", .clock = &clock, .random = &random
    };
    char url[300];

    atomic_store(&l->clock.wall_ms, START_MS);
    atomic_store(&l->clock.mono_us, 1000000);
    atomic_store(&l->random.state, seed << 32);
    (void)snprintf(url, sizeof(url), "sqlite:%s", l->rig.path);
    belay_rc rc = belay_open(url, &options, &l->b, &l->err);
    if (!rc)
        rc = belay_session_open(l->b, "s", NULL, &l->s, &l->err);
    if (rc)
        lab_close(l);
    return rc;
}

/* --- what is there --- */

void lab_dump(struct lab *l, struct buf *out)
{
    buf_reset(out);
    if (dump_namespace(l->b->driver, bytes_str("default"), out, &l->err))
        lab_complain(l, "dump", l->err.message);
}

/* What the library shows. */
static void view(struct lab *l, struct buf *out)
{
    struct belay_queue_page page = { .size = sizeof(page) };
    struct belay_batches list = { .n = 0 };
    struct belay_head head;
    struct belay_checkpoint_info info;
    struct belay_pins pins = { .n = 0 };

    buf_reset(out);
    belay_arena_reset(l->a);
    if (belay_session_head(l->s, l->a, &head, &l->err))
        buf_printf(out, "no head (%s)\n", l->err.reason);
    else
        buf_printf(out, "head %lld %s %lld\n", (long long)head.revision,
                   head.leaf ? head.leaf : "-", (long long)head.node_count);
    if (belay_queue_list(l->b, "s", &page, l->a, &list, &l->err))
        buf_printf(out, "no inbox (%s)\n", l->err.reason);
    for (size_t i = 0; i < list.n; i++)
        buf_printf(out, "batch %lld %zu %lld %s %lld\n",
                   (long long)list.batches[i].enqueue_seq, list.batches[i].n_items,
                   (long long)list.batches[i].fence,
                   list.batches[i].owner_id ? list.batches[i].owner_id : "-",
                   (long long)list.batches[i].expires_at_ms);
    if (belay_session_checkpoint(l->s, l->a, &info, &l->err))
        buf_printf(out, "no checkpoint (%s)\n", l->err.reason);
    else
        buf_printf(out, "checkpoint %s\n", info.ref);
    if (belay_blob_pins(l->b, NULL, 0, l->a, &pins, &l->err))
        buf_printf(out, "no pins\n");
    for (size_t i = 0; i < pins.n; i++)
        buf_printf(out, "pin %s %s\n", pins.pins[i].name, pins.pins[i].sha256);
}

static belay_rc count_blob(void *arg, const struct item *item, struct belay_error *err)
{
    (void)err;
    if (item->kind == ITEM_ROW && item->row->type == &row_blob)
        buf_printf(arg, "blob %.*s\n", (int)row_bytes(item->row, BLOB_SHA256).len,
                   (const char *)row_bytes(item->row, BLOB_SHA256).ptr);
    return BELAY_OK;
}

void lab_view(struct lab *l, struct buf *out)
{
    view(l, out);
    if (driver_walk(l->b->driver, bytes_str("default"), count_blob, out, &l->err))
        lab_complain(l, "walk", l->err.message);
}

static void found(void *arg, const struct finding *f)
{
    lab_complain(arg, f->what, f->message);
}

void lab_check(struct lab *l)
{
    struct check_counts counts;

    if (check_store(l->b->store, found, l, &counts, &l->err))
        lab_complain(l, "check", l->err.message);
}

/* --- setting up --- */

bool lab_init(struct lab *l, struct tap *t)
{
    l->t = t;
    disk_install(&l->disk);
    testvfs_install(&l->vfs, &l->disk.vfs, strike, l);
    rig_init(&l->rig);
    (void)snprintf(l->what, sizeof(l->what), "at the start");
    belay_rc rc = belay_arena_new(&l->a, &l->err);
    rc = rc ? rc : lab_open(l, 1);
    rc = rc ? rc : lab_fill(l);
    if (!CHECK_RC(t, rc, BELAY_OK)) {
        printf("# %s\n", l->err.message);
        return false;
    }
    lab_dump(l, &l->before);
    lab_close(l);
    disk_save(&l->disk, &l->start);
    return true;
}

void lab_release(struct lab *l)
{
    lab_close(l);
    belay_arena_free(l->a);
    buf_release(&l->before);
    buf_release(&l->after);
    buf_release(&l->goal);
    disk_image_release(&l->start);
    rig_release(&l->rig);
    testvfs_remove(&l->vfs);
    disk_release(&l->disk);
    free(l);
}
