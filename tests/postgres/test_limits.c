/* How long a call takes at most: connections that others keep, a network that swallows
 * everything, a server that is away. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "pg.h"
#include "proxy.h"

#define TIMEOUT_MS 600

static const struct bytes jobs = { (const uint8_t *)"jobs", 4 };

static int64_t now_ms(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg) / 1000;
}

static belay_rc fill(struct txn *t, void *arg)
{
    const char *const ids[] = { "a", "b", "c", "d", "e", "f" };
    belay_rc rc = BELAY_OK;

    (void)arg;
    for (size_t i = 0; i < COUNT_OF(ids) && rc == BELAY_OK; i++) {
        rc = txn_rank_add(t, jobs, (int64_t)i, bytes_str(ids[i]));
        rc = rc ? rc : thing_insert(t, ids[i], 0);
    }
    return rc;
}

static struct scan job_scan(size_t limit, const struct fetch *fetch)
{
    return (struct scan){ .indexes = &jobs,
                          .n_indexes = 1,
                          .max_rank = RANK_MAX,
                          .limit = limit,
                          .fetch = fetch,
                          .n_fetch = fetch ? 1 : 0 };
}

static belay_rc hold_one(struct raw *r, size_t *n)
{
    struct scan scan = job_scan(1, NULL);
    struct read q = { .kind = READ_RANK, .rank = { .scan = &scan, .hold = true } };
    belay_rc rc = raw_read(r, &q);

    *n = rc ? 0 : q.rank.out.n;
    return rc;
}

/* --- the pool --- */

static bool open_with_pool(struct harness *h, struct tap *t, unsigned pool)
{
    pg_setup_reset(pg_test_url());
    pg_setup.options.pool = pool;
    pg_setup.options.request_timeout_ms = 300;
    if (!harness_open(h, t, HARNESS_REAL_TIME))
        return false;
    return CHECK_RC(h, harness_run(h, fill, NULL), BELAY_OK);
}

/* What others hold is not waited for any longer than a request may take. */
static void waits_for_its_turn(struct tap *t)
{
    for (unsigned pool = 1; pool <= 3; pool++) {
        unsigned holders = pool > 1 ? pool - 1 : 1;
        CLEANUP(harness_close) struct harness h;
        struct raw holder[2], late;
        size_t n = 0;

        if (!open_with_pool(&h, t, pool))
            return;
        for (unsigned i = 0; i < holders; i++) {
            raw_begin(&holder[i], &h);
            CHECK_RC(&h, hold_one(&holder[i], &n), BELAY_OK);
            TAP_EQ(t, n, 1);
        }
        raw_begin(&late, &h);
        int64_t began = now_ms();
        CHECK_RC(&h, hold_one(&late, &n), BELAY_UNAVAILABLE);
        TAP_STR(t, late.err.reason, "pool");
        TAP_OK(t, now_ms() - began >= 290 && now_ms() - began < 3000);
        raw_end(&late);

        thing_set(&h, "meanwhile", 1); /* one is left for those who do not hold */
        raw_end(&holder[0]);
        raw_begin(&late, &h);
        CHECK_RC(&h, hold_one(&late, &n), BELAY_OK);
        TAP_EQ(t, n, 1);
        raw_end(&late);
        for (unsigned i = 1; i < holders; i++)
            raw_end(&holder[i]);
    }
}

struct claimers {
    struct harness *h;
    atomic_uint failed, claimed;
};

static belay_rc claim_body(struct txn *t, void *arg)
{
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = job_scan(1, &fetch);
    struct hits hits;
    belay_rc rc = txn_pick(t, &scan, &hits);

    *(bool *)arg = !rc && hits.n == 1;
    if (rc || hits.n == 0)
        return rc;
    struct value key = value_text(hits.hit[0].member);
    struct change change = { THING_N, value_i64(1) };
    rc = txn_put(t, &row_thing, &key, &change, 1);
    return rc ? rc : txn_rank_remove(t, jobs, hits.hit[0].rank, hits.hit[0].member);
}

static void claim_one(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_error err = { .code = 0 };
    struct claimers *c = arg;
    bool got = false;

    (void)i;
    belay_rc rc = txn_run(c->h->space, claim_body, &got, NULL, &arena, &err);
    if (rc)
        printf("# %s: %s\n", belay_error_info((int)rc)->name, err.message);
    c->failed += rc != BELAY_OK;
    c->claimed += got;
}

/* Everybody's first claim needs a slot, written on another connection than the one that
 * holds the pick. */
static void claims_get_on(struct tap *t)
{
    for (unsigned pool = 1; pool <= 4; pool++) {
        CLEANUP(harness_close) struct harness h;
        struct claimers c = { .h = &h };

        if (!open_with_pool(&h, t, pool))
            return;
        pg_setup.options.request_timeout_ms = 20000;
        int64_t began = now_ms();
        if (!harness_reopen(&h))
            return;
        crew_run(t, 6, claim_one, &c);
        TAP_EQ(t, c.failed, 0);
        TAP_EQ(t, c.claimed, 6);
        TAP_OK(t, now_ms() - began < 15000);
    }
}

/* --- a network that swallows everything --- */

static belay_rc look_body(struct txn *t, void *arg)
{
    const struct row *row;

    (void)arg;
    return thing_get(t, "a", &row);
}

/* A deed whose commit goes into a network that has just fallen silent. */
struct swallowed {
    struct deed deed;
    struct proxy *proxy;
};

