#include "cli/job_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILURE_FD 3 /* in the child */
#define EXIT_NOT_RUN 127

/* --- the environment --- */

static char *join(const struct child_variable *v, struct belay_arena *a)
{
    size_t size = strlen(v->name) + strlen(v->value) + 2;
    char *text = arena_alloc(a, size);

    if (text)
        (void)snprintf(text, size, "%s=%s", v->name, v->value);
    return text;
}

static bool begins_with_one(const char *text, const char *const *beginnings)
{
    while (*beginnings && strncmp(text, *beginnings, strlen(*beginnings)) != 0)
        beginnings++;
    return *beginnings != NULL;
}

char **child_environment(char *const *environment, const char *const *without,
                         const struct child_variable *variables, size_t n,
                         struct belay_arena *a)
{
    size_t count = 0, used = 0;

    while (environment[count])
        count++;
    char **out = arena_zalloc(a, count + n + 1, sizeof(*out));
    if (!out)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (!begins_with_one(environment[i], without))
            out[used++] = environment[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (!variables[i].value)
            continue;
        out[used] = join(&variables[i], a);
        if (!out[used++])
            return NULL;
    }
    return out;
}

/* --- the worker's side --- */

/* Pipes of one child: the worker's end, and the child's. */
enum { PIPE_IN, PIPE_OUT, PIPE_ERR, PIPE_FAILURE, PIPE_COUNT };
struct pipes {
    int ours[PIPE_COUNT], theirs[PIPE_COUNT];
};

static void close_all(const int fds[PIPE_COUNT])
{
    for (size_t i = 0; i < PIPE_COUNT; i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]);
    }
}

/* From `first` on; there are none before it. */
static bool open_pipes(struct pipes *p, size_t first)
{
    bool opened = true;

    for (size_t i = 0; i < first; i++)
        p->ours[i] = p->theirs[i] = -1;
    for (size_t i = first; i < PIPE_COUNT; i++) {
        int ends[2] = { -1, -1 };
        bool they_read = i == PIPE_IN;
        if (opened && pipe2(ends, O_CLOEXEC))
            opened = false;
        p->ours[i] = ends[they_read ? 1 : 0];
        p->theirs[i] = ends[they_read ? 0 : 1];
        if (opened && fcntl(p->ours[i], F_SETFL, O_NONBLOCK))
            opened = false;
    }
    return opened;
}

/* Standard descriptors come before FAILURE_FD: whatever stands there has been copied when
 * it is overwritten. */
static int set_files(posix_spawn_file_actions_t *files, const struct pipes *p)
{
    int rc = 0;

    for (int i = 0; i < PIPE_COUNT && !rc; i++) {
        if (p->theirs[i] >= 0)
            rc = posix_spawn_file_actions_adddup2(files, p->theirs[i], i);
    }
    return rc;
}

/* A group of its own, no signal blocked or ignored. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    int rc = 0;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    rc |= posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP |
                                                   POSIX_SPAWN_SETSIGMASK |
                                                   POSIX_SPAWN_SETSIGDEF);
    rc |= posix_spawnattr_setpgroup(attributes, 0);
    rc |= posix_spawnattr_setsigmask(attributes, &none);
    rc |= posix_spawnattr_setsigdefault(attributes, &all);
    return rc;
}

/* 0 or an errno. */
static int spawn(char *const *words, char *const *environment, const struct pipes *p,
                 pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;

    int rc = posix_spawn_file_actions_init(&files);
    if (rc)
        return rc;
    rc = posix_spawnattr_init(&attributes);
    if (!rc) {
        rc = set_files(&files, p);
        if (!rc)
            rc = set_attributes(&attributes);
        if (!rc)
            rc = posix_spawn(pid, "/proc/self/exe", &files, &attributes, words,
                             environment);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&files);
    return rc;
}

/* "belay __job PARENT COMMAND..." */
static char **words_for(char *const *argv, char parent[I64_TEXT_MAX])
{
    static char program[] = "belay", word[] = JOB_WORD;
    size_t n = 0;

    while (argv[n])
        n++;
    char **words = calloc(n + 4, sizeof(*words));
    if (!words)
        return NULL;
    (void)bytes_put_i64(parent, (int64_t)getpid());
    words[0] = program;
    words[1] = word;
    words[2] = parent;
    memcpy(words + 3, argv, n * sizeof(*argv));
    return words;
}

static belay_rc failed(struct belay_error *err, const char *what, int why)
{
    if (why == E2BIG)
        return err_reason(err, BELAY_INVALID, "too_long",
                          "the command cannot be run: %s", strerrordesc_np(why));
    return err_reason(err, BELAY_UNAVAILABLE, "spawn", "%s: %s", what,
                      strerrordesc_np(why));
}

/* A child that cannot be watched over must not run. */
static int watch(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    int why = errno;
    siginfo_t info;

    if (fd >= 0)
        return fd;
    (void)kill(-pid, SIGKILL);
    (void)waitid(P_PID, (id_t)pid, &info, WEXITED);
    errno = why;
    return -1;
}

static belay_rc spawn_with(char *const *argv, char *const *environment,
                           size_t first_pipe, struct child *out,
                           struct belay_error *err)
{
    char parent[I64_TEXT_MAX];
    char **words = words_for(argv, parent);
    struct pipes p;
    pid_t pid = 0;

    if (!words)
        return err_no_memory(err, "a process");
    int why = open_pipes(&p, first_pipe) ? spawn(words, environment, &p, &pid) : errno;
    free(words);
    close_all(p.theirs);
    int pidfd = why ? -1 : watch(pid);
    if (!why && pidfd < 0)
        why = errno;
    if (why) {
        close_all(p.ours);
        return failed(err, "a process cannot be started", why);
    }
    *out = (struct child){ .pid = pid,
                           .pidfd = pidfd,
                           .in = p.ours[PIPE_IN],
                           .out = p.ours[PIPE_OUT],
                           .err = p.ours[PIPE_ERR],
                           .failure = p.ours[PIPE_FAILURE] };
    return BELAY_OK;
}

belay_rc child_spawn(char *const *argv, char *const *environment, struct child *out,
                     struct belay_error *err)
{
    return spawn_with(argv, environment, PIPE_IN, out, err);
}

belay_rc child_spawn_beside(char *const *argv, char *const *environment,
                            struct child *out, struct belay_error *err)
{
    return spawn_with(argv, environment, PIPE_FAILURE, out, err);
}

/* --- the child's side --- */

/* Descriptors that somebody opened without closing them at exec, a connection to a store
 * for one. */
static void close_others(void)
{
    long most = sysconf(_SC_OPEN_MAX);

    if (syscall(SYS_close_range, FAILURE_FD + 1, ~0U, 0) == 0)
        return;
    for (int fd = FAILURE_FD + 1; fd < (int)most; fd++)
        (void)close(fd);
}

int job_become(int n, char *const *words)
{
    int64_t parent;

    if (n < 2 || !bytes_to_i64(bytes_str(words[0]), &parent))
        return EXIT_NOT_RUN;
    (void)fcntl(FAILURE_FD, F_SETFD, FD_CLOEXEC);
    close_others();
    /* KILL, since nobody would be left to follow a TERM up. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != (pid_t)parent)
        return EXIT_NOT_RUN;
    (void)execvp(words[1], words + 1);
    int why = errno;
    ssize_t told = write(FAILURE_FD, &why, sizeof(why));
    (void)told;
    return EXIT_NOT_RUN;
}
