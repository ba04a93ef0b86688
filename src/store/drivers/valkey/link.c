/* One connection that many callers share.
 *
 * There is no thread for it.  Who finds nobody leading leads: it sends what is queued,
 * waits for answers, gives them out in the order the jobs were sent, and sends what has
 * been queued meanwhile.  Who comes while somebody leads only queues its job and sleeps.
 * So a lone caller writes and reads by itself, and many callers go out in few writes, as
 * large as the load.  When the leader has its own answer the next one in line leads.
 *
 * Answers are told apart by their order only, so that one that does not come in time ends
 * the connection.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "store/drivers/valkey/link.h"

#define DRAIN_STEP_US ((int64_t)1000)

/* --- its life --- */

belay_rc vk_link_open(struct vk_conn *c, struct vk_link **out, struct belay_error *err)
{
    struct vk_link *l = malloc(sizeof(*l));

    if (!l) {
        vk_conn_close(c);
        return err_no_memory(err, "a connection");
    }
    memset(l, 0, offsetof(struct vk_link, in));
    atomic_init(&l->refs, 1);
    l->conn = c;
    (void)pthread_mutex_init(&l->mutex, NULL);
    waiters_init(&l->queue);
    waiters_init(&l->flight);
    *out = l;
    return BELAY_OK;
}

void vk_link_ref(struct vk_link *l)
{
    (void)atomic_fetch_add(&l->refs, 1);
}

static void free_posted(struct waiters *list)
{
    while (list->first)
        free(waiters_pop(list)); /* nobody waits: they are posted, all of them */
}

void vk_link_unref(struct vk_link *l)
{
    if (!l || atomic_fetch_sub(&l->refs, 1) > 1)
        return;
    free_posted(&l->queue);
    free_posted(&l->flight);
    vk_conn_close(l->conn);
    (void)pthread_mutex_destroy(&l->mutex);
    free(l);
}

void link_kill(struct vk_link *l, const char *why)
{
    if (l->dead)
        return;
    l->dead = true;
    (void)err_set(&l->why, BELAY_UNAVAILABLE, "valkey: %s", why);
    (void)shutdown(l->conn->fd, SHUT_RDWR);
}

void vk_link_kill(struct vk_link *l, const char *why)
{
    pthread_mutex_lock(&l->mutex);
    link_kill(l, why);
    pthread_mutex_unlock(&l->mutex);
}

bool vk_link_is_dead(struct vk_link *l)
{
    return atomic_load_explicit(&l->dead, memory_order_acquire);
}

size_t vk_link_waiting(struct vk_link *l)
{
    return atomic_load_explicit(&l->waiting, memory_order_relaxed);
}

void link_set_failed(struct waiter *w, const struct belay_error *why)
{
    w->rc = (belay_rc)why->code;
    w->job->reached = w->offered ? VK_SENT : VK_NOTHING_SENT;
    if (w->err)
        *w->err = *why;
}

/* --- waiting --- */

static void leave(struct vk_link *l, struct waiter *w)
{
    struct waiter **at = &l->queue.first;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (!*at)
        l->queue.last = at;
}

/* The time is up: who has not been sent leaves, who has ends the connection.  True: it has
 * left. */
static bool give_up(struct vk_link *l, struct waiter *w)
{
    struct belay_error late = { .code = 0 };
    bool left = false;

    pthread_mutex_lock(&l->mutex);
    if (!w->done && !w->chosen) {
        left = !w->taken;
        if (left)
            leave(l, w);
        else
            link_kill(l, "no answer in time");
    }
    pthread_mutex_unlock(&l->mutex);
    if (!left)
        return false;
    (void)atomic_fetch_sub_explicit(&l->waiting, 1, memory_order_relaxed);
    (void)err_set(&late, BELAY_UNAVAILABLE, "valkey: no answer in time");
    link_set_failed(w, &late);
    return true;
}

