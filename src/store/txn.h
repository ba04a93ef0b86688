/* txn.h - optimistic transactions: a body reads and decides, the store applies.
 *
 * A body is a function of a transaction and an argument.  What it reads through txn_get
 * is guarded, what it writes is collected, and nothing reaches the store before it
 * returns BELAY_OK; then guards and writes are committed in one shot.  When a guard no
 * longer holds, the body runs again.
 *
 * Rules for bodies
 *   T1  Decide only from what you guard.  txn_peek, scans, picks, logs and feeds are
 *       hints; absence is guarded by txn_get like presence.
 *   T2  A body may run several times.  It has no effect outside its transaction and its
 *       arena; outputs through `arg` are set anew on each run.  It calls no function
 *       that takes a store or a space: those answer `misuse`.
 *   T3  Everything it reads includes what it wrote before in the same run.
 *   T4  Its answer is confirmed even if it wrote nothing or failed: an answer drawn
 * from several round trips is given only after the guards were checked together. T5  A
 * call that fails for the store's sake (memory, availability, misuse) fails the
 *       transaction even if the body goes on.
 *
 * Pointers into rows and hits live in the arena of txn_run, until the body is run again
 * or the caller resets the arena.
 */
#ifndef STORE_TXN_H
#define STORE_TXN_H

#include "store/store.h"

struct txn;
typedef belay_rc txn_body(struct txn *t, void *arg);

struct txn_options {
    struct belay_cancel *cancel; /* NULL: cannot be cancelled */
    int64_t deadline_us;         /* by the monotonic clock; 0: none */
    bool read_only;              /* the body writes nothing (else misuse): stores that
                                    queue writers answer it beside them */
};

/* Runs the body until its decision is committed or confirmed, and returns its answer.
 *
 * Codes of its own: contention (too many conflicts), timeout and cancelled (nothing was
 * done), unknown_outcome (the commit was sent, its reply is lost and could not be
 * resolved), misuse (called from a body, or after fork), and whatever the driver says.
 * options may be NULL. */
MUST_USE belay_rc txn_run(struct space *sp, txn_body *body, void *arg,
                          const struct txn_options *options, struct belay_arena *a,
                          struct belay_error *err);

/* Ends a body with an error: `return txn_fail(t, BELAY_NOT_FOUND, "", "...")`.
 * Facts are added with err_numbers / err_entity on txn_error(t). */
belay_rc txn_fail(struct txn *t, belay_rc code, const char *reason, const char *fmt,
                  ...) RARE PRINTF_LIKE(4, 5);
struct belay_error *txn_error(struct txn *t);

struct belay_arena *txn_arena(struct txn *t);

/* The store's time; the same for the whole run of the body. */
MUST_USE belay_rc txn_now(struct txn *t, int64_t *out_ms);

/* --- rows --- */

/* The row with this key (type->n_key values), or *out = NULL when there is none.
 * Presence and absence are guarded. */
MUST_USE belay_rc txn_get(struct txn *t, const struct row_type *type,
                          const struct value *key, const struct row **out);

/* Several rows, of any types, in one round trip. */
MUST_USE belay_rc txn_get_many(struct txn *t, const struct row_want *wants, size_t n,
                               const struct row **out);

/* This program hardly needs the row again, which the body has read: it is not kept. */
void txn_spent(struct txn *t, const struct row_type *type, const struct value *key);

/* How the row was when this program last knew it, or NULL.  Not guarded, perhaps long since
 * changed: for where to begin to look. */
MUST_USE belay_rc txn_hint(struct txn *t, const struct row_type *type,
                           const struct value *key, const struct row **out);

/* Rows that later bodies of this program will ask for.  Where a read is a round trip those that
 * are not known are read in one, and kept if this body's decision is committed; they are not
 * guarded.  Elsewhere this does nothing. */
MUST_USE belay_rc txn_foresee(struct txn *t, const struct row_want *wants, size_t n);

/* Says before it is read that there is most likely no such row.  Where a read is a round trip
 * that is taken for granted in the first run, and found out by the commit; elsewhere this
 * does nothing. */
MUST_USE belay_rc txn_expect_none(struct txn *t, const struct row_type *type,
                                  const struct value *key);

/* The same without a guard: a hint. */
MUST_USE belay_rc txn_peek(struct txn *t, const struct row_type *type,
                           const struct value *key, const struct row **out);

/* A new row; v has all columns, counters included.  Its absence is guarded.  Without a
 * txn_get before, the absence is assumed, which saves a round trip for minted keys; if
 * the row turns out to be there the body runs again and this call answers wrong_state,
 * reason `exists`. */
MUST_USE belay_rc txn_insert(struct txn *t, const struct row_type *type,
                             const struct value *v);

/* One column's new value. */
struct change {
    unsigned column;
    struct value value;
};

/* Changes columns of a row that this body has read by txn_get (or inserted).  Key
 * columns and counters are refused as misuse; an unchanged value may be named.  From then on the
 * body sees the row with the version that the commit will give it; one that it has inserted
 * has version 0. */
