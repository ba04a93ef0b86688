#include "store/txn.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/txn_impl.h"

/* The body this thread is in.  Which call comes from a body is a fact about the thread
 * and can be known from nothing else; it is the only state here outside a handle. */
static _Thread_local struct txn *current;

struct txn *txn_thread_swap(struct txn *with)
{
    struct txn *was = current;

    current = with;
    return was;
}

belay_rc store_enter(const struct store *s, struct belay_error *err)
{
    if (current)
        return err_reason(err, BELAY_MISUSE, "in_body",
                          "store: called from a transaction body");
    if (*s->alive != 1)
        return err_reason(err, BELAY_MISUSE, "forked",
                          "store: opened before fork(); open it again in the child");
    return BELAY_OK;
}

/* --- what a body asks of its transaction --- */

belay_rc txn_fail(struct txn *t, belay_rc code, const char *reason, const char *fmt,
                  ...)
{
    char message[sizeof(t->err.message)];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    return err_reason(&t->err, code, reason, "%s", message);
}

struct belay_error *txn_error(struct txn *t)
{
    return &t->err;
}

struct belay_arena *txn_arena(struct txn *t)
{
    return t->arena;
}

uint64_t txn_id(const struct txn *t)
{
    return t->id;
}

belay_rc txn_now(struct txn *t, int64_t *out_ms)
{
    if (!t->has_now) {
        int64_t wall_ms = 0;
        belay_rc rc = driver_now_ms(t->driver, t->attempt, &t->store->options.clock,
                                    &wall_ms, &t->err);
        if (rc)
            return txn_broken(t, rc);
        t->now_ms = space_tell_time(t->space, wall_ms);
        t->has_now = true;
    }
    *out_ms = t->now_ms;
    return BELAY_OK;
}

/* --- the loop --- */

/* Whether the guard that did not hold is that of a row which was thought to be new. */
static bool was_assumed(const struct txn *t, size_t failed)
{
    for (const struct entry *e = t->rows.first; e; e = e->next, failed--) {
        if (failed == 0)
            return ((const struct txn_row *)e)->assumed;
    }
    return false;
}

/* T4: an answer drawn from more than one round trip is checked before it is given. */
static enum verdict confirm(struct txn *t, belay_rc answer)
{
    t->rc = answer;
    if (t->sights) /* only plans with effects guard scans: asked, they need no guard */
        return CONFLICT;
    bool one_snapshot = t->n_reads <= 1 || (t->driver->caps & DRIVER_SNAPSHOT);
    if (t->rows.n == 0 || (one_snapshot && !t->assumed && !t->recalled))
        return DONE;

    struct belay_error kept = t->err; /* the body's words; the check may fail, too */
    struct plan_result result = { .conflict = false };
    struct plan check;
    t->rc = txn_make_plan(t, false, &check, &result);
    if (!t->rc)
        t->rc = driver_commit(t->driver, t->attempt, &check, &result, &t->err);
    /* A check whose reply was lost has changed nothing: ask again. */
    if (result.conflict) {
        t->doubtful |= was_assumed(t, result.failed_guard);
        txn_unlearn(t, &result);
    }
    if (result.conflict || t->rc == BELAY_UNKNOWN_OUTCOME)
        return CONFLICT;
    if (t->rc)
        return DONE;
    t->err = kept;
    t->rc = answer;
    return DONE;
}

static enum verdict commit(struct txn *t)
{
    if (t->driver->caps & DRIVER_LOSES_REPLIES)
        return slot_commit(t);
    t->rc = driver_commit(t->driver, t->attempt, &t->plan, &t->result, &t->err);
    return !t->rc && t->result.conflict ? CONFLICT : DONE;
}

/* Whether it is too late to begin another run, or to commit this one. */
static belay_rc out_of_time(struct txn *t)
{
    const struct belay_clock *clock = &t->store->options.clock;

    if (!t->options)
        return BELAY_OK;
    if (cancel_is_set(t->options->cancel))
        return err_set(&t->err, BELAY_CANCELLED,
                       "transaction: cancelled by the caller");
    if (t->options->deadline_us > 0 &&
        clock->mono_us(clock->arg) >= t->options->deadline_us)
        return err_set(&t->err, BELAY_TIMEOUT, "transaction: its deadline has passed");
    return BELAY_OK;
}

static enum verdict conclude(struct txn *t, belay_rc answer)
{
    t->rc = t->failed; /* T5 */
    if (t->rc)
        return DONE;
    if (answer)
        return confirm(t, answer);
    t->rc = txn_make_plan(t, true, &t->plan, &t->result);
    if (t->rc)
        return DONE;
    if (t->plan.n_effects == 0)
        return confirm(t, BELAY_OK);
    if (!t->founding && !atomic_load(&t->space->ready))
        return NOT_FOUNDED;
    t->rc = out_of_time(t);
    if (t->rc)
        return DONE;
    enum verdict verdict = commit(t);
    t->doubtful |= verdict == CONFLICT && was_assumed(t, t->result.failed_guard);
    if (verdict == CONFLICT && t->result.conflict)
        txn_unlearn(t, &t->result);
    else
        txn_learn(t, verdict == DONE && !t->rc);
    return verdict;
}

