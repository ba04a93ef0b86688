/* How a job ends, and writing that. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/json.h"
#include "cli/job.h"

#define EXIT_PERMANENT 100

/* --- what it means --- */

struct ending job_failure(int32_t failure_class, const char *message)
{
    struct ending e = { .how = ENDING_FAIL, .failure_class = failure_class };

    (void)snprintf(e.message, sizeof(e.message), "%s", message);
    return e;
}

struct ending job_not_started(const char *message)
{
    struct ending e = { .how = ENDING_RELEASE, .is_short = true };

    (void)snprintf(e.message, sizeof(e.message), "%s", message);
    return e;
}

/* A command that cannot be run now cannot be run later, unless something was short, or
 * somebody was just writing the file. */
static struct ending judge_start(int why)
{
    bool is_short = why == ENOMEM || why == EAGAIN || why == ENFILE || why == EMFILE;
    bool may_pass = why == ETXTBSY || why == EIO;
    struct ending e = is_short ? job_not_started("")
                               : job_failure(may_pass ? BELAY_FAILURE_INFRA_CRASH
                                                      : BELAY_FAILURE_PERMANENT,
                                             "");

    (void)snprintf(e.message, sizeof(e.message), "the command cannot be run: %s",
                   strerrordesc_np(why));
    return e;
}

static struct ending judge_exit(int status)
{
    if (status == 0)
        return (struct ending){ .how = ENDING_COMPLETE };
    struct ending e = job_failure(status == EXIT_PERMANENT ? BELAY_FAILURE_PERMANENT
                                                           : BELAY_FAILURE_TRANSIENT,
                                  "");
    (void)snprintf(e.message, sizeof(e.message), "exit status %d", status);
    return e;
}

struct ending job_judge(struct run *r, int code, int status, bool is_stopped)
{
    struct ending e;

    if (r->not_run)
        return judge_start(r->not_run);
    if (is_stopped)
        return (struct ending){ .how = ENDING_RELEASE };
    if (code == CLD_EXITED) {
        e = judge_exit(status);
    } else {
        e = job_failure(BELAY_FAILURE_INFRA_CRASH, "");
        (void)snprintf(e.message, sizeof(e.message), "killed by signal %d (%s)", status,
                       sigdescr_np(status) ? sigdescr_np(status) : "unknown");
    }
    e.detail = output_last_lines(&r->output);
    return e;
}

/* --- writing it --- */

/* What a completion carries. */
struct result {
    struct bytes bytes;
    bool is_json;
};

static struct result result_of(struct run *r)
{
    struct result out = { .bytes = bytes_str("{\"exit\":0}"), .is_json = true };
    json_t *value = NULL;

    if (!r->worker->plan.keeps_stdout)
        return out;
    out.bytes = buf_view(&r->output.result);
    out.is_json = json_read(out.bytes, OUTPUT_RESULT, &value, NULL) == BELAY_OK;
    json_decref(value);
    if (!out.bytes.ptr)
        out.bytes = bytes_str("");
    return out;
}

/* Completes, and claims the next job with it where *next is not NULL and has none yet.
 * Without one it is let go. */
static belay_rc complete(struct run *r, struct haul **next, struct belay_error *err)
{
    struct belay_claim_policy policy = worker_policy(r->worker, 1);
    struct result result = result_of(r);
    const struct belay_completion item = {
        .size = sizeof(item),
        .handle = &r->work->handle,
        .result = result.bytes.ptr,
        .result_len = result.bytes.len,
        .result_is_json = result.is_json,
    };
    struct belay_ended ended = { .code = BELAY_OK };
    struct haul *h = *next && (*next)->works.n == 0 ? *next : NULL;

    belay_rc rc = belay_execution_complete(
        r->worker->belay, &item, 1, h ? &policy : NULL, h ? &h->arena : &r->arena,
        &ended, h ? &h->works : NULL, err);
    if (h && (rc != BELAY_OK || h->works.n == 0)) {
        haul_release(h);
        *next = NULL;
    }
    if (rc == BELAY_OK && ended.code != BELAY_OK) {
        *err = ended.err;
        rc = ended.code;
    }
    return rc;
}

static belay_rc fail(struct run *r, const struct ending *e, struct belay_error *err)
{
    const struct belay_failure item = {
        .size = sizeof(item),
        .failure_class = e->failure_class,
        .handle = &r->work->handle,
        .message = e->message,
        .detail = e->detail.len > 0 ? e->detail.ptr : NULL,
        .detail_len = e->detail.len,
    };
    struct belay_ended ended = { .code = BELAY_OK };

    belay_rc rc =
        belay_execution_fail(r->worker->belay, &item, 1, &r->arena, &ended, err);
    if (rc == BELAY_OK && ended.code != BELAY_OK) {
        *err = ended.err;
        rc = ended.code;
    }
    return rc;
}

