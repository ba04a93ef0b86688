#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 64
#define TICK_MS 20
#define DELAY_MS 200

struct pair {
    int fd[2]; /* client, server; -1: the pair is free */
    bool hole;
};

struct proxy {
    int door, target;
    pthread_t thread;
    struct pair pair[PAIRS_MAX]; /* the thread's own */

    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t cond;   /* hold or held has changed */
    bool stop, armed, happened, hold, held;
    enum proxy_fault fault;
    enum proxy_way way;
    uint64_t left;
    uint64_t bytes[2];
    const char *from, *to; /* NULL: nothing is swapped */
};

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static void drop(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        if (pair->fd[i] >= 0)
            (void)close(pair->fd[i]);
        pair->fd[i] = -1;
    }
}

/* What comes in pieces goes on in pieces, at once. */
static bool at_once(int fd)
{
    int on = 1;

    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0;
}

static void welcome(struct proxy *p)
{
    struct sockaddr_in to = loopback(p->target);
    int client = accept4(p->door, NULL, NULL, SOCK_CLOEXEC);
    struct pair *pair = p->pair;

    while (pair < p->pair + PAIRS_MAX && pair->fd[0] >= 0)
        pair++;
    if (client < 0 || pair == p->pair + PAIRS_MAX) {
        if (client >= 0)
            (void)close(client);
        return;
    }
    *pair = (struct pair){ .fd = { client, -1 } };
    pair->fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (pair->fd[1] < 0 || !at_once(pair->fd[0]) || !at_once(pair->fd[1]) ||
        connect(pair->fd[1], (struct sockaddr *)&to, sizeof(to)))
        drop(pair);
}

/* How many of n bytes may pass; *fault is due behind them when it says so. */
static size_t allowed(struct proxy *p, int way, size_t n, bool *due,
                      enum proxy_fault *fault)
{
    pthread_mutex_lock(&p->mutex);
    *fault = p->fault;
    *due = p->armed && (int)p->way == way && n >= p->left;
    if (*due) {
        n = (size_t)p->left;
        p->armed = false;
        p->happened = true;
    } else if (p->armed && (int)p->way == way) {
        p->left -= n;
    }
    p->bytes[way] += n;
    pthread_mutex_unlock(&p->mutex);
    return n;
}

static bool send_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        data += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* In what arrived at once: enough for what is said in one piece. */
static void swap(struct proxy *p, char *data, size_t n)
{
    pthread_mutex_lock(&p->mutex);
    const char *from = p->from, *to = p->to;
    pthread_mutex_unlock(&p->mutex);
    char *at = from ? memmem(data, n, from, strlen(from)) : NULL;
    for (size_t i = 0; at && to[i]; i++)
        at[i] = to[i];
}

/* What is behind the fault of a pause is sent after it, like everything else. */
static void forward(struct proxy *p, struct pair *pair, int way)
{
    char data[16384];
    enum proxy_fault fault;
    bool due;
    ssize_t n = recv(pair->fd[way], data, sizeof(data), 0);

    if (n <= 0) {
        drop(pair);
        return;
    }
    if (way == PROXY_DOWN)
        swap(p, data, (size_t)n);
    size_t pass = allowed(p, way, (size_t)n, &due, &fault);
    bool ok = send_all(pair->fd[1 - way], data, pass);
    if (due && fault == PROXY_DELAY) {
        (void)usleep(DELAY_MS * 1000);
        ok = ok && send_all(pair->fd[1 - way], data + pass, (size_t)n - pass);
    }
    if (due && fault == PROXY_HOLE)
        pair->hole = true;
    if (!ok || (due && fault == PROXY_CUT))
        drop(pair);
}

/* A hole swallows what comes, and notices when the client gives up. */
static void swallow(struct pair *pair, int way)
{
    char data[4096];

    if (recv(pair->fd[way], data, sizeof(data), 0) <= 0)
        drop(pair);
}

static void turn(struct proxy *p)
{
    struct pollfd poller[1 + 2 * PAIRS_MAX] = { { .fd = p->door, .events = POLLIN } };

    for (size_t i = 0; i < PAIRS_MAX; i++) {
        for (size_t k = 0; k < 2; k++)
            poller[1 + 2 * i + k] =
                (struct pollfd){ .fd = p->pair[i].fd[k], .events = POLLIN };
    }
    if (poll(poller, 1 + 2 * PAIRS_MAX, TICK_MS) <= 0)
        return;
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        for (int k = 0; k < 2; k++) {
            struct pair *pair = &p->pair[i];
            if (!poller[1 + 2 * i + (size_t)k].revents || pair->fd[k] < 0)
                continue;
            if (pair->hole)
                swallow(pair, k);
            else
                forward(p, pair, k);
        }
    }
    if (poller[0].revents)
        welcome(p);
}

