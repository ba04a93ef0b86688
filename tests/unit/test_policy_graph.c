/* Deltas of a graph: what may join it, and what is refused by name. */
#include <stdlib.h>

#include "policy/graph.h"
#include "tap.h"

static struct bytes text(const char *s)
{
    return s ? bytes_str(s) : bytes_of(NULL, 0);
}

/* "id" or "id<parent", with spaces between; known: "id" live, "id!" tombstoned. */
struct delta {
    struct graph_node nodes[16];
    struct graph_known known[16];
    size_t n, n_known;
    char words[256];
};

static void read_delta(struct delta *d, const char *nodes, const char *known)
{
    char *save = NULL;
    *d = (struct delta){ .n = 0 };
    (void)snprintf(d->words, sizeof(d->words), "%s|%s", nodes, known);
    char *bar = strchr(d->words, '|');
    *bar = '\0';
    for (char *w = strtok_r(d->words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        char *parent = strchr(w, '<');
        if (parent)
            *parent++ = '\0';
        d->nodes[d->n++] = (struct graph_node){ text(w), text(parent) };
    }
    for (char *w = strtok_r(bar + 1, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        char *hidden = strchr(w, '!');
        if (hidden)
            *hidden = '\0';
        d->known[d->n_known++] =
            (struct graph_known){ .id = text(w), .taken = true, .live = !hidden };
    }
}

/* "verdict id", or "" for GRAPH_OK. */
static const char *verdict(const char *nodes, const char *known, const char *leaf)
{
    static char said[64];
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    enum graph_verdict v = GRAPH_CYCLE;
    struct bytes id = { 0 };
    struct graph *g = NULL;
    struct delta d;

    read_delta(&d, nodes, known);
    if (graph_make(&g, d.nodes, d.n, &a, NULL) ||
        graph_check(g, d.known, d.n_known, text(leaf), &a, &v, &id, NULL))
        return "failed";
    if (v == GRAPH_OK)
        return id.ptr ? "an id" : "";
    (void)snprintf(said, sizeof(said), "%s %.*s", graph_verdict_name(v), (int)id.len,
                   (const char *)id.ptr);
    return said;
}

static void test_fine(struct tap *t)
{
    TAP_STR(t, verdict("", "", NULL), "");
    TAP_STR(t, verdict("", "a", "a"), "");
    TAP_STR(t, verdict("a", "", NULL), "");
    TAP_STR(t, verdict("a b<a c<b", "", "c"), "");
    TAP_STR(t, verdict("a b c", "", "b"), ""); /* a forest */
    TAP_STR(t, verdict("b<a c<a", "a", "b"), "");
    TAP_STR(t, verdict("c<b b<a a", "", "a"), ""); /* parents that come later */
}

static void test_duplicates(struct tap *t)
{
    TAP_STR(t, verdict("a b a", "", NULL), "duplicate_node a");
    TAP_STR(t, verdict("b a", "a", NULL), "duplicate_node a");
    TAP_STR(t, verdict("b a", "a!", NULL), "duplicate_node a"); /* tombstoned: taken */
}

static void test_dangling(struct tap *t)
{
    TAP_STR(t, verdict("b<a", "", NULL), "dangling_parent a");
    TAP_STR(t, verdict("b<a", "a!", NULL), "dangling_parent a");
    TAP_STR(t, verdict("b<a c<x", "a", NULL), "dangling_parent x");
}

static void test_cycles(struct tap *t)
{
    TAP_STR(t, verdict("a<a", "", NULL), "cycle a");
    TAP_STR(t, verdict("a<b b<a", "", NULL), "cycle a");
    TAP_STR(t, verdict("r d<r x<c a<c b<a c<b", "", NULL), "cycle c");
    TAP_STR(t, verdict("a b<a c<b d<b e<d f<c", "", NULL), "");
}

static void test_leaves(struct tap *t)
{
    TAP_STR(t, verdict("a", "", "b"), "missing_leaf b");
    TAP_STR(t, verdict("", "b!", "b"), "missing_leaf b");
    TAP_STR(t, verdict("", "", "b"), "missing_leaf b");
}

static void test_find(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct graph *g = NULL;
    struct delta d;

    read_delta(&d, "a b a c", "");
    TAP_EQ(t, graph_make(&g, d.nodes, d.n, &a, NULL), BELAY_OK);
    TAP_EQ(t, graph_find(g, bytes_str("a")), 0);
    TAP_EQ(t, graph_find(g, bytes_str("b")), 1);
    TAP_EQ(t, graph_find(g, bytes_str("c")), 3);
    TAP_EQ(t, graph_find(g, bytes_str("d")), -1);
    TAP_EQ(t, graph_find(g, bytes_str("")), -1);
}

static void test_names(struct tap *t)
{
    TAP_STR(t, graph_verdict_name(GRAPH_OK), "");
    TAP_STR(t, graph_verdict_name(GRAPH_CYCLE), "cycle");
}

/* A chain, given in the order that makes every walk as long as it can be. */
static void test_large(struct tap *t)
{
    enum { N = 100000, LEN = 8 };
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    char(*ids)[LEN] = calloc(N, LEN);
    struct graph_node *nodes = calloc(N, sizeof(*nodes));
    enum graph_verdict v = GRAPH_CYCLE;
    struct bytes id = { 0 };
    struct graph *g = NULL;

    for (size_t i = 0; i < N; i++) {
        (void)snprintf(ids[i], LEN, "%zu", i);
        nodes[i].id = bytes_str(ids[i]);
    }
    for (size_t i = 0; i + 1 < N; i++)
        nodes[i].parent = nodes[i + 1].id;
    TAP_EQ(t, graph_make(&g, nodes, N, &a, NULL), BELAY_OK);
    TAP_EQ(t, graph_check(g, NULL, 0, nodes[0].id, &a, &v, &id, NULL), BELAY_OK);
    TAP_EQ(t, v, GRAPH_OK);
    nodes[N - 1].parent = nodes[0].id;
    TAP_EQ(t, graph_check(g, NULL, 0, nodes[0].id, &a, &v, &id, NULL), BELAY_OK);
    TAP_EQ(t, v, GRAPH_CYCLE);
    free(ids);
    free(nodes);
}

static const struct tap_case cases[] = {
    { "a forest may join, its parents in any order", test_fine },
    { "a node is refused that is there already", test_duplicates },
    { "a parent must be in the delta, or be live", test_dangling },
    { "a node that is its own ancestor is refused", test_cycles },
    { "a leaf must be in the delta, or be live", test_leaves },
    { "the first node of an id is found", test_find },
    { "verdicts have names", test_names },
    { "large deltas are judged in linear time", test_large },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
