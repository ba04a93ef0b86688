/* lane.h - writing a frame, inline for those who write it in place; and a look at a slot.
 *
 * lane_begin, the payload into the slot's data (at most payload_max bytes, and up to a word
 * more), lane_commit; nothing else happens to the ring in between.
 */
#ifndef FLEET_LANE_H
#define FLEET_LANE_H

#include "fleet/impl.h"

/* A descriptor of the order: lap:16 | lane:12 | seq:36. */
#define SEQ_BITS 36
#define SEQ_MASK ((UINT64_C(1) << SEQ_BITS) - 1)

/* Appends frame c of our lane to the order. */
void lane_order(struct belay_ring *r, uint64_t c);

static inline struct slot *slot_of(const struct belay_ring *r, uint32_t lane,
                                   uint64_t seq)
{
    uint8_t *slots = r->slots + lane * r->lane_len;

    return (struct slot *)(void *)(slots + (seq & r->capacity_mask) * r->stride);
}

/* How it stands with frame `seq` of a lane, by its slot alone. */
enum slot_look { SLOT_NOT_YET, SLOT_THERE, SLOT_OVERTAKEN };

static inline enum slot_look lane_look(const struct belay_ring *r, uint32_t lane,
                                       uint64_t seq)
{
    uint64_t is =
        atomic_load_explicit(&slot_of(r, lane, seq)->seq, memory_order_acquire);

    if (is == 2 * seq + 2)
        return SLOT_THERE;
    return is < 2 * seq + 2 ? SLOT_NOT_YET : SLOT_OVERTAKEN;
}

static inline uint64_t meta_make(const struct frame_in *in, uint8_t flags)
{
    return (uint64_t)in->len << 32 | (uint64_t)flags << 24 | (uint64_t)in->kind << 16;
}

static inline struct slot *lane_begin_at(struct belay_ring *r, uint64_t c,
                                         const struct frame_in *in, uint8_t flags)
{
    struct slot *s = slot_of(r, r->lane, c);
    uint64_t id = in->id != 0 ? in->id : r->id_base | (c & BELAY_NETID_COUNTER_MAX);

    atomic_store_explicit(&s->seq, 2 * c + 1, memory_order_relaxed);
    fence_release();
    fleet_step(r->f, STEP_LANE_MARKED);
    atomic_store_explicit(&s->id, id, memory_order_relaxed);
    atomic_store_explicit(&s->ver, in->ver, memory_order_relaxed);
    atomic_store_explicit(&s->sig, in->sig, memory_order_relaxed);
    atomic_store_explicit(&s->meta, meta_make(in, flags), memory_order_relaxed);
    return s;
}

static inline struct slot *lane_begin(struct belay_ring *r, const struct frame_in *in,
                                      uint8_t flags)
{
    return lane_begin_at(r, r->next, in, flags);
}

static inline uint64_t lane_commit(struct belay_ring *r, struct slot *s)
{
    uint64_t c = r->next;

    fleet_step(r->f, STEP_LANE_WRITTEN);
    atomic_store_explicit(&s->seq, 2 * c + 2, memory_order_release);
    fleet_step(r->f, STEP_LANE_COMMITTED);
    atomic_store_explicit(&r->lanes[r->lane].head, c + 1, memory_order_release);
    r->next = c + 1;
    fleet_step(r->f, STEP_LANE_ADVANCED);
    if (r->order)
        lane_order(r, c);
    return c;
}

#endif /* FLEET_LANE_H */
