#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/drivers/sqlite/lock.h"
#include "tap.h"

/* What a case's processes share, and the folder it works in. */
struct place {
    char dir[128];
    char db[192];
    char lock[256];
    struct belay_clock clock;
    struct shared {
        _Atomic int go, holding, last;
        _Atomic int64_t takes[2], changes, longest[2];
    } * shared;
};

static bool place_open(struct tap *t, struct place *p)
{
    const char *base = getenv("TMPDIR");

    *p = (struct place){ .clock = clock_system() };
    (void)snprintf(p->dir, sizeof(p->dir), "%s/belay-XXXXXX",
                   base && *base ? base : "/tmp");
    if (!TAP_OK(t, mkdtemp(p->dir)))
        return false;
    (void)snprintf(p->db, sizeof(p->db), "%s/a.db", p->dir);
    (void)snprintf(p->lock, sizeof(p->lock), "%s-belay", p->db);
    p->shared = mmap(NULL, sizeof(*p->shared), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return TAP_OK(t, p->shared != MAP_FAILED);
}

static void place_close(struct place *p)
{
    munmap(p->shared, sizeof(*p->shared));
    (void)unlink(p->db);
    (void)unlink(p->lock);
    (void)rmdir(p->dir);
}

static void await(struct place *p, _Atomic int *flag)
{
    for (int i = 0; i < 20000 && atomic_load(flag) == 0; i++)
        p->clock.sleep_us(p->clock.arg, 1000);
}

static bool lock_open(struct tap *t, struct place *p, struct file_lock *l)
{
    struct belay_error err = { .message = "" };
    belay_rc rc = file_lock_open(l, p->db, &p->clock, &err);

    TAP_STR(t, err.message, "");
    return TAP_EQ(t, rc, BELAY_OK);
}

/* Children end with 0 when all went well. */
static void reap(struct tap *t, const pid_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int status = -1;
        TAP_EQ(t, waitpid(pids[i], &status, 0), pids[i]);
        TAP_EQ(t, status, 0);
    }
}

#define PROCESSES 4
#define TAKES 1500

/* The counter is read and written apart: an update between the two would be lost. */
static int count_up(struct place *p, int counter)
{
    struct file_lock l;

    if (file_lock_open(&l, p->db, &p->clock, NULL))
        return 1;
    for (int i = 0; i < TAKES; i++) {
        int64_t n = 0;
        if (file_lock_take(&l, NULL))
            return 2;
        if (pread(counter, &n, sizeof(n), 0) < 0)
            return 3;
        n++;
        if (pwrite(counter, &n, sizeof(n), 0) != sizeof(n))
            return 4;
        file_lock_release(&l);
    }
    file_lock_close(&l);
    return 0;
}

static void processes_exclude_each_other(struct tap *t)
{
    struct place p;
    pid_t pids[PROCESSES];
    int64_t n = 0;

    if (!place_open(t, &p))
        return;
    int counter = open(p.db, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (size_t i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(count_up(&p, counter));
    }
    reap(t, pids, PROCESSES);
    TAP_EQ(t, pread(counter, &n, sizeof(n), 0), sizeof(n));
    TAP_EQ(t, n, PROCESSES * TAKES);
    close(counter);
    place_close(&p);
}

/* Forks a process that takes the lock and keeps it. */
static pid_t fork_holder(struct place *p)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct file_lock l;
        if (file_lock_open(&l, p->db, &p->clock, NULL) || file_lock_take(&l, NULL))
            _exit(1);
        atomic_store(&p->shared->holding, 1);
        await(p, &p->shared->go);
        file_lock_release(&l);
        _exit(0);
    }
    await(p, &p->shared->holding);
    return pid;
}

