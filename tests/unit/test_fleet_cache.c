/* The cache: what is put is got, whole, until it expires, is deleted or its room is needed;
 * whoever put it and wherever that one was killed. */
#include <pthread.h>
#include <stdatomic.h>

#include "test_fleet_cache.h"

#define BIG 20000

/* --- one after the other --- */

static void what_is_put_is_got(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("cache", &o), *g = must_join_beside(f);
    struct belay_cache *a = must_open(f, 64, 65536, NULL);
    struct belay_cache *b = must_open(g, 0, 0, NULL);
    struct belay_cache_got got;
    uint64_t first = 0, second = 0;
    char buf[64];
    bool was;

    got = get_whole(a, "k", buf, sizeof(buf));
    TAP_OK(t, !got.is_hit);
    TAP_EQ(t, got.epoch, 0); /* nothing ever took it away */
    TAP_EQ(t, belay_cache_put(a, "k", 1, "one", 3, 0, &first, NULL), BELAY_OK);
    got = get_whole(b, "k", buf, sizeof(buf));
    IS(t, buf, "one");
    TAP_EQ(t, got.epoch, first);
    TAP_EQ(t, got.len, 3);
    TAP_EQ(t, got.ttl_ms, 0);
    TAP_EQ(t, belay_cache_put(b, "k", 1, "two", 3, 60000, &second, NULL), BELAY_OK);
    TAP_OK(t, second > first);
    got = get_whole(a, "k", buf, sizeof(buf));
    IS(t, buf, "two");
    TAP_OK(t, got.ttl_ms > 50000 && got.ttl_ms <= 60000);
    TAP_EQ(t, put(a, "k", "", 0), BELAY_OK);
    got = get_whole(b, "k", buf, sizeof(buf));
    TAP_OK(t, got.is_hit && got.len == 0);

    TAP_EQ(t, belay_cache_delete(b, "k", 1, &was, NULL), BELAY_OK);
    TAP_OK(t, was);
    got = get_whole(a, "k", buf, sizeof(buf));
    TAP_OK(t, !got.is_hit);
    TAP_OK(t, got.epoch > second); /* the delete's, or later */
    TAP_EQ(t, belay_cache_delete(b, "k", 1, &was, NULL), BELAY_OK);
    TAP_OK(t, !was);
    belay_cache_close(a);
    belay_cache_close(NULL);
    belay_fleet_leave(f); /* b is g's and goes with it */
    IS(t, get(b, "k"), "-");
    belay_fleet_leave(g);
}

static void keys_and_values_of_any_length(struct tap *t)
{
    static const size_t keys[] = { 1, 7, 8, 9, 191, 192, 193, 1000, 4096 };
    static const size_t values[] = { 0, 1, 8, 183, 184, 185, 1216, 1217, 5000, BIG };
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("cache", &o);
    struct belay_cache *c = must_open(f, 1024, 1 << 20, NULL);
    static char key[4096], value[BIG], buf[BIG];
    struct belay_cache_got got;
    struct belay_error err;

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        for (size_t j = 0; j < COUNT_OF(values); j++) {
            memset(key, (int)('a' + j), sizeof(key));
            memset(value, (int)('A' + i), sizeof(value));
            TAP_EQ(t, belay_cache_put(c, key, keys[i], value, values[j], 0, NULL, &err),
                   BELAY_OK);
        }
    }
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        for (size_t j = 0; j < COUNT_OF(values); j++) {
            memset(key, (int)('a' + j), sizeof(key));
            memset(value, (int)('A' + i), sizeof(value));
            TAP_EQ(t, belay_cache_get(c, key, keys[i], buf, sizeof(buf), &got, &err),
                   BELAY_OK);
            TAP_OK(t, got.is_hit && got.len == values[j] &&
                          memcmp(buf, value, values[j]) == 0);
        }
    }
    memset(key, 'a' + 9, sizeof(key));
    TAP_EQ(t, belay_cache_get(c, key, 9, buf, BIG - 1, &got, &err), BELAY_OUT_OF_RANGE);
    TAP_EQ(t, err.expected, BIG);
    TAP_EQ(t, belay_cache_get(c, key, 0, buf, BIG, &got, &err), BELAY_INVALID);
    TAP_EQ(t, belay_cache_put(c, key, 0, buf, 1, 0, NULL, &err), BELAY_INVALID);
    TAP_EQ(t, belay_cache_put(c, key, 4097, buf, 1, 0, NULL, &err), BELAY_INVALID);
    TAP_EQ(t, belay_cache_put(c, key, 1, buf, 1, -1, NULL, &err), BELAY_INVALID);
    TAP_EQ(t, belay_cache_put(c, key, 1, buf, (1 << 19) + 1, 0, NULL, &err),
           BELAY_INVALID);
    IS(t, err.reason, "too_large");
    TAP_EQ(t, err.expected, 1 << 19);
    belay_fleet_leave(f);
}

