/* test_fleet_cache.h - what the tests of the cache share. */
#ifndef TESTS_UNIT_TEST_FLEET_CACHE_H
#define TESTS_UNIT_TEST_FLEET_CACHE_H

#include <belay/cache.h>

#include "fleet/cache_impl.h"
#include "fleet/step.h"
#include "test_fleet.h"

static inline struct belay_cache *must_open(struct belay_fleet *f, int32_t entries,
                                            int64_t arena_len, const char *prefix)
{
    struct belay_cache_options o = {
        .size = sizeof(o), .entries = entries, .arena_len = arena_len, .prefix = prefix
    };
    struct belay_cache *c = NULL;
    struct belay_error err;

    if (belay_cache_open(f, &o, &c, &err) != BELAY_OK) {
        printf("Bail out! open: %s\n", err.message);
        exit(1);
    }
    return c;
}

static inline belay_rc put(struct belay_cache *c, const char *key, const char *value,
                           int64_t ttl_ms)
{
    return belay_cache_put(c, key, strlen(key), value, strlen(value), ttl_ms, NULL,
                           NULL);
}

static inline struct belay_cache_got get_whole(struct belay_cache *c, const char *key,
                                               char *buf, size_t len)
{
    struct belay_cache_got got = { .epoch = UINT64_MAX };

    memset(buf, 0, len);
    if (belay_cache_get(c, key, strlen(key), buf, len - 1, &got, NULL) != BELAY_OK)
        (void)snprintf(buf, len, "failed");
    return got;
}

/* The value; "-" for a miss. */
static inline const char *get(struct belay_cache *c, const char *key)
{
    static char buf[256];

    return get_whole(c, key, buf, sizeof(buf)).is_hit || strcmp(buf, "failed") == 0
               ? buf
               : "-";
}

#define IS(t, a, b) TAP_OK(t, strcmp(a, b) == 0)

/* --- at random --- */

#define KEYS 12

/* A value tells whose it is: a word, over and over. */
static inline size_t value_of(uint64_t n, uint64_t *out)
{
    size_t words = 1 + n * 31 % 400;

    for (size_t i = 0; i < words; i++)
        out[i] = n;
    return words * 8;
}

static inline bool is_whole(const uint64_t *value, size_t len)
{
    uint64_t want[401];

    return len >= 8 && len <= sizeof(want) && value_of(value[0], want) == len &&
           memcmp(want, value, len) == 0;
}

/* Puts, gets and deletes at random; false when something was torn or failed. */
static inline bool use_at_random(struct belay_cache *c, unsigned *seed, unsigned n)
{
    uint64_t value[401], got_value[401];
    struct belay_cache_got got;
    struct belay_error err;

    for (unsigned i = 0; i < n; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "key-%d", rand_r(seed) % KEYS);
        belay_rc rc = BELAY_OK;
        bool is_good = true;
        switch (rand_r(seed) % 8) {
        case 0:
        case 1:
            rc = belay_cache_put(c, key, strlen(key), value,
                                 value_of((uint64_t)rand_r(seed), value),
                                 rand_r(seed) % 3, NULL, &err);
            break;
        case 2:
            rc = belay_cache_delete(c, key, strlen(key), NULL, &err);
            break;
        default:
            rc = belay_cache_get(c, key, strlen(key), got_value, sizeof(got_value),
                                 &got, &err);
            is_good = rc != BELAY_OK || !got.is_hit || is_whole(got_value, got.len);
            break;
        }
        /* The places of a key may all be in somebody's hands for a moment. */
        if (!is_good || (rc != BELAY_OK && rc != BELAY_NO_MEMORY))
            return false;
    }
    return true;
}

#endif /* TESTS_UNIT_TEST_FLEET_CACHE_H */
