/* Signs of life: a word of each member, which nobody else can push out (D22); and, seldom, a
 * frame for those who read rings. */
#include "fleet/impl.h"

#define FRAME_BEAT 1
#define FRAME_EVERY_US 1000000

static belay_rc publish(struct belay_fleet *f, struct belay_error *err)
{
    const struct belay_ring_spec spec = {
        .size = sizeof(spec),
        .kind = BELAY_FLEET_BEAT_KIND,
        .topology = BELAY_RING_LANES,
        .capacity = 8,
        .payload_max = 8,
        .schema = 1,
        .name = "beats",
    };
    const struct belay_ring_frame frame = {
        .kind = FRAME_BEAT,
        .ver = (uint64_t)f->clock.wall_ms(f->clock.arg),
    };
    struct belay_ring *ring;
    belay_rc rc = belay_ring_open(f, &spec, &ring, err);

    return rc == BELAY_OK ? belay_ring_publish(ring, &frame, NULL, err) : rc;
}

belay_rc belay_fleet_beat(struct belay_fleet *f, struct belay_error *err)
{
    belay_rc rc = fleet_check_member(f, err);

    if (rc != BELAY_OK)
        return rc;
    int64_t now = clock_coarse_us();
    atomic_store_explicit(&f->me->beat_us, (uint64_t)(now - f->clock_base_us + 1),
                          memory_order_relaxed);
    fleet_lock(f);
    bool is_due = f->beat_framed_us == 0 || now - f->beat_framed_us >= FRAME_EVERY_US;
    if (is_due)
        f->beat_framed_us = now;
    fleet_unlock(f);
    return is_due ? publish(f, err) : BELAY_OK;
}

static struct belay_fleet_node look(const struct belay_fleet *f, uint32_t node,
                                    int64_t max_age_ms)
{
    const struct member *who = &f->members[node];
    uint64_t m = atomic_load_explicit(&who->m, memory_order_acquire);
    uint64_t beat = atomic_load_explicit(&who->beat_us, memory_order_relaxed);
    int64_t age = clock_coarse_us() - f->clock_base_us - (int64_t)beat;
    struct belay_fleet_node n = { .node = (int32_t)node,
                                  .beat = BELAY_BEAT_FRESH,
                                  .age_ms = -1,
                                  .incarnation = m_incarnation(m) };

    if (m_state(m) == MEMBER_FREE) {
        n.beat = BELAY_BEAT_MISSING;
        return n;
    }
    if (beat != 0)
        n.age_ms = age > 0 ? age / 1000 : 0;
    if (member_is_gone(f, node, m))
        n.beat = BELAY_BEAT_DEAD;
    else if (beat == 0 || age / 1000 > max_age_ms)
        n.beat = BELAY_BEAT_STALE;
    return n;
}

belay_rc belay_fleet_nodes(struct belay_fleet *f, int64_t max_age_ms,
                           struct belay_fleet_node *out, size_t max, size_t *out_n,
                           struct belay_error *err)
{
    belay_rc rc = fleet_check(f, err);
    uint32_t n = 0;

    if (rc != BELAY_OK)
        return rc;
    for (; n < f->fleet_size && n < max; n++)
        out[n] = look(f, n, max_age_ms);
    *out_n = n;
    return BELAY_OK;
}

belay_rc belay_fleet_beats(struct belay_fleet *f, int64_t max_age_ms,
                           struct belay_fleet_beats *out, struct belay_error *err)
{
    int32_t counts[BELAY_BEAT_DEAD + 1] = { 0 };
    belay_rc rc = fleet_check(f, err);

    if (rc == BELAY_OK && out->size != sizeof(*out))
        rc = err_reason(err, BELAY_MISUSE, "size", "beats of another size");
    if (rc != BELAY_OK)
        return rc;
    for (uint32_t i = 0; i < f->fleet_size; i++)
        counts[look(f, i, max_age_ms).beat]++;
    *out = (struct belay_fleet_beats){
        .size = sizeof(*out),
        .fresh = counts[BELAY_BEAT_FRESH],
        .stale = counts[BELAY_BEAT_STALE],
        .dead = counts[BELAY_BEAT_DEAD],
        .missing = counts[BELAY_BEAT_MISSING],
    };
    return BELAY_OK;
}
