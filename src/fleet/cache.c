/* Puts, gets and deletes; cache_impl.h tells why they hold. */
#include <belay/cache.h>

#include "fleet/cache_impl.h"

#define TURNS 10000

static void key_place(const struct belay_cache *c, struct cache_key *k)
{
    uint32_t set;

    k->hash = fleet_hash(c->f->key, 3, k->ptr, k->len);
    set = (uint32_t)(k->hash & (c->n_sets - 1));
    k->set = &c->sets[set];
    k->first = set * CACHE_WAYS;
}

/* With the prefix; empty ones are for prefixes alone. */
static belay_rc key_make(const struct belay_cache *c, const void *key, size_t len,
                         struct cache_key *out, struct belay_error *err)
{
    if (len > BELAY_CACHE_KEY_MAX - c->prefix_len) {
        belay_rc rc =
            err_reason(err, BELAY_INVALID, "key",
                       "a key of %zu bytes behind a prefix of %zu", len, c->prefix_len);
        err_numbers(err, BELAY_CACHE_KEY_MAX, (int64_t)(len + c->prefix_len));
        return rc;
    }
    out->ptr = key;
    out->len = len + c->prefix_len;
    if (c->prefix_len > 0) {
        memcpy(out->own, c->prefix, c->prefix_len);
        if (len > 0)
            memcpy(out->own + c->prefix_len, key, len);
        out->ptr = out->own;
    }
    key_place(c, out);
    return BELAY_OK;
}

static belay_rc check_key(const struct belay_cache *c, const void *key, size_t len,
                          struct cache_key *out, struct belay_error *err)
{
    out->ptr = key;
    out->len = len;
    out->hash = 0;
    out->set = c->sets;
    out->first = 0;
    if (len == 0)
        return err_reason(err, BELAY_INVALID, "key", "a key has at least a byte");
    return key_make(c, key, len, out, err);
}

/* --- putting ---------------------------------------------------------------------- */

static belay_rc check_value(const struct belay_cache *c, size_t key_len, size_t len,
                            int64_t ttl_ms, struct belay_error *err)
{
    uint64_t most = (uint64_t)c->n_chunks * CHUNK_LEN / 2;

    if (most > (uint64_t)BELAY_CACHE_VALUE_MAX)
        most = (uint64_t)BELAY_CACHE_VALUE_MAX;
    if (len > most || value_at(key_len) + len > most + BELAY_CACHE_KEY_MAX) {
        belay_rc rc =
            err_reason(err, BELAY_INVALID, "too_large", "a value of %zu bytes", len);
        err_numbers(err, (int64_t)most, (int64_t)len);
        return rc;
    }
    if (ttl_ms < 0 || ttl_ms > INT64_MAX / 2000)
        return err_reason(err, BELAY_INVALID, "ttl", "a time to live below zero");
    return BELAY_OK;
}

static uint64_t deadline_of(const struct belay_fleet *f, int64_t ttl_ms)
{
    if (ttl_ms == 0)
        return 0;
    return fleet_now(f) + (uint64_t)ttl_ms * (f->is_virtual ? 1 : 1000);
}

struct filling {
    const struct cache_key *key;
    const void *value;
    size_t len;
    uint64_t deadline, epoch;
    uint32_t entry;
    uint64_t w;
    bool is_known; /* there is one of that key, which is a use of it */
};

static bool is_there(const struct belay_cache *c, const struct cache_key *k)
{
    uint64_t w[CACHE_WAYS], epoch;
    uint32_t way;

    for (uint32_t i = 0; i < CACHE_WAYS; i++)
        w[i] = atomic_load_explicit(&k->set->w[i], memory_order_acquire);
    return set_find(c, k->first / CACHE_WAYS, k->hash, w, &way, &epoch);
}

/* Everything of an entry that is ours, before anybody else can see it. */
static bool fill(struct belay_cache *c, struct filling *in)
{
    struct cache_entry *e = &c->entries[in->entry];
    size_t at = value_at(in->key->len);
    uint64_t chunk;

    if (!chunks_take(c, in->entry, in->w, at + in->len, &chunk))
        return false;
    /* Who still reads what was here finds, behind what we write, that W is another, and so
     * is that of the entry whose chunks these were. */
    fence_release();
    atomic_store_explicit(&e->chunk, chunk, memory_order_relaxed);
    atomic_store_explicit(&e->lens, (uint64_t)in->key->len << 32 | in->len,
                          memory_order_relaxed);
    atomic_store_explicit(&e->deadline, in->deadline, memory_order_relaxed);
    atomic_store_explicit(&e->used, in->is_known, memory_order_relaxed);
    atomic_store_explicit(&in->key->set->hash[in->entry % CACHE_WAYS], in->key->hash,
                          memory_order_relaxed);
    bytes_write(c, in->entry, 0, in->key->ptr, in->key->len);
    bytes_write(c, in->entry, at, in->value, in->len);
    in->epoch =
        atomic_fetch_add_explicit(&c->shared->epoch, 1, memory_order_acq_rel) + 1;
    atomic_store_explicit(&e->epoch, in->epoch, memory_order_relaxed);
    fleet_step(c->f, STEP_CACHE_WRITTEN);
    return true;
}

