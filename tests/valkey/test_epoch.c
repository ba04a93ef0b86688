/* Servers that are restarted, replaced and left: what was granted before counts for as long
 * as nothing of it can be missing (X10). */
#include "granted.h"
#include "policy/fence.h"
#include "vk.h"

#define RESTARTED "the server was restarted"

static struct test_server server;

static bool serve(struct tap *t, const char *kind)
{
    const char *const arguments[] = { kind, NULL };

    test_server_close(&server);
    return TAP_OK(t, test_server_open(&server, "redisserver", arguments));
}

/* --- restarts --- */

static bool restart(const char *how)
{
    return test_server_order(&server, how) && test_server_order(&server, "start");
}

/* The next claim raises the epoch, once; who claims was there before, or comes then. */
static void restarted(struct tap *t, const char *how, bool anew)
{
    CLEANUP(grantee_close) struct grantee before = { .t = t };
    CLEANUP(grantee_close) struct grantee after = { .t = t };

    if (!serve(t, NULL) || !grantee_open(&before, t, server.word[0]))
        return;
    const struct belay_claim *old = grantee_claim(&before);
    int64_t epoch = grantee_epoch(&before);
    if (!TAP_OK(t, old) || !TAP_OK(t, restart(how)) ||
        !grantee_open(&after, t, server.word[0]))
        return;
    struct grantee *g = anew ? &after : &before, *other = anew ? &before : &after;
    const struct belay_claim *first = grantee_claim(g);
    const struct belay_claim *second = grantee_claim(other);
    if (!TAP_OK(t, first) || !TAP_OK(t, second))
        return;
    TAP_EQ(t, fence_epoch(first->fence), epoch + 1);
    TAP_EQ(t, fence_epoch(second->fence), epoch + 1);
    TAP_EQ(t, grantee_epoch(g), epoch + 1);
    TAP_EQ(t, grantee_raises(g, RESTARTED), 1);
    grantee_lost(g, old);
    grantee_lost(other, old);
    grantee_stands(other, first);
    grantee_stands(g, second);
}

static void killed(struct tap *t)
{
    restarted(t, "kill", false);
}

static void killed_then_opened(struct tap *t)
{
    restarted(t, "kill", true);
}

static void stopped(struct tap *t)
{
    restarted(t, "stop", false);
}

static void stopped_then_opened(struct tap *t)
{
    restarted(t, "stop", true);
}

/* Nobody has claimed anything since: the old holder is the first to come. */
static void comes_back(struct tap *t)
{
    CLEANUP(grantee_close) struct grantee g = { .t = t };

    if (!serve(t, NULL) || !grantee_open(&g, t, server.word[0]))
        return;
    const struct belay_claim *old = grantee_claim(&g);
    int64_t epoch = grantee_epoch(&g);
    if (!TAP_OK(t, old) || !TAP_OK(t, restart("kill")))
        return;
    grantee_lost(&g, old);
    TAP_EQ(t, grantee_epoch(&g), epoch); /* what is refused changes nothing */
    TAP_EQ(t, grantee_raises(&g, RESTARTED), 0);
}

/* Each restart counts. */
static void again_and_again(struct tap *t)
{
    CLEANUP(grantee_close) struct grantee g = { .t = t };

    if (!serve(t, NULL) || !grantee_open(&g, t, server.word[0]))
        return;
    for (int64_t i = 0; i < 3; i++) {
        const struct belay_claim *c = grantee_claim(&g);
        if (!TAP_OK(t, c) || !TAP_OK(t, restart("kill")))
            return;
        TAP_EQ(t, fence_epoch(c->fence), i);
        grantee_lost(&g, c);
    }
    TAP_EQ(t, grantee_raises(&g, RESTARTED), 2); /* nobody has claimed after the last */
}

/* --- nothing that concerns a server --- */

static void only_a_connection(struct tap *t)
{
    CLEANUP(grantee_close) struct grantee g = { .t = t };

    if (!serve(t, NULL) || !grantee_open(&g, t, server.word[0]))
        return;
    const struct belay_claim *old = grantee_claim(&g);
    int64_t epoch = grantee_epoch(&g);
    TAP_OK(t, redis_test_run(server.word[0], "CLIENT KILL TYPE normal"));
    const struct belay_claim *next = grantee_claim(&g);
    if (!TAP_OK(t, old) || !TAP_OK(t, next))
        return;
    TAP_EQ(t, fence_epoch(next->fence), epoch);
    TAP_EQ(t, grantee_epoch(&g), epoch);
    grantee_stands(&g, old);
    grantee_stands(&g, next);
}

/* --- promotions --- */

static bool says(const char *url, const char *text)
{
    redisReply *r = redis_test_ask(url, "INFO replication");
    bool so = r && strstr(r->str, text);

    freeReplyObject(r);
    return so;
}

static bool wait_until_says(const char *url, const char *text)
{
    for (int ms = 0; ms < 20000; ms += 20) {
        if (says(url, text))
            return true;
        vk_pause_ms(20);
    }
    return false;
}

