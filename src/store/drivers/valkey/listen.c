/* Wake-ups among processes, by PUBLISH and SUBSCRIBE.
 *
 * A commit publishes what it has changed (belay6_commit).  What is to be told without one
 * is published on the caller's own thread, along with what else goes out on the
 * connection.  One thread of the process, or one of those who wait (ear.h), hears what others publish, on a
 * connection of its own, from the first time that somebody waits; when nobody has waited
 * for a while and others keep talking, it hangs up.  Wake-ups are hints: what gets lost
 * here is found by the waiters' safety timer.
 *
 *   channel   <prefix>:wake:<database>, for all namespaces
 *   message   <process> <group of topics> <group of topics> ...
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/thread.h"
#include "store/drivers/valkey/net.h"
#include "store/ear.h"
#include "store/wake.h"

#define BUCKETS VK_TAGS
#define PROCESS_LEN 16
#define WORD_MAX (1 + I64_TEXT_MAX)    /* a blank and the number of a group */
#define PATIENCE_US ((int64_t)2000000) /* of one who begins to wait */
#define RECONNECT_US ((int64_t)500000)
#define HANG_UP_US ((int64_t)5000000)
#define CONNECT_US ((int64_t)2000000)

/* One who waits until others' wake-ups can be heard. */
struct beginner {
    struct beginner *next;
    struct parker parker;
};

struct vk_listener {
    struct vk_store *s;
    pthread_t thread;
    struct ear ear;
    struct wake_line line;
    char process[PROCESS_LEN + 1];
    char channel[96];

    pthread_mutex_t mutex; /* for what follows */
    struct beginner *beginners;
    bool stop;
    bool wanted; /* somebody waits, or has waited a moment ago */
    bool hears;
    bool deaf;         /* the user may not subscribe: the safety timer serves */
    int64_t waited_us; /* the last time somebody began to */

    /* the thread's own */
    struct vk_conn *conn;
    int64_t connect_at_us;

    /* whoever reads; a message may come in parts, to two of them, and the connection's reader
     * remembers where it belongs */
    struct belay_arena arena;
    struct vk_reply message;
    struct vk_sink sink;
};

/* --- the other threads --- */

/* Behind what a message says already, another group. */
static size_t add_bucket(char *message, size_t len, unsigned bucket)
{
    message[len++] = ' ';
    return len + bytes_put_i64(message + len, bucket);
}

bool vk_wake_up(const struct vk_store *s, const struct plan *plan,
                struct belay_arena *a, struct bytes *channel, struct bytes *message)
{
    const struct vk_listener *l = s->listener;
    uint64_t seen[BUCKETS / 64] = { 0 };
    char text[PROCESS_LEN + BUCKETS * WORD_MAX];
    size_t len = PROCESS_LEN;

    if (!l || !plan->topics)
        return false;
    memcpy(text, l->process, PROCESS_LEN);
    for (const struct plan_topic *t = plan->topics; t; t = t->next) {
        unsigned bucket = wake_bucket(plan->ns, t->name, BUCKETS);
        uint64_t bit = UINT64_C(1) << (bucket % 64);
        if (!(seen[bucket / 64] & bit))
            len = add_bucket(text, len, bucket);
        seen[bucket / 64] |= bit;
    }
    *channel = bytes_str(l->channel);
    return arena_copy(a, bytes_of(text, len), message);
}

void vk_notify(struct driver *d, struct bytes ns, struct bytes topic)
{
    struct vk_store *s = (struct vk_store *)d;
    struct vk_listener *l = s->listener;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    unsigned bucket = wake_bucket(ns, topic, BUCKETS);
    struct vk_request r;
    char message[PROCESS_LEN + WORD_MAX];

    if (!l)
        return;
    memcpy(message, l->process, PROCESS_LEN);
    size_t n = add_bucket(message, PROCESS_LEN, bucket);
    vk_request_init(&r, &arena);
    vk_command(&r, 3, "PUBLISH");
    vk_arg_str(&r, l->channel);
    vk_arg(&r, bytes_of(message, n));
    vk_post_tagged(s, ns, &r, bucket + 1);
}

