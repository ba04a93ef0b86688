/* What the scans of a plan must find, as arguments of belay5_commit_seen: those of
 * belay5_commit, then for each scan
 *
 *   head     u32 indexes, u32 limit, u8 nobody else may hold anything, u32 members
 *   min, max
 *   indexes  their keys
 *   members  each: number of the index (from 1), member, rank
 *
 * and how many arguments that is. */
#include "store/drivers/valkey/shapes.h"

#define HEAD_LEN 13

static void add_head(struct vk_args *l, const struct scan_guard *g)
{
    uint8_t *head = arena_alloc(l->arena, HEAD_LEN);

    if (!head) {
        l->no_memory = true;
        return;
    }
    uint8_t *at = vk_put_u32(head, g->n_indexes);
    at = vk_put_u32(at, g->limit);
    *at++ = g->unheld;
    (void)vk_put_u32(at, g->n);
    vk_add(l, bytes_of(head, HEAD_LEN));
}

static size_t number_of(const struct scan_guard *g, struct bytes index)
{
    size_t i = 0;

    while (i < g->n_indexes && !bytes_eq(g->indexes[i], index))
        i++;
    return i + 1;
}

static void add_scan(struct vk_plan *p, const struct scan_guard *g)
{
    struct vk_args *l = &p->scans;

    add_head(l, g);
    vk_add_rank(l, g->min_rank);
    vk_add_rank(l, g->max_rank);
    for (size_t i = 0; i < g->n_indexes; i++)
        vk_add(l, vk_key(&p->keys, VK_INDEX, g->indexes[i]));
    for (size_t i = 0; i < g->n; i++) {
        vk_add_i64(l, (int64_t)number_of(g, g->found[i].index));
        vk_add(l, g->found[i].member);
        vk_add_i64(l, g->found[i].rank);
    }
}

void vk_plan_scans(struct vk_plan *p)
{
    p->scans.arena = p->arena;
    for (size_t i = 0; i < p->plan->n_scans; i++)
        add_scan(p, &p->plan->scans[i]);
    if (p->plan->n_scans > 0)
        vk_add_i64(&p->scans, (int64_t)p->scans.n);
}
