#include "base/attr.h"
#include "base/rng.h"
#include "store/drivers/memory_tree.h"
#include "tap.h"
#include <stdlib.h>

#define NODES 400
#define STEPS 20000
#define RANGE 60 /* few numbers, so that ties by member are frequent */

static struct bytes member_of(const struct mem_node *n)
{
    return n->member;
}

static int order(const struct mem_node *a, const struct mem_node *b)
{
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return bytes_cmp(member_of(a), member_of(b));
}

static int by_order(const void *a, const void *b)
{
    return order(*(struct mem_node *const *)a, *(struct mem_node *const *)b);
}

/* The tree against a sorted array of the same nodes. */
static bool same(struct tap *t, const struct mem_tree *tree, struct mem_node **in,
                 size_t n, struct rng *rng)
{
    qsort(in, n, sizeof(*in), by_order);
    struct mem_node *at = mem_tree_at_or_after(tree, INT64_MIN, bytes_of(NULL, 0));
    for (size_t i = 0; i < n; i++, at = mem_tree_next(at)) {
        if (!TAP_OK(t, at == in[i]))
            return false;
    }
    bool good = TAP_OK(t, !at) && TAP_EQ(t, tree->n, n) &&
                TAP_OK(t, mem_tree_last(tree) == (n ? in[n - 1] : NULL));
    at = mem_tree_last(tree);
    for (size_t i = n; i-- > 0; at = mem_tree_previous(at))
        good = good && TAP_OK(t, at == in[i]);

    struct mem_node probe = { .number = (int64_t)rng_below(rng, RANGE + 2) - 1,
                              .member = bytes_str("m2") };
    struct mem_node *after = NULL, *before = NULL;
    for (size_t i = 0; i < n; i++) {
        if (order(in[i], &probe) <= 0)
            before = in[i];
        if (order(in[i], &probe) >= 0 && !after)
            after = in[i];
    }
    return good &&
           TAP_OK(t, mem_tree_at_or_after(tree, probe.number, probe.member) == after) &&
           TAP_OK(t, mem_tree_at_or_before(tree, probe.number, probe.member) == before);
}

static void random_changes_keep_the_order(struct tap *t)
{
    static char names[NODES][8];
    static struct mem_node nodes[NODES];
    struct mem_node *in[NODES];
    struct mem_tree tree = { .root = NULL };
    struct rng rng;
    size_t n = 0;

    rng_init(&rng, 42);
    for (size_t i = 0; i < NODES; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "m%zu", i % 7);
        nodes[i] = (struct mem_node){ .number = (int64_t)(i / 7 % RANGE),
                                      .member = bytes_str(names[i]),
                                      .priority = rng_next(&rng) };
    }
    bool inside[NODES] = { false };
    for (int step = 0; step < STEPS; step++) {
        size_t i = rng_below(&rng, NODES);
        if (inside[i])
            mem_tree_remove(&tree, &nodes[i]);
        else
            mem_tree_insert(&tree, &nodes[i]);
        inside[i] = !inside[i];
        if (step % 50 != 0)
            continue;
        n = 0;
        for (size_t j = 0; j < NODES; j++) {
            if (inside[j])
                in[n++] = &nodes[j];
        }
        if (!same(t, &tree, in, n, &rng))
            return;
    }
}

static void an_empty_tree_has_nothing(struct tap *t)
{
    struct mem_tree tree = { .root = NULL };

    TAP_OK(t, !mem_tree_last(&tree));
    TAP_OK(t, !mem_tree_at_or_after(&tree, 0, bytes_of(NULL, 0)));
    TAP_OK(t, !mem_tree_at_or_before(&tree, 0, bytes_of(NULL, 0)));
}

static const struct tap_case cases[] = {
    { "random changes keep the order", random_changes_keep_the_order },
    { "an empty tree has nothing", an_empty_tree_has_nothing },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