/* Everything that was written to one has arrived at the other. */
static bool wait_until_copied(const char *url)
{
    redisContext *c = redis_test_connect(url);
    redisReply *wrote = c ? redisCommand(c, "SET copied yes") : NULL;
    redisReply *r = wrote ? redisCommand(c, "WAIT 1 20000") : NULL;
    bool ok = r && r->type == REDIS_REPLY_INTEGER && r->integer == 1;

    freeReplyObject(wrote);
    freeReplyObject(r);
    redisFree(c);
    return ok;
}

/* A copy of its data is somebody's who reads along: the server has lost nothing. */
static void copied(struct tap *t)
{
    CLEANUP(grantee_close) struct grantee before = { .t = t };
    CLEANUP(grantee_close) struct grantee after = { .t = t };
    char host[REDIS_HOST_MAX];

    if (!serve(t, "--replica") ||
        !TAP_OK(t, redis_test_run(server.word[1], "REPLICAOF NO ONE")) ||
        !TAP_OK(t, restart("kill")) || !grantee_open(&before, t, server.word[0]))
        return;
    const struct belay_claim *old = grantee_claim(&before);
    int64_t epoch = grantee_epoch(&before);
    int master = redis_test_port(server.word[0], host);
    if (!TAP_OK(t, redis_test_run(server.word[1], "REPLICAOF %s %d", host, master)) ||
        !TAP_OK(t, wait_until_says(server.word[1], "master_link_status:up")) ||
        !grantee_open(&after, t, server.word[0]))
        return;
    const struct belay_claim *a = grantee_claim(&after), *b = grantee_claim(&before);
    if (!TAP_OK(t, old) || !TAP_OK(t, a) || !TAP_OK(t, b))
        return;
    TAP_EQ(t, fence_epoch(a->fence), epoch);
    TAP_EQ(t, fence_epoch(b->fence), epoch);
    TAP_EQ(t, grantee_epoch(&after), epoch);
    grantee_stands(&before, old);
    grantee_stands(&before, a);
    grantee_stands(&after, b);
}

/* Refused, until somebody says that it is right; then everything goes on above. */
static void check_taken_over(struct grantee *g, const struct belay_claim *old)
{
    int64_t epoch = grantee_epoch(g);

    grantee_refused(g, old);
    TAP_EQ(g->t, grantee_epoch(g), epoch);
    grantee_raise(g);
    const struct belay_claim *next = grantee_claim(g);
    if (!TAP_OK(g->t, next))
        return;
    TAP_EQ(g->t, fence_epoch(next->fence), epoch + 1);
    TAP_EQ(g->t, grantee_raises(g, RESTARTED), 0);
    grantee_lost(g, old);
    grantee_stands(g, next);
}

static void promoted(struct tap *t)
{
    CLEANUP(grantee_close) struct grantee before = { .t = t };
    CLEANUP(grantee_close) struct grantee after = { .t = t };

    if (!serve(t, "--replica") || !grantee_open(&before, t, server.word[0]))
        return;
    const struct belay_claim *old = grantee_claim(&before);
    if (!TAP_OK(t, old) || !TAP_OK(t, wait_until_copied(server.word[0])) ||
        !TAP_OK(t, test_server_order(&server, "kill 0")) ||
        !TAP_OK(t, redis_test_run(server.word[1], "REPLICAOF NO ONE")) ||
        !grantee_open(&after, t, server.word[1]))
        return;
    check_taken_over(&after, old);
}

/* A server that was the replica of another one for a while, under a program that was there
 * all the time; its connections are ended as those who arrange failovers do. */
static void promoted_again(struct tap *t)
{
    CLEANUP(grantee_close) struct grantee g = { .t = t };
    char host[REDIS_HOST_MAX];

    if (!serve(t, "--replica") || !grantee_open(&g, t, server.word[0]))
        return;
    const struct belay_claim *old = grantee_claim(&g);
    int other = redis_test_port(server.word[1], host);
    if (!TAP_OK(t, old) || !TAP_OK(t, wait_until_copied(server.word[0])) ||
        !TAP_OK(t, redis_test_run(server.word[1], "REPLICAOF NO ONE")) ||
        !TAP_OK(t, redis_test_run(server.word[0], "REPLICAOF %s %d", host, other)) ||
        !TAP_OK(t, redis_test_run(server.word[0], "CLIENT KILL TYPE normal")) ||
        !TAP_OK(t, wait_until_says(server.word[0], "master_link_status:up")) ||
        !TAP_OK(t, redis_test_run(server.word[0], "REPLICAOF NO ONE")))
        return;
    check_taken_over(&g, old);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "epoch: a killed server: the next claim raises it", killed },
        { "epoch: a killed server: the claim of a new program raises it",
          killed_then_opened },
        { "epoch: a stopped server: the next claim raises it", stopped },
        { "epoch: a stopped server: the claim of a new program raises it",
          stopped_then_opened },
        { "epoch: a restarted server knows no holder of before", comes_back },
        { "epoch: it is raised by each restart", again_and_again },
        { "epoch: a lost connection raises nothing", only_a_connection },
        { "epoch: a first replica raises nothing", copied },
        { "epoch: a promoted replica grants nothing until it is raised", promoted },
        { "epoch: a server that is a master again grants nothing until it is raised",
          promoted_again },
    };
    int status = tap_main(cases, COUNT_OF(cases), NULL, argc, argv);

    test_server_close(&server);
    return status;
}
