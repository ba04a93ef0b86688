/* The rank effects of a plan, as arguments of belay6_commit: by index, those that are alone
 * in theirs first, and those of whom one enters and one leaves.
 *
 *   adds      each: key, rank, member
 *   removes   each: key, old rank, member
 *   moves     each: key, old rank, rank, member
 *   groups    each: key, u16 adds u16 moves u16 removes, old ranks of moves and removes in
 *             one text, rank member of adds, of moves, members of removes
 */
#include "store/drivers/valkey/shapes.h"

static size_t group_size(const struct vk_group *g)
{
    return g->adds.n / 2 + g->moves.n / 2 + g->removes.n;
}

/* The group of an index that has room; NULL: no memory. */
static struct vk_group *group_of(struct vk_plan *p, const struct effect *e)
{
    struct bytes key = vk_key(&p->keys, VK_INDEX, e->rank.index);
    struct vk_name *name = vk_names_at(&p->names, key, key_hash(key));
    struct vk_group *g = name->what;

    if (p->keys.no_memory)
        return NULL;
    if (g && group_size(g) < VK_GROUP_MAX)
        return g;
    g = arena_zalloc(p->arena, 1, sizeof(*g));
    if (!g)
        return NULL;
    struct vk_args none = { .arena = p->arena };
    *g = (struct vk_group){ .key = key,
                            .adds = none,
                            .moves = none,
                            .removes = none,
                            .move_ranks = none,
                            .remove_ranks = none };
    *p->groups_end = g;
    p->groups_end = &g->next;
    name->what = g;
    return g;
}

void vk_plan_add_rank(struct vk_plan *p, size_t i)
{
    const struct effect *e = &p->plan->effects[i];
    struct vk_group *g;

    if (!p->spots)
        p->spots = arena_zalloc(p->arena, p->plan->n_effects, sizeof(*p->spots));
    g = p->spots ? group_of(p, e) : NULL;
    if (!g) {
        p->no_memory = true;
        return;
    }
    p->spots[i].group = g;
    struct vk_args *list = e->kind == EFFECT_RANK_ADD    ? &g->adds
                           : e->kind == EFFECT_RANK_MOVE ? &g->moves
                                                         : &g->removes;
    p->spots[i].at = e->kind == EFFECT_RANK_REMOVE ? list->n : list->n / 2;
    if (e->kind != EFFECT_RANK_REMOVE)
        vk_add_i64(list, e->rank.rank);
    vk_add(list, e->rank.member);
    if (e->kind == EFFECT_RANK_MOVE)
        vk_add_i64(&g->move_ranks, e->rank.old_rank);
    if (e->kind == EFFECT_RANK_REMOVE)
        vk_add_i64(&g->remove_ranks, e->rank.old_rank);
}

static uint8_t *put_ranks(uint8_t *at, const struct vk_args *ranks)
{
    for (size_t i = 0; i < ranks->n; i++) {
        memcpy(at, ranks->v[i].ptr, ranks->v[i].len);
        at += ranks->v[i].len;
        *at++ = ' ';
    }
    return at;
}

static void add_list(struct vk_args *to, const struct vk_args *from)
{
    to->no_memory |= from->no_memory;
    for (size_t i = 0; i < from->n; i++)
        vk_add(to, from->v[i]);
}

static enum vk_group_class class_of(const struct vk_group *g)
{
    if (group_size(g) > 1)
        return VK_GROUP;
    return g->adds.n > 0 ? VK_ONE_ADD : g->moves.n > 0 ? VK_ONE_MOVE : VK_ONE_REMOVE;
}

static void add_single(struct vk_plan *p, const struct vk_group *g)
{
    vk_add(&p->indexes, g->key);
    add_list(&p->indexes, &g->move_ranks);
    add_list(&p->indexes, &g->remove_ranks);
    add_list(&p->indexes, &g->adds);
    add_list(&p->indexes, &g->moves);
    add_list(&p->indexes, &g->removes);
}

static void add_group(struct vk_plan *p, const struct vk_group *g)
{
    size_t n = (g->move_ranks.n + g->remove_ranks.n) * I64_TEXT_MAX;
    uint8_t *counts = arena_alloc(p->arena, 6 + n + 1);

    p->no_memory |= !counts || g->move_ranks.no_memory || g->remove_ranks.no_memory;
    if (p->no_memory)
        return;
    uint8_t *ranks = vk_put_u16(counts, g->adds.n / 2);
    ranks = vk_put_u16(ranks, g->moves.n / 2);
    ranks = vk_put_u16(ranks, g->removes.n);
    uint8_t *end = put_ranks(put_ranks(ranks, &g->move_ranks), &g->remove_ranks);
    size_t len = (size_t)(end - ranks);
    vk_add(&p->indexes, g->key);
    vk_add(&p->indexes, bytes_of(counts, 6));
    vk_add(&p->indexes, bytes_of(ranks, len > 0 ? len - 1 : 0));
    add_list(&p->indexes, &g->adds);
    add_list(&p->indexes, &g->moves);
    add_list(&p->indexes, &g->removes);
}

/* One that enters and one that leaves: as two of one effect each they take the server no more
 * commands, and less thought. */
static bool is_pair(const struct vk_group *g)
{
    return g->adds.n == 2 && g->removes.n == 1 && g->moves.n == 0;
}

/* The one that leaves gets a group of its own, behind this one. */
static void part(struct vk_plan *p, struct vk_group *g)
{
    struct vk_group *own = arena_zalloc(p->arena, 1, sizeof(*own));
    struct vk_args none = { .arena = p->arena };

    if (!own) {
        p->no_memory = true;
        return;
    }
    *own = *g;
    own->adds = none;
    g->removes = g->remove_ranks = none;
    g->next = own;
    for (size_t i = 0; i < p->plan->n_effects; i++) {
        if (p->spots[i].group == g && p->plan->effects[i].kind == EFFECT_RANK_REMOVE)
            p->spots[i].group = own;
    }
}

void vk_plan_add_groups(struct vk_plan *p)
{
    size_t n = 0;

    for (struct vk_group *g = p->groups; g; g = g->next) {
        if (is_pair(g))
            part(p, g);
    }
    for (int class = 0; class < VK_GROUP_CLASSES; class ++) {
        for (struct vk_group *g = p->groups; g; g = g->next) {
            if ((int)class_of(g) != class)
                continue;
            g->number = n++;
            p->n_groups_of[class]++;
            if (class == VK_GROUP)
                add_group(p, g);
            else
                add_single(p, g);
        }
    }
}
