/* The 8 places of a key: taking one, and emptying them.
 *
 * Entries of one hash are taken for one key: should two keys ever share all 64 bits, one may be
 * evicted by the other.  A get compares the keys themselves. */
#include "fleet/cache_impl.h"

#define TURNS 64
#define INCARNATION_MASK 0x7ffU

static uint64_t writing(const struct belay_cache *c, uint64_t w)
{
    uint64_t gen = (w_gen(w) + 1) & GEN_MASK;

    return gen << 24 | (uint64_t)c->f->node << 14 |
           (c->f->incarnation & INCARNATION_MASK) << 3 | CACHE_WRITING;
}

static bool change(struct belay_cache *c, uint32_t entry, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(
        word_of(c, entry), &from, to, memory_order_acq_rel, memory_order_acquire);
}

void entry_settle(struct belay_cache *c, uint32_t entry)
{
    const struct belay_fleet *f = c->f;
    uint64_t w = atomic_load_explicit(word_of(c, entry), memory_order_acquire);
    uint32_t node = w_node(w);

    if (w_state(w) != CACHE_WRITING)
        return;
    if (node < f->fleet_size) {
        uint64_t m = atomic_load_explicit(&f->members[node].m, memory_order_acquire);
        bool is_its =
            (m_incarnation(m) & INCARNATION_MASK) == (w >> 3 & INCARNATION_MASK);
        /* Another incarnation: the node was swept, or left, so this one is gone. */
        if (is_its && m_state(m) != MEMBER_FREE &&
            (!member_may_be_dead(f, node) || !member_is_dead(f, node, m)))
            return;
    }
    (void)change(c, entry, w, w_as(w, CACHE_EMPTY));
    fleet_step(f, STEP_CACHE_ENDED);
}

bool set_find(const struct belay_cache *c, uint32_t set, uint64_t hash,
              const uint64_t w[CACHE_WAYS], uint32_t *out_way, uint64_t *out_epoch)
{
    bool is_found = false;

    for (uint32_t i = 0; i < CACHE_WAYS; i++) {
        if (w_state(w[i]) != CACHE_LIVE ||
            atomic_load_explicit(&c->sets[set].hash[i], memory_order_relaxed) != hash)
            continue;
        uint64_t epoch = atomic_load_explicit(&c->entries[set * CACHE_WAYS + i].epoch,
                                              memory_order_relaxed);
        if (!is_found || epoch > *out_epoch) {
            *out_way = i;
            *out_epoch = epoch;
        }
        is_found = true;
    }
    return is_found;
}

/* The lowest of that hash up to an epoch. */
static bool find_lowest(const struct belay_cache *c, uint32_t set, uint64_t hash,
                        uint64_t upto, uint32_t *out_entry, uint64_t *out_w)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t i = 0; i < CACHE_WAYS; i++) {
        uint32_t entry = set * CACHE_WAYS + i;
        uint64_t w = atomic_load_explicit(word_of(c, entry), memory_order_acquire);
        if (w_state(w) != CACHE_LIVE ||
            atomic_load_explicit(&c->sets[set].hash[i], memory_order_relaxed) != hash)
            continue;
        uint64_t epoch =
            atomic_load_explicit(&c->entries[entry].epoch, memory_order_relaxed);
        if (epoch > upto || epoch >= lowest)
            continue;
        lowest = epoch;
        *out_entry = entry;
        *out_w = w;
    }
    return lowest != UINT64_MAX;
}

unsigned set_end(struct belay_cache *c, uint32_t set, uint64_t hash, uint64_t upto)
{
    uint32_t entry = 0;
    uint64_t w = 0;
    unsigned n = 0;

    for (int turn = 0; turn < TURNS && find_lowest(c, set, hash, upto, &entry, &w);
         turn++) {
        n += change(c, entry, w, w_as(w, CACHE_EMPTY));
        fleet_step(c->f, STEP_CACHE_ENDED);
    }
    return n;
}

