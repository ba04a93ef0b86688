/* fleet.publish - a frame of 64 bytes into the member's lane, nobody reading, against
 * fetch_add and memcpy of 64 bytes into a ring of the same size.
 *
 * ratio_latency: the way to a reader that spins, as half of a round trip over two lanes,
 * against half of a round trip of a cache line between the same two processors (p50;
 * `latency_p99`: the same at p99).
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <belay/fleet.h>

#include "bench.h"
#include "pinned.h"

#define ROUNDS 9
#define CAPACITY 1024
#define STRIDE 320

struct limit_ring {
    _Alignas(128) _Atomic uint64_t head;
    _Alignas(128) uint8_t slots[CAPACITY][STRIDE];
};

static double run_limit(struct limit_ring *r, unsigned n)
{
    uint8_t data[64];
    double start = bench_ns();

    memset(data, 1, sizeof(data));
    for (unsigned i = 0; i < n; i++) {
        uint64_t c = atomic_fetch_add_explicit(&r->head, 1, memory_order_acq_rel);
        memcpy(r->slots[c & (CAPACITY - 1)], data, sizeof(data));
        __asm__ volatile("" ::: "memory"); /* the bytes are written, each time */
    }
    return (bench_ns() - start) / n;
}

static double run_lane(struct belay_ring *ring, unsigned n)
{
    uint8_t data[64] = { 1 };
    struct belay_ring_frame frame = { .kind = 1, .len = sizeof(data), .data = data };
    struct belay_error err;
    double start = bench_ns();

    for (unsigned i = 0; i < n; i++) {
        if (belay_ring_publish(ring, &frame, NULL, &err) != BELAY_OK)
            return 0;
    }
    return (bench_ns() - start) / n;
}

/* --- round trips --------------------------------------------------------------------- */

/* One ring for each way: who reads one has written nothing into it. */
struct side {
    struct belay_ring *ring;
    struct belay_ring_cursor *cursor; /* of the other's ring */
};

/* A word on a line of its own. */
struct line {
    _Alignas(128) _Atomic uint64_t word;
    uint64_t pad[15];
};

struct pair {
    struct line ping, pong;
    struct line mode; /* 0 lines, 1 lanes, 2 stop */
    struct side near, far;
    _Atomic bool failed;
};

static bool send_frame(struct side *s)
{
    uint64_t data[8] = { 1 };
    struct belay_ring_frame frame = { .kind = 1, .len = sizeof(data), .data = data };
    struct belay_error err;

    return belay_ring_publish(s->ring, &frame, NULL, &err) == BELAY_OK;
}

static int receive(struct side *s)
{
    struct belay_ring_frame frames[4];
    uint64_t buf[4 * 8];
    struct belay_ring_poll poll;
    struct belay_error err;

    if (belay_ring_poll(s->cursor, frames, 4, buf, sizeof(buf), &poll, &err) !=
        BELAY_OK)
        return -1;
    return (int)poll.n_frames;
}

static void *far_side(void *arg)
{
    struct pair *p = arg;
    uint64_t seen = 0;

    if (!bench_pin(1))
        p->failed = true;
    for (;;) {
        uint64_t mode = atomic_load_explicit(&p->mode.word, memory_order_acquire);
        if (mode == 2)
            return NULL;
        if (mode == 0) {
            uint64_t ping = atomic_load_explicit(&p->ping.word, memory_order_acquire);
            if (ping != seen)
                atomic_store_explicit(&p->pong.word, seen = ping, memory_order_release);
        } else {
            int n = receive(&p->far);
            if (n < 0 || (n > 0 && !send_frame(&p->far)))
                p->failed = true;
        }
    }
}

/* Half round trips in ns. */
static bool run_lines(struct pair *p, double *out, unsigned n)
{
    atomic_store(&p->mode.word, 0);
    for (unsigned i = 0; i < n; i++) {
        uint64_t next = atomic_load_explicit(&p->ping.word, memory_order_relaxed) + 1;
        double start = bench_ns();
        atomic_store_explicit(&p->ping.word, next, memory_order_release);
        while (atomic_load_explicit(&p->pong.word, memory_order_acquire) != next)
            ;
        out[i] = (bench_ns() - start) / 2;
    }
    return true;
}

static bool run_lanes(struct pair *p, double *out, unsigned n)
{
    atomic_store(&p->mode.word, 1);
    for (unsigned i = 0; i < n; i++) {
        int got = 0;
        double start = bench_ns();
        if (!send_frame(&p->near))
            return false;
        while (got == 0 && !p->failed)
            got = receive(&p->near);
        if (got != 1)
            return false;
        out[i] = (bench_ns() - start) / 2;
    }
    return true;
}

