/* Reliable rings: a writer waits for those who said that they want every frame, as long as they
 * live.  Each of them says, for every lane, which frame it wants next; a writer looks at these
 * only when its lane is full by what it last knew. */
#include "fleet/impl.h"

static struct consumer *consumer_of(const struct belay_ring *r, uint32_t node)
{
    return (struct consumer *)(void *)(r->consumers + node * r->map->geo.consumer_len);
}

static uint64_t owner_of(uint64_t incarnation)
{
    return incarnation << 1 | 1;
}

/* Whether the node's member consumes; one that is dead, or left, is dropped. */
static bool is_consuming(const struct belay_ring *r, uint32_t node)
{
    const struct belay_fleet *f = r->f;
    struct consumer *c = consumer_of(r, node);
    uint64_t owner = atomic_load_explicit(&c->owner, memory_order_acquire);

    if (owner == 0)
        return false;
    uint64_t m = atomic_load_explicit(&f->members[node].m, memory_order_acquire);
    bool is_its = owner == owner_of(m_incarnation(m)) && m_state(m) != MEMBER_FREE;
    if (is_its && (!member_may_be_dead(f, node) || !member_is_dead(f, node, m)))
        return true;
    if (!f->is_observer)
        (void)atomic_compare_exchange_strong_explicit(
            &c->owner, &owner, 0, memory_order_acq_rel, memory_order_relaxed);
    return false;
}

bool ring_has_room(struct belay_ring *r, uint64_t n, uint32_t *out_node,
                   uint64_t *out_lag)
{
    uint64_t room = r->capacity_mask + 1;

    if (n <= room && r->next + n - r->gate <= room)
        return true;
    uint64_t lowest = r->next;
    for (uint32_t node = 0; node < r->map->geo.lanes; node++) {
        if (!is_consuming(r, node))
            continue;
        uint64_t wants = atomic_load_explicit(&consumer_of(r, node)->wants[r->lane],
                                              memory_order_acquire);
        if (wants < lowest) {
            lowest = wants;
            *out_node = node;
        }
    }
    r->gate = lowest;
    *out_lag = r->next - lowest;
    return n <= room && r->next + n - lowest <= room;
}

void consumer_begin(struct belay_ring *r)
{
    struct consumer *c = consumer_of(r, r->lane);

    for (uint32_t i = 0; i < r->map->geo.lanes; i++)
        consumer_want(r, i, lane_head(r, i));
    atomic_store_explicit(&c->owner, owner_of(r->f->incarnation), memory_order_seq_cst);
    /* Whoever has looked for consumers before this may go on until its lane is full from
     * where it is now; the cursor begins there (cursor.c reads the heads again). */
    atomic_thread_fence(memory_order_seq_cst);
}

void consumer_want(struct belay_ring *r, uint32_t lane, uint64_t seq)
{
    atomic_store_explicit(&consumer_of(r, r->lane)->wants[lane], seq,
                          memory_order_release);
}

void consumer_end(struct belay_ring *r)
{
    atomic_store_explicit(&consumer_of(r, r->lane)->owner, 0, memory_order_release);
}

belay_rc belay_ring_consumers(struct belay_ring *ring, struct belay_ring_consumer *out,
                              size_t max, size_t *out_n, struct belay_error *err)
{
    belay_rc rc = fleet_check(ring->f, err);
    size_t n = 0;

    if (rc != BELAY_OK)
        return rc;
    for (uint32_t i = 0; ring->consumers && i < ring->map->geo.lanes && n < max; i++) {
        if (!is_consuming(ring, i))
            continue;
        struct belay_ring_consumer who = {
            .node = (int32_t)i,
            .pid = (int32_t)atomic_load_explicit(&ring->f->members[i].pid,
                                                 memory_order_relaxed),
            .slowest_node = -1,
        };
        for (uint32_t lane = 0; lane < ring->map->geo.lanes; lane++) {
            uint64_t head = lane_head(ring, lane);
            uint64_t wants = atomic_load_explicit(&consumer_of(ring, i)->wants[lane],
                                                  memory_order_acquire);
            if (head > wants && head - wants > who.lag) {
                who.lag = head - wants;
                who.slowest_node = (int32_t)lane;
            }
        }
        out[n++] = who;
    }
    *out_n = n;
    return BELAY_OK;
}
