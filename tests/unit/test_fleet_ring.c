/* Rings, cursors, the contest's log byte for byte, and ids. */
#include "test_fleet.h"

static struct belay_fleet *private_fleet(void)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);

    return must_join("rings", &o);
}

static struct belay_ring_spec spec_of(uint8_t kind, enum belay_topology topology,
                                      int32_t capacity)
{
    return (struct belay_ring_spec){
        .size = sizeof(struct belay_ring_spec),
        .kind = kind,
        .topology = (uint8_t)topology,
        .capacity = capacity,
        .payload_max = 64,
        .schema = 77,
        .name = "test",
    };
}

static struct belay_ring *must_open(struct tap *t, struct belay_fleet *f,
                                    const struct belay_ring_spec *spec)
{
    struct belay_ring *ring = NULL;
    struct belay_error err;

    if (!TAP_EQ(t, belay_ring_open(f, spec, &ring, &err), BELAY_OK))
        printf("# %s\n", err.message);
    return ring;
}

/* A frame that says which it is, many times over. */
static void publish(struct tap *t, struct belay_ring *ring, uint64_t n, uint32_t len)
{
    static _Thread_local uint8_t data[1 << 16];
    struct belay_ring_frame frame = {
        .ver = n, .sig = ~n, .kind = (uint8_t)n, .len = len, .data = data
    };

    for (uint32_t i = 0; i < len; i++)
        data[i] = (uint8_t)(n + i);
    TAP_EQ(t, belay_ring_publish(ring, &frame, NULL, NULL), BELAY_OK);
}

static bool is_frame(const struct belay_ring_frame *frame, uint64_t n, uint32_t len)
{
    const uint8_t *data = frame->data;

    if (frame->ver != n || frame->sig != ~n || frame->kind != (uint8_t)n ||
        frame->len != len)
        return false;
    for (uint32_t i = 0; i < len; i++) {
        if (data[i] != (uint8_t)(n + i))
            return false;
    }
    return true;
}

static struct belay_ring_cursor *must_cursor(struct tap *t, struct belay_ring *ring,
                                             enum belay_ring_from from)
{
    struct belay_ring_cursor *c = NULL;

    TAP_EQ(t, belay_ring_cursor_open(ring, from, &c, NULL), BELAY_OK);
    return c;
}

static void frames_come_as_they_were_published(struct tap *t)
{
    static const uint32_t lens[] = { 0, 1, 3, 4, 5, 7, 8, 9, 15, 63, 64 };
    struct belay_fleet *f = private_fleet();
    struct belay_ring_spec spec = spec_of(9, BELAY_RING_LANES, 16);
    struct belay_ring *ring = must_open(t, f, &spec);
    struct belay_ring_cursor *c = must_cursor(t, ring, BELAY_RING_START);
    struct belay_ring_frame frames[16], one;
    struct belay_ring_poll poll;
    uint8_t buf[2048];

    for (uint64_t i = 0; i < 11; i++)
        publish(t, ring, i, lens[i]);
    TAP_EQ(t, belay_ring_head(ring, 0), 11);
    TAP_EQ(t, belay_ring_poll(c, frames, 16, buf, sizeof(buf), &poll, NULL), BELAY_OK);
    TAP_EQ(t, poll.n_frames, 11);
    TAP_EQ(t, poll.lost, 0);
    for (uint64_t i = 0; i < 11; i++) {
        TAP_OK(t, is_frame(&frames[i], i, lens[i]));
        TAP_EQ(t, frames[i].seq, i);
        TAP_OK(t, frames[i].id == belay_netid_make(9, 0, i));
    }
    TAP_EQ(t, belay_ring_poll(c, frames, 16, buf, sizeof(buf), &poll, NULL), BELAY_OK);
    TAP_EQ(t, poll.n_frames, 0);
    TAP_EQ(t, belay_ring_read(ring, 0, 4, buf, sizeof(buf), &one, NULL), BELAY_OK);
    TAP_OK(t, is_frame(&one, 4, lens[4]));
    TAP_EQ(t, belay_ring_read(ring, 0, 11, buf, sizeof(buf), &one, NULL),
           BELAY_NOT_FOUND);
    TAP_EQ(t, belay_ring_read(ring, 1, 0, buf, sizeof(buf), &one, NULL),
           BELAY_NOT_FOUND);
    TAP_EQ(t, belay_ring_read(ring, 99, 0, buf, sizeof(buf), &one, NULL),
           BELAY_INVALID);
    belay_ring_cursor_close(c);
    belay_fleet_leave(f);
}

