/* Events: one ring for all topics, frames as others know them. */
#include "fleet/impl.h"

#define EVENT_HEAD 12
#define FRAME_EVENT 1

static belay_rc open_as(struct belay_fleet *f, enum belay_topology topology,
                        struct belay_ring **out, struct belay_error *err)
{
    const struct belay_ring_spec spec = {
        .size = sizeof(spec),
        .kind = BELAY_FLEET_EVENT_KIND,
        .topology = (uint8_t)topology,
        .notify = 1,
        .capacity = 256,
        .payload_max = EVENT_HEAD + BELAY_FLEET_EVENT_MAX,
        .schema = 1,
        .name = "events",
    };

    return belay_ring_open(f, &spec, out, err);
}

/* As this handle wants it, or as it was made by somebody who wanted it otherwise. */
static belay_rc event_ring(struct belay_fleet *f, struct belay_ring **out,
                           struct belay_error *err)
{
    static const enum belay_topology ways[] = { BELAY_RING_LANES, BELAY_RING_ORDERED };
    bool ordered = f->orders_events;
    struct belay_error why = { .code = 0 };
    belay_rc rc = open_as(f, ways[ordered], out, &why);

    if (rc == BELAY_INVALID && strcmp(why.reason, "schema") == 0)
        return open_as(f, ways[!ordered], out, err);
    if (rc && err)
        *err = why;
    return rc;
}

belay_rc belay_fleet_event_publish(struct belay_fleet *f, const char *topic,
                                   const void *data, size_t len, uint64_t *out_id,
                                   struct belay_error *err)
{
    uint8_t frame[EVENT_HEAD + BELAY_FLEET_EVENT_MAX];
    struct belay_ring *ring;
    belay_rc rc = fleet_check_member(f, err);
    if (rc != BELAY_OK)
        return rc;
    struct bytes name = topic ? bytes_str(topic) : bytes_of(NULL, 0);
    size_t topic_len = name.len;
    if (topic_len > BELAY_FLEET_EVENT_MAX || len > BELAY_FLEET_EVENT_MAX - topic_len) {
        rc = err_reason(err, BELAY_INVALID, "too_large",
                        "an event of %zu bytes of topic and %zu of data", topic_len,
                        len);
        err_numbers(err, BELAY_FLEET_EVENT_MAX, (int64_t)(topic_len + len));
        return rc;
    }
    rc = event_ring(f, &ring, err);
    if (rc != BELAY_OK)
        return rc;

    uint16_t lens[2] = { (uint16_t)topic_len, (uint16_t)len };
    int64_t now_ms = f->clock.wall_ms(f->clock.arg);
    memcpy(frame, lens, 4);
    memcpy(frame + 4, &now_ms, 8);
    if (topic_len > 0)
        memcpy(frame + EVENT_HEAD, name.ptr, name.len);
    if (len > 0)
        memcpy(frame + EVENT_HEAD + topic_len, data, len);
    struct belay_ring_frame in = {
        .ver = (uint64_t)now_ms,
        .sig = fleet_hash(f->key, 2, name.ptr, name.len),
        .kind = FRAME_EVENT,
        .data = frame,
        .len = (uint32_t)(EVENT_HEAD + topic_len + len),
    };
    return belay_ring_publish(ring, &in, out_id, err);
}

belay_rc belay_fleet_event_open(struct belay_fleet *f, enum belay_ring_from from,
                                struct belay_ring_cursor **out, struct belay_error *err)
{
    struct belay_ring *ring;
    belay_rc rc = event_ring(f, &ring, err);

    return rc == BELAY_OK ? belay_ring_cursor_open(ring, from, out, err) : rc;
}

/* False: it is no event. */
static bool decode(const struct belay_ring_frame *frame, struct belay_fleet_event *out)
{
    uint16_t lens[2];

    if (frame->kind != FRAME_EVENT || frame->len < EVENT_HEAD)
        return false;
    memcpy(lens, frame->data, 4);
    if ((size_t)EVENT_HEAD + lens[0] + lens[1] > frame->len)
        return false;
    const uint8_t *topic = (const uint8_t *)frame->data + EVENT_HEAD;
    out->id = frame->id;
    out->node = frame->node;
    memcpy(&out->timestamp_ms, (const uint8_t *)frame->data + 4, 8);
    out->len = lens[1];
    memcpy(out->topic, topic, lens[0]);
    out->topic[lens[0]] = '\0';
    memcpy(out->data, topic + lens[0], lens[1]);
    return true;
}

belay_rc belay_fleet_event_poll(struct belay_ring_cursor *c, const char *topic,
                                struct belay_fleet_event *events, size_t max,
                                struct belay_ring_poll *out, struct belay_error *err)
{
    struct belay_ring_frame frames[8];
    uint64_t buf[8 * (EVENT_HEAD + BELAY_FLEET_EVENT_MAX + 7) / 8];
    struct belay_ring_poll all = { 0 }, poll;
    uint64_t sig = 0;

    /* Frames of other topics are passed over by their hash. */
    if (topic)
        sig = fleet_hash(cursor_fleet(c)->key, 2, topic, strlen(topic));
    do {
        size_t room = max - all.n_frames;
        belay_rc rc = ring_poll_sig(c, topic ? &sig : NULL, frames, room < 8 ? room : 8,
                                    buf, sizeof(buf), &poll, err);
        if (rc != BELAY_OK)
            return rc;
        for (size_t i = 0; i < poll.n_frames; i++) {
            struct belay_fleet_event *event = &events[all.n_frames];
            if (!decode(&frames[i], event))
                all.lost++;
            else if (!topic || strcmp(topic, event->topic) == 0)
                all.n_frames++;
        }
        all.lost += poll.lost;
        all.total_lost = poll.total_lost;
        all.is_reset = all.is_reset || poll.is_reset;
        all.is_more = poll.is_more;
    } while (poll.n_frames > 0 && all.n_frames < max);
    *out = all;
    return BELAY_OK;
}
