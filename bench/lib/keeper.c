#include "keeper.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_S 60.0
#define STOP_S 30.0

bool bench_keeper_folder(struct bench_folder *f)
{
    (void)snprintf(f->path, sizeof(f->path), "/var/tmp/belay-bench-XXXXXX");
    if (mkdtemp(f->path))
        return true;
    perror("bench: a folder for the server");
    f->path[0] = '\0';
    return false;
}

pid_t bench_keeper_spawn(const char *folder, const char *program,
                         const char *const *argv, bool (*first)(void))
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    if ((first && !first()) || chdir(folder))
        _exit(126);
    int log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0600);
    int none = open("/dev/null", O_RDONLY);
    if (log < 0 || none < 0 || dup2(none, 0) < 0 || dup2(log, 1) < 0 ||
        dup2(log, 2) < 0)
        _exit(126);
    (void)execv(program, (char *const *)argv);
    _exit(127);
}

int bench_free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
              getsockname(fd, (struct sockaddr *)&at, &size) == 0;
    if (fd >= 0)
        (void)close(fd);
    return ok ? ntohs(at.sin_port) : 0;
}

/* --- the keeper --- */

static void pause_ms(int ms)
{
    (void)poll(NULL, 0, ms);
}

static bool comes_up(const struct bench_kept *kept, pid_t server)
{
    double end = bench_now() + START_S;

    while (bench_now() < end && waitpid(server, NULL, WNOHANG) == 0) {
        if (kept->answers(kept->arg))
            return true;
        pause_ms(20);
    }
    return false;
}

static void stop_server(pid_t server, int with)
{
    double end = bench_now() + STOP_S;

    if (server <= 0 || kill(server, with))
        return;
    while (bench_now() < end) {
        if (waitpid(server, NULL, WNOHANG) != 0)
            return;
        pause_ms(20);
    }
    (void)kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
}

/* Serves until nobody holds the other end of the leash.  Signals for the benchmark's
 * group are not for it: it has to clean up. */
static void keep(const struct bench_kept *kept, int leash, int out)
{
    char c;

    (void)setsid();
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    pid_t server = kept->start(kept->arg);
    c = server > 0 && comes_up(kept, server) ? 'y' : 'n';
    if (write(out, &c, 1) == 1)
        while (read(leash, &c, 1) > 0)
            continue;
    stop_server(server, kept->stop);
    bench_folder_remove(kept->folder);
    _exit(0);
}

bool bench_keeper_start(struct bench_keeper *k, const struct bench_kept *kept)
{
    int leash[2], answer[2];
    char c = 'n';

    *k = (struct bench_keeper){ .leash = -1 };
    if (pipe2(leash, O_CLOEXEC) || pipe2(answer, O_CLOEXEC)) {
        perror("bench: a pipe");
        return false;
    }
    (void)fflush(NULL);
    k->pid = fork();
    if (k->pid == 0) {
        (void)close(leash[1]);
        (void)close(answer[0]);
        keep(kept, leash[0], answer[1]);
    }
    (void)close(leash[0]);
    (void)close(answer[1]);
    k->leash = leash[1];
    if (k->pid < 0 || read(answer[0], &c, 1) != 1)
        c = 'n';
    (void)close(answer[0]);
    if (c != 'y')
        (void)fprintf(stderr, "bench: the %s server does not start\n", kept->what);
    return c == 'y';
}

void bench_keeper_end(struct bench_keeper *k)
{
    if (k->leash >= 0)
        (void)close(k->leash);
    if (k->pid > 0)
        (void)waitpid(k->pid, NULL, 0);
    *k = (struct bench_keeper){ .leash = -1 };
}
