/* session_lab.h - a store with sessions and inboxes on a disk in memory, and the calls that
 * are made on it again and again: undisturbed, cut short, failed.
 */
#ifndef TESTS_CRASH_SESSION_LAB_H
#define TESTS_CRASH_SESSION_LAB_H

#include <belay/session.h>

#include "disk.h"
#include "rig.h"
#include "testvfs.h"

/* A call of the disk that fails. */
struct kind {
    const char *name;
    enum vfs_op op;
    int code;
    bool half;
};

struct lab;

/* A call that is made; it can be made again. */
struct op {
    const char *name;
    belay_rc (*run)(struct lab *l);
    bool steps; /* in several transactions: it may stop between them */
};
extern const struct op lab_ops[];
enum {
    OP_ENQUEUE,
    OP_CLAIM,
    OP_RENEW,
    OP_COMMIT,
    OP_GC,
    OP_DELETE,
    OP_APPEND,
    OP_SETTLE,
    OP_FORGET,
    OP_REMOVE
};

struct lab {
    struct tap *t;
    struct disk disk;
    struct testvfs vfs;
    struct rig rig; /* its directory */
    struct fake_clock clock;
    struct fake_random random;
    struct belay *b;
    struct belay_session *s;
    struct belay_arena *a;
    struct belay_error err;

    const struct op *op;
    struct disk_image start;
    struct buf before, after; /* dumps of the namespace */
    struct buf goal;          /* what is to be seen when the call was made */
    char claim[512], wake_claim[512], batch_id[80], ref[BELAY_SHA256_HEX];

    const struct kind *kind; /* NULL: none */
    uint64_t left;           /* calls until it fails */
    bool hit;
    unsigned runs, wrong, failed;
    char what[96];
};

/* The disk, and a store on it that all calls start from (start, before). */
bool lab_init(struct lab *l, struct tap *t);
void lab_release(struct lab *l); /* frees it, too */

/* Always at the same time; seeds differ, so that no id is made twice. */
belay_rc lab_open(struct lab *l, uint64_t seed);
void lab_close(struct lab *l); /* takes one that is not open */

void lab_complain(struct lab *l, const char *what, const char *more);
void lab_check(struct lab *l); /* complains about what check finds */
void lab_dump(struct lab *l, struct buf *out);
void lab_view(struct lab *l, struct buf *out); /* without what is drawn at random */

/* session_lab_ops.c: what the store is filled with. */
belay_rc lab_fill(struct lab *l);

/* process_lab_ops.c: likewise, and the calls on processes. */
belay_rc lab_fill_processes(struct lab *l);
belay_rc lab_run_append(struct lab *l);
belay_rc lab_run_settle(struct lab *l);
belay_rc lab_run_forget(struct lab *l);
belay_rc lab_run_remove(struct lab *l);

#endif /* TESTS_CRASH_SESSION_LAB_H */