static belay_rc swallowed_body(struct txn *t, void *arg)
{
    struct swallowed *s = arg;
    belay_rc rc = deed_body(t, &s->deed);

    proxy_hold(s->proxy);
    return rc;
}

static void check_ms(struct harness *h, int64_t began, int64_t min_ms, int64_t max_ms)
{
    int64_t ms = now_ms() - began;

    if (!TAP_OK(h->t, ms >= min_ms && ms < max_ms))
        printf("# it took %lld ms\n", (long long)ms);
}

static void gives_up(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct swallowed s = { .proxy = NULL };
    struct deed d;
    char url[PG_URL_MAX];

    pg_setup_reset(pg_test_url());
    struct proxy *p = proxy_open(pg_test_url(), url, sizeof(url));
    pg_setup.url = url;
    pg_setup.options.listen = pg_test_url();
    pg_setup.options.request_timeout_ms = TIMEOUT_MS;
    pg_setup.options.retries = 100;
    pg_setup.options.retry_first_ms = 5;
    if (harness_open(&h, t, HARNESS_REAL_TIME)) {
        deed_found(&h, &d, 0);
        CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);

        proxy_hold(p); /* asked once on the old connection, once on a new one */
        int64_t began = now_ms();
        CHECK_RC(&h, harness_run(&h, look_body, NULL), BELAY_UNAVAILABLE);
        TAP_OK(t, strstr(h.err.message, "in time"));
        check_ms(&h, began, TIMEOUT_MS, 3 * TIMEOUT_MS);
        began = now_ms(); /* who comes next does not wait as long */
        CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_UNAVAILABLE);
        check_ms(&h, began, 200, 2 * TIMEOUT_MS);

        proxy_let_go(p); /* and everything goes on by itself */
        CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
        TAP_EQ(t, deed_times(&h, &d), 2);

        s = (struct swallowed){ .deed = d, .proxy = p };
        began = now_ms();
        CHECK_RC(&h, harness_run(&h, swallowed_body, &s), BELAY_UNKNOWN_OUTCOME);
        check_ms(&h, began, TIMEOUT_MS, 10 * TIMEOUT_MS);
        proxy_let_go(p);
        CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
        int64_t times = deed_times(&h, &d); /* the one that nobody knows of, or not */
        TAP_OK(t, times == 3 || times == 4);
    }
    proxy_close(p);
}

/* --- connecting again --- */

/* A server that hangs up on everybody, for so long. */
static unsigned hang_up(int door, int64_t until_ms)
{
    struct pollfd p = { .fd = door, .events = POLLIN };
    unsigned n = 0;

    while (now_ms() < until_ms) {
        int client = poll(&p, 1, 10) > 0 ? accept4(door, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (client < 0)
            continue;
        n++;
        (void)close(client);
    }
    return n;
}

struct caller {
    int door;
    unsigned calls;
    belay_rc rc;
    int64_t ms;
    atomic_bool done;
};

static void call_or_hang_up(void *arg, unsigned i)
{
    const struct driver_config config = { .schema = &schema_things,
                                          .clock = clock_system(),
                                          .random = random_system() };
    struct caller *c = arg;
    struct driver *d = NULL;

    while (i == 1 && !c->done)
        c->calls += hang_up(c->door, now_ms() + 50);
    if (i == 1)
        return;
    int64_t began = now_ms();
    c->rc = pg_driver.open(&config, "nowhere", &d, NULL);
    c->ms = now_ms() - began;
    c->done = true;
    driver_close(d);
}

static struct caller call_nobody(struct tap *t, const struct postgres_options *options)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    struct caller c = { .door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    char url[PG_URL_MAX];

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    TAP_OK(t, bind(c.door, (struct sockaddr *)&at, sizeof(at)) == 0);
    TAP_OK(t, listen(c.door, 16) == 0);
    TAP_OK(t, getsockname(c.door, (struct sockaddr *)&at, &len) == 0);
    (void)snprintf(url, sizeof(url),
                   "postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable",
                   (int)ntohs(at.sin_port));
    pg_setup_reset(url);
    pg_setup.options = *options;
    crew_run(t, 2, call_or_hang_up, &c);
    (void)close(c.door);
    TAP_EQ(t, c.rc, BELAY_UNAVAILABLE);
    return c;
}

static void tries_as_told(struct tap *t)
{
    struct postgres_options o = {
        .retries = 3, .retry_first_ms = 20, .retry_base = 3, .retry_jitter = 0
    };
    struct caller c = call_nobody(t, &o);

    TAP_EQ(t, c.calls, 4);
    TAP_OK(t, c.ms >= 20 + 60 + 180 && c.ms < 5000);
    o = (struct postgres_options){ .retries = 0 };
    c = call_nobody(t, &o);
    TAP_EQ(t, c.calls, 1);
    o = (struct postgres_options){ .retries = 1000,
                                   .retry_first_ms = 10,
                                   .retry_base = 1,
                                   .request_timeout_ms = 300 };
    c = call_nobody(t, &o); /* the request's time is over before the tries are */
    TAP_OK(t, c.calls > 3 && c.calls < 100);
    TAP_OK(t, c.ms < 3000);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "limits: who finds all connections held is told so in time",
          waits_for_its_turn },
        { "limits: claims of more callers than connections get on", claims_get_on },
        { "limits: a call into a silent network ends in time", gives_up },
        { "limits: connecting again follows retries, factor and base", tries_as_told },
    };
    return tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&pg_driver, argc, argv);
}