/* Somebody begins to wait: nothing may be overlooked from here on. */
static bool begin_waiting(void *arg, const unsigned *buckets, size_t n)
{
    struct vk_listener *l = arg;
    struct belay_clock clock = clock_system();
    struct beginner me = { .next = NULL };

    (void)buckets;
    (void)n;
    pthread_mutex_lock(&l->mutex);
    l->wanted = !l->deaf;
    l->waited_us = vk_now_us();
    bool heard = l->hears || l->deaf;
    if (!heard) {
        me.next = l->beginners;
        l->beginners = &me;
    }
    pthread_mutex_unlock(&l->mutex);
    if (heard)
        return true;
    ear_ring(&l->ear);
    /* One who loses patience is found by the safety timer. */
    bool told = parker_wait(&me.parker, &clock, vk_now_us() + PATIENCE_US);
    pthread_mutex_lock(&l->mutex);
    for (struct beginner **at = &l->beginners; *at; at = &(*at)->next) {
        if (*at == &me) {
            *at = me.next;
            break;
        }
    }
    pthread_mutex_unlock(&l->mutex);
    (void)told;
    return true;
}

/* The thread reads unless somebody sleeps here: nothing is left to be noticed otherwise. */
static void sleep_here(void *arg, const unsigned *buckets, size_t n, struct parker *p,
                       int64_t us)
{
    struct vk_listener *l = arg;

    (void)buckets;
    (void)n;
    ear_wait(&l->ear, p, us);
}

/* --- the thread --- */

/* With the mutex held. */
static void tell_beginners(struct vk_listener *l)
{
    for (struct beginner *b = l->beginners; b; b = b->next)
        parker_wake(&b->parker);
    l->beginners = NULL;
}

static void expect_message(struct vk_listener *l)
{
    arena_reset(&l->arena);
    l->message = (struct vk_reply){ .kind = VK_NIL };
    l->sink = (struct vk_sink){ .arena = &l->arena, .reply = &l->message };
}

static void hang_up(struct vk_listener *l)
{
    ear_set(&l->ear, -1);
    vk_conn_close(l->conn);
    l->conn = NULL;
}

static void lose_connection(struct vk_listener *l)
{
    hang_up(l);
    l->connect_at_us = vk_now_us() + RECONNECT_US;
    pthread_mutex_lock(&l->mutex);
    l->hears = false;
    pthread_mutex_unlock(&l->mutex);
}

/* Any node of a cluster passes on what is published on another. */
static belay_rc connect_any(struct vk_listener *l, int64_t deadline_us)
{
    struct vk_store *s = l->s;
    belay_rc rc = BELAY_UNAVAILABLE;

    for (size_t i = 0; rc && vk_now_us() < deadline_us; i++) {
        pthread_mutex_lock(&s->nodes_mutex);
        const struct vk_node *n = i < s->n_nodes ? s->nodes[i] : NULL;
        pthread_mutex_unlock(&s->nodes_mutex);
        if (!n)
            break;
        rc = vk_conn_open(s, n->host, n->port, deadline_us, &l->conn, NULL);
    }
    return rc;
}

static belay_rc subscribe(struct vk_listener *l, int64_t deadline_us)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct vk_reply reply = { .kind = VK_NIL };
    struct vk_request r;
    belay_rc rc = connect_any(l, deadline_us);

    vk_request_init(&r, &arena);
    vk_command(&r, 2, "SUBSCRIBE");
    vk_arg_str(&r, l->channel);
    if (rc == BELAY_OK)
        rc = vk_conn_call(l->conn, &r, &reply, deadline_us, NULL);
    if (rc == BELAY_OK && reply.kind != VK_ARRAY)
        rc = BELAY_DENIED;
    return rc;
}

/* Connected again, nobody knows what was missed: everybody looks. */
static void wake_all(struct vk_listener *l)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        wake_post_bucket(l->s->d.hub, i, BUCKETS);
}

static void keep_hearing(struct vk_listener *l)
{
    pthread_mutex_lock(&l->mutex);
    bool wanted = l->wanted;
    pthread_mutex_unlock(&l->mutex);
    if (!wanted || l->conn || vk_now_us() < l->connect_at_us)
        return;
    belay_rc rc = subscribe(l, vk_now_us() + CONNECT_US);
    if (rc) {
        lose_connection(l);
    } else {
        expect_message(l);
        ear_set(&l->ear, l->conn->fd);
        wake_all(l); /* before those come who have missed nothing */
    }
    pthread_mutex_lock(&l->mutex);
    l->hears = rc == BELAY_OK;
    l->deaf = rc == BELAY_DENIED;
    l->wanted = !l->deaf;
    tell_beginners(l); /* also that nothing will be heard */
    pthread_mutex_unlock(&l->mutex);
}