bool entry_end(struct belay_cache *c, uint32_t entry, uint64_t w)
{
    uint32_t set = entry / CACHE_WAYS;
    uint64_t hash = atomic_load_explicit(&c->sets[set].hash[entry % CACHE_WAYS],
                                         memory_order_relaxed);
    uint64_t epoch =
        atomic_load_explicit(&c->entries[entry].epoch, memory_order_relaxed);

    if (epoch > 0)
        (void)set_end(c, set, hash, epoch - 1);
    bool is_ours = change(c, entry, w, w_as(w, CACHE_EMPTY));
    fleet_step(c->f, STEP_CACHE_ENDED);
    return is_ours;
}

/* EMPTY -> WRITING. */
static bool take_empty(struct belay_cache *c, uint32_t entry, uint64_t *out_w)
{
    uint64_t w = atomic_load_explicit(word_of(c, entry), memory_order_acquire);
    uint64_t mine = writing(c, w);

    if (w_state(w) != CACHE_EMPTY || !change(c, entry, w, mine))
        return false;
    *out_w = mine;
    return true;
}

/* Empties the entry if it may go: expired, or not used since the hand was here. */
static void visit(struct belay_cache *c, uint32_t entry, uint64_t w, uint64_t now)
{
    au64 *used = &c->entries[entry].used;

    if (has_expired(c, entry, now)) {
        (void)entry_end(c, entry, w);
    } else if (atomic_load_explicit(used, memory_order_relaxed) != 0) {
        atomic_store_explicit(used, 0, memory_order_relaxed);
    } else if (entry_end(c, entry, w)) {
        atomic_fetch_add_explicit(&c->shared->evicted, 1, memory_order_relaxed);
    }
}

/* One that is empty, has expired, or was left by the dead. */
static bool take_idle(struct belay_cache *c, uint32_t first, uint64_t now,
                      uint32_t *out_entry, uint64_t *out_w)
{
    for (uint32_t entry = first; entry < first + CACHE_WAYS; entry++) {
        uint64_t w = atomic_load_explicit(word_of(c, entry), memory_order_acquire);
        if (w_state(w) == CACHE_WRITING)
            entry_settle(c, entry);
        else if (w_state(w) == CACHE_LIVE && has_expired(c, entry, now))
            (void)entry_end(c, entry, w);
        if (take_empty(c, entry, out_w)) {
            *out_entry = entry;
            return true;
        }
    }
    return false;
}

bool set_take(struct belay_cache *c, const struct cache_key *k, uint32_t *out_entry,
              uint64_t *out_w)
{
    uint64_t now = fleet_now(c->f);

    for (int turn = 0; turn < TURNS; turn++) {
        if (take_idle(c, k->first, now, out_entry, out_w))
            return true;
        uint64_t hand =
            atomic_fetch_add_explicit(&k->set->hand, 1, memory_order_relaxed);
        uint32_t way = (uint32_t)(hand % CACHE_WAYS);
        uint64_t w = atomic_load_explicit(&k->set->w[way], memory_order_acquire);
        /* The key's own value stays as long as there is anything else. */
        bool is_own =
            atomic_load_explicit(&k->set->hash[way], memory_order_relaxed) == k->hash;
        if (w_state(w) == CACHE_LIVE && (!is_own || turn >= TURNS / 2))
            visit(c, k->first + way, w, now);
    }
    return false;
}

uint32_t evict_for_chunks(struct belay_cache *c, uint32_t but)
{
    uint64_t now = fleet_now(c->f);
    uint32_t entries = c->n_sets * CACHE_WAYS;

    /* The first time round may find all of them used. */
    for (uint32_t i = 0; i < 2 * entries + 1; i++) {
        uint64_t hand =
            atomic_fetch_add_explicit(&c->shared->hand, 1, memory_order_relaxed);
        uint32_t entry = (uint32_t)(hand % entries);
        uint64_t w = atomic_load_explicit(word_of(c, entry), memory_order_acquire);
        size_t key, value;
        uint32_t n = chunks_for(bytes_len(c, entry, &key, &value));
        if (entry == but || w_state(w) != CACHE_LIVE || n == 0)
            continue;
        visit(c, entry, w, now);
        if (atomic_load_explicit(word_of(c, entry), memory_order_acquire) != w)
            return n;
    }
    return 0;
}
