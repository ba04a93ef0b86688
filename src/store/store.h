/* store.h - an open store and its namespaces.
 *
 *     driver   one database, shared by any number of stores
 *     store    one program's view of it: randomness, retries, caches
 *     space    one namespace of a store; transactions run in a space
 *
 * All three are safe to use from many threads.  After fork() a store is unusable in the
 * child: every call there is `misuse`.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/id.h"
#include "store/clock.h"
#include "store/driver.h"
#include "store/wake.h"

/* How a transaction is run again after conflicts. */
struct store_retry {
    unsigned max_attempts; /* then `contention`; 0: the default */
    int64_t first_us;      /* longest pause before the second re-run; the first is
                              immediate */
    int64_t longest_us;    /* pauses double up to this */
};

struct store_options {
    const struct schema *schema; /* what the driver was opened with */
    struct belay_clock clock;
    struct belay_random random;
    struct store_retry retry; /* all zero: defaults */
};

struct store;
struct space;

/* The driver is borrowed and must outlive the store. */
MUST_USE belay_rc store_open(struct store **out, struct driver *d,
                             const struct store_options *options,
                             struct belay_error *err);
void store_close(struct store *s); /* takes NULL; no call may be running */

/* The space called `ns`, opened on first use and kept until the store is closed.
 *
 * Opening reads the namespace's rows: its format (`unsupported_format` with found and
 * expected when this program is too old for it), epoch and clock mark.  A namespace
 * that does not exist yet is created, and entered in the registry, by its first commit.
 * `invalid` for a name outside [a-z0-9][a-z0-9_-]{0,62}; `wrong_state`, reason
 * deleting, for one that is being deleted, and likewise for the first commit in it. */
MUST_USE belay_rc store_space(struct store *s, struct bytes ns, struct space **out,
                              struct belay_error *err);

/* The system namespace, `_belay`. */
MUST_USE belay_rc store_system_space(struct store *s, struct space **out,
                                     struct belay_error *err);

/* After everything in a namespace was erased: a space of it that is open here begins
 * anew with its next commit.  Spaces of other stores do not learn of it. */
void store_forget_space(struct store *s, struct bytes ns);

struct bytes space_name(const struct space *sp);
struct store *space_store(const struct space *sp);
struct driver *store_driver(const struct store *s);
const struct belay_clock *store_clock_hook(const struct store *s);
const struct belay_random *store_random_hook(const struct store *s);

/* The store's time, outside any transaction. */
MUST_USE belay_rc space_now(struct space *sp, int64_t *out_ms, struct belay_error *err);

/* Whether a step of the wall clock is being ignored, and how far it is off. */
bool space_clock_doubted(struct space *sp, int64_t *out_step_ms);
void space_clock_accept(struct space *sp);

/* Time goes on from this mark, even if that is a step back: for whoever has just stored
 * the mark, together with a new epoch. */
void space_clock_restart(struct space *sp, int64_t mark_ms);

/* In a body: what the clock below the store's time says by itself, however wrong.
 * Unlike txn_now it has no part in the mark that goes along with the commit. */
struct txn;
/* In a body: which life of its server the store is in (driver.h). */
MUST_USE belay_rc txn_lineage(struct txn *t, struct bytes known, struct lineage *out);
MUST_USE belay_rc txn_wall(struct txn *t, int64_t *out_ms);

/* A new id, from this store's mint and the space's time. */
MUST_USE belay_rc space_mint(struct space *sp, const char *prefix, char out[ID_MAX],
                             struct belay_error *err);
/* One of many, at a time the caller has from space_now. */
MUST_USE belay_rc space_mint_at(struct space *sp, const char *prefix, int64_t now_ms,
                                char out[ID_MAX], struct belay_error *err);

/* Listens to topics of the space (wake.h). */
MUST_USE belay_rc space_listen(struct space *sp, const struct bytes *topics,
                               size_t n_topics, struct belay_cancel *cancel,
                               struct belay_arena *a, struct listener **out,
                               struct belay_error *err);

/* Deletes commit slots unused since before_ms (slot.h), at most `limit`; tells how
 * many. */
MUST_USE belay_rc space_prune_slots(struct space *sp, int64_t before_ms, size_t limit,
                                    size_t *out_pruned, struct belay_error *err);

#endif /* STORE_STORE_H */
