#include "store/fault.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct armed {
    struct armed *next;
    struct fault f;
    unsigned left; /* calls until it is due; 1: at the next one */
};

/* A commit under way.  Everything it needs to arrive is in its own arena, so that it
 * needs neither its caller nor more memory when its time comes. */
struct late {
    struct late *next;
    struct belay_arena arena;
    struct plan plan;
    struct plan_result result;
    void *attempt;
    unsigned calls_left;
};

struct faulty {
    struct driver d;
    struct driver_ops ops; /* fault_ops, fitted to the inner driver */
    struct driver *inner;
    struct belay_clock clock;
    pthread_mutex_t mutex; /* of both lists; held while late commits arrive */
    struct armed *armed;   /* in the order of arming */
    struct late *late;     /* in the order in which they were sent */
    _Atomic size_t under_way;
    _Atomic uint64_t acted;
};

/* Stands in front of the inner driver's part of an attempt. */
struct fault_attempt {
    bool refused; /* the inner driver knows nothing of this attempt */
};

#define OWN_SIZE ((sizeof(struct fault_attempt) + 15) & ~(size_t)15)

static void *inner_attempt(void *attempt)
{
    return (uint8_t *)attempt + OWN_SIZE;
}

/* --- commits under way --- */

static bool copy_bytes(struct belay_arena *a, struct bytes *b)
{
    return arena_copy(a, *b, b);
}

static bool copy_values(struct belay_arena *a, const struct value **values, size_t n)
{
    if (!*values)
        return true;
    struct value *copy = arena_zalloc(a, n, sizeof(*copy));
    if (!copy)
        return false;
    for (size_t i = 0; i < n; i++) {
        copy[i] = (*values)[i];
        bool has_bytes = copy[i].kind != VALUE_NULL && copy[i].kind != VALUE_I64;
        if (has_bytes && !copy_bytes(a, &copy[i].b))
            return false;
    }
    *values = copy;
    return true;
}

static bool copy_ref(struct belay_arena *a, struct row_ref *ref)
{
    return copy_values(a, &ref->key, ref->type->n_key) && copy_bytes(a, &ref->enc);
}

static bool copy_effect(struct belay_arena *a, struct effect *e)
{
    switch (e->kind) {
    case EFFECT_INSERT:
    case EFFECT_PUT:
    case EFFECT_DELETE:
        return copy_ref(a, &e->row.ref) &&
               copy_values(a, &e->row.v, e->row.ref.type->n_columns);
    case EFFECT_ADD:
    case EFFECT_RAISE:
        return copy_ref(a, &e->counter.ref);
    case EFFECT_RANK_ADD:
    case EFFECT_RANK_MOVE:
    case EFFECT_RANK_REMOVE:
        return copy_bytes(a, &e->rank.index) && copy_bytes(a, &e->rank.member);
    case EFFECT_LOG_APPEND:
    case EFFECT_LOG_TRIM:
        return copy_bytes(a, &e->log.stream) && copy_bytes(a, &e->log.data);
    case EFFECT_FEED_APPEND:
    case EFFECT_FEED_TRIM:
        return copy_bytes(a, &e->feed.feed) && copy_bytes(a, &e->feed.data);
    case EFFECT_CHUNK_PUT:
    case EFFECT_CHUNK_DROP:
        return copy_bytes(a, &e->chunk.upload) && copy_bytes(a, &e->chunk.data);
    }
    return false;
}

static bool copy_scan(struct belay_arena *a, const struct scan_guard *from,
                      struct scan_guard *to)
{
    struct bytes *indexes = arena_zalloc(a, from->n_indexes, sizeof(*indexes));
    struct ranked *found = arena_zalloc(a, from->n, sizeof(*found));

    if (!indexes || !found)
        return false;
    *to = *from;
    to->indexes = indexes;
    to->found = found;
    for (size_t i = 0; i < from->n_indexes; i++) {
        indexes[i] = from->indexes[i];
        if (!copy_bytes(a, &indexes[i]))
            return false;
    }
    for (size_t i = 0; i < from->n; i++) {
        found[i] = from->found[i];
        if (!copy_bytes(a, &found[i].index) || !copy_bytes(a, &found[i].member))
            return false;
    }
    return true;
}

