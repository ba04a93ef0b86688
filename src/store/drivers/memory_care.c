#include <stdio.h>
#include <stdlib.h>

#include "store/drivers/memory_impl.h"

/* --- erasing --- */

/* What is left to take out, and from where. */
struct erasing {
    struct memory *m;
    const struct mem_space *space;
    size_t left;
};

static void erase_rows(struct erasing *e)
{
    struct mem_table *t = &e->m->rows;

    for (size_t i = 0; i < t->n_buckets; i++) {
        struct mem_link *next;
        for (struct mem_link *l = t->buckets[i]; l && e->left > 0; l = next) {
            struct mem_row *r = (struct mem_row *)l;
            next = l->next;
            if (r->space != e->space)
                continue;
            mem_unlink_row(e->m, r);
            free(r);
            e->left--;
        }
    }
}

static void erase_set(struct erasing *e, struct mem_set *set)
{
    struct mem_node *n = mem_tree_at_or_after(&set->tree, INT64_MIN, bytes_of(NULL, 0));

    for (struct mem_node *next; n && e->left > 0; n = next) {
        next = mem_tree_next(n);
        mem_unlink_node(e->m, n);
        free(n);
        e->left--;
    }
    if (set->tree.root)
        return;
    set->last_pos = 0; /* a feed of the same name begins anew */
    mem_drop_set_if_empty(e->m, set);
}

static void erase_sets(struct erasing *e)
{
    struct mem_table *t = &e->m->sets;

    for (size_t i = 0; i < t->n_buckets; i++) {
        struct mem_link *next;
        for (struct mem_link *l = t->buckets[i]; l && e->left > 0; l = next) {
            struct mem_set *set = (struct mem_set *)l;
            next = l->next;
            if (set->space == e->space)
                erase_set(e, set);
        }
    }
}

belay_rc mem_erase(struct driver *d, struct bytes ns, size_t limit, bool *more,
                   struct belay_error *err)
{
    struct memory *m = (struct memory *)d;
    struct mem_attempt a = { .ns = ns };

    (void)err;
    pthread_mutex_lock(&m->mutex);
    struct erasing e = { .m = m, .space = mem_space(m, &a, false), .left = limit };
    if (e.space) {
        erase_rows(&e);
        erase_sets(&e);
    }
    pthread_mutex_unlock(&m->mutex);
    *more = e.left == 0;
    return BELAY_OK;
}

/* --- looking for damage --- */

static void check_feed(const struct mem_set *set, finding_report *report, void *arg)
{
    const struct mem_node *first =
        mem_tree_at_or_after(&set->tree, INT64_MIN, bytes_of(NULL, 0));
    const struct mem_node *last = mem_tree_last(&set->tree);

    if (!last || (last->number <= set->last_pos && first->number > set->trimmed))
        return;
    report(arg, &(struct finding){ .level = FINDING_BAD,
                                   .what = "feed_position",
                                   .ns = set->space->name,
                                   .entity = set->name,
                                   .message = "feed: an entry stands outside the "
                                              "positions that were given" });
}

belay_rc mem_check(struct driver *d, finding_report *report, void *arg,
                   struct belay_error *err)
{
    struct memory *m = (struct memory *)d;

    (void)err;
    pthread_mutex_lock(&m->mutex);
    for (size_t i = 0; i < m->sets.n_buckets; i++) {
        for (struct mem_link *l = m->sets.buckets[i]; l; l = l->next) {
            const struct mem_set *set = (const struct mem_set *)l;
            if (set->kind == MEM_FEED)
                check_feed(set, report, arg);
        }
    }
    pthread_mutex_unlock(&m->mutex);
    return BELAY_OK;
}

belay_rc mem_doctor(struct driver *d, finding_report *report, void *arg,
                    struct belay_error *err)
{
    struct memory *m = (struct memory *)d;
    char text[128];

    (void)err;
    report(arg, &(struct finding){ .level = FINDING_WARN,
                                   .what = "durability",
                                   .message = "inline: everything is gone with this "
                                              "process" });
    pthread_mutex_lock(&m->mutex);
    (void)snprintf(text, sizeof(text), "%zu rows, %zu ranks, logs, feeds and uploads",
                   m->rows.n, m->sets.n);
    pthread_mutex_unlock(&m->mutex);
    report(arg, &(struct finding){
                    .level = FINDING_OK, .what = "contents", .message = text });
    return BELAY_OK;
}
