/* Batches, which are there whole or not at all, and rings whose writers wait for consumers. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "fleet/step.h"
#include "test_fleet.h"

#define KIND 9
#define CAPACITY 16

static struct belay_ring *must_open(struct belay_fleet *f, uint8_t topology,
                                    uint8_t reliable)
{
    struct belay_ring_spec spec = { .size = sizeof(spec),
                                    .kind = KIND,
                                    .topology = topology,
                                    .reliable = reliable,
                                    .capacity = CAPACITY,
                                    .payload_max = 8,
                                    .large_len = 4096,
                                    .name = "numbers" };
    struct belay_ring *ring = NULL;
    struct belay_error err;

    if (belay_ring_open(f, &spec, &ring, &err) != BELAY_OK) {
        printf("Bail out! open: %s\n", err.message);
        exit(1);
    }
    return ring;
}

static struct belay_ring_cursor *must_cursor(struct belay_ring *ring)
{
    struct belay_ring_cursor *c = NULL;

    if (belay_ring_cursor_open(ring, BELAY_RING_START, &c, NULL) != BELAY_OK)
        exit(1);
    return c;
}

static belay_rc publish(struct belay_ring *ring, uint64_t n, struct belay_error *err)
{
    struct belay_ring_frame frame = { .len = 8, .data = &n };

    return belay_ring_publish(ring, &frame, NULL, err);
}

/* n frames with numbers from `first` on, each third one large. */
static belay_rc publish_batch(struct belay_ring *ring, uint64_t first, size_t n,
                              uint64_t *out_id, struct belay_error *err)
{
    static _Thread_local uint64_t data[BELAY_RING_BATCH_MAX][4];
    struct belay_ring_frame frames[BELAY_RING_BATCH_MAX];

    for (size_t i = 0; i < n && i < BELAY_RING_BATCH_MAX; i++) {
        for (int w = 0; w < 4; w++)
            data[i][w] = first + i;
        frames[i] =
            (struct belay_ring_frame){ .len = i % 3 == 2 ? 32 : 8, .data = data[i] };
    }
    return belay_ring_publish_batch(ring, frames, n, out_id, err);
}

/* Polls all there is, up to 512; the numbers, and how many. */
static size_t drain(struct tap *t, struct belay_ring_cursor *c, uint64_t *out,
                    uint64_t *lost)
{
    struct belay_ring_frame frames[64];
    static _Thread_local uint64_t buf[64 * 4];
    struct belay_ring_poll poll = { 0 };
    size_t n = 0;

    do {
        TAP_EQ(t, belay_ring_poll(c, frames, 64, buf, sizeof(buf), &poll, NULL),
               BELAY_OK);
        if (lost)
            *lost += poll.lost;
        for (size_t i = 0; i < poll.n_frames; i++) {
            const uint64_t *words = frames[i].data;
            for (uint32_t w = 1; w < frames[i].len / 8; w++)
                TAP_EQ(t, words[w], words[0]);
            out[n++] = words[0];
        }
    } while (poll.n_frames > 0 && n <= 512 - 64);
    return n;
}

static void a_batch_has_one_counter_behind_the_other(struct tap *t)
{
    for (int topology = BELAY_RING_LANES; topology <= BELAY_RING_ORDERED; topology++) {
        struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
        struct belay_fleet *f = must_join("batch", &o);
        struct belay_ring *ring = must_open(f, (uint8_t)topology, 0);
        struct belay_ring_cursor *c = must_cursor(ring);
        uint64_t got[512], id = 0, lost = 0;
        struct belay_error err;

        TAP_EQ(t, publish(ring, 99, NULL), BELAY_OK);
        TAP_EQ(t, publish_batch(ring, 100, 7, &id, NULL), BELAY_OK);
        TAP_EQ(t, belay_netid_counter(id), 1);
        TAP_EQ(t, belay_ring_head(ring, 0), 8);
        TAP_EQ(t, belay_ring_cursor_lag(c, BELAY_NONE), 8);
        TAP_EQ(t, drain(t, c, got, &lost), 8);
        for (uint64_t i = 0; i < 8; i++)
            TAP_EQ(t, got[i], 99 + i);
        TAP_EQ(t, belay_ring_cursor_lag(c, 0), 0);
        for (uint64_t round = 0; round < 40; round++) {
            TAP_EQ(t, publish_batch(ring, round, CAPACITY, NULL, NULL), BELAY_OK);
            TAP_EQ(t, drain(t, c, got, &lost), CAPACITY);
            TAP_EQ(t, got[CAPACITY - 1], round + CAPACITY - 1);
        }
        TAP_EQ(t, lost, 0);
        TAP_EQ(t, publish_batch(ring, 0, CAPACITY + 1, NULL, &err), BELAY_INVALID);
        TAP_EQ(t, err.expected, CAPACITY);
        TAP_EQ(t, publish_batch(ring, 0, 0, NULL, &err), BELAY_INVALID);
        TAP_EQ(t, drain(t, c, got, &lost), 0); /* nothing of it was published */
        belay_ring_cursor_close(c);
        belay_fleet_leave(f);
    }
}