/* What of the same key is older goes; if something is newer, ours does: it was overtaken. */
static void settle_order(struct belay_cache *c, const struct filling *in)
{
    uint32_t set = in->key->first / CACHE_WAYS, way = 0;
    uint64_t w[CACHE_WAYS], highest = 0;

    (void)set_end(c, set, in->key->hash, in->epoch - 1);
    for (uint32_t i = 0; i < CACHE_WAYS; i++)
        w[i] = atomic_load_explicit(&in->key->set->w[i], memory_order_acquire);
    if (set_find(c, set, in->key->hash, w, &way, &highest) && highest > in->epoch)
        (void)entry_end(c, in->entry, w_as(in->w, CACHE_LIVE));
}

belay_rc belay_cache_put(struct belay_cache *c, const void *key, size_t key_len,
                         const void *value, size_t len, int64_t ttl_ms,
                         uint64_t *out_epoch, struct belay_error *err)
{
    struct cache_key k;
    belay_rc rc = fleet_check_member(c->f, err);

    if (rc == BELAY_OK)
        rc = check_key(c, key, key_len, &k, err);
    if (rc == BELAY_OK)
        rc = check_value(c, k.len, len, ttl_ms, err);
    if (rc != BELAY_OK)
        return rc;
    struct filling in = {
        .key = &k, .value = value, .len = len, .deadline = deadline_of(c->f, ttl_ms)
    };
    if (!set_take(c, &k, &in.entry, &in.w))
        return err_reason(err, BELAY_NO_MEMORY, "table_full",
                          "all places of the key are being written");
    fleet_step(c->f, STEP_CACHE_TAKEN);
    in.is_known = is_there(c, &k);
    uint64_t mine = in.w;
    bool is_filled = fill(c, &in);
    bool is_live = atomic_compare_exchange_strong_explicit(
        word_of(c, in.entry), &mine, w_as(in.w, is_filled ? CACHE_LIVE : CACHE_EMPTY),
        memory_order_acq_rel, memory_order_acquire);
    if (!is_filled)
        return err_reason(err, BELAY_NO_MEMORY, "arena",
                          "no room for %zu bytes can be made in the cache", len);
    if (!is_live)
        return err_reason(err, BELAY_CORRUPT, "entry", "the cache's entry is damaged");
    fleet_step(c->f, STEP_CACHE_LIVE);
    settle_order(c, &in);
    if (out_epoch)
        *out_epoch = in.epoch;
    return cache_log_write(c, CACHE_OP_PUT, &k, value, len, in.deadline, in.epoch, err);
}

/* --- getting ---------------------------------------------------------------------- */

/* The factors are odd: a change of one word shows for sure, one of several unless they add up
 * to nothing in 64 bits.  No product waits for another. */
static uint64_t mix_of(const uint64_t w[CACHE_WAYS])
{
    static const uint64_t factors[CACHE_WAYS] = {
        UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9),
        UINT64_C(0x94d049bb133111eb), UINT64_C(0xd6e8feb86659fd93),
        UINT64_C(0xc2b2ae3d27d4eb4f), UINT64_C(0xff51afd7ed558ccd),
        UINT64_C(0xc4ceb9fe1a85ec53), UINT64_C(0x165667b19e3779f9),
    };
    uint64_t x = 0;

    for (uint32_t i = 0; i < CACHE_WAYS; i++)
        x += w[i] * factors[i];
    return x;
}

static void load_set(const struct cache_set *set, uint64_t w[CACHE_WAYS])
{
    for (uint32_t i = 0; i < CACHE_WAYS; i++)
        w[i] = atomic_load_explicit(&set->w[i], memory_order_acquire);
}

static bool is_as(const struct cache_set *set, const uint64_t w[CACHE_WAYS])
{
    fence_acquire();
    for (uint32_t i = 0; i < CACHE_WAYS; i++) {
        if (atomic_load_explicit(&set->w[i], memory_order_relaxed) != w[i])
            return false;
    }
    return true;
}

static bool has_key(const struct belay_cache *c, uint32_t entry,
                    const struct cache_key *k)
{
    uint8_t own[BELAY_CACHE_KEY_MAX];

    if (k->len <= CACHE_INLINE)
        return words_equal(c->entries[entry].text, k->ptr, k->len);
    return bytes_read(c, entry, 0, own, k->len) && memcmp(own, k->ptr, k->len) == 0;
}

static int64_t ttl_left(const struct belay_fleet *f, uint64_t deadline, uint64_t now)
{
    if (deadline == 0)
        return 0;
    return f->is_virtual ? (int64_t)(deadline - now)
                         : (int64_t)((deadline - now + 999) / 1000);
}

