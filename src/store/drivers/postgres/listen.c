/* Wake-ups among processes, by LISTEN and NOTIFY on a connection of their own.
 *
 * A process that waits says so in a row of belay_waiter, before it looks at the store; a
 * process that has committed something sends a NOTIFY only if such a row of somebody
 * else is there.  Both are done by one thread, so that many wake-ups make one message;
 * what others send is heard by it, or by one of those who wait (ear.h).
 * Nothing runs, and nothing is connected, while nobody waits and nothing is posted.
 * Wake-ups are hints: what gets lost here is found by the waiters' safety timer. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/thread.h"
#include "store/drivers/postgres/impl.h"
#include "store/ear.h"
#include "store/wake.h"

#define BUCKETS 256
#define WORDS (BUCKETS / 64)
#define WAITER_LIFE "15 s"
#define RENEW_US ((int64_t)5000000)
#define PATIENCE_US ((int64_t)2000000) /* of one who begins to wait */
#define ASK_AGAIN_US ((int64_t)10000)  /* when nobody waited a moment ago */
#define RECONNECT_US ((int64_t)500000)
#define WAITED_US ((int64_t)5000000) /* somebody who waits is taken to wait so long */
#define NOTICE_US ((int64_t)2000)    /* from one commit with a notice to the next */

/* One who waits to be known as a waiter. */
struct beginner {
    struct beginner *next;
    struct parker parker;
};

struct pg_listener {
    struct pg_store *s;
    pthread_t thread;
    struct ear ear;
    struct wake_line line;
    char process[33];
    char channel[64];

    pthread_mutex_t mutex; /* for what follows */
    struct beginner *beginners;
    bool stop;
    bool wanted; /* somebody has begun to wait */
    bool registered;
    uint64_t posted[WORDS]; /* bit per bucket */

    _Atomic int64_t others_until_us; /* somebody else waits; 0: nobody was seen */
    _Atomic int64_t notice_at_us;    /* when a commit may have one again */

    /* the thread's own */
    struct pg_conn *conn;
    int64_t renew_at_us, ask_at_us, connect_at_us;
};

/* --- the other threads --- */

void pg_notify(struct driver *d, struct bytes ns, struct bytes topic)
{
    struct pg_listener *l = ((struct pg_store *)d)->listener;
    unsigned bucket = wake_bucket(ns, topic, BUCKETS);

    if (!l)
        return;
    pthread_mutex_lock(&l->mutex);
    uint64_t before = 0;
    for (unsigned i = 0; i < WORDS; i++)
        before |= l->posted[i];
    l->posted[bucket / 64] |= UINT64_C(1) << (bucket % 64);
    pthread_mutex_unlock(&l->mutex);
    /* Who was told of one will see the others, too: it looks before it sleeps, and sleeps no
     * longer than until it may ask. */
    if (before == 0)
        ear_ring(&l->ear);
}

/* What a message says: the buckets, and who says it. */
static void add_buckets(const struct pg_listener *l, const uint64_t bits[WORDS],
                        struct buf *out)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        if ((bits[i / 64] >> (i % 64)) & 1)
            buf_printf(out, "%s%u", out->len > 0 ? "," : "", i);
    }
    buf_printf(out, ";%s", l->process);
}

bool pg_add_notice(struct pg_store *s, struct pg_pipe *p, const struct plan *plan)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    CLEANUP(buf_release) struct buf payload = { .ptr = NULL };
    struct pg_listener *l = s->listener;
    uint64_t bits[WORDS] = { 0 };
    struct bytes copy;

    if (!l || !plan->topics)
        return false;
    int64_t now_us = pg_mono_us(), at_us = atomic_load(&l->notice_at_us);
    if (now_us >= atomic_load(&l->others_until_us) || now_us < at_us ||
        !atomic_compare_exchange_strong(&l->notice_at_us, &at_us, now_us + NOTICE_US))
        return false;
    for (const struct plan_topic *t = plan->topics; t; t = t->next) {
        unsigned bucket = wake_bucket(plan->ns, t->name, BUCKETS);
        bits[bucket / 64] |= UINT64_C(1) << (bucket % 64);
    }
    add_buckets(l, bits, &payload);
    buf_append_str(&text, "SELECT pg_notify($1, $2)");
    if (payload.failed || !arena_copy(p->arena, buf_view(&payload), &copy))
        return false;
    struct pg_call *call = pg_add(p, pg_sql_of(s, &text), 2);
    pg_arg_bytes(p, call, bytes_str(l->channel));
    pg_arg_bytes(p, call, copy);
    return call != NULL;
}

/* Somebody begins to wait: nobody may overlook that from here on. */
static bool begin_waiting(void *arg, const unsigned *buckets, size_t n)
{
    struct pg_listener *l = arg;
    struct belay_clock clock = clock_system();
    struct beginner me = { .next = NULL };

    (void)buckets;
    (void)n;
    pthread_mutex_lock(&l->mutex);
    l->wanted = true;
    bool known = l->registered;
    if (!known) {
        me.next = l->beginners;
        l->beginners = &me;
    }
    pthread_mutex_unlock(&l->mutex);
    if (known)
        return true;
    ear_ring(&l->ear);
    /* One who loses patience is found by the safety timer. */
    bool told = parker_wait(&me.parker, &clock, pg_mono_us() + PATIENCE_US);
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
    struct pg_listener *l = arg;

    (void)buckets;
    (void)n;
    ear_wait(&l->ear, p, us);
}

