#include "base/rng.h"

/* The odd step and the mixing constants are those of splitmix64 (Steele, Lea and Flood,
 * "Fast splittable pseudorandom number generators", 2014). */
#define STEP UINT64_C(0x9e3779b97f4a7c15)

void rng_init(struct rng *r, uint64_t seed)
{
    atomic_init(&r->state, seed);
}

uint64_t rng_next(struct rng *r)
{
    uint64_t z =
        atomic_fetch_add_explicit(&r->state, STEP, memory_order_relaxed) + STEP;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    /* 2^64 mod n values at the bottom are drawn again: without them every remainder is
     * equally likely. */
    uint64_t uneven = (0 - n) % n;
    uint64_t x;

    do {
        x = rng_next(r);
    } while (x < uneven);
    return x % n;
}
