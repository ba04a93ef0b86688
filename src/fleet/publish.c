/* Publishing, one by one or many at once. */
#include "fleet/impl.h"

static struct frame_in frame_of(const struct belay_ring_frame *frame)
{
    return (struct frame_in){
        .ver = frame->ver,
        .sig = frame->sig,
        .kind = frame->kind,
        .data = frame->data,
        .len = frame->len,
    };
}

/* Bytes of a large frame: of a reliable ring so many that all frames of a lane may be. */
static inline uint64_t large_max(const struct ring_geometry *g)
{
    return g->reliable ? g->large_len / g->capacity / 8 * 8 : g->large_len;
}

static belay_rc refuse_len(const struct ring_geometry *g, uint32_t len,
                           struct belay_error *err)
{
    uint64_t most = large_max(g) > g->payload_max ? large_max(g) : g->payload_max;
    belay_rc rc =
        err_reason(err, BELAY_INVALID, "too_large", "a frame of %u bytes", len);

    err_numbers(err, (int64_t)most, len);
    return rc;
}

static inline belay_rc check(const struct belay_ring *ring,
                             const struct belay_ring_frame *frame,
                             struct belay_error *err)
{
    const struct ring_geometry *g = &ring->map->geo;

    if (UNLIKELY(frame->len > g->payload_max && frame->len > large_max(g)))
        return refuse_len(g, frame->len, err);
    if (UNLIKELY(g->kind == BELAY_CONTEST_RING_KIND))
        return err_reason(err, BELAY_INVALID, "schema",
                          "the contest's log writes itself");
    return BELAY_OK;
}

static belay_rc refuse_room(uint32_t node, uint64_t lag, struct belay_error *err)
{
    (void)err_reason(err, BELAY_CONTENTION, "slow_consumer",
                     "node %u is %llu frames behind", node, (unsigned long long)lag);
    err_numbers(err, node, (int64_t)lag);
    return BELAY_CONTENTION;
}

/* Everything that is not the short way. */
static __attribute__((noinline)) belay_rc
publish_with_care(struct belay_ring *ring, const struct belay_ring_frame *frame,
                  uint64_t *out_id, struct belay_error *err)
{
    belay_rc rc = check(ring, frame, err);

    return rc == BELAY_OK ? belay_ring_publish_batch(ring, frame, 1, out_id, err) : rc;
}

belay_rc belay_ring_publish(struct belay_ring *ring,
                            const struct belay_ring_frame *frame, uint64_t *out_id,
                            struct belay_error *err)
{
    belay_rc rc = fleet_check_member(ring->f, err);
    if (rc != BELAY_OK)
        return rc;
    const struct ring_geometry *g = &ring->map->geo;
    if (UNLIKELY(frame->len > g->payload_max || ring->consumers ||
                 g->kind == BELAY_CONTEST_RING_KIND))
        return publish_with_care(ring, frame, out_id, err);
    struct frame_in in = {
        .ver = frame->ver,
        .sig = frame->sig,
        .kind = frame->kind,
        .data = frame->data,
        .len = frame->len,
    };
    fleet_lock(ring->f);
    uint64_t seq = lane_publish(ring, &in);
    fleet_unlock(ring->f);
    if (out_id)
        *out_id = belay_netid_make((uint8_t)g->kind, (uint16_t)ring->lane, seq);
    if (g->notify)
        rc = belay_notify_post(ring->f, ring->word, err);
    return rc;
}

static belay_rc check_batch(const struct belay_ring *ring,
                            const struct belay_ring_frame *frames, size_t n,
                            struct belay_error *err)
{
    const struct ring_geometry *g = &ring->map->geo;
    uint64_t large = 0;
    belay_rc rc = BELAY_OK;

    if (n == 0 || n > BELAY_RING_BATCH_MAX || n > g->capacity) {
        rc = err_reason(err, BELAY_INVALID, "too_large", "a batch of %zu frames", n);
        err_numbers(err,
                    g->capacity < BELAY_RING_BATCH_MAX ? (int64_t)g->capacity
                                                       : BELAY_RING_BATCH_MAX,
                    (int64_t)n);
    }
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        rc = check(ring, &frames[i], err);
        if (rc == BELAY_OK && frames[i].len > g->payload_max)
            large += ((uint64_t)frames[i].len + 7) / 8 * 8;
    }
    if (rc == BELAY_OK && large > g->large_len) {
        rc = err_reason(err, BELAY_INVALID, "too_large",
                        "a batch with %llu bytes of large frames",
                        (unsigned long long)large);
        err_numbers(err, (int64_t)g->large_len, (int64_t)large);
    }
    return rc;
}

belay_rc belay_ring_publish_batch(struct belay_ring *ring,
                                  const struct belay_ring_frame *frames, size_t n,
                                  uint64_t *out_first_id, struct belay_error *err)
{
    const struct ring_geometry *g = &ring->map->geo;
    struct frame_in in[BELAY_RING_BATCH_MAX];
    belay_rc rc = fleet_check_member(ring->f, err);

    if (rc == BELAY_OK)
        rc = check_batch(ring, frames, n, err);
    if (rc != BELAY_OK)
        return rc;
    for (size_t i = 0; i < n; i++)
        in[i] = frame_of(&frames[i]);
    uint32_t node = 0;
    uint64_t seq = 0, lag = 0;
    fleet_lock(ring->f);
    bool has_room = !ring->consumers || ring_has_room(ring, n, &node, &lag);
    if (has_room)
        seq = lane_publish_batch(ring, in, n);
    fleet_unlock(ring->f);
    if (!has_room)
        return refuse_room(node, lag, err);
    if (out_first_id)
        *out_first_id = belay_netid_make((uint8_t)g->kind, (uint16_t)ring->lane, seq);
    if (g->notify)
        rc = belay_notify_post(ring->f, ring->word, err);
    return rc;
}

belay_rc belay_ring_wait_room(struct belay_ring *ring, size_t n, int64_t timeout_ms,
                              struct belay_cancel *cancel, struct belay_error *err)
{
    struct patience patience;
    belay_rc rc = fleet_check_member(ring->f, err);
    uint32_t node;
    uint64_t lag;

    if (rc == BELAY_OK && !ring->consumers)
        return BELAY_OK;
    if (rc == BELAY_OK)
        rc = patience_init(&patience, timeout_ms, cancel, err);
    while (rc == BELAY_OK) {
        uint32_t seen = belay_notify_value(ring->f, ring->room);
        int64_t us;
        fleet_lock(ring->f);
        bool has_room = ring_has_room(ring, n, &node, &lag);
        fleet_unlock(ring->f);
        if (has_room)
            return BELAY_OK;
        rc = patience_slice(&patience, &us, err);
        if (rc == BELAY_OK) {
            /* In slices: who dies does not post. */
            belay_rc woken = belay_notify_wait(ring->f, ring->room, seen,
                                               (us + 999) / 1000, NULL, NULL, NULL);
            if (woken != BELAY_TIMEOUT)
                rc = woken;
        }
    }
    return rc;
}
