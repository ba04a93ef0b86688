#include "base/park.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

/* One sleep is at most this long, so that a replaced clock that runs fast is noticed.
 */
#define LONGEST_SLEEP_US ((int64_t)3600 * 1000000)

/* A bell of one who is awake. */
#define AWAKE (-1)

static struct timespec timespec_of(int64_t us)
{
    return (struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value,
                       const struct timespec *timeout)
{
    /* The result is not needed: who waits looks at the word again in any case. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
}

void parker_post(struct parker *p, uint32_t bits)
{
    atomic_fetch_or_explicit(&p->woken, bits, memory_order_release);
    /* An address is all this needs of the parker. */
    (void)syscall(SYS_futex, &p->woken, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void parker_wake(struct parker *p)
{
    parker_post(p, PARKER_WOKEN);
}

void parker_ring(struct parker *p)
{
    uint64_t one = 1;

    /* With parker_poll and parker_rest: either this sees the bell, or those who sleep behind them
     * see the bits. */
    atomic_fetch_or_explicit(&p->woken, PARKER_WOKEN, memory_order_seq_cst);
    int bell = atomic_load_explicit(&p->bell, memory_order_seq_cst);
    if (bell == AWAKE)
        return; /* it looks at the bits before it sleeps again */
    if (bell == 0)
        parker_stir(p);
    else if (write(bell - 1, &one, sizeof(one)) < 0)
        return; /* it is full, and so has been rung */
}

void parker_stir(struct parker *p)
{
    (void)syscall(SYS_futex, &p->woken, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

bool parker_take(struct parker *p)
{
    return atomic_exchange_explicit(&p->woken, 0, memory_order_acquire) != 0;
}

uint32_t parker_receive(struct parker *p, const struct belay_clock *clock,
                        int64_t deadline_us)
{
    uint32_t bits;

    while (!(bits = atomic_exchange_explicit(&p->woken, 0, memory_order_acquire))) {
        if (deadline_us == DEADLINE_NONE) {
            futex_wait(&p->woken, 0, NULL);
            continue;
        }
        int64_t left = deadline_us - clock->mono_us(clock->arg);
        if (left <= 0)
            return 0;
        if (left > LONGEST_SLEEP_US)
            left = LONGEST_SLEEP_US;
        struct timespec timeout = timespec_of(left);
        futex_wait(&p->woken, 0, &timeout);
    }
    return bits;
}

bool parker_wait(struct parker *p, const struct belay_clock *clock, int64_t deadline_us)
{
    return parker_receive(p, clock, deadline_us) != 0;
}

bool park_words_work(void)
{
    /* Of nothing to wait for a kernel that knows the call says that it is invalid. */
    return syscall(SYS_futex_waitv, NULL, 0, 0, NULL, CLOCK_MONOTONIC) < 0 &&
           errno == EINVAL;
}

void parker_nap(struct parker *p, const struct park_word *words, size_t n, int64_t us)
{
    struct futex_waitv on[PARK_WORDS_MAX + 1];
    const struct belay_clock clock = clock_system();

    if (us <= 0 || n > PARK_WORDS_MAX)
        return;
    if (us > LONGEST_SLEEP_US)
        us = LONGEST_SLEEP_US;
    if (n == 0) {
        const struct timespec timeout = timespec_of(us);
        futex_wait(&p->woken, 0, &timeout);
        return;
    }
    on[0] = (struct futex_waitv){ .uaddr = (uintptr_t)&p->woken,
                                  .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG };
    for (size_t i = 0; i < n; i++)
        on[i + 1] = (struct futex_waitv){ .val = words[i].value,
                                          .uaddr = (uintptr_t)words[i].word,
                                          .flags = FUTEX_32 };
    struct timespec until = timespec_of(clock.mono_us(clock.arg) + us);
    (void)syscall(SYS_futex_waitv, on, (unsigned)n + 1, 0, &until, CLOCK_MONOTONIC);
}

bool parker_poll(struct parker *p, int fd, int bell, int64_t us)
{
    struct pollfd on[] = { { .fd = fd, .events = POLLIN },
                           { .fd = bell, .events = POLLIN } };
    uint64_t rung;

    if (us <= 0)
        return false;
    const struct timespec timeout =
        timespec_of(us < LONGEST_SLEEP_US ? us : LONGEST_SLEEP_US);
    atomic_store_explicit(&p->bell, bell + 1, memory_order_seq_cst);
    int n = 0;
    if (atomic_load_explicit(&p->woken, memory_order_seq_cst) == 0)
        n = ppoll(on, 2, &timeout, NULL);
    bool came = n > 0 && on[0].revents;
    atomic_store_explicit(&p->bell, came ? AWAKE : 0, memory_order_seq_cst);
    if (n > 0 && on[1].revents && read(bell, &rung, sizeof(rung)) < 0)
        on[1].revents = 0;
    return came;
}

void parker_rest(struct parker *p)
{
    atomic_store_explicit(&p->bell, 0, memory_order_seq_cst);
}

void cancel_attach(struct belay_cancel *c, struct cancel_link *link,
                   struct parker *parker)
{
    *link = (struct cancel_link){ .parker = parker };
    if (!c)
        return;
    pthread_mutex_lock(&c->mutex);
    link->next = c->links;
    link->at = &c->links;
    if (link->next)
        link->next->at = &link->next;
    c->links = link;
    if (atomic_load_explicit(&c->triggered, memory_order_relaxed))
        parker_ring(parker);
    pthread_mutex_unlock(&c->mutex);
}

void cancel_detach(struct belay_cancel *c, struct cancel_link *link)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->mutex);
    if (link->at) { /* else it was detached before; neighbours write here, too */
        *link->at = link->next;
        if (link->next)
            link->next->at = link->at;
        link->at = NULL;
    }
    pthread_mutex_unlock(&c->mutex);
}

belay_rc belay_cancel_new(struct belay_cancel **out, struct belay_error *err)
{
    struct belay_cancel *c = calloc(1, sizeof(*c));
    if (!c)
        return err_no_memory(err, "a cancel");
    pthread_mutex_init(&c->mutex, NULL);
    *out = c;
    return BELAY_OK;
}

void belay_cancel_trigger(struct belay_cancel *c)
{
    pthread_mutex_lock(&c->mutex);
    atomic_store_explicit(&c->triggered, true, memory_order_release);
    for (struct cancel_link *l = c->links; l; l = l->next)
        parker_ring(l->parker);
    pthread_mutex_unlock(&c->mutex);
}

bool belay_cancel_triggered(const struct belay_cancel *c)
{
    return cancel_is_set(c);
}

void belay_cancel_free(struct belay_cancel *c)
{
    if (!c)
        return;
    pthread_mutex_destroy(&c->mutex);
    free(c);
}
