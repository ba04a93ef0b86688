/* Values: a ring of lanes of two slots, which are the two buffers of each member, and a word
 * of the ring's shared line that names the latest frame:
 *
 *     latest   seq:48 | node + 1:16; 0: none
 *
 * A store commits a frame of its lane and then makes `latest` name it, by CAS, which is the
 * moment it happens (V2).  A slot is used again only when `latest` does not name it: who was
 * killed between the two has left a frame that is not named yet, and its successor at that
 * node names it before it overwrites the one before (V3). */
#include <belay/value.h>

#include "fleet/lane.h"

#define TURNS 100000
#define NODE_BITS 16
/* What a value's schema is mixed with, so that none is taken for a ring's. */
#define VALUE_SCHEMA UINT64_C(0x65756c6176796c62)

static au64 *latest_of(const struct belay_ring *r)
{
    return &r->shared->latest;
}

static uint64_t latest_make(uint32_t node, uint64_t seq)
{
    return seq << NODE_BITS | (node + 1);
}

static bool is_reserved(uint8_t kind)
{
    return kind == 200 || kind == 201 || (kind >= 220 && kind <= 222);
}

static belay_rc attach(struct belay_fleet *f, const struct belay_ring_spec *spec,
                       struct belay_ring **out, struct belay_error *err)
{
    struct belay_ring_spec is;
    struct belay_ring *ring;
    belay_rc rc = belay_ring_attach(f, spec->kind, &ring, err);

    if (rc != BELAY_OK)
        return rc;
    belay_ring_spec_get(ring, &is);
    if (is.schema != spec->schema || is.payload_max != spec->payload_max ||
        is.capacity != spec->capacity || is.topology != spec->topology)
        return err_reason(err, BELAY_INVALID, "schema", "kind %d is something else",
                          spec->kind);
    *out = ring;
    return BELAY_OK;
}

belay_rc belay_value_open(struct belay_fleet *f, uint8_t kind, const char *name,
                          size_t len, uint64_t schema, struct belay_value *out,
                          struct belay_error *err)
{
    struct belay_ring *ring = NULL;
    belay_rc rc = fleet_check(f, err);

    if (rc != BELAY_OK)
        return rc;
    if (is_reserved(kind))
        return err_reason(err, BELAY_INVALID, "kind", "kind %d is reserved", kind);
    if (len < 1 || len > BELAY_VALUE_LEN_MAX) {
        rc = err_reason(err, BELAY_INVALID, "too_large", "a value of %zu bytes", len);
        err_numbers(err, BELAY_VALUE_LEN_MAX, (int64_t)len);
        return rc;
    }
    const struct belay_ring_spec spec = {
        .size = sizeof(spec),
        .kind = kind,
        .topology = BELAY_RING_LANES,
        .capacity = 2,
        .payload_max = (int32_t)len,
        .schema = schema ^ VALUE_SCHEMA,
        .name = name,
    };
    rc = f->is_observer ? attach(f, &spec, &ring, err)
                        : belay_ring_open(f, &spec, &ring, err);
    if (rc == BELAY_OK)
        *out = (struct belay_value){ .ring = ring, .len = (uint32_t)len };
    return rc;
}

/* Before the slot of the next frame is written: `latest` must not name what is in it. */
static void finish_before(struct belay_ring *r)
{
    uint64_t c = r->next;
    uint64_t was = c >= 2 ? latest_make(r->lane, c - 2) : 0;

    if (was != 0)
        (void)atomic_compare_exchange_strong_explicit(
            latest_of(r), &was, latest_make(r->lane, c - 1), memory_order_acq_rel,
            memory_order_acquire);
    /* Whoever finds the slot being written finds `latest` elsewhere. */
    fence_release();
    fleet_step(r->f, STEP_ORDER_ADVANCED);
}

