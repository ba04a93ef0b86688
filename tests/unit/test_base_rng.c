#include "base/rng.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/attr.h"
#include "tap.h"

/* Published outputs of splitmix64 for the seed 1234567. */
static const uint64_t published[] = {
    UINT64_C(6457827717110365317),  UINT64_C(3203168211198807973),
    UINT64_C(9817491932198370423),  UINT64_C(4593380528125082431),
    UINT64_C(16408922859458223821),
};

static void test_sequence(struct tap *t)
{
    struct rng r;

    rng_init(&r, 1234567);
    for (size_t i = 0; i < COUNT_OF(published); i++)
        TAP_OK(t, rng_next(&r) == published[i]);
    rng_init(&r, 1234567);
    TAP_OK(t, rng_next(&r) == published[0]);
    rng_init(&r, 1234568);
    TAP_OK(t, rng_next(&r) != published[0]);
}

static void test_below(struct tap *t)
{
    static const uint64_t bounds[] = {
        1, 2, 3, 10, 1000, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, UINT64_MAX,
    };
    struct rng r;
    unsigned outside = 0;

    rng_init(&r, 7);
    for (size_t i = 0; i < COUNT_OF(bounds); i++) {
        for (unsigned k = 0; k < 1000; k++)
            outside += rng_below(&r, bounds[i]) >= bounds[i];
    }
    TAP_EQ(t, outside, 0);
}

static void test_uniform(struct tap *t)
{
    unsigned seen[10] = { 0 };
    struct rng r;

    rng_init(&r, 8);
    for (unsigned i = 0; i < 100000; i++)
        seen[rng_below(&r, 10)]++;
    for (size_t i = 0; i < COUNT_OF(seen); i++)
        TAP_OK(t, seen[i] > 9500 && seen[i] < 10500); /* five standard deviations */

    /* Three quarters of 2^64: a plain remainder would favour the lower third. */
    uint64_t n = UINT64_C(3) << 62;
    unsigned low = 0;
    for (unsigned i = 0; i < 30000; i++)
        low += rng_below(&r, n) < n / 3;
    TAP_OK(t, low > 9500 && low < 10500);
}

#define THREADS 4
#define DRAWS 20000

struct drawer {
    struct rng *r;
    uint64_t drawn[DRAWS];
};

static void *draw(void *arg)
{
    struct drawer *d = arg;

    for (size_t i = 0; i < DRAWS; i++)
        d->drawn[i] = rng_next(d->r);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* splitmix64 is a bijection of its counter: a number drawn twice is a lost step. */
static void test_threads(struct tap *t)
{
    struct rng r;
    struct drawer *d = calloc(THREADS, sizeof(*d));
    uint64_t *all = calloc((size_t)THREADS * DRAWS, sizeof(*all));
    pthread_t threads[THREADS];
    unsigned repeated = 0;

    rng_init(&r, 9);
    if (!TAP_OK(t, d && all))
        goto out;
    for (size_t i = 0; i < THREADS; i++) {
        d[i].r = &r;
        TAP_EQ(t, pthread_create(&threads[i], NULL, draw, &d[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        memcpy(all + i * DRAWS, d[i].drawn, sizeof(d[i].drawn));
    }
    qsort(all, (size_t)THREADS * DRAWS, sizeof(*all), compare);
    for (size_t i = 1; i < (size_t)THREADS * DRAWS; i++)
        repeated += all[i] == all[i - 1];
    TAP_EQ(t, repeated, 0);
out:
    free(all);
    free(d);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a seed gives the published sequence", test_sequence },
        { "a number below n is below n", test_below },
        { "numbers below n are uniform", test_uniform },
        { "threads never draw the same number", test_threads },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
