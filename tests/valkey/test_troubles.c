/* A server of the test's own that sleeps, is full, is busy or has forgotten the functions. */
#include <pthread.h>

#include "load.h"
#include "vk.h"

#define TIMEOUT_MS 300

static struct test_server server;

/* Answers are expected soon, and tries made soon again. */
static bool open_soon(struct harness *h, struct tap *t)
{
    vk_setup_reset(server.word[0]);
    vk_setup.options.request_timeout_ms = TIMEOUT_MS;
    vk_setup.options.retries = 2;
    vk_setup.options.retry_first_ms = 20;
    return harness_open(h, t, HARNESS_REAL_TIME);
}

static bool set(const char *name, const char *value)
{
    return redis_test_run(server.word[0], "CONFIG SET %s %s", name, value);
}

/* --- a server that sleeps --- */

static void make_it_sleep(void *arg)
{
    bool *ok = arg;

    *ok = true;
    for (int i = 0; i < 3; i++) {
        vk_pause_ms(100);
        *ok = *ok && redis_test_run(server.word[0], "DEBUG SLEEP 0.8");
    }
    vk_pause_ms(100);
}

static void sleeps(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    bool ok = false;

    if (!open_soon(&h, t))
        return;
    load_run(&h, make_it_sleep, &ok);
    TAP_OK(t, ok);
}

/* --- a server that is full --- */

static void full(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct deed d;

    if (!open_soon(&h, t))
        return;
    deed_found(&h, &d, 0);
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    TAP_OK(t, set("maxmemory", "100kb"));
    struct buf before = harness_dump(&h);
    for (int i = 0; i < 3; i++) {
        CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_UNAVAILABLE);
        TAP_STR(t, h.err.reason, "memory");
    }
    struct buf after = harness_dump(&h);
    TAP_OK(t, before.len == after.len && memcmp(before.ptr, after.ptr, after.len) == 0);
    buf_release(&before);
    buf_release(&after);
    TAP_EQ(t, thing_n(&h, d.id), 1); /* it can be read meanwhile */
    TAP_OK(t, set("maxmemory", "0"));
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    TAP_EQ(t, deed_times(&h, &d), 2);
}

static void fill_and_empty(void *arg)
{
    bool *ok = arg;

    *ok = true;
    for (int i = 0; i < 10; i++) {
        vk_pause_ms(20);
        *ok = *ok && set("maxmemory", "100kb");
        vk_pause_ms(20);
        *ok = *ok && set("maxmemory", "0");
    }
    vk_pause_ms(20);
}

static void full_now_and_then(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    bool ok = false;

    if (!open_soon(&h, t))
        return;
    load_run(&h, fill_and_empty, &ok);
    TAP_OK(t, ok);
}

/* --- functions that are gone --- */

static void flush_functions(void *arg)
{
    bool *ok = arg;

    *ok = true;
    for (int i = 0; i < 50; i++) {
        *ok = *ok && redis_test_run(server.word[0], "FUNCTION FLUSH");
        vk_pause_ms(5 + (i * 7) % 20);
    }
}

static void flushed(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct space *spaces[LOAD_DOERS];
    struct load_result result;
    bool ok = false;

    vk_setup_reset(server.word[0]);
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    for (unsigned i = 0; i < LOAD_DOERS; i++)
        spaces[i] = h.space;
    load_run_in(&h, spaces, flush_functions, &ok, &result);
    TAP_OK(t, ok);
    TAP_EQ(t, result.refused + result.unknown, 0); /* nobody notices */
}

/* Somebody else's functions stay where they are, and ours beside them. */
static void others_stay(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;

    TAP_OK(t, redis_test_run(server.word[0], "FUNCTION LOAD REPLACE %s",
                             "#!lua name=others\nredis.register_function('others', "
                             "function() return 7 end)"));
    vk_setup_reset(server.word[0]);
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    thing_set(&h, "a", 1);
    redisReply *r = redis_test_ask(server.word[0], "FCALL others 0");
    TAP_OK(t, r && r->type == REDIS_REPLY_INTEGER && r->integer == 7);
    freeReplyObject(r);
    TAP_OK(t, redis_test_run(server.word[0], "FUNCTION DELETE others"));
    TAP_EQ(t, thing_n(&h, "a"), 1);
}

