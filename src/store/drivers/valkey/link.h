/* link.h - what link.c and lead.c share.
 *
 *   queue   jobs that nobody has begun to send: shared, under the mutex
 *   flight  jobs that are being sent or wait for answers: the leader's alone
 */
#ifndef STORE_DRIVERS_VALKEY_LINK_H
#define STORE_DRIVERS_VALKEY_LINK_H

#include "store/drivers/valkey/net.h"

#define LINK_READ_SIZE ((size_t)64 << 10)

enum told { TOLD_DONE = 2, TOLD_LEADS = 4 };

/* A job and who waits for it; on its caller's stack, or its own memory when posted. */
struct waiter {
    struct waiter *next;
    struct vk_job *job;
    size_t len;     /* bytes to send, all parts */
    size_t written; /* of them */
    size_t n_answers, answered;
    struct vk_sink sink;
    struct parker parker;
    bool taken;   /* in flight */
    bool offered; /* a part of it may have been sent */
    bool chosen;  /* leads, or is about to */
    bool done;
    belay_rc rc;
    struct belay_error *err;
    /* posted */
    unsigned tag;
    bool posted;
    struct vk_job own;
    uint8_t bytes[];
};

struct waiters {
    struct waiter *first, **last;
};

struct vk_link {
    atomic_uint refs;
    atomic_size_t waiting;
    struct vk_conn *conn;

    pthread_mutex_t mutex; /* for what follows */
    struct waiters queue;
    bool led;
    atomic_bool dead;            /* written under the mutex */
    struct belay_error why;      /* dead */
    uint64_t tags[VK_TAGS / 64]; /* bit per tag in the queue */

    /* the leader's */
    struct waiters flight;
    struct waiter *unsent; /* in flight: the first that is not sent to the end */
    bool blocked;          /* the socket takes no more for now */
    uint8_t in[LINK_READ_SIZE];
};

static inline void waiters_init(struct waiters *list)
{
    list->first = NULL;
    list->last = &list->first;
}

static inline void waiters_push(struct waiters *list, struct waiter *w)
{
    w->next = NULL;
    *list->last = w;
    list->last = &w->next;
}

static inline struct waiter *waiters_pop(struct waiters *list)
{
    struct waiter *w = list->first;

    list->first = w->next;
    if (!list->first)
        list->last = &list->first;
    return w;
}

/* --- link.c --- */

/* With the mutex held.  The leader notices by the socket, if there is one. */
void link_kill(struct vk_link *l, const char *why);
void link_set_failed(struct waiter *w, const struct belay_error *why);

/* --- lead.c: for the leader, without the mutex --- */

/* Sends what there is, as far as the socket takes it; false: it is lost. */
MUST_USE bool lead_send(struct vk_link *l);
/* Takes what has arrived, without waiting; false: the connection is lost. */
MUST_USE bool lead_receive(struct vk_link *l, const struct waiter *self);
/* The connection is lost: that concerns everybody. */
void lead_fail(struct vk_link *l, const struct waiter *self, const char *why);
/* Lets the next in line lead.  What was posted by somebody who does not wait is sent. */
void lead_hand_over(struct vk_link *l);
/* Leads until its own job is done. */
void lead(struct vk_link *l, struct waiter *self);

#endif /* STORE_DRIVERS_VALKEY_LINK_H */
