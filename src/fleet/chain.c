/* Chains of entries, one for each bucket.  An entry is linked at the front by a CAS of H whose
 * version shows that nothing came or went since the chain was searched, so a label is never
 * there twice.  It is unlinked in three steps that anybody may finish: H names the victim (and
 * nothing else can change in the chain from then on), the link to it is cut, H forgets it. */
#include "fleet/impl.h"

/* A chain cannot be longer, and a turn is lost only when another member has got further. */
#define TURNS 100000

static uint64_t h_load(const struct belay_fleet *f, uint64_t bucket)
{
    return atomic_load_explicit(&f->buckets[bucket], memory_order_acquire);
}

static uint64_t next_of(const struct belay_fleet *f, uint64_t index)
{
    return atomic_load_explicit(&f->entries[index - 1].n, memory_order_acquire);
}

static bool is_index(const struct belay_fleet *f, uint64_t index)
{
    return index > 0 && index <= f->subjects;
}

/* The index before `target` in the chain of h; 0: target is the first, or not there. */
static uint64_t before(const struct belay_fleet *f, uint64_t h, uint64_t target,
                       uint64_t *out_link)
{
    uint64_t at = h_first(h);

    for (uint32_t n = 0; is_index(f, at) && n < f->subjects; n++) {
        uint64_t link = next_of(f, at);
        if ((link & INDEX_MASK) == target) {
            *out_link = link;
            return at;
        }
        at = link & INDEX_MASK;
    }
    return 0;
}

bool chain_help(struct belay_fleet *f, uint64_t bucket, uint64_t h)
{
    uint64_t victim = h_victim(h), first = h_first(h), link = 0;

    if (!is_index(f, victim))
        return false;
    uint64_t behind = next_of(f, victim) & INDEX_MASK;
    uint64_t prev = first == victim ? 0 : before(f, h, victim, &link);
    /* Only while H is as we saw it is the link we found the one to cut. */
    if (h_load(f, bucket) != h)
        return true;
    if (first == victim)
        first = behind;
    else if (prev != 0)
        (void)atomic_compare_exchange_strong_explicit(
            &f->entries[prev - 1].n, &link, n_make(link, behind), memory_order_acq_rel,
            memory_order_acquire);
    fleet_step(f, STEP_RETIRE_CUT);
    (void)atomic_compare_exchange_strong_explicit(
        &f->buckets[bucket], &h, h_make(h, 0, first), memory_order_acq_rel,
        memory_order_acquire);
    fleet_step(f, STEP_RETIRE_CLEARED);
    return true;
}

bool chain_has(struct belay_fleet *f, uint64_t bucket, uint32_t entry, bool *out_linked)
{
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t h = h_load(f, bucket), link;
        if (h_victim(h) != 0) {
            if (!chain_help(f, bucket, h))
                return false;
            continue;
        }
        bool is_linked = h_first(h) == entry + 1 || before(f, h, entry + 1, &link) != 0;
        if (h_load(f, bucket) == h) {
            *out_linked = is_linked;
            return true;
        }
    }
    return false;
}

bool chain_unlink(struct belay_fleet *f, uint64_t bucket, uint32_t entry)
{
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t o = atomic_load_explicit(&f->entries[entry].o, memory_order_acquire);
        uint64_t h = h_load(f, bucket), link;
        if (o_state(o) != O_RETIRING)
            return true; /* somebody finished it */
        if (h_victim(h) != 0) {
            if (!chain_help(f, bucket, h))
                return false;
            continue;
        }
        bool is_linked = h_first(h) == entry + 1 || before(f, h, entry + 1, &link) != 0;
        if (h_load(f, bucket) != h)
            continue;
        if (!is_linked) {
            (void)atomic_compare_exchange_strong_explicit(
                &f->entries[entry].o, &o, o_make(o_next(o), 0, 0, O_GONE),
                memory_order_acq_rel, memory_order_acquire);
            fleet_step(f, STEP_RETIRE_FREED);
            return true;
        }
        (void)atomic_compare_exchange_strong_explicit(
            &f->buckets[bucket], &h, h_make(h, (uint64_t)entry + 1, h_first(h)),
            memory_order_acq_rel, memory_order_acquire);
        fleet_step(f, STEP_RETIRE_MARKED);
    }
    return false;
}

void chain_settle(struct belay_fleet *f, uint32_t entry, uint64_t o)
{
    struct entry *e = &f->entries[entry];
    uint64_t bucket =
        atomic_load_explicit(&e->hash, memory_order_relaxed) & (f->subjects - 1);
    bool is_linked;

    if (o_state(o) == O_RETIRING) {
        (void)chain_unlink(f, bucket, entry);
        return;
    }
    if (o_state(o) != O_FRESH || !chain_has(f, bucket, entry, &is_linked))
        return;
    (void)atomic_compare_exchange_strong_explicit(
        &e->o, &o, o_make(o_next(o), 0, 0, is_linked ? O_FREE : O_GONE),
        memory_order_acq_rel, memory_order_acquire);
}

/* FREE -> RETIRING -> GONE. */
static bool retire(struct belay_fleet *f, uint32_t entry, uint64_t o)
{
    struct entry *e = &f->entries[entry];

    if (!atomic_compare_exchange_strong_explicit(
            &e->o, &o, o_make(o_next(o), f->node, 0, O_RETIRING), memory_order_acq_rel,
            memory_order_acquire))
        return false;
    fleet_step(f, STEP_RETIRE_FROZEN);
    uint64_t hash = atomic_load_explicit(&e->hash, memory_order_relaxed);
    return chain_unlink(f, hash & (f->subjects - 1), entry);
}

bool chain_retire_one(struct belay_fleet *f, bool *out_all_held)
{
    *out_all_held = true;
    for (uint32_t n = 0; n < f->subjects; n++) {
        uint32_t at = f->hand++ & (f->subjects - 1);
        uint64_t o = atomic_load_explicit(&f->entries[at].o, memory_order_acquire);
        if (o_state(o) == O_GONE || (o_state(o) == O_FREE && retire(f, at, o))) {
            f->hand--; /* take this one */
            return true;
        }
        *out_all_held = *out_all_held && o_state(o) == O_HELD;
    }
    return false;
}
