/* A store whose connections break: what is acknowledged happened once, what is refused
 * never happens, and nothing happens twice (X2).
 *
 *   test_faults [--soak] [-l | part of a case's name]
 *
 * --soak: at every byte where otherwise a part of them must do. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "load.h"
#include "proxy.h"

#define TIMEOUT_MS 400
#define COLD_POINTS 40
#define STRIDE 3

static bool soak;

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

/* Answers are expected soon, and tries made soon again. */
static void set_up_for(const char *url)
{
    pg_setup_reset(pg_test_url());
    pg_setup.url = url;
    pg_setup.options.listen = pg_test_url();
    pg_setup.options.request_timeout_ms = TIMEOUT_MS;
    pg_setup.options.retries = 3;
    pg_setup.options.retry_first_ms = 5;
}

static void sweep(struct tap *t, enum proxy_fault fault, unsigned points)
{
    CLEANUP(harness_close) struct harness h;
    char url[PG_URL_MAX];
    struct tally n = { .ok = 0 };
    struct deed d;

    struct proxy *p = proxy_open(pg_test_url(), url, sizeof(url));
    set_up_for(url);
    if (harness_open(&h, t, HARNESS_REAL_TIME)) {
        deed_found(&h, &d, 0);
        for (enum proxy_way way = PROXY_UP; way <= PROXY_DOWN; way++) {
            (void)cost(&h, p, &d, way, &n);
            uint64_t bytes = cost(&h, p, &d, way, &n);
            for (unsigned i = 0; i < points; i++)
                one_fault(&h, p, &d, fault, way, bytes * i / points, &n);
        }
        TAP_EQ(t, n.happened, 2 * points);
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
static belay_rc open_and_do(const char *dir, struct deed *d)
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
    belay_rc rc = pg_driver.open(&config, dir, &driver, NULL);

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
    char url[PG_URL_MAX];
    struct tally n = { .ok = 0 };
    struct deed d;

    struct proxy *p = proxy_open(pg_test_url(), url, sizeof(url));
    set_up_for(pg_test_url()); /* what is there is looked at past the proxy */
    if (harness_open(&h, t, HARNESS_REAL_TIME)) {
        deed_found(&h, &d, 0);
        pg_setup.url = url;
        for (enum proxy_way way = PROXY_UP; way <= PROXY_DOWN; way++) {
            uint64_t before = proxy_bytes(p, way);
            judge(&h, &d, open_and_do(h.dir, &d), &n);
            uint64_t bytes = proxy_bytes(p, way) - before;
            for (unsigned i = 0; i < COLD_POINTS; i++) {
                proxy_arm(p, PROXY_CUT, way, bytes * i / COLD_POINTS);
                belay_rc rc = open_and_do(h.dir, &d);
                n.happened += proxy_disarm(p);
                judge(&h, &d, rc, &n);
            }
        }
        TAP_EQ(t, n.happened, 2 * COLD_POINTS);
        printf("# of %u: %u done, %u refused, %u unknown\n", 2 * COLD_POINTS, n.ok,
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
    char url[PG_URL_MAX];
    struct marks m = { .h = &h };

    m.proxy = proxy_open(pg_test_url(), url, sizeof(url));
    set_up_for(url);
    if (harness_open(&h, t, HARNESS_REAL_TIME)) {
        thing_set(&h, "mark", 0);
        uint64_t cuts = cut_way(&m, PROXY_UP) + cut_way(&m, PROXY_DOWN);
        TAP_EQ(t, m.cuts, cuts);
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

/* --- backends that end in the middle --- */

static const char kill_one[] =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ="
    " 'belay' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1";

/* At points that nobody chooses, all over the transactions of the others. */
static void kill_backends(void *arg)
{
    PGconn *pg = pg_test_connect(pg_test_url());
    struct belay_clock clock = clock_system();
    unsigned *kills = arg;
    char answer[16];

    for (unsigned i = 0; i < 100 && pg; i++) {
        clock.sleep_us(clock.arg, 5000 + (i * 7919) % 20000);
        *kills += pg_test_ask(pg, kill_one, answer, sizeof(answer));
    }
    PQfinish(pg);
}

static const char kill_all[] =
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE"
    " application_name = 'belay' AND pid <> pg_backend_pid()";

static void kill_every_backend(void *arg)
{
    PGconn *pg = pg_test_connect(pg_test_url());
    struct belay_clock clock = clock_system();
    unsigned *kills = arg;
    char answer[16];

    for (unsigned i = 0; i < 30 && pg; i++) {
        clock.sleep_us(clock.arg, 20000 + (i * 7919) % 40000);
        if (pg_test_ask(pg, kill_all, answer, sizeof(answer)))
            *kills += (unsigned)strtoul(answer, NULL, 10);
    }
    PQfinish(pg);
}

static void killed_under_load(struct tap *t, void (*kill)(void *arg))
{
    CLEANUP(harness_close) struct harness h;
    unsigned kills = 0;

    pg_setup_reset(pg_test_url());
    pg_setup.options.retries = 5;
    pg_setup.options.retry_first_ms = 5;
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    load_run(&h, kill, &kills);
    TAP_OK(t, kills >= 50);
}

static void one_is_killed(struct tap *t)
{
    killed_under_load(t, kill_backends);
}

static void all_are_killed(struct tap *t)
{
    killed_under_load(t, kill_every_backend);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "faults: a connection that is cut, at any byte", cut_anywhere },
        { "faults: a connection that is cut, from the first byte on",
          cut_from_the_beginning },
        { "faults: a commit that is cut, byte by byte", cut_at_every_byte },
        { "faults: a connection that falls silent, at any byte", silent_anywhere },
        { "faults: a connection that is slow, at any byte", slow_anywhere },
        { "faults: backends that are killed while they work", one_is_killed },
        { "faults: all backends are killed at once, again and again", all_are_killed },
    };
    soak = argc > 1 && strcmp(argv[1], "--soak") == 0;
    argc -= soak;
    argv += soak;
    return tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&pg_driver, argc, argv);
}
