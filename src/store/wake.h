/* wake.h - waiting for something to happen, inside one process.
 *
 * A listener names topics before it looks at the store; a wake-up between the look and
 * the wait is kept, so none is lost here.  Wake-ups may be spurious: who is woken looks
 * again.  Nothing runs while nobody is woken.
 *
 *     wake_listen(hub, ...);            // 1. listen
 *     while (!found_work())             // 2. look
 *         listener_wait(l, deadline);   // 3. wait, then look again
 *     listener_close(l);
 */
#ifndef STORE_WAKE_H
#define STORE_WAKE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/park.h"

struct wake_hub;
struct listener;

struct wake_counts {
    uint64_t posted;    /* topics posted */
    uint64_t delivered; /* listeners woken by them */
    uint64_t waits;     /* returns of listener_wait: an idle waiter adds nothing */
};

MUST_USE belay_rc wake_hub_open(struct wake_hub **out, struct belay_error *err);
void wake_hub_close(struct wake_hub *hub); /* nobody listens; takes NULL */

/* Wakes every listener of the topic in that namespace. */
void wake_post(struct wake_hub *hub, struct bytes ns, struct bytes topic);

/* For a driver that hears of other processes' posts.  Topics are hashed into n_buckets
 * groups, by the same function in every process.  wake_post_bucket wakes every listener
 * whose topic is in the group; the others' posts do not count in `posted`. */
unsigned wake_bucket(struct bytes ns, struct bytes topic, unsigned n_buckets);
void wake_post_bucket(struct wake_hub *hub, unsigned bucket, unsigned n_buckets);

/* From now on each wake_listen calls fn(arg), before its listener can be woken and so
 * before its caller looks at the store; NULL ends that.  Not while anybody is in
 * wake_listen. */
void wake_hub_on_listen(struct wake_hub *hub, void (*fn)(void *arg), void *arg);

/* For a driver whose processes share memory: a listener of a few topics sleeps on the
 * words of their buckets itself, so that no thread has to pass its wake-ups on and posts to
 * others leave it asleep.  All three are called by the listener's thread. */
struct wake_line {
    unsigned n_buckets;
    void *arg;
    /* Before the listener can be woken, as on_listen, which it replaces; false: it cannot
     * be done, on_listen is called. */
    bool (*listen)(void *arg, const unsigned *buckets, size_t n);
    /* wake_post_bucket for those that others have posted to since; true: there were any.
     * NULL: who sleeps notices, and nobody else. */
    bool (*notice)(void *arg, const unsigned *buckets, size_t n);
    /* Notices; if there was nothing, sleeps at most `us`, until something is posted to a
     * bucket or to the parker.  May return early. */
    void (*sleep)(void *arg, const unsigned *buckets, size_t n, struct parker *p,
                  int64_t us);
};
/* Borrowed; NULL ends that.  Not while anybody is in wake_listen, or listens. */
void wake_hub_set_line(struct wake_hub *hub, const struct wake_line *line);

struct wake_counts wake_hub_counts(struct wake_hub *hub);

/* Whether anybody listens just now. */
bool wake_hub_listens(struct wake_hub *hub);

/* Topics of one namespace. */
struct wake_topics {
    struct bytes ns;
    const struct bytes *topic;
    size_t n;
};

/* Starts listening.  The listener lives in the arena and must be closed before that is
 * reset.  cancel (may be NULL) is borrowed until then. */
MUST_USE belay_rc wake_listen(struct wake_hub *hub, const struct wake_topics *topics,
                              const struct belay_clock *clock,
                              struct belay_cancel *cancel, struct belay_arena *a,
                              struct listener **out, struct belay_error *err);

/* BELAY_OK when woken, `timeout` when clock->mono_us has reached deadline_us,
 * `cancelled`.  Several wake-ups since the last call are one. */
MUST_USE belay_rc listener_wait(struct listener *l, int64_t deadline_us,
                                struct belay_error *err);

/* Takes a wake-up if there is one, without waiting. */
MUST_USE bool listener_poll(struct listener *l);

void listener_close(struct listener *l); /* takes NULL */

#endif /* STORE_WAKE_H */