/* With the mutex held. */
static void tell_beginners(struct pg_listener *l)
{
    for (struct beginner *b = l->beginners; b; b = b->next)
        parker_wake(&b->parker);
    l->beginners = NULL;
}

/* --- the thread --- */

static void lose_connection(struct pg_listener *l)
{
    ear_set(&l->ear, -1);
    pg_disconnect(l->conn);
    l->conn = NULL;
    l->connect_at_us = pg_mono_us() + RECONNECT_US;
    pthread_mutex_lock(&l->mutex);
    l->registered = false;
    pthread_mutex_unlock(&l->mutex);
}

/* Connected again, nobody knows what was missed: everybody looks. */
static bool connect_now(struct pg_listener *l)
{
    char words[128];

    if (l->conn)
        return true;
    if (pg_mono_us() < l->connect_at_us)
        return false;
    /* A NOTIFY is a commit of its own; nobody needs it on disk. */
    (void)snprintf(words, sizeof(words), "SET synchronous_commit = off; LISTEN %s",
                   l->channel);
    if (pg_connect(l->s, l->s->listen, &l->conn, NULL) ||
        pg_run(l->conn, words, "listening", NULL)) {
        lose_connection(l);
        return false;
    }
    ear_set(&l->ear, PQsocket(l->conn->pg));
    l->renew_at_us = 0;
    for (unsigned i = 0; i < BUCKETS; i++)
        wake_post_bucket(l->s->d.hub, i, BUCKETS);
    return true;
}

static bool exchange(struct pg_listener *l, struct pg_pipe *p, struct pg_call *call)
{
    enum pg_reached reached;

    return pg_exchange(l->conn, p, &reached, NULL) == BELAY_OK && call->ok;
}

static bool register_waiter(struct pg_listener *l)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    struct pg_pipe p;

    pg_pipe_init(&p, &arena);
    buf_append_str(&text, "INSERT INTO ");
    pg_table(l->s, "waiter", &text);
    buf_append_str(&text,
                   " VALUES ($1, clock_timestamp() + interval '" WAITER_LIFE "')"
                   " ON CONFLICT (process) DO UPDATE SET until = excluded.until");
    struct pg_call *call = pg_add(&p, pg_sql_of(l->s, &text), 1);
    pg_arg_bytes(&p, call, bytes_str(l->process));
    bool ok = exchange(l, &p, call);
    pg_pipe_clear(&p);
    return ok;
}

/* Keeps the waiter's row while somebody waits.  False: the connection is gone. */
static bool keep_registered(struct pg_listener *l)
{
    pthread_mutex_lock(&l->mutex);
    bool wanted = l->wanted || wake_hub_listens(l->s->d.hub);
    bool due = !l->registered || pg_mono_us() >= l->renew_at_us;
    if (!wanted)
        l->registered = false; /* the row runs out by itself */
    l->wanted = false;
    pthread_mutex_unlock(&l->mutex);
    if (!wanted || !due)
        return true;
    if (!connect_now(l) || !register_waiter(l))
        return false;
    l->renew_at_us = pg_mono_us() + RENEW_US;
    pthread_mutex_lock(&l->mutex);
    l->registered = true;
    tell_beginners(l);
    pthread_mutex_unlock(&l->mutex);
    return true;
}

static bool take_posted(struct pg_listener *l, uint64_t out[WORDS])
{
    uint64_t any = 0;

    pthread_mutex_lock(&l->mutex);
    for (unsigned i = 0; i < WORDS; i++) {
        out[i] = l->posted[i];
        any |= out[i];
        l->posted[i] = 0;
    }
    pthread_mutex_unlock(&l->mutex);
    return any != 0;
}

static void put_back(struct pg_listener *l, const uint64_t bits[WORDS])
{
    pthread_mutex_lock(&l->mutex);
    for (unsigned i = 0; i < WORDS; i++)
        l->posted[i] |= bits[i];
    pthread_mutex_unlock(&l->mutex);
}

/* One message for everything posted, if anybody else waits. */
static bool send_posted(struct pg_listener *l)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    CLEANUP(buf_release) struct buf payload = { .ptr = NULL };
    uint64_t bits[WORDS];
    struct pg_pipe p;

    if (pg_mono_us() < l->ask_at_us || !take_posted(l, bits))
        return true;
    if (!connect_now(l)) {
        put_back(l, bits);
        return false;
    }
    add_buckets(l, bits, &payload);
    pg_pipe_init(&p, &arena);
    buf_append_str(&text, "SELECT pg_notify($1, $2) WHERE EXISTS (SELECT FROM ");
    pg_table(l->s, "waiter", &text);
    buf_append_str(&text, " WHERE process <> $3 AND until > clock_timestamp())");
    struct pg_call *call = pg_add(&p, pg_sql_of(l->s, &text), 3);
    pg_arg_bytes(&p, call, bytes_str(l->channel));
    pg_arg_bytes(&p, call, buf_view(&payload));
    pg_arg_bytes(&p, call, bytes_str(l->process));
    bool ok = exchange(l, &p, call);
    bool waits = ok && PQntuples(call->result) > 0;
    if (!ok)
        put_back(l, bits);
    else if (!waits)
        l->ask_at_us = pg_mono_us() + ASK_AGAIN_US;
    atomic_store(&l->others_until_us, waits ? pg_mono_us() + WAITED_US : 0);
    pg_pipe_clear(&p);
    return ok;
}