static belay_rc write_once(struct run *r, const struct ending *e, struct haul **next,
                           struct belay_error *err)
{
    switch (e->how) {
    case ENDING_COMPLETE:
        return complete(r, next, err);
    case ENDING_FAIL:
        return fail(r, e, err);
    case ENDING_RELEASE:
        break;
    }
    return belay_execution_release(r->worker->belay, &r->work->handle, err);
}

static enum tally tally_of(const struct ending *e)
{
    static const enum tally tallies[] = {
        [ENDING_COMPLETE] = TALLY_COMPLETED,
        [ENDING_FAIL] = TALLY_FAILED,
        [ENDING_RELEASE] = TALLY_RELEASED,
    };

    return tallies[e->how];
}

/* Writes the end, again and again while the store is away and the lease is ours. */
static enum tally write_end(struct run *r, struct ending *e, struct haul **next)
{
    int64_t backoff_us = 0;
    struct belay_error err;

    for (;;) {
        belay_rc rc = write_once(r, e, next, &err);
        if (rc == BELAY_OK)
            return tally_of(e);
        if (job_is_lost_by(rc)) {
            job_lose(r, &err);
            return TALLY_LOST;
        }
        if (worker_may_retry(rc)) {
            if (!job_pause(r, &backoff_us))
                return TALLY_LOST;
        } else if (e->how == ENDING_COMPLETE) { /* a result that cannot be stored */
            *e = job_failure(BELAY_FAILURE_PERMANENT, "");
            (void)snprintf(e->message, sizeof(e->message), "its result: %s",
                           err.message);
        } else {
            job_lose(r, &err);
            return TALLY_LOST;
        }
    }
}

/* Makes room for the next job, to be claimed with the end of this one. */
static struct haul *expect_next(struct run *r)
{
    struct haul *h = haul_new();

    worker_lock(r->worker);
    bool is_admitted = h && worker_admit(r->worker);
    worker_unlock(r->worker);
    if (is_admitted)
        return h;
    haul_release(h);
    return NULL;
}

/* From now on the call that ends the attempt says whether it was lost. */
static bool enter_ending(struct run *r)
{
    worker_lock(r->worker);
    bool is_held = r->job->hold == HOLD_HELD;
    if (is_held)
        r->job->hold = HOLD_ENDING;
    worker_unlock(r->worker);
    return is_held;
}

static void log_end(struct run *r, const struct ending *e, enum tally how)
{
    static const char *const names[TALLY_COUNT] = { "completed", "failed", "released",
                                                    "lost" };
    const struct log_field fields[] = {
        log_text("execution", bytes_str(r->work->execution_id)),
        log_number("attempt", r->work->attempt),
        log_text("end", bytes_str(r->by_verb != TALLY_COUNT ? r->said : names[how])),
        log_text("message", bytes_str(e->message)),
    };
    bool is_wrong = how == TALLY_LOST || e->is_short;

    log_event(&r->worker->log, is_wrong ? LOG_WARN : LOG_INFO,
              e->is_short ? "job_not_started" : "job_ended", fields,
              e->message[0] ? COUNT_OF(fields) : COUNT_OF(fields) - 1);
}

/* What could not be stored makes a success none. */
static struct ending with_output(struct run *r, const struct ending *e)
{
    struct ending out = *e;

    job_store_output(r);
    if (r->is_unstored && e->how == ENDING_COMPLETE) {
        out = job_failure(BELAY_FAILURE_INFRA_CRASH, "");
        (void)snprintf(out.message, sizeof(out.message),
                       "its output could not be stored: %s", r->err.message);
    } else if (r->output.result.failed && e->how == ENDING_COMPLETE) {
        out = job_failure(BELAY_FAILURE_INFRA_CRASH, "no memory for its result");
    }
    return out;
}

/* What the end means for the slot and the worker. */
static void let_go(struct run *r, bool is_short, enum tally how, struct haul *next,
                   bool was_admitted)
{
    worker_lock(r->worker);
    if (was_admitted && !next)
        worker_unadmit(r->worker);
    if (!is_short)
        r->worker->shortage.n = 0; /* it has let go of what it had */
    worker_next(r->job, is_short && how == TALLY_RELEASED ? TALLY_COUNT : how, next);
    worker_unlock(r->worker);
}

void job_conclude(struct run *r, const struct ending *e)
{
    struct ending end = with_output(r, e);
    enum tally how = TALLY_LOST;
    struct haul *next = NULL;
    bool was_admitted = false;

    if (end.is_short) { /* before it is there to be claimed again */
        worker_lock(r->worker);
        worker_fall_short(r->job, end.message);
        worker_unlock(r->worker);
    }
    if (r->by_verb != TALLY_COUNT) {
        how = r->by_verb;
    } else if (enter_ending(r)) {
        next = end.how == ENDING_COMPLETE ? expect_next(r) : NULL;
        was_admitted = next != NULL;
        how = write_end(r, &end, &next);
    }
    job_tell_loss(r);
    log_end(r, &end, how);
    let_go(r, end.is_short, how, next, was_admitted);
}
