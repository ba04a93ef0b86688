#include "faults.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "deeds.h"
#include "proxy.h"

#define URL_MAX 256
#define COLD_POINTS 40
#define STRIDE 3

const struct limits limits_soon = {
    .retries = 3, .retry_first_ms = 5, .retry_jitter = -1, .request_timeout_ms = 400
};

static bool soak;
static const struct fault_target *target;

struct tally {
    int64_t expected; /* deeds that happened for certain */
    unsigned ok, refused, unknown, happened;
};

/* What a call answered, against what is there then. */
static void judge(struct harness *h, const struct deed *d, belay_rc rc, struct tally *n)
{
    if (rc == BELAY_OK) {
        n->ok++;
        n->expected++;
    } else if (rc == BELAY_UNKNOWN_OUTCOME) {
        n->unknown++;
    } else {
        n->refused++;
        CHECK_RC(h, rc, BELAY_UNAVAILABLE);
    }
    int64_t times = deed_times(h, d);
    if (rc == BELAY_UNKNOWN_OUTCOME && times == n->expected + 1)
        n->expected++;
    TAP_EQ(h->t, times, n->expected);
}

static void one_fault(struct harness *h, struct proxy *p, struct deed *d,
                      enum proxy_fault fault, enum proxy_way way, uint64_t after,
                      struct tally *n)
{
    /* The connections are as they are in the middle of work. */
    CHECK_RC(h, harness_run(h, deed_body, d), BELAY_OK);
    n->expected++;
    proxy_arm(p, fault, way, after);
    belay_rc rc = harness_run(h, deed_body, d);
    n->happened += proxy_disarm(p);
    judge(h, d, rc, n);
}

/* Bytes that a deed takes. */
static uint64_t cost(struct harness *h, struct proxy *p, struct deed *d,
                     enum proxy_way way, struct tally *n)
{
    uint64_t before = proxy_bytes(p, way);

    CHECK_RC(h, harness_run(h, deed_body, d), BELAY_OK);
    n->expected++;
    return proxy_bytes(p, way) - before;
}

/* Calls are not all of the same length: a fault may have waited for more than came. */
static void check_happened(struct tap *t, uint64_t n, uint64_t of)
{
    if (!TAP_OK(t, n * 20 >= of * 19))
        printf("# %llu of %llu happened\n", (unsigned long long)n,
               (unsigned long long)of);
}

static void sweep(struct tap *t, enum proxy_fault fault, unsigned points)
{
    CLEANUP(harness_close) struct harness h;
    char url[URL_MAX];
    struct tally n = { .ok = 0 };
    struct deed d;

    struct proxy *p = proxy_open(target->home(), url, sizeof(url));
    target->use(url, &limits_soon);
    if (harness_open(&h, t, HARNESS_REAL_TIME)) {
        deed_found(&h, &d, 0);
        for (enum proxy_way way = PROXY_UP; way <= PROXY_DOWN; way++) {
            (void)cost(&h, p, &d, way, &n);
            uint64_t bytes = cost(&h, p, &d, way, &n);
            for (unsigned i = 0; i < points; i++)
                one_fault(&h, p, &d, fault, way, bytes * i / points, &n);
        }
        check_happened(t, n.happened, (uint64_t)2 * points);
        TAP_EQ(t, deed_times(&h, &d), n.expected); /* and nothing arrives late */
        printf("# of %u: %u done, %u refused, %u unknown\n", 2 * points, n.ok,
               n.refused, n.unknown);
    }
    proxy_close(p);
}

static void cut_anywhere(struct tap *t)
{
    sweep(t, PROXY_CUT, soak ? 2000 : 60);
}

/* --- everything from the first connection on --- */

/* A program that opens the store, does its deed and ends. */
static belay_rc open_and_do(const struct test_driver *on, const char *dir,
                            struct deed *d)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct driver_config config = { .schema = &schema_things,
                                          .clock = clock_system(),
                                          .random = random_system() };
    const struct store_options options = { .schema = &schema_things,
                                           .clock = clock_system(),
                                           .random = random_system() };
    struct driver *driver = NULL;
    struct store *store = NULL;
    struct space *space = NULL;
    belay_rc rc = on->open(&config, dir, &driver, NULL);

    if (rc == BELAY_OK)
        rc = store_open(&store, driver, &options, NULL);
    if (rc == BELAY_OK)
        rc = store_space(store, bytes_str("default"), &space, NULL);
    if (rc == BELAY_OK)
        rc = txn_run(space, deed_body, d, NULL, &arena, NULL);
    store_close(store);
    driver_close(driver);
    return rc;
}

