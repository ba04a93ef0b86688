/* The whole cache: prefixes, lists, what is in it. */
#include "fleet/cache_impl.h"

/* A live entry's key as it is at a moment; false: it is nobody's or has changed. */
static bool key_read(const struct belay_cache *c, uint32_t entry, uint64_t *out_w,
                     uint8_t own[BELAY_CACHE_KEY_MAX], size_t *out_len,
                     size_t *out_value)
{
    uint64_t w = atomic_load_explicit(word_of(c, entry), memory_order_acquire);

    if (w_state(w) != CACHE_LIVE || bytes_len(c, entry, out_len, out_value) == 0 ||
        !bytes_read(c, entry, 0, own, *out_len))
        return false;
    fence_acquire();
    *out_w = w;
    return atomic_load_explicit(word_of(c, entry), memory_order_relaxed) == w;
}

static bool begins_with(const uint8_t *key, size_t len, const struct cache_key *prefix)
{
    return len >= prefix->len &&
           (prefix->len == 0 || memcmp(key, prefix->ptr, prefix->len) == 0);
}

static void prefix_make(const struct belay_cache *c, const void *prefix, size_t len,
                        struct cache_key *out)
{
    memcpy(out->own, c->prefix, c->prefix_len);
    if (len > 0)
        memcpy(out->own + c->prefix_len, prefix, len);
    out->ptr = out->own;
    out->len = c->prefix_len + len;
    out->hash = 0;
}

belay_rc belay_cache_reset(struct belay_cache *c, const void *prefix, size_t prefix_len,
                           size_t *out_n, struct belay_error *err)
{
    uint8_t own[BELAY_CACHE_KEY_MAX];
    struct cache_key begin;
    size_t n = 0, len, value;
    uint64_t w;
    belay_rc rc = fleet_check_member(c->f, err);

    if (rc != BELAY_OK)
        return rc;
    if (prefix_len > BELAY_CACHE_KEY_MAX - c->prefix_len)
        return err_reason(err, BELAY_INVALID, "key", "a prefix longer than any key");
    prefix_make(c, prefix, prefix_len, &begin);
    uint64_t epoch =
        atomic_fetch_add_explicit(&c->shared->epoch, 1, memory_order_acq_rel) + 1;
    for (uint32_t i = 0; i < c->n_sets * CACHE_WAYS; i++) {
        if (!key_read(c, i, &w, own, &len, &value) || !begins_with(own, len, &begin))
            continue;
        struct cache_set *set = &c->sets[i / CACHE_WAYS];
        uint64_t hash =
            atomic_load_explicit(&set->hash[i % CACHE_WAYS], memory_order_relaxed);
        bool has_gone = has_expired(c, i, fleet_now(c->f));
        word_raise(&set->ended, epoch);
        n += set_end(c, i / CACHE_WAYS, hash, epoch) > 0 && !has_gone;
    }
    if (out_n)
        *out_n = n;
    return cache_log_write(c, CACHE_OP_RESET, &begin, NULL, 0, 0, epoch, err);
}

/* Of a key that is there twice the newer. */
static bool is_newest(const struct belay_cache *c, uint32_t entry, uint64_t *out_epoch)
{
    const struct cache_set *set = &c->sets[entry / CACHE_WAYS];
    uint64_t hash =
        atomic_load_explicit(&set->hash[entry % CACHE_WAYS], memory_order_relaxed);
    uint64_t w[CACHE_WAYS];
    uint32_t way = 0;

    for (uint32_t i = 0; i < CACHE_WAYS; i++)
        w[i] = atomic_load_explicit(&set->w[i], memory_order_acquire);
    return set_find(c, entry / CACHE_WAYS, hash, w, &way, out_epoch) &&
           way == entry % CACHE_WAYS;
}

