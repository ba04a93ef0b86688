#include "store/trace.h"

#include <stdatomic.h>
#include <stdlib.h>

struct trace {
    struct driver d;
    struct driver_ops ops; /* trace_ops, fitted to the inner driver */
    struct driver *inner;
    trace_line *line;
    void *arg;
    _Atomic uint64_t attempts, reads, questions, commits, conflicts, failures;
    atomic_uint budget;
};

/* Stands in front of the inner driver's part of an attempt.  The namespace is copied:
 * begin borrows it, and the lines of later calls name it. */
struct trace_attempt {
    unsigned round_trips;
    uint8_t ns_len;
    uint8_t ns[64];
};

#define OWN_SIZE ((sizeof(struct trace_attempt) + 15) & ~(size_t)15)

static void *inner_attempt(void *attempt)
{
    return (uint8_t *)attempt + OWN_SIZE;
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void line_open(struct buf *b, const char *op, struct bytes ns)
{
    buf_append_str(b, op);
    buf_append_str(b, " ns=");
    buf_append_escaped(b, ns);
}

static struct bytes attempt_ns(const struct trace_attempt *own)
{
    return bytes_of(own->ns, own->ns_len);
}

static void line_say(const struct trace *t, struct buf *b)
{
    buf_append_char(b, '\0');
    t->line(t->arg, b->failed ? "trace: no memory for a line" : (const char *)b->ptr);
}

static void line_say_rc(const struct trace *t, struct buf *b, belay_rc rc)
{
    buf_printf(b, " rc=%s", belay_error_info((int)rc)->name);
    line_say(t, b);
}

/* The round trip is counted even when it is refused, so that a body which goes on after
 * the refusal is refused again. */
static belay_rc spend(struct trace *t, struct trace_attempt *own, const char *op,
                      struct belay_error *err)
{
    unsigned budget = atomic_load_explicit(&t->budget, memory_order_relaxed);

    own->round_trips++;
    if (budget == 0 || own->round_trips <= budget)
        return BELAY_OK;
    err_reason(err, BELAY_MISUSE, "round_trips",
               "%s: round trip %u of an attempt with a budget of %u", op,
               own->round_trips, budget);
    err_numbers(err, budget, own->round_trips);
    return BELAY_MISUSE;
}

static belay_rc trace_begin(struct driver *d, void *attempt, struct bytes ns,
                            struct belay_error *err)
{
    struct trace *t = (struct trace *)d;
    struct trace_attempt *own = attempt;

    *own = (struct trace_attempt){ 0 };
    own->ns_len = (uint8_t)(ns.len < sizeof(own->ns) ? ns.len : sizeof(own->ns));
    if (own->ns_len > 0)
        memcpy(own->ns, ns.ptr, own->ns_len);
    count(&t->attempts, 1);

    belay_rc rc = driver_begin(t->inner, inner_attempt(attempt), ns, err);
    count(&t->failures, rc != BELAY_OK);
    if (t->line) {
        CLEANUP(buf_release) struct buf b = { 0 };
        line_open(&b, "begin", attempt_ns(own));
        line_say_rc(t, &b, rc);
    }
    return rc;
}

static belay_rc trace_read(struct driver *d, void *attempt, struct read *reads,
                           size_t n, struct belay_arena *a, struct belay_error *err)
{
    struct trace *t = (struct trace *)d;
    struct trace_attempt *own = attempt;

    count(&t->reads, 1);
    count(&t->questions, n);
    belay_rc rc = spend(t, own, "read", err);
    if (rc == BELAY_OK)
        rc = driver_read(t->inner, inner_attempt(attempt), reads, n, a, err);
    count(&t->failures, rc != BELAY_OK);
    if (t->line) {
        CLEANUP(buf_release) struct buf b = { 0 };
        line_open(&b, "read", attempt_ns(own));
        buf_printf(&b, " questions=%zu", n);
        line_say_rc(t, &b, rc);
    }
    return rc;
}

static belay_rc trace_commit(struct driver *d, void *attempt, const struct plan *plan,
                             struct plan_result *result, struct belay_error *err)
{
    struct trace *t = (struct trace *)d;
    struct trace_attempt *own = attempt;

    count(&t->commits, 1);
    belay_rc rc = spend(t, own, "commit", err);
    if (rc == BELAY_OK)
        rc = driver_commit(t->inner, inner_attempt(attempt), plan, result, err);
    bool conflict = rc == BELAY_OK && result->conflict;
    count(&t->failures, rc != BELAY_OK);
    count(&t->conflicts, conflict);
    if (t->line) {
        CLEANUP(buf_release) struct buf b = { 0 };
        line_open(&b, "commit", attempt_ns(own));
        buf_printf(&b, " plan=%llu guards=%zu effects=%zu",
                   (unsigned long long)plan->id, plan->n_guards, plan->n_effects);
        if (conflict)
            buf_printf(&b, " conflict=%zu", result->failed_guard);
        line_say_rc(t, &b, rc);
    }
    return rc;
}

static void trace_end(struct driver *d, void *attempt)
{
    struct trace *t = (struct trace *)d;
    struct trace_attempt *own = attempt;

    driver_end(t->inner, inner_attempt(attempt));
    if (t->line) {
        CLEANUP(buf_release) struct buf b = { 0 };
        line_open(&b, "end", attempt_ns(own));
        buf_printf(&b, " round_trips=%u", own->round_trips);
        line_say(t, &b);
    }
}

/* The job calls back through this driver, so its calls are watched like any others. */
static belay_rc trace_submit(struct driver *d, struct driver_job *job,
                             struct belay_error *err)
{
    struct trace *t = (struct trace *)d;

    return driver_submit(t->inner, job, err);
}

static void trace_notify(struct driver *d, struct bytes ns, struct bytes topic)
{
    struct trace *t = (struct trace *)d;

    t->inner->ops->notify(t->inner, ns, topic);
}

static uint64_t trace_era(struct driver *d, void *attempt)
{
    struct trace *t = (struct trace *)d;

    return driver_era(t->inner, inner_attempt(attempt));
}

static belay_rc trace_lineage(struct driver *d, void *attempt, struct bytes known,
                              struct lineage *out, struct belay_error *err)
{
    struct trace *t = (struct trace *)d;

    return driver_lineage(t->inner, inner_attempt(attempt), known, out, err);
}

static belay_rc trace_now_ms(struct driver *d, void *attempt, int64_t *out,
                             struct belay_error *err)
{
    /* Never asked: this function stands in the table only when the inner driver has a
     * time of its own. */
    static const struct belay_clock unused;
    struct trace *t = (struct trace *)d;
    struct trace_attempt *own = attempt;

    belay_rc rc = driver_now_ms(t->inner, inner_attempt(attempt), &unused, out, err);
    count(&t->failures, rc != BELAY_OK);
    if (t->line) {
        CLEANUP(buf_release) struct buf b = { 0 };
        line_open(&b, "now", attempt_ns(own));
        line_say_rc(t, &b, rc);
    }
    return rc;
}

static belay_rc trace_walk(struct driver *d, struct bytes ns, item_visit *visit,
                           void *arg, struct belay_error *err)
{
    struct trace *t = (struct trace *)d;

    belay_rc rc = driver_walk(t->inner, ns, visit, arg, err);
    count(&t->failures, rc != BELAY_OK);
    if (t->line) {
        CLEANUP(buf_release) struct buf b = { 0 };
        line_open(&b, "walk", ns);
        line_say_rc(t, &b, rc);
    }
    return rc;
}

static void trace_care(struct trace *t, const char *op, struct bytes ns, belay_rc rc)
{
    count(&t->failures, rc != BELAY_OK);
    if (t->line) {
        CLEANUP(buf_release) struct buf b = { 0 };
        line_open(&b, op, ns);
        line_say_rc(t, &b, rc);
    }
}

static belay_rc trace_erase(struct driver *d, struct bytes ns, size_t limit, bool *more,
                            struct belay_error *err)
{
    struct trace *t = (struct trace *)d;
    belay_rc rc = driver_erase(t->inner, ns, limit, more, err);

    trace_care(t, "erase", ns, rc);
    return rc;
}

static belay_rc trace_check(struct driver *d, finding_report *report, void *arg,
                            struct belay_error *err)
{
    struct trace *t = (struct trace *)d;
    belay_rc rc = driver_check(t->inner, report, arg, err);

    trace_care(t, "check", bytes_of(NULL, 0), rc);
    return rc;
}

static belay_rc trace_doctor(struct driver *d, finding_report *report, void *arg,
                             struct belay_error *err)
{
    struct trace *t = (struct trace *)d;
    belay_rc rc = driver_doctor(t->inner, report, arg, err);

    trace_care(t, "doctor", bytes_of(NULL, 0), rc);
    return rc;
}

static enum durability trace_durability(struct driver *d)
{
    return driver_durability(((struct trace *)d)->inner);
}

static void trace_close(struct driver *d)
{
    struct trace *t = (struct trace *)d;

    driver_close(t->inner);
    free(t);
}

static const struct driver_ops trace_ops = {
    .name = "trace",
    .version = DRIVER_VERSION,
    .begin = trace_begin,
    .read = trace_read,
    .commit = trace_commit,
    .end = trace_end,
    .submit = trace_submit,
    .notify = trace_notify,
    .now_ms = trace_now_ms,
    .lineage = trace_lineage,
    .era = trace_era,
    .walk = trace_walk,
    .erase = trace_erase,
    .check = trace_check,
    .doctor = trace_doctor,
    .durability = trace_durability,
    .close = trace_close,
};

belay_rc trace_wrap(struct driver **out, struct driver *inner, trace_line *line,
                    void *arg, struct belay_error *err)
{
    struct trace *t = calloc(1, sizeof(*t));

    if (!t)
        return err_no_memory(err, "a trace");
    t->ops = trace_ops;
    t->ops.caps = inner->caps;
    t->ops.attempt_size = OWN_SIZE + inner->attempt_size;
    if (!inner->ops->now_ms)
        t->ops.now_ms = NULL;
    if (!inner->ops->notify)
        t->ops.notify = NULL;
    if (!inner->ops->submit)
        t->ops.submit = NULL;
    if (!inner->ops->erase)
        t->ops.erase = NULL;
    t->d = (struct driver){
        .ops = &t->ops,
        .caps = t->ops.caps,
        .attempt_size = t->ops.attempt_size,
        .hub = inner->hub,
    };
    t->inner = inner;
    t->line = line;
    t->arg = arg;
    *out = &t->d;
    return BELAY_OK;
}

struct trace_counts trace_counts(const struct driver *d)
{
    const struct trace *t = (const struct trace *)d;

    return (struct trace_counts){
        .attempts = atomic_load(&t->attempts),
        .reads = atomic_load(&t->reads),
        .questions = atomic_load(&t->questions),
        .commits = atomic_load(&t->commits),
        .conflicts = atomic_load(&t->conflicts),
        .failures = atomic_load(&t->failures),
    };
}

void trace_reset(struct driver *d)
{
    struct trace *t = (struct trace *)d;

    atomic_store(&t->attempts, 0);
    atomic_store(&t->reads, 0);
    atomic_store(&t->questions, 0);
    atomic_store(&t->commits, 0);
    atomic_store(&t->conflicts, 0);
    atomic_store(&t->failures, 0);
}

void trace_budget(struct driver *d, unsigned round_trips)
{
    atomic_store(&((struct trace *)d)->budget, round_trips);
}
