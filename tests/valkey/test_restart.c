/* A server of the test's own, which is stopped and killed, and loses the end of its log. */
#include "load.h"
#include "vk.h"

static struct test_server server;

/* --- stopping it during a load --- */

struct stopping {
    const char *how;
    bool ok;
};

static void stop_and_start(void *arg)
{
    struct stopping *s = arg;

    s->ok = true;
    for (int i = 0; i < 3; i++) {
        vk_pause_ms(200);
        s->ok = s->ok && test_server_order(&server, s->how) &&
                test_server_order(&server, "start");
    }
    vk_pause_ms(200);
}

static void stopped(struct tap *t, const char *how)
{
    CLEANUP(harness_close) struct harness h;
    struct stopping s = { .how = how };

    vk_setup_reset(server.word[0]);
    vk_setup.options.retries = 2;
    vk_setup.options.retry_first_ms = 20;
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    load_run(&h, stop_and_start, &s);
    TAP_OK(t, s.ok);
}

static void shut_down(struct tap *t)
{
    stopped(t, "stop");
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

    vk_setup_reset(server.word[0]);
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    deed_found(&h, &d, 0);
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    TAP_OK(t, test_server_order(&server, "stop"));
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_UNAVAILABLE);
    TAP_OK(t, test_server_order(&server, "start"));
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    TAP_EQ(t, deed_times(&h, &d), 2);
}

/* --- a log without its end --- */

static void on_finding(void *arg, const struct finding *f)
{
    ++*(unsigned *)arg;
    printf("# %s: %s\n", f->what, f->message);
}

/* Whether the server has rewritten its log since it was started: nothing is added to one
 * that may be torn. */
static bool log_was_renewed(void)
{
    redisReply *r = redis_test_ask(server.word[0], "INFO persistence");
    bool renewed =
        r && r->type == REDIS_REPLY_STRING && !strstr(r->str, "aof_rewrites:0");

    freeReplyObject(r);
    return renewed;
}

/* Whatever is lost, it is lost from the end on, and no deed is there in part. */
static void lose_the_end(struct harness *h, struct deed *d, unsigned bytes)
{
    int64_t before = deed_times(h, d);
    unsigned damage = 0;
    char order[32];

    for (int i = 0; i < 3; i++)
        CHECK_RC(h, harness_run(h, deed_body, d), BELAY_OK);
    (void)snprintf(order, sizeof(order), "cut %u", bytes);
    TAP_OK(h->t, test_server_order(&server, "kill"));
    TAP_OK(h->t, test_server_order(&server, order));
    TAP_OK(h->t, test_server_order(&server, "start aof-load-truncated=yes"));
    int64_t after = deed_times(h, d);
    TAP_OK(h->t, after <= before + 2); /* else nothing was cut */
    CHECK_RC(h, harness_run(h, deed_body, d), BELAY_OK);
    TAP_OK(h->t, log_was_renewed());
    TAP_EQ(h->t, deed_times(h, d), after + 1);
    /* The log goes on behind the tear: it is whole at the next start. */
    TAP_OK(h->t, test_server_order(&server, "kill"));
    TAP_OK(h->t, test_server_order(&server, "start"));
    TAP_OK(h->t, harness_reopen(h));
    d->space = h->space;
    TAP_EQ(h->t, deed_times(h, d), after + 1);
    CHECK_RC(h, driver_check(h->driver, on_finding, &damage, &h->err), BELAY_OK);
    TAP_EQ(h->t, damage, 0);
}

static void truncated(struct tap *t)
{
    static const unsigned bytes[] = { 1, 2, 7, 50, 150, 400, 700, 1100 };
    CLEANUP(harness_close) struct harness h;
    struct deed d;

    vk_setup_reset(server.word[0]);
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    deed_found(&h, &d, 0);
    for (int i = 0; i < 3; i++)
        CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    for (size_t i = 0; i < COUNT_OF(bytes); i++)
        lose_the_end(&h, &d, bytes[i]);
}

/* A log that the server refuses to read is not a store: it is away, and says so. */
static void refuses_to_load(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct deed d;

    vk_setup_reset(server.word[0]);
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    deed_found(&h, &d, 0);
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    TAP_OK(t, test_server_order(&server, "kill"));
    TAP_OK(t, test_server_order(&server, "cut 5"));
    TAP_OK(t, !test_server_order(&server, "start aof-load-truncated=no"));
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_UNAVAILABLE);
    TAP_OK(t, test_server_order(&server, "start aof-load-truncated=yes"));
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    TAP_EQ(t, deed_times(&h, &d), 1); /* the last one was cut off */
}

/* --- the log is written anew --- */

static void rewrite_and_kill(void *arg)
{
    struct stopping *s = arg;

    s->ok = true;
    for (int i = 0; i < 3; i++) {
        (void)redis_test_run(server.word[0], "BGREWRITEAOF"); /* perhaps it does so */
        vk_pause_ms(5 + 40 * i);
        s->ok = s->ok && test_server_order(&server, "kill") &&
                test_server_order(&server, "start");
        vk_pause_ms(100);
    }
}

static void killed_while_rewriting(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct stopping s = { .ok = false };

    vk_setup_reset(server.word[0]);
    vk_setup.options.retries = 2;
    vk_setup.options.retry_first_ms = 20;
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    load_run(&h, rewrite_and_kill, &s);
    TAP_OK(t, s.ok);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "restart: a server that is shut down during a load", shut_down },
        { "restart: a server that is killed during a load", killed },
        { "restart: a server that was away", idle_meanwhile },
        { "restart: a server that is killed while it writes its log anew",
          killed_while_rewriting },
        { "restart: a log that lost its end: what is there is whole", truncated },
        { "restart: a log that the server refuses", refuses_to_load },
    };
    const char *const none[] = { NULL };
    int status = 1;

    if (test_server_open(&server, "redisserver", none))
        status =
            tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&vk_driver, argc, argv);
    else
        printf("Bail out! no server\n");
    test_server_close(&server);
    return status;
}
