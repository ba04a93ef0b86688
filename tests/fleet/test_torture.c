/* C1, C2: eight processes claim, renew, release and publish while somebody kills, stops and
 * continues them at random.
 *
 *   - who is granted a subject of long leases finds nobody inside, or one who is doomed (the
 *     kill had been sent) and whose pulse has stopped: dead for the kernel, not only nearly
 *   - tokens of a subject rise, whatever happens; who is refused by the fence has lost its
 *     guard
 *   - no frame is torn, none is read that was not written
 *   - when all are dead, the last one has every subject at once and every node back
 *
 * BELAY_FLEET_TORTURE_MS is how long; the seed is printed.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "fleetlib.h"
#include "tap.h"

#define WORKERS 8
#define LIVES_MAX 65536
#define LONG 3  /* subjects of long leases */
#define SHORT 2 /* of leases that run out */
#define FRAME_WORDS 8

/* Who is inside: the number of a life (a process), and its token. */
struct subject {
    _Atomic uint64_t inside; /* life + 1 of a subject of long leases; 0: nobody */
    uint64_t fence;          /* the keeper's high water, by belay_fence_admit */
    _Atomic uint64_t last;   /* the last token granted, as far as anybody has said */
};

struct page {
    struct subject subjects[LONG + SHORT];
    _Atomic uint64_t pulse[LIVES_MAX]; /* of each life, while it runs inside */
    _Atomic uint8_t doomed[LIVES_MAX]; /* a kill was sent, or is about to be */
    _Atomic uint64_t grants, takeovers, refused, lost, frames;
    _Atomic uint64_t wrong; /* findings */
    char finding[200];      /* the first */
};

static const char *const names[LONG + SHORT] = { "l0", "l1", "l2", "s0", "s1" };

static void complain(struct page *p, const char *what, uint64_t a, uint64_t b)
{
    if (atomic_fetch_add(&p->wrong, 1) == 0)
        (void)snprintf(p->finding, sizeof(p->finding), "%s: %llx, %llx", what,
                       (unsigned long long)a, (unsigned long long)b);
}

/* The one who was inside is doomed, and does not move any more. */
static void check_dead(struct page *p, uint64_t life)
{
    if (!atomic_load(&p->doomed[life])) {
        complain(p, "granted while a living one is inside", life, 0);
        return;
    }
    uint64_t pulse = atomic_load(&p->pulse[life]);
    for (int i = 0; i < 2000; i++) {
        if (atomic_load(&p->pulse[life]) != pulse) {
            complain(p, "the one that was inside still runs", life, pulse);
            return;
        }
    }
    atomic_fetch_add(&p->takeovers, 1);
}

static void rise(struct page *p, struct subject *s, uint64_t token)
{
    uint64_t last = atomic_load(&s->last);

    do {
        if (last >= token) {
            complain(p, "a token does not rise", last, token);
            return;
        }
    } while (!atomic_compare_exchange_weak(&s->last, &last, token));
}

static void hold_long(struct page *p, struct subject *s, uint64_t life,
                      struct belay_contest_guard *guard, struct rng *rng)
{
    uint64_t was = atomic_exchange(&s->inside, life + 1);

    if (was != 0)
        check_dead(p, was - 1);
    rise(p, s, guard->token);
    for (uint64_t i = rng_below(rng, 2000); i > 0; i--) {
        atomic_fetch_add(&p->pulse[life], 1);
        if (atomic_load(&s->inside) != life + 1) {
            complain(p, "somebody came inside", life, atomic_load(&s->inside));
            break;
        }
    }
    atomic_store(&s->inside, 0);
    if (!release(guard))
        complain(p, "a long lease was lost", life, guard->token);
}

/* A lease of a few ms, its holder perhaps stopped for longer: the fence decides. */
static void hold_short(struct page *p, struct subject *s,
                       struct belay_contest_guard *guard, struct rng *rng)
{
    struct belay_error err;
    bool renewed = true;

