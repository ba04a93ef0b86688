/* Many workers on one store: threads that lose their work at random, and processes that
 * are killed and stopped at random.  In the end every execution has ended once. */
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec.h"

/* --- chance --- */

struct dice {
    uint64_t state;
};

static unsigned roll(struct dice *d, unsigned sides)
{
    d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(d->state >> 33) % sides;
}

/* --- what must be true in the end --- */

struct tally {
    int completions, acquired, reclaimed;
};

static size_t index_of(const char *const *ids, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(ids[i], id) == 0)
            return i;
    }
    return n;
}

/* Everything that was told, counted for each. */
static void count_events(struct world *w, const char *const *ids, size_t n,
                         struct tally *tallies)
{
    struct belay_event_request r = { .size = sizeof(r), .limit = 1000 };
    struct belay_events page;

    do {
        page = (struct belay_events){ 0 };
        if (!RC(w, belay_execution_events(w->use, &r, w->arena, &page, &w->err),
                BELAY_OK))
            return;
        for (size_t i = 0; i < page.n; i++) {
            const struct belay_event *e = &page.items[i];
            size_t at = index_of(ids, n, e->execution_id);
            if (!OK(w, at < n))
                continue;
            tallies[at].completions += e->type == BELAY_EVENT_COMPLETION;
            tallies[at].acquired += e->type == BELAY_EVENT_ACQUIRED;
            tallies[at].reclaimed += e->type == BELAY_EVENT_RECLAIMED;
        }
        r.after = page.cursor;
    } while (page.n > 0);
}

/* Ended once, and its numbers add up; and leases were lost on the way. */
static void judge(struct world *w, const char *const *ids, size_t n)
{
    int64_t reclaims = 0;
    struct tally *tallies = calloc(n, sizeof(*tallies));

    if (!tallies)
        abort();
    count_events(w, ids, n, tallies);
    for (size_t i = 0; i < n; i++) {
        const struct tally *t = &tallies[i];
        struct belay_execution e = look(w, ids[i]);
        unsigned failed = w->t->failed;
        EQ(w, e.state, BELAY_STATE_COMPLETED);
        EQ(w, t->completions, 1);
        EQ(w, e.fence, t->acquired + t->reclaimed); /* W6: one for every grant */
        EQ(w, e.reclaims, t->reclaimed);
        OK(w, e.attempts >= 1 + e.retries + e.reclaims);
        OK(w, e.attempts <= e.fence);
        EQ(w, e.attempt, e.attempts - 1);
        reclaims += e.reclaims;
        if (w->t->failed > failed)
            printf("# of %s: %s\n", ids[i], events_of(w, ids[i]));
    }
    OK(w, reclaims > 0);
    free(tallies);
}

/* --- threads --- */

#define HANDS 8
#define JOBS 200

struct shift {
    const char *ids[JOBS];
    atomic_int left;
    atomic_int done[JOBS];
};

static void lose_it(struct world *w, const struct belay_work *held)
{
    bool revoked = false;

    RC(w,
       belay_execution_revoke(w->use, held->execution_id, NULL, "r", &revoked, &w->err),
       BELAY_OK);
    OK(w, revoked);
    RC(w, complete(w, &held->handle, NULL, NULL), BELAY_LEASE_LOST);
}

static void do_one(struct world *w, struct shift *s, const struct belay_work *held,
                   unsigned chance)
{
    struct belay_ended end = { 0 };

    if (chance == 0) {
        lose_it(w, held);
    } else if (chance == 1) {
        RC(w, fail(w, &held->handle, BELAY_FAILURE_TRANSIENT, &end), BELAY_OK);
        EQ(w, end.outcome, BELAY_RETRY_SCHEDULED);
    } else if (chance == 2) {
        RC(w, belay_execution_release(w->use, &held->handle, &w->err), BELAY_OK);
    } else if (RC(w, complete(w, &held->handle, NULL, &end), BELAY_OK)) {
        size_t at = index_of(s->ids, JOBS, held->execution_id);
        OK(w, !end.replayed);
        if (OK(w, at < JOBS))
            atomic_fetch_add(&s->done[at], 1);
        atomic_fetch_sub(&s->left, 1);
    }
}

