/* What was wrong with rings (D5, D6, D14 to D16, D21, D22), each shown first by the model or
 * by the few lines that do what was done, then not so of the fleet. */
#include <stdlib.h>
#include <unistd.h>

#include "fleet/impl.h"
#include "fleet/step.h"
#include "fleetlib.h"
#include "seedmodel.h"
#include "tap.h"

#define WORDS 8

struct scene {
    struct room room;
    unsigned n;
};

static struct belay_fleet *join_new(struct scene *s)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "ring-%u", s->n++);
    return room_join(&s->room, name, 0);
}

static struct belay_ring *open_ring(struct belay_fleet *f, uint8_t topology)
{
    struct belay_ring_spec spec = { .size = sizeof(spec),
                                    .kind = 10,
                                    .topology = topology,
                                    .capacity = 16,
                                    .payload_max = WORDS * 8,
                                    .schema = 1,
                                    .name = "frames" };
    struct belay_ring *ring = NULL;
    struct belay_error err;

    if (belay_ring_open(f, &spec, &ring, &err) != BELAY_OK)
        printf("# open: %s\n", err.message);
    return ring;
}

static bool publish(struct belay_ring *ring, uint64_t value)
{
    uint64_t data[WORDS];
    struct belay_ring_frame frame = { .kind = 1, .len = sizeof(data), .data = data };
    struct belay_error err;

    for (size_t i = 0; i < WORDS; i++)
        data[i] = value;
    return belay_ring_publish(ring, &frame, NULL, &err) == BELAY_OK;
}

static bool is_whole(const struct belay_ring_frame *frame, uint64_t value)
{
    const uint64_t *data = frame->data;
    bool whole = frame->len == WORDS * 8;

    for (size_t i = 0; whole && i < WORDS; i++)
        whole = data[i] == value;
    return whole;
}

static struct seed_frame seed_frame_of(uint8_t byte)
{
    struct seed_frame f = { .kind = 9, .len = 64 };

    memset(f.payload, byte, sizeof(f.payload));
    return f;
}

/* What another member does while a writer stands in each of its steps. */
struct meanwhile {
    unsigned at, n;
    struct tap *t;
    struct belay_ring *other;
    struct belay_ring_cursor *cursor;
    uint64_t value;
    unsigned seen;
};

static void read_all(struct meanwhile *m)
{
    struct belay_ring_frame frames[64];
    static _Alignas(8) uint8_t buf[64 * WORDS * 8];
    struct belay_ring_poll poll;
    struct belay_error err;

    if (!TAP_EQ(m->t,
                belay_ring_poll(m->cursor, frames, 64, buf, sizeof(buf), &poll, &err),
                BELAY_OK))
        return;
    for (size_t i = 0; i < poll.n_frames; i++) {
        const uint64_t *data = frames[i].data;
        TAP_OK(m->t, is_whole(&frames[i], data[0])); /* C3 */
        m->seen += data[0] == 77;
    }
}

static void on_step(void *arg, enum fleet_step step)
{
    struct meanwhile *m = arg;

    (void)step;
    if (m->n++ != m->at)
        return;
    for (int i = 0; i < 40; i++) { /* more than twice round */
        TAP_OK(m->t, publish(m->other, ++m->value + 1000));
        read_all(m);
    }
}