static bool copy_plan(struct late *l, const struct plan *plan)
{
    struct belay_arena *a = &l->arena;
    struct scan_guard *scans = arena_zalloc(a, plan->n_scans, sizeof(*scans));
    struct guard *guards = arena_zalloc(a, plan->n_guards, sizeof(*guards));
    struct effect *effects = arena_zalloc(a, plan->n_effects, sizeof(*effects));

    if (!guards || !effects || !scans)
        return false;
    l->plan = *plan;
    l->plan.guards = guards;
    l->plan.scans = scans;
    l->plan.effects = effects;
    l->plan.topics = NULL; /* who sent it posts them */
    if (!copy_bytes(a, &l->plan.ns))
        return false;
    for (size_t i = 0; i < plan->n_guards; i++) {
        guards[i] = plan->guards[i];
        if (!copy_ref(a, &guards[i].ref))
            return false;
    }
    for (size_t i = 0; i < plan->n_scans; i++) {
        if (!copy_scan(a, &plan->scans[i], &scans[i]))
            return false;
    }
    for (size_t i = 0; i < plan->n_effects; i++) {
        effects[i] = plan->effects[i];
        if (!copy_effect(a, &effects[i]))
            return false;
    }
    return true;
}

static void late_free(struct late *l)
{
    arena_release(&l->arena);
    free(l);
}

/* NULL when there is no memory. */
static struct late *late_new(const struct faulty *s, const struct plan *plan,
                             unsigned late_calls)
{
    struct late *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->calls_left = late_calls;
    l->attempt = arena_zalloc(&l->arena, 1, s->inner->attempt_size);
    l->result.effects =
        arena_zalloc(&l->arena, plan->n_effects, sizeof(*l->result.effects));
    if (!l->attempt || !l->result.effects || !copy_plan(l, plan)) {
        late_free(l);
        return NULL;
    }
    return l;
}

/* Nobody waits for the answer: a late commit that fails is one that did nothing. */
static void arrive(struct faulty *s, struct late *l)
{
    if (driver_begin(s->inner, l->attempt, l->plan.ns, NULL) == BELAY_OK) {
        belay_rc dropped =
            driver_commit(s->inner, l->attempt, &l->plan, &l->result, NULL);
        (void)dropped;
        driver_end(s->inner, l->attempt);
    }
    late_free(l);
    atomic_fetch_sub(&s->under_way, 1);
}

/* Before each call: those whose time has come arrive, the others come one call closer.
 */
static void arrive_due(struct faulty *s)
{
    struct late **at = &s->late;

    while (*at) {
        struct late *l = *at;
        if (l->calls_left > 0) {
            l->calls_left--;
            at = &l->next;
        } else {
            *at = l->next;
            arrive(s, l);
        }
    }
}

static belay_rc send_late(struct faulty *s, const struct plan *plan,
                          unsigned late_calls, struct belay_error *err)
{
    struct late *l = late_new(s, plan, late_calls);

    if (!l)
        return err_no_memory(err, "a commit under way");
    pthread_mutex_lock(&s->mutex);
    struct late **at = &s->late;
    while (*at)
        at = &(*at)->next;
    *at = l;
    atomic_fetch_add(&s->under_way, 1);
    pthread_mutex_unlock(&s->mutex);
    return err_set(err, BELAY_UNKNOWN_OUTCOME, "commit: reply lost, still under way");
}

/* --- faults --- */

/* The fault that acts on this call, if any.  One that was due at the same call but
 * armed later has missed its call, and goes without having acted unless it is sticky.
 */
static bool take_due(struct faulty *s, enum fault_op op, struct fault *out)
{
    struct armed **at = &s->armed;
    bool found = false;

    while (*at) {
        struct armed *a = *at;
        bool due = a->f.op == op && a->left == 1;

        if (a->f.op == op && !due)
            a->left--;
        if (due && !found) {
            *out = a->f;
            found = true;
        }
        if (due && !a->f.sticky) {
            *at = a->next;
            free(a);
        } else {
            at = &a->next;
        }
    }
    return found;
}

/* What every call of an operation begins with.  True when a fault takes its place; a
 * delay is over by then and takes no call's place. */
static bool meet(struct faulty *s, enum fault_op op, struct fault *f)
{
    pthread_mutex_lock(&s->mutex);
    arrive_due(s);
    bool acts = take_due(s, op, f);
    pthread_mutex_unlock(&s->mutex);

    if (!acts)
        return false;
    atomic_fetch_add(&s->acted, 1);
    if (f->kind != FAULT_DELAY)
        return true;
    s->clock.sleep_us(s->clock.arg, f->delay_us);
    return false;
}

static belay_rc fault_begin(struct driver *d, void *attempt, struct bytes ns,
                            struct belay_error *err)
{
    struct faulty *s = (struct faulty *)d;
    struct fault_attempt *own = attempt;
    struct fault f;