static void what_expires_is_gone_at_its_deadline(struct tap *t)
{
    struct belay_fleet_options o =
        small_fleet(BELAY_FLEET_PRIVATE | BELAY_FLEET_VIRTUAL_CLOCK);
    struct belay_fleet *f = must_join("cache", &o);
    struct belay_cache *c = must_open(f, 64, 65536, NULL);
    struct belay_cache_got got;
    char buf[64];

    TAP_EQ(t, belay_cache_tell_time(c, 1000, NULL), BELAY_OK);
    TAP_EQ(t, put(c, "a", "short", 1), BELAY_OK);
    TAP_EQ(t, put(c, "b", "long", 500), BELAY_OK);
    TAP_EQ(t, put(c, "c", "never", 0), BELAY_OK);
    uint64_t epoch = get_whole(c, "a", buf, sizeof(buf)).epoch;
    TAP_EQ(t, get_whole(c, "a", buf, sizeof(buf)).ttl_ms, 1);
    TAP_EQ(t, belay_cache_tell_time(c, 1001, NULL), BELAY_OK);
    got = get_whole(c, "a", buf, sizeof(buf));
    TAP_OK(t, !got.is_hit); /* dead at equality */
    TAP_EQ(t, got.epoch, epoch);
    TAP_EQ(t, belay_cache_tell_time(c, 1499, NULL), BELAY_OK);
    got = get_whole(c, "b", buf, sizeof(buf));
    TAP_OK(t, got.is_hit && got.ttl_ms == 1);
    TAP_OK(t, belay_cache_is_current(c, &got.stamp));
    TAP_EQ(t, belay_cache_tell_time(c, 1500, NULL), BELAY_OK);
    TAP_OK(t, !belay_cache_is_current(c, &got.stamp));
    IS(t, get(c, "b"), "-");
    IS(t, get(c, "c"), "never");
    TAP_EQ(t, put(c, "a", "again", 10), BELAY_OK);
    IS(t, get(c, "a"), "again");
    belay_fleet_leave(f);

    o = small_fleet(BELAY_FLEET_PRIVATE);
    f = must_join("cache", &o);
    c = must_open(f, 64, 65536, NULL);
    TAP_EQ(t, belay_cache_tell_time(c, 1, NULL), BELAY_MISUSE);
    TAP_EQ(t, put(c, "a", "short", 20), BELAY_OK);
    (void)usleep(40000);
    IS(t, get(c, "a"), "-");
    belay_fleet_leave(f);
}

