/* A server and the links to it: which one takes a job, and what to do without any. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "store/drivers/valkey/net.h"

#define PAUSE_MAX_US ((int64_t)60000000)
#define PATIENCE_MIN_US ((int64_t)200000)
#define DRAIN_US ((int64_t)1000000)
#define GROW_AGAIN_US ((int64_t)1000000) /* after another link was not to be had */

/* --- its life --- */

belay_rc vk_node_new(struct vk_store *s, const char *host, unsigned port,
                     struct vk_node **out, struct belay_error *err)
{
    struct vk_node *n = calloc(1, sizeof(*n));
    pthread_condattr_t attr;

    if (!n)
        return err_no_memory(err, "a server");
    n->links = calloc(s->options.pool, sizeof(struct vk_link *));
    if (!n->links || strlen(host) >= sizeof(n->host)) {
        free(n->links);
        free(n);
        return err_no_memory(err, "a server");
    }
    n->s = s;
    (void)snprintf(n->host, sizeof(n->host), "%s", host);
    n->port = port;
    (void)pthread_mutex_init(&n->mutex, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&n->cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    *out = n;
    return BELAY_OK;
}

void vk_node_free(struct vk_node *n)
{
    if (!n)
        return;
    for (unsigned i = 0; i < n->n_links; i++) {
        vk_link_drain(n->links[i], vk_now_us() + DRAIN_US);
        vk_link_unref(n->links[i]);
    }
    free(n->links);
    (void)pthread_cond_destroy(&n->cond);
    (void)pthread_mutex_destroy(&n->mutex);
    free(n);
}

/* --- links --- */

/* With the mutex held: forgets links that are lost. */
static void sweep(struct vk_node *n)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < n->n_links; i++) {
        if (vk_link_is_dead(n->links[i]))
            vk_link_unref(n->links[i]);
        else
            n->links[kept++] = n->links[i];
    }
    n->n_links = kept;
}

/* With the mutex held. */
static void drop_links(struct vk_node *n, const char *why)
{
    for (unsigned i = 0; i < n->n_links; i++) {
        vk_link_kill(n->links[i], why);
        vk_link_unref(n->links[i]);
    }
    n->n_links = 0;
}

void vk_node_drop(struct vk_node *n, const char *why)
{
    pthread_mutex_lock(&n->mutex);
    drop_links(n, why);
    pthread_mutex_unlock(&n->mutex);
}

void vk_node_expect_master(struct vk_node *n)
{
    pthread_mutex_lock(&n->mutex);
    if (n->replica)
        drop_links(n, "the server was a replica");
    pthread_mutex_unlock(&n->mutex);
}

/* With the mutex held: the link with the fewest jobs, or NULL. */
static struct vk_link *least_waiting(const struct vk_node *n)
{
    struct vk_link *best = NULL;
    size_t fewest = SIZE_MAX;

    for (unsigned i = 0; i < n->n_links; i++) {
        size_t waiting = vk_link_waiting(n->links[i]);
        if (waiting < fewest) {
            best = n->links[i];
            fewest = waiting;
        }
    }
    return best;
}

/* With the mutex held.  What belongs to another life of the server is gone before anything
 * goes out in the new one. */
static void enter_life(struct vk_node *n, const struct vk_greeting *said)
{
    struct lineage was, is;

    vk_life_of(&n->lineage, &was);
    vk_life_of(&said->lineage, &is);
    if (strcmp(was.life, is.life) == 0 && n->replica == said->replica &&
        n->generation > 0)
        return;
    drop_links(n, "the server was restarted or replaced");
    n->lineage = said->lineage;
    n->replica = said->replica;
    n->generation = atomic_fetch_add(&n->s->generations, 1) + 1;
}

/* With the mutex held. */
static void add_link(struct vk_node *n, struct vk_link *l,
                     const struct vk_greeting *said)
{
    enter_life(n, said);
    sweep(n);
    n->links[n->n_links++] = l; /* only who connects adds one, and found room */
}

belay_rc vk_node_meet(struct vk_node *n, int64_t deadline_us, struct belay_error *err)
{
    struct vk_greeting said = { .replica = false };
    struct vk_conn *c = NULL;
    belay_rc rc = vk_conn_open(n->s, n->host, n->port, deadline_us, &c, err);

    if (rc == BELAY_OK)
        rc = vk_check_server(n->s, c, deadline_us, &said, err);
    vk_conn_close(c);
    if (rc)
        return rc;
    pthread_mutex_lock(&n->mutex);
    enter_life(n, &said);
    pthread_mutex_unlock(&n->mutex);
    return BELAY_OK;
}

