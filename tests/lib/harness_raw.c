/* Attempts at the driver's own door, and the shim. */
#include <pthread.h>
#include <stdlib.h>

#include "harness.h"

bool raw_begin(struct raw *r, struct harness *h)
{
    memset(r, 0, sizeof(*r));
    r->h = h;
    r->plan.ns = bytes_str("default");
    r->plan.guards = r->guards;
    r->plan.effects = r->effects;
    r->attempt = calloc(1, h->driver->attempt_size + 1);
    if (!r->attempt)
        abort();
    return CHECK_RC(h, driver_begin(h->driver, r->attempt, r->plan.ns, &r->err),
                    BELAY_OK);
}

void raw_end(struct raw *r)
{
    driver_end(r->h->driver, r->attempt);
    free(r->attempt);
    arena_release(&r->arena);
}

belay_rc raw_read(struct raw *r, struct read *q)
{
    return driver_read(r->h->driver, r->attempt, q, 1, &r->arena, &r->err);
}

static struct row_ref thing_ref(struct raw *r, const char *id)
{
    struct value key = value_str(id);
    struct row_ref ref = { .type = NULL };

    CHECK_RC(r->h, row_ref_make(&ref, &row_thing, &key, &r->arena, &r->err), BELAY_OK);
    return ref;
}

const struct row *raw_row(struct raw *r, const char *id)
{
    struct read q = { .kind = READ_ROW, .row.ref = thing_ref(r, id) };

    CHECK_RC(r->h, raw_read(r, &q), BELAY_OK);
    return q.row.out;
}

int64_t raw_ver(struct raw *r, const char *id)
{
    const struct row *row = raw_row(r, id);

    return row ? row->ver : 0;
}

static struct effect *next_effect(struct raw *r, enum effect_kind kind)
{
    struct effect *e = &r->effects[r->plan.n_effects++];

    if (r->plan.n_effects > RAW_MAX)
        abort();
    *e = (struct effect){ .kind = kind };
    return e;
}

void raw_guard(struct raw *r, const char *id, int64_t ver)
{
    if (r->plan.n_guards == RAW_MAX)
        abort();
    r->guards[r->plan.n_guards++] =
        (struct guard){ .ref = thing_ref(r, id), .ver = ver };
}

static void row_effect(struct raw *r, enum effect_kind kind, const char *id,
                       int64_t ver, int64_t n)
{
    struct effect *e = next_effect(r, kind);
    struct value *v = arena_zalloc(&r->arena, THING_COLUMNS, sizeof(*v));

    if (!v)
        abort();
    e->row.ref = thing_ref(r, id);
    thing_values(v, id, n);
    v[THING_ID] = e->row.ref.key[0];
    e->row.ver = ver;
    e->row.v = v;
    e->row.changed = UINT64_C(1) << THING_N;
}

void raw_insert(struct raw *r, const char *id, int64_t ver, int64_t n)
{
    row_effect(r, EFFECT_INSERT, id, ver, n);
}

void raw_put(struct raw *r, const char *id, int64_t ver, int64_t n)
{
    row_effect(r, EFFECT_PUT, id, ver, n);
}

void raw_delete(struct raw *r, const char *id)
{
    next_effect(r, EFFECT_DELETE)->row.ref = thing_ref(r, id);
}

void raw_add(struct raw *r, const char *id, int64_t delta, int64_t min, int64_t max)
{
    struct effect *e = next_effect(r, EFFECT_ADD);

    e->counter.ref = thing_ref(r, id);
    e->counter.column = THING_COUNT;
    e->counter.amount = delta;
    e->counter.min = min;
    e->counter.max = max;
}

void raw_rank(struct raw *r, enum effect_kind kind, const char *index,
              const char *member, int64_t old_rank, int64_t rank)
{
    struct effect *e = next_effect(r, kind);

    e->rank.index = bytes_str(index);
    e->rank.member = bytes_str(member);
    e->rank.old_rank = old_rank;
    e->rank.rank = rank;
}

void raw_log(struct raw *r, const char *stream, int64_t seq)
{
    struct effect *e = next_effect(r, EFFECT_LOG_APPEND);

    e->log.stream = bytes_str(stream);
    e->log.seq = seq;
    e->log.data = bytes_str("entry");
}

void raw_feed(struct raw *r, const char *feed, const char *data)
{
    struct effect *e = next_effect(r, EFFECT_FEED_APPEND);

    e->feed.feed = bytes_str(feed);
    e->feed.data = bytes_str(data);
}

belay_rc raw_commit(struct raw *r)
{
    memset(r->results, 0, sizeof(r->results));
    memset(&r->err, 0, sizeof(r->err));
    r->result = (struct plan_result){ .effects = r->results };
    belay_rc rc =
        driver_commit(r->h->driver, r->attempt, &r->plan, &r->result, &r->err);
    r->plan.n_guards = 0;
    r->plan.n_effects = 0;
    driver_end(r->h->driver, r->attempt);
    memset(r->attempt, 0, r->h->driver->attempt_size);
    CHECK_RC(r->h, driver_begin(r->h->driver, r->attempt, r->plan.ns, NULL), BELAY_OK);
    return rc;
}

/* --- the shim --- */