static void a_prefix_keeps_handles_apart(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("cache", &o);
    struct belay_cache *a = must_open(f, 256, 65536, "a/");
    struct belay_cache *b = must_open(f, 256, 65536, "b/");
    struct belay_cache *all = must_open(f, 256, 65536, NULL);
    struct belay_cache_entry list[16];
    uint64_t cursor = 0;
    size_t n = 0;

    TAP_EQ(t, put(a, "x1", "1", 0), BELAY_OK);
    TAP_EQ(t, put(a, "x2", "2", 0), BELAY_OK);
    TAP_EQ(t, put(a, "y", "3", 90000), BELAY_OK);
    TAP_EQ(t, put(b, "x1", "4", 0), BELAY_OK);
    IS(t, get(a, "x1"), "1");
    IS(t, get(b, "x1"), "4");
    IS(t, get(b, "y"), "-");
    IS(t, get(all, "a/y"), "3");
    TAP_EQ(t, belay_cache_list(a, &cursor, list, 16, &n, NULL), BELAY_OK);
    TAP_EQ(t, n, 3);
    TAP_EQ(t, cursor, 0);
    for (size_t i = 0; i < n; i++) {
        TAP_EQ(t, list[i].len, 1);
        TAP_OK(t, (list[i].key[0] == 'y') == (list[i].ttl_ms > 0));
    }
    n = 0;
    for (size_t got = 1; got > 0;) {
        TAP_EQ(t, belay_cache_list(all, &cursor, list, 1, &got, NULL), BELAY_OK);
        n += got;
        if (cursor == 0)
            break;
    }
    TAP_EQ(t, n, 4);
    TAP_EQ(t, belay_cache_reset(a, "x", 1, &n, NULL), BELAY_OK);
    TAP_EQ(t, n, 2);
    IS(t, get(a, "x1"), "-");
    IS(t, get(a, "y"), "3");
    IS(t, get(b, "x1"), "4");
    TAP_EQ(t, belay_cache_reset(all, NULL, 0, &n, NULL), BELAY_OK);
    TAP_EQ(t, n, 2);
    TAP_EQ(t, put(a, "z", "5", 0), BELAY_OK);
    TAP_EQ(t, belay_fleet_reset(f, NULL), BELAY_OK);
    IS(t, get(a, "z"), "-");
    belay_fleet_leave(f);
}

static void a_stamp_tells_when_to_look_again(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("cache", &o);
    struct belay_cache *c = must_open(f, 1024, 65536, NULL);
    struct belay_cache_got miss, hit;
    char buf[64];

    miss = get_whole(c, "k", buf, sizeof(buf));
    TAP_OK(t, belay_cache_is_current(c, &miss.stamp));
    TAP_EQ(t, put(c, "k", "1", 0), BELAY_OK);
    TAP_OK(t, !belay_cache_is_current(c, &miss.stamp));
    hit = get_whole(c, "k", buf, sizeof(buf));
    TAP_OK(t, belay_cache_is_current(c, &hit.stamp));
    TAP_OK(t, get_whole(c, "k", buf, sizeof(buf)).stamp.words == hit.stamp.words);
    TAP_EQ(t, put(c, "k", "1", 0), BELAY_OK);
    TAP_OK(t, !belay_cache_is_current(c, &hit.stamp));
    hit = get_whole(c, "k", buf, sizeof(buf));
    TAP_EQ(t, belay_cache_delete(c, "k", 1, NULL, NULL), BELAY_OK);
    TAP_OK(t, !belay_cache_is_current(c, &hit.stamp));
    belay_fleet_leave(f);
}

