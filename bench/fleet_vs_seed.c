/* fleet.vs_seed - failed tries of the contest against failed tries of what it replaces: the
 * contest over one ring (a ring of 1024 frames, full; no allocation, decoded in place), and
 * `ratio_flock`, a table of leases behind a file
 * lock that is opened, locked and closed for each try.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <belay/fleet.h>

#include "bench.h"
#include "pinned.h"
#include "seedmodel.h"

#define ROUNDS 7
#define RING 1024
#define BLOCK 100 /* tries before the ring would drop the holder */

static const struct belay_contest_subject subject = { "orders/2024/batch-17", 20, 1 };
static const struct belay_contest_terms terms = { "worker-7", 8, 3600000 };
static const struct seed_subject seed_subject = { 1, "orders/2024/batch-17" };

static double run_belay(struct belay_fleet *f, unsigned n)
{
    struct belay_contest_claim claim;
    struct belay_error err;
    double start = bench_ns();

    for (unsigned i = 0; i < n; i++) {
        if (belay_contest_try(f, &subject, &terms, &claim, &err) != BELAY_OK ||
            claim.is_claimed)
            return 0;
    }
    return n / (bench_ns() - start) * 1e9;
}

/* The ring full of others' frames, the holder's claim, then a block of tries. */
static double seed_block(struct seed_ring *r)
{
    struct seed_holder h;

    seed_reset(r);
    for (unsigned i = 0; i < RING / 2; i++)
        (void)seed_claim(r, (struct seed_subject){ 1, "another" }, "w", i < 1, 1, &h);
    while (r->head < RING)
        (void)seed_claim(r, (struct seed_subject){ 1, "another" }, "w", 0, 1, &h);
    if (seed_claim(r, seed_subject, "holder", 3600000, 1, &h) != SEED_CLAIMED)
        return 0;
    double start = bench_ns();
    for (unsigned i = 0; i < BLOCK; i++) {
        if (seed_claim(r, seed_subject, "worker-7", 3600000, 2, &h) != SEED_YIELD)
            return 0;
    }
    return bench_ns() - start;
}

static double run_seed(struct seed_ring *r, unsigned blocks)
{
    double ns = 0;

    for (unsigned i = 0; i < blocks; i++) {
        double block = seed_block(r);
        if (block <= 0)
            return 0;
        ns += block;
    }
    return blocks * BLOCK / ns * 1e9;
}

/* A table of leases behind a file lock, as it is usually written: a mutex for the threads of
 * the process, the lock for the others, then hash, probe, compare, and who holds it. */
#define SLOTS 1024

struct table_slot {
    uint64_t hash, claim_id, claimed_at_ms, expires_at_ms;
    uint16_t subject_len, owner_len;
    uint8_t state, kind;
    char text[235];
};

struct table {
    pthread_mutex_t mutex;
    struct table_slot slots[SLOTS];
};

static uint64_t fnv(uint8_t kind, const char *label, size_t len)
{
    uint64_t h = (UINT64_C(14695981039346656037) ^ kind) * 1099511628211U;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)label[i]) * 1099511628211U;
    return h;
}

static struct table_slot *table_find(struct table *t, uint64_t hash)
{
    for (uint64_t i = hash;; i++) {
        struct table_slot *slot = &t->slots[i & (SLOTS - 1)];
        if (slot->state == 0 ||
            (slot->hash == hash && slot->kind == subject.kind &&
             slot->subject_len == subject.label_len &&
             memcmp(slot->text, subject.label, subject.label_len) == 0))
            return slot;
    }
}

static void table_fill(struct table *t)
{
    uint64_t hash = fnv(subject.kind, subject.label, subject.label_len);
    struct table_slot *slot = table_find(t, hash);

    *slot = (struct table_slot){ .hash = hash,
                                 .expires_at_ms = UINT64_MAX,
                                 .subject_len = (uint16_t)subject.label_len,
                                 .owner_len = (uint16_t)terms.owner_len,
                                 .state = 1,
                                 .kind = subject.kind };
    memcpy(slot->text, subject.label, subject.label_len);
    memcpy(slot->text + subject.label_len, terms.owner, terms.owner_len);
}

static bool table_try(struct table *t, const char *path, struct table_slot *out)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)pthread_mutex_lock(&t->mutex);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool ok = fd >= 0 && flock(fd, LOCK_EX) == 0;
    if (ok) {
        struct table_slot *slot =
            table_find(t, fnv(subject.kind, subject.label, subject.label_len));
        ok = slot->state == 1 && slot->expires_at_ms > (uint64_t)now.tv_sec * 1000;
        memcpy(out, slot, offsetof(struct table_slot, text));
        memcpy(out->text, slot->text + slot->subject_len, slot->owner_len);
    }
    (void)close(fd);
    (void)pthread_mutex_unlock(&t->mutex);
    return ok;
}

static double run_flock(struct table *t, const char *path, unsigned n)
{
    struct table_slot holder;
    double start = bench_ns();

    for (unsigned i = 0; i < n; i++) {
        if (!table_try(t, path, &holder))
            return 0;
    }
    return n / (bench_ns() - start) * 1e9;
}

static int measure(struct belay_fleet *f, struct seed_ring *r, struct table *t,
                   const char *path, const struct bench_options *o)
{
    double belay[ROUNDS], seed[ROUNDS], table[ROUNDS], ratio[ROUNDS],
        ratio_flock[ROUNDS];
    bool ok = true;

    for (unsigned i = 0; i < ROUNDS && ok; i++) {
        seed[i] = run_seed(r, o->smoke ? 1 : 60);
        belay[i] = run_belay(f, o->smoke ? 500 : 1000000);
        table[i] = run_flock(t, path, o->smoke ? 10 : 30000);
        ok = seed[i] > 0 && belay[i] > 0 && table[i] > 0;
        ratio[i] = ok ? belay[i] / seed[i] : 0;
        ratio_flock[i] = ok ? belay[i] / table[i] : 0;
    }
    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(ratio, ROUNDS));
        bench_field(&fields, "ratio_flock", bench_median(ratio_flock, ROUNDS));
        bench_field(&fields, "per_s", bench_median(belay, ROUNDS));
        bench_limit(o, &fields, "seed_per_s", seed, ROUNDS);
        bench_limit(o, &fields, "flock_per_s", table, ROUNDS);
    }
    return bench_finish(o, "fleet.vs_seed", &fields, ok);
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    struct belay_fleet_options options = { .size = sizeof(options) };
    struct belay_fleet *f, *loser;
    struct belay_contest_claim held;
    struct belay_error err;
    struct seed_ring ring;
    struct table *table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char name[32], path[64];

    bench_fleet_name(name);
    (void)snprintf(path, sizeof(path), "/dev/shm/%s.lock", name);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || table == MAP_FAILED || pthread_mutex_init(&table->mutex, NULL) ||
        !seed_open(&ring, RING) || !bench_pin(0) ||
        belay_fleet_join(name, &options, &f, &err) ||
        belay_fleet_join_beside(f, NULL, &loser, &err) ||
        belay_contest_try(f, &subject, &terms, &held, &err) || !held.is_claimed) {
        (void)fprintf(stderr, "fleet.vs_seed: cannot begin\n");
        return 1;
    }
    table_fill(table);
    int code = measure(loser, &ring, table, path, &o);
    belay_fleet_leave(loser);
    belay_fleet_leave(f);
    if (belay_fleet_remove(name, NULL, &err) != BELAY_OK)
        code = 1;
    seed_close(&ring);
    (void)close(fd);
    (void)unlink(path);
    return code;
}