struct shim {
    struct driver d;
    struct driver_ops ops;
    struct driver *inner;
    struct shim_options options;
    pthread_mutex_t mutex;
    unsigned seen;         /* effects of the kind that loses one */
    pthread_mutex_t queue; /* BODIES_QUEUED: held by the one that runs */
};

static struct driver *below(struct driver *d)
{
    return ((struct shim *)d)->inner;
}

static belay_rc shim_begin(struct driver *d, void *attempt, struct bytes ns,
                           struct belay_error *err)
{
    return driver_begin(below(d), attempt, ns, err);
}

static belay_rc shim_read(struct driver *d, void *attempt, struct read *reads, size_t n,
                          struct belay_arena *a, struct belay_error *err)
{
    return driver_read(below(d), attempt, reads, n, a, err);
}

/* Which effect of the plan gets lost; n_effects: none. */
static size_t lost_effect(struct shim *s, const struct plan *plan)
{
    size_t lost = plan->n_effects;

    pthread_mutex_lock(&s->mutex);
    for (size_t i = 0; i < plan->n_effects; i++) {
        if ((int)plan->effects[i].kind == s->options.drop &&
            ++s->seen == s->options.drop_nth)
            lost = i;
    }
    pthread_mutex_unlock(&s->mutex);
    return lost;
}

static belay_rc shim_commit(struct driver *d, void *attempt, const struct plan *plan,
                            struct plan_result *result, struct belay_error *err)
{
    size_t lost = lost_effect((struct shim *)d, plan);
    struct plan less = *plan;

    if (lost == plan->n_effects)
        return driver_commit(below(d), attempt, plan, result, err);
    if (plan->n_effects + plan->n_guards == 1)
        return BELAY_OK;
    less.effects = calloc(plan->n_effects, sizeof(*less.effects));
    if (!less.effects)
        return err_no_memory(err, "a tampered plan");
    less.n_effects = 0;
    for (size_t i = 0; i < plan->n_effects; i++) {
        if (i != lost)
            less.effects[less.n_effects++] = plan->effects[i];
    }
    belay_rc rc = driver_commit(below(d), attempt, &less, result, err);
    free(less.effects);
    /* Results back to where they belong. */
    for (size_t i = plan->n_effects - 1; i > lost; i--)
        result->effects[i] = result->effects[i - 1];
    result->effects[lost] = (struct effect_result){ .known = true };
    return rc;
}

static void shim_end(struct driver *d, void *attempt)
{
    driver_end(below(d), attempt);
}

static belay_rc shim_submit(struct driver *d, struct driver_job *job,
                            struct belay_error *err)
{
    struct shim *s = (struct shim *)d;

    if (s->options.bodies == BODIES_AS_BELOW)
        return driver_submit(s->inner, job, err);
    pthread_mutex_lock(&s->queue);
    job->run(job);
    pthread_mutex_unlock(&s->queue);
    return BELAY_OK;
}

static void shim_notify(struct driver *d, struct bytes ns, struct bytes topic)
{
    below(d)->ops->notify(below(d), ns, topic);
}

static belay_rc shim_now_ms(struct driver *d, void *attempt, int64_t *out,
                            struct belay_error *err)
{
    struct shim *s = (struct shim *)d;

    if (!s->options.clock)
        return s->inner->ops->now_ms(s->inner, attempt, out, err);
    *out = fake_wall_ms(s->options.clock);
    return BELAY_OK;
}

static belay_rc shim_walk(struct driver *d, struct bytes ns, item_visit *visit,
                          void *arg, struct belay_error *err)
{
    return driver_walk(below(d), ns, visit, arg, err);
}

static enum durability shim_durability(struct driver *d)
{
    return driver_durability(below(d));
}

static void shim_close(struct driver *d)
{
    struct shim *s = (struct shim *)d;

    driver_close(s->inner);
    pthread_mutex_destroy(&s->mutex);
    pthread_mutex_destroy(&s->queue);
    free(s);
}

belay_rc shim_wrap(struct driver **out, struct driver *inner,
                   const struct shim_options *options, struct belay_error *err)
{
    struct shim *s = calloc(1, sizeof(*s));

    if (!s)
        return err_no_memory(err, "a shim");
    bool queued = options->bodies == BODIES_QUEUED ||
                  (options->bodies == BODIES_AS_BELOW && inner->ops->submit);
    s->ops = (struct driver_ops){
        .name = "shim",
        .version = DRIVER_VERSION,
        .caps = inner->caps,
        .attempt_size = inner->attempt_size,
        .begin = shim_begin,
        .read = shim_read,
        .commit = shim_commit,
        .end = shim_end,
        .submit = queued ? shim_submit : NULL,
        .notify = inner->ops->notify ? shim_notify : NULL,
        .now_ms = options->clock || inner->ops->now_ms ? shim_now_ms : NULL,
        .walk = shim_walk,
        .durability = shim_durability,
        .close = shim_close,
    };
    s->d = (struct driver){ .ops = &s->ops,
                            .caps = inner->caps,
                            .attempt_size = inner->attempt_size,
                            .hub = inner->hub };
    s->inner = inner;
    s->options = *options;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_mutex_init(&s->queue, NULL);
    *out = &s->d;
    return BELAY_OK;
}
