/* Lanes: one writer each.  The slot's seq is odd while it is written and says afterwards which
 * frame is in it; the lane's head is raised last.  A frame is there when its slot
 * says so: a writer that dies before has published nothing, and its successor writes the same
 * frame again; one that dies between slot and head has, and its successor raises the head for
 * it before anything else (R1).  Fences as in 2.7 of the design: the
 * payload's stores stay behind the odd mark, its loads before the second look (R2, C3). */
#include "fleet/lane.h"

/* Into the lane's large area, which wraps; *out is where it begins, in bytes since ever. */
static uint64_t put_large(struct belay_ring *r, const void *data, size_t len)
{
    uint8_t *area = r->large + r->lane * r->map->geo.large_len;
    uint64_t room = r->map->geo.large_len, at = r->large_next;
    uint64_t offset = at & r->large_mask;
    size_t head = len < room - offset ? len : (size_t)(room - offset);

    r->large_next = at + (len + 7) / 8 * 8;
    /* First it says how far it will write: readers of what is overwritten will know. */
    atomic_store_explicit(&r->lanes[r->lane].large, r->large_next,
                          memory_order_relaxed);
    fence_release();
    fleet_step(r->f, STEP_LARGE_MARKED);
    words_store((au64 *)(void *)(area + offset), data, head);
    words_store((au64 *)(void *)area, (const uint8_t *)data + head, len - head);
    fleet_step(r->f, STEP_LARGE_WRITTEN);
    return at;
}

/* Appends frame c of our lane to the order: the descriptor's CAS is the moment it happens;
 * raising the head may be left to others (F3).  Both are before whatever the caller looks at
 * next, such as who sleeps. */
void lane_order(struct belay_ring *r, uint64_t c)
{
    for (;;) {
        uint64_t h = atomic_load_explicit(&r->shared->order_head, memory_order_acquire);
        au64 *cell = &r->order[h & r->order_mask];
        uint64_t v = atomic_load_explicit(cell, memory_order_acquire);
        uint64_t lap = ((h >> r->order_shift) + 1) & 0xffff;
        uint64_t mine = lap << 48 | (uint64_t)r->lane << SEQ_BITS | (c & SEQ_MASK);

        if (v >> 48 != lap) {
            /* Of the lap before, unless h is old. */
            if (v >> 48 != ((lap - 1) & 0xffff) &&
                atomic_load_explicit(&r->shared->order_head, memory_order_acquire) != h)
                continue;
            if (!atomic_compare_exchange_strong_explicit(
                    cell, &v, mine, memory_order_seq_cst, memory_order_acquire))
                continue;
            fleet_step(r->f, STEP_ORDER_SET);
            (void)atomic_compare_exchange_strong_explicit(&r->shared->order_head, &h,
                                                          h + 1, memory_order_seq_cst,
                                                          memory_order_seq_cst);
            fleet_step(r->f, STEP_ORDER_ADVANCED);
            return;
        }
        (void)atomic_compare_exchange_strong_explicit(&r->shared->order_head, &h, h + 1,
                                                      memory_order_seq_cst,
                                                      memory_order_acquire);
    }
}

uint64_t lane_publish(struct belay_ring *r, const struct frame_in *in)
{
    struct slot *s;

    if (UNLIKELY(in->len > r->payload_max)) {
        uint64_t where = put_large(r, in->data, in->len);
        s = lane_begin(r, in, in->flags | BELAY_RING_FRAME_LARGE);
        atomic_store_explicit(&s->data[0], where, memory_order_relaxed);
    } else {
        s = lane_begin(r, in, in->flags);
        words_store(s->data, in->data, in->len);
    }
    return lane_commit(r, s);
}

/* The slots from the last to the first: readers go from the first to the last, so that it is the
 * first that makes all of them visible. */
uint64_t lane_publish_batch(struct belay_ring *r, const struct frame_in *in, size_t n)
{
    struct lane *lane = &r->lanes[r->lane];
    uint64_t c = r->next;

    if (n == 1)
        return lane_publish(r, in);
    /* Who comes after us knows how far we may have written. */
    atomic_store_explicit(&lane->batch, c + n, memory_order_relaxed);
    fence_release();
    fleet_step(r->f, STEP_BATCH_MARKED);
    for (size_t i = 0; i < n; i++) {
        if (in[i].len > r->payload_max)
            (void)put_large(r, in[i].data, in[i].len);
    }
    uint64_t large = r->large_next;
    for (size_t i = n; i-- > 0;) {
        bool is_large = in[i].len > r->payload_max;
        struct slot *s = lane_begin_at(r, c + i, &in[i],
                                       is_large ? in[i].flags | BELAY_RING_FRAME_LARGE
                                                : in[i].flags);
        if (is_large) {
            large -= (in[i].len + 7) / 8 * 8;
            atomic_store_explicit(&s->data[0], large, memory_order_relaxed);
        } else {
            words_store(s->data, in[i].data, in[i].len);
        }
        fleet_step(r->f, STEP_LANE_WRITTEN);
        atomic_store_explicit(&s->seq, 2 * (c + i) + 2, memory_order_release);
        fleet_step(r->f, STEP_LANE_COMMITTED);
    }
    atomic_store_explicit(&lane->head, c + n, memory_order_release);
    r->next = c + n;
    fleet_step(r->f, STEP_LANE_ADVANCED);
    for (size_t i = 0; i < n && r->order; i++)
        lane_order(r, c + i);
    return c;
}

