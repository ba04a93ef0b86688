/* Room for labels over TEXT_INLINE, in blocks of BLOCK_LEN.  A block's word says for whom it
 * was taken, and that alone decides whether it is in use: for an entry, as long as the entry
 * lives on since the birth named; for a record, as long as its member does (who gives it back
 * earlier when the record is done).  So nothing has to be undone for those who die. */
#include "fleet/impl.h"

#define FOR_ENTRY (UINT64_C(1) << 62)
#define FOR_RECORD (UINT64_C(2) << 62)
#define BIRTH_MASK GEN_MASK

uint64_t block_of_entry(uint32_t entry, uint64_t birth)
{
    return FOR_ENTRY | (uint64_t)entry << 40 | (birth & BIRTH_MASK);
}

uint64_t block_of_record(const struct belay_fleet *f, uint32_t rec)
{
    (void)rec;
    return FOR_RECORD | (uint64_t)f->node << 40 | (f->incarnation & BIRTH_MASK);
}

static bool is_in_use(const struct belay_fleet *f, uint64_t word)
{
    uint64_t index = word >> 40 & 0x3fffff, birth = word & BIRTH_MASK;

    if (word >> 62 == FOR_ENTRY >> 62 && index < f->subjects) {
        const struct entry *e = &f->entries[index];
        uint64_t o = atomic_load_explicit(&e->o, memory_order_acquire);
        return o_state(o) != O_GONE &&
               atomic_load_explicit(&e->birth, memory_order_relaxed) == birth;
    }
    if (word >> 62 == FOR_RECORD >> 62 && index < f->fleet_size) {
        uint64_t m = atomic_load_explicit(&f->members[index].m, memory_order_acquire);
        return m_incarnation(m) == birth && m_state(m) != MEMBER_FREE;
    }
    return false;
}

static bool take(struct belay_fleet *f, uint64_t block, uint64_t owner)
{
    uint64_t word = atomic_load_explicit(&f->blocks[block], memory_order_acquire);

    return !is_in_use(f, word) && atomic_compare_exchange_strong_explicit(
                                      &f->blocks[block], &word, owner,
                                      memory_order_acq_rel, memory_order_relaxed);
}

static void give_back(struct belay_fleet *f, uint64_t from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        atomic_store_explicit(&f->blocks[from + i], 0, memory_order_release);
}

bool arena_put(struct belay_fleet *f, uint64_t owner, const void *data, size_t len,
               uint64_t *out_ref)
{
    uint64_t blocks = f->space->geo.arena_len / BLOCK_LEN;
    uint64_t need = (len + BLOCK_LEN - 1) / BLOCK_LEN;

    for (uint64_t from = 0; from + need <= blocks;) {
        uint64_t got = 0;
        while (got < need && take(f, from + got, owner))
            got++;
        if (got == need) {
            fleet_step(f, STEP_ARENA_TAKEN);
            words_store((au64 *)(void *)(f->arena + from * BLOCK_LEN), data, len);
            fleet_step(f, STEP_ARENA_WRITTEN);
            *out_ref = from * BLOCK_LEN;
            return true;
        }
        give_back(f, from, got);
        from += got + 1;
    }
    return false;
}

void arena_free(struct belay_fleet *f, uint64_t ref, size_t len)
{
    if (arena_at(f, ref, len))
        give_back(f, ref / BLOCK_LEN, (len + BLOCK_LEN - 1) / BLOCK_LEN);
}

const au64 *arena_at(const struct belay_fleet *f, uint64_t ref, size_t len)
{
    uint64_t room = f->space->geo.arena_len;

    if (ref % BLOCK_LEN != 0 || ref >= room || len > room - ref)
        return NULL;
    return (const au64 *)(const void *)(f->arena + ref);
}
