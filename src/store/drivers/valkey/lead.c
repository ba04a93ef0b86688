/* Leading: the I/O of a connection, for everybody who shares it. */
#include <poll.h>
#include <stdlib.h>

#include "store/drivers/valkey/link.h"

#define PARTS_MAX 64 /* of one write */

/* --- being done --- */

/* Tells those who wait.  They are gone once they know. */
static void tell(struct vk_link *l, struct waiters *done, const struct waiter *self)
{
    size_t n = 0;

    pthread_mutex_lock(&l->mutex);
    for (struct waiter *w = done->first; w; w = w->next) {
        w->done = true;
        n++;
    }
    pthread_mutex_unlock(&l->mutex);
    (void)atomic_fetch_sub_explicit(&l->waiting, n, memory_order_relaxed);
    while (done->first) {
        struct waiter *w = waiters_pop(done);
        if (w->posted)
            free(w);
        else if (w != self)
            parker_post(&w->parker, TOLD_DONE);
    }
}

void lead_fail(struct vk_link *l, const struct waiter *self, const char *why)
{
    struct waiters failed;

    waiters_init(&failed);
    pthread_mutex_lock(&l->mutex);
    link_kill(l, why);
    while (l->flight.first)
        waiters_push(&failed, waiters_pop(&l->flight));
    while (l->queue.first)
        waiters_push(&failed, waiters_pop(&l->queue));
    memset(l->tags, 0, sizeof(l->tags));
    l->unsent = NULL;
    for (struct waiter *w = failed.first; w; w = w->next) {
        link_set_failed(w, &l->why);
        w->done = true; /* it is in no queue that it could leave */
    }
    pthread_mutex_unlock(&l->mutex);
    tell(l, &failed, self);
}

/* --- sending --- */

/* Puts the queue into flight; false: nothing is left to send. */
static bool take_queue(struct vk_link *l)
{
    pthread_mutex_lock(&l->mutex);
    while (l->queue.first) {
        struct waiter *w = waiters_pop(&l->queue);
        w->taken = true;
        if (w->tag > 0)
            l->tags[(w->tag - 1) / 64] &= ~(UINT64_C(1) << ((w->tag - 1) % 64));
        waiters_push(&l->flight, w);
        if (!l->unsent)
            l->unsent = w;
    }
    pthread_mutex_unlock(&l->mutex);
    return l->unsent != NULL;
}

/* What is left of a job, as parts of a write. */
static int add_parts(const struct waiter *w, struct iovec *iov, int room)
{
    const struct bytes parts[] = { w->job->before, w->job->bytes, w->job->after };
    size_t skip = w->written;
    int n = 0;

    for (size_t i = 0; i < COUNT_OF(parts) && n < room; i++) {
        if (skip >= parts[i].len) {
            skip -= parts[i].len;
            continue;
        }
        iov[n++] = (struct iovec){ .iov_base = (uint8_t *)parts[i].ptr + skip,
                                   .iov_len = parts[i].len - skip };
        skip = 0;
    }
    return n;
}

static void count_written(struct vk_link *l, size_t n)
{
    for (struct waiter *w = l->unsent; n > 0 && w; w = l->unsent) {
        size_t left = w->len - w->written;
        w->offered = true;
        if (n < left) {
            w->written += n;
            return;
        }
        w->written = w->len;
        n -= left;
        l->unsent = w->next;
    }
}

bool lead_send(struct vk_link *l)
{
    struct iovec iov[PARTS_MAX];

    l->blocked = false;
    while (take_queue(l)) {
        int n = 0;
        for (struct waiter *w = l->unsent; w && n < PARTS_MAX; w = w->next) {
            n += add_parts(w, iov + n, PARTS_MAX - n);
            w->offered |=
                l->conn->tls != NULL; /* what it does in the end, nobody says */
        }
        ssize_t written = vk_conn_write(l->conn, iov, n);
        if (written < 0)
            return false;
        if (written == 0) {
            l->blocked = l->conn->wants == POLLOUT;
            return true;
        }
        count_written(l, (size_t)written);
    }
    return true;
}

