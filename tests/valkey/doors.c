#include "doors.h"

#include "base/clock.h"

#define AT_ONCE_MS 5000

struct test_server server;

bool serve(struct tap *t, const char *const *arguments)
{
    test_server_close(&server);
    bool ok = TAP_OK(t, test_server_open(&server, "redisserver", arguments));
    vk_setup_reset(server.word[0]);
    return ok;
}

bool serve_plainly(struct tap *t)
{
    static const char *const none[] = { NULL };

    return serve(t, none);
}

static int64_t now_ms(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg) / 1000;
}

/* --- what comes of opening --- */

void check_silence(struct tap *t, const struct belay_error *err)
{
    TAP_OK(t, !strstr(err->message, PASSWORD));
    TAP_OK(t, !strstr(err->message, WRONG));
}

bool check_works(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;

    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return false;
    thing_set(&h, "a", 1);
    return TAP_EQ(t, thing_n(&h, "a"), 1);
}

void check_refused(struct tap *t, const char *reason, const char *why)
{
    struct belay_error err = { .code = 0 };
    struct driver *d = NULL;
    int64_t begun = now_ms();

    vk_setup.options.retries = 3;
    vk_setup.options.retry_first_ms = 20000;
    vk_setup.options.retry_jitter = 0;
    if (!TAP_EQ(t, vk_open("refused", &d, &err), BELAY_UNAVAILABLE))
        driver_close(d);
    TAP_STR(t, err.reason, reason);
    if (!TAP_OK(t, strstr(err.message, why)))
        printf("# not \"%s\": %s\n", why, err.message);
    TAP_OK(t, now_ms() - begun < AT_ONCE_MS);
    check_silence(t, &err);
    vk_setup.options.retries = 0;
}

void check_away(struct tap *t)
{
    struct belay_error err = { .code = 0 };
    struct driver *d = NULL;

    TAP_EQ(t, vk_open("refused", &d, &err), BELAY_UNAVAILABLE);
    check_silence(t, &err);
    driver_close(d);
}

bool set_user(const char *name, const char *const *rules)
{
    static const char password[] = ">" PASSWORD;
    const char *argv[80] = { "ACL", "SETUSER", name, "reset", "on", password };
    redisContext *c = redis_test_connect(server.word[0]);
    int n = 6;

    while (*rules)
        argv[n++] = *rules++;
    redisReply *r = c ? redisCommandArgv(c, n, argv, NULL) : NULL;
    bool ok = r && r->type == REDIS_REPLY_STATUS;
    if (!ok)
        printf("# ACL SETUSER %s: %s\n", name, r ? r->str : "no answer");
    freeReplyObject(r);
    redisFree(c);
    return ok;
}
