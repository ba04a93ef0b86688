#include "policy/graph.h"

/* Ids found by hash: open addressing, with at least as many free places as ids. */
struct id_slot {
    struct bytes id;
    size_t place; /* + 1; 0: free */
};

struct id_table {
    struct id_slot *slots;
    size_t mask;
};

struct graph {
    const struct graph_node *nodes;
    size_t n;
    struct id_table ids;
};

static const char *const verdict_names[] = {
    [GRAPH_OK] = "",
    [GRAPH_DUPLICATE_NODE] = "duplicate_node",
    [GRAPH_DANGLING_PARENT] = "dangling_parent",
    [GRAPH_CYCLE] = "cycle",
    [GRAPH_MISSING_LEAF] = "missing_leaf",
};

const char *graph_verdict_name(enum graph_verdict v)
{
    return verdict_names[v];
}

/* --- tables --- */

static size_t hash_of(struct bytes id)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */

    for (size_t i = 0; i < id.len; i++)
        h = (h ^ id.ptr[i]) * UINT64_C(1099511628211);
    return (size_t)(h ^ (h >> 32));
}

static bool table_make(struct id_table *t, size_t n, struct belay_arena *a)
{
    size_t cap = 4;

    while (cap / 2 < n)
        cap *= 2;
    t->slots = arena_zalloc(a, cap, sizeof(*t->slots));
    t->mask = cap - 1;
    return t->slots != NULL;
}

/* The slot of the id, or the free one where it belongs. */
static struct id_slot *table_slot(const struct id_table *t, struct bytes id)
{
    size_t i = hash_of(id) & t->mask;

    while (t->slots[i].place > 0 && !bytes_eq(t->slots[i].id, id))
        i = (i + 1) & t->mask;
    return &t->slots[i];
}

/* The first of an id stays. */
static void table_add(struct id_table *t, struct bytes id, size_t place)
{
    struct id_slot *slot = table_slot(t, id);

    if (slot->place == 0)
        *slot = (struct id_slot){ .id = id, .place = place + 1 };
}

/* --- the delta --- */

belay_rc graph_make(struct graph **out, const struct graph_node *nodes, size_t n,
                    struct belay_arena *a, struct belay_error *err)
{
    struct graph *g = arena_zalloc(a, 1, sizeof(*g));

    if (!g || !table_make(&g->ids, n, a))
        return err_no_memory(err, "a graph");
    g->nodes = nodes;
    g->n = n;
    for (size_t i = 0; i < n; i++)
        table_add(&g->ids, nodes[i].id, i);
    *out = g;
    return BELAY_OK;
}

int64_t graph_find(const struct graph *g, struct bytes id)
{
    return (int64_t)table_slot(&g->ids, id)->place - 1;
}

/* --- the verdict --- */

/* What the store says, by id. */
struct known_ids {
    const struct graph_known *known;
    struct id_table ids;
};

static const struct graph_known *known_find(const struct known_ids *k, struct bytes id)
{
    size_t place = table_slot(&k->ids, id)->place;

    return place > 0 ? &k->known[place - 1] : NULL;
}

static bool is_there(const struct graph *g, const struct known_ids *k, struct bytes id)
{
    const struct graph_known *known = known_find(k, id);

    return graph_find(g, id) >= 0 || (known && known->live);
}

static enum graph_verdict check_ids(const struct graph *g, const struct known_ids *k,
                                    struct bytes *out_id)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct graph_known *known = known_find(k, g->nodes[i].id);
        if (graph_find(g, g->nodes[i].id) != (int64_t)i || (known && known->taken)) {
            *out_id = g->nodes[i].id;
            return GRAPH_DUPLICATE_NODE;
        }
    }
    return GRAPH_OK;
}

static enum graph_verdict check_parents(const struct graph *g,
                                        const struct known_ids *k, struct bytes *out_id)
{
    for (size_t i = 0; i < g->n; i++) {
        if (g->nodes[i].parent.ptr && !is_there(g, k, g->nodes[i].parent)) {
            *out_id = g->nodes[i].parent;
            return GRAPH_DANGLING_PARENT;
        }
    }
    return GRAPH_OK;
}

/* Walks up from each node until it meets a walk that has been here: an earlier one has
 * found no cycle above, the same one has found a cycle.  Each node is passed once.  Only
 * nodes of the delta can be in a cycle: what is stored does not point at them. */
static enum graph_verdict check_cycles(const struct graph *g, size_t *walk_of,
                                       struct bytes *out_id)
{
    for (size_t i = 0; i < g->n; i++) {
        size_t walk = i + 1;
        int64_t at = (int64_t)i;
        while (at >= 0 && walk_of[at] == 0) {
            struct bytes parent = g->nodes[at].parent;
            walk_of[at] = walk;
            at = parent.ptr ? graph_find(g, parent) : -1;
        }
        if (at >= 0 && walk_of[at] == walk) {
            *out_id = g->nodes[at].id;
            return GRAPH_CYCLE;
        }
    }
    return GRAPH_OK;
}

belay_rc graph_check(const struct graph *g, const struct graph_known *known,
                     size_t n_known, struct bytes leaf, struct belay_arena *a,
                     enum graph_verdict *out, struct bytes *out_id,
                     struct belay_error *err)
{
    struct known_ids k = { .known = known };
    size_t *walk_of = arena_zalloc(a, g->n, sizeof(*walk_of));

    if (!walk_of || !table_make(&k.ids, n_known, a))
        return err_no_memory(err, "a graph");
    for (size_t i = 0; i < n_known; i++)
        table_add(&k.ids, known[i].id, i);

    *out = check_ids(g, &k, out_id);
    if (*out == GRAPH_OK)
        *out = check_parents(g, &k, out_id);
    if (*out == GRAPH_OK)
        *out = check_cycles(g, walk_of, out_id);
    if (*out == GRAPH_OK && leaf.ptr && !is_there(g, &k, leaf)) {
        *out = GRAPH_MISSING_LEAF;
        *out_id = leaf;
    }
    return BELAY_OK;
}
