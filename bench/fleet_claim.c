/* fleet.claim - an uncontended claim and its release, with the look-up of the subject, the
 * ordered log and everything that makes a claim safe, against a bare sequence of the same
 * number of CAS, fetch_add, reads of the coarse clock and lane publishes on warm lines.
 *
 * ratio_failed: a failed try against trylock and unlock of a robust mutex; it is done again
 * with the loser's mapping read-only, where a write would end the program.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <belay/fleet.h>

#include "bench.h"
#include "fleet/impl.h"
#include "pinned.h"

#define ROUNDS 11
#define SLOTS 256
#define FRAME 64 /* bytes of a frame of the log: header 21, subject, owner */

static const struct belay_contest_subject subject = { "orders/2024/batch-17", 20, 1 };
static const struct belay_contest_terms terms = { "worker-7@host-3 (pid 4711)", 26,
                                                  3600000 };

struct bare_slot {
    _Atomic uint64_t seq, id, ver, sig, meta;
    _Atomic uint64_t data[FRAME / 8];
    uint64_t pad[3];
};

/* What a claim and its release cannot do without, each on a line of its own. */
struct bare {
    _Alignas(128) _Atomic uint64_t owner;
    _Alignas(128) _Atomic uint64_t deadline;
    _Alignas(128) _Atomic uint64_t token;
    _Alignas(128) _Atomic uint64_t order_head;
    _Alignas(128) _Atomic uint64_t lane_head;
    _Atomic uint64_t order[SLOTS * 4];
    _Alignas(64) struct bare_slot slots[SLOTS];
};

static uint64_t coarse_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool swap(_Atomic uint64_t *word, uint64_t to)
{
    uint64_t from = atomic_load_explicit(word, memory_order_acquire);

    return atomic_compare_exchange_strong_explicit(
        word, &from, to, memory_order_acq_rel, memory_order_acquire);
}

static void bare_publish(struct bare *b, const uint64_t *data, uint64_t now)
{
    uint64_t c = atomic_load_explicit(&b->lane_head, memory_order_relaxed);
    struct bare_slot *s = &b->slots[c & (SLOTS - 1)];

    atomic_store_explicit(&s->seq, 2 * c + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&s->id, c, memory_order_relaxed);
    atomic_store_explicit(&s->ver, now, memory_order_relaxed);
    atomic_store_explicit(&s->sig, c, memory_order_relaxed);
    atomic_store_explicit(&s->meta, FRAME, memory_order_relaxed);
    for (unsigned i = 0; i < FRAME / 8; i++)
        atomic_store_explicit(&s->data[i], data[i], memory_order_relaxed);
    atomic_store_explicit(&s->seq, 2 * c + 2, memory_order_release);
    atomic_store_explicit(&b->lane_head, c + 1, memory_order_release);
    uint64_t h = atomic_load_explicit(&b->order_head, memory_order_acquire);
    (void)swap(&b->order[h & (SLOTS * 4 - 1)], c);
    (void)swap(&b->order_head, h + 1);
}

/* ns for a claim and a release. */
static double run_bare(struct bare *b, unsigned n)
{
    uint64_t data[FRAME / 8] = { 1 };
    double start = bench_ns();

    for (unsigned i = 0; i < n; i++) {
        uint64_t now = coarse_us();
        (void)swap(&b->owner, now + i);
        data[1] = atomic_fetch_add_explicit(&b->token, 1, memory_order_relaxed);
        (void)swap(&b->deadline, now + i);
        bare_publish(b, data, now);
        now = coarse_us();
        bare_publish(b, data, now);
        (void)swap(&b->owner, 0);
    }
    return (bench_ns() - start) / n;
}

static double run_claims(struct belay_fleet *f, unsigned n)
{
    struct belay_contest_claim claim;
    struct belay_error err;
    double start = bench_ns();

    for (unsigned i = 0; i < n; i++) {
        if (belay_contest_try(f, &subject, &terms, &claim, &err) != BELAY_OK ||
            !claim.is_claimed ||
            belay_contest_release(&claim.guard, NULL, &err) != BELAY_OK)
            return 0;
    }
    return (bench_ns() - start) / n;
}

static double run_failed(struct belay_fleet *f, unsigned n)
{
    struct belay_contest_claim claim;
    struct belay_error err;
    double start = bench_ns();

    for (unsigned i = 0; i < n; i++) {
        if (belay_contest_try(f, &subject, &terms, &claim, &err) != BELAY_OK ||
            claim.is_claimed)
            return 0;
    }
    return (bench_ns() - start) / n;
}

static bool robust_init(pthread_mutex_t *m)
{
    pthread_mutexattr_t a;

    return pthread_mutexattr_init(&a) == 0 &&
           pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST) == 0 &&
           pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED) == 0 &&
           pthread_mutex_init(m, &a) == 0;
}