static void test_d5(struct tap *t)
{
    struct seed_frame slow = seed_frame_of('s'), fast = seed_frame_of('f');
    struct seed_ring r;

    TAP_OK(t, seed_open(&r, 4));
    uint64_t counter = seed_reserve(&r); /* the slow one is preempted */
    for (int i = 0; i < 4; i++)
        (void)seed_publish(&r, &fast); /* and a fast one goes round */
    const struct seed_slot *slot = seed_read_slot(&r, 4);
    TAP_OK(t, slot && slot->payload[0] == 'f');
    seed_fill(&r, counter, &slow);
    slot = seed_read_slot(&r, 4); /* still marked as the fast one's frame */
    TAP_OK(t, slot && slot->seq == 2 * 4 + 2 && slot->payload[0] == 's');
    seed_close(&r);

    bool passed = false;
    for (unsigned at = 0; at < 100 && !passed; at++) {
        struct belay_fleet *f = join_new(t->arg), *g = NULL;
        struct belay_error err;
        if (!TAP_OK(t, f && belay_fleet_join_beside(f, NULL, &g, &err) == BELAY_OK))
            return;
        struct belay_ring *ring = open_ring(f, BELAY_RING_ORDERED);
        struct meanwhile m = { .at = at,
                               .t = t,
                               .other = open_ring(g, BELAY_RING_ORDERED) };
        TAP_EQ(t, belay_ring_cursor_open(ring, BELAY_RING_START, &m.cursor, &err), 0);
        fleet_set_step(f, on_step, &m);
        TAP_OK(t, publish(ring, 77));
        fleet_set_step(f, NULL, NULL);
        passed = m.n <= at;
        read_all(&m);
        TAP_EQ(t, m.seen, 1); /* whole, once, and not overwritten by the other's */
        belay_ring_cursor_close(m.cursor);
        belay_fleet_leave(g);
        belay_fleet_leave(f);
    }
    TAP_OK(t, passed);
}

/* A slot that is written again: the frame that was there. */
struct rewritten {
    struct tap *t;
    struct belay_ring *ring;
    uint64_t old;
    unsigned gone;
};

static void old_or_none(void *arg, enum fleet_step step)
{
    struct rewritten *w = arg;
    struct belay_ring_frame frame;
    struct belay_error err;
    uint64_t buf[WORDS];
    belay_rc rc = belay_ring_read(w->ring, 0, w->old, buf, sizeof(buf), &frame, &err);

    w->gone += rc == BELAY_NOT_FOUND;
    TAP_OK(w->t, rc == BELAY_NOT_FOUND || (rc == BELAY_OK && is_whole(&frame, w->old)));
    if (step == STEP_LANE_WRITTEN)
        TAP_EQ(w->t, rc, BELAY_NOT_FOUND);
}

/* The odd mark was a release store, which lets later stores go first: the same stores in
 * such an order, as a processor may show them to a reader. */
static void test_d6(struct tap *t)
{
    struct seed_frame first = seed_frame_of('1'), second = seed_frame_of('2');
    struct seed_ring r;

    TAP_OK(t, seed_open(&r, 1));
    (void)seed_publish(&r, &first);
    memcpy(r.slots[0].payload, second.payload,
           32); /* half, and the mark still to come */
    const struct seed_slot *slot = seed_read_slot(&r, 0);
    TAP_OK(t, slot && slot->payload[0] == '2' && slot->payload[63] == '1');
    seed_close(&r);

    /* In the fleet the mark is there before any byte of the frame: what is read in each
     * step of a writer that goes over a slot is the old frame whole, or none. */
    struct belay_fleet *f = join_new(t->arg);
    if (!TAP_OK(t, f != NULL))
        return;
    struct rewritten w = { .t = t, .ring = open_ring(f, BELAY_RING_LANES) };
    for (uint64_t i = 0; i < 16; i++)
        TAP_OK(t, publish(w.ring, i));
    fleet_set_step(f, old_or_none, &w);
    for (; w.old < 100; w.old++)
        TAP_OK(t, publish(w.ring, w.old + 16));
    fleet_set_step(f, NULL, NULL);
    TAP_OK(t, w.gone >= 300);
    belay_fleet_leave(f);
}