static void the_log_tells_of_changes(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("cache", &o);
    struct belay_cache *c = must_open(f, 64, 65536, "p/");
    static char big[300];
    static _Alignas(8) uint8_t buf[4096];
    struct belay_ring_frame frames[8];
    struct belay_ring_cursor *cursor;
    struct belay_ring_poll poll;
    struct belay_ring *ring;
    /* op | key_len | value_len | expires_at_ms | key | value */
    static const uint8_t first[] = { 1, 4, 0, 1, 0,   0,   0,   0,   0,
                                     0, 0, 0, 0, 'p', '/', 'k', '1', 'v' };

    memset(big, 'b', sizeof(big));
    TAP_EQ(t, belay_cache_log(c, &ring, NULL), BELAY_OK);
    TAP_EQ(t, belay_ring_cursor_open(ring, BELAY_RING_HEAD, &cursor, NULL), BELAY_OK);
    TAP_EQ(t, put(c, "k1", "v", 0), BELAY_OK);
    TAP_EQ(t, belay_cache_put(c, "k2", 2, big, sizeof(big), 1000, NULL, NULL),
           BELAY_OK);
    TAP_EQ(t, belay_cache_put(c, big, sizeof(big), "v", 1, 0, NULL, NULL), BELAY_OK);
    TAP_EQ(t, belay_cache_delete(c, "k1", 2, NULL, NULL), BELAY_OK);
    TAP_EQ(t, belay_cache_reset(c, "k", 1, NULL, NULL), BELAY_OK);
    TAP_EQ(t, belay_ring_poll(cursor, frames, 8, buf, sizeof(buf), &poll, NULL),
           BELAY_OK);
    if (TAP_EQ(t, poll.n_frames, 5)) {
        static const uint8_t ops[] = { 1, 1, 3, 2, 3 }, kinds[] = { 1, 2, 2, 1, 1 };
        static const size_t lens[] = { 18, 17, 256, 17, 16 };
        for (int i = 0; i < 5; i++) {
            TAP_EQ(t, ((const uint8_t *)frames[i].data)[0], ops[i]);
            TAP_EQ(t, frames[i].kind, kinds[i]);
            TAP_EQ(t, frames[i].len, lens[i]);
            TAP_OK(t, i == 0 || frames[i].ver > frames[i - 1].ver);
        }
        TAP_OK(t, memcmp(frames[0].data, first, sizeof(first)) == 0);
        uint64_t expires;
        memcpy(&expires, (const uint8_t *)frames[1].data + 5, 8);
        struct belay_clock clock = f->clock;
        int64_t left = (int64_t)expires - clock.wall_ms(clock.arg);
        TAP_OK(t, left > -5000 && left <= 1100);
    }
    belay_ring_cursor_close(cursor);
    belay_fleet_leave(f);
}

/* --- room --- */

static void room_is_made_by_evicting(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("cache", &o);
    struct belay_cache *c = must_open(f, 64, 65536, NULL);
    struct belay_cache_status s = { .size = sizeof(s) };
    static char value[30000], buf[30000];
    struct belay_cache_got got;
    unsigned there = 0;
    char key[32];

    /* More keys than places. */
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof(key), "key-%d", i);
        TAP_EQ(t, put(c, key, "v", 0), BELAY_OK);
        IS(t, get(c, key), "v");
    }
    TAP_EQ(t, belay_cache_status(c, &s, NULL), BELAY_OK);
    TAP_EQ(t, s.entries, 64);
    TAP_OK(t, s.entries_used > 56 && s.entries_used <= 64);
    TAP_EQ(t, s.evicted, 1000 - (uint64_t)s.entries_used);

    /* What is used all the time stays, from the first time on: what was only put may go at
     * once, if the hand is there. */
    TAP_EQ(t, put(c, "dear", "v", 0), BELAY_OK);
    IS(t, get(c, "dear"), "v");
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof(key), "more-%d", i);
        TAP_EQ(t, put(c, key, "v", 0), BELAY_OK);
        there += get(c, "dear")[0] == 'v';
    }
    TAP_EQ(t, there, 1000);

    /* More bytes than the arena has: 64 chunks. */
    for (int i = 0; i < 200; i++) {
        size_t len = (size_t)(i * 37 % 29000);
        memset(value, 'a' + i % 26, len);
        (void)snprintf(key, sizeof(key), "big-%d", i % 20);
        TAP_EQ(t, belay_cache_put(c, key, strlen(key), value, len, 0, NULL, NULL),
               BELAY_OK);
        TAP_EQ(t, belay_cache_get(c, key, strlen(key), buf, sizeof(buf), &got, NULL),
               BELAY_OK);
        TAP_OK(t, got.is_hit && got.len == len && memcmp(buf, value, len) == 0);
    }
    TAP_EQ(t, belay_cache_status(c, &s, NULL), BELAY_OK);
    TAP_OK(t, s.arena_used <= s.arena_len && s.arena_used > 0);
    TAP_EQ(t, s.arena_len, 65536);

    /* What has expired goes first. */
    TAP_EQ(t, belay_cache_reset(c, NULL, 0, NULL, NULL), BELAY_OK);
    for (int i = 0; i < 60; i++) {
        (void)snprintf(key, sizeof(key), "brief-%d", i);
        TAP_EQ(t, put(c, key, "v", 1), BELAY_OK);
    }
    (void)usleep(20000);
    TAP_EQ(t, belay_cache_status(c, &s, NULL), BELAY_OK);
    uint64_t evicted = s.evicted;
    TAP_EQ(t, s.entries_used, 0);
    for (int i = 0; i < 8; i++) {
        (void)snprintf(key, sizeof(key), "lasting-%d", i);
        TAP_EQ(t, put(c, key, "v", 0), BELAY_OK);
    }
    TAP_EQ(t, belay_cache_status(c, &s, NULL), BELAY_OK);
    TAP_EQ(t, s.evicted, evicted);
    belay_fleet_leave(f);
}

