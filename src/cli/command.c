#include "cli/command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/park.h"
#include "cli/follow.h"
#include "cli/job_spawn.h"

#define NAP_MAX_US INT64_C(1000000)

/* A command that runs. */
struct running {
    const struct op_command *command;
    struct child child;
    int relay;        /* signals for it */
    int64_t keep_us;  /* when to look again at what it is run for */
    int64_t kill_us;  /* when to stop being patient */
    bool is_unwanted; /* err says why */
    belay_rc rc;
    struct belay_error *err;
};

/* To all of its group; one that is stopped takes it only when it goes on. */
static void tell(const struct running *r, int number)
{
    (void)kill(-r->child.pid, number);
    (void)kill(-r->child.pid, SIGCONT);
}

static void hand_on(const struct running *r)
{
    char numbers[16];
    ssize_t n;

    while ((n = read(r->relay, numbers, sizeof(numbers))) > 0) {
        for (ssize_t i = 0; i < n; i++)
            tell(r, numbers[i]);
    }
}

static void keep(struct running *r, int64_t now)
{
    int64_t us = NAP_MAX_US;

    if (now < r->keep_us || r->is_unwanted)
        return;
    r->rc = r->command->keep(r->command->arg, &us, r->err);
    r->keep_us = now + us;
    if (r->rc == BELAY_OK)
        return;
    r->is_unwanted = true;
    r->keep_us = DEADLINE_NONE;
    r->kill_us = now + r->command->grace_ms * 1000;
    tell(r, SIGTERM);
}

static int nap_ms(const struct running *r, int64_t now)
{
    int64_t until = r->keep_us < r->kill_us ? r->keep_us : r->kill_us;
    int64_t us = until == DEADLINE_NONE ? NAP_MAX_US : until - now;

    if (us > NAP_MAX_US)
        us = NAP_MAX_US;
    return us > 0 ? (int)((us + 999) / 1000) : 0;
}

/* Until its process has ended. */
static void attend(struct running *r)
{
    const struct belay_clock clock = clock_system();
    struct pollfd fds[] = {
        { .fd = r->child.pidfd, .events = POLLIN },
        { .fd = r->relay, .events = POLLIN },
    };

    while (fds[0].revents == 0) {
        int64_t now = clock.mono_us(clock.arg);
        keep(r, now);
        if (now >= r->kill_us) {
            (void)kill(-r->child.pid, SIGKILL);
            r->kill_us = DEADLINE_NONE;
        }
        if (poll(fds, COUNT_OF(fds), nap_ms(r, now)) < 0)
            fds[0].revents = fds[1].revents = 0; /* only a signal: look again */
        if (fds[1].revents != 0)
            hand_on(r);
    }
}

/* Its status; those of its group who are left when it is unwanted end with it. */
static int reap(const struct running *r)
{
    siginfo_t info = { 0 };

    if (r->is_unwanted)
        (void)kill(-r->child.pid, SIGKILL);
    while (waitid(P_PID, (id_t)r->child.pid, &info, WEXITED) != 0 && errno == EINTR)
        continue;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

/* Why it never became the command; 0: it did. */
static int why_not_run(const struct child *child)
{
    int why = 0;

    return read(child->failure, &why, sizeof(why)) == (ssize_t)sizeof(why) ? why : 0;
}

static belay_rc not_run(const char *name, int why, struct belay_error *err)
{
    const char *reason = why == ENOENT ? "command_missing" : "command_refused";
    struct buf text CLEANUP(buf_release) = { 0 };

    buf_append_escaped(&text, bytes_str(name));
    return err_reason(err, BELAY_UNAVAILABLE, reason, "%.*s: %s", (int)text.len,
                      text.len ? (const char *)text.ptr : "", strerrordesc_np(why));
}

static belay_rc start(struct running *r, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const struct op_command *c = r->command;
    const struct child_variable variable = { c->name, c->value };
    struct buf without CLEANUP(buf_release) = { 0 };

    buf_append_str(&without, c->name);
    buf_append(&without, bytes_of("=", 2));
    const char *const names[] = { (const char *)without.ptr, NULL };
    char **environment =
        without.failed ? NULL : child_environment(environ, names, &variable, 1, &arena);
    if (!environment)
        return err_no_memory(err, "the command's environment");
    return child_spawn_beside(c->argv, environment, &r->child, err);
}

belay_rc command_run(void *stopper, const struct op_command *command, int *out_status,
                     struct belay_error *err)
{
    struct running r = { .command = command, .kill_us = DEADLINE_NONE, .err = err };

    (void)signal(SIGCHLD, SIG_DFL); /* ignored ones would be reaped by nobody */
    belay_rc rc = start(&r, err);
    if (rc != BELAY_OK)
        return rc;
    r.relay = stopper_relay(stopper);
    attend(&r);
    int status = reap(&r);
    int why = why_not_run(&r.child);
    (void)close(r.child.pidfd);
    (void)close(r.child.failure);
    if (r.rc != BELAY_OK)
        return r.rc;
    *out_status = status;
    return why ? not_run(command->argv[0], why, err) : BELAY_OK;
}
