/* txn_impl.h - what the files of the transaction layer share.
 *
 *   txn.c        the loop: attempt, confirm or commit, run again
 *   txn_state.c  what a body has read and written so far, found by key
 *   txn_read.c   reads: own writes first, the driver for the rest;  txn_load.c  several
 *   txn_write.c  writes: checked, copied, collected
 *   txn_plan.c   the plan made of it all
 *   txn_recall.c rows that need not be asked for;  txn_ahead.c, txn_sight.c  scans likewise
 *   slot.c       lost replies
 *   space.c      namespaces and their rows
 */
#ifndef STORE_TXN_IMPL_H
#define STORE_TXN_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/rng.h"
#include "store/recall.h"
#include "store/sight.h"
#include "store/txn.h"

/* A commit slot of this store in one namespace (rule 6 of the design: a lost reply is
 * resolved by writing).  Used by one commit at a time. */
struct slot {
    struct slot *next;
    char owner[ID_MAX];
    int64_t ver; /* of the slot's row, after the last commit known to be in it */
    int64_t touched_at_ms;
    bool aborted; /* what the row says */
};

struct space {
    struct space *next;
    struct store *store;
    struct bytes name;
    bool system;
    atomic_bool ready;     /* the namespace's rows and its registry entry exist */
    pthread_mutex_t mutex; /* for what follows */
    struct store_clock clock;
    struct slot *free_slots;
    struct recall recall;
    struct sights sights;
};

struct store {
    struct driver *driver;
    struct store_options options;
    struct rng rng;
    struct id_mint mint;
    _Atomic uint64_t next_plan_id;
    const volatile unsigned char *alive; /* a page that is zero after fork */
    pthread_mutex_t mutex;               /* for the list */
    struct space *spaces;
};

/* Anything a body touched, found by an encoded key. */
struct entry {
    struct entry *next; /* in the order of first touch */
    uint64_t hash;
    struct bytes key;
};

struct entry_map {
    struct entry **slots; /* open addressing */
    size_t cap;           /* a power of two */
    size_t n;
    struct entry *first, **last;
};

enum row_state { ROW_KEPT, ROW_INSERTED, ROW_CHANGED, ROW_DELETED };

/* A row the body has read under guard or inserted. */
struct txn_row {
    struct entry entry;
    struct row_ref ref;
    const struct row *base; /* as read; NULL: absent */
    const struct row *cur;  /* with the body's own writes; NULL: absent */
    enum row_state state;
    bool assumed; /* absent, without having looked */
    bool recalled;
    bool sighted; /* named by a scan that was not asked */
    bool spent;   /* nobody is expected to ask for it again: it is not kept */
    uint64_t changed;
    const struct value *initial; /* ROW_INSERTED: as inserted, for its counters */
};

/* A rank entry the body has changed. */
struct txn_rank {
    struct entry entry;
    struct bytes index, member;
    bool had, has; /* before and after */
    int64_t old_rank, rank;
};

/* Everything else, as the effect it will be. */
struct txn_op {
    struct txn_op *next;
    struct effect effect;
    struct txn_sum *sum;
    struct txn_pos *pos;
};

/* A row that was read for later bodies. */
struct foreseen_row {
    struct foreseen_row *next;
    struct row_ref ref;
    const struct row *row;
};

/* A scan that was answered without being asked, or what was read ahead of one. */
struct txn_sight {
    struct txn_sight *next;
    struct scan scan;
    struct hits hits;
};

/* How one run of a body ended. */
enum verdict {
    DONE,        /* answered: txn.rc stands */
    CONFLICT,    /* run it again */
    NOT_FOUNDED, /* create the namespace, then run it again */
};

#define INLINE_ENTRIES 16

struct txn {
    struct driver_job job; /* first, so that a job is its transaction */
    struct space *space;
    struct store *store;
    struct driver *driver;
    struct belay_arena *arena;
    struct arena_mark mark; /* where each run of the body begins */
    const struct txn_options *options;
    bool founding; /* creates the namespace itself, so does not wait for it */
    bool drawn;    /* a seed */
    txn_body *body;
    void *arg;
    uint64_t seed; /* every run draws the same versions from it */
    bool
        doubtful; /* a row that was thought to be new was there: look before inserting */

