/* Connections of a Valkey store that break, or that the server ends. */
#include <stdlib.h>

#include "faults.h"
#include "load.h"
#include "vk.h"

/* --- connections that the server ends --- */

/* The number of the n-th client in the list, modulo their number. */
static long long client_id(const char *list, unsigned n)
{
    unsigned clients = 0;

    for (const char *at = list; (at = strstr(at, "id=")); at = strchr(at, '\n'))
        clients++;
    const char *at = list;
    for (n %= clients; n > 0; n--)
        at = strchr(at, '\n') + 1;
    return strtoll(at + 3, NULL, 10);
}

/* At points that nobody chooses, all over the calls of the others. */
static void kill_one(void *arg)
{
    redisContext *c = redis_test_connect(redis_test_url());
    unsigned *kills = arg;

    for (unsigned i = 0; i < 100 && c; i++) {
        vk_pause_ms(2 + (i * 7919) % 10);
        redisReply *list = redisCommand(c, "CLIENT LIST TYPE normal");
        redisReply *r = list ? redisCommand(c, "CLIENT KILL ID %lld SKIPME yes",
                                            client_id(list->str, i * 7919))
                             : NULL;
        *kills += r && r->type == REDIS_REPLY_INTEGER && r->integer == 1;
        freeReplyObject(r);
        freeReplyObject(list);
    }
    redisFree(c);
}

static void kill_all(void *arg)
{
    redisContext *c = redis_test_connect(redis_test_url());
    unsigned *kills = arg;

    for (unsigned i = 0; i < 30 && c; i++) {
        vk_pause_ms(5 + (i * 7919) % 30);
        redisReply *r = redisCommand(c, "CLIENT KILL SKIPME yes USER default");
        *kills += r && r->type == REDIS_REPLY_INTEGER ? (unsigned)r->integer : 0;
        freeReplyObject(r);
    }
    redisFree(c);
}

static void killed_under_load(struct tap *t, void (*kill)(void *arg), unsigned at_least)
{
    CLEANUP(harness_close) struct harness h;
    unsigned kills = 0;

    vk_setup_reset(redis_test_url());
    vk_setup.options.retries = 5;
    vk_setup.options.retry_first_ms = 5;
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    load_run(&h, kill, &kills);
    TAP_OK(t, kills >= at_least);
}

static void one_is_killed(struct tap *t)
{
    killed_under_load(t, kill_one, 30);
}

static void all_are_killed(struct tap *t)
{
    killed_under_load(t, kill_all, 30);
}

int main(int argc, char **argv)
{
    static const struct tap_case own[] = {
        { "faults: connections that the server ends while they work", one_is_killed },
        { "faults: the server ends all connections at once, again and again",
          all_are_killed },
    };
    return faults_main(&vk_target, own, COUNT_OF(own), argc, argv);
}