static void a_killed_holder_frees_it(struct tap *t)
{
    struct place p;
    struct file_lock l;
    char who[64] = "", want[64];

    if (!place_open(t, &p) || !lock_open(t, &p, &l))
        return;
    pid_t pid = fork_holder(&p);
    (void)snprintf(want, sizeof(want), "pid %d", (int)pid);
    TAP_OK(t, file_lock_holder(&l, who, sizeof(who)));
    TAP_STR(t, who, want);
    kill(pid, SIGKILL);
    TAP_EQ(t, file_lock_take(&l, NULL), BELAY_OK);
    TAP_EQ(t, waitpid(pid, NULL, 0), pid);
    TAP_OK(t, l.held);
    TAP_OK(t, l.named);
    file_lock_close(&l);
    place_close(&p);
}

static void nothing(int number)
{
    (void)number;
}

static void signals_do_not_disturb_a_wait(struct tap *t)
{
    struct place p;
    struct file_lock l;
    struct sigaction before, action = { .sa_handler = nothing }; /* no SA_RESTART */
    struct itimerval often = { { 0, 2000 }, { 0, 2000 } },
                     never = { { 0, 0 }, { 0, 0 } };

    if (!place_open(t, &p) || !lock_open(t, &p, &l))
        return;
    pid_t pid = fork_holder(&p), killer = fork();
    if (killer == 0) {
        p.clock.sleep_us(p.clock.arg, 50000);
        atomic_store(&p.shared->go, 1);
        _exit(0);
    }
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    TAP_EQ(t, file_lock_take(&l, NULL), BELAY_OK);
    TAP_EQ(t, atomic_load(&p.shared->go), 1); /* not before it was released */
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    file_lock_release(&l);
    file_lock_close(&l);
    reap(t, (pid_t[]){ pid, killer }, 2);
    place_close(&p);
}

/* Whether somebody else stands in the turnstile. */
static bool somebody_waits(struct place *p, const struct file_lock *l)
{
    for (int i = 0; i < 20000; i++) {
        struct flock turnstile = {
            .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1
        };
        if (fcntl(l->fd, F_OFD_GETLK, &turnstile) == 0 && turnstile.l_type != F_UNLCK)
            return true;
        p->clock.sleep_us(p->clock.arg, 100);
    }
    return false;
}

static int take_until_told(struct place *p)
{
    struct file_lock l;

    if (file_lock_open(&l, p->db, &p->clock, NULL))
        return 1;
    while (!atomic_load(&p->shared->go)) {
        if (file_lock_take(&l, NULL))
            return 2;
        atomic_fetch_add(&p->shared->takes[0], 1);
        file_lock_release(&l);
    }
    file_lock_close(&l);
    return 0;
}

static void who_waits_goes_first(struct tap *t)
{
    struct place p;
    struct file_lock l;

    if (!place_open(t, &p) || !lock_open(t, &p, &l))
        return;
    TAP_EQ(t, file_lock_take(&l, NULL), BELAY_OK);
    pid_t pid = fork();
    if (pid == 0) {
        file_lock_close(&l);
        _exit(take_until_told(&p));
    }
    for (int i = 0; i < 200 && TAP_OK(t, somebody_waits(&p, &l)); i++) {
        int64_t before = atomic_load(&p.shared->takes[0]);
        file_lock_release(&l);
        TAP_EQ(t, file_lock_take(&l, NULL), BELAY_OK);
        if (!TAP_OK(t, atomic_load(&p.shared->takes[0]) > before))
            break;
    }
    atomic_store(&p.shared->go, 1);
    file_lock_release(&l);
    reap(t, &pid, 1);
    file_lock_close(&l);
    place_close(&p);
}

#define FAIR_FOR_US 400000

/* Takes it again at once, all the time; counts how often it came from the other. */
static int contend(struct place *p, int me)
{
    struct shared *s = p->shared;
    struct file_lock l;

    if (file_lock_open(&l, p->db, &p->clock, NULL))
        return 1;
    atomic_fetch_add(&s->holding, 1);
    await(p, &s->go);
    int64_t end = p->clock.mono_us(p->clock.arg) + FAIR_FOR_US;
    while (p->clock.mono_us(p->clock.arg) < end) {
        if (file_lock_take(&l, NULL))
            return 2;
        if (atomic_exchange(&s->last, me + 1) != me + 1)
            atomic_fetch_add(&s->changes, 1);
        p->clock.sleep_us(p->clock.arg, 500); /* time for the other to queue up */
        file_lock_release(&l);
        atomic_fetch_add(&s->takes[me], 1);
    }
    atomic_store(&s->longest[me], l.longest_wait_us);
    file_lock_close(&l);
    return 0;
}

