#include "store/drivers/memory_tree.h"

static int order(int64_t number, struct bytes member, const struct mem_node *n)
{
    if (number != n->number)
        return number < n->number ? -1 : 1;
    return bytes_cmp(member, n->member);
}

/* Where the tree points at n: its parent's link, or the root. */
static struct mem_node **link_of(struct mem_tree *t, const struct mem_node *n)
{
    if (!n->parent)
        return &t->root;
    return n->parent->left == n ? &n->parent->left : &n->parent->right;
}

/* Lifts n above its parent, keeping the order. */
static void rotate_up(struct mem_tree *t, struct mem_node *n)
{
    struct mem_node *p = n->parent;
    bool left = p->left == n;
    struct mem_node *moved = left ? n->right : n->left;

    *link_of(t, p) = n;
    n->parent = p->parent;
    p->parent = n;
    if (left) {
        p->left = moved;
        n->right = p;
    } else {
        p->right = moved;
        n->left = p;
    }
    if (moved)
        moved->parent = p;
}

void mem_tree_insert(struct mem_tree *t, struct mem_node *n)
{
    struct mem_node **link = &t->root;

    n->left = n->right = n->parent = NULL;
    while (*link) {
        n->parent = *link;
        link =
            order(n->number, n->member, *link) < 0 ? &(*link)->left : &(*link)->right;
    }
    *link = n;
    while (n->parent && n->priority > n->parent->priority)
        rotate_up(t, n);
    t->n++;
}

void mem_tree_remove(struct mem_tree *t, struct mem_node *n)
{
    while (n->left && n->right)
        rotate_up(t, n->left->priority > n->right->priority ? n->left : n->right);

    struct mem_node *child = n->left ? n->left : n->right;
    *link_of(t, n) = child;
    if (child)
        child->parent = n->parent;
    t->n--;
}

struct mem_node *mem_tree_at_or_after(const struct mem_tree *t, int64_t number,
                                      struct bytes member)
{
    struct mem_node *best = NULL;

    for (struct mem_node *n = t->root; n;) {
        if (order(number, member, n) <= 0) {
            best = n;
            n = n->left;
        } else {
            n = n->right;
        }
    }
    return best;
}

struct mem_node *mem_tree_at_or_before(const struct mem_tree *t, int64_t number,
                                       struct bytes member)
{
    struct mem_node *best = NULL;

    for (struct mem_node *n = t->root; n;) {
        if (order(number, member, n) >= 0) {
            best = n;
            n = n->right;
        } else {
            n = n->left;
        }
    }
    return best;
}

struct mem_node *mem_tree_last(const struct mem_tree *t)
{
    struct mem_node *n = t->root;

    while (n && n->right)
        n = n->right;
    return n;
}

struct mem_node *mem_tree_next(const struct mem_node *n)
{
    if (n->right) {
        struct mem_node *down = n->right;
        while (down->left)
            down = down->left;
        return down;
    }
    while (n->parent && n->parent->right == n)
        n = n->parent;
    return n->parent;
}

struct mem_node *mem_tree_previous(const struct mem_node *n)
{
    if (n->left) {
        struct mem_node *down = n->left;
        while (down->right)
            down = down->right;
        return down;
    }
    while (n->parent && n->parent->left == n)
        n = n->parent;
    return n->parent;
}
