#include <stdlib.h>

#include "fleet/lane.h"

struct belay_ring_cursor {
    struct belay_ring *ring;
    uint64_t epoch, total_lost;
    uint32_t at; /* the lane to begin with */
    uint32_t n;  /* places: one for an order, one for each lane otherwise */
    bool is_consumer;
    uint64_t next[];
};

static uint64_t head_of(const struct belay_ring *r, uint32_t i)
{
    return r->order ? atomic_load_explicit(&r->shared->order_head, memory_order_acquire)
                    : lane_head(r, i);
}

static uint64_t floor_of(const struct belay_ring *r, uint32_t i)
{
    return atomic_load_explicit(r->order ? &r->shared->order_floor : &r->lanes[i].floor,
                                memory_order_acquire);
}

static uint64_t epoch_of(const struct belay_ring *r)
{
    return atomic_load_explicit(r->f->epoch, memory_order_acquire);
}

belay_rc belay_ring_cursor_open(struct belay_ring *ring, enum belay_ring_from from,
                                struct belay_ring_cursor **out, struct belay_error *err)
{
    belay_rc rc = fleet_check(ring->f, err);
    if (rc != BELAY_OK)
        return rc;
    uint32_t n = ring->order ? 1 : ring->map->geo.lanes;
    struct belay_ring_cursor *c = calloc(1, sizeof(*c) + n * sizeof(c->next[0]));
    if (!c)
        return err_no_memory(err, "a cursor");

    c->ring = ring;
    c->n = n;
    c->epoch = epoch_of(ring);
    for (uint32_t i = 0; i < n; i++)
        c->next[i] = from == BELAY_RING_HEAD ? head_of(ring, i) : floor_of(ring, i);
    *out = c;
    return BELAY_OK;
}

belay_rc belay_ring_consume(struct belay_ring *ring, struct belay_ring_cursor **out,
                            struct belay_error *err)
{
    struct belay_ring_cursor *c = NULL;
    belay_rc rc = fleet_check_member(ring->f, err);

    if (rc == BELAY_OK && !ring->consumers)
        rc = err_reason(err, BELAY_MISUSE, "reliable", "the ring is not reliable");
    if (rc == BELAY_OK && ring->is_consumed)
        rc = err_reason(err, BELAY_MISUSE, "consumer", "this member consumes already");
    if (rc == BELAY_OK)
        rc = belay_ring_cursor_open(ring, BELAY_RING_HEAD, &c, err);
    if (rc != BELAY_OK)
        return rc;
    consumer_begin(ring);
    for (uint32_t i = 0; i < c->n; i++) {
        c->next[i] = head_of(ring, i);
        consumer_want(ring, i, c->next[i]);
    }
    c->is_consumer = ring->is_consumed = true;
    *out = c;
    return BELAY_OK;
}

void belay_ring_cursor_close(struct belay_ring_cursor *c)
{
    if (c && c->is_consumer && fleet_check(c->ring->f, NULL) == BELAY_OK) {
        belay_rc rc;
        consumer_end(c->ring);
        c->ring->is_consumed = false;
        rc = belay_notify_post(c->ring->f, c->ring->room, NULL);
        (void)rc; /* who waits for room looks again by itself, too */
    }
    free(c);
}

/* What was taken may be overwritten. */
static void tell_writers(struct belay_ring_cursor *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        consumer_want(c->ring, i, c->next[i]);
    belay_rc rc = belay_notify_post(c->ring->f, c->ring->room, NULL);
    (void)rc; /* as above */
}

/* What a poll fills. */
struct sink {
    struct belay_ring_frame *frames;
    size_t max, n;
    uint8_t *buf;
    size_t buf_len, used;
    uint64_t lost;
    uint32_t wanted; /* length of the frame that did not fit */
    bool is_full;
    const uint64_t *sig; /* NULL: frames of any */
};

/* Whether the frame is there and of another sig: nothing else of it is looked at. */
static bool is_passed_over(const struct belay_ring *r, uint32_t lane, uint64_t seq,
                           uint64_t sig)
{
    const struct slot *s = slot_of(r, lane, seq);

    if (atomic_load_explicit(&s->seq, memory_order_acquire) != 2 * seq + 2)
        return false;
    uint64_t is = atomic_load_explicit(&s->sig, memory_order_relaxed);
    fence_acquire();
    return atomic_load_explicit(&s->seq, memory_order_relaxed) == 2 * seq + 2 &&
           is != sig;
}

