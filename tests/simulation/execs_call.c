/* Calls: their beginning, what their commits did, their end. */
#include "execs.h"

#include <stdio.h>

struct bytes execs_space(void)
{
    return space_bytes(0);
}

void execs_open(struct sim *s)
{
    static struct execs world;

    s->execs = NULL;
    if (!s->setup->execs)
        return;
    struct execs *w = s->execs = &world;
    w->s = s;
    w->old = &w->states[0];
    w->cur = &w->states[1];
    xstate_clear(w->old);
    xstate_clear(w->cur);
    w->no = 0;
    w->latest_ms = w->picked_us = 0;
    w->picked_step = 0;
    w->n_calls = w->n_seen = w->n_handles = w->n_ended = w->n_events = w->n_grants = 0;
    arena_init(&w->arena);
}

void execs_close(struct sim *s)
{
    if (!s->execs)
        return;
    arena_release(&s->execs->arena);
    for (unsigned i = 0; i < s->n_fronts; i++)
        lane_book_close(s->fronts[i].lanes);
}

/* --- telling --- */

void xcomplain(struct execs *w, const char *complaint)
{
    static const char *const rules[] = {
        "L1", "L2",  "L3", "L4", "L5",     "L6",   "L7",     "L8",
        "L9", "L12", "W1", "W2", "W3",     "W4",   "W5",     "W6",
        "H1", "H2",  "V1", "E4", "frames", "keys", "events", "model",
    };

    if (!complaint)
        return;
    size_t len = strcspn(complaint, ":");
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        if (strlen(rules[i]) == len && memcmp(rules[i], complaint, len) == 0)
            violation(w->s, rules[i], "%s", complaint + len + 2);
    }
    if (!w->s->rule)
        violation(w->s, "model", "no such rule: %s", complaint);
}

static const char *const kinds[X_CALL_KINDS] = {
    "submit", "claim",   "renew",  "progress", "frames", "complete", "fail",
    "delay",  "release", "abort",  "cancel",   "replay", "priority", "revoke",
    "tag",    "grant",   "grant1", "redeem",   "timers", "mourn",    "epoch",
};

/* --- a commit --- */

bool xis_many(const struct xcall *c)
{
    return c->kind == X_CLAIM || c->kind == X_GRANT || c->kind == X_TIMERS ||
           c->kind == X_MOURN || c->claims;
}

/* How often a call may do what it is about. */
static void check_once(struct execs *w, struct xcall *c, size_t granted)
{
    if (c->n_granted > granted && c->grants++ > 0)
        violation(w->s, "once", "%s: granted twice", kinds[c->kind]);
    if (c->changed++ > 0 && !xis_many(c))
        violation(w->s, "once", "%s: applied %u times", kinds[c->kind], c->changed);
    if (c->returned && c->rc && c->rc != BELAY_UNKNOWN_OUTCOME)
        violation(w->s, "once", "%s: applied after it was answered %s", kinds[c->kind],
                  belay_error_info((int)c->rc)->name);
}

void execs_commit(struct sim *s, struct bytes ns, struct xcall *c, int64_t now_ms,
                  uint64_t began)
{
    struct execs *w = s->execs;
    struct xstate *spare = w->old;

    if (s->rule || !bytes_eq(ns, execs_space()))
        return;
    s->n_commits++;
    w->old = w->cur;
    w->cur = spare;
    xstate_read(w, w->cur);
    w->no++;
    if (s->setup->verbose)
        printf("# a commit of %s of actor %u at %lld\n", c ? kinds[c->kind] : "nobody",
               c ? c->actor->id : 0, (long long)now_ms);
    size_t granted = c ? c->n_granted : 0;
    bool changed = xrow_changes(w, c, now_ms);
    if (!s->rule)
        changed |= xbeside_changes(w, c, now_ms);
    if (!changed && !s->rule) {
        w->no--;
        return;
    }
    if (!s->rule)
        xstate_check(w, w->cur);
    if (!c || s->rule)
        return;
    xcomplain(w, xorder(w, c, now_ms, began));
    if (!s->rule)
        check_once(w, c, granted);
}

void execs_time(struct sim *s, int64_t now_ms)
{
    struct actor *a = s->running->actor;

    if (now_ms > s->execs->latest_ms)
        s->execs->latest_ms = now_ms;
    if (a && a->exec)
        a->exec->now_ms = now_ms;
}

void execs_dead(struct sim *s, struct actor *a)
{
    if (xpicks(a->exec))
        s->execs->picked_us = s->mono_us;
    a->exec = NULL;
}

/* --- a call --- */

const struct exec_site *xsite(struct actor *a, struct exec_site *out)
{
    struct coroutine *co = a->sim->running;
    struct belay_error err = { .code = 0 };

    *out =
        (struct exec_site){ .backend = BELAY_BACKEND_MEMORY, .grace_ms = X_GRACE_MS };
    if (co->dead || a->sim->rule || a->sim->execs->n_calls == X_CALLS)
        return NULL;
    if (!co->front->lanes && lane_book_open(&co->front->lanes, &err))
        return NULL;
    belay_rc rc = store_space(co->front->store, execs_space(), &out->space, &err);
    if (rc && !co->dead && rc != BELAY_UNAVAILABLE)
        violation(a->sim, "answer", "opening a space: %s", err.message);
    out->lanes = co->front->lanes;
    out->host = hosts_of(a->sim, co->front);
    return rc || co->dead ? NULL : out;
}

struct xcall *xcall_begin(struct actor *a, enum xcall_kind kind)
{
    struct execs *w = a->sim->execs;
    struct xcall *c = &w->call[w->n_calls++];

    *c = (struct xcall){ .kind = kind,
                         .actor = a,
                         .begun_step = a->sim->step,
                         .begun_us = a->sim->mono_us,
                         .run_no = w->no,
                         .mourning = mourning_begin(a->sim) };
    a->exec = c;
    trace(a->sim, kinds[kind], a->id, w->no);
    return c;
}

static bool is_trouble(const struct xcall *c, belay_rc rc)
{
    const struct sim *s = c->actor->sim;

    if (rc == BELAY_UNAVAILABLE)
        return s->swarm.rate[SIM_UNAVAILABLE] > 0 || s->swarm.rate[SIM_OUTAGE] > 0 ||
               s->swarm.loses_replies;
    if (rc == BELAY_UNKNOWN_OUTCOME)
        return c->lost > 0;
    return rc == BELAY_CONTENTION;
}

void xcall_refuse(struct xcall *c, belay_rc rc, const struct belay_error *err)
{
    if (!is_trouble(c, rc))
        violation(c->actor->sim, "answer", "%s answered %s (%s): %s", kinds[c->kind],
                  belay_error_info((int)rc)->name, err->reason, err->message);
}

bool xis_calm(const struct xcall *c)
{
    uint64_t own = xis_many(c) ? 0 : c->changed;

    return c->lost == 0 && c->run_no + own == c->actor->sim->execs->no;
}

bool xcall_end(struct xcall *c, belay_rc rc)
{
    struct sim *s = c->actor->sim;

    if (s->running->dead)
        return false;
    c->actor->exec = NULL;
    c->returned = true;
    if (xpicks(c))
        s->execs->picked_step = s->step;
    c->rc = rc;
    trace(s, "returned", c->actor->id, (uint64_t)rc);
    if (s->rule)
        return false;
    if (rc && rc != BELAY_UNKNOWN_OUTCOME && c->changed > 0 && !xis_many(c))
        violation(s, "once", "%s: answered %s and changed something", kinds[c->kind],
                  belay_error_info((int)rc)->name);
    return s->rule == NULL;
}
