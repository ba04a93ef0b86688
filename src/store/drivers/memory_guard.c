/* What scans must find when a plan is applied (DRIVER_SCAN_GUARDS). */
#include "store/drivers/memory_impl.h"

/* Whether a member comes behind the last one that a full scan has found. */
static bool is_behind(const struct scan_guard *g, const struct mem_node *n)
{
    const struct scan order = { .indexes = g->indexes, .n_indexes = g->n_indexes };
    const struct ranked *last = &g->found[g->n - 1];

    return g->n == g->limit && scan_cmp(&order, n->number, n->member, n->set->name,
                                        last->rank, last->member, last->index) > 0;
}

/* Whether the scan finds in one of its indexes what it is to find there, and nothing else. */
static bool index_stands(struct memory *m, const struct mem_attempt *a,
                         const struct scan_guard *g, struct bytes index, int64_t now_us)
{
    const struct mem_set *set = mem_find_set(m, a->space, MEM_RANK, index);
    const struct mem_node *n =
        set ? mem_tree_at_or_after(&set->tree, g->min_rank, bytes_of(NULL, 0)) : NULL;

    for (size_t i = 0; i < g->n; i++) {
        const struct ranked *f = &g->found[i];
        if (!bytes_eq(f->index, index))
            continue;
        if (!n || n->number != f->rank || f->rank > g->max_rank ||
            !bytes_eq(n->member, f->member))
            return false;
        if (g->unheld && n->group && n->group != a->group &&
            n->group->until_us > now_us)
            return false;
        n = mem_tree_next(n);
    }
    return !n || n->number > g->max_rank || (g->n > 0 && is_behind(g, n));
}

bool mem_scans_hold(struct memory *m, const struct mem_attempt *a,
                    const struct plan *plan, struct plan_result *result)
{
    int64_t now_us = m->config.clock.mono_us(m->config.clock.arg);

    for (size_t i = 0; i < plan->n_scans; i++) {
        const struct scan_guard *g = &plan->scans[i];
        for (size_t k = 0; k < g->n_indexes; k++) {
            if (index_stands(m, a, g, g->indexes[k], now_us))
                continue;
            result->conflict = true;
            result->failed_guard = GUARD_NONE;
            result->failed_scan = i;
            return false;
        }
    }
    return true;
}
