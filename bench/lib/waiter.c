#include "waiter.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/handle.h"
#include "base/clock.h"

#define SESSION "inbox"
#define PATIENCE_US ((int64_t)60000000)
#define WARM_UP 5 /* connections and statements */

/* What the waiter tells, by the monotonic clock; 0: it failed. */
struct woken {
    double at, claimed_at;
};

/* --- the process that waits --- */

static bool claim(struct belay *b, struct belay_arena *arena, bool *got)
{
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = SESSION,
                                           .owner_id = "waiter",
                                           .lease_ms = BELAY_LEASE_MAX_MS,
                                           .max = 1 };
    struct belay_claimed claimed;
    struct belay_error err;

    if (belay_queue_claim(b, &request, arena, &claimed, &err))
        return bench_failed("claim", &err);
    *got = claimed.claim != NULL;
    return true;
}

/* Wake-ups may be for nothing: the one that counts finds something. */
static struct woken wait_once(struct belay *b, struct listener *l)
{
    struct belay_clock clock = clock_system();
    struct woken w = { 0, 0 };
    struct belay_arena *arena = NULL;
    struct belay_error err;
    bool got = false;

    if (belay_arena_new(&arena, &err))
        return w;
    while (!got) {
        if (listener_wait(l, clock.mono_us(clock.arg) + PATIENCE_US, &err)) {
            (void)bench_failed("wait", &err);
            break;
        }
        w.at = bench_now();
        if (!claim(b, arena, &got))
            break;
    }
    w.claimed_at = got ? bench_now() : 0;
    belay_arena_free(arena);
    return w;
}

static void wait_for_ever(struct belay *b, int out)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct bytes topic = bytes_str("inbox/" SESSION);
    struct listener *l = NULL;
    struct woken w = { 1, 1 }; /* the first one says that it listens */
    struct belay_error err;
    bool got;

    if (!b || !claim(b, &arena, &got) ||
        space_listen(b->space, &topic, 1, NULL, &arena, &l, &err))
        w.claimed_at = 0;
    while (write(out, &w, sizeof(w)) == (ssize_t)sizeof(w) && w.claimed_at > 0)
        w = wait_once(b, l);
    listener_close(l);
    belay_close(b);
}

bool bench_waiter_start(struct bench_waiter *w, struct belay *(*open)(const void *arg),
                        const void *arg)
{
    int pipes[2];

    *w = (struct bench_waiter){ .pid = -1, .in = -1 };
    if (pipe(pipes))
        return false;
    (void)fflush(NULL);
    w->pid = fork();
    if (w->pid == 0) {
        (void)close(pipes[0]);
        wait_for_ever(open(arg), pipes[1]);
        _exit(0);
    }
    (void)close(pipes[1]);
    w->in = pipes[0];
    return w->pid > 0;
}

/* What the waiter tells next. */
static bool hear(struct bench_waiter *w, struct woken *out)
{
    return read(w->in, out, sizeof(*out)) == (ssize_t)sizeof(*out) &&
           out->claimed_at > 0;
}

void bench_waiter_end(struct bench_waiter *w)
{
    if (w->in >= 0)
        (void)close(w->in);
    if (w->pid > 0 && kill(w->pid, SIGKILL) == 0) /* it still waits */
        (void)waitpid(w->pid, NULL, 0);
    *w = (struct bench_waiter){ .pid = -1, .in = -1 };
}

/* --- the process that enqueues --- */

static bool enqueue(struct belay *b, struct belay_arena *arena)
{
    static const char *const payloads[] = { "{\"type\":\"turn_input\"}" };
    struct belay_draft draft = { .size = sizeof(draft),
                                 .session_id = SESSION,
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_EXCLUSIVE,
                                 .payloads = payloads,
                                 .n_payloads = 1 };
    struct belay_enqueued done;
    struct belay_error err;

    belay_arena_reset(arena);
    return !belay_queue_enqueue(b, &draft, arena, &done, &err) ||
           bench_failed("enqueue", &err);
}

/* The one who enqueues. */
struct sender {
    struct belay *b;
    struct belay_arena *arena;
};

static bool sample(struct bench_wakeups *s, unsigned i, struct bench_waiter *w,
                   const struct sender *from, double (*bare)(void *arg, unsigned i),
                   void *arg)
{
    struct woken told;

    (void)poll(NULL, 0, 3); /* the waiter has gone to sleep again */
    double start = bench_now();
    if (!enqueue(from->b, from->arena))
        return false;
    s->enqueued[i] = bench_now() - start;
    if (!hear(w, &told))
        return false;
    s->woken[i] = told.at - start;
    s->claimed[i] = told.claimed_at - start;
    (void)poll(NULL, 0, 3);
    s->bare[i] = bare(arg, i);
    return s->bare[i] > 0;
}

bool bench_wakeups(struct bench_wakeups *s, unsigned n, struct bench_waiter *w,
                   struct belay *b, double (*bare)(void *arg, unsigned i), void *arg)
{
    struct sender from = { .b = b };
    struct woken ready;
    bool ok = n <= BENCH_WAKEUPS_MAX && !belay_arena_new(&from.arena, NULL) &&
              hear(w, &ready);

    for (unsigned i = 0; i < WARM_UP && ok; i++)
        ok = sample(s, 0, w, &from, bare, arg);
    for (unsigned i = 0; i < n && ok; i++)
        ok = sample(s, i, w, &from, bare, arg);
    belay_arena_free(from.arena);
    return ok;
}
