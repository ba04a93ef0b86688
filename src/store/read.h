/* read.h - the questions a store answers. */
#ifndef STORE_READ_H
#define STORE_READ_H

#include "store/plan.h"

/* A row, by its key. */
struct row_want {
    const struct row_type *type;
    const struct value *key;
};

/* Rows named by the members of a rank: key = prefix..., member.  A member whose row
 * type ends in an i64 key part is read as a decimal number. */
struct fetch {
    const struct row_type *type;
    const struct value *prefix; /* type->n_key - 1 values */
};

/* A place in the merged order of several indexes. */
struct scan_cursor {
    int64_t rank;
    struct bytes member;
    struct bytes index;
};

/* Part of one or more rank indexes, merged in the order (rank, member, index). */
struct scan {
    const struct bytes *indexes;
    size_t n_indexes;
    int64_t min_rank, max_rank;      /* inclusive */
    const struct scan_cursor *after; /* start behind this; NULL: at the beginning */
    size_t limit;
    const struct fetch *fetch;
    size_t n_fetch;
    /* Of a pick: members whose ranks differ by less than this may come in another order for a
     * moment after they came in; 0: they may not. */
    int64_t near;
    unsigned hints;  /* bit per fetch: its rows are not guarded, as by txn_peek */
    bool descending; /* the order, and `after`, turned round */

    /* For txn_load; drivers do not look at them. */
    bool pick; /* as txn_pick */
    /* Later bodies of this program will ask the same, with max_rank as it is or higher: where
     * the driver guards scans, it may be answered from what was read before, and the commit
     * sees to it that this still stands, also of rows that are hints.  Not descending,
     * without a cursor. */
    bool again;
    /* With a cover: others may enter behind all that is there without changing the row; what
     * is known of the index ends with its last member. */
    bool grows;
    /* Every plan that changes the index changes this row, too, which the body reads before or
     * along: as long as the row stands, the index does; NULL: nobody sees to that. */
    const struct row_want *cover;
    size_t ahead; /* with a cover, or with `again`: so many more may be read along, for
                     later bodies */
};

struct hit {
    struct bytes index, member;
    int64_t rank;
    const struct row **rows; /* one per fetch; NULL where there is no such row */
};

struct hits {
    struct hit *hit;
    size_t n;
    size_t ahead; /* behind those, read along and not guarded (scan.ahead) */
};

struct log_entry {
    int64_t seq;
    struct bytes data;
};

struct log_entries {
    struct log_entry *entry;
    size_t n;
};

struct feed_entry {
    struct feed_pos pos;
    struct bytes data;
};

struct feed_entries {
    struct feed_entry *entry;
    size_t n;
    struct feed_pos trimmed; /* everything up to here was trimmed; zero: nothing was */
};

enum read_kind { READ_ROW, READ_RANK, READ_LOG, READ_FEED, READ_CHUNK };

/* One question and, after the call, its answer, in the arena of the call. */
struct read {
    enum read_kind kind;
    union {
        struct {
            struct row_ref ref;
            const struct row *out; /* NULL: no such row */
        } row;
        struct {
            const struct scan *scan;
            bool hold; /* hide the members from other holders (pick) */
            struct hits out;
        } rank;
        struct {
            struct bytes stream;
            int64_t after;
            size_t limit;
            struct log_entries out;
        } log;
        struct {
            struct bytes feed;
            struct feed_pos after;
            size_t limit;
            struct feed_entries out;
        } feed;
        struct {
            struct bytes upload;
            int64_t index;
            bool found;
            struct bytes out;
        } chunk;
    };
};

/* The values of the key that a member is the last part of; false: it cannot be. */
MUST_USE bool fetch_key(const struct fetch *f, struct bytes member,
                        struct value out[SCHEMA_KEY_MAX]);

/* The row a member names, for drivers and the transaction layer alike.  `corrupt` when
 * the member cannot be a key of that type. */
MUST_USE belay_rc fetch_ref(struct row_ref *out, const struct fetch *f,
                            struct bytes member, struct belay_arena *a,
                            struct belay_error *err);

/* Position of (rank, member, index) relative to a cursor in scan order: < 0 before. */
int scan_cmp(const struct scan *s, int64_t rank_a, struct bytes member_a,
             struct bytes index_a, int64_t rank_b, struct bytes member_b,
             struct bytes index_b);

#endif /* STORE_READ_H */
