/* model.h - what the store should hold, as simply as it can be said.
 *
 * Flat arrays and loops, no index, nothing shared with src/: an error here and the same
 * error there would have to be made twice.  Names are kept as they are, bytes by a
 * digest, a row's key by a hash of namespace, type and key parts.
 *
 * Every function that changes something returns NULL, or says in one line what rule the
 * change breaks.  The sequence number counts applied commits; the history of a row says
 * between which of them it had which version.
 */
#ifndef SIMULATION_MODEL_H
#define SIMULATION_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_COLUMNS 10
#define MODEL_ROWS 512
#define MODEL_ENTRIES 2048
#define MODEL_HISTORY 8192
#define MODEL_HOLDS 256

struct mname {
    uint64_t digest;
    uint32_t len;
    char text[44];
};

/* `i` is the number, or the digest of the bytes. */
struct mvalue {
    int64_t i;
    unsigned kind; /* 0: NULL, 1: number, else bytes of that kind */
};

struct mrow {
    uint64_t ns, key;
    int64_t ver; /* 0: there is no such row */
    const char *type;
    unsigned n;
    unsigned counters; /* bit per column */
    unsigned seen;     /* by the comparison of that number */
    struct mvalue v[MODEL_COLUMNS];
};

enum mkind { M_RANK, M_LOG, M_FEED, M_CHUNK, M_KINDS };

/* A rank entry, log entry, feed entry or chunk. */
struct mentry {
    enum mkind kind;
    unsigned seen;
    uint64_t ns;
    struct mname name;
    struct mname member; /* ranks */
    int64_t number;      /* rank, sequence, position, index */
    uint64_t digest;     /* of the data */
};

/* What is remembered of a feed when its entries are gone. */
struct mfeed {
    uint64_t ns;
    struct mname name;
    int64_t last, trimmed;
};

struct mhold {
    uint64_t holder;
    uint64_t ns;
    struct mname index, member;
    int64_t until_us;
};

/* From commit `seq` on the row had this version; 0: it was absent. */
struct mhistory {
    uint64_t key;
    uint64_t seq;
    int64_t ver;
};

struct model {
    uint64_t seq;
    unsigned comparison;
    struct mrow rows[MODEL_ROWS];
    size_t n_rows;
    struct mentry entries[MODEL_ENTRIES];
    size_t n_entries;
    struct mfeed feeds[16];
    size_t n_feeds;
    struct mhold holds[MODEL_HOLDS];
    size_t n_holds;
    struct mhistory history[MODEL_HISTORY];
    size_t n_history;
};

void model_reset(struct model *m);
void model_copy(struct model *to, const struct model *from);

uint64_t model_digest(uint64_t seed, const void *bytes, size_t len);
struct mname model_name(const void *bytes, size_t len);
bool model_same(const struct mname *a, const struct mname *b);

/* --- rows --- */

/* The row, or NULL. */
const struct mrow *model_row(const struct model *m, uint64_t key);

/* Puts a new row in place of what is there; `row->ver` must be a version that this key
 * never had, and above the present one. */
const char *model_write(struct model *m, const struct mrow *row);
const char *model_delete(struct model *m, uint64_t key);

enum mcount { M_ADD, M_RAISE };
const char *model_count(struct model *m, uint64_t key, enum mcount how, unsigned column,
                        int64_t amount, int64_t min, int64_t max, int64_t *out);

/* Whether columns that are no counters are equal. */
bool model_values_same(const struct mvalue *a, const struct mvalue *b, unsigned n,
                       unsigned but);

/* The version a key had after commit `seq`; 0: it was absent. */
int64_t model_version_at(const struct model *m, uint64_t key, uint64_t seq);

/* --- ranks --- */

/* A change of a member's place, as struct effect has it. */
struct mrank {
    struct mname index, member;
    bool had, has;
    int64_t old_rank, rank;
};
const char *model_rank(struct model *m, uint64_t ns, const struct mrank *change);
/* Whether the member stands where the change says that it does. */
bool model_stands(const struct model *m, uint64_t ns, const struct mrank *change);

struct mscan {
    uint64_t ns;
    const struct mname *indexes;
    size_t n_indexes;
    int64_t min_rank, max_rank;
    bool has_after, descending;
    int64_t after_rank;
    struct mname after_member, after_index;
    size_t limit;
    uint64_t holder; /* not 0: leave out what others hold at now_us */
    int64_t now_us;
    const struct mrank *own; /* changes to be made before looking */
    size_t n_own;
};
/* At most `cap` of the answer in `out`; returns how many. */
size_t model_scan(const struct model *m, const struct mscan *s, struct mentry *out,
                  size_t cap);

void model_hold(struct model *m, const struct mhold *hold);
void model_release(struct model *m, uint64_t holder);

/* --- logs, feeds, chunks --- */

const char *model_log_append(struct model *m, uint64_t ns, const struct mname *stream,
                             int64_t seq, uint64_t digest);
const char *model_feed_append(struct model *m, uint64_t ns, const struct mname *feed,
                              int64_t pos, uint64_t digest);
const char *model_chunk_put(struct model *m, uint64_t ns, const struct mname *upload,
                            int64_t index, uint64_t digest);
void model_chunk_drop(struct model *m, uint64_t ns, const struct mname *upload,
                      int64_t index);
/* Drops log or feed entries up to and including `upto`. */
void model_trim(struct model *m, uint64_t ns, enum mkind kind, const struct mname *name,
                int64_t upto);

/* The entry with the least number above `after`, or NULL. */
const struct mentry *model_next(const struct model *m, uint64_t ns, enum mkind kind,
                                const struct mname *name, int64_t after);
int64_t model_feed_trimmed(const struct model *m, uint64_t ns,
                           const struct mname *feed);

/* --- comparing with what a walk shows --- */

void model_compare_begin(struct model *m);
const char *model_compare_row(struct model *m, const struct mrow *row);
/* A feed entry's number is not compared: a walk shows ordinals. */
const char *model_compare_entry(struct model *m, const struct mentry *e);
const char *model_compare_end(const struct model *m, uint64_t ns);

#endif /* SIMULATION_MODEL_H */
