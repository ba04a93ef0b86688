#include "limits.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "deeds.h"
#include "proxy.h"

#define URL_MAX 256
#define TIMEOUT_MS ((int64_t)600)

static const struct fault_target *target;

static int64_t now_ms(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg) / 1000;
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
    const struct limits limits = { .retries = 100,
                                   .retry_first_ms = 5,
                                   .retry_jitter = -1,
                                   .request_timeout_ms = TIMEOUT_MS };
    char url[URL_MAX];

    struct proxy *p = proxy_open(target->home(), url, sizeof(url));
    target->use(url, &limits);
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
    c->rc = target->driver->open(&config, "nowhere", &d, NULL);
    c->ms = now_ms() - began;
    c->done = true;
    driver_close(d);
}

static struct caller call_nobody(struct tap *t, const struct limits *limits)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    struct caller c = { .door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    char url[URL_MAX], plain[URL_MAX + 32];

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    TAP_OK(t, bind(c.door, (struct sockaddr *)&at, sizeof(at)) == 0);
    TAP_OK(t, listen(c.door, 16) == 0);
    TAP_OK(t, getsockname(c.door, (struct sockaddr *)&at, &len) == 0);
    proxy_url_at(target->home(), (int)ntohs(at.sin_port), url, sizeof(url));
    (void)snprintf(plain, sizeof(plain), "%s%s", url, target->untried);
    target->use(plain, limits);
    crew_run(t, 2, call_or_hang_up, &c);
    (void)close(c.door);
    TAP_EQ(t, c.rc, BELAY_UNAVAILABLE);
    return c;
}

static void tries_as_told(struct tap *t)
{
    struct limits o = {
        .retries = 3, .retry_first_ms = 20, .retry_base = 3, .retry_jitter = 0
    };
    struct caller c = call_nobody(t, &o);

    TAP_EQ(t, c.calls, 4);
    TAP_OK(t, c.ms >= 20 + 60 + 180 && c.ms < 5000);
    o = (struct limits){ .retries = 0 };
    c = call_nobody(t, &o);
    TAP_EQ(t, c.calls, 1);
    o = (struct limits){ .retries = 1000,
                         .retry_first_ms = 10,
                         .retry_base = 1,
                         .request_timeout_ms = 300 };
    c = call_nobody(t, &o); /* the request's time is over before the tries are */
    TAP_OK(t, c.calls > 3 && c.calls < 100);
    TAP_OK(t, c.ms < 3000);
}

int limits_main(const struct fault_target *at, const struct tap_case *own, size_t n,
                int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "limits: a call into a silent network ends in time", gives_up },
        { "limits: connecting again follows retries, factor and base", tries_as_told },
    };
    struct tap_case all[COUNT_OF(cases) + FAULT_OWN_MAX];

    target = at;
    memcpy(all, cases, sizeof(cases));
    memcpy(all + COUNT_OF(cases), own, n * sizeof(*own));
    return tap_main(all, COUNT_OF(cases) + n, (void *)(uintptr_t)target->driver, argc,
                    argv);
}