static void nobody_starves(struct tap *t)
{
    struct place p;
    pid_t pids[2];

    if (!place_open(t, &p))
        return;
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(contend(&p, i));
    }
    for (int i = 0; i < 20000 && atomic_load(&p.shared->holding) < 2; i++)
        p.clock.sleep_us(p.clock.arg, 1000);
    atomic_store(&p.shared->go, 1);
    reap(t, pids, 2);
    int64_t a = p.shared->takes[0], b = p.shared->takes[1];
    TAP_OK(t, a > 10 && b > 10);
    TAP_OK(t, p.shared->changes > 10); /* nearly each time, on a quiet machine */
    for (int i = 0; i < 2; i++) {
        TAP_OK(t, p.shared->longest[i] > 0);
        TAP_OK(t, p.shared->longest[i] < FAIR_FOR_US * 3 / 4);
    }
    place_close(&p);
}

static int64_t one_ms_a_call(void *arg)
{
    int64_t *now = arg;

    return *now += 1000;
}

static void the_longest_wait_is_recorded(struct tap *t)
{
    struct place p;
    struct file_lock l;
    int64_t now = 0;

    if (!place_open(t, &p))
        return;
    p.clock.mono_us = one_ms_a_call;
    p.clock.arg = &now;
    if (!lock_open(t, &p, &l))
        return;
    TAP_EQ(t, l.longest_wait_us, 0);
    TAP_EQ(t, file_lock_take(&l, NULL), BELAY_OK);
    TAP_EQ(t, l.longest_wait_us, 1000);
    file_lock_release(&l);
    l.longest_wait_us = 5000;
    TAP_EQ(t, file_lock_take(&l, NULL), BELAY_OK);
    TAP_EQ(t, l.longest_wait_us, 5000); /* a shorter one does not count */
    file_lock_close(&l);
    place_close(&p);
}

static void the_holder_is_known(struct tap *t)
{
    struct place p;
    struct file_lock l, other;
    char who[64] = "", want[64], raw[33] = "";

    if (!place_open(t, &p) || !lock_open(t, &p, &l) || !lock_open(t, &p, &other))
        return;
    (void)snprintf(want, sizeof(want), "pid %d", (int)getpid());
    TAP_OK(t, !file_lock_holder(&l, who, sizeof(who)));
    for (int i = 0; i < 2; i++) {
        TAP_EQ(t, file_lock_take(&l, NULL), BELAY_OK);
        TAP_OK(t, file_lock_holder(&l, who, sizeof(who)));
        TAP_STR(t, who, want);
        memset(who, 0, sizeof(who));
        TAP_OK(t, file_lock_holder(&other, who, sizeof(who)));
        TAP_STR(t, who, want);
        file_lock_release(&l);
        TAP_OK(t, !file_lock_holder(&l, who, sizeof(who)));
        TAP_OK(t, !file_lock_holder(&other, who, sizeof(who)));
    }
    TAP_EQ(t, pread(l.fd, raw, 32, 64), 32);
    TAP_EQ(t, strlen(raw), 32);
    TAP_EQ(t, strncmp(raw, want, strlen(want)), 0);
    TAP_EQ(t, strspn(raw + strlen(want), "\n "), 32 - strlen(want));

    TAP_EQ(t, file_lock_take(&l, NULL), BELAY_OK);
    TAP_EQ(t, pwrite(l.fd, "\033[31mpid -1", 11, 64), 11);
    TAP_OK(t, file_lock_holder(&l, who, sizeof(who)));
    TAP_STR(t, who, "an unknown process");
    file_lock_release(&l);
    TAP_EQ(t, file_lock_take(&l, NULL), BELAY_OK); /* and is put right */
    TAP_OK(t, file_lock_holder(&l, who, sizeof(who)));
    TAP_STR(t, who, want);
    file_lock_close(&l);
    file_lock_close(&other);
    place_close(&p);
}