static void hear(struct pg_listener *l)
{
    PGnotify *n;

    while ((n = PQnotifies(l->conn->pg)) != NULL) {
        const char *from = strchr(n->extra, ';');
        bool own = from && strcmp(from + 1, l->process) == 0;
        for (char *at = n->extra; *at >= '0' && *at <= '9' && !own;) {
            unsigned long bucket = strtoul(at, &at, 10);
            if (bucket < BUCKETS)
                wake_post_bucket(l->s->d.hub, (unsigned)bucket, BUCKETS);
            if (*at == ',')
                at++;
        }
        PQfreemem(n);
    }
}

/* Whoever reads; false: the connection is gone. */
static bool hear_all(void *arg)
{
    struct pg_listener *l = arg;

    if (!PQconsumeInput(l->conn->pg))
        return false;
    hear(l);
    return true;
}

/* Until the bell rings, somebody calls, or it is time for something. */
static void sleep_on(struct pg_listener *l)
{
    int64_t now_us = pg_mono_us(), until_us = INT64_MAX;

    pthread_mutex_lock(&l->mutex);
    if (l->registered)
        until_us = l->renew_at_us;
    bool work = l->wanted;
    for (unsigned i = 0; i < WORDS; i++)
        work |= l->posted[i] != 0;
    pthread_mutex_unlock(&l->mutex);
    if (work) {
        int64_t next_us = l->conn ? l->ask_at_us : l->connect_at_us;
        until_us = until_us < next_us ? until_us : next_us;
    }
    int64_t ms = until_us == INT64_MAX ? -1 : (until_us - now_us + 999) / 1000;
    if (!ear_sleep(&l->ear, ms < -1 ? 0 : ms > 60000 ? 60000 : (int)ms))
        lose_connection(l);
}

/* A process that commits and ends at once wakes others, too. */
static void say_last(struct pg_listener *l)
{
    l->ask_at_us = 0;
    (void)send_posted(l);
}

static void *listen_thread(void *arg)
{
    struct pg_listener *l = arg;

    for (;;) {
        pthread_mutex_lock(&l->mutex);
        bool stop = l->stop;
        pthread_mutex_unlock(&l->mutex);
        if (stop) {
            say_last(l);
            return NULL;
        }
        bool ok = keep_registered(l) && send_posted(l);
        if (!ok && l->conn)
            lose_connection(l);
        if (l->conn)
            hear(l);
        sleep_on(l);
    }
}

/* --- its life --- */

static belay_rc name_listener(struct pg_listener *l, struct belay_error *err)
{
    uint8_t id[16];
    belay_rc rc = random_bytes(&l->s->config.random, id, sizeof(id), err);

    if (rc)
        return rc;
    hex_encode(bytes_of(id, sizeof(id)), l->process);
    (void)snprintf(l->channel, sizeof(l->channel), "belay1_%016llx",
                   (unsigned long long)key_hash(bytes_str(l->s->schema)));
    return BELAY_OK;
}

belay_rc pg_listener_open(struct pg_store *s, struct belay_error *err)
{
    if (s->pooler && !s->listen)
        return BELAY_OK; /* a pooler's connection cannot listen: the safety timer serves */
    struct pg_listener *l = calloc(1, sizeof(*l));
    if (!l)
        return err_no_memory(err, "wake-ups");
    l->s = s;
    (void)pthread_mutex_init(&l->mutex, NULL);
    belay_rc rc = name_listener(l, err);
    if (rc == BELAY_OK)
        rc = ear_open(&l->ear, hear_all, l, err);
    if (rc == BELAY_OK && !thread_start(&l->thread, listen_thread, l)) {
        rc = err_set(err, BELAY_UNAVAILABLE, "postgres: no thread for wake-ups");
        ear_close(&l->ear);
    }
    if (rc) {
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

void pg_listener_close(struct pg_store *s)
{
    struct pg_listener *l = s->listener;

    if (!l)
        return;
    wake_hub_set_line(s->d.hub, NULL);
    pthread_mutex_lock(&l->mutex);
    l->stop = true;
    pthread_mutex_unlock(&l->mutex);
    ear_ring(&l->ear);
    (void)pthread_join(l->thread, NULL);
    pg_disconnect(l->conn);
    ear_close(&l->ear);
    (void)pthread_mutex_destroy(&l->mutex);
    free(l);
    s->listener = NULL;
}
