/* Who reads the connection on which wake-ups come: a driver's thread, or one who waits. */
#include "store/ear.h"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/wake.h"
#include "tap.h"

#define BUCKETS 64
#define PATIENCE_US ((int64_t)10000000)
#define A_WHILE_US 20000 /* most likely everybody sleeps by then */

/* A driver's listener in small: what comes is a byte for each wake-up, its bucket. */
struct line {
    struct tap *t;
    struct wake_hub *hub;
    struct wake_line line;
    struct ear ear;
    pthread_t thread;
    int end[2]; /* end[0] is the connection, end[1] the server's */
    pthread_t heard_by;
    _Atomic unsigned heard;
    atomic_bool stop;
    _Atomic unsigned chores, lost; /* what the thread did with it, and found it gone */
    struct belay_clock clock;
};

static int64_t now_us(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg);
}

static bool hear(void *arg)
{
    struct line *l = arg;
    uint8_t said[64];
    ssize_t n;

    while ((n = recv(l->end[0], said, sizeof(said), MSG_DONTWAIT)) > 0) {
        l->heard_by = pthread_self();
        atomic_fetch_add(&l->heard, (unsigned)n);
        for (ssize_t i = 0; i < n; i++)
            wake_post_bucket(l->hub, said[i], BUCKETS);
    }
    return n < 0;
}

static bool begin(void *arg, const unsigned *buckets, size_t n)
{
    (void)buckets;
    (void)n;
    return arg != NULL;
}

static bool notice(void *arg, const unsigned *buckets, size_t n)
{
    (void)buckets;
    (void)n;
    return arg == NULL;
}

static void sleep_here(void *arg, const unsigned *buckets, size_t n, struct parker *p,
                       int64_t us)
{
    struct line *l = arg;

    (void)buckets;
    (void)n;
    ear_wait(&l->ear, p, us);
}

static void *thread_main(void *arg)
{
    struct line *l = arg;

    while (!atomic_load(&l->stop)) {
        if (!ear_sleep(&l->ear, -1)) {
            ear_set(&l->ear, -1);
            atomic_fetch_add(&l->lost, 1);
        }
        atomic_fetch_add(&l->chores, 1);
    }
    return NULL;
}

static bool line_open(struct line *l, struct tap *t)
{
    *l = (struct line){ .t = t, .clock = clock_system() };
    if (!TAP_EQ(t, wake_hub_open(&l->hub, NULL), BELAY_OK) ||
        !TAP_EQ(t, socketpair(AF_UNIX, SOCK_STREAM, 0, l->end), 0) ||
        !TAP_EQ(t, ear_open(&l->ear, hear, l, NULL), BELAY_OK))
        return false;
    ear_set(&l->ear, l->end[0]);
    l->line = (struct wake_line){ .n_buckets = BUCKETS,
                                  .arg = l,
                                  .listen = begin,
                                  .notice = notice,
                                  .sleep = sleep_here };
    wake_hub_set_line(l->hub, &l->line);
    return TAP_EQ(t, pthread_create(&l->thread, NULL, thread_main, l), 0);
}

static void line_close(struct line *l)
{
    atomic_store(&l->stop, true);
    ear_ring(&l->ear);
    pthread_join(l->thread, NULL);
    ear_close(&l->ear);
    close(l->end[0]);
    if (l->end[1] >= 0)
        close(l->end[1]);
    wake_hub_close(l->hub);
}

static void say(struct line *l, const char *topic)
{
    uint8_t bucket = (uint8_t)wake_bucket(bytes_str("ns"), bytes_str(topic), BUCKETS);

    TAP_EQ(l->t, write(l->end[1], &bucket, 1), 1);
}

/* --- those who wait --- */

struct waiter {
    struct line *l;
    const char *topic;
    struct belay_cancel *cancel;
    unsigned times;
    pthread_t thread;
    belay_rc rc;
    _Atomic unsigned woken;
};

static void *wait_main(void *arg)
{
    struct waiter *w = arg;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct bytes topic = bytes_str(w->topic);
    struct wake_topics topics = { .ns = bytes_str("ns"), .topic = &topic, .n = 1 };
    struct listener *listener = NULL;
    struct belay_error err;

    w->rc = wake_listen(w->l->hub, &topics, &w->l->clock, w->cancel, &arena, &listener,
                        NULL);
    for (unsigned i = 0; i < w->times && w->rc == BELAY_OK; i++) {
        w->rc = listener_wait(listener, now_us() + PATIENCE_US, &err);
        atomic_fetch_add(&w->woken, w->rc == BELAY_OK);
    }
    listener_close(listener);
    return NULL;
}

static void waiter_start(struct waiter *w, struct line *l, const char *topic)
{
    w->l = l;
    w->topic = topic;
    w->times = w->times ? w->times : 1;
    TAP_EQ(l->t, pthread_create(&w->thread, NULL, wait_main, w), 0);
    l->clock.sleep_us(l->clock.arg, A_WHILE_US);
}

static void waiter_end(struct waiter *w, belay_rc rc)
{
    pthread_join(w->thread, NULL);
    TAP_EQ(w->l->t, w->rc, rc);
}

static void it_reads_itself(struct tap *t)
{
    struct waiter w = { .times = 1 };
    struct line l;

    if (!line_open(&l, t))
        return;
    waiter_start(&w, &l, "a");
    say(&l, "a");
    pthread_join(w.thread, NULL);
    TAP_EQ(t, w.rc, BELAY_OK);
    TAP_OK(t, pthread_equal(l.heard_by, w.thread));
    TAP_EQ(t, atomic_load(&l.chores), 0); /* E3: the thread has slept all the time */
    say(&l, "a");                         /* nobody waits: the thread does */
    for (int i = 0; i < 500 && atomic_load(&l.heard) < 2; i++)
        l.clock.sleep_us(l.clock.arg, 10000);
    TAP_EQ(t, atomic_load(&l.heard), 2);
    line_close(&l);
}