static void work_a_shift(struct world *w, unsigned i, void *arg)
{
    struct shift *s = arg;
    struct dice d = { .state = 77 + i };
    int64_t began = machine_ms();

    while (atomic_load(&s->left) > 0 && OK(w, machine_ms() - began < 30000)) {
        struct belay_works got =
            claim(w, (struct belay_claim_policy){ .max = 1 + roll(&d, 4),
                                                  .max_wait_ms = 20 });
        for (size_t k = 0; k < got.n; k++)
            do_one(w, s, &got.work[k], roll(&d, 10));
    }
}

static void eight_threads(struct world *w)
{
    struct belay_retry_policy policy = retry_fixed(1000, 1);
    struct belay_submission items[JOBS];
    struct belay_submitted out[JOBS];
    struct shift s = { .left = JOBS };

    for (size_t i = 0; i < JOBS; i++)
        items[i] = (struct belay_submission){ .size = sizeof(items[i]),
                                              .lane = "l",
                                              .retry = &policy };
    if (!RC(w, belay_execution_submit(w->use, items, JOBS, w->arena, out, &w->err),
            BELAY_OK))
        return;
    for (size_t i = 0; i < JOBS; i++)
        s.ids[i] = out[i].execution_id;
    world_crowd(w, HANDS, work_a_shift, &s);
    for (size_t i = 0; i < JOBS; i++)
        EQ(w, atomic_load(&s.done[i]), 1);
    judge(w, s.ids, JOBS);
}

/* L7: a holder completes while somebody takes its work. */
struct duel {
    const struct belay_work *held;
    belay_rc rc;
    bool revoked;
};

static void complete_or_revoke(struct world *w, unsigned i, void *arg)
{
    struct duel *d = arg;

    if (i == 0)
        d->rc = complete(w, &d->held->handle, NULL, NULL);
    else
        RC(w,
           belay_execution_revoke(w->use, d->held->execution_id, NULL, "r", &d->revoked,
                                  &w->err),
           BELAY_OK);
}

static void completion_against_revoke(struct world *w)
{
    for (int i = 0; i < 20; i++) {
        const char *lane = text(w, "%d", i);
        const char *id = submit(w, (struct belay_submission){ .lane = lane });
        struct duel d = { .held = work_on(w, lane) };
        if (!OK(w, d.held != NULL))
            return;
        world_crowd(w, 2, complete_or_revoke, &d);
        EQ(w, d.rc, d.revoked ? BELAY_LEASE_LOST : BELAY_OK);
        EQ(w, state_of(w, id), d.revoked ? BELAY_STATE_ACTIVE : BELAY_STATE_COMPLETED);
        EQ(w, completions_of(w, id), d.revoked ? 0 : 1);
    }
}

/* --- processes --- */

#define WORKERS 8
#define TASKS 200
#define TASK_MS 20
#define LEASE_MS 150
#define BLOWS 16

static bool may_go_on(belay_rc rc)
{
    return rc == BELAY_OK || rc == BELAY_LEASE_LOST ||
           belay_error_info((int)rc)->retryable;
}

/* Whether anything is left to do. */
static bool all_ended(struct world *w)
{
    struct belay_execution_stats s = { .size = sizeof(s) };

    return belay_execution_count(w->use, &s, &w->err) == BELAY_OK &&
           s.count[BELAY_STATE_COMPLETED] == TASKS;
}

static bool do_tasks(struct world *w, const struct belay_works *got)
{
    for (size_t i = 0; i < got->n; i++) {
        const struct belay_handle *h = &got->work[i].handle;
        belay_rc rc = frame(w, h, "begun");
        if (!OK(w, may_go_on(rc)))
            return false;
        world_pass(w, TASK_MS);
        rc = complete(w, h, text(w, "%lld", (long long)getpid()), NULL);
        if (!OK(w, may_go_on(rc))) {
            printf("# %s: %s\n", belay_error_info((int)rc)->name, w->err.message);
            return false;
        }
    }
    return true;
}