    own->refused = meet(s, FAULT_ON_BEGIN, &f);
    if (own->refused)
        return err_set(err, BELAY_UNAVAILABLE, "begin: refused by an armed fault");
    return driver_begin(s->inner, inner_attempt(attempt), ns, err);
}

static belay_rc fault_read(struct driver *d, void *attempt, struct read *reads,
                           size_t n, struct belay_arena *a, struct belay_error *err)
{
    struct faulty *s = (struct faulty *)d;
    struct fault f;

    if (meet(s, FAULT_ON_READ, &f))
        return err_set(err, BELAY_UNAVAILABLE, "read: refused by an armed fault");
    return driver_read(s->inner, inner_attempt(attempt), reads, n, a, err);
}

/* A reply that is lost tells nothing: what the inner driver answered is wiped. */
static belay_rc commit_unheard(struct faulty *s, void *attempt, const struct plan *plan,
                               struct plan_result *result, struct belay_error *err)
{
    belay_rc dropped =
        driver_commit(s->inner, inner_attempt(attempt), plan, result, NULL);

    (void)dropped;
    result->conflict = false;
    result->failed_guard = 0;
    for (size_t i = 0; i < plan->n_effects; i++)
        result->effects[i] = (struct effect_result){ 0 };
    return err_set(err, BELAY_UNKNOWN_OUTCOME, "commit: sent, reply lost");
}

static belay_rc fault_commit(struct driver *d, void *attempt, const struct plan *plan,
                             struct plan_result *result, struct belay_error *err)
{
    struct faulty *s = (struct faulty *)d;
    struct fault f;

    if (!meet(s, FAULT_ON_COMMIT, &f))
        return driver_commit(s->inner, inner_attempt(attempt), plan, result, err);
    switch (f.kind) {
    case FAULT_CONFLICT:
        result->conflict = true;
        result->failed_guard = 0;
        return BELAY_OK;
    case FAULT_LOST:
        return err_set(err, BELAY_UNKNOWN_OUTCOME, "commit: lost before it arrived");
    case FAULT_AFTER:
        return commit_unheard(s, attempt, plan, result, err);
    case FAULT_LATE:
        return send_late(s, plan, f.late_calls, err);
    case FAULT_BEFORE:
    case FAULT_DELAY: /* handled by meet() */
        break;
    }
    return err_set(err, BELAY_UNAVAILABLE, "commit: refused by an armed fault");
}

/* Not counted as a call by commits under way: it asks nothing, and every attempt ends.
 */
static void fault_end(struct driver *d, void *attempt)
{
    struct fault_attempt *own = attempt;

    if (!own->refused)
        driver_end(((struct faulty *)d)->inner, inner_attempt(attempt));
}

/* The job calls back through this driver, so its calls can fail like any others. */
static belay_rc fault_submit(struct driver *d, struct driver_job *job,
                             struct belay_error *err)
{
    struct faulty *s = (struct faulty *)d;

    return driver_submit(s->inner, job, err);
}

static void fault_notify(struct driver *d, struct bytes ns, struct bytes topic)
{
    struct faulty *s = (struct faulty *)d;

    s->inner->ops->notify(s->inner, ns, topic);
}

static belay_rc fault_now_ms(struct driver *d, void *attempt, int64_t *out,
                             struct belay_error *err)
{
    struct faulty *s = (struct faulty *)d;

    pthread_mutex_lock(&s->mutex);
    arrive_due(s);
    pthread_mutex_unlock(&s->mutex);
    return driver_now_ms(s->inner, inner_attempt(attempt), &s->clock, out, err);
}

static uint64_t fault_era(struct driver *d, void *attempt)
{
    struct faulty *s = (struct faulty *)d;

    return driver_era(s->inner, inner_attempt(attempt));
}

static belay_rc fault_lineage(struct driver *d, void *attempt, struct bytes known,
                              struct lineage *out, struct belay_error *err)
{
    struct faulty *s = (struct faulty *)d;

    return driver_lineage(s->inner, inner_attempt(attempt), known, out, err);
}

/* The inner driver, with those commits under way that are due by now. */
static struct driver *after_arrivals(struct driver *d)
{
    struct faulty *s = (struct faulty *)d;

    pthread_mutex_lock(&s->mutex);
    arrive_due(s);
    pthread_mutex_unlock(&s->mutex);
    return s->inner;
}

static belay_rc fault_walk(struct driver *d, struct bytes ns, item_visit *visit,
                           void *arg, struct belay_error *err)
{
    return driver_walk(after_arrivals(d), ns, visit, arg, err);
}

static belay_rc fault_erase(struct driver *d, struct bytes ns, size_t limit, bool *more,
                            struct belay_error *err)
{
    return driver_erase(after_arrivals(d), ns, limit, more, err);
}

