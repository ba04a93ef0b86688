#include <sched.h>

#include "fleet/impl.h"

#define TURNS 100000
#define PROBES 64
#define ROUNDS 10000

static inline uint64_t lens_of(const struct key *key)
{
    return (uint64_t)key->kind << 16 | key->len;
}

bool entry_has_key(const struct belay_fleet *f, const struct entry *e,
                   const struct key *key)
{
    if (atomic_load_explicit(&e->lens, memory_order_relaxed) != lens_of(key))
        return false;
    if (key->len <= TEXT_INLINE)
        return words_equal(e->text, key->label, key->len);
    const au64 *text =
        arena_at(f, atomic_load_explicit(&e->ref, memory_order_relaxed), key->len);
    return text && words_equal(text, key->label, key->len);
}

bool entry_label(const struct belay_fleet *f, const struct entry *e, char *out,
                 size_t max, size_t *out_len)
{
    size_t len = atomic_load_explicit(&e->lens, memory_order_relaxed) & 0xffff;
    const au64 *text = e->text;

    if (len > TEXT_INLINE)
        text = arena_at(f, atomic_load_explicit(&e->ref, memory_order_relaxed), len);
    if (!text)
        return false;
    *out_len = len;
    words_load(out, text, len < max ? len : max);
    return true;
}

/* What to do about an entry with our key whose state is o; h is its bucket as it was. */
static bool settle_found(struct belay_fleet *f, uint64_t bucket, uint64_t h,
                         uint32_t at, uint64_t *o)
{
    struct entry *e = &f->entries[at];

    switch (o_state(*o)) {
    case O_FREE:
    case O_HELD:
        return true;
    case O_FRESH:
        /* Linked, if the bucket has not changed while we walked: its maker need not come
         * back for others to use it. */
        if (f->is_observer ||
            atomic_load_explicit(&f->buckets[bucket], memory_order_acquire) != h)
            return false;
        uint64_t online = o_make(o_next(*o), 0, 0, O_FREE);
        if (!atomic_compare_exchange_strong_explicit(
                &e->o, o, online, memory_order_acq_rel, memory_order_acquire))
            return false;
        *o = online;
        return true;
    case O_RETIRING:
        if (!f->is_observer)
            (void)chain_unlink(f, bucket, at);
        return false;
    case O_GONE:
    default:
        return false;
    }
}

enum walk { WALK_FOUND, WALK_NONE, WALK_AGAIN, WALK_BROKEN };

static inline enum walk walk(struct belay_fleet *f, const struct key *key, uint64_t h,
                             uint32_t *out_entry, uint64_t *out_o)
{
    uint64_t bucket = key->hash & (f->subjects - 1);
    uint64_t at = h_first(h);

    for (uint32_t n = 0; at != 0; n++) {
        if (at > f->subjects ||
            n >= f->subjects) /* only while it changes, or damaged */
            return atomic_load_explicit(&f->buckets[bucket], memory_order_acquire) == h
                       ? WALK_BROKEN
                       : WALK_AGAIN;
        struct entry *e = &f->entries[at - 1];
        if (atomic_load_explicit(&e->hash, memory_order_relaxed) == key->hash) {
            uint64_t o = atomic_load_explicit(&e->o, memory_order_acquire);
            if (entry_has_key(f, e, key)) {
                if (!settle_found(f, bucket, h, (uint32_t)at - 1, &o))
                    return f->is_observer ? WALK_NONE : WALK_AGAIN;
                *out_entry = (uint32_t)at - 1;
                *out_o = o;
                return WALK_FOUND;
            }
        }
        at = atomic_load_explicit(&e->n, memory_order_acquire) & INDEX_MASK;
    }
    return atomic_load_explicit(&f->buckets[bucket], memory_order_acquire) == h
               ? WALK_NONE
               : WALK_AGAIN;
}

static belay_rc find(struct belay_fleet *f, const struct key *key, uint64_t *out_h,
                     uint32_t *out_entry, uint64_t *out_o, struct belay_error *err)
{
    uint64_t bucket = key->hash & (f->subjects - 1);

    enum walk found = WALK_AGAIN;
    for (int turn = 0; turn < TURNS && found == WALK_AGAIN; turn++) {
        *out_h = atomic_load_explicit(&f->buckets[bucket], memory_order_acquire);
        found = walk(f, key, *out_h, out_entry, out_o);
        if (found == WALK_FOUND)
            return BELAY_OK;
        if (found == WALK_NONE)
            return BELAY_NOT_FOUND;
    }
    return err_reason(err, BELAY_CORRUPT, "chain", "the table of subjects is damaged");
}

belay_rc table_find(struct belay_fleet *f, const struct key *key, uint32_t *out_entry,
                    uint64_t *out_o, struct belay_error *err)
{
    uint64_t h;

    return find(f, key, &h, out_entry, out_o, err);
}

/* GONE -> FRESH, ours. */
static bool take_at(struct belay_fleet *f, uint32_t at, uint64_t *out_o)
{
    uint64_t o = atomic_load_explicit(&f->entries[at].o, memory_order_relaxed);
    uint64_t fresh = o_make(o_next(o), f->node, 0, O_FRESH);

    if (o_state(o) != O_GONE ||
        !atomic_compare_exchange_strong_explicit(
            &f->entries[at].o, &o, fresh, memory_order_acq_rel, memory_order_relaxed))
        return false;
    *out_o = fresh;
    return true;
}