    /* of this run of the body */
    uint64_t id;
    unsigned run; /* 1 for the first */
    void *attempt;
    belay_rc failed;  /* T5 */
    unsigned n_reads; /* round trips */
    bool assumed;     /* the absence of a row was taken for granted */
    bool recalled;    /* a row was */
    size_t n_written; /* rows with an effect */
    struct rng versions;
    bool has_now;
    int64_t now_ms;
    struct entry_map rows, ranks;
    struct txn_op *ops, **ops_last;
    size_t n_ops;
    struct recall_page *pages;     /* read, under rows that cover them */
    struct foreseen_row *foreseen; /* read for later bodies */
    struct txn_sight *sights;      /* not asked: the plan guards them */
    struct txn_sight *asked;       /* asked, although they might have been known */
    struct txn_sight *seen;        /* read for later bodies */
    struct plan_topic *topics;
    size_t bytes; /* collected so far, against PLAN_BYTES_MAX */

    enum verdict verdict;
    belay_rc rc;
    struct plan plan; /* what the run committed */
    struct plan_result result;

    struct belay_error err;
    struct entry *inline_rows[INLINE_ENTRIES];
    struct entry *inline_ranks[INLINE_ENTRIES];
};

/* --- txn_state.c --- */

void entry_map_init(struct entry_map *m, struct entry **slots, size_t cap);
struct entry *entry_find(const struct entry_map *m, uint64_t hash, struct bytes key);
/* Adds one that is not there; false: no memory. */
MUST_USE bool entry_add(struct entry_map *m, struct entry *e, struct belay_arena *a);

struct txn_row *txn_find_row(const struct txn *t, const struct row_ref *ref);
/* Remembers a row as read (base NULL: absent), if it is not remembered yet. */
MUST_USE belay_rc txn_remember(struct txn *t, const struct row_ref *ref,
                               const struct row *base, struct txn_row **out);

/* What the body did to a rank entry, or *out = NULL. */
MUST_USE belay_rc txn_find_rank(struct txn *t, struct bytes index, struct bytes member,
                                struct txn_rank **out);
/* Remembers one that is not remembered yet; index and member are copied. */
MUST_USE belay_rc txn_remember_rank(struct txn *t, struct bytes index,
                                    struct bytes member, struct txn_rank **out);

/* Marks the transaction as failed (T5) and returns the code. */
static inline belay_rc txn_broken(struct txn *t, belay_rc rc)
{
    if (!t->failed)
        t->failed = rc;
    return rc;
}

static inline belay_rc txn_no_memory(struct txn *t)
{
    return txn_broken(t, err_no_memory(&t->err, "a transaction"));
}

static inline belay_rc txn_misuse(struct txn *t, const char *why)
{
    (void)err_set(&t->err, BELAY_MISUSE, "transaction: %s", why);
    return txn_broken(t, BELAY_MISUSE);
}

/* The row with what one counter effect, or all of the body's so far, make of it; NULL:
 * no memory. */
const struct row *txn_with_counter(struct txn *t, const struct row *row,
                                   const struct effect *e);
const struct row *txn_with_counters(struct txn *t, const struct row_ref *ref,
                                    const struct row *row);

/* --- txn_recall.c --- */

/* Whether anything is kept for bodies like this one. */
bool txn_may_recall(const struct txn *t);
/* The era in which something may be taken for granted; 0: it must be asked for. */
uint64_t txn_era(struct txn *t);
/* Remembers a row, or that there is none, without having looked; NULL: no memory. */
struct txn_row *txn_take_for_granted(struct txn *t, const struct row_ref *ref,
                                     const struct row *row);

/* The row as this program left it, if that is known and may be used. */
struct txn_row *txn_recall(struct txn *t, const struct row_ref *ref);
/* After a commit that stands, or one of which nothing is known. */
void txn_learn(struct txn *t, bool known);
/* After a conflict. */
void txn_unlearn(struct txn *t, const struct plan_result *result);

/* --- txn_read.c --- */

