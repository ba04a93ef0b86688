/* What was wrong with segments, locks and wake-ups (D17 to D20), each shown first by the few
 * lines that do what was done, then not so of the fleet. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fleet/step.h"
#include "fleetlib.h"
#include "tap.h"

struct scene {
    struct room room;
};

/* In a file system of 64 KiB; the exit status says what happened. */
static int in_small_tmpfs(const char *dir, int (*run)(const char *dir))
{
    pid_t child = fork();

    if (child == 0) {
        if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) ||
            (geteuid() == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) ||
            mount("none", dir, "tmpfs", 0, "size=64k"))
            _exit(9);
        _exit(run(dir));
    }
    return reap(child, 0);
}

static int fill_unallocated(const char *dir)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/segment", dir);
    (void)signal(SIGBUS, SIG_DFL); /* not the sanitizer's */
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, 1 << 20))
        return 8;
    char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return 8;
    memset(p, 1, 1 << 20);
    return 0;
}

static int join_full(const char *dir)
{
    struct belay_fleet_options o = { .size = sizeof(o), .dir = dir };
    struct belay_fleet *f = NULL;
    struct belay_error err;
    belay_rc rc = belay_fleet_join("full", &o, &f, &err);

    return rc == BELAY_NO_MEMORY && !f ? 0 : 7;
}