/* Whether to go on; not before it has been let go. */
static bool goes_on(struct proxy *p)
{
    pthread_mutex_lock(&p->mutex);
    while (p->hold && !p->stop) {
        p->held = true;
        (void)pthread_cond_broadcast(&p->cond);
        (void)pthread_cond_wait(&p->cond, &p->mutex);
    }
    p->held = false;
    bool stop = p->stop;
    pthread_mutex_unlock(&p->mutex);
    return !stop;
}

static void *proxy_thread(void *arg)
{
    struct proxy *p = arg;

    while (goes_on(p))
        turn(p);
    return NULL;
}

void proxy_hold(struct proxy *p)
{
    pthread_mutex_lock(&p->mutex);
    p->hold = true;
    while (!p->held)
        (void)pthread_cond_wait(&p->cond, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
}

void proxy_let_go(struct proxy *p)
{
    pthread_mutex_lock(&p->mutex);
    p->hold = false;
    (void)pthread_cond_broadcast(&p->cond);
    pthread_mutex_unlock(&p->mutex);
}

uint64_t proxy_held_bytes(struct proxy *p)
{
    uint64_t sum = 0;

    pthread_mutex_lock(&p->mutex);
    for (size_t i = 0; i < PAIRS_MAX && p->held; i++) {
        int n = 0;
        if (p->pair[i].fd[0] >= 0 && ioctl(p->pair[i].fd[0], FIONREAD, &n) == 0)
            sum += (uint64_t)n;
    }
    pthread_mutex_unlock(&p->mutex);
    return sum;
}

/* The number behind the last colon. */
static int port_of(const char *url)
{
    const char *colon = strrchr(url, ':');

    return colon ? (int)strtol(colon + 1, NULL, 10) : 0;
}

void proxy_url_at(const char *url, int port, char *out, size_t size)
{
    const char *colon = strrchr(url, ':');
    int before = colon ? (int)(colon + 1 - url) : 0;
    const char *behind = colon ? colon + 1 + strspn(colon + 1, "0123456789") : "";

    (void)snprintf(out, size, "%.*s%d%s", before, url, port, behind);
}

struct proxy *proxy_open(const char *url, char *out, size_t size)
{
    struct proxy *p = calloc(1, sizeof(*p));
    struct sockaddr_in at = loopback(0);
    socklen_t len = sizeof(at);

    if (!p)
        abort();
    for (size_t i = 0; i < PAIRS_MAX; i++)
        p->pair[i].fd[0] = p->pair[i].fd[1] = -1;
    p->target = port_of(url);
    p->door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)pthread_mutex_init(&p->mutex, NULL);
    (void)pthread_cond_init(&p->cond, NULL);
    if (p->door < 0 || bind(p->door, (struct sockaddr *)&at, sizeof(at)) ||
        listen(p->door, PAIRS_MAX) ||
        getsockname(p->door, (struct sockaddr *)&at, &len) ||
        pthread_create(&p->thread, NULL, proxy_thread, p)) {
        printf("Bail out! no proxy: %s\n", strerror(errno));
        exit(1);
    }
    proxy_url_at(url, (int)ntohs(at.sin_port), out, size);
    return p;
}

void proxy_close(struct proxy *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    p->stop = true;
    (void)pthread_cond_broadcast(&p->cond);
    pthread_mutex_unlock(&p->mutex);
    (void)pthread_join(p->thread, NULL);
    for (size_t i = 0; i < PAIRS_MAX; i++)
        drop(&p->pair[i]);
    (void)close(p->door);
    (void)pthread_mutex_destroy(&p->mutex);
    (void)pthread_cond_destroy(&p->cond);
    free(p);
}

void proxy_arm(struct proxy *p, enum proxy_fault fault, enum proxy_way way,
               uint64_t after_bytes)
{
    pthread_mutex_lock(&p->mutex);
    p->fault = fault;
    p->way = way;
    p->left = after_bytes;
    p->armed = true;
    p->happened = false;
    pthread_mutex_unlock(&p->mutex);
}

void proxy_swap(struct proxy *p, const char *from, const char *to)
{
    pthread_mutex_lock(&p->mutex);
    p->from = from;
    p->to = to;
    pthread_mutex_unlock(&p->mutex);
}

bool proxy_disarm(struct proxy *p)
{
    pthread_mutex_lock(&p->mutex);
    bool happened = p->happened;
    p->armed = p->happened = false;
    pthread_mutex_unlock(&p->mutex);
    return happened;
}

uint64_t proxy_bytes(struct proxy *p, enum proxy_way way)
{
    pthread_mutex_lock(&p->mutex);
    uint64_t n = p->bytes[way];
    pthread_mutex_unlock(&p->mutex);
    return n;
}