/* Which frame stands at `position` of the order; false: it is overwritten, or nonsense. */
static bool resolve(const struct belay_ring *r, uint64_t position, uint32_t *out_lane,
                    uint64_t *out_seq)
{
    uint64_t v =
        atomic_load_explicit(&r->order[position & r->order_mask], memory_order_acquire);
    uint64_t lane = v >> SEQ_BITS & 0xfff;

    if (v >> 48 != (((position >> r->order_shift) + 1) & 0xffff) ||
        lane >= r->map->geo.lanes)
        return false;
    uint64_t head = atomic_load_explicit(&r->lanes[lane].head, memory_order_acquire);
    uint64_t seq = (head & ~SEQ_MASK) | (v & SEQ_MASK);
    if (seq >= head)
        seq -= SEQ_MASK + 1; /* of the turn of the counter before */
    *out_lane = (uint32_t)lane;
    *out_seq = seq;
    return true;
}

/* Takes the frame at a place; false: no room for it. */
static bool take(const struct belay_ring *r, uint32_t i, uint64_t position,
                 struct sink *sink)
{
    struct belay_ring_frame frame;
    uint32_t lane = i;
    uint64_t seq = position;

    if (sink->n == sink->max) {
        sink->is_full = true;
        return false;
    }
    if (r->order && !resolve(r, position, &lane, &seq)) {
        sink->lost++;
        return true;
    }
    if (sink->sig && is_passed_over(r, lane, seq, *sink->sig))
        return true;
    switch (lane_read(r, lane, seq, sink->buf + sink->used, sink->buf_len - sink->used,
                      &frame)) {
    case READ_OK:
        frame.position = position;
        sink->frames[sink->n++] = frame;
        sink->used += ((size_t)frame.len + 7) & ~(size_t)7;
        if (sink->used > sink->buf_len)
            sink->used = sink->buf_len;
        return true;
    case READ_TOO_SMALL:
        sink->wanted = frame.len;
        sink->is_full = true;
        return false;
    case READ_LOST:
    case READ_NOT_YET:
    default:
        sink->lost++; /* the writer was faster (R3) */
        return true;
    }
}

static void poll_order(struct belay_ring_cursor *c, struct sink *sink)
{
    const struct belay_ring *r = c->ring;
    uint64_t head = head_of(r, 0), next = c->next[0], room = r->order_mask + 1;

    if (next > head)
        next = head; /* only a damaged segment goes back */
    if (head - next > room) {
        sink->lost += head - room - next;
        next = head - room;
    }
    while (next < head && take(r, 0, next, sink))
        next++;
    c->next[0] = next;
}

/* Slots tell by themselves what is there, so that a reader that keeps up waits for one line
 * and leaves that of the head to the writer. */
static void poll_lane(struct belay_ring_cursor *c, uint32_t i, struct sink *sink)
{
    const struct belay_ring *r = c->ring;
    uint64_t next = c->next[i], room = r->capacity_mask + 1, turns = room;
    enum slot_look look;

    while (turns-- > 0 && (look = lane_look(r, i, next)) != SLOT_NOT_YET) {
        uint64_t head = look == SLOT_OVERTAKEN ? lane_head(r, i) : next + 1;
        if (head - next > room && head > next) {
            sink->lost += head - room - next;
            next = head - room;
        }
        if (!take(r, i, next, sink))
            break;
        next++;
    }
    c->next[i] = next;
}

belay_rc ring_poll_sig(struct belay_ring_cursor *c, const uint64_t *sig,
                       struct belay_ring_frame *frames, size_t max, void *buf,
                       size_t buf_len, struct belay_ring_poll *out,
                       struct belay_error *err)
{
    struct sink sink = {
        .frames = frames, .max = max, .buf = buf, .buf_len = buf_len, .sig = sig
    };
    belay_rc rc = fleet_check(c->ring->f, err);
    bool is_reset = false;

