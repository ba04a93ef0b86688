/* Bytes of an entry: the first in it, the others in chunks that lie anywhere. */
#include "fleet/cache_impl.h"

#define ROUNDS 64

static uint64_t owner_of(uint32_t entry, uint64_t w)
{
    return (uint64_t)(entry + 1) << 40 | w_gen(w);
}

static bool names_entry(const struct belay_cache *c, uint64_t owner, uint32_t *out)
{
    uint64_t entry = (owner >> 40) - 1;

    *out = (uint32_t)entry;
    return owner >> 40 != 0 && entry < (uint64_t)c->n_sets * CACHE_WAYS;
}

static bool is_in_use(struct belay_cache *c, uint64_t owner)
{
    uint32_t entry;

    if (!names_entry(c, owner, &entry))
        return false;
    uint64_t w = atomic_load_explicit(word_of(c, entry), memory_order_acquire);
    if (w_gen(w) == (owner & GEN_MASK) && w_state(w) == CACHE_WRITING) {
        entry_settle(c, entry);
        w = atomic_load_explicit(word_of(c, entry), memory_order_acquire);
    }
    return w_gen(w) == (owner & GEN_MASK) && w_state(w) != CACHE_EMPTY;
}

/* Takes free chunks until there are `need`, each in front of the ones before; how many. */
static uint32_t take_some(struct belay_cache *c, uint64_t owner, uint32_t need,
                          uint64_t *first)
{
    uint64_t at = atomic_load_explicit(&c->shared->chunk_hand, memory_order_relaxed);
    uint32_t got = 0;

    for (uint32_t i = 0; i < c->n_chunks && got < need; i++, at++) {
        struct cache_chunk *chunk = &c->words[at % c->n_chunks];
        uint64_t was = atomic_load_explicit(&chunk->owner, memory_order_acquire);
        if (is_in_use(c, was) ||
            !atomic_compare_exchange_strong_explicit(
                &chunk->owner, &was, owner, memory_order_acq_rel, memory_order_relaxed))
            continue;
        atomic_store_explicit(&chunk->next, *first, memory_order_relaxed);
        *first = at % c->n_chunks;
        got++;
        fleet_step(c->f, STEP_CACHE_CHUNK);
    }
    atomic_store_explicit(&c->shared->chunk_hand, at, memory_order_relaxed);
    return got;
}

bool chunks_take(struct belay_cache *c, uint32_t entry, uint64_t w, size_t len,
                 uint64_t *out_first)
{
    uint64_t owner = owner_of(entry, w);
    uint32_t need = chunks_for(len);

    *out_first = NO_CHUNK;
    for (int round = 0; round < ROUNDS; round++) {
        need -= take_some(c, owner, need, out_first);
        if (need == 0)
            return true;
        for (uint32_t freed = 0; freed < need;) {
            uint32_t n = evict_for_chunks(c, entry);
            if (n == 0 && freed == 0)
                return false;
            if (n == 0)
                break;
            freed += n;
        }
    }
    return false;
}

/* A walk over an entry's bytes from a place on, piece by piece. */
struct walk {
    const struct belay_cache *c;
    au64 *text;
    uint64_t chunk;
    size_t at; /* in the chunk, or in text */
    bool is_in_text;
};

/* The next piece; false: the chain leads nowhere. */
static bool walk_piece(struct walk *w, size_t left, au64 **out, size_t *out_len)
{
    size_t room = w->is_in_text ? CACHE_INLINE : CHUNK_LEN;

    while (w->at >= room) {
        if (!w->is_in_text) {
            if (w->chunk >= w->c->n_chunks)
                return false;
            w->chunk =
                atomic_load_explicit(&w->c->words[w->chunk].next, memory_order_relaxed);
        }
        w->at -= room;
        w->is_in_text = false;
        room = CHUNK_LEN;
    }
    uint8_t *base = (uint8_t *)(void *)w->text;
    if (!w->is_in_text) {
        if (w->chunk >= w->c->n_chunks)
            return false;
        base = w->c->chunks + w->chunk * CHUNK_LEN;
    }
    *out = (au64 *)(void *)(base + w->at);
    *out_len = left < room - w->at ? left : room - w->at;
    w->at += *out_len;
    return true;
}

static struct walk walk_from(const struct belay_cache *c, uint32_t entry, size_t at)
{
    struct cache_entry *e = &c->entries[entry];

    return (struct walk){
        .c = c,
        .text = e->text,
        .chunk = atomic_load_explicit(&e->chunk, memory_order_relaxed),
        .at = at,
        .is_in_text = true,
    };
}

void bytes_write(struct belay_cache *c, uint32_t entry, size_t at, const void *data,
                 size_t len)
{
    struct walk w = walk_from(c, entry, at);
    const uint8_t *from = data;
    size_t n;
    au64 *to;

    for (; len > 0 && walk_piece(&w, len, &to, &n); len -= n, from += n)
        words_store(to, from, n);
}

bool bytes_read(const struct belay_cache *c, uint32_t entry, size_t at, void *out,
                size_t len)
{
    struct walk w = walk_from(c, entry, at);
    uint8_t *to = out;
    size_t n;
    au64 *from;

    for (; len > 0; len -= n, to += n) {
        if (!walk_piece(&w, len, &from, &n))
            return false;
        words_load(to, from, n);
    }
    return true;
}

size_t bytes_len(const struct belay_cache *c, uint32_t entry, size_t *out_key,
                 size_t *out_value)
{
    uint64_t lens = atomic_load_explicit(&c->entries[entry].lens, memory_order_relaxed);
    size_t key = (size_t)(lens >> 32), value = (size_t)(lens & UINT32_MAX);

    *out_key = key;
    *out_value = value;
    if (key < 1 || key > BELAY_CACHE_KEY_MAX ||
        value > (uint64_t)c->n_chunks * CHUNK_LEN + CACHE_INLINE)
        return 0;
    return value_at(key) + value;
}