static bool take_entry(struct belay_fleet *f, uint64_t hash, uint32_t *out,
                       uint64_t *out_o)
{
    uint32_t mask = f->subjects - 1;

    for (uint32_t n = 0; n < PROBES; n++) {
        *out = ((uint32_t)hash + n) & mask;
        if (take_at(f, *out, out_o))
            return true;
    }
    /* Entries that others are just making or retiring will be there in a moment. */
    bool all_held = false, is_swept = false;
    for (int round = 0; round < ROUNDS && !(all_held && is_swept); round++) {
        if (chain_retire_one(f, &all_held)) {
            *out = f->hand & mask;
            if (take_at(f, *out, out_o))
                return true;
            all_held = false;
        } else if (all_held) {
            is_swept = fleet_sweep_all(f) == 0; /* the dead may hold what we need */
        } else {
            (void)sched_yield();
        }
    }
    return false;
}

static bool fill_entry(struct belay_fleet *f, uint32_t at, uint64_t fresh,
                       const struct key *key)
{
    struct entry *e = &f->entries[at];
    uint64_t ref = 0;

    atomic_store_explicit(&e->birth, o_gen(fresh), memory_order_relaxed);
    if (key->len > TEXT_INLINE &&
        !arena_put(f, block_of_entry(at, o_gen(fresh)), key->label, key->len, &ref))
        return false;
    atomic_store_explicit(&e->hash, key->hash, memory_order_relaxed);
    atomic_store_explicit(&e->lens, lens_of(key), memory_order_relaxed);
    atomic_store_explicit(&e->ref, ref, memory_order_relaxed);
    atomic_store_explicit(&e->digest, fleet_hash(f->key, 0, key->label, key->len),
                          memory_order_relaxed);
    if (key->len <= TEXT_INLINE)
        words_store(e->text, key->label, key->len);
    fleet_step(f, STEP_INTERN_FILLED);
    return true;
}

/* Links the entry unless the key is there by now. */
static belay_rc link_entry(struct belay_fleet *f, const struct key *key, uint32_t at,
                           uint32_t *out_entry, uint64_t *out_o,
                           struct belay_error *err)
{
    au64 *head = &f->buckets[key->hash & (f->subjects - 1)];
    struct entry *e = &f->entries[at];
    uint64_t h;

    for (int turn = 0; turn < TURNS; turn++) {
        belay_rc rc = find(f, key, &h, out_entry, out_o, err);
        if (rc != BELAY_NOT_FOUND)
            return rc;
        if (h_victim(h) != 0) {
            if (!chain_help(f, key->hash & (f->subjects - 1), h))
                break;
            continue;
        }
        uint64_t n = atomic_load_explicit(&e->n, memory_order_relaxed);
        atomic_store_explicit(&e->n, n_make(n, h_first(h)), memory_order_relaxed);
        if (atomic_compare_exchange_strong_explicit(
                head, &h, h_make(h, 0, (uint64_t)at + 1), memory_order_acq_rel,
                memory_order_acquire))
            return BELAY_NOT_FOUND; /* it was not, now it is ours */
    }
    return err_reason(err, BELAY_CORRUPT, "chain", "the table of subjects is damaged");
}

/* Makes an entry for the key, unless there is one by now.  `not_found`: it was made, and
 * retired again before we could use it. */
static belay_rc make_entry(struct belay_fleet *f, const struct key *key,
                           uint32_t *out_entry, uint64_t *out_o,
                           struct belay_error *err)
{
    uint32_t at;
    uint64_t fresh;
    belay_rc rc;

    if (!take_entry(f, key->hash, &at, &fresh))
        return err_reason(err, BELAY_NO_MEMORY, "table_full",
                          "all %u subjects of the fleet are held", f->subjects);
    fleet_step(f, STEP_INTERN_TAKEN);
    if (fill_entry(f, at, fresh, key))
        rc = link_entry(f, key, at, out_entry, out_o, err);
    else
        rc = err_reason(err, BELAY_NO_MEMORY, "arena",
                        "no room for a label of %zu bytes", key->len);
    if (rc != BELAY_NOT_FOUND) {
        /* Not linked: nobody but us can have seen it. */
        (void)atomic_compare_exchange_strong_explicit(
            &f->entries[at].o, &fresh, o_make(o_next(fresh), 0, 0, O_GONE),
            memory_order_acq_rel, memory_order_acquire);
        return rc;
    }
    fleet_step(f, STEP_INTERN_LINKED);
    uint64_t online = o_make(o_next(fresh), 0, 0, O_FREE);
    bool is_ours = atomic_compare_exchange_strong_explicit(
        &f->entries[at].o, &fresh, online, memory_order_acq_rel, memory_order_acquire);
    fleet_step(f, STEP_INTERN_ONLINE);
    if (!is_ours) /* others put it online before us, and may have used it since */
        return table_find(f, key, out_entry, out_o, err);
    *out_entry = at;
    *out_o = online;
    return BELAY_OK;
}

belay_rc table_intern(struct belay_fleet *f, const struct key *key, uint32_t *out_entry,
                      uint64_t *out_o, struct belay_error *err)
{
    belay_rc rc = table_find(f, key, out_entry, out_o, err);

    for (int turn = 0; rc == BELAY_NOT_FOUND && turn < TURNS; turn++)
        rc = make_entry(f, key, out_entry, out_o, err);
    return rc;
}