/* --- connecting --- */

static belay_rc connect_once(struct vk_node *n, int64_t deadline_us,
                             struct vk_link **out, struct vk_greeting *said,
                             struct belay_error *err)
{
    struct vk_conn *c = NULL;
    belay_rc rc = vk_conn_open(n->s, n->host, n->port, deadline_us, &c, err);

    if (rc == BELAY_OK)
        rc = vk_check_server(n->s, c, deadline_us, said, err);
    if (rc == BELAY_OK)
        rc = vk_library_check(c, deadline_us, err);
    if (rc) {
        vk_conn_close(c);
        return rc;
    }
    return vk_link_open(c, out, err);
}

/* A pause of which a part is left to chance. */
static int64_t jittered(const struct vk_store *s, int64_t pause_us)
{
    uint8_t chance = 128;

    if (random_bytes(&s->config.random, &chance, 1, NULL))
        chance = 128;
    return pause_us - pause_us * s->options.retry_jitter / 100 * chance / 255;
}

/* The pause before the next attempt; false: there is no time for it. */
static bool pause_for(const struct vk_store *s, int64_t *pause_us, int64_t deadline_us)
{
    struct belay_clock clock = clock_system();
    int64_t wait_us = jittered(s, *pause_us);

    if (vk_now_us() + wait_us >= deadline_us)
        return false;
    clock.sleep_us(clock.arg, wait_us);
    *pause_us *= s->options.retry_base;
    if (*pause_us > PAUSE_MAX_US)
        *pause_us = PAUSE_MAX_US;
    return true;
}

/* Again and again, unless somebody answers and does not want us, or there is no time for
 * another pause (*final is false then: who has more time may try). */
static belay_rc connect_again(struct vk_node *n, unsigned retries, int64_t deadline_us,
                              struct vk_link **out, struct vk_greeting *said,
                              bool *final, struct belay_error *err)
{
    int64_t pause_us = n->s->options.retry_first_ms * 1000;

    *final = true;
    for (unsigned i = 0;; i++) {
        belay_rc rc = connect_once(n, deadline_us, out, said, err);
        if (rc != BELAY_UNAVAILABLE || err->reason[0] || i == retries)
            return rc;
        if (!pause_for(n->s, &pause_us, deadline_us)) {
            *final = false;
            return rc;
        }
    }
}

/* With the mutex held: who comes soon after somebody who has waited in vain for the server
 * does not wait as long again. */
static int64_t patience_until(const struct vk_node *n, int64_t deadline_us)
{
    int64_t now_us = vk_now_us(), patience_us = n->s->request_timeout_us / 10;

    if (patience_us < PATIENCE_MIN_US)
        patience_us = PATIENCE_MIN_US;
    return now_us < n->silent_until_us && now_us + patience_us < deadline_us
               ? now_us + patience_us
               : deadline_us;
}

/* With the mutex held, which is given up meanwhile; nobody else connects. */
static void connect_round(struct vk_node *n, int64_t deadline_us)
{
    struct vk_greeting said = { .replica = false };
    struct belay_error err = { .code = 0 };
    struct vk_link *l = NULL;
    int64_t until_us = patience_until(n, deadline_us);
    bool growing = n->n_links > 0; /* there is no hurry then */
    /* In a cluster somebody else may have the slots: the map is asked between attempts. */
    bool once = growing || atomic_load(&n->s->cluster);
    bool final = true;

    n->connecting = true;
    pthread_mutex_unlock(&n->mutex);
    belay_rc rc = connect_again(n, once ? 0 : n->s->options.retries, until_us, &l,
                                &said, &final, &err);
    pthread_mutex_lock(&n->mutex);
    n->connecting = false;
    n->rounds++;
    n->last_is_final = !growing && (final || until_us < deadline_us);
    n->last_error = err;
    n->last_error.code = (int)rc;
    int64_t now_us = vk_now_us();
    n->grow_at_us = rc ? now_us + GROW_AGAIN_US : 0;
    if (rc == BELAY_OK) {
        n->silent_until_us = 0;
        add_link(n, l, &said);
    } else if (rc == BELAY_UNAVAILABLE && now_us >= deadline_us &&
               now_us >= n->silent_until_us) {
        n->silent_until_us = now_us + n->s->request_timeout_us;
    }
    pthread_cond_broadcast(&n->cond);
}

