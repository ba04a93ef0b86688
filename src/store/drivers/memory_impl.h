/* memory_impl.h - what the files of the memory driver share.
 *
 *   memory.c         open, attempts, reads, walk
 *   memory_table.c   rows, collections and members: hash tables that hold them
 *   memory_tree.c    ordered entries of a collection
 *   memory_commit.c  applying a plan: check, prepare, apply
 *   memory_guard.c   what its scans must find
 *   memory_care.c    erasing a namespace, looking for damage
 *
 * One mutex guards everything; it is held for one read or one commit at a time, never
 * while a body runs.
 */
#ifndef STORE_DRIVERS_MEMORY_IMPL_H
#define STORE_DRIVERS_MEMORY_IMPL_H

#include <pthread.h>

#include "base/rng.h"
#include "store/drivers/memory.h"
#include "store/drivers/memory_tree.h"

/* A namespace; interned, so that its address identifies it. */
struct mem_space {
    struct mem_space *next;
    struct bytes name;
};

/* A row and everything it points to, in one malloc:
 * [struct][values][encoded key, then bytes of the values]. */
struct mem_row {
    struct mem_link link; /* in the table of rows */
    const struct mem_space *space;
    struct row row;
    struct bytes enc;
    size_t body_len; /* values and bytes together */
    struct value v[];
};

enum mem_set_kind { MEM_RANK, MEM_LOG, MEM_FEED, MEM_UPLOAD };

/* A rank index, log stream, feed or upload: named, ordered entries. */
struct mem_set {
    struct mem_link link; /* in the table of sets */
    const struct mem_space *space;
    enum mem_set_kind kind;
    struct bytes name;
    struct mem_tree tree;
    int64_t last_pos; /* feeds: highest position given, also when trimmed */
    int64_t trimmed;  /* feeds: everything up to here is gone */
};

/* The picks of one attempt.  Owned by the driver: an attempt may die without ending. */
struct mem_group {
    struct mem_group *next, **at;
    int64_t until_us;
    struct mem_node *nodes;
};

/* A growing array of chains.  Growth may fail; then chains get longer, nothing else. */
struct mem_table {
    struct mem_link **buckets;
    size_t n_buckets; /* a power of two, or 0 before the first insert */
    size_t n;
};

struct memory {
    struct driver d;
    struct driver_config config;
    pthread_mutex_t mutex;
    struct rng rng; /* balance of the trees only */
    struct mem_space *spaces;
    struct mem_table rows, sets, members;
    struct mem_group *groups;
};

/* What an attempt remembers. */
struct mem_attempt {
    struct bytes ns;
    const struct mem_space *space; /* NULL until the namespace has anything in it */
    struct mem_group *group;       /* NULL until the first pick */
};

/* The namespace of the attempt; with `create`, made if need be (NULL: no memory). */
const struct mem_space *mem_space(struct memory *m, struct mem_attempt *a, bool create);

struct mem_row *mem_find_row(const struct memory *m, const struct mem_space *space,
                             const struct row_ref *ref);
struct mem_set *mem_find_set(const struct memory *m, const struct mem_space *space,
                             enum mem_set_kind kind, struct bytes name);
struct mem_node *mem_find_member(const struct memory *m, const struct mem_set *set,
                                 struct bytes member);

/* The set, made if need be; NULL: no memory.  An empty set shows nowhere. */
struct mem_set *mem_need_set(struct memory *m, const struct mem_space *space,
                             enum mem_set_kind kind, struct bytes name);
/* Frees a set that has no entries and nothing to remember. */
void mem_drop_set_if_empty(struct memory *m, struct mem_set *set);

/* Room in the tables for a first entry, so that linking cannot fail; false: no memory.
 */
bool mem_tables_ready(struct memory *m);

/* A row that is in no table yet, with these values; NULL: no memory. */
struct mem_row *mem_make_row(const struct mem_space *space, const struct row_ref *ref,
                             int64_t ver, const struct value *v);
void mem_link_row(struct memory *m, struct mem_row *r);
void mem_unlink_row(struct memory *m, struct mem_row *r);

/* An entry that is in no set yet; NULL: no memory. */
struct mem_node *mem_make_node(struct memory *m, int64_t number, struct bytes member,
                               struct bytes data);
void mem_link_node(struct memory *m, struct mem_set *set, struct mem_node *n);
/* Takes it out of its set and out of whoever holds it. */
void mem_unlink_node(struct memory *m, struct mem_node *n);
void mem_release_hold(struct mem_node *n);

void mem_free_everything(struct memory *m);

/* driver_ops.commit, with the mutex held. */
belay_rc mem_commit(struct memory *m, struct mem_attempt *a, const struct plan *plan,
                    struct plan_result *result, struct belay_error *err);

/* Whether the scans of a plan find what they are to find. */
bool mem_scans_hold(struct memory *m, const struct mem_attempt *a,
                    const struct plan *plan, struct plan_result *result);

/* driver_ops.erase, .check, .doctor */
belay_rc mem_erase(struct driver *d, struct bytes ns, size_t limit, bool *more,
                   struct belay_error *err);
belay_rc mem_check(struct driver *d, finding_report *report, void *arg,
                   struct belay_error *err);
belay_rc mem_doctor(struct driver *d, finding_report *report, void *arg,
                    struct belay_error *err);

#endif /* STORE_DRIVERS_MEMORY_IMPL_H */
