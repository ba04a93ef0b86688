/* The log of the cache's changes: frames of kind 200 as others know them. */
#include "fleet/cache_impl.h"

#define FRAME_HEAD 13
#define FRAME_WHOLE 1
#define FRAME_NO_VALUE 2

belay_rc cache_log_open(struct belay_cache *c, struct belay_error *err)
{
    const struct belay_ring_spec spec = {
        .size = sizeof(spec),
        .kind = BELAY_CACHE_RING_KIND,
        .topology = BELAY_RING_LANES,
        .notify = 1,
        .capacity = 128,
        .payload_max = FRAME_HEAD + BELAY_CACHE_FRAME_MAX,
        .schema = 1,
        .name = "cache",
    };

    return c->f->is_observer
               ? belay_ring_attach(c->f, BELAY_CACHE_RING_KIND, &c->log, err)
               : belay_ring_open(c->f, &spec, &c->log, err);
}

/* In the wall clock, for those who read frames alone. */
static uint64_t expires_ms(struct belay_cache *c, uint64_t deadline)
{
    if (deadline == 0)
        return 0;
    fleet_lock(c->f);
    uint64_t ms = fleet_log_ms(c->f, deadline);
    fleet_unlock(c->f);
    return ms;
}

belay_rc cache_log_write(struct belay_cache *c, enum cache_op op,
                         const struct cache_key *k, const void *value, size_t len,
                         uint64_t deadline, uint64_t epoch, struct belay_error *err)
{
    uint8_t frame[FRAME_HEAD + BELAY_CACHE_FRAME_MAX];
    uint64_t expires = expires_ms(c, deadline);
    uint16_t lens[2] = { (uint16_t)k->len, (uint16_t)len };
    bool is_whole = k->len + len <= BELAY_CACHE_FRAME_MAX;

    if (!is_whole)
        lens[1] = 0;
    if (k->len > BELAY_CACHE_FRAME_MAX) {
        op = CACHE_OP_RESET;
        lens[0] = BELAY_CACHE_FRAME_MAX;
    }
    frame[0] = (uint8_t)op;
    memcpy(frame + 1, lens, 4);
    memcpy(frame + 5, &expires, 8);
    if (lens[0] > 0)
        memcpy(frame + FRAME_HEAD, k->ptr, lens[0]);
    if (lens[1] > 0)
        memcpy(frame + FRAME_HEAD + lens[0], value, lens[1]);
    struct belay_ring_frame in = {
        .kind = is_whole ? FRAME_WHOLE : FRAME_NO_VALUE,
        .ver = epoch,
        .sig = k->hash,
        .data = frame,
        .len = (uint32_t)(FRAME_HEAD + lens[0] + lens[1]),
    };
    belay_rc rc = belay_ring_publish(c->log, &in, NULL, err);
    fleet_step(c->f, STEP_CACHE_LOGGED);
    return rc;
}

belay_rc belay_cache_log(struct belay_cache *c, struct belay_ring **out,
                         struct belay_error *err)
{
    belay_rc rc = fleet_check(c->f, err);

    if (rc == BELAY_OK)
        *out = c->log;
    return rc;
}
