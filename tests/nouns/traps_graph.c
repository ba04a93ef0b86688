/* The graph (5.2, 10): what cannot be walked is refused when it is committed. */
#include "nouns.h"

#define LONG_CHAIN 2000

static belay_rc append(struct world *w, const char *const *json, size_t n,
                       const char *leaf, int graph)
{
    return commit(w, "s",
                  (struct belay_commit){ .expected_revision = BELAY_ANY_REVISION,
                                         .graph = graph,
                                         .nodes = json,
                                         .n_nodes = n,
                                         .leaf = leaf });
}

static void refusals_by_name(struct world *w)
{
    RC(w, say(w, "s", 0, "root", NULL), BELAY_OK);
    const char *before = everything(w);
    const struct {
        const char *nodes[3];
        size_t n;
        const char *leaf;
        const char *reason;
    } rows[] = {
        { { node(w, "root", NULL) }, 1, NULL, "duplicate_node" },
        { { node(w, "a", "root"), node(w, "a", NULL) }, 2, NULL, "duplicate_node" },
        { { node(w, "a", "nobody") }, 1, NULL, "dangling_parent" },
        { { node(w, "a", "a") }, 1, NULL, "cycle" },
        { { node(w, "a", "b"), node(w, "b", "a") }, 2, NULL, "cycle" },
        { { node(w, "a", "b"), node(w, "b", "c"), node(w, "c", "a") },
          3,
          NULL,
          "cycle" },
        { { node(w, "a", "root") }, 1, "nobody", "missing_leaf" },
        { { NULL }, 0, "nobody", "missing_leaf" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        w->use = i % 2 ? w->b : w->a;
        belay_rc rc = append(w, rows[i].nodes, rows[i].n, rows[i].leaf,
                             rows[i].n ? BELAY_GRAPH_APPEND : BELAY_GRAPH_UNCHANGED);
        if (!WHY(w, rc, BELAY_INVALID, rows[i].reason))
            printf("# in row %zu\n", i);
        STR(w, everything(w), before);
    }
}

/* Children may come before their parents within one commit. */
static void any_order_within_a_commit(struct world *w)
{
    const char *json[] = { node(w, "c", "b"), node(w, "b", "a"), node(w, "a", NULL) };

    RC(w, append(w, json, 3, "c", BELAY_GRAPH_APPEND), BELAY_OK);
    STR(w, nodes(w, "s"), "c b a");
    STR(w, path(w, "s", NULL), "a b c");
    EQ(w, w->committed.node_count, 3);
}

/* Long chains and long cycles take linear time; the suite's budget would not bear
 * anything else. */
static void long_chains(struct world *w)
{
    const char *json[LONG_CHAIN];
    struct belay_nodes found = { 0 };

    for (int i = 0; i < LONG_CHAIN; i++)
        json[i] = node(w, text(w, "n%d", i), i ? text(w, "n%d", i - 1) : NULL);
    RC(w, append(w, json, LONG_CHAIN, NULL, BELAY_GRAPH_APPEND), BELAY_OK);
    RC(w, belay_session_path(session(w, "s"), NULL, w->arena, &found, &w->err),
       BELAY_OK);
    EQ(w, found.n, LONG_CHAIN);
    OK(w, !found.truncated);
    if (found.n == LONG_CHAIN) {
        STR(w, found.nodes[0].node_id, "n0");
        STR(w, found.nodes[LONG_CHAIN - 1].node_id, text(w, "n%d", LONG_CHAIN - 1));
    }
    for (int i = 0; i < LONG_CHAIN; i++)
        json[i] = node(w, text(w, "m%d", i), text(w, "m%d", (i + 1) % LONG_CHAIN));
    WHY(w, append(w, json, LONG_CHAIN, NULL, BELAY_GRAPH_APPEND), BELAY_INVALID,
        "cycle");
    EQ(w, revision(w, "s"), 1);
}

static void replace_takes_everything(struct world *w)
{
    const char *tree[] = { node(w, "a", NULL), node(w, "b", "a"), node(w, "c", "b") };
    const char *dead[] = { "a" };

    RC(w, append(w, tree, 3, NULL, BELAY_GRAPH_APPEND), BELAY_OK);
    RC(w, belay_session_tombstone(session(w, "s"), dead, 1, NULL, &w->err), BELAY_OK);
    const char *fresh[] = { node(w, "a", NULL), node(w, "x", "a") };
    RC(w, append(w, fresh, 2, NULL, BELAY_GRAPH_REPLACE), BELAY_OK);
    EQ(w, w->committed.node_count, 2);
    STR(w, w->committed.leaf, "x");
    STR(w, nodes(w, "s"), "a x"); /* tombstoned ones went, too: `a` is new */
    STR(w, path(w, "s", NULL), "a x");
    RC(w, append(w, NULL, 0, NULL, BELAY_GRAPH_REPLACE), BELAY_OK);
    STR(w, nodes(w, "s"), "");
    EQ(w, w->committed.node_count, 0);
    /* What was there before is no parent any more. */
    const char *late = node(w, "y", "x");
    WHY(w, append(w, &late, 1, NULL, BELAY_GRAPH_APPEND), BELAY_INVALID,
        "dangling_parent");
}

/* Node sequences are never used again, so a reader that goes on misses nothing. */
static void sequences_only_rise(struct world *w)
{
    struct belay_nodes found = { 0 };

    RC(w, say(w, "s", 0, "a", NULL), BELAY_OK);
    RC(w, say(w, "s", 1, "b", "a"), BELAY_OK);
    RC(w, belay_session_nodes(session(w, "s"), 0, 1, w->arena, &found, &w->err),
       BELAY_OK);
    EQ(w, found.n, 1);
    OK(w, found.next_after_seq > 0);
    int64_t after = found.next_after_seq;
    const char *fresh = node(w, "c", NULL);
    RC(w, append(w, &fresh, 1, NULL, BELAY_GRAPH_REPLACE), BELAY_OK);
    RC(w, belay_session_nodes(session(w, "s"), after, 10, w->arena, &found, &w->err),
       BELAY_OK);
    if (OK(w, found.n == 1)) {
        STR(w, found.nodes[0].node_id, "c");
        EQ(w, found.nodes[0].seq, 3);
    }
    EQ(w, found.next_after_seq, 0);
}

/* A tombstoned node is no parent and no leaf; its id stays taken. */
static void tombstones_are_not_there(struct world *w)
{
    const char *dead[] = { "b" };
    RC(w, say(w, "s", 0, "a", NULL), BELAY_OK);
    RC(w, say(w, "s", 1, "b", "a"), BELAY_OK);
    RC(w, belay_session_tombstone(session(w, "s"), dead, 1, NULL, &w->err), BELAY_OK);
    w->use = w->b;
    const char *child = node(w, "c", "b"), *again = node(w, "b", "a");
    WHY(w, append(w, &child, 1, NULL, BELAY_GRAPH_APPEND), BELAY_INVALID,
        "dangling_parent");
    WHY(w, append(w, &again, 1, NULL, BELAY_GRAPH_APPEND), BELAY_INVALID,
        "duplicate_node");
    WHY(w, append(w, NULL, 0, "b", BELAY_GRAPH_UNCHANGED), BELAY_INVALID,
        "missing_leaf");
    STR(w, path(w, "s", "b"), "not_found");
}

static void leaves(struct world *w)
{
    const char *one = node(w, "a", NULL);

    RC(w, append(w, &one, 1, NULL, BELAY_GRAPH_APPEND), BELAY_OK);
    RC(w,
       commit(w, "s",
              (struct belay_commit){ .expected_revision = 1, .clear_leaf = true }),
       BELAY_OK);
    STR(w, w->committed.leaf, NULL);
    STR(w, path(w, "s", NULL), ""); /* no leaf: an empty path */
    STR(w, path(w, "s", "a"), "a");
    STR(w, path(w, "s", "nobody"), "not_found");
    RC(w, commit(w, "s", (struct belay_commit){ .expected_revision = 2, .leaf = "a" }),
       BELAY_OK);
    STR(w, path(w, "s", NULL), "a");
}

static const struct noun_case cases[] = {
    { "cycle, dangling parent, missing leaf, duplicate node: refused by name",
      refusals_by_name, 0 },
    { "children may stand before their parents in a commit", any_order_within_a_commit,
      0 },
    { "long chains and long cycles are decided in bounded time", long_chains, 0 },
    { "replacing the graph removes every node, tombstoned ones too",
      replace_takes_everything, 0 },
    { "node sequences are never used again", sequences_only_rise, 0 },
    { "a tombstoned node is neither parent nor leaf, and its id stays taken",
      tombstones_are_not_there, 0 },
    { "a leaf can be cleared and set", leaves, 0 },
};

const struct topic topic_traps_graph = { cases, COUNT_OF(cases) };