enum look_result { LOOK_HIT, LOOK_MISS, LOOK_SHORT, LOOK_AGAIN };

/* One look at the key's places; what it says is true if they have not changed. */
static enum look_result look(const struct belay_cache *c, const struct cache_key *k,
                             const uint64_t w[CACHE_WAYS], void *buf, size_t buf_len,
                             struct belay_cache_got *out)
{
    uint64_t now = 0, epoch = 0;
    uint32_t way = 0;
    size_t key, value;

    out->is_hit = false;
    out->epoch = atomic_load_explicit(&k->set->ended, memory_order_relaxed);
    out->ttl_ms = 0;
    out->len = 0;
    out->stamp =
        (struct belay_cache_stamp){ .words = mix_of(w), .set = k->first / CACHE_WAYS };
    if (!set_find(c, k->first / CACHE_WAYS, k->hash, w, &way, &epoch))
        return is_as(k->set, w) ? LOOK_MISS : LOOK_AGAIN;
    uint32_t entry = k->first + way;
    struct cache_entry *e = &c->entries[entry];
    uint64_t deadline = atomic_load_explicit(&e->deadline, memory_order_relaxed);
    if (deadline != 0)
        now = fleet_now(c->f);
    bool is_whole =
        bytes_len(c, entry, &key, &value) > 0 && key == k->len && has_key(c, entry, k);
    bool is_gone = deadline != 0 && deadline <= now;
    if (!is_whole || is_gone) {
        if (is_gone && epoch > out->epoch)
            out->epoch = epoch;
        return is_as(k->set, w) ? LOOK_MISS : LOOK_AGAIN;
    }
    bool fits = value <= buf_len;
    if (fits && !bytes_read(c, entry, value_at(key), buf, value))
        return LOOK_AGAIN;
    fence_acquire();
    if (atomic_load_explicit(&k->set->w[way], memory_order_relaxed) != w[way])
        return LOOK_AGAIN;
    if (!c->f->is_observer && atomic_load_explicit(&e->used, memory_order_relaxed) == 0)
        atomic_store_explicit(&e->used, 1, memory_order_relaxed);
    out->is_hit = true;
    out->epoch = epoch;
    out->len = value;
    out->ttl_ms = ttl_left(c->f, deadline, now);
    out->stamp.deadline = deadline;
    return fits ? LOOK_HIT : LOOK_SHORT;
}

belay_rc belay_cache_get(struct belay_cache *c, const void *key, size_t key_len,
                         void *buf, size_t buf_len, struct belay_cache_got *out,
                         struct belay_error *err)
{
    struct belay_cache_got got;
    uint64_t w[CACHE_WAYS];
    struct cache_key k;
    belay_rc rc = fleet_check(c->f, err);

    if (rc == BELAY_OK)
        rc = check_key(c, key, key_len, &k, err);
    if (rc != BELAY_OK)
        return rc;
    for (int turn = 0; turn < TURNS; turn++) {
        load_set(k.set, w);
        switch (look(c, &k, w, buf, buf_len, &got)) {
        case LOOK_HIT:
        case LOOK_MISS:
            *out = got;
            return BELAY_OK;
        case LOOK_SHORT:
            (void)err_set(err, BELAY_OUT_OF_RANGE, "the value has %zu bytes", got.len);
            err_numbers(err, (int64_t)got.len, (int64_t)buf_len);
            return BELAY_OUT_OF_RANGE;
        case LOOK_AGAIN:
        default:
            break;
        }
    }
    return err_set(err, BELAY_CONTENTION, "the key's places change all the time");
}

bool belay_cache_is_current(const struct belay_cache *c,
                            const struct belay_cache_stamp *stamp)
{
    uint64_t w[CACHE_WAYS];

    if (fleet_check(c->f, NULL) != BELAY_OK || stamp->set >= c->n_sets)
        return false;
    load_set(&c->sets[stamp->set], w);
    return mix_of(w) == stamp->words &&
           (stamp->deadline == 0 || stamp->deadline > fleet_now(c->f));
}

/* --- deleting --------------------------------------------------------------------- */

static uint64_t next_epoch(struct belay_cache *c)
{
    return atomic_fetch_add_explicit(&c->shared->epoch, 1, memory_order_acq_rel) + 1;
}

belay_rc belay_cache_delete(struct belay_cache *c, const void *key, size_t key_len,
                            bool *out_was, struct belay_error *err)
{
    struct cache_key k;
    belay_rc rc = fleet_check_member(c->f, err);

    if (rc == BELAY_OK)
        rc = check_key(c, key, key_len, &k, err);
    if (rc != BELAY_OK)
        return rc;
    uint64_t epoch = next_epoch(c);
    word_raise(&k.set->ended, epoch); /* before anybody misses it */
    bool was = set_end(c, k.first / CACHE_WAYS, k.hash, epoch) > 0;
    if (out_was)
        *out_was = was;
    return cache_log_write(c, CACHE_OP_DELETE, &k, NULL, 0, 0, epoch, err);
}
