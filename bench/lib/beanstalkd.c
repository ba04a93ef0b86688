#include "beanstalkd.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inbox.h"
#include "program.h"

#define HOST "127.0.0.1"
#define AHEAD_MAX 50
#define PAYLOAD 100

/* --- the server --- */

static pid_t start_server(void *arg)
{
    const struct bench_beanstalkd *s = arg;
    char path[512], port[16];
    const char *const argv[] = { "beanstalkd", "-l", HOST,  "-p", port,
                                 "-b",         ".",  "-f0", NULL };

    (void)snprintf(port, sizeof(port), "%d", s->port);
    if (!bench_program_in(getenv("PATH"), "beanstalkd", path))
        return -1;
    return bench_keeper_spawn(s->folder.path, path, argv, NULL);
}

static FILE *dial(int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    bool ok = fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
              setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0;
    FILE *f = ok ? fdopen(fd, "r") : NULL;

    if (!f && fd >= 0)
        (void)close(fd);
    return f;
}

static bool answers(void *arg)
{
    const struct bench_beanstalkd *s = arg;
    FILE *f = dial(s->port);

    if (f)
        (void)fclose(f);
    return f != NULL;
}

bool bench_beanstalkd_open(struct bench_beanstalkd *s)
{
    const struct bench_kept kept = { .what = "beanstalkd",
                                     .stop = SIGTERM,
                                     .start = start_server,
                                     .answers = answers,
                                     .arg = s,
                                     .folder = &s->folder };
    char path[512];

    *s = (struct bench_beanstalkd){ .keeper.leash = -1 };
    if (!bench_program_in(getenv("PATH"), "beanstalkd", path))
        return true;
    s->port = bench_free_port();
    return s->port > 0 && bench_keeper_folder(&s->folder) &&
           bench_keeper_start(&s->keeper, &kept);
}

void bench_beanstalkd_close(struct bench_beanstalkd *s)
{
    bench_keeper_end(&s->keeper);
}

/* --- clients: requests are written by hand, answers are read as lines --- */

static bool say(FILE *f, const char *words, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fileno(f), words, n);
        if (done <= 0)
            return false;
        words += done;
        n -= (size_t)done;
    }
    return true;
}

static bool hear(FILE *f, const char *wanted, char line[256])
{
    return fgets(line, 256, f) && strncmp(line, wanted, strlen(wanted)) == 0;
}

/* As many requests in one write, then as many answers. */
static bool put(FILE *f, unsigned n)
{
    char words[AHEAD_MAX * (PAYLOAD + 32)], line[256], payload[PAYLOAD + 1];
    size_t length = 0;
    bool ok = true;

    memset(payload, 'x', PAYLOAD);
    payload[PAYLOAD] = '\0';
    for (unsigned i = 0; i < n; i++)
        length += (size_t)snprintf(words + length, sizeof(words) - length,
                                   "put 100 0 60 %d\r\n%s\r\n", PAYLOAD, payload);
    ok = say(f, words, length);
    for (unsigned i = 0; i < n && ok; i++)
        ok = hear(f, "INSERTED", line);
    return ok;
}

static bool reserve(FILE *f, unsigned n, unsigned long long ids[AHEAD_MAX],
                    unsigned *got)
{
    char words[AHEAD_MAX * 32], line[256];
    size_t length = 0;

    *got = 0;
    for (unsigned i = 0; i < n; i++)
        length += (size_t)snprintf(words + length, sizeof(words) - length,
                                   "reserve-with-timeout 0\r\n");
    bool ok = say(f, words, length);
    for (unsigned i = 0; i < n && ok; i++) {
        if (hear(f, "RESERVED ", line)) {
            ids[(*got)++] = strtoull(line + 9, NULL, 10);
            ok = fgets(line, sizeof(line), f) != NULL;
        } else {
            ok = strncmp(line, "TIMED_OUT", 9) == 0;
        }
    }
    return ok;
}

static bool forget(FILE *f, const unsigned long long *ids, unsigned n)
{
    char words[AHEAD_MAX * 32], line[256];
    size_t length = 0;

    for (unsigned i = 0; i < n; i++)
        length += (size_t)snprintf(words + length, sizeof(words) - length,
                                   "delete %llu\r\n", ids[i]);
    bool ok = say(f, words, length);
    for (unsigned i = 0; i < n && ok; i++)
        ok = hear(f, "DELETED", line);
    return ok;
}

struct drain {
    int port;
    unsigned ahead;
    _Atomic uint64_t done;
};

static bool work(void *arg, unsigned i)
{
    struct drain *d = arg;
    unsigned long long ids[AHEAD_MAX];
    unsigned got = 1;
    FILE *f = dial(d->port);
    bool ok = f != NULL;

    (void)i;
    while (ok && got > 0) {
        ok = reserve(f, d->ahead, ids, &got) && forget(f, ids, got);
        d->done += got;
    }
    if (f)
        (void)fclose(f);
    return ok;
}

double bench_beanstalkd_rate(const struct bench_beanstalkd *s, unsigned n,
                             unsigned connections, unsigned ahead)
{
    struct drain d = { .port = s->port, .ahead = ahead };
    FILE *f = dial(s->port);
    bool ok = f && ahead <= AHEAD_MAX;

    for (unsigned i = 0; i < n && ok; i += AHEAD_MAX)
        ok = put(f, n - i < AHEAD_MAX ? n - i : AHEAD_MAX);
    if (f)
        (void)fclose(f);
    double took = ok ? bench_crew(connections, work, &d) : 0;
    if (took <= 0 || d.done != n)
        (void)fprintf(stderr, "bench: beanstalkd did %llu of %u jobs\n",
                      (unsigned long long)d.done, n);
    return took > 0 && d.done == n ? n / took : 0;
}
