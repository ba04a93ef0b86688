/* Erasing a namespace. */
#include "store/drivers/valkey/shapes.h"

struct erasing {
    struct vk_store *s;
    struct bytes base;
    struct belay_arena *arena;
    struct vk_args first, last; /* keys; the feeds' positions go last */
    size_t limit;
};

static belay_rc list_keys(void *arg, const struct vk_reply *keys, bool *stop,
                          struct belay_error *err)
{
    struct erasing *e = arg;

    for (size_t i = 0; i < keys->n && e->first.n < e->limit; i++) {
        struct vk_place place;
        struct bytes key;
        if (!arena_copy(e->arena, keys->sub[i].b, &key))
            return err_no_memory(err, "erasing");
        belay_rc rc = vk_place(e->s, e->base, key, e->arena, &place, err);
        if (rc)
            return rc;
        bool last = place.shape == VK_FEEDS || place.shape == VK_TRIMMED;
        vk_add(last ? &e->last : &e->first, key);
    }
    *stop = e->first.n >= e->limit;
    return e->first.no_memory || e->last.no_memory ? err_no_memory(err, "erasing")
                                                   : BELAY_OK;
}

static belay_rc unlink_keys(const struct erasing *e, struct bytes ns, bool all,
                            struct belay_error *err)
{
    size_t n = e->first.n + (all ? e->last.n : 0);
    enum vk_reached reached;
    struct vk_reply reply;
    struct vk_request r;

    if (n == 0)
        return BELAY_OK;
    vk_request_init(&r, e->arena);
    vk_command(&r, 1 + n, "UNLINK");
    for (size_t i = 0; i < e->first.n; i++)
        vk_arg(&r, e->first.v[i]);
    for (size_t i = 0; i < e->last.n && all; i++)
        vk_arg(&r, e->last.v[i]);
    if (r.no_memory)
        return err_no_memory(err, "erasing");
    belay_rc rc = vk_call(e->s, ns, &r, VK_ONCE, &reply, &reached, err);
    if (rc == BELAY_OK && reply.kind == VK_ERROR)
        rc = vk_reply_error(&reply, "erasing", err);
    return rc;
}

belay_rc vk_erase(struct driver *d, struct bytes ns, size_t limit, bool *more,
                  struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct erasing e = { .s = (struct vk_store *)d, .arena = &arena, .limit = limit };
    struct vk_layout keys;
    bool all = false;

    e.first.arena = e.last.arena = &arena;
    vk_layout_init(&keys, e.s, ns, &arena);
    e.base = keys.base;
    struct bytes beginning = vk_key_beside(&keys, ":");
    if (keys.no_memory)
        return err_no_memory(err, "erasing");
    belay_rc rc = vk_each_key(e.s, ns, beginning, list_keys, &e, &all, err);
    /* A page may have held more than fitted. */
    all = all && e.first.n < e.limit;
    if (rc == BELAY_OK)
        rc = unlink_keys(&e, ns, all, err);
    *more = !all;
    return rc;
}