static belay_rc fault_check(struct driver *d, finding_report *report, void *arg,
                            struct belay_error *err)
{
    return driver_check(after_arrivals(d), report, arg, err);
}

static belay_rc fault_doctor(struct driver *d, finding_report *report, void *arg,
                             struct belay_error *err)
{
    return driver_doctor(after_arrivals(d), report, arg, err);
}

static enum durability fault_durability(struct driver *d)
{
    return driver_durability(((struct faulty *)d)->inner);
}

static void disarm(struct faulty *s)
{
    while (s->armed) {
        struct armed *a = s->armed;
        s->armed = a->next;
        free(a);
    }
}

static void fault_close(struct driver *d)
{
    struct faulty *s = (struct faulty *)d;

    disarm(s);
    while (s->late) {
        struct late *l = s->late;
        s->late = l->next;
        late_free(l);
    }
    driver_close(s->inner);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static const struct driver_ops fault_ops = {
    .name = "fault",
    .version = DRIVER_VERSION,
    .begin = fault_begin,
    .read = fault_read,
    .commit = fault_commit,
    .end = fault_end,
    .submit = fault_submit,
    .notify = fault_notify,
    .now_ms = fault_now_ms,
    .lineage = fault_lineage,
    .era = fault_era,
    .walk = fault_walk,
    .erase = fault_erase,
    .check = fault_check,
    .doctor = fault_doctor,
    .durability = fault_durability,
    .close = fault_close,
};

belay_rc fault_wrap(struct driver **out, struct driver *inner,
                    const struct belay_clock *clock, struct belay_error *err)
{
    struct faulty *s = calloc(1, sizeof(*s));

    if (!s)
        return err_no_memory(err, "a faulty driver");
    s->ops = fault_ops;
    s->ops.caps = inner->caps | DRIVER_LOSES_REPLIES;
    s->ops.attempt_size = OWN_SIZE + inner->attempt_size;
    if (!inner->ops->now_ms)
        s->ops.now_ms = NULL;
    if (!inner->ops->notify)
        s->ops.notify = NULL;
    if (!inner->ops->submit)
        s->ops.submit = NULL;
    if (!inner->ops->erase)
        s->ops.erase = NULL;
    s->d = (struct driver){
        .ops = &s->ops,
        .caps = s->ops.caps,
        .attempt_size = s->ops.attempt_size,
        .hub = inner->hub,
    };
    s->inner = inner;
    s->clock = *clock;
    pthread_mutex_init(&s->mutex, NULL);
    *out = &s->d;
    return BELAY_OK;
}

static const char *fault_fault(const struct fault *f)
{
    if (f->op != FAULT_ON_BEGIN && f->op != FAULT_ON_READ && f->op != FAULT_ON_COMMIT)
        return "no such operation";
    if (f->nth == 0)
        return "calls are counted from 1";
    switch (f->kind) {
    case FAULT_DELAY:
        return f->delay_us < 0 ? "negative delay" : NULL;
    case FAULT_BEFORE:
        return NULL;
    case FAULT_CONFLICT:
    case FAULT_LOST:
    case FAULT_AFTER:
    case FAULT_LATE:
        return f->op == FAULT_ON_COMMIT ? NULL : "only a commit can fail like this";
    }
    return "no such kind";
}

belay_rc fault_arm(struct driver *d, const struct fault *f, struct belay_error *err)
{
    struct faulty *s = (struct faulty *)d;
    const char *why = fault_fault(f);

    if (why)
        return err_set(err, BELAY_INVALID, "fault: %s", why);
    struct armed *a = malloc(sizeof(*a));
    if (!a)
        return err_no_memory(err, "a fault");
    *a = (struct armed){ .f = *f, .left = f->nth };

    pthread_mutex_lock(&s->mutex);
    struct armed **at = &s->armed;
    while (*at)
        at = &(*at)->next;
    *at = a;
    pthread_mutex_unlock(&s->mutex);
    return BELAY_OK;
}

void fault_clear(struct driver *d)
{
    struct faulty *s = (struct faulty *)d;

    pthread_mutex_lock(&s->mutex);
    disarm(s);
    while (s->late) {
        struct late *l = s->late;
        s->late = l->next;
        arrive(s, l);
    }
    pthread_mutex_unlock(&s->mutex);
}

size_t fault_under_way(const struct driver *d)
{
    return atomic_load(&((const struct faulty *)d)->under_way);
}

uint64_t fault_count(const struct driver *d)
{
    return atomic_load(&((const struct faulty *)d)->acted);
}
