#include "store/ear.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { TAG_BELL, TAG_CONNECTION };

static void add(const struct ear *e, int fd, uint32_t tag)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = tag };

    /* If the kernel has no memory for it, the safety timers serve. */
    (void)epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &event);
}

/* Whether the thread is told that something came.  That the connection is gone it is told in any
 * case, once: who reads instead sees that, too. */
static void arm(const struct ear *e, bool armed)
{
    struct epoll_event event = { .events = armed ? EPOLLIN : EPOLLONESHOT,
                                 .data.u32 = TAG_CONNECTION };

    (void)epoll_ctl(e->epoll, EPOLL_CTL_MOD, e->fd, &event);
}

static void drop(const struct ear *e, int fd)
{
    struct epoll_event none = { .events = 0 };

    (void)epoll_ctl(e->epoll, EPOLL_CTL_DEL, fd, &none);
}

belay_rc ear_open(struct ear *e, bool (*hear)(void *arg), void *arg,
                  struct belay_error *err)
{
    *e = (struct ear){ .hear = hear, .arg = arg, .fd = -1, .thread = true };
    e->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    e->knock = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    e->epoll = epoll_create1(EPOLL_CLOEXEC);
    (void)pthread_mutex_init(&e->mutex, NULL);
    (void)pthread_cond_init(&e->given, NULL);
    if (e->bell >= 0 && e->knock >= 0 && e->epoll >= 0) {
        add(e, e->bell, TAG_BELL);
        return BELAY_OK;
    }
    ear_close(e);
    return err_set(err, BELAY_UNAVAILABLE, "wake-ups: no descriptors are left");
}

void ear_close(struct ear *e)
{
    const int fds[] = { e->bell, e->knock, e->epoll };

    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]);
    }
    (void)pthread_cond_destroy(&e->given);
    (void)pthread_mutex_destroy(&e->mutex);
}

static void ring(int fd)
{
    uint64_t one = 1;

    /* A bell that is full has been rung. */
    if (write(fd, &one, sizeof(one)) < 0)
        return;
}

static void silence(int fd)
{
    uint64_t rung;

    if (read(fd, &rung, sizeof(rung)) < 0)
        return;
}

void ear_ring(struct ear *e)
{
    ring(e->bell);
}

/* --- the thread --- */

void ear_set(struct ear *e, int fd)
{
    pthread_mutex_lock(&e->mutex);
    if (e->fd >= 0)
        drop(e, e->fd);
    e->fd = fd;
    e->broken = false;
    if (fd >= 0)
        add(e, fd, TAG_CONNECTION);
    pthread_mutex_unlock(&e->mutex);
}

/* Others may have it from here on. */
static void let_go(struct ear *e)
{
    pthread_mutex_lock(&e->mutex);
    e->thread = false;
    if (e->hopeful && e->fd >= 0)
        parker_stir(e->hopeful);
    pthread_mutex_unlock(&e->mutex);
}

/* Has it again.  Where nothing else is to be done, what came is left to a waiter that was
 * quicker; false: so it was. */
static bool own(struct ear *e, bool only_came)
{
    pthread_mutex_lock(&e->mutex);
    bool left = only_came && e->waiter && !e->broken;
    while (!left && e->waiter) {
        ring(e->knock);
        pthread_cond_wait(&e->given, &e->mutex);
    }
    e->thread = !left;
    pthread_mutex_unlock(&e->mutex);
    return !left;
}

bool ear_sleep(struct ear *e, int ms)
{
    struct epoll_event events[2];
    bool came = false, rung = false;

    let_go(e);
    do {
        int n = epoll_wait(e->epoll, events, COUNT_OF(events), ms);
        came = rung = false;
        for (int i = 0; i < n; i++) {
            came |= events[i].data.u32 == TAG_CONNECTION;
            rung |= events[i].data.u32 == TAG_BELL;
        }
    } while (!own(e, came && !rung));
    if (rung)
        silence(e->bell);
    return !e->broken && (!came || e->hear(e->arg));
}

/* --- one who waits --- */

/* The descriptor to read, or -1: the thread or somebody else does, and the next one to stop tells
 * the parker. */
static int take(struct ear *e, struct parker *p)
{
    int fd = -1;

    pthread_mutex_lock(&e->mutex);
    if (!e->thread && !e->waiter && !e->broken && e->fd >= 0) {
        e->waiter = true;
        fd = e->fd;
        arm(e, false);
    } else if (!e->hopeful) {
        e->hopeful = p;
    }
    pthread_mutex_unlock(&e->mutex);
    return fd;
}

static void give(struct ear *e, bool broken)
{
    pthread_mutex_lock(&e->mutex);
    e->waiter = false;
    e->broken = broken;
    arm(e, true); /* what has come since is seen at once */
    if (e->hopeful)
        parker_stir(e->hopeful);
    pthread_cond_signal(&e->given);
    pthread_mutex_unlock(&e->mutex);
    if (broken)
        ear_ring(e);
}

static void give_up_hope(struct ear *e, const struct parker *p)
{
    pthread_mutex_lock(&e->mutex);
    if (e->hopeful == p)
        e->hopeful = NULL;
    pthread_mutex_unlock(&e->mutex);
}

void ear_wait(struct ear *e, struct parker *p, int64_t us)
{
    int fd = take(e, p);

    if (fd < 0) {
        parker_nap(p, NULL, 0, us);
        give_up_hope(e, p);
        return;
    }
    bool came = parker_poll(p, fd, e->knock, us);
    bool broken = came && !e->hear(e->arg);
    parker_rest(p);
    give(e, broken);
}