static bool list_one(const struct belay_cache *c, uint32_t entry,
                     const struct cache_key *begin, struct belay_cache_entry *out)
{
    uint8_t own[BELAY_CACHE_KEY_MAX];
    size_t len, value;
    uint64_t w, epoch = 0, now = fleet_now(c->f);

    if (!key_read(c, entry, &w, own, &len, &value) || !begins_with(own, len, begin) ||
        !is_newest(c, entry, &epoch))
        return false;
    uint64_t deadline =
        atomic_load_explicit(&c->entries[entry].deadline, memory_order_relaxed);
    fence_acquire();
    if (atomic_load_explicit(word_of(c, entry), memory_order_relaxed) != w ||
        (deadline != 0 && deadline <= now))
        return false;
    size_t rest = len - begin->len;
    size_t shown = rest < sizeof(out->key) ? rest : sizeof(out->key) - 1;
    *out = (struct belay_cache_entry){ .key_len = (uint32_t)rest,
                                       .len = value,
                                       .epoch = epoch };
    memcpy(out->key, own + begin->len, shown);
    if (deadline != 0)
        out->ttl_ms = c->f->is_virtual ? (int64_t)(deadline - now)
                                       : (int64_t)((deadline - now + 999) / 1000);
    return true;
}

belay_rc belay_cache_list(struct belay_cache *c, uint64_t *cursor,
                          struct belay_cache_entry *out, size_t max, size_t *out_n,
                          struct belay_error *err)
{
    struct cache_key begin;
    uint64_t entries = (uint64_t)c->n_sets * CACHE_WAYS, at = *cursor;
    size_t n = 0;
    belay_rc rc = fleet_check(c->f, err);

    if (rc != BELAY_OK)
        return rc;
    prefix_make(c, NULL, 0, &begin);
    for (; at < entries && n < max; at++)
        n += list_one(c, (uint32_t)at, &begin, &out[n]);
    *cursor = at < entries ? at : 0;
    *out_n = n;
    return BELAY_OK;
}

belay_rc belay_cache_status(struct belay_cache *c, struct belay_cache_status *out,
                            struct belay_error *err)
{
    uint64_t now;
    belay_rc rc = fleet_check(c->f, err);

    if (rc == BELAY_OK && out->size != sizeof(*out))
        rc = err_reason(err, BELAY_MISUSE, "size", "a status of another size");
    if (rc != BELAY_OK)
        return rc;
    struct belay_cache_status s = {
        .size = sizeof(s),
        .entries = (int32_t)(c->n_sets * CACHE_WAYS),
        .arena_len = (int64_t)c->n_chunks * CHUNK_LEN,
        .epoch = atomic_load_explicit(&c->shared->epoch, memory_order_acquire),
        .evicted = atomic_load_explicit(&c->shared->evicted, memory_order_relaxed),
    };
    now = fleet_now(c->f);
    for (uint32_t i = 0; i < c->n_sets * CACHE_WAYS; i++) {
        uint64_t w = atomic_load_explicit(word_of(c, i), memory_order_acquire);
        size_t key, value;
        if (w_state(w) != CACHE_LIVE || has_expired(c, i, now))
            continue;
        s.entries_used++;
        s.arena_used += (int64_t)chunks_for(bytes_len(c, i, &key, &value)) * CHUNK_LEN;
    }
    *out = s;
    return BELAY_OK;
}

belay_rc belay_cache_tell_time(struct belay_cache *c, int64_t now_ms,
                               struct belay_error *err)
{
    belay_rc rc = fleet_check(c->f, err);

    if (rc == BELAY_OK && !c->f->is_virtual)
        rc = contest_refuse_clock(err);
    if (rc == BELAY_OK)
        (void)contest_tell_time(c->f, now_ms);
    return rc;
}

void cache_empty(struct belay_fleet *f)
{
    struct cache_map *map = cache_map_find(f);
    struct belay_cache c;

    if (!map)
        return;
    cache_bind(&c, f, map);
    uint64_t epoch =
        atomic_fetch_add_explicit(&c.shared->epoch, 1, memory_order_acq_rel) + 1;
    for (uint32_t i = 0; i < c.n_sets * CACHE_WAYS; i++) {
        uint64_t w = atomic_load_explicit(word_of(&c, i), memory_order_acquire);
        if (w_state(w) != CACHE_LIVE)
            continue;
        word_raise(&c.sets[i / CACHE_WAYS].ended, epoch);
        (void)entry_end(&c, i, w);
    }
}