    for (uint64_t i = rng_below(rng, 20); i > 0; i--) {
        if (!belay_fence_admit(&s->fence, guard->token)) {
            atomic_fetch_add(&p->refused, 1);
            if (belay_contest_renew(guard, 3, &err) == BELAY_OK)
                complain(p, "refused by the fence, and yet it renews", guard->token, 0);
            break;
        }
        renewed = belay_contest_renew(guard, 1 + (int64_t)rng_below(rng, 3), &err) == 0;
        if (!renewed)
            break;
    }
    atomic_fetch_add(&p->lost, !release(guard));
}

static bool open_ring(struct belay_fleet *f, struct belay_ring **out)
{
    struct belay_ring_spec spec = { .size = sizeof(spec),
                                    .kind = 20,
                                    .topology = BELAY_RING_ORDERED,
                                    .capacity = 64,
                                    .payload_max = FRAME_WORDS * 8,
                                    .name = "torture" };
    struct belay_error err;

    return belay_ring_open(f, &spec, out, &err) == BELAY_OK;
}

static void exchange(struct page *p, struct belay_ring *ring,
                     struct belay_ring_cursor *cursor, uint64_t value)
{
    uint64_t data[FRAME_WORDS], buf[32 * FRAME_WORDS];
    struct belay_ring_frame frame = { .kind = 1, .len = sizeof(data), .data = data };
    struct belay_ring_frame frames[32];
    struct belay_ring_poll poll;
    struct belay_error err;

    for (size_t i = 0; i < FRAME_WORDS; i++)
        data[i] = value + i;
    if (belay_ring_publish(ring, &frame, NULL, &err))
        complain(p, "a publish failed", value, 0);
    if (belay_ring_poll(cursor, frames, 32, buf, sizeof(buf), &poll, &err)) {
        complain(p, "a poll failed", value, 0);
        return;
    }
    atomic_fetch_add(&p->frames, poll.n_frames);
    for (size_t i = 0; i < poll.n_frames; i++) {
        const uint64_t *got = frames[i].data;
        for (size_t w = 0; w < FRAME_WORDS; w++) {
            if (frames[i].len != sizeof(data) || got[w] != got[0] + w)
                complain(p, "a frame is torn", got[0], got[w]); /* C3 */
        }
    }
}

static void worker(const struct room *room, struct page *p, uint64_t life,
                   uint64_t seed)
{
    struct belay_ring_cursor *cursor;
    struct belay_ring *ring;
    struct belay_error err;
    struct rng rng;
    struct belay_fleet *f = room_join(room, "torture", 0);

    rng_init(&rng, seed);
    if (!f || !open_ring(f, &ring) ||
        belay_ring_cursor_open(ring, BELAY_RING_HEAD, &cursor, &err)) {
        complain(p, "a worker could not begin", life, 0);
        _exit(3);
    }
    for (uint64_t turn = 0;; turn++) {
        uint64_t which = rng_below(&rng, LONG + SHORT);
        struct belay_contest_claim claim;
        int64_t ttl = which < LONG ? HOUR_MS : 1 + (int64_t)rng_below(&rng, 3);

        if (try_claim(f, names[which], "worker", ttl, &claim)) {
            atomic_fetch_add(&p->grants, 1);
            if (which < LONG)
                hold_long(p, &p->subjects[which], life, &claim.guard, &rng);
            else
                hold_short(p, &p->subjects[which], &claim.guard, &rng);
        }
        if (turn % 8 == 0)
            exchange(p, ring, cursor, life << 32 | turn << 8);
    }
}

struct tormentor {
    const struct room *room;
    struct page *page;
    pid_t pids[WORKERS];
    uint64_t lives[WORKERS];
    double stopped_until[WORKERS]; /* 0: runs */
    uint64_t life;
    struct rng rng;
    unsigned kills, stops;
};

static void spawn(struct tormentor *m, unsigned i)
{
    uint64_t life = m->life++, seed = rng_next(&m->rng);

    m->lives[i] = life;
    m->stopped_until[i] = 0;
    (void)fflush(stdout);
    m->pids[i] = fork();
    if (m->pids[i] == 0)
        worker(m->room, m->page, life, seed);
}