/* --- killed --- */

struct doom {
    unsigned at, n;
};

static void die_in_step(void *arg, enum fleet_step step)
{
    struct doom *d = arg;

    (void)step;
    if (d->n++ == d->at)
        (void)raise(SIGKILL);
}

static void a_killed_batch_is_there_whole_or_not_at_all(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("batch", &o);
    struct belay_ring *ring = must_open(f, BELAY_RING_LANES, 0);
    struct belay_ring_cursor *c = must_cursor(ring);
    unsigned whole = 0, none = 0;
    bool is_over = false;

    for (unsigned at = 0; !is_over && at < 100; at++) {
        uint64_t got[512], lost = 0;
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            struct belay_fleet *g = must_join("batch", &o);
            struct doom doom = { .at = at };
            struct belay_ring *r = must_open(g, BELAY_RING_LANES, 0);
            fleet_set_step(g, die_in_step, &doom);
            _exit(publish_batch(r, 1000, 6, NULL, NULL) == BELAY_OK ? 0 : 3);
        }
        TAP_EQ(t, waitpid(pid, &status, 0), pid);
        is_over = !WIFSIGNALED(status);
        size_t n = drain(t, c, got, &lost);
        TAP_OK(t, n == 0 || n == 6);
        whole += n == 6;
        none += n == 0;
        /* Its successor at that node publishes one, and nothing of the batch comes up. */
        struct belay_fleet_options as_it = small_fleet(BELAY_FLEET_NODE);
        as_it.node = 1;
        TAP_EQ(t, belay_fleet_sweep(f, NULL, NULL), BELAY_OK);
        struct belay_fleet *g = must_join("batch", &as_it);
        struct belay_ring *r = must_open(g, BELAY_RING_LANES, 0);
        TAP_EQ(t, publish(r, 7, NULL), BELAY_OK);
        TAP_EQ(t, drain(t, c, got, &lost), 1);
        TAP_EQ(t, got[0], 7);
        TAP_EQ(t, publish_batch(r, 20, 2, NULL, NULL), BELAY_OK);
        TAP_EQ(t, drain(t, c, got, &lost), 2);
        TAP_OK(t, got[0] == 20 && got[1] == 21);
        TAP_EQ(t, lost, 0);
        belay_fleet_leave(g);
    }
    TAP_OK(t, is_over && whole >= 2 && none >= 15);
    belay_ring_cursor_close(c);
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("batch", &o, NULL), BELAY_OK);
}

/* --- reliable --- */

