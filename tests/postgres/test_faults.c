/* A store whose connections break: what is acknowledged happened once, what is refused
 * never happens, and nothing happens twice (X2). */
#include "base/clock.h"
#include "load.h"
#include "proxy.h"

#define TIMEOUT_MS 400

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

static void sweep(struct tap *t, enum proxy_fault fault, unsigned points)
{
    CLEANUP(harness_close) struct harness h;
    char url[PG_URL_MAX];
    struct tally n = { .ok = 0 };
    struct deed d;

    pg_setup_reset(pg_test_url());
    struct proxy *p = proxy_open(pg_test_url(), url, sizeof(url));
    pg_setup.url = url;
    pg_setup.options.listen = pg_test_url();
    pg_setup.options.request_timeout_ms = TIMEOUT_MS;
    pg_setup.options.retries = 3;
    pg_setup.options.retry_first_ms = 5;
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
    sweep(t, PROXY_CUT, 60);
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

static void killed_in_the_middle(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    unsigned kills = 0;

    pg_setup_reset(pg_test_url());
    pg_setup.options.retries = 5;
    pg_setup.options.retry_first_ms = 5;
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    load_run(&h, kill_backends, &kills);
    TAP_OK(t, kills >= 50);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "faults: a connection that is cut, at any byte", cut_anywhere },
        { "faults: a connection that falls silent, at any byte", silent_anywhere },
        { "faults: a connection that is slow, at any byte", slow_anywhere },
        { "faults: backends that are killed while they work", killed_in_the_middle },
    };
    return tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&pg_driver, argc, argv);
}
