/* The driver a store sees: it yields before every call, lets faults happen there, and
 * shows the watch whatever passes. */
#include <stdlib.h>

#include "execs.h"
#include "nouns.h"
#include "procs.h"
#include "store/drivers/memory.h"
#include "store/txn_impl.h"

struct sim_attempt {
    uint64_t holder;
    int64_t hold_until_us;
    struct bytes ns;
    int64_t now_ms; /* what the body was told; 0: it did not ask */
    uint64_t began; /* changes of the world until then */
};

#define OWN_SIZE ((sizeof(struct sim_attempt) + 15) & ~(size_t)15)

static void *inner(void *attempt)
{
    return (uint8_t *)attempt + OWN_SIZE;
}

/* --- faults of the world around a call --- */

static void freeze(struct sim *s, struct actor *a, int64_t us)
{
    if (a->not_before_us < s->mono_us + us)
        a->not_before_us = s->mono_us + us;
}

static void step_wall(struct front *f, uint64_t draw)
{
    static const int64_t steps_ms[] = { 1000,           5000,           30000,
                                        59000,          3600000,        7200000,
                                        30 * 86400000L, 365 * 86400000L };
    int64_t by = steps_ms[draw % COUNT_OF(steps_ms)];

    f->wall_offset_ms += (draw >> 16) & 1 ? by : -by;
}

/* The end of whoever runs.  Half of the dead go on in a new life, behind the operation
 * that killed them. */
static void die(struct sim *s, struct actor *a, uint64_t draw)
{
    turn_kill(s, a);
    if (draw & 1)
        turn_start(s, a);
    else
        a->done = true;
}

/* A whole process ends and starts again: what it knew is gone. */
static void restart(struct sim *s, struct front *f)
{
    unsigned slot = 0;

    if (s->n_fronts >=
        FRONTS_MAX - (is_work(s->setup) ? 1U : 0U)) /* the last is the audit's */
        return;
    while (s->current_front[slot] != f->uid)
        slot++;
    struct front *next = front_open(s, slot);
    if (!next)
        return;
    next->wall_offset_ms = f->wall_offset_ms;
    for (unsigned i = 0; i < s->n_actors; i++) {
        struct actor *a = &s->actors[i];
        if (a->front != f)
            continue;
        bool lives = !a->done;
        turn_kill(s, a);
        a->front = next;
        a->not_before_us = s->mono_us;
        if (lives)
            turn_start(s, a);
    }
}

static void clog_some(struct sim *s, uint64_t draw)
{
    for (unsigned i = 0; i < s->n_actors; i++) {
        uint64_t own = mix(draw, i);
        if (own & 1)
            freeze(s, &s->actors[i], (int64_t)((own >> 8) % 3000000));
    }
}

/* The store cannot be reached: for longer, at times, than a lost reply is looked for. */
static void outage(struct front *f, uint64_t draw)
{
    f->down_until_us = f->sim->mono_us + (int64_t)(draw % 2000000);
}

static void leap(struct sim *s, uint64_t draw)
{
    static const int64_t leaps_us[] = {
        1000000, 4900000, 6000000, 61000000, INT64_C(700000000), INT64_C(7200000000)
    };

    s->mono_us += leaps_us[draw % COUNT_OF(leaps_us)];
}

/* What happens at a point of a driver call, and the turn of others.  Returns a fault
 * that the call itself must show, or SIM_NONE; SIM_UNAVAILABLE from the dead. */
static enum fault_name pass(struct front *f, enum point at)
{
    struct sim *s = f->sim;
    struct coroutine *co = s->running;

    if (co == &s->main)
        return SIM_NONE;
    if (co->dead)
        return SIM_UNAVAILABLE;
    uint64_t draw = 0;
    struct actor *a = co->actor;
    enum fault_name fault = swarm_fault(s, a, at, &draw);

    s->mono_us += 1 + (int64_t)((draw >> 40) % (uint64_t)s->swarm.tick_us);
    if (fault != SIM_NONE)
        trace(s, fault_text(fault), a->id, (uint64_t)at);
    if (fault == SIM_DELAY)
        freeze(s, a, (int64_t)(draw >> 8) % 200000);
    else if (fault == SIM_DEATH)
        die(s, a, draw >> 8);
    else if (fault == SIM_RESTART)
        restart(s, co->front);
    else if (fault == SIM_FREEZE)
        freeze(s, a, HOLD_MAX_US + (int64_t)(draw >> 8) % 20000000);
    else if (fault == SIM_CLOG)
        clog_some(s, draw >> 8);
    else if (fault == SIM_STEP)
        step_wall(f, draw >> 8);
    else if (fault == SIM_LEAP)
        leap(s, draw >> 8);
    else if (fault == SIM_OUTAGE)
        outage(f, draw >> 8);
    turn_over(s); /* one that just died comes back only to give its memory back */
    bool down = s->faults_on && s->mono_us < f->down_until_us && at <= AT_COMMIT;
    return co->dead || down ? SIM_UNAVAILABLE : fault;
}

