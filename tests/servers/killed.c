#include "killed.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "deeds.h"
#include "proxy.h"

#define URL_MAX 256

static const struct fault_target *target;

/* What the child is told, and says. */
struct talk {
    int to_child[2], to_parent[2];
};

struct letter {
    char url[URL_MAX];
    char dir[TEMP_DIR_MAX];
    struct deed deed;
};

/* --- the child --- */

struct doing {
    struct deed *deed;
    const struct talk *talk;
    bool tells; /* stops before its commit, and says so */
};

static bool say(int fd)
{
    return write(fd, "x", 1) == 1;
}

static bool hear(int fd)
{
    char byte;

    return read(fd, &byte, 1) == 1;
}

static belay_rc telling_body(struct txn *t, void *arg)
{
    struct doing *d = arg;
    belay_rc rc = deed_body(t, d->deed);

    if (rc == BELAY_OK && d->tells &&
        (!say(d->talk->to_parent[1]) || !hear(d->talk->to_child[0])))
        _exit(97);
    return rc;
}

/* One deed that is answered, and one that never is. */
static void live_and_die(const struct talk *talk)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct driver_config config = { .schema = &schema_things,
                                          .clock = clock_system(),
                                          .random = random_system() };
    const struct store_options options = { .schema = &schema_things,
                                           .clock = clock_system(),
                                           .random = random_system() };
    struct driver *driver = NULL;
    struct store *store = NULL;
    struct space *space = NULL;
    struct letter letter;
    struct doing d = { .deed = &letter.deed, .talk = talk };

    if (read(talk->to_child[0], &letter, sizeof(letter)) != (ssize_t)sizeof(letter))
        _exit(96);
    target->use(letter.url, &limits_soon);
    if (target->driver->open(&config, letter.dir, &driver, NULL) ||
        store_open(&store, driver, &options, NULL) ||
        store_space(store, bytes_str("default"), &space, NULL) ||
        txn_run(space, telling_body, &d, NULL, &arena, NULL))
        _exit(95);
    d.tells = true;
    _exit((int)txn_run(space, telling_body, &d, NULL, &arena, NULL));
}

/* Before this process has threads. */
static pid_t start_child(struct talk *talk)
{
    if (pipe(talk->to_child) || pipe(talk->to_parent))
        return -1;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        live_and_die(talk);
    return pid;
}

static void close_talk(const struct talk *talk)
{
    for (int i = 0; i < 2; i++) {
        (void)close(talk->to_child[i]);
        (void)close(talk->to_parent[i]);
    }
}

/* --- the parent --- */

struct dying {
    struct harness *h;
    struct proxy *proxy;
    pid_t pid;
    const struct talk *talk;
};

/* Until the child's commit is on its way, and kills it then. */
static void kill_after_commit(const struct dying *k)
{
    struct belay_clock clock = clock_system();
    int status = 0;

    TAP_OK(k->h->t, hear(k->talk->to_parent[0]));
    proxy_hold(k->proxy);
    TAP_EQ(k->h->t, proxy_held_bytes(k->proxy), 0);
    TAP_OK(k->h->t, say(k->talk->to_child[1]));
    uint64_t n = 0, before = 0;
    for (int same = 0; same<5; same = n> 0 && n == before ? same + 1 : 0) {
        before = n;
        clock.sleep_us(clock.arg, 2000);
        n = proxy_held_bytes(k->proxy);
    }
    TAP_OK(k->h->t, kill(k->pid, SIGKILL) == 0);
    TAP_OK(k->h->t, waitpid(k->pid, &status, 0) == k->pid && WIFSIGNALED(status));
}

/* Until the server has done with what it got from the dead: it has only as many
 * connections as it had before. */
static void wait_for_the_dead(struct tap *t, int before)
{
    struct belay_clock clock = clock_system();
    int now = target->connections();

    for (int i = 0; i < 500 && now != before; i++) {
        clock.sleep_us(clock.arg, 10000);
        now = target->connections();
    }
    TAP_EQ(t, now, before);
}

/* moved_on: somebody else has done the deed before the late commit arrives. */
static void dies(struct tap *t, bool moved_on)
{
    CLEANUP(harness_close) struct harness h;
    struct letter letter = { .url = "" };
    struct talk talk;
    struct dying k = { .h = &h, .talk = &talk, .pid = start_child(&talk) };

    target->use(target->home(), &limits_soon);
    if (!TAP_OK(t, k.pid > 0) || !harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    k.proxy = proxy_open(target->home(), letter.url, sizeof(letter.url));
    deed_found(&h, &letter.deed, 0);
    CHECK_RC(&h, harness_run(&h, deed_body, &letter.deed), BELAY_OK);
    int before = target->connections();
    (void)snprintf(letter.dir, sizeof(letter.dir), "%s", h.dir);
    TAP_EQ(t, write(talk.to_child[1], &letter, sizeof(letter)), sizeof(letter));
    kill_after_commit(&k);

    TAP_EQ(t, deed_times(&h, &letter.deed), 2);
    if (moved_on)
        CHECK_RC(&h, harness_run(&h, deed_body, &letter.deed), BELAY_OK);
    proxy_let_go(k.proxy);
    wait_for_the_dead(t, before);
    TAP_EQ(t, deed_times(&h, &letter.deed), 3);
    CHECK_RC(&h, harness_run(&h, deed_body, &letter.deed), BELAY_OK);
    TAP_EQ(t, deed_times(&h, &letter.deed), 4);
    proxy_close(k.proxy);
    close_talk(&talk);
}

static void arrives_late(struct tap *t)
{
    dies(t, false);
}

static void arrives_too_late(struct tap *t)
{
    dies(t, true);
}

int killed_main(const struct fault_target *at, int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "killed: a commit that arrives after its sender's death happens once",
          arrives_late },
        { "killed: one that arrives after somebody else moved on does not happen",
          arrives_too_late },
    };

    target = at;
    return tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)target->driver, argc,
                    argv);
}