/* Sleeps until the job is done (false) or it is our turn to lead (true). */
static bool wait_for_turn(struct vk_link *l, struct waiter *w)
{
    struct belay_clock clock = clock_system();
    int64_t deadline_us = w->job->deadline_us;

    for (;;) {
        uint32_t told = parker_receive(&w->parker, &clock, deadline_us);
        if (told)
            return (told & TOLD_LEADS) && !(told & TOLD_DONE);
        if (give_up(l, w))
            return false;
        deadline_us = DEADLINE_NONE; /* the leader will tell */
    }
}

/* Queues a job; false: the connection is lost.  *leads: nobody leads but us. */
static bool enqueue(struct vk_link *l, struct waiter *w, bool *leads)
{
    pthread_mutex_lock(&l->mutex);
    bool dead = l->dead;
    if (!dead) {
        waiters_push(&l->queue, w);
        *leads = !l->led;
        w->chosen = *leads;
        l->led = true;
        (void)atomic_fetch_add_explicit(&l->waiting, 1, memory_order_relaxed);
    } else {
        link_set_failed(w, &l->why);
    }
    pthread_mutex_unlock(&l->mutex);
    return !dead;
}

static void init_waiter(struct waiter *w, struct vk_job *job)
{
    w->job = job;
    w->len = job->before.len + job->bytes.len + job->after.len;
    w->n_answers = job->n_replies + (job->before.len > 0) + (job->after.len > 0);
}

belay_rc vk_link_call(struct vk_link *l, struct vk_job *job, struct belay_error *err)
{
    struct waiter w = { .err = err };
    bool leads = false;

    init_waiter(&w, job);
    if (!enqueue(l, &w, &leads))
        return w.rc;
    if (!leads)
        leads = wait_for_turn(l, &w);
    if (leads)
        lead(l, &w);
    return w.rc;
}

/* --- posting --- */

/* Marks the tag as queued; false: it is so already. */
static bool mark_tag(struct vk_link *l, unsigned tag)
{
    uint64_t bit = tag > 0 ? UINT64_C(1) << ((tag - 1) % 64) : 0;

    if (tag == 0)
        return true;
    pthread_mutex_lock(&l->mutex);
    uint64_t *word = &l->tags[(tag - 1) / 64];
    bool marked = *word & bit;
    if (!l->dead)
        *word |= bit;
    pthread_mutex_unlock(&l->mutex);
    return !marked;
}

static struct waiter *new_posted(const struct vk_request *r, unsigned tag)
{
    struct waiter *w = calloc(1, sizeof(*w) + r->len);

    if (!w)
        return NULL;
    memcpy(w->bytes, r->bytes, r->len);
    w->posted = true;
    w->tag = tag;
    w->own = (struct vk_job){ .bytes = bytes_of(w->bytes, r->len),
                              .n_replies = r->n_commands };
    init_waiter(w, &w->own);
    return w;
}

/* One turn without waiting: it goes out, and answers to earlier ones come in. */
static void pump(struct vk_link *l)
{
    bool older = l->flight.first != NULL;

    if (!lead_send(l) || (older && !lead_receive(l, NULL)))
        lead_fail(l, NULL, "the connection was lost");
    lead_hand_over(l);
}

void vk_link_post(struct vk_link *l, const struct vk_request *r, unsigned tag)
{
    bool leads = false;

    struct waiter *w = r->no_memory ? NULL : new_posted(r, tag);
    if (!w)
        return;
    if (!mark_tag(l, tag) || !enqueue(l, w, &leads))
        free(w);
    else if (leads)
        pump(l);
}

void vk_link_drain(struct vk_link *l, int64_t deadline_us)
{
    struct belay_clock clock = clock_system();

    while (vk_link_waiting(l) > 0 && vk_now_us() < deadline_us && !vk_link_is_dead(l)) {
        pthread_mutex_lock(&l->mutex);
        bool leads = !l->led;
        l->led = true;
        pthread_mutex_unlock(&l->mutex);
        if (leads) {
            short events = l->blocked ? POLLIN | POLLOUT : POLLIN;
            bool ready = vk_wait_fd(l->conn->fd, events, deadline_us);
            if (ready && (!lead_send(l) || !lead_receive(l, NULL)))
                lead_fail(l, NULL, "the connection was lost");
            lead_hand_over(l);
        } else {
            clock.sleep_us(clock.arg, DRAIN_STEP_US);
        }
    }
}