/* Times of the clock itself, which both have in them. */
static double clock_cost(void)
{
    double start = bench_ns();

    for (unsigned i = 0; i < 1000; i++)
        (void)bench_ns();
    return (bench_ns() - start) / 1000 / 2;
}

static int measure(struct pair *p, struct belay_ring *ring, struct limit_ring *limit,
                   const struct bench_options *o)
{
    unsigned n = o->smoke ? 500 : 500000, trips = o->smoke ? 50 : 20000;
    double lane[ROUNDS], base[ROUNDS], ratio[ROUNDS], half[ROUNDS], way[ROUNDS];
    double ratio_latency[ROUNDS], tail[ROUNDS];
    double *times = malloc(trips * sizeof(*times));
    double cost = clock_cost();
    bool ok = times != NULL;

    for (unsigned i = 0; i < ROUNDS && ok; i++) {
        ok = run_lines(p, times, trips);
        half[i] = bench_percentile(times, trips, 50) - cost;
        ok = ok && run_lanes(p, times, trips);
        way[i] = ok ? bench_percentile(times, trips, 50) - cost : 0;
        tail[i] = ok ? bench_percentile(times, trips, 99) - cost : 0;
        ratio_latency[i] = way[i] / half[i];
        tail[i] /= half[i];
    }
    atomic_store(&p->mode.word, 2);
    for (unsigned i = 0; i < ROUNDS && ok; i++) {
        base[i] = run_limit(limit, n);
        lane[i] = run_lane(ring, n);
        ok = lane[i] > 0;
        ratio[i] = lane[i] / base[i];
    }
    free(times);
    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(ratio, ROUNDS));
        bench_field(&fields, "ratio_latency", bench_median(ratio_latency, ROUNDS));
        bench_field(&fields, "latency_p99", bench_median(tail, ROUNDS));
        bench_field(&fields, "ns", bench_median(lane, ROUNDS));
        bench_field(&fields, "latency_ns", bench_median(way, ROUNDS));
        bench_limit(o, &fields, "memcpy_ns", base, ROUNDS);
        bench_limit(o, &fields, "line_ns", half, ROUNDS);
    }
    return bench_finish(o, "fleet.publish", &fields, ok && !p->failed);
}

static bool open_side(struct belay_fleet *f, uint8_t out, uint8_t in, struct side *side)
{
    struct belay_ring_spec spec = {
        .size = sizeof(spec), .kind = out, .capacity = CAPACITY, .name = "bench"
    };
    struct belay_ring *other;
    struct belay_error err;

    if (belay_ring_open(f, &spec, &side->ring, &err))
        return false;
    spec.kind = in;
    return belay_ring_open(f, &spec, &other, &err) == BELAY_OK &&
           belay_ring_cursor_open(other, BELAY_RING_HEAD, &side->cursor, &err) ==
               BELAY_OK;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    struct belay_fleet_options options = { .size = sizeof(options),
                                           .flags = BELAY_FLEET_ONE_THREAD,
                                           .fleet_size = 2 };
    struct belay_fleet *f, *g;
    struct belay_error err;
    char name[32];
    pthread_t thread;
    struct pair *p = aligned_alloc(128, sizeof(*p));
    struct limit_ring *limit = mmap(NULL, sizeof(*limit), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    bench_fleet_name(name);
    if (!p || limit == MAP_FAILED || belay_fleet_join(name, &options, &f, &err) ||
        belay_fleet_join(name, &options, &g, &err)) {
        (void)fprintf(stderr, "fleet.publish: cannot begin\n");
        return 1;
    }
    memset(p, 0, sizeof(*p));
    if (!open_side(f, 10, 11, &p->near) || !open_side(g, 11, 10, &p->far) ||
        !bench_pin(0) || pthread_create(&thread, NULL, far_side, p)) {
        (void)fprintf(stderr, "fleet.publish: no rings\n");
        return 1;
    }
    int code = measure(p, p->near.ring, limit, &o);
    (void)pthread_join(thread, NULL);
    belay_ring_cursor_close(p->near.cursor);
    belay_ring_cursor_close(p->far.cursor);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
    if (belay_fleet_remove(name, NULL, &err) != BELAY_OK)
        code = 1;
    free(p);
    return code;
}
