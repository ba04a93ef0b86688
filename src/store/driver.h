/* driver.h - what a database must do to be a Belay store.
 *
 * A driver knows rows, ranks, logs, feeds and chunks; it knows no noun of the product
 * and takes no decision.  Decorators (trace.h, fault.h) are drivers over drivers.
 *
 * An attempt is one run of a transaction body: begin, any number of reads, at most one
 * commit, end.  One thread uses an attempt at a time; many attempts run at once.
 *
 * Rules
 *   1  read answers all its questions from one snapshot, in one round trip, and sees
 *      every plan whose commit had returned before it was called (with DRIVER_SNAPSHOT:
 *      before the attempt's first read).
 *   2  commit is atomic and durable (as far as durability() says) when it returns
 *      BELAY_OK without a conflict.  With a conflict, and with any other code but
 *      unknown_outcome and poisoned, nothing was applied, then or ever.
 *   3  A guard that does not hold, of a row or (with DRIVER_SCAN_GUARDS) of a scan, is a
 *      conflict, whatever else is wrong with the plan.
 *      Otherwise the first of these that applies is the answer:
 *        corrupt       rank add of a member that is there (at another rank: only with
 *                      DRIVER_SEES_TWICE; whoever owns a member guards the row that says
 *                      where it stands); move or remove of one that is not there at
 *                      old_rank; a log entry that is there, or whose predecessor is not
 *                      while the stream has entries (trims of the same plan do not
 *                      count)
 *        not_found     a counter of a row that is not there (entity: row type)
 *        out_of_range  add beyond min..max or beyond i64 (reason: column)
 *   4  A plan without effects is only checked.  Effects that are neither of rows nor of
 *      ranks apply in plan order.
 *   5  Feed positions given by one commit follow those of every commit that had returned
 *      before, in plan order within the commit; who has read up to p never later finds
 *      an entry at or before p.
 *   6  read with `hold` hides the members from other holders until the attempt ends, but
 *      at most HOLD_MAX_US; ordinary reads do not see holds, and no commit fails for one,
 *      unless a scan guard of its own asks for that:
 *      where holds are row locks, a commit that touches a held member may wait for the
 *      hold's end.  A driver that runs bodies itself need not hide anything: they cannot
 *      meet.
 *   7  end releases what the attempt holds.  An attempt that is never ended (its process
 *      died) loses its holds after HOLD_MAX_US.
 */
#ifndef STORE_DRIVER_H
#define STORE_DRIVER_H

#include <belay/hooks.h>

#include "base/park.h"
#include "store/read.h"

#define DRIVER_VERSION 1
#define HOLD_MAX_US ((int64_t)5000000)

/* About cost and failure, never about meaning. */
enum driver_caps {
    DRIVER_SNAPSHOT = 1 << 0,      /* all reads of one attempt are of one snapshot */
    DRIVER_LOSES_REPLIES = 1 << 1, /* commit may return unknown_outcome */
    DRIVER_FAR = 1 << 2,         /* a read is a round trip: rows are kept (recall.h) */
    DRIVER_SEES_TWICE = 1 << 3,  /* a member that stands in the index is refused there,
                                   whatever the rank; without, that takes a look at what
                                   each index holds (`belay check`) */
    DRIVER_SCAN_GUARDS = 1 << 4, /* plans may say what scans must find (plan.h) */
};

/* As a program may rely on it: not at all, on disk, or less than asked for. */
enum durability { DURABILITY_INLINE, DURABILITY_DURABLE, DURABILITY_RELAXED };

/* One stored thing, as walk() shows it.  Borrowed for the call. */
enum item_kind { ITEM_ROW, ITEM_RANK, ITEM_LOG, ITEM_FEED, ITEM_CHUNK };
struct item {
    enum item_kind kind;
    const struct row *row;
    struct bytes name;   /* index, stream, feed or upload */
    struct bytes member; /* ITEM_RANK */
    int64_t number;      /* rank, log sequence, ordinal in the feed, chunk index */
    struct bytes data;   /* log, feed, chunk */
};
typedef belay_rc item_visit(void *arg, const struct item *item,
                            struct belay_error *err);

/* A body, for a driver that runs bodies itself. */
struct driver_job {
    /* One run, on whatever thread: begin, reads, commit, end.  What came of it is the
     * caller's; the driver only learns through commit whether it wrote. */
    void (*run)(struct driver_job *job);
    struct belay_cancel *cancel; /* may take it out of the queue; NULL: cannot */
    int64_t deadline_us;         /* likewise; DEADLINE_NONE: none */
};

/* What a store says about itself, to check and doctor.  Borrowed for the call. */
enum finding_level { FINDING_OK, FINDING_WARN, FINDING_BAD };
struct finding {
    enum finding_level level;
    const char *what;    /* [a-z][a-z0-9_]*: which kind of thing */
    struct bytes ns;     /* empty: the whole store */
    struct bytes entity; /* may be empty */
    const char *message; /* one line for people */
};
/* Cannot fail: who runs out of memory remembers that. */
typedef void finding_report(void *arg, const struct finding *f);

/* Which life of its server a store is in: another one after a failover, and where the
 * server says so after a restart.  What was acknowledged in the last one may be gone. */
#define LIFE_MAX 64
struct lineage {
    char life[LIFE_MAX];   /* empty: there is only one */
    bool restarted;        /* it began with a start on the data that was written down */
    int64_t started_at_ms; /* when it did, by the server's clock */
};

struct wake_hub;
struct driver;

struct driver_ops {
    const char *name;
    unsigned version; /* DRIVER_VERSION it was written against */
    unsigned caps;
    size_t attempt_size; /* memory the caller provides per attempt, zeroed */