/* One round trip. */
MUST_USE belay_rc txn_ask(struct txn *t, struct read *reads, size_t n);
MUST_USE belay_rc txn_check_scan(struct txn *t, const struct scan *s);
/* Entries that the body took away are asked for on top, so that enough are left. */
struct scan txn_widened(const struct txn *t, const struct scan *scan);
/* What the store answered, as this body sees it. */
MUST_USE belay_rc txn_take_hits(struct txn *t, const struct scan *scan,
                                struct hits *io);

static inline bool scan_shows_nothing(const struct scan *scan)
{
    return scan->limit == 0 || scan->n_indexes == 0;
}

/* --- txn_ahead.c --- */

/* So far behind its last rank a scan looks for the next member, and no further: what has left an
 * index may still be in a store's way.  For times, ten seconds. */
#define SCAN_BEYOND 10000
static inline int64_t scan_beyond(const struct scan *s)
{
    return s->max_rank < RANK_MAX - SCAN_BEYOND ? s->max_rank + SCAN_BEYOND : RANK_MAX;
}

/* Whether the scan is answered by what this program knows; the rows of *out are remembered. */
MUST_USE bool txn_recall_scan(struct txn *t, const struct scan *scan, struct hits *out);
/* How many more are to be asked for, and whether also where the next member stands behind the
 * last rank of the scan. */
size_t txn_ahead(struct txn *t, const struct scan *scan, bool *next);
/* Of what such a scan found, keeps what is behind those that it was to find at most, for later.
 * next NULL: that was not asked. */
MUST_USE belay_rc txn_keep_page(struct txn *t, const struct scan *scan, struct hits *io,
                                const struct hits *next);

/* --- txn_sight.c --- */

/* Whether all of these are answered by what this program knows: otherwise there is a round trip
 * anyhow, and all of them are asked.  The rows of *out are remembered. */
MUST_USE bool txn_recall_sights(struct txn *t, const struct scan *scans, size_t n,
                                struct hits *out);
/* Whether it is worth the while to read ahead of these; then what was found, for later. */
MUST_USE bool txn_may_see_ahead(struct txn *t, const struct scan *scans, size_t n);
MUST_USE belay_rc txn_keep_sight(struct txn *t, const struct scan *scan,
                                 const struct hits *found);
/* What the plan has to guard. */
MUST_USE belay_rc txn_guard_sights(struct txn *t, struct plan *plan);
/* After a commit that stands, or one of which nothing is known (era 0); after a conflict; and
 * when there was none. */
void txn_learn_sights(struct txn *t, uint64_t era);
void txn_unlearn_sights(struct txn *t, const struct plan_result *result);
void txn_end_sights(struct txn *t, enum sight_end how);
void txn_end_asked(struct txn *t); /* after all that */

/* --- txn_plan.c --- */

/* The plan of the body's decision, in the arena.  out->n_effects is 0 when it wrote
 * nothing.  with_effects false leaves the guards alone (to confirm an answer). */
MUST_USE belay_rc txn_make_plan(struct txn *t, bool with_effects, struct plan *out,
                                struct plan_result *result);
/* Hands sums, positions and wake-ups of the run out, once it stands. */
void txn_hand_out(struct txn *t);
/* Wake-ups alone, when it may stand: one too many does no harm. */
void txn_post_topics(struct txn *t);

/* --- slot.c --- */

/* Room that a plan has behind its own guards and effects, for the slot's. */
#define SLOT_GUARDS 1
#define SLOT_EFFECTS 2

/* Commits the transaction's plan under a slot of the space; the code is in txn.rc. */
enum verdict slot_commit(struct txn *t);

/* --- space.c --- */

/* Creates the namespace's rows and registry entry if they are missing. */
MUST_USE belay_rc space_found(struct space *sp, struct belay_error *err);
int64_t space_tell_time(struct space *sp, int64_t wall_ms);
void space_close(struct space *sp);

/* --- txn.c --- */

/* `misuse` in a body, or in a child after fork. */
MUST_USE belay_rc store_enter(const struct store *s, struct belay_error *err);

/* txn_run for the store's own rows: works before the namespace exists. */
MUST_USE belay_rc txn_run_founding(struct space *sp, txn_body *body, void *arg,
                                   const struct txn_options *options,
                                   struct belay_arena *a, struct belay_error *err);

#endif /* STORE_TXN_IMPL_H */
