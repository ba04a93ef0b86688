/* rng.h - fast numbers for versions and jitter; not for secrets.
 *
 * A counter stepped by an odd constant and mixed (splitmix64): safe to use from many
 * threads without a lock, and the same seed gives the same sequence to one thread.
 * Secrets come from random_bytes() in hash.h.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdatomic.h>
#include <stdint.h>

struct rng {
    _Atomic uint64_t state;
};

void rng_init(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);

/* Uniform in 0..n-1; n must not be 0. */
uint64_t rng_below(struct rng *r, uint64_t n);

#endif /* BASE_RNG_H */