static double run_robust(pthread_mutex_t *m, unsigned n)
{
    double start = bench_ns();

    for (unsigned i = 0; i < n; i++) {
        if (pthread_mutex_trylock(m) != 0 || pthread_mutex_unlock(m) != 0)
            return 0;
    }
    return (bench_ns() - start) / n;
}

/* A loser that cannot write to the segment at all; in a process of its own. */
static bool fails_read_only(const char *name)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        struct belay_fleet_options o = { .size = sizeof(o),
                                         .flags = BELAY_FLEET_MUST_EXIST };
        struct belay_fleet *f;
        struct belay_error err;
        if (belay_fleet_join(name, &o, &f, &err) || run_failed(f, 10) <= 0 ||
            mprotect(f->space->base, f->space->geo.total_len, PROT_READ))
            _exit(3);
        bool failed = run_failed(f, 10000) > 0;
        /* Writable again: the kernel marks the keeper's word when the process ends. */
        if (mprotect(f->space->base, f->space->geo.total_len, PROT_READ | PROT_WRITE))
            _exit(5);
        _exit(failed ? 0 : 4);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

struct subjects {
    struct belay_fleet *f, *one, *loser;
    struct bare *bare;
    pthread_mutex_t *robust;
    const char *name;
};

static int measure(const struct subjects *s, const struct bench_options *o)
{
    unsigned n = o->smoke ? 500 : 200000;
    double bare[ROUNDS], claims[ROUNDS], ones[ROUNDS], failed[ROUNDS], robust[ROUNDS];
    double ratio[ROUNDS], ratio_locked[ROUNDS], ratio_failed[ROUNDS];
    struct belay_contest_claim held;
    struct belay_error err;
    bool ok = true;

    for (unsigned i = 0; i < ROUNDS && ok; i++) {
        bare[i] = run_bare(s->bare, n);
        ones[i] = run_claims(s->one, n);
        claims[i] = run_claims(s->f, n);
        ok = belay_contest_try(s->f, &subject, &terms, &held, &err) == BELAY_OK &&
             held.is_claimed;
        robust[i] = run_robust(s->robust, n);
        failed[i] = run_failed(s->loser, n);
        if (i == 0)
            ok = ok && fails_read_only(s->name);
        ok = ok && belay_contest_release(&held.guard, NULL, &err) == BELAY_OK &&
             claims[i] > 0 && ones[i] > 0 && failed[i] > 0 && robust[i] > 0;
        ratio[i] = ones[i] / bare[i];
        ratio_locked[i] = claims[i] / bare[i];
        ratio_failed[i] = failed[i] / robust[i];
    }
    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(ratio, ROUNDS));
        bench_field(&fields, "ratio_threads", bench_median(ratio_locked, ROUNDS));
        bench_field(&fields, "ratio_failed", bench_median(ratio_failed, ROUNDS));
        bench_field(&fields, "ns", bench_median(ones, ROUNDS));
        bench_field(&fields, "ns_threads", bench_median(claims, ROUNDS));
        bench_field(&fields, "ns_failed", bench_median(failed, ROUNDS));
        bench_limit(o, &fields, "bare_ns", bare, ROUNDS);
        bench_limit(o, &fields, "robust_ns", robust, ROUNDS);
        bench_field(&fields, "fails_read_only", 1);
    }
    return bench_finish(o, "fleet.claim", &fields, ok);
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    struct belay_fleet_options options = { .size = sizeof(options) };
    struct subjects s = { .f = NULL };
    struct belay_error err = { .message = "no memory" };
    char name[32];

    bench_fleet_name(name);
    s.name = name;
    s.bare = mmap(NULL, sizeof(*s.bare) + 4096, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.bare == MAP_FAILED)
        return 1;
    s.robust = (pthread_mutex_t *)(void *)(s.bare + 1);
    options.flags = BELAY_FLEET_ONE_THREAD;
    struct belay_fleet_options plain = { .size = sizeof(plain) };
    if (!robust_init(s.robust) || !bench_pin(0) ||
        belay_fleet_join(name, &plain, &s.f, &err) ||
        belay_fleet_join(name, &options, &s.one, &err) ||
        belay_fleet_join(name, &options, &s.loser, &err)) {
        (void)fprintf(stderr, "fleet.claim: %s\n", err.message);
        return 1;
    }
    int code = measure(&s, &o);
    belay_fleet_leave(s.loser);
    belay_fleet_leave(s.one);
    belay_fleet_leave(s.f);
    if (belay_fleet_remove(name, NULL, &err) != BELAY_OK) {
        (void)fprintf(stderr, "fleet.claim: %s\n", err.message);
        code = 1;
    }
    return code;
}
