/* Handles of the cache; each has its prefix. */
#include <belay/cache.h>

#include <stdlib.h>

#include "fleet/cache_impl.h"

belay_rc belay_cache_open(struct belay_fleet *f,
                          const struct belay_cache_options *options,
                          struct belay_cache **out, struct belay_error *err)
{
    struct belay_cache_options o = { .size = sizeof(o) };
    struct cache_map *map = NULL;
    belay_rc rc = fleet_check(f, err);

    if (rc == BELAY_OK && options && options->size != sizeof(o))
        rc = err_reason(err, BELAY_MISUSE, "size", "options of another size");
    if (rc != BELAY_OK)
        return rc;
    if (options)
        o = *options;
    size_t prefix_len = o.prefix ? strlen(o.prefix) : 0;
    if (prefix_len >= BELAY_CACHE_KEY_MAX)
        return err_reason(err, BELAY_INVALID, "key", "a prefix as long as a key");
    rc = cache_map_get(f, &o, &map, err);
    if (rc != BELAY_OK)
        return rc;
    struct belay_cache *c = calloc(1, sizeof(*c));
    if (!c)
        return err_no_memory(err, "a cache");
    cache_bind(c, f, map);
    c->prefix_len = prefix_len;
    if (prefix_len > 0)
        memcpy(c->prefix, o.prefix, prefix_len);
    rc = cache_log_open(c, err);
    if (rc != BELAY_OK) {
        free(c);
        return rc;
    }
    fleet_lock(f);
    c->next = f->caches;
    c->at = &f->caches;
    if (c->next)
        c->next->at = &c->next;
    f->caches = c;
    fleet_unlock(f);
    *out = c;
    return BELAY_OK;
}

void belay_cache_close(struct belay_cache *c)
{
    if (!c)
        return;
    struct belay_fleet *f = c->f;
    bool is_ours = fleet_check(f, NULL) == BELAY_OK; /* not a parent's */

    if (is_ours) {
        fleet_lock(f);
        *c->at = c->next;
        if (c->next)
            c->next->at = c->at;
        fleet_unlock(f);
    }
    free(c);
}
