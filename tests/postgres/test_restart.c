/* A server of the test's own, which is stopped, killed and configured badly. */
#include "base/clock.h"
#include "base/hash.h"
#include "load.h"
#include "pg.h"
#include "testserver.h"

static struct test_server server;

static void pause_ms(int64_t ms)
{
    struct belay_clock clock = clock_system();

    clock.sleep_us(clock.arg, ms * 1000);
}

/* --- stopping it during a load --- */

struct stopping {
    const char *how;
    bool ok;
};

static void stop_and_start(void *arg)
{
    struct stopping *s = arg;

    s->ok = true;
    for (int i = 0; i < 2; i++) {
        pause_ms(300);
        s->ok = s->ok && test_server_order(&server, s->how) &&
                test_server_order(&server, "start");
    }
    pause_ms(300);
}

static void stopped(struct tap *t, const char *how)
{
    CLEANUP(harness_close) struct harness h;
    struct stopping s = { .how = how };

    pg_setup_reset(server.word[0]);
    pg_setup.options.retries = 2;
    pg_setup.options.retry_first_ms = 20;
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    load_run(&h, stop_and_start, &s);
    TAP_OK(t, s.ok);
}

static void stopped_at_once(struct tap *t)
{
    stopped(t, "stop immediate");
}

static void killed(struct tap *t)
{
    stopped(t, "kill");
}

/* A pause that its clients sleep through: afterwards everything goes on by itself. */
static void idle_meanwhile(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct deed d;

    pg_setup_reset(server.word[0]);
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    deed_found(&h, &d, 0);
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    TAP_OK(t, test_server_order(&server, "stop fast"));
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_UNAVAILABLE);
    TAP_OK(t, test_server_order(&server, "start"));
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    TAP_EQ(t, deed_times(&h, &d), 2);
}

/* --- what an acknowledgement is worth (X1) --- */

/* Opens with the server's settings as they are. */
static void check_durability(struct tap *t, const char *settings, const char *name)
{
    const struct driver_config config = { .schema = &schema_things,
                                          .clock = clock_system(),
                                          .random = random_system() };
    struct belay_error err = { .code = 0 };
    struct driver *d = NULL;

    pg_setup_reset(server.word[0]);
    pg_setup.settings = settings;
    TAP_EQ(t, pg_driver.open(&config, "durability", &d, &err), BELAY_UNAVAILABLE);
    TAP_STR(t, err.reason, "durability");
    TAP_OK(t, strstr(err.message, name));
    pg_setup.options.relaxed = true;
    if (TAP_EQ(t, pg_driver.open(&config, "durability", &d, &err), BELAY_OK)) {
        TAP_EQ(t, driver_durability(d), DURABILITY_RELAXED);
        driver_close(d);
    }
    pg_driver.forget("durability");
}

static void says_what_it_is_worth(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;

    pg_setup_reset(server.word[0]);
    pg_setup.options.relaxed = true; /* permitted, but not so */
    if (harness_open(&h, t, 0))
        TAP_EQ(t, driver_durability(h.driver), DURABILITY_DURABLE);
    check_durability(t, "-c synchronous_commit=off", "synchronous_commit");
    TAP_OK(t, test_server_order(&server, "stop fast"));
    TAP_OK(t, test_server_order(&server, "start fsync=off"));
    check_durability(t, NULL, "fsync");
    TAP_OK(t, test_server_order(&server, "stop fast"));
    TAP_OK(t, test_server_order(&server, "start full_page_writes=off"));
    check_durability(t, NULL, "full_page_writes");
    TAP_OK(t, test_server_order(&server, "stop fast"));
    TAP_OK(t, test_server_order(&server, "start"));
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "restart: a server that is stopped at once during a load", stopped_at_once },
        { "restart: a server that is killed during a load", killed },
        { "restart: a server that was away", idle_meanwhile },
        { "restart: a server that does not keep what it acknowledges is refused",
          says_what_it_is_worth },
    };
    const char *const none[] = { NULL };
    int status = 1;

    if (test_server_open(&server, "pgserver", none))
        status =
            tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&pg_driver, argc, argv);
    else
        printf("Bail out! no server\n");
    test_server_close(&server);
    return status;
}