static belay_rc refused(struct belay_error *err)
{
    return err_set(err, BELAY_UNAVAILABLE, "simulated: unavailable");
}

/* --- late commits --- */

static bool copy_values(struct belay_arena *a, const struct value **values, size_t n)
{
    struct value *copy = arena_zalloc(a, n, sizeof(*copy));

    if (!copy || !*values)
        return *values == NULL;
    for (size_t i = 0; i < n; i++) {
        copy[i] = (*values)[i];
        if (copy[i].kind > VALUE_I64 && !arena_copy(a, copy[i].b, &copy[i].b))
            return false;
    }
    *values = copy;
    return true;
}

static bool copy_ref(struct belay_arena *a, struct row_ref *ref)
{
    return copy_values(a, &ref->key, ref->type->n_key) &&
           arena_copy(a, ref->enc, &ref->enc);
}

static bool copy_two(struct belay_arena *a, struct bytes *x, struct bytes *y)
{
    return arena_copy(a, *x, x) && arena_copy(a, *y, y);
}

static bool copy_effect(struct belay_arena *a, struct effect *e)
{
    if (e->kind <= EFFECT_DELETE)
        return copy_ref(a, &e->row.ref) &&
               copy_values(a, &e->row.v, e->row.ref.type->n_columns);
    if (e->kind <= EFFECT_RAISE)
        return copy_ref(a, &e->counter.ref);
    if (e->kind <= EFFECT_RANK_REMOVE)
        return copy_two(a, &e->rank.index, &e->rank.member);
    if (e->kind <= EFFECT_LOG_TRIM)
        return copy_two(a, &e->log.stream, &e->log.data);
    if (e->kind <= EFFECT_FEED_TRIM)
        return copy_two(a, &e->feed.feed, &e->feed.data);
    return copy_two(a, &e->chunk.upload, &e->chunk.data);
}

static bool copy_scan(struct belay_arena *a, struct scan_guard *g)
{
    struct bytes *indexes = arena_zalloc(a, g->n_indexes, sizeof(*indexes));
    struct ranked *found = arena_zalloc(a, g->n, sizeof(*found));
    bool copied = indexes && found;

    for (size_t i = 0; i < g->n_indexes && copied; i++)
        copied = arena_copy(a, g->indexes[i], &indexes[i]);
    for (size_t i = 0; i < g->n && copied; i++) {
        found[i] = g->found[i];
        copied = copy_two(a, &found[i].index, &found[i].member);
    }
    g->indexes = indexes;
    g->found = found;
    return copied;
}

static bool copy_scans(struct belay_arena *a, struct plan *plan)
{
    struct scan_guard *scans = arena_zalloc(a, plan->n_scans, sizeof(*scans));
    bool copied = scans != NULL;

    for (size_t i = 0; i < plan->n_scans && copied; i++) {
        scans[i] = plan->scans[i];
        copied = copy_scan(a, &scans[i]);
    }
    plan->scans = scans;
    return copied;
}

static void send_late(struct front *f, const struct plan *plan, int64_t now_ms)
{
    struct late *l = calloc(1, sizeof(*l));
    bool copied = l != NULL;

    if (!l)
        abort();
    l->front = f;
    l->noun = f->sim->running->actor->noun;
    l->exec = f->sim->running->actor->exec;
    l->proc = f->sim->running->actor->proc;
    l->now_ms = now_ms;
    l->plan = *plan;
    l->plan.guards = arena_zalloc(&l->arena, plan->n_guards, sizeof(struct guard));
    l->plan.effects = arena_zalloc(&l->arena, plan->n_effects, sizeof(struct effect));
    copied &=
        arena_copy(&l->arena, plan->ns, &l->plan.ns) && copy_scans(&l->arena, &l->plan);
    for (size_t i = 0; i < plan->n_guards && copied; i++) {
        l->plan.guards[i] = plan->guards[i];
        copied = copy_ref(&l->arena, &l->plan.guards[i].ref);
    }
    for (size_t i = 0; i < plan->n_effects && copied; i++) {
        l->plan.effects[i] = plan->effects[i];
        copied = copy_effect(&l->arena, &l->plan.effects[i]);
    }
    if (!copied)
        abort();
    l->next = f->sim->late;
    f->sim->late = l;
    f->sim->n_late++;
}

/* Whose commit it is, and the time that its body was told. */
struct origin {
    struct ncall *noun;
    struct xcall *exec;
    struct pcall *proc;
    int64_t now_ms;
    uint64_t began;
};