/* Stops in a step, for ever: threads in the place of stopped processes. */
struct stop {
    enum fleet_step at;
    _Atomic int has, go;
};

static void stop_in_step(void *arg, enum fleet_step step)
{
    struct stop *s = arg;

    if (step != s->at || atomic_load(&s->has) != 0)
        return;
    atomic_store(&s->has, 1);
    while (atomic_load(&s->go) == 0)
        (void)usleep(200);
}

struct putter {
    struct belay_cache *c;
    const char *key, *value;
    size_t len;
};

static void *put_once(void *arg)
{
    struct putter *p = arg;

    return belay_cache_put(p->c, p->key, strlen(p->key), p->value, p->len, 0, NULL,
                           NULL) == BELAY_OK
               ? NULL
               : arg;
}

static void a_full_arena_is_an_error(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("cache", &o), *g = must_join_beside(f);
    struct belay_cache *c = must_open(f, 8, 4096, NULL);
    struct stop stop = { .at = STEP_CACHE_WRITTEN };
    static char value[2048];
    struct putter p = { must_open(g, 0, 0, NULL), "half", value, sizeof(value) };
    struct belay_error err = { .code = 0 };
    pthread_t thread;
    void *failed = t;

    fleet_set_step(g, stop_in_step, &stop);
    TAP_EQ(t, pthread_create(&thread, NULL, put_once, &p), 0);
    while (atomic_load(&stop.has) == 0)
        (void)usleep(200);
    /* 2 of 4 chunks are somebody's who is alive, and cannot be had. */
    TAP_EQ(t, put(c, "k", "v", 0), BELAY_OK);
    TAP_EQ(t, belay_cache_put(c, "a", 1, value, 2048, 0, NULL, &err), BELAY_OK);
    TAP_EQ(t, belay_cache_put(c, "a-longer-key", 4, value, 2048, 0, NULL, &err),
           BELAY_OK); /* in the place of "a" */
    IS(t, get(c, "a"), "-");
    IS(t, get(c, "k"), "v");
    fleet_set_step(f, NULL, NULL);
    struct stop stop2 = { .at = STEP_CACHE_WRITTEN };
    struct belay_fleet *h = must_join_beside(f);
    struct putter p2 = { must_open(h, 0, 0, NULL), "other", value, sizeof(value) };
    pthread_t thread2;
    fleet_set_step(h, stop_in_step, &stop2);
    TAP_EQ(t, pthread_create(&thread2, NULL, put_once, &p2), 0);
    while (atomic_load(&stop2.has) == 0)
        (void)usleep(200);
    TAP_EQ(t, belay_cache_put(c, "b", 1, value, 2048, 0, NULL, &err), BELAY_NO_MEMORY);
    IS(t, err.reason, "arena");
    IS(t, get(c, "b"), "-");
    IS(t, get(c, "half"), "-"); /* not there before it is whole */
    atomic_store(&stop.go, 1);
    atomic_store(&stop2.go, 1);
    TAP_EQ(t, pthread_join(thread, &failed), 0);
    TAP_OK(t, !failed);
    TAP_EQ(t, pthread_join(thread2, &failed), 0);
    TAP_OK(t, !failed);
    TAP_EQ(t, belay_cache_put(c, "b", 1, value, 2048, 0, NULL, &err), BELAY_OK);
    belay_fleet_leave(h);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

/* A put that was overtaken does not come back over the newer one. */
static void an_overtaken_put_gives_way(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("cache", &o), *g = must_join_beside(f);
    struct belay_cache *c = must_open(f, 64, 65536, NULL);
    struct stop stop = { .at = STEP_CACHE_WRITTEN };
    struct putter p = { must_open(g, 0, 0, NULL), "k", "old", 3 };
    struct belay_cache_status s = { .size = sizeof(s) };
    pthread_t thread;

    fleet_set_step(g, stop_in_step, &stop);
    TAP_EQ(t, pthread_create(&thread, NULL, put_once, &p), 0);
    while (atomic_load(&stop.has) == 0)
        (void)usleep(200);
    TAP_EQ(t, put(c, "k", "new", 0), BELAY_OK);
    atomic_store(&stop.go, 1);
    TAP_EQ(t, pthread_join(thread, NULL), 0);
    IS(t, get(c, "k"), "new");
    TAP_EQ(t, belay_cache_status(c, &s, NULL), BELAY_OK);
    TAP_EQ(t, s.entries_used, 1);

    /* Stopped when both are there: the newer counts, and goes last. */
    struct stop twice = { .at = STEP_CACHE_LIVE };
    struct putter q = { p.c, "k", "newest", 6 };
    fleet_set_step(g, stop_in_step, &twice);
    TAP_EQ(t, pthread_create(&thread, NULL, put_once, &q), 0);
    while (atomic_load(&twice.has) == 0)
        (void)usleep(200);
    TAP_EQ(t, belay_cache_status(c, &s, NULL), BELAY_OK);
    TAP_EQ(t, s.entries_used, 2);
    IS(t, get(c, "k"), "newest");
    TAP_EQ(t, belay_cache_delete(c, "k", 1, NULL, NULL), BELAY_OK);
    IS(t, get(c, "k"), "-");
    atomic_store(&twice.go, 1);
    TAP_EQ(t, pthread_join(thread, NULL), 0);
    IS(t, get(c, "k"), "-");
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

/* --- many at once --- */

#define PUTS 1500

struct crowd {
    struct belay_fleet *f;
    unsigned seed;
};

static void *use_in_thread(void *arg)
{
    struct crowd *w = arg;
    struct belay_cache *c = must_open(w->f, 0, 0, NULL);

    return use_at_random(c, &w->seed, PUTS) ? NULL : arg;
}

static void threads_find_nothing_torn(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("cache", &o);
    struct belay_cache *c = must_open(f, 16, 32768, NULL);
    struct crowd crowd[4];
    pthread_t threads[4];
    void *failed;

    for (unsigned i = 0; i < 4; i++) {
        /* Two members, two threads of each. */
        crowd[i] = (struct crowd){ i % 2 == 0 ? f : crowd[1].f, i + 1 };
        if (i == 1)
            crowd[i].f = must_join_beside(f);
        TAP_EQ(t, pthread_create(&threads[i], NULL, use_in_thread, &crowd[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        TAP_EQ(t, pthread_join(threads[i], &failed), 0);
        TAP_OK(t, !failed);
    }
    TAP_EQ(t, put(c, "last", "one", 0), BELAY_OK);
    IS(t, get(c, "last"), "one");
    belay_fleet_leave(crowd[1].f);
    belay_fleet_leave(f);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "what is put is got", what_is_put_is_got },
        { "keys and values of any length", keys_and_values_of_any_length },
        { "what expires is gone at its deadline",
          what_expires_is_gone_at_its_deadline },
        { "a prefix keeps handles apart", a_prefix_keeps_handles_apart },
        { "a stamp tells when to look again", a_stamp_tells_when_to_look_again },
        { "the log tells of changes", the_log_tells_of_changes },
        { "room is made by evicting", room_is_made_by_evicting },
        { "a full arena is an error", a_full_arena_is_an_error },
        { "an overtaken put gives way", an_overtaken_put_gives_way },
        { "threads find nothing torn", threads_find_nothing_torn },
    };

    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