/* --- a server that is busy with somebody's script --- */

struct script {
    const char *verb, *what; /* EVAL and words, FCALL and a name */
    const char *family;      /* that kills it: SCRIPT, FUNCTION */
};

static void *run_long(void *arg)
{
    const struct script *s = arg;
    redisContext *c = redis_test_connect(server.word[0]);

    freeReplyObject(c ? redisCommand(c, "%s %s 0", s->verb, s->what) : NULL);
    redisFree(c);
    return NULL;
}

/* Until the server says that it is busy. */
static bool becomes_busy(void)
{
    redisContext *c = redis_test_connect(server.word[0]);
    bool busy = false;

    for (int ms = 0; c && !busy && ms < 5000; ms += 5) {
        redisReply *r = redisCommand(c, "PING");
        busy = r && r->type == REDIS_REPLY_ERROR && strncmp(r->str, "BUSY", 4) == 0;
        freeReplyObject(r);
        vk_pause_ms(5);
    }
    redisFree(c);
    return busy;
}

static void busy_with(struct harness *h, struct script *script)
{
    struct deed d;
    pthread_t thread;

    deed_found(h, &d, (unsigned)strlen(script->verb));
    CHECK_RC(h, harness_run(h, deed_body, &d), BELAY_OK);
    if (!TAP_EQ(h->t, pthread_create(&thread, NULL, run_long, script), 0))
        return;
    TAP_OK(h->t, becomes_busy());
    CHECK_RC(h, harness_run(h, deed_body, &d), BELAY_UNAVAILABLE);
    TAP_STR(h->t, h->err.reason, "busy");
    TAP_OK(h->t, redis_test_run(server.word[0], "%s KILL", script->family));
    pthread_join(thread, NULL);
    CHECK_RC(h, harness_run(h, deed_body, &d), BELAY_OK);
    TAP_EQ(h->t, deed_times(h, &d), 2);
}

static void busy(struct tap *t)
{
    struct script scripts[] = {
        { "EVAL", "while true do end", "SCRIPT" },
        { "FCALL", "forever", "FUNCTION" },
    };
    CLEANUP(harness_close) struct harness h;

    if (!open_soon(&h, t))
        return;
    TAP_OK(t, set("busy-reply-threshold", "30"));
    TAP_OK(t, redis_test_run(server.word[0], "FUNCTION LOAD REPLACE %s",
                             "#!lua name=forever\nredis.register_function('forever', "
                             "function() while true do end end)"));
    for (size_t i = 0; i < COUNT_OF(scripts); i++)
        busy_with(&h, &scripts[i]);
    TAP_OK(t, redis_test_run(server.word[0], "FUNCTION DELETE forever"));
    TAP_OK(t, set("busy-reply-threshold", "5000"));
}

/* Whatever runs at the moment, ours as a rule: what has written cannot be killed, and
 * what has not written may be. */
static void kill_what_runs(void *arg)
{
    redisContext *c = redis_test_connect(server.word[0]);
    bool *ok = arg;

    *ok = c && set("busy-reply-threshold", "1");
    for (int i = 0; i < 4000 && *ok; i++) {
        redisReply *f = redisCommand(c, "FUNCTION KILL");
        redisReply *s = redisCommand(c, "SCRIPT KILL");
        *ok = f && s;
        freeReplyObject(f);
        freeReplyObject(s);
    }
    redisFree(c);
    *ok = *ok && set("busy-reply-threshold", "5000");
}

static void killed_functions(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    bool ok = false;

    if (!open_soon(&h, t))
        return;
    load_run(&h, kill_what_runs, &ok);
    TAP_OK(t, ok);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "troubles: a server that sleeps for longer than a request may take", sleeps },
        { "troubles: a server that is full refuses, and goes on when it is not", full },
        { "troubles: a server that is full now and then", full_now_and_then },
        { "troubles: functions that are flushed are there again", flushed },
        { "troubles: functions of others are left alone", others_stay },
        { "troubles: a server that is busy with a script of somebody else", busy },
        { "troubles: functions that are killed while they run", killed_functions },
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
