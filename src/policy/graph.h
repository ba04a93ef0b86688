/* graph.h - whether nodes may join a session's graph.
 *
 * The graph is a forest by parent ids; one leaf selects the active path.  What a commit
 * brings is checked against itself and against what is there, in time that is linear in
 * what it brings: dangling parents, cycles, missing leaves and duplicate nodes are
 * refused by name.
 *
 * Pure: memory comes from the arena it is handed.
 */
#ifndef POLICY_GRAPH_H
#define POLICY_GRAPH_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

struct graph_node {
    struct bytes id, parent; /* parent with a NULL ptr: a root */
};

/* What the store says about an id that the delta names: filled by the caller before
 * graph_check for every node of the delta (is the id taken?), every parent and leaf
 * that the delta itself does not bring. */
struct graph_known {
    struct bytes id;
    bool taken; /* there is a node of that id, tombstoned or not */
    bool live;  /* ... and it is not tombstoned */
};

enum graph_verdict {
    GRAPH_OK,
    GRAPH_DUPLICATE_NODE,  /* twice in the delta, or taken in the store */
    GRAPH_DANGLING_PARENT, /* a parent that is neither in the delta nor live */
    GRAPH_CYCLE,           /* a node that is its own ancestor */
    GRAPH_MISSING_LEAF,    /* likewise a leaf */
};

/* "duplicate_node", "dangling_parent", "cycle", "missing_leaf"; "" for GRAPH_OK. */
const char *graph_verdict_name(enum graph_verdict v);

/* A delta with its index by id. */
struct graph;

/* Indexes the nodes (borrowed) in the arena.  no_memory only. */
MUST_USE belay_rc graph_make(struct graph **out, const struct graph_node *nodes,
                             size_t n, struct belay_arena *a, struct belay_error *err);

/* Place of the first node of that id in the delta, or -1. */
int64_t graph_find(const struct graph *g, struct bytes id);

/* The verdict, and in *out_id what it is about (untouched when GRAPH_OK).  `known` in
 * any order; an id that is not in it counts as neither taken nor live.  leaf with a
 * NULL ptr: none is named. */
MUST_USE belay_rc graph_check(const struct graph *g, const struct graph_known *known,
                              size_t n_known, struct bytes leaf, struct belay_arena *a,
                              enum graph_verdict *out, struct bytes *out_id,
                              struct belay_error *err);

#endif /* POLICY_GRAPH_H */
