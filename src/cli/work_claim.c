/* The claimer: work for the slots that are free, and for no others. */
#include "cli/worker.h"

#include <stdlib.h>

#define CLAIM_WAIT_MS ((int64_t)60 * 60 * 1000)
/* So often in a row a draining worker finds that it can start nothing before it gives up:
 * after some six seconds. */
#define SHORT_MAX 6

/* How many jobs may be claimed just now. */
static size_t room_of(const struct worker *w)
{
    size_t room = worker_allows(w);
    int64_t left = w->plan.max_jobs - w->admitted;

    if (w->plan.max_jobs > 0 && (int64_t)room > left)
        room = left > 0 ? (size_t)left : 0;
    return room;
}

/* All jobs of --max were claimed, and none of them can be given back any more. */
static bool has_had_all(const struct worker *w)
{
    return w->plan.max_jobs > 0 && w->admitted >= w->plan.max_jobs && w->n_running == 0;
}

/* A worker that shall end must not wait for ever for what it has no part in: none of its
 * own jobs is left to make room. */
static bool is_stuck(const struct worker *w)
{
    return w->plan.drains && w->n_running == 0 && w->shortage.n >= SHORT_MAX;
}

static void give_up_short(struct worker *w)
{
    w->rc = err_reason(&w->err, BELAY_UNAVAILABLE, "resources",
                       "jobs cannot be started: %s", w->shortage.message);
    worker_close(w);
}

/* Waits for a free slot and admits as many jobs as there are; 0: nothing is claimed any
 * more.  *is_alone: nothing runs. */
static size_t wait_for_room(struct worker *w, bool *is_alone)
{
    for (;;) {
        worker_lock(w);
        if (has_had_all(w))
            worker_close(w);
        if (!w->is_closing && is_stuck(w))
            give_up_short(w);
        int64_t until = w->shortage.until_us;
        bool is_pausing = worker_now(w) < until;
        size_t room = w->is_closing ? 0 : room_of(w);
        bool is_closing = w->is_closing;
        *is_alone = w->n_running == 0;
        w->admitted += (int64_t)room;
        worker_unlock(w);
        if (room > 0 || is_closing)
            return room;
        worker_rest(w, &w->claimer, is_pausing ? until : DEADLINE_NONE);
    }
}

/* Claims with a way to end the waiting, which closing uses. */
static belay_rc claim(struct worker *w, size_t room, bool waits, struct haul *h,
                      struct belay_error *err)
{
    struct belay_claim_policy policy = worker_policy(w, room);
    struct belay_cancel *cancel;

    belay_rc rc = belay_cancel_new(&cancel, err);
    if (rc)
        return rc;
    worker_lock(w);
    if (w->is_closing || (waits && w->plan.drains && w->n_running == 0))
        belay_cancel_trigger(cancel); /* what it would wait for happened already */
    w->claiming = cancel;
    worker_unlock(w);

    policy.max_wait_ms = waits ? CLAIM_WAIT_MS : 0;
    policy.cancel = cancel;
    rc = belay_execution_claim(w->belay, &policy, &h->arena, &h->works, err);

    worker_lock(w);
    w->claiming = NULL;
    worker_unlock(w);
    belay_cancel_free(cancel);
    return rc;
}

static struct job *free_slot(struct worker *w)
{
    for (size_t i = 0; i < w->plan.concurrency; i++) {
        if (!w->jobs[i].work)
            return &w->jobs[i];
    }
    return NULL;
}

/* Work that came when a signal had already said to stop. */
static void give_back(struct worker *w, const struct haul *h)
{
    for (size_t i = 0; i < h->works.n; i++) {
        belay_rc rc = belay_execution_release(w->belay, &h->works.work[i].handle, NULL);
        (void)rc; /* the lease ends by itself */
    }
}

/* Puts what was claimed into slots; `room` was admitted. */
static void hand_out(struct worker *w, struct haul *h, size_t room)
{
    worker_lock(w);
    bool is_stopped = w->n_stops > 0;
    size_t taken = is_stopped ? 0 : h->works.n;

    w->admitted -= (int64_t)(room - taken);
    for (size_t i = 0; i < taken; i++) {
        struct job *j = free_slot(w);
        if (!j) /* never: no more was claimed than slots were free */
            abort();
        (void)atomic_fetch_add(&h->refs, 1);
        worker_assign(j, h, &h->works.work[i]);
    }
    worker_unlock(w);
    if (is_stopped)
        give_back(w, h);
}

static void give_up(struct worker *w, belay_rc rc, const struct belay_error *err)
{
    worker_lock(w);
    w->rc = rc;
    w->err = *err;
    worker_close(w);
    worker_unlock(w);
}

/* What a claim that failed is followed by. */
static void after_failure(struct worker *w, belay_rc rc, const struct belay_error *err,
                          int64_t *backoff_us)
{
    if (rc == BELAY_CANCELLED)
        return;
    if (!worker_may_retry(rc)) {
        give_up(w, rc, err);
        return;
    }
    const struct log_field fields[] = {
        log_text("error", bytes_str(belay_error_info((int)rc)->name)),
        log_text("message", bytes_str(err->message)),
    };
    log_event(&w->log, LOG_WARN, "claim_failed", fields, COUNT_OF(fields));
    *backoff_us = worker_backoff(*backoff_us);
    worker_rest(w, &w->claimer, worker_now(w) + *backoff_us);
}

/* One claim. */
static void step(struct worker *w, size_t room, bool is_alone, int64_t *backoff_us)
{
    bool waits = !(w->plan.drains && is_alone);
    struct haul *h = haul_new();
    struct belay_error err;

    belay_rc rc = h ? claim(w, room, waits, h, &err) : err_no_memory(&err, "a claim");
    if (rc == BELAY_OK) {
        *backoff_us = 0;
        hand_out(w, h, room);
        bool is_drained = !waits && h->works.n == 0;
        worker_lock(w);
        if (is_drained)
            worker_close(w);
        worker_unlock(w);
    } else {
        worker_lock(w);
        w->admitted -= (int64_t)room;
        worker_unlock(w);
        after_failure(w, rc, &err, backoff_us);
    }
    haul_release(h);
}

void *work_claimer(void *worker)
{
    struct worker *w = worker;
    int64_t backoff_us = 0;
    bool is_alone;

    for (size_t room; (room = wait_for_room(w, &is_alone)) > 0;)
        step(w, room, is_alone, &backoff_us);
    worker_lock(w);
    w->is_claimed = true;
    worker_post(w->wake);
    worker_unlock(w);
    return NULL;
}