static void test_d17(struct tap *t)
{
    struct scene *s = t->arg;
    char dir[96];

    (void)snprintf(dir, sizeof(dir), "%s/small", s->room.dir);
    TAP_OK(t, mkdir(dir, 0700) == 0);
    int status = in_small_tmpfs(dir, fill_unallocated);
    TAP_OK(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    TAP_EQ(t, in_small_tmpfs(dir, join_full), 0);
    (void)rmdir(dir);
}

struct creation {
    struct scene *s;
    struct belay_fleet *other;
    unsigned at, n;
};

static void another_joins(void *arg, enum fleet_step step)
{
    struct creation *c = arg;

    (void)step;
    if (c->n++ == c->at)
        c->other = room_join(&c->s->room, "race", 0);
}

static void test_d18(struct tap *t)
{
    struct scene *s = t->arg;
    char path[128];
    struct stat st;

    /* Created by name first, filled later: another finds it in between, empty. */
    (void)snprintf(path, sizeof(path), "%s/early", s->room.dir);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    int other = open(path, O_RDWR);
    TAP_OK(t, fd >= 0 && other >= 0 && fstat(other, &st) == 0 && st.st_size == 0);
    (void)close(fd);
    (void)close(other);

    bool passed = false;
    for (unsigned at = 0; at < 50 && !passed; at++) {
        struct creation c = { .s = s, .at = at };
        struct belay_fleet_options o = room_options(&s->room, 0);
        struct belay_fleet_status one = { .size = sizeof(one) },
                                  two = { .size = sizeof(two) };
        struct belay_fleet *f = NULL;
        struct belay_error err;
        TAP_EQ(t, fleet_join_stepped("race", &o, another_joins, &c, &f, &err),
               BELAY_OK);
        if (f)
            fleet_set_step(f, NULL, NULL);
        passed = c.n <= at;
        if (!passed && TAP_OK(t, f && c.other)) {
            TAP_EQ(t, belay_fleet_status(f, &one, &err), BELAY_OK);
            TAP_EQ(t, belay_fleet_status(c.other, &two, &err), BELAY_OK);
            TAP_OK(t, one.fleet_id == two.fleet_id && one.node != two.node);
        }
        belay_fleet_leave(c.other);
        belay_fleet_leave(f);
        TAP_EQ(t, belay_fleet_remove("race", &o, &err), BELAY_OK);
    }
    TAP_OK(t, passed);
}

static void stop_here(void *arg, enum fleet_step step)
{
    unsigned *left = arg;

    (void)step;
    if ((*left)-- == 0)
        (void)raise(SIGSTOP);
}

/* A child of the test, stopped in step `at` of a claim; false: it ended before. */
static bool stopped_claimer(struct scene *s, const char *name, unsigned at, pid_t *out)
{
    int status;

    *out = fork();
    if (*out == 0) {
        struct belay_fleet *f = room_join(&s->room, name, 0);
        struct belay_contest_claim claim;
        if (!f)
            _exit(3);
        fleet_set_step(f, stop_here, &at);
        _exit(try_claim(f, "subject", "stopped", HOUR_MS, &claim) ? 0 : 3);
    }
    while (waitpid(*out, &status, WUNTRACED) != *out)
        ;
    return WIFSTOPPED(status);
}

static void test_d19(struct tap *t)
{
    struct scene *s = t->arg;
    char path[128];
    int status;

    /* One lock for the table: who is stopped inside stops all. */
    (void)snprintf(path, sizeof(path), "%s/lock", s->room.dir);
    pid_t child = fork();
    if (child == 0) {
        int fd = open(path, O_RDWR | O_CREAT, 0600);
        if (fd >= 0 && flock(fd, LOCK_EX) == 0)
            (void)raise(SIGSTOP);
        _exit(0);
    }
    while (waitpid(child, &status, WUNTRACED) != child)
        ;
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    TAP_OK(t, fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK);
    (void)close(fd);
    (void)reap(child, SIGKILL);

    for (unsigned at = 0; at < 100 && t->failed == 0; at++) {
        char name[32];
        struct belay_contest_claim claim;
        (void)snprintf(name, sizeof(name), "stop-%u", at);
        struct belay_fleet *f = room_join(&s->room, name, 0);
        bool is_stopped = stopped_claimer(s, name, at, &child);
        /* Elsewhere nothing is noticed; of the subject itself one is the holder, or soon. */
        TAP_OK(t, try_claim(f, "elsewhere", "a", HOUR_MS, &claim));
        bool is_ours = false, is_theirs = false;
        for (int i = 0; i < 3000 && is_stopped && !is_ours && !is_theirs; i++) {
            is_ours = try_claim(f, "subject", "b", HOUR_MS, &claim);
            is_theirs = !is_ours && !claim.holder.is_pending;
            (void)usleep(1000);
        }
        TAP_OK(t, !is_stopped || is_ours != is_theirs);
        if (is_stopped)
            (void)reap(child, SIGKILL);
        belay_fleet_leave(f);
        if (!is_stopped)
            return;
    }
}

/* From now on this thread ends by SIGSYS when it calls futex(). */
static bool forbid_futex(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

static int post_many(struct scene *s)
{
    struct belay_fleet *f = room_join(&s->room, "wakes", 0);
    struct belay_notify word;
    struct belay_error err;

    if (!f || belay_notify_open(f, "word", &word, &err) || !forbid_futex())
        return 8;
    for (int i = 0; i < 1000; i++) {
        if (belay_notify_post(f, word, &err))
            return 7;
    }
    return belay_notify_value(f, word) >= 1000 ? 0 : 6;
}

static void test_d20(struct tap *t)
{
    struct scene *s = t->arg;
    pid_t child = fork();

    if (child == 0) {
        uint32_t generation = 0;
        if (!forbid_futex())
            _exit(8);
        (void)syscall(SYS_futex, &generation, FUTEX_WAKE, 1, NULL, NULL, 0);
        _exit(0);
    }
    int status = reap(child, 0);
    TAP_OK(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    child = fork();
    if (child == 0)
        _exit(post_many(s));
    TAP_EQ(t, reap(child, 0), 0);
}

static const struct tap_case cases[] = {
    { "D17: a full file system is an error when joining, not a signal later",
      test_d17 },
    { "D18: whoever joins while a segment is made finds a whole one", test_d18 },
    { "D19: a member stopped anywhere in a claim stops nobody else", test_d19 },
    { "D20: a post that nobody waits for makes no system call", test_d20 },
};

int main(int argc, char **argv)
{
    struct scene s = { .room = { .dir = "" } };

    if (!room_init(&s.room))
        return 1;
    int code = tap_main(cases, sizeof(cases) / sizeof(cases[0]), &s, argc, argv);
    room_release(&s.room);
    return code;
}