static void a_slow_reader_is_told_how_many_it_lost(struct tap *t)
{
    struct belay_fleet *f = private_fleet();
    struct belay_ring_frame frames[64];
    struct belay_ring_poll poll;
    uint8_t buf[8192];

    for (int topology = BELAY_RING_LANES; topology <= BELAY_RING_ORDERED; topology++) {
        struct belay_ring_spec spec =
            spec_of((uint8_t)topology, (enum belay_topology)topology, 16);
        struct belay_ring *ring = must_open(t, f, &spec);
        struct belay_ring_cursor *c = must_cursor(t, ring, BELAY_RING_START);
        uint64_t n = 0, seen = 0, lost = 0;
        for (int round = 0; round < 50; round++) {
            for (int i = 0; i < round; i++)
                publish(t, ring, n++, 64);
            TAP_EQ(t, belay_ring_poll(c, frames, 64, buf, sizeof(buf), &poll, NULL),
                   BELAY_OK);
            seen += poll.n_frames;
            lost += poll.lost;
            TAP_EQ(t, seen + lost, n);
            TAP_EQ(t, poll.n_frames, round < 16 ? round : 16);
            for (uint64_t i = 0; i < poll.n_frames; i++)
                TAP_OK(t, is_frame(&frames[i], n - poll.n_frames + i, 64));
            TAP_EQ(t, poll.total_lost, lost);
        }
        struct belay_ring_cursor *late = must_cursor(t, ring, BELAY_RING_START);
        TAP_EQ(t, belay_ring_poll(late, frames, 64, buf, sizeof(buf), &poll, NULL),
               BELAY_OK);
        TAP_EQ(t, poll.lost, n - 16);
        struct belay_ring_cursor *fresh = must_cursor(t, ring, BELAY_RING_HEAD);
        TAP_EQ(t, belay_ring_poll(fresh, frames, 64, buf, sizeof(buf), &poll, NULL),
               BELAY_OK);
        TAP_EQ(t, poll.n_frames + poll.lost, 0);
        belay_ring_cursor_close(fresh);
        belay_ring_cursor_close(late);
        belay_ring_cursor_close(c);
    }
    belay_fleet_leave(f);
}