static void cut_from_the_beginning(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    char url[URL_MAX];
    struct tally n = { .ok = 0 };
    struct deed d;

    struct proxy *p = proxy_open(target->home(), url, sizeof(url));
    target->use(target->home(),
                &limits_soon); /* what is there is looked at past the proxy */
    if (harness_open(&h, t, HARNESS_REAL_TIME)) {
        deed_found(&h, &d, 0);
        target->use(url, &limits_soon);
        for (enum proxy_way way = PROXY_UP; way <= PROXY_DOWN; way++) {
            uint64_t before = proxy_bytes(p, way);
            judge(&h, &d, open_and_do(t->arg, h.dir, &d), &n);
            uint64_t bytes = proxy_bytes(p, way) - before;
            for (unsigned i = 0; i < COLD_POINTS; i++) {
                proxy_arm(p, PROXY_CUT, way, bytes * i / COLD_POINTS);
                belay_rc rc = open_and_do(t->arg, h.dir, &d);
                n.happened += proxy_disarm(p);
                judge(&h, &d, rc, &n);
            }
        }
        check_happened(t, n.happened, (uint64_t)2 * COLD_POINTS);
        printf("# of %d: %u done, %u refused, %u unknown\n", 2 * COLD_POINTS, n.ok,
               n.refused, n.unknown);
    }
    proxy_close(p);
}

/* --- every byte of a commit --- */

/* Nothing but a commit: a counter, an entry, the slot. */
static belay_rc mark_body(struct txn *t, void *arg)
{
    struct value key = value_str("mark");
    belay_rc rc = txn_add(t, &row_thing, &key, THING_COUNT, 1, 0, 1000000, NULL);

    ++*(unsigned *)arg;
    return rc ? rc : txn_feed_append(t, bytes_str("marks"), bytes_str("m"), NULL);
}

struct marks {
    struct harness *h;
    struct proxy *proxy;
    int64_t expected;
    uint64_t cuts;
    bool warm; /* the connection knows the statements */
};

static void mark(struct marks *m)
{
    unsigned runs = 0;

    m->expected += CHECK_RC(m->h, harness_run(m->h, mark_body, &runs), BELAY_OK);
    m->warm = true;
}

/* Who had to commit again has done so on the new connection. */
static void mark_and_cut(struct marks *m, enum proxy_way way, uint64_t after)
{
    unsigned runs = 0;

    if (!m->warm)
        mark(m);
    proxy_arm(m->proxy, PROXY_CUT, way, after);
    m->expected += CHECK_RC(m->h, harness_run(m->h, mark_body, &runs), BELAY_OK);
    m->cuts += proxy_disarm(m->proxy);
    m->warm = runs > 1;
    TAP_EQ(m->h->t, thing_count(m->h, "mark"), m->expected);
}

static uint64_t cut_way(struct marks *m, enum proxy_way way)
{
    mark(m);
    uint64_t before = proxy_bytes(m->proxy, way);
    mark(m);
    uint64_t bytes = proxy_bytes(m->proxy, way) - before;

    for (uint64_t at = 0; at < bytes; at += soak ? 1 : STRIDE)
        mark_and_cut(m, way, at);
    return soak ? bytes : (bytes + STRIDE - 1) / STRIDE;
}

static void cut_at_every_byte(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    char url[URL_MAX];
    struct marks m = { .h = &h };

    m.proxy = proxy_open(target->home(), url, sizeof(url));
    target->use(url, &limits_soon);
    if (harness_open(&h, t, HARNESS_REAL_TIME)) {
        thing_set(&h, "mark", 0);
        uint64_t cuts = cut_way(&m, PROXY_UP) + cut_way(&m, PROXY_DOWN);
        check_happened(t, m.cuts, cuts);
        printf("# %llu cuts\n", (unsigned long long)cuts);
    }
    proxy_close(m.proxy);
}

static void silent_anywhere(struct tap *t)
{
    sweep(t, PROXY_HOLE, 10);
}

static void slow_anywhere(struct tap *t)
{
    sweep(t, PROXY_DELAY, 5);
}

static const struct tap_case cases[] = {
    { "faults: a connection that is cut, at any byte", cut_anywhere },
    { "faults: a connection that is cut, from the first byte on",
      cut_from_the_beginning },
    { "faults: a commit that is cut, byte by byte", cut_at_every_byte },
    { "faults: a connection that falls silent, at any byte", silent_anywhere },
    { "faults: a connection that is slow, at any byte", slow_anywhere },
};

int faults_main(const struct fault_target *at, const struct tap_case *own, size_t n,
                int argc, char **argv)
{
    struct tap_case all[COUNT_OF(cases) + FAULT_OWN_MAX];

    memcpy(all, cases, sizeof(cases));
    memcpy(all + COUNT_OF(cases), own, n * sizeof(*own));
    target = at;
    soak = argc > 1 && strcmp(argv[1], "--soak") == 0;
    return tap_main(all, COUNT_OF(cases) + n, (void *)(uintptr_t)target->driver,
                    argc - soak, argv + soak);
}
