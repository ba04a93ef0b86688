#include "wire.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <belay/fleet.h>

#include "base/clock.h"
#include "pinned.h"
#include "store/drivers/sqlite/wakefile.h"

#define PATIENCE_MS 10000
#define OTHERS_MAX 64

/* What the processes of a run share. */
struct shared {
    _Atomic uint32_t ready, round;
    _Atomic double woken_at;
    char fleet[32];
};

struct end {
    enum bench_wire wire;
    char topic[16];
    struct wake_hub *hub;
    struct wakefile *file;
    struct listener *listener;
    struct belay_arena arena;
    struct belay_fleet *fleet;
    struct belay_notify word;
};

static bool end_open(struct end *e, enum bench_wire wire, const struct bench_folder *f,
                     const struct shared *s, unsigned topic)
{
    struct belay_fleet_options o = { .size = sizeof(o) };
    enum wake_way way = wire == WIRE_PAGE ? WAKE_ON_BUCKETS : WAKE_BY_WATCHER;
    char path[512];

    *e = (struct end){ .wire = wire };
    (void)snprintf(e->topic, sizeof(e->topic), "topic-%u", topic);
    (void)snprintf(path, sizeof(path), "%s/wire.db", f->path);
    if (wire == WIRE_FLEET) {
        return belay_fleet_join(s->fleet, &o, &e->fleet, NULL) == BELAY_OK &&
               belay_notify_open(e->fleet, e->topic, &e->word, NULL) == BELAY_OK;
    }
    return wake_hub_open(&e->hub, NULL) == BELAY_OK &&
           wakefile_open(&e->file, path, e->hub, way, NULL) == BELAY_OK;
}

static void end_close(struct end *e)
{
    listener_close(e->listener);
    wakefile_close(e->file);
    wake_hub_close(e->hub);
    arena_release(&e->arena);
    belay_fleet_leave(e->fleet);
}

static void post(struct end *e)
{
    if (e->wire == WIRE_FLEET)
        (void)!belay_notify_post(e->fleet, e->word, NULL);
    else
        wakefile_post(e->file, bytes_str("ns"), bytes_str(e->topic));
}

/* Waits for its topic again and again, and says when it has woken. */
static void serve(struct end *e, struct shared *s, bool is_other)
{
    struct belay_clock clock = clock_system();
    struct bytes topic = bytes_str(e->topic);
    struct wake_topics wanted = { .ns = bytes_str("ns"), .topic = &topic, .n = 1 };
    uint32_t seen = e->fleet ? belay_notify_value(e->fleet, e->word) : 0;

    if (!e->fleet &&
        wake_listen(e->hub, &wanted, &clock, NULL, &e->arena, &e->listener, NULL))
        return;
    atomic_fetch_add(&s->ready, 1);
    for (;;) {
        belay_rc rc =
            e->fleet
                ? belay_notify_wait(e->fleet, e->word, seen, BELAY_NONE, NULL, &seen,
                                    NULL)
                : listener_wait(e->listener,
                                clock.mono_us(clock.arg) + PATIENCE_MS * INT64_C(1000),
                                NULL);
        if (rc == BELAY_OK && !is_other) {
            atomic_store(&s->woken_at, bench_now());
            atomic_fetch_add(&s->round, 1);
        }
    }
}

static pid_t start(enum bench_wire wire, const struct bench_folder *f, struct shared *s,
                   unsigned topic)
{
    struct end e;
    pid_t pid = fork();

    if (pid == 0) {
        if (end_open(&e, wire, f, s, topic))
            serve(&e, s, topic != 0);
        _exit(1);
    }
    return pid;
}

static bool sample(struct end *e, struct shared *s, double *out)
{
    uint32_t round = atomic_load(&s->round);

    (void)usleep(1000); /* it has gone to sleep again */
    double begin = bench_now();
    post(e);
    while (atomic_load(&s->round) == round) {
        if (bench_now() - begin > 5)
            return false;
        (void)usleep(200);
    }
    *out = (atomic_load(&s->woken_at) - begin) * 1e6;
    return true;
}

bool bench_wire_samples(enum bench_wire wire, const struct bench_folder *f,
                        unsigned others, double *out, unsigned n)
{
    struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct end e = { .wire = wire };
    pid_t pids[OTHERS_MAX + 1];
    unsigned n_pids = 0;

    if (s == MAP_FAILED || others > OTHERS_MAX)
        return false;
    bench_fleet_name(s->fleet);
    for (; n_pids <= others; n_pids++)
        pids[n_pids] = start(wire, f, s, n_pids);
    for (int i = 0; i < 5000 && atomic_load(&s->ready) < n_pids; i++)
        (void)usleep(2000);
    bool ok = atomic_load(&s->ready) == n_pids && end_open(&e, wire, f, s, 0);
    for (unsigned i = 0; i < n && ok; i++)
        ok = sample(&e, s, &out[i]);
    for (unsigned i = 0; i < n_pids; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    end_close(&e);
    if (wire == WIRE_FLEET)
        (void)!belay_fleet_remove(s->fleet, NULL, NULL);
    (void)munmap(s, sizeof(*s));
    return ok;
}