/* With the mutex held: waits for the one who connects; false: the time is up. */
static bool wait_for_round(struct vk_node *n, int64_t deadline_us)
{
    struct timespec until = { .tv_sec = deadline_us / 1000000,
                              .tv_nsec = deadline_us % 1000000 * 1000 };
    uint64_t round = n->rounds;
    bool in_time = true;

    while (n->rounds == round && in_time)
        in_time = pthread_cond_timedwait(&n->cond, &n->mutex, &until) == 0;
    return n->rounds != round;
}

/* With the mutex held: a link, or why there is none. */
static belay_rc find_link(struct vk_node *n, int64_t deadline_us, struct vk_link **out,
                          struct belay_error *err)
{
    bool tried = false, grown = false;

    for (;;) {
        sweep(n);
        struct vk_link *l = least_waiting(n);
        bool grow = !grown && !n->connecting && n->n_links < n->s->options.pool &&
                    (!l || vk_now_us() >= n->grow_at_us);
        if (l && (!grow || vk_link_waiting(l) == 0)) {
            *out = l;
            return BELAY_OK;
        }
        if (!n->connecting) {
            *(l ? &grown : &tried) = true;
            connect_round(n, deadline_us);
        } else if (!wait_for_round(n, deadline_us)) {
            return err_set(err, BELAY_UNAVAILABLE, "valkey: no connection in time");
        }
        if (n->last_error.code && n->n_links == 0 && (tried || n->last_is_final)) {
            if (err)
                *err = n->last_error;
            return (belay_rc)n->last_error.code;
        }
    }
}

static belay_rc take_link(struct vk_node *n, const struct vk_job *job,
                          struct vk_link **out, struct belay_error *err)
{
    pthread_mutex_lock(&n->mutex);
    belay_rc rc = find_link(n, job->deadline_us, out, err);
    if (rc == BELAY_OK && job->only && job->only != n->generation)
        rc = err_reason(err, BELAY_UNAVAILABLE, "life",
                        "valkey: the server was restarted or replaced");
    if (rc == BELAY_OK)
        vk_link_ref(*out);
    pthread_mutex_unlock(&n->mutex);
    return rc;
}

/* --- jobs --- */

belay_rc vk_node_call(struct vk_node *n, struct vk_job *job, enum vk_again again,
                      struct belay_error *err)
{
    int64_t pause_us = n->s->options.retry_first_ms * 1000;
    struct arena_mark mark = arena_mark(job->arena);

    for (unsigned tries = 0;; tries++) {
        struct vk_link *l = NULL;

        job->reached = VK_NOTHING_SENT;
        memset(job->reply, 0, job->n_replies * sizeof(*job->reply));
        belay_rc rc = take_link(n, job, &l, err);
        if (rc)
            return rc;
        rc = vk_link_call(l, job, err);
        vk_link_unref(l);
        if (rc != BELAY_UNAVAILABLE || (job->reached == VK_SENT && again == VK_ONCE) ||
            vk_now_us() >= job->deadline_us || tries > n->s->options.retries)
            return rc;
        /* The first time it may just have been idle for too long. */
        if (tries > 0 && !pause_for(n->s, &pause_us, job->deadline_us))
            return rc;
        arena_rewind(job->arena, mark);
    }
}

belay_rc vk_node_ask(struct vk_node *n, struct vk_request *r, struct vk_reply *replies,
                     int64_t deadline_us, struct belay_error *err)
{
    struct vk_job job = { .bytes = bytes_of(r->bytes, r->len),
                          .n_replies = r->n_commands,
                          .reply = replies,
                          .arena = r->arena,
                          .deadline_us = deadline_us };

    return r->no_memory ? err_no_memory(err, "a request")
                        : vk_node_call(n, &job, VK_AGAIN, err);
}

void vk_node_post(struct vk_node *n, const struct vk_request *r, unsigned tag)
{
    pthread_mutex_lock(&n->mutex);
    sweep(n);
    struct vk_link *l = least_waiting(n);
    if (l)
        vk_link_ref(l);
    pthread_mutex_unlock(&n->mutex);
    if (l)
        vk_link_post(l, r, tag);
    vk_link_unref(l);
}