static void test_d14(struct tap *t)
{
    static char label[70000];
    struct seed_holder h;
    struct seed_ring r;

    memset(label, 'x', 236);
    TAP_OK(t, seed_open(&r, 4));
    TAP_EQ(t, seed_claim(&r, (struct seed_subject){ 1, label }, "", 1, 1, &h),
           SEED_TOO_LARGE);
    seed_close(&r);

    struct belay_fleet *f = join_new(t->arg);
    struct belay_contest_claim claim, other;
    struct belay_error err;
    if (!TAP_OK(t, f != NULL))
        return;
    memset(label, 'x', 10000);
    TAP_OK(t, try_claim(f, label, label, HOUR_MS, &claim));
    TAP_OK(t, !try_claim(f, label, "other", HOUR_MS, &other));
    label[9999] = 'y'; /* another subject, by its last byte */
    TAP_OK(t, try_claim(f, label, "other", HOUR_MS, &other));
    memset(label, 'x', 65536);
    struct belay_contest_subject subject = subject_of(1, label);
    struct belay_contest_terms terms = terms_of("o", HOUR_MS);
    TAP_EQ(t, belay_contest_try(f, &subject, &terms, &claim, &err), BELAY_INVALID);
    belay_fleet_leave(f);
}

static void test_d15(struct tap *t)
{
    static const struct seed_subject subject = { 1, "s" };
    struct seed_frame foreign = { .kind = SEED_CLAIM, .len = 23 };
    struct seed_holder h;
    struct seed_ring r;

    /* Another type's frame of the same number, 23 bytes that mean something else. */
    TAP_OK(t, seed_open(&r, 4));
    memset(foreign.payload, 0x7f, sizeof(foreign.payload));
    memcpy(foreign.payload, "\x01\x01\x00\x01\x00", 5);
    foreign.payload[21] = 's';
    (void)seed_publish(&r, &foreign);
    TAP_EQ(t, seed_claim(&r, subject, "a", 1000, 1000, &h), SEED_YIELD);
    seed_close(&r);

    struct belay_fleet *f = join_new(t->arg), *g = NULL;
    struct belay_error err;
    if (!TAP_OK(t, f && belay_fleet_join_beside(f, NULL, &g, &err) == BELAY_OK))
        return;
    TAP_OK(t, open_ring(f, BELAY_RING_LANES) != NULL);
    struct belay_ring_spec spec = { .size = sizeof(spec),
                                    .kind = 10,
                                    .capacity = 16,
                                    .payload_max = WORDS * 8,
                                    .schema = 2,
                                    .name = "frames" };
    struct belay_ring *ring = NULL;
    TAP_EQ(t, belay_ring_open(g, &spec, &ring, &err), BELAY_INVALID);
    spec.schema = 1;
    spec.name = "other frames";
    TAP_EQ(t, belay_ring_open(g, &spec, &ring, &err), BELAY_INVALID);
    spec.name = "frames";
    TAP_EQ(t, belay_ring_open(g, &spec, &ring, &err), BELAY_OK);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

static void test_d16(struct tap *t)
{
    struct belay_fleet *f = join_new(t->arg), *g = NULL;
    struct belay_error err;
    int ends[2];

    /* A handle that is copied by fork writes with the same node id, unnoticed. */
    TAP_OK(t, pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        uint64_t id = seed_id(0, 1);
        _exit(write(ends[1], &id, sizeof(id)) == sizeof(id) ? 0 : 1);
    }
    uint64_t id = 0;
    TAP_EQ(t, reap(child, 0), 0);
    TAP_OK(t, read(ends[0], &id, sizeof(id)) == sizeof(id) && id == seed_id(0, 1));
    (void)close(ends[0]);
    (void)close(ends[1]);

    if (!TAP_OK(t, f && belay_fleet_join_beside(f, NULL, &g, &err) == BELAY_OK))
        return;
    TAP_OK(t, f->node != g->node);
    struct belay_ring *ring = open_ring(f, BELAY_RING_LANES);
    child = fork();
    if (child == 0) {
        struct belay_contest_subject subject = subject_of(1, "subject");
        struct belay_contest_terms terms = terms_of("child", HOUR_MS);
        struct belay_contest_claim claim;
        bool refused =
            belay_contest_try(f, &subject, &terms, &claim, &err) == BELAY_MISUSE &&
            !publish(ring, 1);
        _exit(refused ? 0 : 1);
    }
    TAP_EQ(t, reap(child, 0), 0);
    TAP_EQ(t, belay_ring_head(ring, (int32_t)f->node), 0);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

struct newest {
    struct tap *t;
    struct belay_ring *ring;
    uint64_t was; /* number of the newest frame before */
    unsigned n;
};

static void newest_is_readable(void *arg, enum fleet_step step)
{
    struct newest *n = arg;
    uint64_t head = belay_ring_head(n->ring, 0), buf[WORDS];
    struct belay_ring_frame frame;
    struct belay_error err;

    (void)step;
    n->n++;
    TAP_OK(n->t, head == n->was + 1 || head == n->was + 2);
    TAP_EQ(n->t, belay_ring_read(n->ring, 0, head - 1, buf, sizeof(buf), &frame, &err),
           BELAY_OK);
    TAP_OK(n->t, is_whole(&frame, head - 1));
}

static void test_d21(struct tap *t)
{
    struct seed_frame f = seed_frame_of('x');
    struct seed_ring r;

    TAP_OK(t, seed_open(&r, 4));
    (void)seed_publish(&r, &f);
    TAP_OK(t, seed_read_head(&r) != NULL);
    (void)seed_reserve(&r);
    TAP_OK(t, seed_read_head(&r) == NULL); /* though there is a frame */
    seed_close(&r);

    struct belay_fleet *b = join_new(t->arg);
    if (!TAP_OK(t, b != NULL))
        return;
    struct newest n = { .t = t, .ring = open_ring(b, BELAY_RING_LANES) };
    for (uint64_t i = 0; i < 20; i++)
        TAP_OK(t, publish(n.ring, i));
    n.was = 19;
    fleet_set_step(b, newest_is_readable, &n);
    TAP_OK(t, publish(n.ring, 20));
    fleet_set_step(b, NULL, NULL);
    TAP_OK(t, n.n >= 3);
    belay_fleet_leave(b);
}

static void test_d22(struct tap *t)
{
    struct seed_frame beat = { .kind = 1, .node = 1 };
    struct seed_ring r;
    bool quiet = false;

    TAP_OK(t, seed_open(&r, 8));
    (void)seed_publish(&r, &beat);
    beat.node = 2;
    for (int i = 0; i < 8; i++)
        (void)seed_publish(&r, &beat);
    struct seed_walk w = seed_walk_from(&r, 0);
    for (const struct seed_slot *slot; (slot = seed_walk_next(&r, &w)) != NULL;)
        quiet |= (slot->id >> SEED_COUNTER_BITS & 0xffff) == 1;
    TAP_OK(t, !quiet); /* as if it had never been there */
    seed_close(&r);

    struct belay_fleet *f = join_new(t->arg), *g = NULL;
    struct belay_fleet_member members[4];
    struct belay_error err;
    size_t n = 0;
    if (!TAP_OK(t, f && belay_fleet_join_beside(f, NULL, &g, &err) == BELAY_OK))
        return;
    TAP_EQ(t, belay_fleet_beat(f, &err), BELAY_OK);
    for (int i = 0; i < 10000; i++)
        TAP_EQ(t, belay_fleet_beat(g, &err), BELAY_OK);
    TAP_EQ(t, belay_fleet_members(g, members, 4, &n, &err), BELAY_OK);
    TAP_EQ(t, n, 2);
    for (size_t i = 0; i < n; i++)
        TAP_OK(t,
               members[i].heartbeat_age_ms >= 0 && members[i].life == BELAY_LIFE_ALIVE);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

static const struct tap_case cases[] = {
    { "D5: a writer that was overtaken spoils nobody's frame", test_d5 },
    { "D6: a slot that is being written again is not read", test_d6 },
    { "D14: labels may be long", test_d14 },
    { "D15: a ring has one meaning", test_d15 },
    { "D16: nodes are given, and a forked copy of a handle is none", test_d16 },
    { "D21: the newest frame is readable while the next one is written", test_d21 },
    { "D22: a quiet member's beat is not driven out by others", test_d22 },
};

int main(int argc, char **argv)
{
    struct scene s = { .n = 0 };

    if (!room_init(&s.room))
        return 1;
    int code = tap_main(cases, sizeof(cases) / sizeof(cases[0]), &s, argc, argv);
    room_release(&s.room);
    return code;
}