    if (rc != BELAY_OK)
        return rc;
    uint64_t epoch = epoch_of(c->ring);
    if (epoch != c->epoch) {
        is_reset = true;
        c->epoch = epoch;
        for (uint32_t i = 0; i < c->n; i++) {
            uint64_t floor = floor_of(c->ring, i);
            if (c->next[i] < floor)
                c->next[i] = floor;
        }
    }
    for (uint32_t n = 0; n < c->n && !sink.is_full; n++) {
        if (c->ring->order)
            poll_order(c, &sink);
        else
            poll_lane(c, c->at, &sink);
        /* A lane that is not through is where the next poll begins. */
        if (!sink.is_full && ++c->at == c->n)
            c->at = 0;
    }
    c->total_lost += sink.lost;
    if (c->is_consumer && (sink.n > 0 || sink.lost > 0 || is_reset))
        tell_writers(c);
    if (sink.is_full && sink.n == 0 && sink.lost == 0 && !is_reset && max > 0) {
        (void)err_set(err, BELAY_OUT_OF_RANGE, "the next frame has %u bytes",
                      sink.wanted);
        err_numbers(err, sink.wanted, (int64_t)buf_len);
        return BELAY_OUT_OF_RANGE;
    }
    *out = (struct belay_ring_poll){
        .n_frames = sink.n,
        .lost = sink.lost,
        .total_lost = c->total_lost,
        .is_reset = is_reset,
        .is_more = sink.is_full,
    };
    return BELAY_OK;
}

belay_rc belay_ring_poll(struct belay_ring_cursor *c, struct belay_ring_frame *frames,
                         size_t max, void *buf, size_t buf_len,
                         struct belay_ring_poll *out, struct belay_error *err)
{
    return ring_poll_sig(c, NULL, frames, max, buf, buf_len, out, err);
}

const struct belay_fleet *cursor_fleet(const struct belay_ring_cursor *c)
{
    return c->ring->f;
}

uint64_t belay_ring_cursor_lag(const struct belay_ring_cursor *c, int32_t node)
{
    uint64_t sum = 0;

    if (fleet_check(c->ring->f, NULL) != BELAY_OK)
        return 0;
    for (uint32_t i = 0; i < c->n; i++) {
        uint64_t head = head_of(c->ring, i);
        if (head > c->next[i] && (c->ring->order || node < 0 || (uint32_t)node == i))
            sum += head - c->next[i];
    }
    return sum;
}

static bool has_some(const struct belay_ring_cursor *c)
{
    if (c->epoch != epoch_of(c->ring))
        return true;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->ring->order ? head_of(c->ring, i) != c->next[i]
                           : lane_look(c->ring, i, c->next[i]) != SLOT_NOT_YET)
            return true;
    }
    return false;
}

belay_rc belay_ring_word(struct belay_ring *ring, struct belay_notify *out,
                         struct belay_error *err)
{
    belay_rc rc = fleet_check(ring->f, err);

    if (rc == BELAY_OK && ring->word.slot == UINT32_MAX)
        rc = err_reason(err, BELAY_MISUSE, "notify",
                        "the ring was opened without notify");
    if (rc == BELAY_OK)
        *out = ring->word;
    return rc;
}

belay_rc belay_ring_wait(struct belay_ring_cursor *c, int64_t timeout_ms,
                         struct belay_cancel *cancel, struct belay_error *err)
{
    struct belay_fleet *f = c->ring->f;
    struct patience patience;
    belay_rc rc = fleet_check_member(f, err);

    if (rc == BELAY_OK && c->ring->word.slot == UINT32_MAX)
        rc = err_reason(err, BELAY_MISUSE, "notify",
                        "the ring was opened without notify");
    if (rc == BELAY_OK)
        rc = patience_init(&patience, timeout_ms, cancel, err);
    while (rc == BELAY_OK) {
        uint32_t seen = belay_notify_value(f, c->ring->word);
        int64_t us;
        if (has_some(c))
            return BELAY_OK;
        rc = patience_slice(&patience, &us, err);
        if (rc == BELAY_OK) {
            belay_rc woken = belay_notify_wait(f, c->ring->word, seen,
                                               (us + 999) / 1000, NULL, NULL, NULL);
            if (woken != BELAY_TIMEOUT)
                rc = woken;
        }
    }
    return rc;
}