static void a_writer_waits_for_its_consumers(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("reliable", &o), *g = must_join_beside(f),
                       *h = must_join_beside(f);
    struct belay_ring *out = must_open(f, BELAY_RING_LANES, 1);
    struct belay_ring *in = must_open(g, BELAY_RING_LANES, 1);
    struct belay_ring *slow = must_open(h, BELAY_RING_LANES, 1);
    struct belay_ring_cursor *a = NULL, *b = NULL, *more;
    struct belay_ring_consumer who[4];
    uint64_t got[512], lost = 0;
    struct belay_error err;
    size_t n = 0;

    /* Without consumers it is a ring as any other. */
    for (uint64_t i = 0; i < UINT64_C(3) * CAPACITY; i++)
        TAP_EQ(t, publish(out, i, NULL), BELAY_OK);
    TAP_EQ(t, belay_ring_consume(in, &a, NULL), BELAY_OK);
    TAP_EQ(t, belay_ring_consume(slow, &b, NULL), BELAY_OK);
    TAP_EQ(t, belay_ring_consume(slow, &more, &err), BELAY_MISUSE);
    for (uint64_t i = 0; i < CAPACITY; i++)
        TAP_EQ(t, publish(out, i, NULL), BELAY_OK);
    TAP_EQ(t, publish(out, 77, &err), BELAY_CONTENTION);
    TAP_OK(t, strcmp(err.reason, "slow_consumer") == 0);
    TAP_EQ(t, drain(t, a, got, &lost), CAPACITY);
    TAP_EQ(t, publish(out, 77, &err), BELAY_CONTENTION);
    TAP_EQ(t, err.expected, 2); /* who is behind, and by how much */
    TAP_EQ(t, err.actual, CAPACITY);
    TAP_EQ(t, belay_ring_wait_room(out, 1, 20, NULL, &err), BELAY_TIMEOUT);
    TAP_EQ(t, belay_ring_consumers(out, who, 4, &n, NULL), BELAY_OK);
    TAP_EQ(t, n, 2);
    TAP_OK(t, who[0].node == 1 && who[0].lag == 0 && who[0].slowest_node == -1);
    TAP_OK(t, who[1].node == 2 && who[1].lag == CAPACITY && who[1].slowest_node == 0);
    TAP_EQ(t, drain(t, b, got, &lost), CAPACITY);
    TAP_EQ(t, belay_ring_wait_room(out, CAPACITY, 0, NULL, &err), BELAY_OK);
    TAP_EQ(t, publish_batch(out, 0, CAPACITY, NULL, NULL), BELAY_OK);
    TAP_EQ(t, publish_batch(out, 0, 2, NULL, &err), BELAY_CONTENTION);

    /* One is closed, the other dies: nobody is waited for. */
    belay_ring_cursor_close(a);
    TAP_EQ(t, publish(out, 1, &err), BELAY_CONTENTION);
    fleet_abandon(h);
    free(b); /* closing it would be a sign of life */
    for (uint64_t i = 0; i < UINT64_C(2) * CAPACITY; i++)
        TAP_EQ(t, publish(out, i, NULL), BELAY_OK);
    TAP_EQ(t, lost, 0);
    TAP_EQ(t, belay_ring_consumers(out, who, 4, &n, NULL), BELAY_OK);
    TAP_EQ(t, n, 0);

    /* Any other ring has no consumers. */
    struct belay_ring_spec spec = { .size = sizeof(spec), .kind = 10, .name = "lossy" };
    TAP_EQ(t, belay_ring_open(f, &spec, &out, NULL), BELAY_OK);
    TAP_EQ(t, belay_ring_consume(out, &a, &err), BELAY_MISUSE);
    spec.kind = 11;
    spec.reliable = 1;
    spec.topology = BELAY_RING_ORDERED;
    TAP_EQ(t, belay_ring_open(f, &spec, &out, &err), BELAY_INVALID);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

#define NUMBERS 20000
#define CONSUMERS 2

struct reader {
    struct belay_fleet *f;
    struct tap *t;
    _Atomic int *ready;
    uint64_t next;
    bool is_good;
};

static void *consume(void *arg)
{
    struct reader *r = arg;
    struct belay_ring_cursor *c = NULL;
    uint64_t got[512], lost = 0;

    r->is_good =
        belay_ring_consume(must_open(r->f, BELAY_RING_LANES, 1), &c, NULL) == BELAY_OK;
    atomic_fetch_add(r->ready, 1);
    while (r->is_good && r->next < NUMBERS) {
        size_t n = drain(r->t, c, got, &lost);
        for (size_t i = 0; i < n; i++)
            r->is_good = r->is_good && got[i] == r->next++;
        r->is_good = r->is_good && lost == 0;
    }
    belay_ring_cursor_close(c);
    return NULL;
}

static void consumers_get_every_frame(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("reliable", &o);
    struct belay_ring *out = must_open(f, BELAY_RING_LANES, 1);
    struct reader readers[CONSUMERS];
    struct tap taps[CONSUMERS] = { *t, *t };
    pthread_t threads[CONSUMERS];
    _Atomic int ready = 0;

    for (int i = 0; i < CONSUMERS; i++) {
        readers[i] =
            (struct reader){ .f = must_join_beside(f), .t = &taps[i], .ready = &ready };
        TAP_EQ(t, pthread_create(&threads[i], NULL, consume, &readers[i]), 0);
    }
    while (atomic_load(&ready) < CONSUMERS)
        (void)usleep(100);
    for (uint64_t n = 0; n < NUMBERS;) {
        size_t batch = n % 7 == 0 && n + 5 <= NUMBERS ? 5 : 1;
        belay_rc rc = batch == 1 ? publish(out, n, NULL)
                                 : publish_batch(out, n, batch, NULL, NULL);
        if (rc == BELAY_OK)
            n += batch;
        else if (!TAP_EQ(t, rc, BELAY_CONTENTION) ||
                 !TAP_EQ(t, belay_ring_wait_room(out, batch, 20000, NULL, NULL),
                         BELAY_OK))
            break;
    }
    for (int i = 0; i < CONSUMERS; i++) {
        TAP_EQ(t, pthread_join(threads[i], NULL), 0);
        TAP_OK(t, readers[i].is_good && readers[i].next == NUMBERS);
        TAP_EQ(t, taps[i].failed, t->failed);
        belay_fleet_leave(readers[i].f);
    }
    belay_fleet_leave(f);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a batch has one counter behind the other",
          a_batch_has_one_counter_behind_the_other },
        { "a writer waits for its consumers", a_writer_waits_for_its_consumers },
        { "consumers get every frame", consumers_get_every_frame },
        { "a killed batch is there whole or not at all",
          a_killed_batch_is_there_whole_or_not_at_all },
    };

    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