static belay_rc commit_now(struct front *f, void *attempt, const struct plan *plan,
                           struct origin from, struct plan_result *result,
                           struct belay_error *err)
{
    struct sim *s = f->sim;

    if (!watch_plan(f, plan))
        return refused(err);
    belay_rc rc = driver_commit(s->memory, attempt, plan, result, err);
    trace(s, "commit", plan->id * 64 + f->uid, (uint64_t)rc * 2 + result->conflict);
    bool applied = !rc && !result->conflict && plan->n_effects > 0;
    if (!is_work(s->setup))
        watch_commit(f, plan, result, rc);
    else if (applied && s->nouns)
        nouns_commit(s, plan->ns, from.noun, from.now_ms);
    else if (applied && s->procs)
        procs_commit(s, plan->ns, from.proc, from.now_ms);
    else if (applied)
        execs_commit(s, plan->ns, from.exec, from.now_ms, from.began);
    return rc;
}

void deliver_late(struct sim *s, unsigned which)
{
    struct late **at = &s->late;

    while (which-- > 0)
        at = &(*at)->next;
    struct late *l = *at;
    struct plan_result result = { .conflict = false };
    void *attempt = arena_zalloc(&l->arena, 1, s->memory->attempt_size);
    result.effects =
        arena_zalloc(&l->arena, l->plan.n_effects, sizeof(struct effect_result));
    *at = l->next;
    s->n_late--;
    if (driver_begin(s->memory, attempt, l->plan.ns, NULL) == BELAY_OK) {
        trace(s, "arrives late", l->plan.id, 0);
        struct origin from = { l->noun, l->exec, l->proc, l->now_ms, 0 };
        belay_rc dropped = commit_now(l->front, attempt, &l->plan, from, &result, NULL);
        (void)dropped; /* nobody waits for it */
        driver_end(s->memory, attempt);
    }
    arena_release(&l->arena);
    free(l);
}

void drop_late(struct sim *s)
{
    while (s->late) {
        struct late *l = s->late;
        s->late = l->next;
        arena_release(&l->arena);
        free(l);
    }
    s->n_late = 0;
}

/* --- the driver --- */

static belay_rc front_begin(struct driver *d, void *attempt, struct bytes ns,
                            struct belay_error *err)
{
    struct front *f = (struct front *)d;
    struct sim_attempt *own = attempt;

    if (pass(f, AT_BEGIN) == SIM_UNAVAILABLE)
        return refused(err);
    /* SQLite hides nothing from pickers (rule 6 of driver.h): nobody holds. */
    own->holder = f->sim->setup->sqlite ? 0 : ++f->sim->next_holder;
    own->ns = ns;
    struct actor *a = f->sim->running->actor;
    if (a && a->noun)
        a->noun->run_no = f->sim->nouns->no;
    if (a && a->exec)
        own->began = a->exec->run_no = f->sim->execs->no;
    if (a && a->proc)
        a->proc->run_no = f->sim->procs->no;
    if (a)
        mourning_run(a);
    return driver_begin(f->sim->memory, inner(attempt), ns, err);
}

static belay_rc front_read(struct driver *d, void *attempt, struct read *reads,
                           size_t n, struct belay_arena *a, struct belay_error *err)
{
    struct front *f = (struct front *)d;
    struct sim_attempt *own = attempt;

    if (pass(f, AT_READ) == SIM_UNAVAILABLE)
        return refused(err);
    belay_rc rc = driver_read(f->sim->memory, inner(attempt), reads, n, a, err);
    trace(f->sim, "read", f->uid, n);
    for (size_t i = 0; i < n && !rc && !is_work(f->sim->setup); i++)
        watch_read(f, own->holder, &own->hold_until_us, own->ns, &reads[i]);
    return rc;
}

/* The reply is lost: what the driver said is wiped. */
static belay_rc lose(struct front *f, const struct plan *plan,
                     struct plan_result *result, struct belay_error *err)
{
    struct actor *a = f->sim->running->actor;

    result->conflict = false;
    result->failed_guard = 0;
    for (size_t i = 0; i < plan->n_effects; i++)
        result->effects[i] = (struct effect_result){ .known = false };
    a->unresolved = true;
    if (a->call)
        a->call->lost++;
    if (a->noun)
        a->noun->lost++;
    if (a->exec)
        a->exec->lost++;
    if (a->proc)
        a->proc->lost++;
    /* What lost the reply is often still there. */
    uint64_t draw = mix(a->op->r, a->n_points);
    if (f->sim->swarm.rate[SIM_OUTAGE] > 0 && draw % 3 == 0)
        outage(f, draw >> 8);
    return err_set(err, BELAY_UNKNOWN_OUTCOME, "simulated: the reply is lost");
}