/* One run of the body, from begin to end.  Its verdict is in the transaction. */
static void run_once(struct driver_job *job)
{
    struct txn *t = (struct txn *)job;

    arena_rewind(t->arena, t->mark);
    t->id = atomic_fetch_add_explicit(&t->store->next_plan_id, 1, memory_order_relaxed);
    t->run++;
    t->failed = BELAY_OK;
    t->n_reads = 0;
    t->assumed = t->recalled = false;
    t->n_written = 0;
    if (t->drawn)
        rng_init(&t->versions, t->seed);
    t->has_now = false;
    entry_map_init(&t->rows, t->inline_rows, INLINE_ENTRIES);
    entry_map_init(&t->ranks, t->inline_ranks, INLINE_ENTRIES);
    t->ops = NULL;
    t->ops_last = &t->ops;
    t->n_ops = 0;
    t->pages = NULL;
    t->foreseen = NULL;
    t->sights = t->asked = t->seen = NULL;
    t->topics = NULL;
    t->bytes = 0;

    t->verdict = DONE;
    t->attempt = arena_zalloc(t->arena, 1, t->driver->attempt_size);
    t->rc = t->attempt ? driver_begin(t->driver, t->attempt, t->space->name, &t->err)
                       : txn_no_memory(t);
    if (t->rc)
        return;
    current = t;
    belay_rc answer = t->body(t, t->arg);
    current = NULL;
    t->verdict = conclude(t, answer);
    txn_end_sights(t, SIGHT_UNUSED);
    txn_end_asked(t);
    driver_end(t->driver, t->attempt);
}

/* After a conflict: the first re-run is immediate, then pauses grow and are jittered,
 * so that callers who met once do not meet again. */
static void pause_before(struct txn *t)
{
    const struct store_retry *retry = &t->store->options.retry;
    int64_t longest = retry->first_us;

    if (t->run < 2)
        return;
    for (unsigned i = 2; i < t->run && longest < retry->longest_us; i++)
        longest *= 2;
    if (longest > retry->longest_us)
        longest = retry->longest_us;
    const struct belay_clock *clock = &t->store->options.clock;
    clock->sleep_us(clock->arg,
                    (int64_t)rng_below(&t->store->rng, (uint64_t)longest) + 1);
}

/* What a run that did not stand asks for before the next one. */
static belay_rc before_next(struct txn *t)
{
    if (t->verdict == NOT_FOUNDED)
        return space_found(t->space, &t->err);
    if (t->run >= t->store->options.retry.max_attempts)
        return err_set(&t->err, BELAY_CONTENTION,
                       "transaction: others were faster %u times in a row", t->run);
    pause_before(t);
    return BELAY_OK;
}

static belay_rc run(struct txn *t)
{
    belay_rc rc = store_enter(t->store, &t->err);

    while (!rc) {
        rc = out_of_time(t);
        if (rc)
            break;
        if (driver_runs_bodies(t->driver) && !(t->options && t->options->read_only))
            rc = driver_submit(t->driver, &t->job, &t->err);
        else
            run_once(&t->job);
        if (rc == BELAY_UNKNOWN_OUTCOME)
            txn_post_topics(t);
        if (rc)
            break;
        if (t->verdict == DONE) {
            if (!t->rc)
                txn_hand_out(t);
            return t->rc;
        }
        rc = before_next(t);
    }
    return rc;
}

static belay_rc run_in(struct space *sp, bool founding, txn_body *body, void *arg,
                       const struct txn_options *options, struct belay_arena *a,
                       struct belay_error *err)
{
    struct txn t;

    /* Field by field: the rest is set by run_once, and clearing it would cost. */
    t.job.run = run_once;
    t.job.cancel = options ? options->cancel : NULL;
    t.job.deadline_us =
        options && options->deadline_us > 0 ? options->deadline_us : DEADLINE_NONE;
    t.space = sp;
    t.store = sp->store;
    t.driver = sp->store->driver;
    t.arena = a;
    t.mark = arena_mark(a);
    t.options = options;
    t.founding = founding;
    t.drawn = false;
    t.doubtful = false;
    t.body = body;
    t.arg = arg;
    t.run = 0;
    t.topics = NULL;
    t.err.size = sizeof(t.err);
    t.err.code = BELAY_OK;
    belay_rc rc = run(&t);
    if (rc && t.err.code != (int32_t)rc)
        err_set(&t.err, rc, "%s", belay_error_info((int)rc)->text);
    if (rc && err)
        *err = t.err;
    return rc;
}

belay_rc txn_run(struct space *sp, txn_body *body, void *arg,
                 const struct txn_options *options, struct belay_arena *a,
                 struct belay_error *err)
{
    return run_in(sp, false, body, arg, options, a, err);
}

belay_rc txn_run_founding(struct space *sp, txn_body *body, void *arg,
                          const struct txn_options *options, struct belay_arena *a,
                          struct belay_error *err)
{
    return run_in(sp, true, body, arg, options, a, err);
}
