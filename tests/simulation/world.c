/* One schedule from beginning to end. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "execs.h"
#include "nouns.h"
#include "procs.h"
#include "store/drivers/memory.h"
#include "store/drivers/sqlite.h"

/* --- telling --- */

void violation(struct sim *s, const char *rule, const char *fmt, ...)
{
    va_list args;

    if (s->rule || s->running->dead)
        return;
    s->rule = rule;
    va_start(args, fmt);
    (void)vsnprintf(s->why, sizeof(s->why), fmt, args);
    va_end(args);
    if (s->setup->verbose)
        printf("# %7" PRIu64 " VIOLATION %s: %s\n", s->step, rule, s->why);
}

void complain(struct sim *s, const char *complaint, const char *where)
{
    static const char *const rules[] = { "state", "version", "rank", "log",
                                         "feed",  "counter", "model" };

    if (!complaint)
        return;
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        size_t len = strlen(rules[i]);
        if (strncmp(complaint, rules[i], len) == 0 && complaint[len] == ':')
            violation(s, rules[i], "%s (%s)", complaint + len + 2, where);
    }
}

void trace(struct sim *s, const char *what, uint64_t a, uint64_t b)
{
    uint64_t word = (uint64_t)(unsigned char)what[0] << 8 | (unsigned char)what[1];

    s->trace = mix(s->trace ^ word, mix(a, b) ^ (uint64_t)s->mono_us);
    if (s->setup->verbose)
        printf("# %7" PRIu64 " %12" PRId64 " us actor %d: %s %" PRIu64 " %" PRIu64 "\n",
               s->step, s->mono_us, s->running->actor ? (int)s->running->actor->id : -1,
               what, a, b);
}

/* --- beginning --- */

static int world_fill(void *arg, void *out, size_t n)
{
    struct sim *s = arg;
    unsigned char *p = out;

    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(mix(s->random++, 9) >> 24);
    return 0;
}

static bool begin(struct sim *s)
{
    struct belay_error err;

    model_reset(&s->model);
    nouns_open(s);
    execs_open(s);
    procs_open(s);
    swarm_make(s);
    /* The first front has no store and no actors: its clock is the driver's. */
    s->fronts[0] = (struct front){ .sim = s };
    s->n_fronts = 1;
    struct driver_config config = {
        .schema = is_work(s->setup) ? &schema_belay : &schema_things,
        .clock = front_clock(&s->fronts[0]),
        .random = { .fill = world_fill, .arg = s },
    };
    belay_rc rc = s->setup->sqlite ? sqlite_open(&s->memory, ":memory:", &config, &err)
                                   : memory_open(&s->memory, &config, &err);
    if (rc) {
        violation(s, "answer", "opening the driver: %s", err.message);
        return false;
    }
    bool opened = true;
    for (unsigned i = 0; i < s->swarm.n_fronts && opened; i++)
        opened = front_open(s, i) != NULL;
    for (unsigned i = 0; i < s->n_actors && opened; i++) {
        s->actors[i].front = &s->fronts[1 + i % s->swarm.n_fronts];
        turn_start(s, &s->actors[i]);
    }
    return opened;
}

/* --- end --- */

/* Whether a wake-up of the topic since that commit may be missing: its sender died, or
 * was never told that it had committed. */
static bool is_excused(const struct sim *s, uint64_t topic, uint64_t seq)
{
    for (size_t i = 0; i < s->n_calls; i++) {
        const struct call *c = &s->calls[i];
        if (c->applied && c->applied->topic == topic && c->applied_seq > seq &&
            !(c->returned && c->rc == BELAY_OK))
            return true;
    }
    return false;
}

/* Everybody else is done: who still waits has nothing to wait for. */
static void check_waiters(struct sim *s)
{
    for (unsigned i = 0; i < s->n_actors; i++) {
        const struct actor *a = &s->actors[i];
        if (!a->waiting)
            continue;
        const struct mrow *row = model_row(&s->model, a->wait_key);
        if (row && row->v[THING_N].i > a->wait_above &&
            !is_excused(s, a->wait_topic, a->wait_seq))
            violation(s, "wake", "actor %u waits for what has happened", a->id);
    }
}

static void audit(struct sim *s)
{
    struct actor *a = &s->actors[s->n_actors];
    struct op *program = &s->ops[OPS_MAX - SPACES_MAX];

    *a = (struct actor){ .sim = s, .id = s->n_actors, .program = program };
    for (unsigned i = 0; i < SPACES_MAX; i++)
        program[i] = (struct op){ .kind = OP_AUDIT, .number = i };
    a->n_ops = SPACES_MAX;
    a->front = &s->fronts[s->n_fronts - 1];
    s->n_actors++;
    s->mono_us += HOLD_MAX_US + 1;
    if (s->nouns)
        nouns_audit_begin(a);
    if (s->execs)
        execs_audit_begin(a);
    if (s->procs)
        procs_audit_begin(a);
    turn_start(s, a);
    turn_run(s);
}

static void finish(struct sim *s)
{
    turn_run(s);
    s->faults_on = false;
    if (!s->rule)
        check_waiters(s);
    s->ending = true;
    if (!s->rule)
        turn_run(s);
    for (unsigned i = 0; i < s->n_actors && !s->rule; i++) {
        if (!s->actors[i].done)
            violation(s, "liveness", "actor %u does not end", i);
    }
    if (!s->rule)
        audit(s);
    for (unsigned i = 0; i < SPACES_MAX && !s->rule && !is_work(s->setup); i++)
        watch_space(s, space_bytes(i));
    if (!s->rule && !is_work(s->setup))
        watch_space(s, bytes_str(SYSTEM_NAMESPACE));
}

bool world_run(struct sim *s, const struct setup *setup)
{
    s->setup = setup;
    s->running = &s->main;
    s->main = (struct coroutine){ .actor = NULL };
    s->mono_us = 1000000;
    s->random = mix(setup->seed, 4);
    s->step = s->trace = s->n_commits = s->n_pruned = s->next_holder = 0;
    s->faults_on = true;
    s->ending = false;
    s->alone = NULL;
    s->rule = NULL;
    s->memory = NULL;
    s->n_fronts = s->n_actors = 0;
    s->n_records = s->n_calls = s->n_fired = 0;
    for (unsigned i = 0; i < SPACES_MAX; i++)
        s->blobs[i] = 0;
    for (unsigned i = 0; i < COUNT_OF(s->current_front); i++)
        s->current_front[i] = 0;

    if (begin(s))
        finish(s);
    s->main.actor = NULL;
    turn_drain(s);
    s->running = &s->main;
    drop_late(s);
    nouns_close(s);
    execs_close(s);
    procs_close(s);
    for (unsigned i = 0; i < s->n_fronts; i++)
        store_close(s->fronts[i].store);
    driver_close(s->memory);
    trace(s, "end", s->model.seq, s->n_calls);
    return s->rule == NULL;
}
