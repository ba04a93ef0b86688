/* memory_tree.h - the ordered collections of the memory driver.
 *
 * A treap of intrusive nodes ordered by (number, member): inserting and removing never
 * allocate, so a commit that has prepared its nodes cannot fail half-way.
 */
#ifndef STORE_DRIVERS_MEMORY_TREE_H
#define STORE_DRIVERS_MEMORY_TREE_H

#include "base/bytes.h"

struct mem_group; /* the picks of one attempt */
struct mem_set;

/* A place in a hash table's chain; the first member of whatever stands in one. */
struct mem_link {
    struct mem_link *next;
    uint64_t hash;
};

/* One entry of a rank, log, feed or upload; a single malloc with its bytes behind it.
 */
struct mem_node {
    struct mem_link link; /* in the table of members; ranks only */
    struct mem_set *set;
    struct mem_node *left, *right, *parent;
    uint64_t priority;
    int64_t number;          /* rank, sequence, position or chunk index */
    struct bytes member;     /* ranks only */
    struct bytes data;       /* the others */
    struct mem_group *group; /* who holds it, or NULL */
    struct mem_node *group_next, **group_at;
};

struct mem_tree {
    struct mem_node *root;
    size_t n;
};

void mem_tree_insert(struct mem_tree *t, struct mem_node *n);
void mem_tree_remove(struct mem_tree *t, struct mem_node *n);

/* The first node at or after (number, member), or NULL. */
struct mem_node *mem_tree_at_or_after(const struct mem_tree *t, int64_t number,
                                      struct bytes member);
/* The last node at or before it, or NULL. */
struct mem_node *mem_tree_at_or_before(const struct mem_tree *t, int64_t number,
                                       struct bytes member);
struct mem_node *mem_tree_last(const struct mem_tree *t);
struct mem_node *mem_tree_next(const struct mem_node *n);
struct mem_node *mem_tree_previous(const struct mem_node *n);

#endif /* STORE_DRIVERS_MEMORY_TREE_H */