/* Where the batch ends that begins at the lane's head, if one was begun; else the head. */
static uint64_t batch_end(const struct belay_ring *r, uint32_t lane, uint64_t head)
{
    uint64_t end = atomic_load_explicit(&r->lanes[lane].batch, memory_order_acquire);

    return end > head && end - head <= r->capacity_mask + 1 ? end : head;
}

void lane_forget_batch(struct belay_ring *r)
{
    uint64_t end = batch_end(r, r->lane, r->next);

    for (uint64_t c = r->next; c < end; c++) {
        au64 *seq = &slot_of(r, r->lane, c)->seq;
        if (atomic_load_explicit(seq, memory_order_relaxed) == 2 * c + 2)
            atomic_store_explicit(seq, 2 * c + 1, memory_order_relaxed);
    }
    if (end > r->next)
        atomic_store_explicit(&r->lanes[r->lane].batch, r->next, memory_order_release);
}

/* Copies from the large area; false: it may have been overwritten. */
static bool get_large(const struct belay_ring *r, uint32_t lane, uint64_t at, void *buf,
                      size_t len)
{
    uint64_t room = r->map->geo.large_len;
    const uint8_t *area = r->large + lane * room;
    uint64_t offset = at & r->large_mask;
    size_t head = len < room - offset ? len : (size_t)(room - offset);

    if (offset % 8 != 0)
        return false;
    words_load(buf, (const au64 *)(const void *)(area + offset), head);
    words_load((uint8_t *)buf + head, (const au64 *)(const void *)area, len - head);
    fence_acquire();
    return atomic_load_explicit(&r->lanes[lane].large, memory_order_relaxed) - at <=
           room;
}

uint64_t lane_head(const struct belay_ring *r, uint32_t lane)
{
    uint64_t head = atomic_load_explicit(&r->lanes[lane].head, memory_order_acquire);

    if (lane_look(r, lane, head) != SLOT_THERE)
        return head;
    uint64_t end = batch_end(r, lane, head);
    return end > head ? end : head + 1;
}

enum read_result lane_read(const struct belay_ring *r, uint32_t lane, uint64_t seq,
                           void *buf, size_t buf_len, struct belay_ring_frame *out)
{
    const struct slot *s = slot_of(r, lane, seq);

    /* The slot says it itself: a reader that keeps up never touches the head's line. */
    if (atomic_load_explicit(&s->seq, memory_order_acquire) != 2 * seq + 2)
        return seq < atomic_load_explicit(&r->lanes[lane].head, memory_order_acquire)
                   ? READ_LOST
                   : READ_NOT_YET;
    uint64_t meta = atomic_load_explicit(&s->meta, memory_order_relaxed);
    uint64_t where = atomic_load_explicit(&s->data[0], memory_order_relaxed);
    struct belay_ring_frame frame = {
        .id = atomic_load_explicit(&s->id, memory_order_relaxed),
        .seq = seq,
        .position = seq,
        .ver = atomic_load_explicit(&s->ver, memory_order_relaxed),
        .sig = atomic_load_explicit(&s->sig, memory_order_relaxed),
        .node = (int32_t)lane,
        .kind = (uint8_t)(meta >> 16),
        .flags = (uint8_t)(meta >> 24),
        .len = (uint32_t)(meta >> 32),
        .data = buf,
    };
    bool is_large = (frame.flags & BELAY_RING_FRAME_LARGE) != 0;
    uint64_t most = is_large ? r->map->geo.large_len : r->map->geo.payload_max;
    bool fits = frame.len <= most && frame.len <= buf_len;
    bool is_whole = true;

    if (fits && is_large)
        is_whole = get_large(r, lane, where, buf, frame.len);
    else if (fits)
        words_load(buf, s->data, frame.len);
    fence_acquire();
    if (atomic_load_explicit(&s->seq, memory_order_relaxed) != 2 * seq + 2 ||
        !is_whole || frame.len > most)
        return READ_LOST;
    *out = frame;
    return fits ? READ_OK : READ_TOO_SMALL;
}
