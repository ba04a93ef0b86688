#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "nouns.h"

#define BEHIND_MS ((int64_t)50)

#define START_MONO_US ((int64_t)1000000)

/* --- memory --- */

struct world_memory {
    struct world_memory *next;
    char bytes[];
};

static char *remember(struct world *w, size_t n)
{
    struct world_memory *m = malloc(sizeof(*m) + n + 1);

    if (!m)
        abort();
    m->next = w->memory;
    w->memory = m;
    memset(m->bytes, 0, n + 1);
    return m->bytes;
}

static void forget_all(struct world *w)
{
    while (w->memory) {
        struct world_memory *next = w->memory->next;
        free(w->memory);
        w->memory = next;
    }
}

const char *text(struct world *w, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0)
        abort();
    char *out = remember(w, (size_t)len);
    va_start(args, fmt);
    (void)vsnprintf(out, (size_t)len + 1, fmt, args);
    va_end(args);
    return out;
}

char *bytes_of(struct world *w, char byte, size_t n)
{
    char *out = remember(w, n);

    memset(out, byte, n);
    return out;
}

/* --- session handles --- */

struct world_session {
    struct world_session *next;
    struct belay *of;
    struct belay_session *session;
};

static void close_sessions(struct world *w)
{
    while (w->sessions) {
        struct world_session *next = w->sessions->next;
        belay_session_close(w->sessions->session);
        free(w->sessions);
        w->sessions = next;
    }
}

struct belay_session *session(struct world *w, const char *id)
{
    for (struct world_session *s = w->sessions; s; s = s->next) {
        if (s->of == w->use && strcmp(belay_session_id(s->session), id) == 0)
            return s->session;
    }
    struct world_session *s = calloc(1, sizeof(*s));
    if (!s)
        abort();
    s->of = w->use;
    if (!RC(w, belay_session_open(w->use, id, NULL, &s->session, &w->err), BELAY_OK))
        abort(); /* no case can go on */
    s->next = w->sessions;
    w->sessions = s;
    return s->session;
}

/* --- time --- */

static void looked(struct world *w)
{
    if (w->on_clock)
        w->on_clock(w->on_clock_arg);
}

static int64_t world_wall_ms(void *arg)
{
    struct world *w = arg;

    looked(w);
    return fake_wall_ms(&w->clock);
}

static int64_t world_mono_us(void *arg)
{
    struct world *w = arg;

    looked(w);
    return fake_mono_us(&w->clock);
}