MUST_USE belay_rc txn_put(struct txn *t, const struct row_type *type,
                          const struct value *key, const struct change *changes,
                          size_t n_changes);

/* Deletes a row that this body has read by txn_get (or inserted).  Inserting it again
 * in the same body is misuse. */
MUST_USE belay_rc txn_delete(struct txn *t, const struct row_type *type,
                             const struct value *key);

/* --- counters --- */

/* Filled when txn_run returns BELAY_OK; not known after a lost reply was resolved. */
struct txn_sum {
    bool known;
    int64_t value;
};

/* counter += delta at commit, without a guard.  If the result would leave min..max,
 * txn_run answers out_of_range and nothing is applied.  A row that is not there:
 * not_found.  `out` may be NULL; it must outlive txn_run. */
MUST_USE belay_rc txn_add(struct txn *t, const struct row_type *type,
                          const struct value *key, unsigned column, int64_t delta,
                          int64_t min, int64_t max, struct txn_sum *out);

/* counter = max(counter, value), likewise. */
MUST_USE belay_rc txn_raise(struct txn *t, const struct row_type *type,
                            const struct value *key, unsigned column, int64_t value);

/* --- ranks --- */

/* A member stands at most once in an index.  Whoever owns it knows its rank, from a row
 * it guards: an entry that is not where it should be is `corrupt`. */
MUST_USE belay_rc txn_rank_add(struct txn *t, struct bytes index, int64_t rank,
                               struct bytes member);
MUST_USE belay_rc txn_rank_move(struct txn *t, struct bytes index, int64_t old_rank,
                                int64_t rank, struct bytes member);
MUST_USE belay_rc txn_rank_remove(struct txn *t, struct bytes index, int64_t old_rank,
                                  struct bytes member);

/* Members in order; the rows they name are guarded as if by txn_get, or looked at as if by
 * txn_peek where the scan says so. */
MUST_USE belay_rc txn_scan(struct txn *t, const struct scan *scan, struct hits *out);

/* The same, and hides the members from other pickers until this run of the body ends.
 * For speed only: the guards at commit are what prevents a double grant. */
MUST_USE belay_rc txn_pick(struct txn *t, const struct scan *scan, struct hits *out);

/* Rows and scans in one round trip: as txn_get_many and txn_scan (txn_pick where the scan
 * says so), one after the other.  rows has n_wants entries, hits n_scans.
 *
 * A scan with a cover (read.h) may be answered from what this program has read or written
 * itself, like a row: if its cover no longer stands at the commit, the body runs again. */
MUST_USE belay_rc txn_load(struct txn *t, const struct row_want *wants, size_t n_wants,
                           const struct row **rows, const struct scan *scans,
                           size_t n_scans, struct hits *hits);

/* --- logs --- */

/* Entry `seq` of a stream, from 1, the next after the head that the body guards. */
MUST_USE belay_rc txn_log_append(struct txn *t, struct bytes stream, int64_t seq,
                                 struct bytes data);
MUST_USE belay_rc txn_log_read(struct txn *t, struct bytes stream, int64_t after,
                               size_t limit, struct log_entries *out);
/* Drops the entries up to and including `upto`. */
MUST_USE belay_rc txn_log_trim(struct txn *t, struct bytes stream, int64_t upto);

/* --- feeds --- */

/* Filled when txn_run returns BELAY_OK, as struct txn_sum. */
struct txn_pos {
    bool known;
    struct feed_pos pos;
};

MUST_USE belay_rc txn_feed_append(struct txn *t, struct bytes feed, struct bytes data,
                                  struct txn_pos *out);
/* Entries after a position.  A body does not see its own appends: they have no position
 * before the commit. */
MUST_USE belay_rc txn_feed_read(struct txn *t, struct bytes feed, struct feed_pos after,
                                size_t limit, struct feed_entries *out);
MUST_USE belay_rc txn_feed_trim(struct txn *t, struct bytes feed, struct feed_pos upto);

/* --- chunks (blob.h is what callers want) --- */

/* `data` is not copied: it must stay as it is until txn_run returns. */
#define CHUNK_MAX ((size_t)1 << 20)
MUST_USE belay_rc txn_chunk_put(struct txn *t, struct bytes upload, int64_t index,
                                struct bytes data);
MUST_USE belay_rc txn_chunk_get(struct txn *t, struct bytes upload, int64_t index,
                                bool *found, struct bytes *out);
MUST_USE belay_rc txn_chunk_drop(struct txn *t, struct bytes upload, int64_t index);

/* --- wake-ups --- */

/* After the commit, wakes whoever listens to the topic in this namespace. */
MUST_USE belay_rc txn_wake(struct txn *t, struct bytes topic);

/* --- for tests and simulation --- */

/* Which attempt this run of the body is; also the id of its plan. */
uint64_t txn_id(const struct txn *t);

/* The body this thread is in, replaced by `with`; a scheduler that switches between
 * bodies on one thread calls this at each switch. */
struct txn *txn_thread_swap(struct txn *with);

#endif /* STORE_TXN_H */