static void refused(struct tap *t, struct place *p, const char *db, belay_rc want,
                    const char *why)
{
    struct belay_error err = { .message = "" };
    struct file_lock l = { .fd = -7 };

    TAP_EQ(t, file_lock_open(&l, db, &p->clock, &err), want);
    TAP_EQ(t, err.code, want);
    TAP_EQ(t, strncmp(err.message, "lock file", 9), 0);
    if (!TAP_OK(t, strstr(err.message, why)))
        printf("# %s\n", err.message);
    TAP_EQ(t, l.fd, -7);
}

static void what_cannot_be_a_lock_is_refused(struct tap *t)
{
    struct place p;
    char path[320], longest[PATH_MAX + 16];

    if (!place_open(t, &p))
        return;
    (void)snprintf(path, sizeof(path), "%s/none/a.db", p.dir);
    refused(t, &p, path, BELAY_UNAVAILABLE, "none/a.db-belay: no such folder");

    close(open(p.db, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    (void)snprintf(path, sizeof(path), "%s/b.db", p.db);
    refused(t, &p, path, BELAY_UNAVAILABLE, "is not a folder");

    TAP_EQ(t, symlink(p.db, p.lock), 0);
    refused(t, &p, p.db, BELAY_UNAVAILABLE, "a.db-belay: is a symbolic link");
    (void)unlink(p.lock);
    TAP_EQ(t, symlink("nowhere", p.lock), 0);
    refused(t, &p, p.db, BELAY_UNAVAILABLE, "a.db-belay: is a symbolic link");
    (void)unlink(p.lock);
    TAP_EQ(t, mkdir(p.lock, 0700), 0);
    refused(t, &p, p.db, BELAY_UNAVAILABLE, "a.db-belay: is a folder");
    (void)rmdir(p.lock);
    TAP_EQ(t, mkfifo(p.lock, 0600), 0);
    refused(t, &p, p.db, BELAY_UNAVAILABLE, "a.db-belay: is not a regular file");

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    refused(t, &p, longest, BELAY_INVALID, "the path is too long: xxx");
    longest[PATH_MAX - 3] = 0;
    refused(t, &p, longest, BELAY_INVALID, "the path is too long: xxx");
    longest[300] = 0; /* a path, but no name of a file */
    refused(t, &p, longest, BELAY_INVALID, "the path is too long");
    place_close(&p);
}

static int mode_of(const char *path)
{
    struct stat st = { .st_mode = 0 };

    (void)!stat(path, &st);
    return (int)(st.st_mode & 07777);
}

static void the_file_is_as_open_as_the_database(struct tap *t)
{
    static const mode_t modes[] = { 0600, 0640, 0664, 0666 };
    struct place p;
    struct file_lock l;

    if (!place_open(t, &p))
        return;
    mode_t mask = umask(0);
    if (lock_open(t, &p, &l)) {
        TAP_EQ(t, mode_of(p.lock), 0600);
        TAP_OK(t, fcntl(l.fd, F_GETFD) & FD_CLOEXEC);
        file_lock_close(&l);
        TAP_EQ(t, l.fd, -1);
    }
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        (void)unlink(p.lock);
        close(open(p.db, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        TAP_EQ(t, chmod(p.db, modes[i]), 0);
        umask(077);
        if (lock_open(t, &p, &l)) {
            TAP_EQ(t, mode_of(p.lock), modes[i]);
            file_lock_close(&l);
        }
    }
    TAP_EQ(t, chmod(p.lock, 0600), 0); /* one that is there stays as it is */
    if (lock_open(t, &p, &l))
        file_lock_close(&l);
    TAP_EQ(t, mode_of(p.lock), 0600);
    umask(mask);
    place_close(&p);
}

static void all_names_of_a_database_share_one(struct tap *t)
{
    struct place p;
    struct file_lock real, linked;
    char link[192], who[64];

    if (!place_open(t, &p))
        return;
    (void)snprintf(link, sizeof(link), "%s/link.db", p.dir);
    close(open(p.db, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    TAP_EQ(t, symlink("a.db", link), 0);
    if (!lock_open(t, &p, &real))
        return;
    TAP_EQ(t, file_lock_open(&linked, link, &p.clock, NULL), BELAY_OK);
    TAP_EQ(t, file_lock_take(&real, NULL), BELAY_OK);
    TAP_OK(t, file_lock_holder(&linked, who, sizeof(who)));
    file_lock_close(&real);
    TAP_OK(t, !file_lock_holder(&linked, who, sizeof(who)));
    file_lock_close(&linked);
    (void)unlink(link);
    place_close(&p);
}

static void a_store_in_memory_needs_none(struct tap *t)
{
    struct file_lock l = { .fd = -1 };
    char who[64];

    TAP_EQ(t, file_lock_take(&l, NULL), BELAY_OK);
    TAP_OK(t, l.held);
    TAP_OK(t, !file_lock_holder(&l, who, sizeof(who)));
    file_lock_release(&l);
    TAP_OK(t, !l.held);
    file_lock_close(&l);
}

static void a_lost_descriptor_is_an_error(struct tap *t)
{
    struct place p;
    struct file_lock l;
    struct belay_error err = { .message = "" };

    if (!place_open(t, &p) || !lock_open(t, &p, &l))
        return;
    close(l.fd);
    TAP_EQ(t, file_lock_take(&l, &err), BELAY_UNAVAILABLE);
    TAP_STR(t, err.message, "lock file: cannot be locked: Bad file descriptor");
    TAP_OK(t, !l.held);
    place_close(&p);
}

/* Takes the lock, forks a child that outlives it, and dies: the child must not keep what
 * the dead one held. */
static void a_forked_child_keeps_nothing(struct tap *t)
{
    struct place p;
    struct file_lock l;
    pid_t holder = 0;

    if (!place_open(t, &p))
        return;
    holder = fork();
    if (holder == 0) {
        struct file_lock mine;
        if (file_lock_open(&mine, p.db, &p.clock, NULL) || file_lock_take(&mine, NULL))
            _exit(1);
        pid_t child = fork();
        if (child == 0) {
            file_lock_close(&mine); /* closed before: takes nobody else's descriptor */
            await(&p, &p.shared->go);
            _exit(0);
        }
        _exit(child > 0 ? 0 : 1); /* still holding it */
    }
    reap(t, &holder, 1);
    if (lock_open(t, &p, &l)) {
        TAP_EQ(t, file_lock_take(&l, NULL), BELAY_OK); /* or this waits for ever */
        file_lock_release(&l);
        file_lock_close(&l);
    }
    atomic_store(&p.shared->go, 1);
    place_close(&p);
}

static const struct tap_case cases[] = {
    { "processes exclude each other", processes_exclude_each_other },
    { "a killed holder frees it", a_killed_holder_frees_it },
    { "a forked child does not keep a dead parent's lock",
      a_forked_child_keeps_nothing },
    { "signals do not disturb a wait", signals_do_not_disturb_a_wait },
    { "who waits goes before who released", who_waits_goes_first },
    { "nobody starves", nobody_starves },
    { "the longest wait is recorded", the_longest_wait_is_recorded },
    { "the holder is known", the_holder_is_known },
    { "what cannot be a lock is refused", what_cannot_be_a_lock_is_refused },
    { "the file is as open as the database", the_file_is_as_open_as_the_database },
    { "all names of a database share one lock", all_names_of_a_database_share_one },
    { "a store in memory needs none", a_store_in_memory_needs_none },
    { "a lost descriptor is an error", a_lost_descriptor_is_an_error },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
