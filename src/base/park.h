/* park.h - a thread that sleeps until somebody wakes it, and cancellation.
 *
 * A parker is one flag and one futex: a wake before the wait is not lost, and a thread
 * that waits costs nothing until it is woken or its deadline passes.
 */
#ifndef BASE_PARK_H
#define BASE_PARK_H

#include <pthread.h>
#include <stdatomic.h>

#include <belay/cancel.h>
#include <belay/hooks.h>

#include "base/attr.h"

#define DEADLINE_NONE INT64_MAX

struct parker {
    _Atomic uint32_t woken;
    _Atomic int bell; /* of parker_poll, plus one; 0: not in it; -1: it is awake */
};

/* Wakes the thread in parker_wait, or the next one to enter it. */
void parker_wake(struct parker *p);

/* parker_wake for one that may be in parker_poll.  The caller sees to it that the parker stays
 * until this returns. */
void parker_ring(struct parker *p);

/* Wakes the thread in parker_nap, if it is there, and posts nothing. */
void parker_stir(struct parker *p);

/* The same with a message of one or more bits, parker_wake's being PARKER_WOKEN.  The
 * parker is not touched after the bits are set: who waits for them may be gone then. */
#define PARKER_WOKEN 1U
void parker_post(struct parker *p, uint32_t bits);

/* Sleeps until something was posted and gives it all (and takes it), or 0 when
 * clock->mono_us has reached deadline_us. */
MUST_USE uint32_t parker_receive(struct parker *p, const struct belay_clock *clock,
                                 int64_t deadline_us);

/* Sleeps until woken (true, and the flag is consumed) or until clock->mono_us reaches
 * deadline_us (false).  DEADLINE_NONE waits for ever. */
MUST_USE bool parker_wait(struct parker *p, const struct belay_clock *clock,
                          int64_t deadline_us);

/* Takes a wake-up if there is one, without waiting. */
MUST_USE bool parker_take(struct parker *p);

/* A word in memory that processes share, and what it is while there is nothing to do. */
struct park_word {
    _Atomic uint32_t *word;
    uint32_t value;
};
#define PARK_WORDS_MAX 127

/* Sleeps once, at most so long: until something is posted to the parker or a word is no
 * longer as it says; may return early.  n is at most PARK_WORDS_MAX. */
void parker_nap(struct parker *p, const struct park_word *words, size_t n, int64_t us);

/* Sleeps once, at most so long: until something can be read from fd (true), parker_ring, or a write
 * to `bell`, an eventfd that this empties and that nobody else sleeps on; may return early.  From
 * true on parker_ring takes it to be awake, until parker_rest: one who reads its own wake-up does
 * not ask the kernel to wake it. */
MUST_USE bool parker_poll(struct parker *p, int fd, int bell, int64_t us);
void parker_rest(struct parker *p);

/* Whether this kernel can (Linux 5.16); else parker_nap must not be used with words. */
MUST_USE bool park_words_work(void);

/* One parker that a cancel wakes; the caller's memory, linked while attached. */
struct cancel_link {
    struct parker *parker;
    struct cancel_link *next, **at;
};

struct belay_cancel {
    atomic_bool triggered;
    pthread_mutex_t mutex;
    struct cancel_link *links;
};

/* While attached, a trigger wakes the parker (at once when it was triggered before).
 * Both take a NULL cancel.  After detach nobody touches the link or the parker. */
void cancel_attach(struct belay_cancel *c, struct cancel_link *link,
                   struct parker *parker);
void cancel_detach(struct belay_cancel *c, struct cancel_link *link);

static inline bool cancel_is_set(const struct belay_cancel *c)
{
    return c && atomic_load_explicit(&c->triggered, memory_order_acquire);
}

#endif /* BASE_PARK_H */