static void one_order_holds_for_all_members(struct tap *t)
{
    struct belay_fleet *f = private_fleet();
    struct belay_fleet *g = must_join_beside(f);
    struct belay_ring_spec spec = spec_of(5, BELAY_RING_ORDERED, 64);
    struct belay_ring *a = must_open(t, f, &spec), *b = must_open(t, g, &spec);
    struct belay_ring_cursor *c = must_cursor(t, b, BELAY_RING_START);
    struct belay_ring_frame frames[64];
    struct belay_ring_poll poll;
    uint8_t buf[8192];

    for (uint64_t i = 0; i < 40; i++)
        publish(t, i % 3 == 0 ? a : b, i, 8);
    TAP_EQ(t, belay_ring_head(a, -1), 40);
    TAP_EQ(t, belay_ring_poll(c, frames, 64, buf, sizeof(buf), &poll, NULL), BELAY_OK);
    TAP_EQ(t, poll.n_frames, 40);
    for (uint64_t i = 0; i < 40; i++) {
        TAP_OK(t, is_frame(&frames[i], i, 8));
        TAP_EQ(t, frames[i].position, i);
        TAP_EQ(t, frames[i].node, i % 3 == 0 ? 0 : 1);
    }
    belay_ring_cursor_close(c);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

static void a_poll_stops_where_there_is_no_room(struct tap *t)
{
    struct belay_fleet *f = private_fleet();
    struct belay_ring_spec spec = spec_of(5, BELAY_RING_LANES, 64);
    struct belay_ring *ring = must_open(t, f, &spec);
    struct belay_ring_cursor *c = must_cursor(t, ring, BELAY_RING_START);
    struct belay_ring_frame frames[64];
    struct belay_ring_poll poll;
    struct belay_error err;
    uint8_t buf[100];

    for (uint64_t i = 0; i < 10; i++)
        publish(t, ring, i, 40);
    TAP_EQ(t, belay_ring_poll(c, frames, 64, buf, 39, &poll, &err), BELAY_OUT_OF_RANGE);
    TAP_EQ(t, err.expected, 40);
    for (uint64_t i = 0; i < 10; i += 2) {
        TAP_EQ(t, belay_ring_poll(c, frames, 64, buf, 100, &poll, &err), BELAY_OK);
        TAP_EQ(t, poll.n_frames, 2);
        TAP_OK(t, is_frame(&frames[0], i, 40) && is_frame(&frames[1], i + 1, 40));
        TAP_OK(t, poll.is_more == (i < 8));
    }
    belay_ring_cursor_close(c);
    belay_fleet_leave(f);
}

static void large_payloads_go_through_their_area(struct tap *t)
{
    struct belay_fleet *f = private_fleet();
    struct belay_ring_spec spec = spec_of(5, BELAY_RING_LANES, 64);
    struct belay_ring_frame frames[64], big = { .len = 8193 };
    struct belay_ring_poll poll;
    struct belay_error err;
    static uint8_t buf[1 << 16];

    spec.large_len = 8192;
    struct belay_ring *ring = must_open(t, f, &spec);
    struct belay_ring_cursor *c = must_cursor(t, ring, BELAY_RING_START);
    big.data = buf;
    TAP_EQ(t, belay_ring_publish(ring, &big, NULL, &err), BELAY_INVALID);
    TAP_STR(t, err.reason, "too_large");
    TAP_EQ(t, err.expected, 8192);
    for (uint64_t i = 0; i < 100; i++) {
        uint32_t len = (uint32_t)(65 + i * 80);
        publish(t, ring, i, len);
        TAP_EQ(t, belay_ring_poll(c, frames, 64, buf, sizeof(buf), &poll, NULL),
               BELAY_OK);
        TAP_EQ(t, poll.n_frames, 1);
        TAP_OK(t, is_frame(&frames[0], i, len));
        TAP_OK(t, (frames[0].flags & BELAY_RING_FRAME_LARGE) != 0);
    }
    /* Overwritten in the area though not in the lane: lost, and told. */
    publish(t, ring, 1, 5000);
    publish(t, ring, 2, 5000);
    TAP_EQ(t, belay_ring_poll(c, frames, 64, buf, sizeof(buf), &poll, NULL), BELAY_OK);
    TAP_EQ(t, poll.n_frames, 1);
    TAP_EQ(t, poll.lost, 1);
    TAP_OK(t, is_frame(&frames[0], 2, 5000));
    belay_ring_cursor_close(c);
    belay_fleet_leave(f);
}

static void a_kind_has_one_spec(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("kinds", &o), *g = must_join("kinds", &o);
    struct belay_ring_spec spec = spec_of(5, BELAY_RING_LANES, 64), other, got;
    struct belay_ring *ring;
    struct belay_error err;

    TAP_EQ(t, belay_ring_attach(g, 5, &ring, &err), BELAY_NOT_FOUND);
    (void)must_open(t, f, &spec);
    TAP_EQ(t, belay_ring_open(g, &spec, &ring, &err), BELAY_OK);
    for (int i = 0; i < 7; i++) {
        struct belay_fleet *h = must_join("kinds", &o);
        other = spec;
        other.schema += i == 0;
        other.name = i == 1 ? "another" : spec.name;
        other.capacity = i == 2 ? 32 : spec.capacity;
        other.payload_max = i == 3 ? 65 : spec.payload_max;
        other.topology = i == 4 ? BELAY_RING_ORDERED : BELAY_RING_LANES;
        other.large_len = i == 5 ? 4096 : 0;
        other.notify = i == 6;
        TAP_EQ(t, belay_ring_open(h, &other, &ring, &err), BELAY_INVALID);
        TAP_STR(t, err.reason, "schema");
        belay_fleet_leave(h);
    }
    TAP_EQ(t, belay_ring_attach(g, 5, &ring, &err), BELAY_OK);
    belay_ring_spec_get(ring, &got);
    TAP_EQ(t, got.capacity, 64);
    TAP_STR(t, got.name, "test");
    other = spec;
    other.capacity = 63;
    TAP_EQ(t, belay_ring_open(g, &other, &ring, &err), BELAY_INVALID);
    TAP_STR(t, err.reason, "geometry");
    other = spec_of(222, BELAY_RING_LANES, 64);
    TAP_EQ(t, belay_ring_open(g, &other, &ring, &err), BELAY_INVALID);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("kinds", &o, &err), BELAY_OK);
}