/* ["message", channel, "<process> <bucket> <bucket>..."] */
static void hear(struct vk_listener *l, const struct vk_reply *message)
{
    struct bytes text = message->kind == VK_ARRAY && message->n == 3 ? message->sub[2].b
                                                                     : bytes_str("");

    if (text.len <= PROCESS_LEN + 1 ||
        memcmp(text.ptr, l->process, PROCESS_LEN) == 0) /* they are awake */
        return;
    for (size_t at = PROCESS_LEN + 1, end; at < text.len; at = end + 1) {
        int64_t bucket = -1;
        for (end = at; end < text.len && text.ptr[end] != ' ';)
            end++;
        if (!bytes_to_i64(bytes_of(text.ptr + at, end - at), &bucket) || bucket < 0 ||
            bucket >= BUCKETS)
            return; /* none of ours */
        wake_post_bucket(l->s->d.hub, (unsigned)bucket, BUCKETS);
    }
}

/* Hangs up if there has been nobody to wake for a while.  Who begins to wait from here on
 * finds that nobody hears. */
static void hang_up_idle(struct vk_listener *l)
{
    if (wake_hub_listens(l->s->d.hub))
        return;
    pthread_mutex_lock(&l->mutex);
    bool idle = vk_now_us() - l->waited_us > HANG_UP_US;
    if (idle)
        l->hears = l->wanted = false;
    pthread_mutex_unlock(&l->mutex);
    if (!idle)
        return;
    hang_up(l);
    l->connect_at_us = 0;
}

/* Whoever reads; false: the connection is gone. */
static bool hear_all(void *arg)
{
    struct vk_listener *l = arg;
    belay_rc rc = BELAY_OK;

    while (rc == BELAY_OK) {
        rc = vk_conn_take(l->conn, &l->sink, VK_NO_WAIT, NULL);
        if (rc == BELAY_OK) {
            hear(l, &l->message);
            expect_message(l);
        }
    }
    return rc == BELAY_TIMEOUT;
}

/* Until the bell rings, somebody calls, or it is time to connect again. */
static void sleep_on(struct vk_listener *l)
{
    int ms = -1;

    pthread_mutex_lock(&l->mutex);
    bool wanted = l->wanted;
    pthread_mutex_unlock(&l->mutex);
    if (wanted && !l->conn) {
        int64_t left_us = l->connect_at_us - vk_now_us();
        ms = left_us > 0 ? (int)(left_us / 1000) + 1 : 0;
    }
    if (!ear_sleep(&l->ear, ms))
        lose_connection(l);
    else if (l->conn)
        hang_up_idle(l);
}

static void *listen_thread(void *arg)
{
    struct vk_listener *l = arg;

    for (;;) {
        pthread_mutex_lock(&l->mutex);
        bool stop = l->stop;
        pthread_mutex_unlock(&l->mutex);
        if (stop)
            return NULL;
        keep_hearing(l);
        sleep_on(l);
    }
}

/* --- its life --- */

static belay_rc name_listener(struct vk_listener *l, struct belay_error *err)
{
    uint8_t id[PROCESS_LEN / 2];
    belay_rc rc = random_bytes(&l->s->config.random, id, sizeof(id), err);

    if (rc)
        return rc;
    hex_encode(bytes_of(id, sizeof(id)), l->process);
    (void)snprintf(l->channel, sizeof(l->channel), "%s:wake:%u", l->s->options.prefix,
                   l->s->options.database);
    return BELAY_OK;
}

belay_rc vk_listener_open(struct vk_store *s, struct belay_error *err)
{
    struct vk_listener *l = calloc(1, sizeof(*l));

    if (!l)
        return err_no_memory(err, "wake-ups");
    l->s = s;
    (void)pthread_mutex_init(&l->mutex, NULL);
    belay_rc rc = name_listener(l, err);
    if (rc == BELAY_OK)
        rc = ear_open(&l->ear, hear_all, l, err);
    if (rc == BELAY_OK && !thread_start(&l->thread, listen_thread, l)) {
        rc = err_set(err, BELAY_UNAVAILABLE, "valkey: no thread for wake-ups");
        ear_close(&l->ear);
    }
    if (rc) {
        (void)pthread_mutex_destroy(&l->mutex);
        free(l);
        return rc;
    }
    s->listener = l;
    l->line = (struct wake_line){
        .n_buckets = BUCKETS, .arg = l, .listen = begin_waiting, .sleep = sleep_here
    };
    wake_hub_set_line(s->d.hub, &l->line);
    return BELAY_OK;
}

void vk_listener_close(struct vk_store *s)
{
    struct vk_listener *l = s->listener;

    if (!l)
        return;
    wake_hub_set_line(s->d.hub, NULL);
    pthread_mutex_lock(&l->mutex);
    l->stop = true;
    pthread_mutex_unlock(&l->mutex);
    ear_ring(&l->ear);
    (void)pthread_join(l->thread, NULL);
    vk_conn_close(l->conn);
    ear_close(&l->ear);
    arena_release(&l->arena);
    (void)pthread_mutex_destroy(&l->mutex);
    free(l);
    s->listener = NULL;
}
