#include "exec.h"

#include <stdio.h>
#include <stdlib.h>

#define BULK BELAY_SUBMIT_MAX

/* --- submitting --- */

/* 100 bytes, as other queues are measured. */
static const char payload[] =
    "{\"to\":\"user@example.com\",\"subject\":\"hello\","
    "\"body\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}";

bool bench_submit(struct belay *b, const char *lane, unsigned n, const char *requires)
{
    struct belay_submitted done[BULK];
    struct belay_submission items[BULK];
    struct belay_arena *arena = NULL;
    struct belay_error err;
    bool ok = !belay_arena_new(&arena, &err);

    for (unsigned i = 0; i < BULK; i++)
        items[i] = (struct belay_submission){ .size = sizeof(items[i]),
                                              .lane = lane,
                                              .kind = "mail",
                                              .payload = payload,
                                              .payload_len = sizeof(payload) - 1,
                                              .requires = &requires,
                                              .n_requires = requires ? 1 : 0 };
    for (unsigned at = 0; at < n && ok; at += BULK) {
        unsigned some = n - at < BULK ? n - at : BULK;
        ok = !belay_execution_submit(b, items, some, arena, done, &err);
        belay_arena_reset(arena);
    }
    belay_arena_free(arena);
    return ok || bench_failed("submit", &err);
}

/* --- claiming and completing --- */

struct crew {
    const struct bench_drain *d;
    _Atomic uint64_t done;
};

/* One of the callers. */
struct caller {
    const struct bench_drain *d;
    char name[32];
    const char *lane;
    struct belay_claim_policy policy;
    struct belay_arena *held, *other; /* what it holds is in the first */
    struct belay_works works;
    struct belay_completion *items; /* d->batch of them */
    struct belay_ended *ended;
};

static bool caller_make(struct caller *c, const struct bench_drain *d, unsigned i)
{
    *c = (struct caller){ .d = d, .lane = d->lane };
    (void)snprintf(c->name, sizeof(c->name), "worker-%02u", i);
    c->policy = (struct belay_claim_policy){ .size = sizeof(c->policy),
                                             .lanes = &c->lane,
                                             .n_lanes = 1,
                                             .worker = c->name,
                                             .max = d->batch };
    c->items = calloc(d->batch, sizeof(*c->items));
    c->ended = calloc(d->batch, sizeof(*c->ended));
    return c->items && c->ended && !belay_arena_new(&c->held, NULL) &&
           !belay_arena_new(&c->other, NULL);
}

static void caller_free(struct caller *c)
{
    belay_arena_free(c->held);
    belay_arena_free(c->other);
    free(c->items);
    free(c->ended);
}

static bool claim(struct caller *c)
{
    struct belay_error err;

    belay_arena_reset(c->held);
    return !belay_execution_claim(c->d->b, &c->policy, c->held, &c->works, &err) ||
           bench_failed("claim", &err);
}

/* What was claimed next is held in the other arena. */
static void turn_over(struct caller *c, const struct belay_works *next)
{
    struct belay_arena *was = c->held;

    c->held = c->other;
    c->other = was;
    c->works = *next;
}

static bool complete(struct caller *c, bool with_next)
{
    struct belay_works next = { .n = 0 };
    struct belay_error err;

    for (size_t i = 0; i < c->works.n; i++)
        c->items[i] = (struct belay_completion){ .size = sizeof(c->items[i]),
                                                 .handle = &c->works.work[i].handle };
    belay_arena_reset(c->other);
    if (belay_execution_complete(c->d->b, c->items, c->works.n,
                                 with_next ? &c->policy : NULL, c->other, c->ended,
                                 with_next ? &next : NULL, &err))
        return bench_failed("complete", &err);
    for (size_t i = 0; i < c->works.n; i++)
        if (c->ended[i].code)
            return bench_failed("complete", &c->ended[i].err);
    turn_over(c, &next);
    return true;
}

/* A claim, and its completion; nothing is held between two turns unless the next ones
 * were claimed with it. */
static bool turns(struct caller *c, _Atomic uint64_t *done)
{
    bool ok = true, more = true;

    for (unsigned i = 0; ok && more; i++) {
        bool last = c->d->turns > 0 && i + 1 >= c->d->turns;
        if (c->works.n == 0)
            ok = claim(c);
        size_t n = c->works.n;
        more = n > 0 && !last;
        ok = ok && (n == 0 || complete(c, c->d->next && !last));
        if (ok)
            *done += n;
    }
    return ok;
}

static bool work(void *arg, unsigned i)
{
    struct crew *crew = arg;
    struct caller c;

    bool ok = caller_make(&c, crew->d, i) && turns(&c, &crew->done);

    caller_free(&c);
    return ok;
}

double bench_drain_rate(const struct bench_drain *d, unsigned n)
{
    struct crew crew = { .d = d };
    double took = bench_crew(d->callers, work, &crew);

    if (took > 0 && crew.done != n)
        (void)fprintf(stderr, "bench: %llu of %u executions were done\n",
                      (unsigned long long)crew.done, n);
    return took > 0 && crew.done == n ? n / took : 0;
}

double bench_exec_rate(const struct bench_drain *d, unsigned n)
{
    return bench_submit(d->b, d->lane, n, NULL) ? bench_drain_rate(d, n) : 0;
}
