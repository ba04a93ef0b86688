/* plan.h - what a transaction body decided, ready to be applied.
 *
 * A plan is complete: versions, ranks, log sequences and bytes are in it.  A driver
 * adds feed positions and the new values of counters, and nothing else.  It is applied
 * whole or not at all.
 */
#ifndef STORE_PLAN_H
#define STORE_PLAN_H

#include "store/key.h"

/* Ranks a store can keep exactly everywhere (a Valkey score is a double). */
#define RANK_MAX ((int64_t)9007199254740992)

/* Limits of one plan; beyond them the body's call is `invalid`, reason too_large. */
#define PLAN_EFFECTS_MAX 65536
#define PLAN_BYTES_MAX ((size_t)64 << 20)

/* The row must have this version when the plan is applied; 0: it must not exist. */
struct guard {
    struct row_ref ref;
    int64_t ver;
    bool read; /* the version comes from a read of the attempt that commits it; a driver
                  that has let nobody in since need not look again */
    bool
        inserted; /* the plan inserts the row: a driver that is told by inserting it that
                      it is there need not look before */
};

/* A member of an index at its rank. */
struct ranked {
    struct bytes index, member;
    int64_t rank;
};

/* The first `limit` members of the merged indexes from min_rank to max_rank must be exactly
 * these, in this order, when the plan is applied (before its effects).  Only for drivers that
 * say so (DRIVER_SCAN_GUARDS), and only in plans with effects. */
struct scan_guard {
    const struct bytes *indexes;
    size_t n_indexes;
    int64_t min_rank, max_rank; /* inclusive */
    size_t limit;
    bool
        unheld; /* and no other attempt may hold any of them; a driver may take any hold in
                    these indexes for one */
    const struct ranked *found; /* as a scan gives them: merged, in order */
    size_t n;
};

enum effect_kind {
    EFFECT_INSERT,    /* row: every column, ver is the first version */
    EFFECT_PUT,       /* row: the columns named in `changed`, ver is the new version */
    EFFECT_DELETE,    /* row */
    EFFECT_ADD,       /* counter += amount, result within min..max */
    EFFECT_RAISE,     /* counter = max(counter, amount) */
    EFFECT_RANK_ADD,  /* member enters the index at `rank` */
    EFFECT_RANK_MOVE, /* from old_rank to rank */
    EFFECT_RANK_REMOVE, /* member at old_rank leaves */
    EFFECT_LOG_APPEND,  /* entry `seq` of the stream */
    EFFECT_LOG_TRIM,    /* entries up to and including `seq` go */
    EFFECT_FEED_APPEND, /* the driver gives the position */
    EFFECT_FEED_TRIM,   /* entries up to and including `upto` go */
    EFFECT_CHUNK_PUT,   /* chunk `index` of an upload */
    EFFECT_CHUNK_DROP,  /* likewise; one that is not there is no error */
};

/* A position in a feed.  Ordered by its parts in turn; a driver with one counter uses
 * `major` alone.  All zero is before everything. */
struct feed_pos {
    int64_t epoch, major, minor;
};

/* Guards of the same plan cover every row that INSERT, PUT and DELETE touch, and there
 * is at most one such effect a row and at most one rank effect a member and index.  The version
 * that a PUT makes is the one after its guard's. */
struct effect {
    enum effect_kind kind;
    union {
        struct {
            struct row_ref ref;
            int64_t ver;
            const struct value *v; /* all columns, key columns included */
            uint64_t changed;      /* bit per column; PUT only */
            uint64_t
                same; /* of these, columns that the guarded version has just so: they
                              need not be written */
        } row;
        struct {
            struct row_ref ref;
            unsigned column;
            int64_t amount, min, max;
        } counter;
        struct {
            struct bytes index, member;
            int64_t old_rank, rank;
        } rank;
        struct {
            struct bytes stream;
            int64_t seq;
            struct bytes data;
        } log;
        struct {
            struct bytes feed;
            struct bytes data;
            struct feed_pos upto;
        } feed;
        struct {
            struct bytes upload;
            int64_t index;
            struct bytes data;
        } chunk;
    };
};

/* Somebody may be waiting for this. */
struct plan_topic {
    const struct plan_topic *next;
    struct bytes name;
};

struct plan {
    uint64_t id; /* of the attempt that made it, unique in a process; for tracing */
    struct bytes ns;
    struct guard *guards;
    size_t n_guards;
    const struct scan_guard *scans;
    size_t n_scans;
    struct effect *effects;
    size_t n_effects;
    const struct plan_topic
        *topics; /* that are posted once it is applied: a driver may do so
                                   along with the commit (told) */
};

/* What the driver adds for effect i: results[i].  `known` is false when the plan is
 * known to have been applied but its reply was lost. */
struct effect_result {
    bool known;
    int64_t value;       /* EFFECT_ADD, EFFECT_RAISE: the counter afterwards */
    struct feed_pos pos; /* EFFECT_FEED_APPEND */
};

#define GUARD_NONE SIZE_MAX
struct plan_result {
    bool conflict; /* a guard did not hold: nothing was applied */
    size_t
        failed_guard; /* one that did not, when there is a conflict; GUARD_NONE: it is
                            failed_scan that did not */
    size_t failed_scan;
    struct effect_result *effects; /* n_effects entries, the caller's memory */
    bool told; /* other processes hear of the plan's topics: notify is not needed */
};

static inline int feed_pos_cmp(struct feed_pos a, struct feed_pos b)
{
    if (a.epoch != b.epoch)
        return a.epoch < b.epoch ? -1 : 1;
    if (a.major != b.major)
        return a.major < b.major ? -1 : 1;
    return a.minor < b.minor ? -1 : a.minor > b.minor;
}

#endif /* STORE_PLAN_H */
