/* What the scans of a plan must find, as arguments of belay6_commit_seen: those of
 * belay6_commit, then for each scan
 *
 *   head     three numbers: indexes, members, how.  A byte each; or 255, then u32 each
 *   min, max ranks; or the first and the last place, in the only index
 *   indexes  their keys
 *   members  each: number of the index (from 1; not of the only one), member, rank
 *
 * and how many arguments that is. */
#include "store/drivers/valkey/shapes.h"

#define HEAD 3
#define WIDE 255

/* How a scan that must find something is asked. */
enum {
    UNHELD = 1,   /* nobody else may hold anything */
    FULL = 2,     /* there may be more behind what it finds */
    BY_PLACE = 4, /* of one index, from the first member on */
};

static unsigned how_of(const struct scan_guard *g)
{
    bool whole = g->min_rank <= -RANK_MAX && g->max_rank >= RANK_MAX;

    return (g->unheld ? UNHELD : 0) | (g->n == g->limit ? FULL : 0) |
           (whole && g->n_indexes == 1 && g->n > 0 ? BY_PLACE : 0);
}

static void add_head(struct vk_args *l, const struct scan_guard *g, unsigned how)
{
    const size_t numbers[HEAD] = { g->n_indexes, g->n, how };
    uint8_t *head = arena_alloc(l->arena, 1 + 4 * HEAD), *at = head;
    bool wide = g->n_indexes >= WIDE || g->n >= WIDE;

    if (!head) {
        l->no_memory = true;
        return;
    }
    if (wide)
        *at++ = WIDE;
    for (size_t i = 0; i < HEAD; i++) {
        if (wide)
            at = vk_put_u32(at, numbers[i]);
        else
            *at++ = (uint8_t)numbers[i];
    }
    vk_add(l, bytes_of(head, (size_t)(at - head)));
}

/* Where it begins and ends: one more than what must be there, unless it is full. */
static void add_range(struct vk_args *l, const struct scan_guard *g, unsigned how)
{
    if (how & BY_PLACE) {
        vk_add_str(l, "0");
        vk_add_i64(l, (int64_t)g->n - (how & FULL ? 1 : 0));
    } else {
        vk_add_rank(l, g->min_rank);
        vk_add_rank(l, g->max_rank);
    }
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

    unsigned how = how_of(g);

    add_head(l, g, how);
    add_range(l, g, how);
    for (size_t i = 0; i < g->n_indexes; i++)
        vk_add(l, vk_key(&p->keys, VK_INDEX, g->indexes[i]));
    for (size_t i = 0; i < g->n; i++) {
        if (g->n_indexes > 1)
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
