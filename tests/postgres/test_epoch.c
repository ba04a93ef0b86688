/* A server that goes on elsewhere in its history: what was granted before counts for as
 * long as nothing of it can be missing (X10). */
#include <sys/stat.h>

#include "base/clock.h"
#include "granted.h"
#include "pgserver.h"
#include "policy/fence.h"
#include "testserver.h"

static struct test_server server;

static bool serve(struct tap *t)
{
    static const char *const none[] = { NULL };

    test_server_close(&server);
    return TAP_OK(t, test_server_open(&server, "pgserver", none));
}

static bool ask(const char *words, char *out, size_t size)
{
    PGconn *pg = pg_test_connect(server.word[0]);
    bool told = pg && pg_test_ask(pg, words, out, size);

    PQfinish(pg);
    return told;
}

/* It answers while it still recovers. */
static bool wait_until_it_writes(void)
{
    struct belay_clock clock = clock_system();
    char text[8] = "";

    for (int ms = 0; ms < 30000; ms += 20) {
        if (ask("SELECT pg_is_in_recovery()", text, sizeof(text)) && text[0] == 'f')
            return true;
        clock.sleep_us(clock.arg, 20000);
    }
    return false;
}

/* Recovers from what it has, as after a restore: a new timeline begins where that ends. */
static bool begin_new_timeline(void)
{
    char folder[256], path[300];

    if (!ask("SHOW data_directory", folder, sizeof(folder)) ||
        !test_server_order(&server, "stop fast"))
        return false;
    (void)snprintf(path, sizeof(path), "%s/recovery.signal", folder);
    FILE *f = fopen(path, "w");
    bool made = f && fclose(f) == 0 && chmod(path, 0666) == 0;
    return made && test_server_order(&server, "start restore_command=false") &&
           wait_until_it_writes();
}

static void check_taken_over(struct tap *t, bool anew)
{
    CLEANUP(grantee_close) struct grantee before = { .t = t };
    CLEANUP(grantee_close) struct grantee after = { .t = t };

    if (!serve(t) || !grantee_open(&before, t, server.word[0]))
        return;
    const struct belay_claim *old = grantee_claim(&before);
    int64_t epoch = grantee_epoch(&before);
    if (!TAP_OK(t, old) || !TAP_OK(t, begin_new_timeline()) ||
        !grantee_open(&after, t, server.word[0]))
        return;
    struct grantee *g = anew ? &after : &before, *other = anew ? &before : &after;
    grantee_refused(g, old);
    grantee_refused(other, old);
    TAP_EQ(t, grantee_epoch(g), epoch);
    grantee_raise(g);
    const struct belay_claim *next = grantee_claim(g);
    if (!TAP_OK(t, next))
        return;
    TAP_EQ(t, fence_epoch(next->fence), epoch + 1);
    TAP_EQ(t, grantee_raises(g, "somebody has looked"), 1);
    grantee_lost(g, old);
    grantee_lost(other, old);
    grantee_stands(other, next);
}

static void open_meanwhile(struct tap *t)
{
    check_taken_over(t, false);
}

static void opened_then(struct tap *t)
{
    check_taken_over(t, true);
}

/* It keeps what it has acknowledged, however it ends. */
static void restarted(struct tap *t)
{
    static const char *const ways[] = { "stop fast", "stop immediate", "kill" };
    CLEANUP(grantee_close) struct grantee g = { .t = t };

    if (!serve(t) || !grantee_open(&g, t, server.word[0]))
        return;
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        const struct belay_claim *old = grantee_claim(&g);
        int64_t epoch = grantee_epoch(&g);
        if (!TAP_OK(t, old) || !TAP_OK(t, test_server_order(&server, ways[i])) ||
            !TAP_OK(t, test_server_order(&server, "start")))
            return;
        const struct belay_claim *next = grantee_claim(&g);
        if (!TAP_OK(t, next))
            return;
        TAP_EQ(t, fence_epoch(next->fence), epoch);
        grantee_stands(&g, old);
        grantee_stands(&g, next);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "epoch: on a new timeline nothing is granted until it is raised",
          open_meanwhile },
        { "epoch: nor to a program that comes then", opened_then },
        { "epoch: a restart raises nothing, and every claim stands", restarted },
    };
    int status = tap_main(cases, COUNT_OF(cases), NULL, argc, argv);

    test_server_close(&server);
    return status;
}