static void a_reset_is_told_and_is_no_loss(struct tap *t)
{
    struct belay_fleet *f = private_fleet();
    struct belay_ring_frame frames[64];
    struct belay_ring_poll poll;
    uint8_t buf[8192];

    for (int topology = BELAY_RING_LANES; topology <= BELAY_RING_ORDERED; topology++) {
        struct belay_ring_spec spec =
            spec_of((uint8_t)topology, (enum belay_topology)topology, 16);
        struct belay_ring *ring = must_open(t, f, &spec);
        struct belay_ring_cursor *c = must_cursor(t, ring, BELAY_RING_START);
        publish(t, ring, 1, 8);
        TAP_EQ(t, belay_fleet_reset(f, NULL), BELAY_OK);
        publish(t, ring, 2, 8);
        TAP_EQ(t, belay_ring_poll(c, frames, 64, buf, sizeof(buf), &poll, NULL),
               BELAY_OK);
        TAP_OK(t, poll.is_reset && poll.n_frames == 1 && poll.lost == 0);
        TAP_OK(t, is_frame(&frames[0], 2, 8));
        TAP_EQ(t, frames[0].seq, 1);
        belay_ring_cursor_close(c);
    }
    belay_fleet_leave(f);
}

static void the_log_has_the_frames_others_know(struct tap *t)
{
    struct belay_fleet_options o =
        small_fleet(BELAY_FLEET_PRIVATE | BELAY_FLEET_VIRTUAL_CLOCK);
    struct belay_fleet *f = must_join("log", &o);
    struct belay_ring *log;
    struct belay_ring_frame frames[8];
    struct belay_ring_poll poll;
    struct belay_contest_frame decoded;
    uint8_t buf[2048], want[64];
    uint64_t released;

    TAP_EQ(t, belay_contest_log(f, &log, NULL), BELAY_OK);
    struct belay_ring_cursor *c = must_cursor(t, log, BELAY_RING_START);
    struct belay_contest_claim a = try_at(t, f, 7, "sub", "owner", 0x1000, 0x10203);
    (void)try_at(t, f, 7, "sub", "loser", 0x1000, 0x10203); /* writes nothing */
    TAP_EQ(t, belay_contest_release(&a.guard, &released, NULL), BELAY_OK);
    TAP_EQ(t, belay_ring_poll(c, frames, 8, buf, sizeof(buf), &poll, NULL), BELAY_OK);
    TAP_EQ(t, poll.n_frames, 2);

    static const uint8_t claim[] = { 7, 3,   0,   5,   0,    0x03, 0x02, 1,   0,  0,
                                     0, 0,   0,   3,   0x12, 1,    0,    0,   0,  0,
                                     0, 's', 'u', 'b', 'o',  'w',  'n',  'e', 'r' };
    TAP_EQ(t, frames[0].kind, 1);
    TAP_EQ(t, frames[0].ver, 0x10203);
    TAP_EQ(t, frames[0].len, sizeof(claim));
    TAP_OK(t, memcmp(frames[0].data, claim, sizeof(claim)) == 0);
    TAP_OK(t, frames[0].id == a.guard.claim_id);
    TAP_OK(t, belay_netid_kind(frames[0].id) == 222 &&
                  belay_netid_node(frames[0].id) == 0);
    TAP_OK(t, belay_netid_counter(frames[0].id) ==
                  (a.guard.token & BELAY_NETID_COUNTER_MAX));

    for (int i = 0; i < 8; i++)
        want[i] = (uint8_t)(a.guard.claim_id >> (8 * i));
    memcpy(want + 8, "\7\3\0sub", 6);
    TAP_EQ(t, frames[1].kind, 2);
    TAP_EQ(t, frames[1].len, 14);
    TAP_OK(t, memcmp(frames[1].data, want, 14) == 0);
    TAP_OK(t, frames[1].id == released);
    TAP_OK(t, belay_contest_decode(1, frames[0].data, frames[0].len, &decoded));
    TAP_EQ(t, decoded.claimed_at_ms, 0x10203);
    TAP_EQ(t, decoded.expires_at_ms, 0x11203);
    TAP_OK(t, decoded.owner_len == 5 && memcmp(decoded.owner, "owner", 5) == 0);
    TAP_OK(t, !belay_contest_decode(1, frames[0].data, frames[0].len - 1, &decoded));
    TAP_OK(t, !belay_contest_decode(2, frames[1].data, 13, &decoded));
    TAP_OK(t, !belay_contest_decode(9, frames[1].data, 14, &decoded));
    TAP_OK(t, belay_contest_decode(2, frames[1].data, 14, &decoded));
    TAP_OK(t, decoded.claim_id == a.guard.claim_id && decoded.subject_len == 3);
    belay_ring_cursor_close(c);
    belay_fleet_leave(f);
}

