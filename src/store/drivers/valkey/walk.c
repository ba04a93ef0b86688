/* Everything in a namespace, in the order of driver.h. */
#include "store/drivers/valkey/shapes.h"

struct walk {
    struct belay_arena arena; /* of one item */
    item_visit *visit;
    void *arg;
};

static belay_rc show_row(struct walk *w, const struct vk_cell *c,
                         struct belay_error *err)
{
    struct item item = { .kind = ITEM_ROW };
    const struct row_ref *ref = &c->place.ref;
    belay_rc rc =
        vk_row(ref->type, ref->key, &c->pages->reply, &w->arena, &item.row, err);

    return rc ? rc : w->visit(w->arg, &item, err);
}

static belay_rc show_index(struct walk *w, const struct vk_cell *c,
                           const struct vk_reply *r, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i + 1 < r->n && rc == BELAY_OK; i += 2) {
        struct item item = { .kind = ITEM_RANK,
                             .name = c->place.name,
                             .member = r->sub[i].b };
        if (!vk_rank(r->sub[i + 1].b, &item.number))
            return err_reason(err, BELAY_CORRUPT, "rank",
                              "valkey: a rank index holds something that is no rank");
        rc = w->visit(w->arg, &item, err);
    }
    return rc;
}

/* Entries of a feed show their place in it, not their position. */
static belay_rc show_stream(struct walk *w, const struct vk_cell *c,
                            const struct vk_reply *r, int64_t *ordinal,
                            struct belay_error *err)
{
    bool log = c->place.shape == VK_LOG;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < r->n && rc == BELAY_OK; i++) {
        struct item item = { .kind = log ? ITEM_LOG : ITEM_FEED,
                             .name = c->place.name };
        uint64_t major = 0, minor = 0;
        rc = vk_entry(&r->sub[i], &major, &minor, &item.data, err);
        item.number = log ? (int64_t)major : ++*ordinal;
        if (rc == BELAY_OK)
            rc = w->visit(w->arg, &item, err);
    }
    return rc;
}

static belay_rc show_chunk(struct walk *w, const struct vk_cell *c,
                           struct belay_error *err)
{
    struct item item = { .kind = ITEM_CHUNK,
                         .name = c->place.name,
                         .number = c->place.index,
                         .data = c->pages->reply.b };

    return w->visit(w->arg, &item, err);
}

static belay_rc show(struct walk *w, const struct vk_cell *c, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;
    int64_t ordinal = 0;

    if (c->place.shape == VK_ROW)
        return show_row(w, c, err);
    if (c->place.shape == VK_CHUNK)
        return show_chunk(w, c, err);
    for (const struct vk_page *p = c->pages; p && rc == BELAY_OK; p = p->next)
        rc = c->place.shape == VK_INDEX ? show_index(w, c, &p->reply, err)
                                        : show_stream(w, c, &p->reply, &ordinal, err);
    return rc;
}

belay_rc vk_walk(struct driver *d, struct bytes ns, item_visit *visit, void *arg,
                 struct belay_error *err)
{
    CLEANUP(vk_cells_release) struct vk_cells cells = { .n = 0 };
    struct walk w = { .visit = visit, .arg = arg };
    belay_rc rc = vk_collect((struct vk_store *)d, ns, &cells, err);

    for (size_t i = 0; i < cells.n && rc == BELAY_OK; i++) {
        arena_reset(&w.arena);
        rc = show(&w, &cells.cell[i], err);
    }
    arena_release(&w.arena);
    return rc;
}
