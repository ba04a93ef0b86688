#include "sharing.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "harness.h"

#define PROCESSES 16

static const struct fault_target *target;

static belay_rc open_in(const char *dir, struct driver **out, struct belay_error *err)
{
    const struct driver_config config = { .schema = &schema_things,
                                          .clock = clock_system(),
                                          .random = random_system() };

    return target->driver->open(&config, dir, out, err);
}

/* --- a new store --- */

/* Opens when the others do; its exit status is the code. */
static pid_t open_aside(const char *dir, unsigned i, const int go[2])
{
    struct belay_error err = { .code = 0 };
    struct driver *d = NULL;
    char byte;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)close(go[1]);
    if (read(go[0], &byte, 1) < 0) /* until the parent has closed it */
        _exit(99);
    belay_rc rc = open_in(dir, &d, &err);
    if (rc)
        printf("# process %u: %s\n", i, err.message);
    (void)fflush(stdout);
    driver_close(d);
    _exit((int)rc);
}

static void many_come_first(struct tap *t)
{
    pid_t pid[PROCESSES];
    int go[2], status;

    target->use(target->home(), &limits_soon);
    if (!TAP_OK(t, pipe(go) == 0))
        return;
    (void)fflush(stdout);
    for (unsigned i = 0; i < PROCESSES; i++)
        pid[i] = open_aside("many_come_first", i, go);
    (void)close(go[0]);
    (void)close(go[1]);
    for (unsigned i = 0; i < PROCESSES; i++) {
        TAP_OK(t, pid[i] > 0 && waitpid(pid[i], &status, 0) == pid[i]);
        TAP_OK(t, WIFEXITED(status) && WEXITSTATUS(status) == BELAY_OK);
    }
    target->driver->forget("many_come_first");
}

/* --- wake-ups --- */

/* Waits for a topic; its exit status tells how that ended. */
static pid_t wait_aside(const char *dir, int ready)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_clock clock = clock_system();
    struct store_options options = { .schema = &schema_things,
                                     .clock = clock,
                                     .random = random_system() };
    struct bytes topic = bytes_str("topic");
    struct listener *l = NULL;
    struct store *store = NULL;
    struct space *space = NULL;
    struct driver *d = NULL;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    belay_rc rc = open_in(dir, &d, NULL);
    if (rc == BELAY_OK)
        rc = store_open(&store, d, &options, NULL);
    if (rc == BELAY_OK)
        rc = store_space(store, bytes_str("default"), &space, NULL);
    if (rc == BELAY_OK)
        rc = space_listen(space, &topic, 1, NULL, &arena, &l, NULL);
    while (rc == BELAY_OK && listener_poll(l))
        continue; /* what it was woken for while it connected */
    if (rc || write(ready, "r", 1) != 1)
        _exit(98);
    rc = listener_wait(l, clock.mono_us(clock.arg) + 10000000, NULL);
    listener_close(l);
    store_close(store);
    driver_close(d);
    arena_release(&arena);
    _exit((int)rc);
}

static belay_rc wake_body(struct txn *t, void *arg)
{
    belay_rc rc = txn_chunk_drop(t, bytes_str("none"), 0);

    (void)arg;
    return rc ? rc : txn_wake(t, bytes_str("topic"));
}

static void wakes_another_process(struct tap *t)
{
    char dir[] = "wakes_another";
    struct belay_clock clock = clock_system();
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct store_options options = { .schema = &schema_things,
                                     .clock = clock,
                                     .random = random_system() };
    struct store *store = NULL;
    struct space *space = NULL;
    struct driver *d = NULL;
    int ready[2], status = -1;
    char byte;

    target->use(target->home(), &limits_soon);
    if (!TAP_OK(t, pipe(ready) == 0))
        return;
    (void)fflush(stdout);
    pid_t pid = wait_aside(dir, ready[1]); /* before this process has threads */
    belay_rc rc = open_in(dir, &d, NULL);
    if (rc == BELAY_OK)
        rc = store_open(&store, d, &options, NULL);
    if (rc == BELAY_OK)
        rc = store_space(store, bytes_str("default"), &space, NULL);
    if (TAP_EQ(t, rc, BELAY_OK) && TAP_EQ(t, read(ready[0], &byte, 1), 1)) {
        int64_t before_us = clock.mono_us(clock.arg);
        TAP_EQ(t, txn_run(space, wake_body, NULL, NULL, &arena, NULL), BELAY_OK);
        TAP_OK(t, waitpid(pid, &status, 0) == pid);
        TAP_OK(t, WIFEXITED(status) && WEXITSTATUS(status) == BELAY_OK);
        TAP_OK(t, clock.mono_us(clock.arg) - before_us < 3000000);
    }
    (void)close(ready[0]);
    (void)close(ready[1]);
    store_close(store);
    driver_close(d);
    target->driver->forget(dir);
}

int sharing_main(const struct fault_target *at, const struct tap_case *own, size_t n,
                 int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "sharing: sixteen processes open a new store at once", many_come_first },
        { "sharing: who waits in another process is woken", wakes_another_process },
    };
    struct tap_case all[COUNT_OF(cases) + FAULT_OWN_MAX];

    target = at;
    memcpy(all, cases, sizeof(cases));
    memcpy(all + COUNT_OF(cases), own, n * sizeof(*own));
    return tap_main(all, COUNT_OF(cases) + n, (void *)(uintptr_t)target->driver, argc,
                    argv);
}