static void the_log_tells_why_a_tenure_was_revoked(struct tap *t)
{
    struct belay_fleet_options o =
        small_fleet(BELAY_FLEET_PRIVATE | BELAY_FLEET_VIRTUAL_CLOCK);
    struct belay_fleet *f = must_join("log", &o);
    static const uint8_t kinds[] = { 1, 4, 1, 4, 1 };
    struct belay_ring *log;
    struct belay_ring_frame frames[8];
    struct belay_ring_poll poll;
    struct belay_contest_frame decoded;
    uint8_t buf[4096];
    static char label[300];

    TAP_EQ(t, belay_contest_log(f, &log, NULL), BELAY_OK);
    struct belay_ring_cursor *c = must_cursor(t, log, BELAY_RING_START);
    struct belay_contest_claim a = try_at(t, f, 7, "sub", "a", 10, 100);
    struct belay_contest_claim b = try_at(t, f, 7, "sub", "b", 10, 110);
    struct belay_contest_claim y = try_at(t, f, 7, "sub", "c", 10, 111);
    TAP_EQ(t, belay_contest_force_release(f, &y.holder, NULL), BELAY_OK);
    TAP_OK(t, try_at(t, f, 7, "sub", "c", 10, 111).is_claimed);
    TAP_EQ(t, belay_ring_poll(c, frames, 8, buf, sizeof(buf), &poll, NULL), BELAY_OK);
    TAP_EQ(t, poll.n_frames, 5);
    for (size_t i = 0; i < 5; i++)
        TAP_EQ(t, frames[i].kind, kinds[i]);
    TAP_OK(t, belay_contest_decode(4, frames[1].data, frames[1].len, &decoded));
    TAP_OK(t, decoded.claim_id == a.guard.claim_id);
    TAP_EQ(t, decoded.reason, BELAY_CONTEST_EXPIRED);
    TAP_OK(t, belay_contest_decode(4, frames[3].data, frames[3].len, &decoded));
    TAP_OK(t, decoded.claim_id == b.guard.claim_id);
    TAP_EQ(t, decoded.reason, BELAY_CONTEST_FORCED);

    /* Labels that do not fit are told by their hashes, in both frames. */
    memset(label, 'x', sizeof(label) - 1);
    struct belay_contest_claim l = try_at(t, f, 7, label, "o", 10, 120);
    TAP_EQ(t, belay_contest_release(&l.guard, NULL, NULL), BELAY_OK);
    TAP_EQ(t, belay_ring_poll(c, frames, 8, buf, sizeof(buf), &poll, NULL), BELAY_OK);
    TAP_EQ(t, poll.n_frames, 2);
    char digits[17];
    (void)snprintf(digits, sizeof(digits), "%016llx",
                   (unsigned long long)belay_contest_hash(f, label, sizeof(label) - 1));
    for (size_t i = 0; i < 2; i++) {
        TAP_OK(t, (frames[i].flags & BELAY_RING_FRAME_HASHED) != 0);
        TAP_OK(t, belay_contest_decode(frames[i].kind, frames[i].data, frames[i].len,
                                       &decoded));
        TAP_OK(t,
               decoded.subject_len == 16 && memcmp(decoded.subject, digits, 16) == 0);
    }
    belay_ring_cursor_close(c);
    belay_fleet_leave(f);
}