    belay_rc (*begin)(struct driver *d, void *attempt, struct bytes ns,
                      struct belay_error *err);
    belay_rc (*read)(struct driver *d, void *attempt, struct read *reads, size_t n,
                     struct belay_arena *a, struct belay_error *err);
    belay_rc (*commit)(struct driver *d, void *attempt, const struct plan *plan,
                       struct plan_result *result, struct belay_error *err);
    void (*end)(struct driver *d, void *attempt);

    /* For a driver that runs bodies one after the other, many to one durable point;
     * NULL: bodies run on their own threads.  Runs the job, and once more for every
     * time its company had to be taken back, and returns when its last run is durable.
     * Any other code than BELAY_OK: no run stands (timeout, cancelled: it was still
     * queued), or it is not known (unknown_outcome).  Reads outside a job are of a
     * snapshot; commits outside a job work, too. */
    belay_rc (*submit)(struct driver *d, struct driver_job *job,
                       struct belay_error *err);

    /* Tells other processes that a topic was posted, after the commit that posted it; NULL:
     * there are none.  A hint: it may get lost. */
    void (*notify)(struct driver *d, struct bytes ns, struct bytes topic);

    /* The store's own time; NULL: the injected clock is used. */
    belay_rc (*now_ms)(struct driver *d, void *attempt, int64_t *out,
                       struct belay_error *err);

    /* The life that the attempt is in: it commits in no other (a conflict).  `known` is the
     * one that is thought of: if it is another, the server itself is asked.  NULL: there is
     * only one. */
    belay_rc (*lineage)(struct driver *d, void *attempt, struct bytes known,
                        struct lineage *out, struct belay_error *err);

    /* With DRIVER_FAR: a number for the time in which what was committed stays, and that the
     * attempt belongs to; it commits in no other.  0: that cannot be told.  NULL: there is
     * only one. */
    uint64_t (*era)(struct driver *d, void *attempt);

    /* Everything in a namespace, in an order that is the same on every driver: kind,
     * then row type name and key, or name and (rank, member), sequence, position or
     * index.  The visitor calls nothing of the store. */
    belay_rc (*walk)(struct driver *d, struct bytes ns, item_visit *visit, void *arg,
                     struct belay_error *err);

    /* Takes things out of a namespace, of every kind and without any guard: about
     * `limit` of them, durably, in one atomic step; *more is false when none are left.
     * A namespace without anything is no error.  NULL: cannot be done. */
    belay_rc (*erase)(struct driver *d, struct bytes ns, size_t limit, bool *more,
                      struct belay_error *err);

    /* Reports what is damaged below the shapes: the file, the tables, the positions of
     * feeds; nothing when all is well.  NULL: there is nothing to look at. */
    belay_rc (*check)(struct driver *d, finding_report *report, void *arg,
                      struct belay_error *err);

    /* Reports how the database is doing, good or bad.  NULL: it has nothing to say. */
    belay_rc (*doctor)(struct driver *d, finding_report *report, void *arg,
                       struct belay_error *err);

    enum durability (*durability)(struct driver *d);
    void (*close)(struct driver *d);
};

/* Drivers embed this as their first member. */
struct driver {
    const struct driver_ops *ops;
    unsigned caps;        /* ops->caps, or what a decorator makes of them */
    size_t attempt_size;  /* likewise */
    struct wake_hub *hub; /* shared by everybody on this driver */
};

/* What every driver is opened with.  Borrowed until close. */
struct driver_config {
    const struct schema *schema;
    struct belay_clock clock;
    struct belay_random random;
};

/* The only callers of ops: they check arguments and forward. */
MUST_USE belay_rc driver_begin(struct driver *d, void *attempt, struct bytes ns,
                               struct belay_error *err);
MUST_USE belay_rc driver_read(struct driver *d, void *attempt, struct read *reads,
                              size_t n, struct belay_arena *a, struct belay_error *err);
MUST_USE belay_rc driver_commit(struct driver *d, void *attempt,
                                const struct plan *plan, struct plan_result *result,
                                struct belay_error *err);
void driver_end(struct driver *d, void *attempt);
MUST_USE belay_rc driver_submit(struct driver *d, struct driver_job *job,
                                struct belay_error *err);
bool driver_runs_bodies(const struct driver *d);
/* Wakes the listeners of a topic, here and in other processes. */
void driver_wake(struct driver *d, struct bytes ns, struct bytes topic);
MUST_USE belay_rc driver_now_ms(struct driver *d, void *attempt,
                                const struct belay_clock *clock, int64_t *out,
                                struct belay_error *err);
MUST_USE belay_rc driver_lineage(struct driver *d, void *attempt, struct bytes known,
                                 struct lineage *out, struct belay_error *err);
uint64_t driver_era(struct driver *d, void *attempt);
MUST_USE belay_rc driver_walk(struct driver *d, struct bytes ns, item_visit *visit,
                              void *arg, struct belay_error *err);
/* `unavailable`, reason erase, when the driver cannot. */
MUST_USE belay_rc driver_erase(struct driver *d, struct bytes ns, size_t limit,
                               bool *more, struct belay_error *err);
MUST_USE belay_rc driver_check(struct driver *d, finding_report *report, void *arg,
                               struct belay_error *err);
MUST_USE belay_rc driver_doctor(struct driver *d, finding_report *report, void *arg,
                                struct belay_error *err);
enum durability driver_durability(struct driver *d);
void driver_close(struct driver *d); /* takes NULL */

/* Adding to a counter: the new value in *out, or out_of_range.  One rule for all
 * drivers that compute it in C. */
MUST_USE belay_rc counter_add(const struct effect *e, int64_t old, int64_t *out,
                              struct belay_error *err);

#endif /* STORE_DRIVER_H */