/* --- answers --- */

/* Where the next answer of a job goes. */
static void aim(struct waiter *w)
{
    struct vk_job *job = w->job;
    size_t i = w->answered, before = job->before.len > 0;

    w->sink.arena = w->posted || i < before ? NULL : job->arena;
    w->sink.reply =
        i < before + job->n_replies ? &job->reply[i - before] : &job->waited;
}

/* Gives out the answers that have arrived; false: that is no protocol. */
static bool give_out(struct vk_link *l, struct waiters *done)
{
    for (struct waiter *w = l->flight.first; w && w->written > 0; w = l->flight.first) {
        aim(w);
        enum vk_parsed parsed = vk_reader_next(l->conn->reader, &w->sink);
        if (parsed != VK_PARSE_ANSWER)
            return parsed == VK_PARSE_MORE;
        if (++w->answered < w->n_answers)
            continue;
        if (w == l->unsent)
            return false; /* answered before it was asked */
        w->rc = BELAY_OK;
        w->job->reached = VK_ANSWERED;
        if (w->sink.no_memory) {
            w->rc = err_no_memory(w->err, "an answer");
            w->job->reached = VK_SENT;
        }
        waiters_push(done, waiters_pop(&l->flight));
    }
    return vk_reader_is_empty(l->conn->reader); /* nothing else was asked */
}

bool lead_receive(struct vk_link *l, const struct waiter *self)
{
    struct waiters done;
    bool ok = true;

    waiters_init(&done);
    for (ssize_t n = 1; ok && n > 0;) {
        n = vk_conn_read(l->conn, l->in, sizeof(l->in));
        if (n == 0)
            break;
        ok = n > 0 && vk_reader_feed(l->conn->reader, l->in, (size_t)n) &&
             give_out(l, &done);
        if (!l->conn->tls)
            break; /* TLS may have more in its own hands, where poll does not see it */
    }
    if (done.first)
        tell(l, &done, self);
    return ok;
}

/* --- leading --- */

static struct waiter *first_caller(const struct waiters *list)
{
    struct waiter *w = list->first;

    while (w && w->posted)
        w = w->next;
    return w;
}

void lead_hand_over(struct vk_link *l)
{
    for (;;) {
        pthread_mutex_lock(&l->mutex);
        struct waiter *next = first_caller(&l->flight);
        if (!next)
            next = first_caller(&l->queue);
        if (next)
            next->chosen = true;
        bool more = !next && l->queue.first && !l->blocked;
        l->led = next || more;
        pthread_mutex_unlock(&l->mutex);
        if (next)
            parker_post(&next->parker, TOLD_LEADS);
        if (!more)
            return;
        if (!lead_send(l))
            lead_fail(l, NULL, "the connection was lost");
    }
}

/* Until the socket has something to say; false: the leader's own time is up. */
static bool wait_socket(struct vk_link *l, const struct waiter *self)
{
    short events = l->blocked || l->conn->wants == POLLOUT ? POLLIN | POLLOUT : POLLIN;

    return vk_wait_fd(l->conn->fd, events, self->job->deadline_us);
}

/* A connection that was lost while nobody used it is noticed before anything is sent: so
 * it is known that nothing arrived. */
static bool is_still_there(struct vk_link *l)
{
    return l->flight.first || lead_receive(l, NULL);
}

void lead(struct vk_link *l, struct waiter *self)
{
    bool ok = is_still_there(l) && lead_send(l);

    while (ok && !self->done) {
        if (!wait_socket(l, self)) {
            lead_fail(l, self, "no answer in time");
            break;
        }
        ok = lead_receive(l, self) && lead_send(l);
    }
    if (!ok)
        lead_fail(l, self, "the connection was lost");
    lead_hand_over(l);
}