/* On a server others are as fast as they are: who makes way for them makes way. */
static void world_sleep_us(void *arg, int64_t us)
{
    struct timespec ts = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
    struct world *w = arg;

    fake_advance_us(&w->clock, us);
    if (w->store->own_clock)
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* --- handles --- */

static belay_rc open_handle(struct world *w, const char *ns, unsigned i,
                            struct belay **out)
{
    struct belay_clock clock = { .wall_ms = world_wall_ms,
                                 .mono_us = world_mono_us,
                                 .sleep_us = world_sleep_us,
                                 .arg = w };
    struct belay_random random = fake_random_hook(&w->random[i]);
    struct belay_options options = { .size = sizeof(options),
                                     .ns = ns,
                                     .clock = w->real_time ? NULL : &clock,
                                     .random = &random };

    return belay_open(w->url, &options, out, &w->err);
}

static bool open_handles(struct world *w)
{
    if (!RC(w, open_handle(w, NULL, 0, &w->a), BELAY_OK))
        return false;
    w->b = w->a;
    if (w->store->shared && !RC(w, open_handle(w, NULL, 1, &w->b), BELAY_OK))
        return false;
    w->use = w->a;
    return true;
}

void world_shut(struct world *w)
{
    close_sessions(w);
    if (w->b != w->a)
        belay_close(w->b);
    belay_close(w->a);
    w->a = w->b = w->use = NULL;
}

bool world_open(struct world *w, struct tap *t, const struct test_store *store,
                int64_t start_ms)
{
    memset(w, 0, sizeof(*w));
    w->t = t;
    w->store = store;
    w->real_time = start_ms == 0;
    atomic_store(&w->clock.wall_ms, start_ms);
    atomic_store(&w->clock.mono_us, START_MONO_US);
    atomic_store(&w->random[0].state, 42);
    atomic_store(&w->random[1].state, 4242);
    return OK(w, directory_make(w->dir, sizeof(w->dir))) &&
           OK(w, store->url(w->dir, w->url, sizeof(w->url))) &&
           RC(w, belay_arena_new(&w->arena, &w->err), BELAY_OK) && open_handles(w);
}

void world_close(struct world *w)
{
    world_shut(w);
    belay_arena_free(w->arena);
    forget_all(w);
    test_store_remove(w->store, w->dir);
}

bool world_reopen(struct world *w)
{
    close_sessions(w);
    if (!w->store->shared)
        return true;
    world_shut(w);
    return open_handles(w);
}

struct belay *world_handle(struct world *w, const char *ns)
{
    struct belay *out = NULL;

    (void)RC(w, open_handle(w, ns, 1, &out), BELAY_OK);
    return out;
}

void world_handle_close(struct world *w, struct belay *b)
{
    close_sessions(w);
    belay_close(b);
}

bool world_damage(struct world *w, const char *sql)
{
    char why[200] = "";

    world_shut(w);
    bool done = w->store->below->damage(w->dir, sql, why, sizeof(why));
    if (!OK(w, done))
        printf("# %s\n", why);
    return open_handles(w) && done;
}

void world_pass(struct world *w, int64_t ms)
{
    if (!w->real_time && !w->store->own_clock) {
        fake_advance_us(&w->clock, ms * 1000);
        return;
    }
    struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

void world_turn(struct world *w)
{
    w->use = w->b;
    if (w->store->own_clock)
        world_pass(w, BEHIND_MS);
}

/* --- threads --- */

bool world_visit(struct world *visitor, struct world *host, struct belay *use)
{
    memset(visitor, 0, sizeof(*visitor));
    visitor->own_tap = (struct tap){ .name = host->t->name, .arg = host->t->arg };
    visitor->t = &visitor->own_tap;
    visitor->store = host->store;
    visitor->real_time = host->real_time;
    visitor->a = host->a;
    visitor->b = host->b;
    visitor->use = use;
    return RC(visitor, belay_arena_new(&visitor->arena, &visitor->err), BELAY_OK);
}

void world_leave(struct world *visitor, struct world *host)
{
    close_sessions(visitor);
    belay_arena_free(visitor->arena);
    forget_all(visitor);
    host->t->failed += visitor->own_tap.failed;
}

bool world_join(struct world *w, struct tap *t, const char *url)
{
    struct belay_options options = { .size = sizeof(options) };

    memset(w, 0, sizeof(*w));
    w->t = t;
    w->real_time = true;
    (void)snprintf(w->url, sizeof(w->url), "%s", url);
    bool joined = RC(w, belay_arena_new(&w->arena, &w->err), BELAY_OK) &&
                  RC(w, belay_open(url, &options, &w->a, &w->err), BELAY_OK);
    w->b = w->use = w->a;
    return joined;
}

void world_part(struct world *w)
{
    world_shut(w);
    belay_arena_free(w->arena);
    forget_all(w);
}

struct hand {
    struct world world;
    pthread_t thread;
    pthread_barrier_t *barrier;
    unsigned i;
    void (*work)(struct world *w, unsigned i, void *arg);
    void *arg;
};

static void *hand_main(void *arg)
{
    struct hand *h = arg;

    (void)pthread_barrier_wait(h->barrier);
    h->work(&h->world, h->i, h->arg);
    return NULL;
}

void world_crowd(struct world *w, unsigned n,
                 void (*work)(struct world *w, unsigned i, void *arg), void *arg)
{
    struct hand *hands = calloc(n, sizeof(*hands));
    pthread_barrier_t barrier;

    if (!hands || pthread_barrier_init(&barrier, NULL, n))
        abort();
    for (unsigned i = 0; i < n; i++) {
        struct hand *h = &hands[i];
        if (!world_visit(&h->world, w, i % 2 ? w->b : w->a))
            abort();
        h->barrier = &barrier;
        h->i = i;
        h->work = work;
        h->arg = arg;
        if (pthread_create(&h->thread, NULL, hand_main, h))
            abort();
    }
    for (unsigned i = 0; i < n; i++)
        (void)pthread_join(hands[i].thread, NULL);
    for (unsigned i = 0; i < n; i++)
        world_leave(&hands[i].world, w);
    (void)pthread_barrier_destroy(&barrier);
    free(hands);
}

/* --- checks --- */

bool world_rc(struct world *w, belay_rc got, belay_rc want, const char *reason,
              const char *what, const char *file, int line)
{
    bool held = tap_check_str(w->t, belay_error_info((int)got)->name,
                              belay_error_info((int)want)->name, what, file, line);

    if (!held && got != BELAY_OK)
        printf("# %s (reason %s)\n", w->err.message, w->err.reason);
    if (!held || got == BELAY_OK)
        return held;
    held = tap_check_i64(w->t, w->err.code, (int64_t)got, "err.code", file, line);
    held &= tap_check(w->t, w->err.message[0] != 0, "a message", file, line);
    held &= tap_check(w->t, !strchr(w->err.message, '\n'), "one line", file, line);
    if (reason && !tap_check_str(w->t, w->err.reason, reason, what, file, line)) {
        printf("# %s\n", w->err.message);
        held = false;
    }
    return held;
}