belay_rc belay_value_store(const struct belay_value *v, const void *data,
                           uint64_t *out_id, struct belay_error *err)
{
    struct belay_ring *r = v->ring;
    const struct frame_in in = { .data = data, .len = v->len };
    belay_rc rc = fleet_check_member(r->f, err);

    if (rc != BELAY_OK)
        return rc;
    /* Under the lock as a whole: the frames of a lane are named in their order. */
    fleet_lock(r->f);
    finish_before(r);
    uint64_t c = lane_publish(r, &in);
    uint64_t was = atomic_load_explicit(latest_of(r), memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        latest_of(r), &was, latest_make(r->lane, c), memory_order_acq_rel,
        memory_order_relaxed))
        continue;
    fleet_step(r->f, STEP_ORDER_SET);
    fleet_unlock(r->f);
    if (out_id)
        *out_id = r->id_base | (c & BELAY_NETID_COUNTER_MAX);
    return BELAY_OK;
}

static belay_rc none(struct belay_error *err)
{
    return err_set(err, BELAY_NOT_FOUND, "there is no such value");
}

/* The frame, whole, into out; *out_frame says which. */
static enum read_result read_one(const struct belay_value *v, uint32_t node,
                                 uint64_t seq, void *out,
                                 struct belay_ring_frame *out_frame)
{
    uint64_t words[64];
    struct belay_ring_frame frame;
    /* A short one goes by private memory, so that out is left alone when it is torn. */
    void *to = v->len <= sizeof(words) ? (void *)words : out;
    enum read_result got = lane_read(v->ring, node, seq, to, v->len, &frame);

    if (got == READ_OK && frame.len != v->len)
        return READ_LOST;
    if (got == READ_OK && to != out)
        memcpy(out, frame.data, v->len);
    if (got == READ_OK)
        *out_frame = frame;
    return got;
}

static bool is_forgotten(const struct belay_ring *r, uint32_t node, uint64_t seq)
{
    return seq < atomic_load_explicit(&r->lanes[node].floor, memory_order_acquire);
}

belay_rc belay_value_load(const struct belay_value *v, void *out, uint64_t *out_id,
                          struct belay_error *err)
{
    const struct belay_ring *r = v->ring;
    struct belay_ring_frame frame;
    belay_rc rc = fleet_check(r->f, err);

    for (int turn = 0; rc == BELAY_OK && turn < TURNS; turn++) {
        uint64_t latest = atomic_load_explicit(latest_of(r), memory_order_acquire);
        uint32_t node = (uint32_t)(latest & ((1U << NODE_BITS) - 1));
        uint64_t seq = latest >> NODE_BITS;
        if (node == 0)
            return none(err);
        if (--node >= r->map->geo.lanes)
            return err_reason(err, BELAY_CORRUPT, "geometry", "node %u of %u", node,
                              r->map->geo.lanes);
        if (is_forgotten(r, node, seq))
            return none(err);
        if (read_one(v, node, seq, out, &frame) == READ_OK) {
            if (out_id)
                *out_id = frame.id;
            return BELAY_OK;
        }
    }
    return rc == BELAY_OK ? err_set(err, BELAY_CONTENTION, "stores come too fast") : rc;
}

belay_rc belay_value_load_id(const struct belay_value *v, uint64_t id, void *out,
                             struct belay_error *err)
{
    const struct belay_ring *r = v->ring;
    struct belay_ring_frame frame;
    uint32_t node = belay_netid_node(id);
    belay_rc rc = fleet_check(r->f, err);

    if (rc != BELAY_OK)
        return rc;
    if (belay_netid_kind(id) != r->map->geo.kind || node >= r->map->geo.lanes)
        return none(err);
    /* The id has the low 40 bits of the counter; the frames there are the last two. */
    uint64_t head = atomic_load_explicit(&r->lanes[node].head, memory_order_acquire);
    for (uint64_t seq = head > 2 ? head - 2 : 0; seq < head; seq++) {
        if ((seq & BELAY_NETID_COUNTER_MAX) == belay_netid_counter(id) &&
            !is_forgotten(r, node, seq) &&
            read_one(v, node, seq, out, &frame) == READ_OK)
            return BELAY_OK;
    }
    return none(err);
}