/* Two publish in turns; both listeners must see the turns. */
static void events_in_one_order(struct tap *t)
{
    struct belay_fleet_options o =
        small_fleet(BELAY_FLEET_PRIVATE | BELAY_FLEET_ORDERED_EVENTS);
    struct belay_fleet *f = must_join("rings", &o), *g = must_join_beside(f);
    struct belay_ring_cursor *listeners[2];
    struct belay_fleet_event events[40];
    struct belay_ring_poll poll;

    TAP_EQ(t, belay_fleet_event_open(f, BELAY_RING_START, &listeners[0], NULL),
           BELAY_OK);
    TAP_EQ(t, belay_fleet_event_open(g, BELAY_RING_START, &listeners[1], NULL),
           BELAY_OK);
    for (int i = 0; i < 40; i++)
        TAP_EQ(t,
               belay_fleet_event_publish(i % 3 == 0 ? g : f, i % 2 ? "odd" : "even", &i,
                                         sizeof(i), NULL, NULL),
               BELAY_OK);
    for (int k = 0; k < 2; k++) {
        TAP_EQ(t,
               belay_fleet_event_poll(listeners[k], k ? "odd" : NULL, events, 40, &poll,
                                      NULL),
               BELAY_OK);
        TAP_EQ(t, poll.n_frames, k ? 20 : 40);
        for (int i = 0; i < (int)poll.n_frames; i++) {
            int n = -1;
            memcpy(&n, events[i].data, sizeof(n));
            TAP_EQ(t, n, k ? 2 * i + 1 : i);
        }
        belay_ring_cursor_close(listeners[k]);
    }
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

static void events_are_heard_by_topic(struct tap *t)
{
    struct belay_fleet *f = private_fleet(), *g = must_join_beside(f);
    struct belay_ring_cursor *all, *some;
    struct belay_fleet_event events[20];
    struct belay_ring_poll poll;
    struct belay_error err;
    char data[BELAY_FLEET_EVENT_MAX + 1] = "";

    TAP_EQ(t, belay_fleet_event_open(g, BELAY_RING_START, &all, NULL), BELAY_OK);
    TAP_EQ(t, belay_fleet_event_open(g, BELAY_RING_HEAD, &some, NULL), BELAY_OK);
    for (int i = 0; i < 30; i++)
        TAP_EQ(t,
               belay_fleet_event_publish(f, i % 3 == 0 ? "third" : "other", &i,
                                         sizeof(i), NULL, NULL),
               BELAY_OK);
    TAP_EQ(t, belay_ring_wait(some, 1000, NULL, NULL), BELAY_OK);
    TAP_EQ(t, belay_fleet_event_poll(some, "third", events, 20, &poll, NULL), BELAY_OK);
    TAP_EQ(t, poll.n_frames, 10);
    for (int i = 0; i < 10; i++) {
        int n = -1;
        memcpy(&n, events[i].data, sizeof(n));
        TAP_EQ(t, n, 3 * i);
        TAP_STR(t, events[i].topic, "third");
        TAP_OK(t, events[i].node == 0 && events[i].len == sizeof(n));
        TAP_OK(t, belay_netid_kind(events[i].id) == 220 && events[i].timestamp_ms > 0);
    }
    TAP_EQ(t, belay_fleet_event_poll(all, NULL, events, 20, &poll, NULL), BELAY_OK);
    TAP_EQ(t, poll.n_frames, 20);
    TAP_EQ(t, belay_fleet_event_poll(all, NULL, events, 20, &poll, NULL), BELAY_OK);
    TAP_EQ(t, poll.n_frames, 10);
    for (int i = 0; i < 300; i++)
        TAP_EQ(t, belay_fleet_event_publish(f, "x", NULL, 0, NULL, NULL), BELAY_OK);
    TAP_EQ(t, belay_fleet_event_poll(all, "none", events, 20, &poll, NULL), BELAY_OK);
    TAP_OK(t, poll.n_frames == 0 && poll.lost == 300 - 256);
    TAP_EQ(t, belay_fleet_event_publish(f, "t", data, 243, NULL, &err), BELAY_OK);
    TAP_EQ(t, belay_fleet_event_publish(f, "t", data, 244, NULL, &err), BELAY_INVALID);
    TAP_STR(t, err.reason, "too_large");
    TAP_EQ(t, belay_fleet_event_poll(all, "t", events, 20, &poll, NULL), BELAY_OK);
    TAP_OK(t, poll.n_frames == 1 && events[0].len == 243);
    belay_ring_cursor_close(some);
    belay_ring_cursor_close(all);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

static void ids_print_and_parse(struct tap *t)
{
    static const struct {
        const char *text;
        bool is_one;
        uint64_t id;
    } rows[] = {
        { "0:0:0", true, 0 },
        { "255:65535:1099511627775", true, UINT64_MAX },
        { "1:2:3", true, 0x0100020000000003 },
        { "1:2:1099511627776", true, 0x0100020000000000 }, /* cut to 40 bits */
        { "1:2:18446744073709551615", true, 0x010002ffffffffff },
        { "0xff", true, 0xff },
        { "0xFFFFFFFFFFFFFFFF", true, UINT64_MAX },
        { "0XFF", false, 0 },
        { "0x", false, 0 },
        { "0x1FFFFFFFFFFFFFFFF", false, 0 },
        { "256:0:0", false, 0 },
        { "0:65536:0", false, 0 },
        { "0:0:18446744073709551616", false, 0 },
        { "1:2", false, 0 },
        { "1:2:3:4", false, 0 },
        { "1::3", false, 0 },
        { "", false, 0 },
        { " 1:2:3", false, 0 },
        { "1:2:3 ", false, 0 },
        { "-1:2:3", false, 0 },
        { "1:2:a", false, 0 },
    };
    char text[BELAY_NETID_DEBUG_MAX];
    uint8_t bytes[8];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t id = 99;
        if (belay_netid_parse(rows[i].text, &id) != rows[i].is_one ||
            id != (rows[i].is_one ? rows[i].id : 99))
            TAP_STR(t, rows[i].text, "parsed as it should be");
    }
    belay_netid_print(UINT64_MAX, text);
    TAP_STR(t, text, "255:65535:1099511627775");
    belay_netid_debug(belay_netid_make(1, 2, 0xabc), text);
    TAP_STR(t, text, "1:2:2748 0x0100020000000ABC");
    belay_netid_debug(UINT64_MAX, text);
    TAP_STR(t, text, "255:65535:1099511627775 0xFFFFFFFFFFFFFFFF");
    belay_netid_bytes(0x0102030405060708, bytes);
    TAP_OK(t, memcmp(bytes, "\1\2\3\4\5\6\7\10", 8) == 0);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "frames come as they were published", frames_come_as_they_were_published },
        { "a slow or late reader is told how many it lost",
          a_slow_reader_is_told_how_many_it_lost },
        { "one order holds for all members", one_order_holds_for_all_members },
        { "a poll stops where there is no room", a_poll_stops_where_there_is_no_room },
        { "large payloads go through their area",
          large_payloads_go_through_their_area },
        { "a kind has one spec", a_kind_has_one_spec },
        { "a reset is told, and is no loss", a_reset_is_told_and_is_no_loss },
        { "the log has the frames that others know",
          the_log_has_the_frames_others_know },
        { "the log tells why a tenure was revoked",
          the_log_tells_why_a_tenure_was_revoked },
        { "events are heard by topic", events_are_heard_by_topic },
        { "events are in one order where that is wanted", events_in_one_order },
        { "ids print and parse", ids_print_and_parse },
    };

    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
