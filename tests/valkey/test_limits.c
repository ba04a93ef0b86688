/* How long a call takes at most, alone and among many on the same connections. */
#include "limits.h"

#include "base/clock.h"
#include "proxy.h"
#include "vk.h"

#define CALLERS 16
#define TIMEOUT_MS ((int64_t)500)

struct crowd {
    struct harness *h;
    struct deed deed;
    belay_rc rc[CALLERS];
    int64_t ms[CALLERS];
};

static void do_one(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_clock clock = clock_system();
    struct crowd *c = arg;
    struct deed d = c->deed;
    int64_t began_us = clock.mono_us(clock.arg);

    c->rc[i] = txn_run(c->h->space, deed_body, &d, NULL, &arena, NULL);
    c->ms[i] = (clock.mono_us(clock.arg) - began_us) / 1000;
}

/* They share what fails, and each is told in its own time. */
static void crowd_gives_up(struct tap *t)
{
    const struct limits limits = { .retries = 2,
                                   .retry_first_ms = 5,
                                   .retry_jitter = -1,
                                   .request_timeout_ms = TIMEOUT_MS };
    CLEANUP(harness_close) struct harness h = { .t = t };
    struct crowd c = { .h = &h };
    char url[REDIS_URL_MAX];

    struct proxy *p = proxy_open(redis_test_url(), url, sizeof(url));
    vk_target.use(url, &limits);
    if (harness_open(&h, t, HARNESS_REAL_TIME)) {
        deed_found(&h, &c.deed, 0);
        proxy_hold(p);
        crew_run(t, CALLERS, do_one, &c);
        proxy_let_go(p);
        for (int i = 0; i < CALLERS; i++) {
            CHECK_RC(&h, c.rc[i], BELAY_UNAVAILABLE);
            if (!TAP_OK(t, c.ms[i] < 4 * TIMEOUT_MS))
                printf("# %lld ms\n", (long long)c.ms[i]);
        }
        CHECK_RC(&h, harness_run(&h, deed_body, &c.deed), BELAY_OK);
        TAP_EQ(t, deed_times(&h, &c.deed), 1);
    }
    proxy_close(p);
}

/* A pool of one connection serves everybody. */
static void one_connection(struct tap *t)
{
    CLEANUP(harness_close) struct harness h = { .t = t };
    struct crowd c = { .h = &h };

    vk_setup_reset(redis_test_url());
    vk_setup.options.pool = 1;
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    deed_found(&h, &c.deed, 0);
    crew_run(t, CALLERS, do_one, &c);
    for (int i = 0; i < CALLERS; i++)
        CHECK_RC(&h, c.rc[i], BELAY_OK);
    TAP_EQ(t, deed_times(&h, &c.deed), CALLERS);
}

int main(int argc, char **argv)
{
    static const struct tap_case own[] = {
        { "limits: many calls into a silent network end in time", crowd_gives_up },
        { "limits: one connection is enough for many callers", one_connection },
    };
    return limits_main(&vk_target, own, COUNT_OF(own), argc, argv);
}
