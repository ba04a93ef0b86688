/* What goes on beside the jobs: renewing, watching, timers. */
#include "cli/worker.h"

#include <stdio.h>

#define RETRY_US ((int64_t)250 * 1000)
#define WATCH_MS ((int64_t)5000)
#define WATCH_TYPES                                                  \
    ((1U << BELAY_EVENT_COMPLETION) | (1U << BELAY_EVENT_RELEASED) | \
     (1U << BELAY_EVENT_EXPIRED) | (1U << BELAY_EVENT_REVOKED) |     \
     (1U << BELAY_EVENT_RECLAIMED))

static bool is_held(const struct job *j)
{
    return j->hold == HOLD_HELD || j->hold == HOLD_ENDING;
}

static bool is_over(struct worker *w)
{
    worker_lock(w);
    bool over = w->is_over;
    worker_unlock(w);
    return over;
}

/* --- the keeper --- */

/* The job whose lease is to be renewed first; NULL: nobody holds any. */
static struct job *next_due(struct worker *w)
{
    struct job *first = NULL;

    for (size_t i = 0; i < w->plan.concurrency; i++) {
        struct job *j = &w->jobs[i];
        if (is_held(j) && (!first || j->renew_us < first->renew_us))
            first = j;
    }
    return first;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What a renewal, begun at `from`, came to. */
static void note_renewal(struct job *j, int64_t from, belay_rc rc,
                         const struct belay_error *err)
{
    int64_t lease_us = j->worker->plan.lease_ms * 1000;

    if (rc == BELAY_OK) {
        if (j->due_us < from + lease_us)
            j->due_us = from + lease_us;
        j->overdue_us = 0;
        j->renew_us = j->is_doubted ? 0 : from + lease_us / 3;
        j->is_doubted = false;
    } else if (worker_may_retry(rc) || rc == BELAY_POISONED) {
        j->renew_us = worker_now(j->worker) + least(RETRY_US, lease_us / 10 + 1000);
    } else if (j->hold == HOLD_HELD) {
        worker_lose(j, err->reason[0] ? err->reason : belay_error_info((int)rc)->name);
    } else { /* the call that ends it will say */
        j->renew_us = worker_now(j->worker) + lease_us / 3;
    }
}

/* Renews one lease; the mutex is held before and after. */
static void renew(struct worker *w, struct job *j)
{
    const struct belay_work *work = j->work;
    struct haul *h = j->haul;
    int64_t from = worker_now(w);
    struct belay_error err;

    (void)atomic_fetch_add(&h->refs, 1);
    j->renew_us = DEADLINE_NONE;
    worker_unlock(w);
    belay_rc rc =
        belay_execution_renew(w->belay, &work->handle, w->plan.lease_ms, NULL, &err);
    worker_lock(w);
    if (j->work == work && is_held(j))
        note_renewal(j, from, rc, &err);
    haul_release(h);
}

void *work_keeper(void *worker)
{
    struct worker *w = worker;

    worker_lock(w);
    while (!w->is_over) {
        struct job *j = next_due(w);
        int64_t at = j ? j->renew_us : DEADLINE_NONE;
        if (j && at <= worker_now(w)) {
            renew(w, j);
            continue;
        }
        worker_unlock(w);
        worker_rest(w, &w->keeper, at);
        worker_lock(w);
    }
    worker_unlock(w);
    return NULL;
}

/* --- the watcher --- */

/* Has the lease of this execution, or of all (NULL), renewed now: the answer says whether
 * it is still held, whatever the event was. */
static void doubt(struct worker *w, const char *execution_id)
{
    worker_lock(w);
    for (size_t i = 0; i < w->plan.concurrency; i++) {
        struct job *j = &w->jobs[i];
        if (j->hold != HOLD_HELD ||
            (execution_id && strcmp(j->work->execution_id, execution_id) != 0))
            continue;
        if (j->renew_us == DEADLINE_NONE)
            j->is_doubted = true;
        else
            j->renew_us = 0;
    }
    worker_unlock(w);
    parker_wake(&w->keeper);
}

/* How far the watcher is. */
struct place {
    char cursor[512]; /* empty: not known, take it from now */
    bool was_idle;    /* nothing ran when the last wait began */
};

/* Waits for events and looks at them; false: it was told to end. */
static bool watch_once(struct worker *w, struct place *at, struct belay_arena *a)
{
    const struct belay_event_request request = {
        .size = sizeof(request),
        .after = at->cursor[0] ? at->cursor : "now",
        .types = WATCH_TYPES,
        .limit = 1000,
        .wait_ms = at->cursor[0] ? WATCH_MS : 0,
        .cancel = w->stop,
    };
    struct belay_events events;

    belay_rc rc = belay_execution_events(w->belay, &request, a, &events, NULL);
    if (rc == BELAY_CANCELLED)
        return false;
    if (rc) {
        if (!worker_may_retry(rc)) /* the place itself may be what is wrong */
            at->cursor[0] = '\0';
        worker_rest(w, &w->watcher, worker_now(w) + RETRY_US);
        return true;
    }
    if (!at->cursor[0] || events.trimmed)
        doubt(w, NULL); /* what came before is not known */
    for (size_t i = 0; i < events.n; i++)
        doubt(w, events.items[i].execution_id);
    (void)snprintf(at->cursor, sizeof(at->cursor), "%s",
                   events.cursor ? events.cursor : "");
    return true;
}

/* Whether a job runs. */
static bool is_busy(struct worker *w)
{
    worker_lock(w);
    bool busy = w->n_running > 0;
    worker_unlock(w);
    return busy;
}

void *work_watcher(void *worker)
{
    struct worker *w = worker;
    struct belay_arena arena = { 0 };
    struct place at = { 0 };

    while (!is_over(w)) {
        bool busy = is_busy(w);
        if (!busy && at.was_idle) { /* nothing to watch over, for longer than a wait */
            at = (struct place){ .was_idle = true };
            worker_rest(w, &w->watcher, DEADLINE_NONE);
            at.was_idle = false;
            continue;
        }
        at.was_idle = !busy;
        if (!watch_once(w, &at, &arena))
            break;
        arena_reset(&arena);
    }
    arena_release(&arena);
    return NULL;
}

/* --- timers --- */

void *work_timers(void *worker)
{
    struct worker *w = worker;

    while (!is_over(w)) {
        belay_rc rc = belay_timers_run(w->belay, NULL, w->stop, NULL);
        if (rc == BELAY_CANCELLED)
            break;
        worker_rest(w, &w->timers, worker_now(w) + 4 * RETRY_US);
    }
    return NULL;
}