int worker_main(int argc, char **argv)
{
    struct tap t = { .name = "worker" };
    struct world w;

    if (argc != 1 || !world_join(&w, &t, argv[0]))
        return 2;
    while (t.failed == 0 && !all_ended(&w)) {
        struct belay_works got = { 0 };
        belay_rc rc =
            claim_try(&w,
                      (struct belay_claim_policy){
                          .max = 3, .lease_ms = LEASE_MS, .max_wait_ms = 100 },
                      &got);
        if (!OK(&w, may_go_on(rc)) || !do_tasks(&w, &got))
            printf("# %s\n", w.err.message);
    }
    world_part(&w);
    return t.failed > 0;
}

static bool hire(struct world *w, pid_t *out)
{
    char self[] = "/proc/self/exe", flag[] = "--worker";
    char *argv[] = { self, flag, w->url, NULL };

    return OK(w, posix_spawn(out, self, NULL, NULL, argv, environ) == 0);
}

static void dismiss(struct world *w, pid_t pid, bool killed)
{
    int status = 0;

    if (pid <= 0)
        return;
    (void)waitpid(pid, &status, 0);
    if (!killed)
        OK(w, WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Kills one and hires another, or stops one until its lease is somebody else's. */
static void strike(struct world *w, pid_t *pids, bool *stopped, struct dice *d)
{
    unsigned at = roll(d, WORKERS);

    if (pids[at] <= 0) /* it could not be hired */
        return;
    if (stopped[at]) {
        (void)kill(pids[at], SIGCONT);
        stopped[at] = false;
    } else if (roll(d, 2) == 0) {
        stopped[at] = kill(pids[at], SIGSTOP) == 0;
    } else {
        (void)kill(pids[at], SIGKILL);
        dismiss(w, pids[at], true);
        pids[at] = 0;
        (void)hire(w, &pids[at]);
    }
}

/* When they have something to lose, all of them are killed, and others come. */
static void strike_all(struct world *w, pid_t *pids)
{
    struct belay_execution_stats s = { .size = sizeof(s) };
    int64_t began = machine_ms();

    while (s.count[BELAY_STATE_ACTIVE] == 0 && OK(w, machine_ms() - began < 20000)) {
        world_pass(w, 5);
        (void)RC(w, belay_execution_count(w->use, &s, &w->err), BELAY_OK);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        if (pids[i] > 0)
            (void)kill(pids[i], SIGKILL);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        dismiss(w, pids[i], true);
        pids[i] = 0;
        (void)hire(w, &pids[i]);
    }
}

static void killed_and_stopped(struct world *w)
{
    struct dice d = { .state = (uint64_t)getpid() };
    const char *ids[TASKS];
    bool stopped[WORKERS] = { 0 };
    pid_t pids[WORKERS] = { 0 };

    if (!quick(w) || !submit_many(w, "l", TASKS, ids))
        return;
    for (size_t i = 0; i < WORKERS; i++)
        (void)hire(w, &pids[i]);
    strike_all(w, pids);
    for (int i = 0; i < BLOWS; i++) {
        world_pass(w, 20 + roll(&d, 60));
        strike(w, pids, stopped, &d);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        if (stopped[i])
            (void)kill(pids[i], SIGCONT);
    }
    for (size_t i = 0; i < WORKERS; i++)
        dismiss(w, pids[i], false);
    judge(w, ids, TASKS);
}

static const struct noun_case cases[] = {
    { "threads: eight workers who lose their work at random end everything once",
      eight_threads, CASE_REAL_TIME },
    { "threads: L7: a completion against a revoke", completion_against_revoke,
      CASE_REAL_TIME },
    { "eight processes that are killed and stopped end everything once",
      killed_and_stopped, CASE_SHARED | CASE_REAL_TIME },
};

const struct topic topic_exec_workers = { cases, COUNT_OF(cases) };
