/* fakes.h - time and chance that a test holds in its hands. */
#ifndef TESTS_FAKES_H
#define TESTS_FAKES_H

#include <stdatomic.h>

#include <belay/hooks.h>

/* A clock that stands still until it is moved; sleeping moves it. */
struct fake_clock {
    _Atomic int64_t wall_ms;
    _Atomic int64_t mono_us;
};

static inline int64_t fake_wall_ms(void *arg)
{
    return atomic_load(&((struct fake_clock *)arg)->wall_ms);
}

static inline int64_t fake_mono_us(void *arg)
{
    return atomic_load(&((struct fake_clock *)arg)->mono_us);
}

static inline void fake_advance_us(struct fake_clock *c, int64_t us)
{
    int64_t before = atomic_fetch_add(&c->mono_us, us);

    atomic_fetch_add(&c->wall_ms, (before + us) / 1000 - before / 1000);
}

static inline void fake_sleep_us(void *arg, int64_t us)
{
    fake_advance_us(arg, us);
}

static inline struct belay_clock fake_clock_hook(struct fake_clock *c)
{
    return (struct belay_clock){ .wall_ms = fake_wall_ms,
                                 .mono_us = fake_mono_us,
                                 .sleep_us = fake_sleep_us,
                                 .arg = c };
}

/* A seeded source of "random" bytes: the same seed, the same bytes. */
struct fake_random {
    _Atomic uint64_t state;
};

static inline int fake_fill(void *arg, void *out, size_t n)
{
    struct fake_random *r = arg;
    unsigned char *p = out;

    for (size_t i = 0; i < n; i++) {
        uint64_t z = atomic_fetch_add(&r->state, UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        p[i] = (unsigned char)((z ^ (z >> 31)) >> 24);
    }
    return 0;
}

static inline struct belay_random fake_random_hook(struct fake_random *r)
{
    return (struct belay_random){ .fill = fake_fill, .arg = r };
}

#endif /* TESTS_FAKES_H */