static void kill_one(struct tormentor *m, unsigned i)
{
    atomic_store(&m->page->doomed[m->lives[i]], 1);
    (void)reap(m->pids[i], SIGKILL);
    m->kills++;
}

static void torment(struct tormentor *m, double until)
{
    while (now_ms() < until && m->life < LIVES_MAX - WORKERS &&
           atomic_load(&m->page->wrong) == 0) {
        unsigned i = (unsigned)rng_below(&m->rng, WORKERS);

        (void)usleep((useconds_t)rng_below(&m->rng, 1500));
        for (unsigned k = 0; k < WORKERS; k++) {
            if (m->stopped_until[k] > 0 && now_ms() > m->stopped_until[k]) {
                (void)kill(m->pids[k], SIGCONT);
                m->stopped_until[k] = 0;
            }
        }
        if (rng_below(&m->rng, 3) == 0) {
            kill_one(m, i);
            spawn(m, i);
        } else if (m->stopped_until[i] <= 0) {
            (void)kill(m->pids[i], SIGSTOP);
            m->stopped_until[i] = now_ms() + 1 + (double)rng_below(&m->rng, 25);
            m->stops++;
        }
    }
}

static void test_torture(struct tap *t)
{
    const struct room *room = t->arg;
    const char *text = getenv("BELAY_FLEET_TORTURE_MS");
    double length = text ? strtod(text, NULL) : 1200;
    struct tormentor m = { .room = room };
    uint64_t seed = (uint64_t)now_ms();

    m.page = mmap(NULL, sizeof(*m.page), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!TAP_OK(t, m.page != MAP_FAILED))
        return;
    printf("# seed %llu\n", (unsigned long long)seed);
    rng_init(&m.rng, seed);
    struct belay_fleet *f = room_join(room, "torture", 0);
    TAP_OK(t, f != NULL);
    for (unsigned i = 0; i < WORKERS; i++)
        spawn(&m, i);
    torment(&m, now_ms() + length);
    for (unsigned i = 0; i < WORKERS; i++)
        kill_one(&m, i);

    /* Nobody is left but this one: everything at once. */
    double start = now_ms();
    struct belay_fleet_member members[16];
    struct belay_contest_claim claim;
    struct belay_error err;
    size_t n = 0;
    for (unsigned i = 0; f && i < LONG + SHORT; i++) {
        if (TAP_OK(t, try_claim(f, names[i], "last", HOUR_MS, &claim)))
            rise(m.page, &m.page->subjects[i], claim.guard.token);
    }
    TAP_OK(t, now_ms() - start < 1000);
    TAP_EQ(t, belay_fleet_sweep(f, NULL, &err), BELAY_OK);
    TAP_EQ(t, belay_fleet_members(f, members, 16, &n, &err), BELAY_OK);
    TAP_EQ(t, n, 1);
    if (!TAP_EQ(t, atomic_load(&m.page->wrong), 0))
        printf("# %s\n", m.page->finding);
    printf(
        "# %u kills, %u stops, %llu grants, %llu takeovers, %llu refused, %llu lost, "
        "%llu frames\n",
        m.kills, m.stops, (unsigned long long)atomic_load(&m.page->grants),
        (unsigned long long)atomic_load(&m.page->takeovers),
        (unsigned long long)atomic_load(&m.page->refused),
        (unsigned long long)atomic_load(&m.page->lost),
        (unsigned long long)atomic_load(&m.page->frames));
    TAP_OK(t, m.kills > 8 && m.stops > 4 && atomic_load(&m.page->takeovers) > 0);
    TAP_OK(t, atomic_load(&m.page->grants) > 100);
    belay_fleet_leave(f);
    (void)munmap(m.page, sizeof(*m.page));
}

static const struct tap_case cases[] = {
    { "killed, stopped and continued at random, members never share a subject",
      test_torture },
};

int main(int argc, char **argv)
{
    struct room room = { .dir = "" };

    if (!room_init(&room))
        return 1;
    int code = tap_main(cases, sizeof(cases) / sizeof(cases[0]), &room, argc, argv);
    room_release(&room);
    return code;
}