static void it_reads_for_others(struct tap *t)
{
    struct waiter first = { .times = 1 }, second = { .times = 1 };
    struct line l;

    if (!line_open(&l, t))
        return;
    waiter_start(&first, &l, "a");
    waiter_start(&second, &l, "b");
    say(&l, "b");
    waiter_end(&second, BELAY_OK);
    TAP_EQ(t, atomic_load(&first.woken), 0);
    say(&l, "a");
    waiter_end(&first, BELAY_OK);
    line_close(&l);
}

static void others_wake_it(struct tap *t)
{
    struct belay_cancel *cancel = NULL;
    struct waiter posted = { .times = 1 }, cancelled = { .times = 1 };
    struct line l;

    if (!line_open(&l, t) || !TAP_EQ(t, belay_cancel_new(&cancel, NULL), BELAY_OK))
        return;
    waiter_start(&posted, &l, "a");
    wake_post(l.hub, bytes_str("ns"), bytes_str("a")); /* in this process */
    waiter_end(&posted, BELAY_OK);
    cancelled.cancel = cancel;
    waiter_start(&cancelled, &l, "a");
    belay_cancel_trigger(cancel);
    waiter_end(&cancelled, BELAY_CANCELLED);
    belay_cancel_free(cancel);
    line_close(&l);
}

static void it_waits_no_longer(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct bytes topic = bytes_str("a");
    struct wake_topics topics = { .ns = bytes_str("ns"), .topic = &topic, .n = 1 };
    struct listener *listener = NULL;
    struct belay_error err;
    struct line l;

    if (!line_open(&l, t))
        return;
    TAP_EQ(t, wake_listen(l.hub, &topics, &l.clock, NULL, &arena, &listener, NULL),
           BELAY_OK);
    int64_t begun = now_us();
    TAP_EQ(t, listener_wait(listener, begun + 30000, &err), BELAY_TIMEOUT);
    TAP_OK(t, now_us() - begun >= 30000);
    listener_close(listener);
    line_close(&l);
}

/* E2 */
static void the_thread_gets_it_back(struct tap *t)
{
    struct waiter w = { .times = 1 };
    struct line l;

    if (!line_open(&l, t))
        return;
    waiter_start(&w, &l, "a");
    for (unsigned i = 1; i <= 20; i++) {
        ear_ring(&l.ear);
        for (int k = 0; k < 5000 && atomic_load(&l.chores) < i; k++)
            l.clock.sleep_us(l.clock.arg, 1000);
        TAP_EQ(t, atomic_load(&l.chores), i);
    }
    TAP_EQ(t, atomic_load(&w.woken), 0);
    say(&l, "a");
    waiter_end(&w, BELAY_OK);
    line_close(&l);
}

static void it_finds_it_gone(struct tap *t)
{
    struct waiter w = { .times = 1 };
    struct line l;

    if (!line_open(&l, t))
        return;
    waiter_start(&w, &l, "a");
    close(l.end[1]);
    l.end[1] = -1;
    for (int i = 0; i < 500 && atomic_load(&l.lost) == 0; i++)
        l.clock.sleep_us(l.clock.arg, 10000);
    TAP_EQ(t, atomic_load(&l.lost), 1);
    wake_post(l.hub, bytes_str("ns"), bytes_str("a")); /* it sleeps elsewhere now */
    waiter_end(&w, BELAY_OK);
    line_close(&l);
}

/* E1: everybody comes and goes, the thread has chores, and each message wakes its topic. */
#define ROUNDS 2000
static void nothing_gets_lost(struct tap *t)
{
    static const char *const topics[] = { "a", "b", "c" };
    struct waiter w[COUNT_OF(topics)];
    struct line l;

    if (!line_open(&l, t))
        return;
    for (size_t i = 0; i < COUNT_OF(w); i++) {
        w[i] = (struct waiter){ .times = ROUNDS };
        waiter_start(&w[i], &l, topics[i]);
    }
    int64_t end = now_us() + 6 * PATIENCE_US;
    for (unsigned round = 0; round < ROUNDS && now_us() < end; round++) {
        for (size_t i = 0; i < COUNT_OF(w); i++)
            say(&l, topics[i]);
        if (round % 7 == 0)
            ear_ring(&l.ear);
        for (size_t i = 0; i < COUNT_OF(w); i++) {
            while (atomic_load(&w[i].woken) <= round && now_us() < end)
                sched_yield();
        }
    }
    for (size_t i = 0; i < COUNT_OF(w); i++) {
        waiter_end(&w[i], BELAY_OK);
        TAP_EQ(t, atomic_load(&w[i].woken), ROUNDS);
    }
    TAP_EQ(t, atomic_load(&l.heard), ROUNDS * COUNT_OF(w));
    line_close(&l);
}

static const struct tap_case cases[] = {
    { "one who waits reads its wake-up itself, and the thread sleeps",
      it_reads_itself },
    { "one who waits reads for the others", it_reads_for_others },
    { "posts and cancels wake the one who reads", others_wake_it },
    { "a deadline ends the reading", it_waits_no_longer },
    { "the thread gets the connection when it needs it", the_thread_gets_it_back },
    { "a connection that is gone is told to the thread", it_finds_it_gone },
    { "threads: nothing gets lost between readers", nothing_gets_lost },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
