/* fleet.cache - a get of 64 bytes, one of 1000 keys, against a load of a value of 64 bytes
 * (value.h), which knows where to look; `ratio_memcpy`: against the keyed hash of the key and a
 * copy of 64 bytes, the least a look-up by key can do.  `ratio_put`: a put over an old value,
 * logged, against a get. */
#include <stdio.h>
#include <string.h>

#include <belay/cache.h>
#include <belay/fleet.h>
#include <belay/value.h>

#include "bench.h"
#include "fleet/impl.h"
#include "pinned.h"

#define ROUNDS 9
#define KEYS 1000
#define LEN 64

struct named {
    char text[24];
    size_t len;
};

struct scene {
    struct belay_fleet *f;
    struct belay_cache *c;
    struct belay_value v;
    struct named keys[KEYS];
    uint8_t area[KEYS][LEN];
};

static double run_get(struct scene *s, unsigned n)
{
    struct belay_cache_got got;
    struct belay_error err;
    uint8_t buf[LEN];
    double start = bench_ns();

    for (unsigned i = 0; i < n; i++) {
        const struct named *k = &s->keys[i * 7 % KEYS];
        if (belay_cache_get(s->c, k->text, k->len, buf, sizeof(buf), &got, &err) !=
                BELAY_OK ||
            !got.is_hit)
            return 0;
    }
    return (bench_ns() - start) / n;
}

static double run_put(struct scene *s, unsigned n)
{
    struct belay_error err;
    uint8_t buf[LEN] = { 1 };
    double start = bench_ns();

    for (unsigned i = 0; i < n; i++) {
        const struct named *k = &s->keys[i * 7 % KEYS];
        if (belay_cache_put(s->c, k->text, k->len, buf, sizeof(buf), 0, NULL, &err) !=
            BELAY_OK)
            return 0;
    }
    return (bench_ns() - start) / n;
}

static double run_load(struct scene *s, unsigned n)
{
    struct belay_error err;
    uint8_t buf[LEN];
    double start = bench_ns();

    for (unsigned i = 0; i < n; i++) {
        if (belay_value_load(&s->v, buf, NULL, &err) != BELAY_OK)
            return 0;
    }
    return (bench_ns() - start) / n;
}

static double run_limit(struct scene *s, unsigned n)
{
    uint8_t buf[LEN];
    uint64_t sum = 0;
    double start = bench_ns();

    for (unsigned i = 0; i < n; i++) {
        const struct named *k = &s->keys[i * 7 % KEYS];
        sum += fleet_hash(s->f->key, 3, k->text, k->len);
        memcpy(buf, s->area[i * 7 % KEYS], LEN);
        __asm__ volatile("" ::"r"(buf), "r"(sum) : "memory");
    }
    return (bench_ns() - start) / n;
}

static bool prepare(struct scene *s)
{
    struct belay_fleet_options o = { .size = sizeof(o) };
    /* Room enough that no set of entries overflows. */
    struct belay_cache_options co = { .size = sizeof(co), .entries = 16 * 1024 };
    struct belay_error err;
    uint8_t value[LEN] = { 1 };
    char name[32];

    bench_fleet_name(name);
    if (belay_fleet_join(name, &o, &s->f, &err) ||
        belay_cache_open(s->f, &co, &s->c, &err) ||
        belay_value_open(s->f, 7, "value", LEN, 1, &s->v, &err) ||
        belay_value_store(&s->v, value, NULL, &err)) {
        (void)fprintf(stderr, "bench: %s\n", err.message);
        return false;
    }
    for (unsigned i = 0; i < KEYS; i++) {
        s->keys[i].len = (size_t)snprintf(s->keys[i].text, sizeof(s->keys[i].text),
                                          "user:%u", i * 7919);
    }
    return run_put(s, KEYS) > 0;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 3 : ROUNDS, n = o.smoke ? 1000 : 400000;
    double get[ROUNDS], put[ROUNDS], load[ROUNDS], limit[ROUNDS];
    static struct scene s;
    bool ok = bench_pin(0) && prepare(&s);
    char name[32];

    for (unsigned i = 0; i < rounds && ok; i++) {
        limit[i] = run_limit(&s, n);
        load[i] = run_load(&s, n);
        get[i] = run_get(&s, n);
        put[i] = run_put(&s, n / 4);
        ok = get[i] > 0 && put[i] > 0 && load[i] > 0;
    }
    belay_fleet_leave(s.f);
    bench_fleet_name(name);
    (void)!belay_fleet_remove(name, NULL, NULL);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        double ns = bench_median(get, rounds);
        bench_field(&fields, "ratio", ns / bench_median(load, rounds));
        bench_field(&fields, "ratio_memcpy", ns / bench_median(limit, rounds));
        bench_field(&fields, "ratio_put", bench_median(put, rounds) / ns);
        bench_field(&fields, "get_ns", ns);
        bench_limit(&o, &fields, "load_ns", load, rounds);
        bench_limit(&o, &fields, "limit_ns", limit, rounds);
    }
    return bench_finish(&o, "fleet.cache", &fields, ok);
}