static belay_rc front_commit(struct driver *d, void *attempt, const struct plan *plan,
                             struct plan_result *result, struct belay_error *err)
{
    struct front *f = (struct front *)d;
    const struct sim_attempt *own = attempt;
    enum fault_name fault = pass(f, AT_COMMIT);

    if (fault == SIM_UNAVAILABLE)
        return refused(err);
    if (fault == SIM_CONFLICT) {
        struct call *c = f->sim->running->actor->call;
        if (c)
            c->injected++;
        result->conflict = true;
        return BELAY_OK;
    }
    if (fault == SIM_LATE)
        send_late(f, plan, own->now_ms);
    if (fault == SIM_LATE || fault == SIM_LOST)
        return lose(f, plan, result, err);
    struct actor *a = f->sim->running->actor;
    bool before = a->unresolved;
    a->unresolved = true;
    struct origin from = { a->noun, a->exec, a->proc, own->now_ms, own->began };
    belay_rc rc = commit_now(f, inner(attempt), plan, from, result, err);
    /* Applied, but not yet answered: others act on it, or this one dies. */
    (void)pass(f, AT_REPLY);
    if (f->sim->running->dead)
        return refused(err);
    if (fault == SIM_AFTER)
        return lose(f, plan, result, err);
    a->unresolved = before;
    return rc;
}

static void front_end(struct driver *d, void *attempt)
{
    struct front *f = (struct front *)d;
    struct sim_attempt *own = attempt;

    (void)pass(f, AT_END);
    if (f->sim->running->dead)
        return; /* it never ended */
    model_release(&f->sim->model, own->holder);
    driver_end(f->sim->memory, inner(attempt));
}

/* The clock's time; and what the store will make of it, which depends on nothing else,
 * is what the body is told. */
static belay_rc front_now_ms(struct driver *d, void *attempt, int64_t *out,
                             struct belay_error *err)
{
    struct front *f = (struct front *)d;
    struct sim_attempt *own = attempt;
    struct belay_clock clock = front_clock(f);
    struct txn *body = txn_thread_swap(NULL);

    (void)err;
    *out = clock.wall_ms(clock.arg);
    if (body && is_work(f->sim->setup)) {
        own->now_ms = space_tell_time(body->space, *out);
        if (f->sim->nouns)
            nouns_time(f->sim, own->now_ms);
        else if (f->sim->procs)
            procs_time(f->sim, own->now_ms);
        else
            execs_time(f->sim, own->now_ms);
    }
    (void)txn_thread_swap(body);
    return BELAY_OK;
}

static belay_rc front_walk(struct driver *d, struct bytes ns, item_visit *visit,
                           void *arg, struct belay_error *err)
{
    return driver_walk(((struct front *)d)->sim->memory, ns, visit, arg, err);
}

static enum durability front_durability(struct driver *d)
{
    (void)d;
    return DURABILITY_INLINE;
}

static void front_close(struct driver *d)
{
    (void)d; /* part of the world */
}

static const struct driver_ops front_ops = {
    .name = "simulated",
    .version = DRIVER_VERSION,
    .begin = front_begin,
    .read = front_read,
    .commit = front_commit,
    .end = front_end,
    .now_ms = front_now_ms,
    .walk = front_walk,
    .durability = front_durability,
    .close = front_close,
};

static int hook_fill(void *arg, void *out, size_t n)
{
    struct sim *s = arg;
    unsigned char *p = out;

    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(mix(s->random++, 7) >> 24);
    return 0;
}

struct front *front_open(struct sim *s, unsigned slot)
{
    struct front *f = &s->fronts[s->n_fronts];
    struct belay_error err;

    *f = (struct front){ .sim = s, .uid = s->n_fronts };
    f->d = (struct driver){
        .ops = &front_ops,
        .caps = (s->swarm.loses_replies ? DRIVER_LOSES_REPLIES : 0U) |
                (s->swarm.far ? DRIVER_FAR : 0U) |
                (s->swarm.seen ? s->memory->caps & DRIVER_SCAN_GUARDS : 0U),
        .attempt_size = OWN_SIZE + s->memory->attempt_size,
        .hub = s->memory->hub,
    };
    struct store_options options = {
        .schema = is_work(s->setup) ? &schema_belay : &schema_things,
        .clock = front_clock(f),
        .random = { .fill = hook_fill, .arg = s },
        .retry = { .max_attempts = s->swarm.max_attempts },
    };
    if (store_open(&f->store, &f->d, &options, &err)) {
        violation(s, "answer", "store_open: %s", err.message);
        return NULL;
    }
    s->current_front[slot] = s->n_fronts++;
    return f;
}
