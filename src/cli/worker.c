#include "cli/worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define BACKOFF_MIN_US ((int64_t)100 * 1000)
#define BACKOFF_MAX_US ((int64_t)5 * 1000 * 1000)

struct haul *haul_new(void)
{
    struct haul *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    arena_init(&h->arena);
    atomic_init(&h->refs, 1);
    return h;
}

void haul_release(struct haul *h)
{
    if (!h || atomic_fetch_sub(&h->refs, 1) > 1)
        return;
    arena_release(&h->arena);
    free(h);
}

int64_t worker_now(const struct worker *w)
{
    return w->clock.mono_us(w->clock.arg);
}

void worker_lock(struct worker *w)
{
    (void)pthread_mutex_lock(&w->mutex);
}

void worker_unlock(struct worker *w)
{
    (void)pthread_mutex_unlock(&w->mutex);
}

void worker_rest(const struct worker *w, struct parker *p, int64_t until_us)
{
    bool woken = parker_wait(p, &w->clock, until_us);

    (void)woken; /* who rests looks at the state afterwards */
}

void worker_post(int fd)
{
    uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof(one));

    (void)n; /* it can only be full, and then it is set already */
}

void worker_heard(int fd)
{
    uint64_t all;
    ssize_t n = read(fd, &all, sizeof(all));

    (void)n;
}

bool worker_may_retry(belay_rc rc)
{
    return belay_error_info((int)rc)->retryable;
}

int64_t worker_backoff(int64_t pause_us)
{
    int64_t next = pause_us ? pause_us * 2 : BACKOFF_MIN_US;

    return next < BACKOFF_MAX_US ? next : BACKOFF_MAX_US;
}

struct belay_claim_policy worker_policy(const struct worker *w, size_t max)
{
    return (struct belay_claim_policy){
        .size = sizeof(struct belay_claim_policy),
        .lanes = w->plan.lanes,
        .n_lanes = w->plan.n_lanes,
        .worker = w->plan.worker,
        .capabilities = w->plan.capabilities,
        .n_capabilities = w->plan.n_capabilities,
        .max = max,
        .lease_ms = w->plan.lease_ms,
    };
}

/* From here the lease is ours for lease_ms, less what the answer took to come: the first
 * renewal is long before that matters. */
static void begin(struct job *j, struct haul *h, const struct belay_work *work)
{
    int64_t now = worker_now(j->worker);
    int64_t lease_us = j->worker->plan.lease_ms * 1000;

    j->haul = h;
    j->work = work;
    j->hold = HOLD_HELD;
    j->is_stopped = false;
    j->group = 0;
    j->due_us = now + lease_us;
    j->overdue_us = 0;
    j->renew_us = now + lease_us / 3;
    j->is_doubted = false;
    j->kill_us = DEADLINE_NONE;
    j->is_killed = false;
    parker_wake(&j->worker->keeper);
    parker_wake(&j->worker->watcher);
    worker_post(j->worker->wake);
}

void worker_assign(struct job *j, struct haul *h, const struct belay_work *work)
{
    j->worker->n_running++;
    begin(j, h, work);
    worker_post(j->wake);
}

/* How many processes of jobs there are. */
static size_t count_processes(const struct worker *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->plan.concurrency; i++)
        n += w->jobs[i].group != 0;
    return n;
}

void worker_fall_short(struct job *j, const char *message)
{
    struct shortage *s = &j->worker->shortage;
    int64_t now = worker_now(j->worker);

    (void)snprintf(s->message, sizeof(s->message), "%s", message);
    s->is_on = true;
    s->most = count_processes(j->worker);
    if (j->worker->claiming) /* it would be given the same work at once */
        belay_cancel_trigger(j->worker->claiming);
    if (now < s->until_us) /* claimed together with one that failed before */
        return;
    s->n++;
    s->pause_us = worker_backoff(s->pause_us);
    s->until_us = now + s->pause_us;
}

void worker_began(struct worker *w)
{
    struct shortage *s = &w->shortage;
    size_t n = count_processes(w);

    s->n = 0;
    if (!s->is_on || n <= s->most)
        return;
    s->most = n;
    s->is_on = n < w->plan.concurrency;
    s->pause_us = s->is_on ? worker_backoff(0) : 0;
    s->until_us = s->is_on ? worker_now(w) + s->pause_us : 0;
    parker_wake(&w->claimer);
}

size_t worker_allows(const struct worker *w)
{
    const struct shortage *s = &w->shortage;
    size_t most = w->plan.concurrency;

    if (s->is_on)
        most = s->most + (worker_now(w) >= s->until_us);
    if (most > w->plan.concurrency)
        most = w->plan.concurrency;
    return most > w->n_running ? most - w->n_running : 0;
}

void worker_next(struct job *j, enum tally how, struct haul *h)
{
    struct worker *w = j->worker;

    if (how == TALLY_COUNT)
        w->admitted--;
    else
        w->tallies[how]++;
    haul_release(j->haul);
    if (h) {
        begin(j, h, h->works.work);
        return;
    }
    j->haul = NULL;
    j->work = NULL;
    j->hold = HOLD_NONE;
    w->n_running--;
    if (w->claiming && w->plan.drains) /* whose claim waits only for running jobs */
        belay_cancel_trigger(w->claiming);
    parker_wake(&w->claimer);
    worker_post(w->wake);
}

/* Twice would be once too often: some take a second TERM for haste. */
void worker_signal(const struct job *j, int number)
{
    if (j->group == 0)
        return;
    (void)kill(-j->group, number);
    if (getpgid(j->group) != j->group)
        (void)kill(j->group, number);
}

bool worker_has_ended(const struct job *j)
{
    siginfo_t info = { 0 };

    return j->group != 0 &&
           waitid(P_PID, (id_t)j->group, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == j->group;
}

void worker_terminate(struct job *j)
{
    if (j->group == 0 || j->kill_us != DEADLINE_NONE)
        return;
    worker_signal(j, SIGTERM);
    worker_signal(j, SIGCONT); /* a stopped one takes it only when it goes on */
    j->kill_us = worker_now(j->worker) + j->worker->plan.grace_ms * 1000;
    worker_post(j->worker->wake);
}

void worker_lose(struct job *j, const char *why)
{
    if (j->hold != HOLD_HELD && j->hold != HOLD_ENDING)
        return;
    j->hold = HOLD_LOST;
    (void)snprintf(j->lost_by, sizeof(j->lost_by), "%s", why);
    worker_terminate(j);
    worker_post(j->wake);
}

bool worker_admit(struct worker *w)
{
    bool has_room =
        !w->is_closing && (w->plan.max_jobs == 0 || w->admitted < w->plan.max_jobs);

    w->admitted += has_room;
    return has_room;
}

void worker_unadmit(struct worker *w)
{
    w->admitted--;
    parker_wake(&w->claimer);
}

void worker_close(struct worker *w)
{
    w->is_closing = true;
    if (w->claiming)
        belay_cancel_trigger(w->claiming);
    parker_wake(&w->claimer);
    worker_post(w->wake);
}
