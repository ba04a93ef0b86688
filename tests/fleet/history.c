#include "history.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "fleetlib.h"

static const char *const subjects[HISTORY_SUBJECTS] = { "first", "second", "third" };

static uint64_t clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* Inside: nobody else is, by a word that is no part of the fleet. */
static void be_inside(struct worker *w, unsigned subject, uint64_t token,
                      uint64_t turns)
{
    uint64_t nobody = 0;

    if (!__atomic_compare_exchange_n(&w->witness[subject], &nobody, token, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        w->overlaps++;
    if (turns == 0)
        (void)sched_yield();
    for (uint64_t i = 0; i < turns; i++)
        w->overlaps += __atomic_load_n(&w->witness[subject], __ATOMIC_RELAXED) != token;
    __atomic_store_n(&w->witness[subject], 0, __ATOMIC_RELAXED);
}

void worker_run(struct worker *w, struct belay_fleet *f)
{
    struct history *h = &w->history;
    struct belay_contest_claim claim;
    struct belay_error err;
    struct rng rng;

    rng_init(&rng, w->seed);
    for (uint32_t i = 0; i < w->tries && h->n < h->max; i++) {
        uint8_t subject = (uint8_t)rng_below(&rng, HISTORY_SUBJECTS);
        struct belay_contest_subject what = subject_of(1, subjects[subject]);
        struct belay_contest_terms terms = terms_of("worker", HOUR_MS);
        struct event e = { .subject = subject, .called = clock_ns() };

        if (belay_contest_try(f, &what, &terms, &claim, &err) != BELAY_OK) {
            w->failures++;
            continue;
        }
        e.granted = clock_ns();
        if (claim.is_claimed) {
            e.type = EVENT_TENURE;
            e.token = claim.guard.token;
            be_inside(w, subject, e.token, rng_below(&rng, 64));
            e.ending = clock_ns();
            w->failures += !release(&claim.guard);
            e.ended = clock_ns();
        } else {
            e.type = EVENT_YIELD;
            e.token = claim.holder.token;
            e.is_pending = claim.holder.is_pending;
        }
        h->events[h->n++] = e;
    }
}

static int by_token(const void *a, const void *b)
{
    const struct event *x = a, *y = b;

    return (x->token > y->token) - (x->token < y->token);
}

/* All tenures of a subject, by token; the caller frees. */
static struct event *tenures_of(struct worker *const *workers, uint32_t n,
                                unsigned subject, size_t *out_n)
{
    size_t count = 0;
    struct event *out;

    for (uint32_t i = 0; i < n; i++)
        count += workers[i]->history.n;
    out = malloc((count + 1) * sizeof(*out));
    count = 0;
    for (uint32_t i = 0; out && i < n; i++) {
        for (uint32_t k = 0; k < workers[i]->history.n; k++) {
            const struct event *e = &workers[i]->history.events[k];
            if (e->type == EVENT_TENURE && e->subject == subject)
                out[count++] = *e;
        }
    }
    if (out)
        qsort(out, count, sizeof(*out), by_token);
    *out_n = count;
    return out;
}

static void blame(struct verdict *v, const char *rule, const struct event *a,
                  const struct event *b)
{
    if (!v->is_good)
        return;
    v->is_good = false;
    (void)snprintf(v->text, sizeof(v->text),
                   "%s: token %llx [%llu %llu] and token %llx [%llu %llu]", rule,
                   (unsigned long long)a->token, (unsigned long long)a->granted,
                   (unsigned long long)a->ending, (unsigned long long)b->token,
                   (unsigned long long)b->called, (unsigned long long)b->granted);
}

static void judge_tenures(const struct event *t, size_t n, struct verdict *v)
{
    for (size_t i = 1; i < n; i++) {
        if (t[i].token == t[i - 1].token)
            blame(v, "two tenures have one token", &t[i - 1], &t[i]);
        if (t[i].granted < t[i - 1].granted)
            blame(v, "tokens do not rise with time", &t[i - 1], &t[i]); /* H2 */
        if (t[i - 1].ending == 0 || t[i].granted < t[i - 1].ending)
            blame(v, "tenures overlap", &t[i - 1], &t[i]); /* H1 */
    }
}

static void judge_yield(const struct event *y, const struct event *t, size_t n,
                        struct verdict *v)
{
    struct event key = { .token = y->token };
    const struct event *to = bsearch(&key, t, n, sizeof(*t), by_token);

    if (!to && y->is_pending)
        return;
    if (!to)
        blame(v, "a yield names a tenure that nobody had", &key, y);
    else if (to->called > y->granted || (to->ended != 0 && to->ended < y->called))
        blame(v, "a yield names a tenure of another time", to, y); /* H3 */
}

bool history_judge(struct worker *const *workers, uint32_t n, struct verdict *out)
{
    *out = (struct verdict){ .is_good = true };
    for (unsigned subject = 0; subject < HISTORY_SUBJECTS; subject++) {
        size_t count;
        struct event *tenures = tenures_of(workers, n, subject, &count);

        if (!tenures)
            return false;
        out->tenures += count;
        judge_tenures(tenures, count, out);
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = 0; k < workers[i]->history.n; k++) {
                const struct event *e = &workers[i]->history.events[k];
                if (e->type != EVENT_YIELD || e->subject != subject)
                    continue;
                out->yields++;
                out->pending += e->is_pending;
                if (e->token != 0)
                    judge_yield(e, tenures, count, out);
            }
        }
        free(tenures);
    }
    return true;
}
