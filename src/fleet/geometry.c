#include "fleet/impl.h"

static bool is_power(uint64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static uint64_t up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* Places a part of `len` bytes behind what is there. */
static uint64_t place(uint64_t *end, uint64_t len)
{
    uint64_t at = up(*end, 128);

    *end = at + len;
    return at;
}

bool ring_geometry_fill(struct ring_geometry *g)
{
    uint64_t end = HEADER_ROOM + sizeof(struct ring_shared);
    bool is_ordered = g->topology == BELAY_RING_ORDERED;

    if (g->kind > 255 || g->notify > 1 || g->reliable > 1 ||
        (g->reliable && is_ordered) ||
        (!is_ordered && g->topology != BELAY_RING_LANES) || !is_power(g->capacity) ||
        g->capacity > 1 << 20 || g->payload_max < 1 || g->payload_max > 65536 ||
        g->lanes < 1 || g->lanes > FLEET_SIZE_MAX)
        return false;
    if (is_ordered ? !is_power(g->order_capacity) || g->order_capacity > 1 << 24
                   : g->order_capacity != 0)
        return false;
    if (g->large_len > 0 && (!is_power(g->large_len) || g->large_len < 4096 ||
                             g->large_len > UINT64_C(1) << 28))
        return false;
    g->stride = (uint32_t)up(sizeof(struct slot) + g->payload_max, 64);
    g->lanes_at = place(&end, (uint64_t)g->lanes * sizeof(struct lane));
    g->order_at = place(&end, (uint64_t)g->order_capacity * 8);
    g->consumer_len =
        g->reliable ? up(sizeof(struct consumer) + g->lanes * 8ULL, 128) : 0;
    g->consumers_at = place(&end, g->lanes * g->consumer_len);
    g->slots_at = place(&end, (uint64_t)g->lanes * g->capacity * g->stride);
    g->large_at = place(&end, g->lanes * g->large_len);
    g->total_len = up(end, 4096);
    return g->total_len <= UINT64_C(1) << 40;
}

bool geometry_fill(struct geometry *g)
{
    uint64_t end = HEADER_ROOM;

    if (g->fleet_size < 1 || g->fleet_size > FLEET_SIZE_MAX || g->holds < 1 ||
        g->holds > HOLDS_MAX || !is_power(g->subjects) || g->subjects > SUBJECTS_MAX ||
        g->words < 1 || g->words > WORDS_MAX || !is_power(g->log_capacity) ||
        g->log_capacity > LOG_CAPACITY_MAX || g->arena_len > ARENA_LEN_MAX ||
        g->arena_len % BLOCK_LEN != 0)
        return false;
    g->log = (struct ring_geometry){
        .kind = BELAY_CONTEST_RING_KIND,
        .topology = BELAY_RING_ORDERED,
        .capacity = g->log_capacity,
        .payload_max = BELAY_CONTEST_PAYLOAD_MAX,
        .lanes = g->fleet_size,
        .order_capacity = 4 * g->log_capacity,
    };
    if (!ring_geometry_fill(&g->log))
        return false;
    g->token_at = place(&end, 128);
    g->epoch_at = place(&end, 128);
    g->words_at = place(&end, (uint64_t)g->words * sizeof(struct notify_word));
    g->members_at = place(&end, (uint64_t)g->fleet_size * sizeof(struct member));
    g->buckets_at = place(&end, (uint64_t)g->subjects * 8);
    g->entries_at = place(&end, (uint64_t)g->subjects * sizeof(struct entry));
    g->records_at =
        place(&end, (uint64_t)g->fleet_size * g->holds * sizeof(struct record));
    g->blocks_at = place(&end, g->arena_len / BLOCK_LEN * 8);
    g->arena_at = place(&end, g->arena_len);
    g->log_at = place(&end, g->log.total_len);
    g->total_len = up(end, 4096);
    return true;
}

/* Changes whenever a struct of layout.h does. */
uint64_t abi_hash(void)
{
    static const uint64_t facts[] = {
        SEGMENT_ABI,
        sizeof(struct segment_header),
        sizeof(struct ring_header),
        sizeof(struct member),
        offsetof(struct member, life),
        offsetof(struct member, beat_us),
        offsetof(struct lane, batch),
        sizeof(struct consumer),
        sizeof(struct notify_word),
        sizeof(struct entry),
        offsetof(struct entry, text),
        sizeof(struct record),
        sizeof(struct slot),
        sizeof(struct lane),
        TEXT_INLINE,
        BLOCK_LEN,
        O_RETIRING,
        MEMBER_SWEEPING,
    };
    static const uint64_t key[2] = { UINT64_C(0x9e3779b97f4a7c15),
                                     UINT64_C(0xc2b2ae3d27d4eb4f) };

    return fleet_hash(key, 0, facts, sizeof(facts));
}
