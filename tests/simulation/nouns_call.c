/* Calls of the nouns: their beginning, what their commits did, their end. */
#include "nouns.h"

#include <stdio.h>

struct bytes nouns_space(void)
{
    return space_bytes(0);
}

void nouns_open(struct sim *s)
{
    static struct nouns world;

    s->nouns = NULL;
    if (!s->setup->nouns)
        return;
    struct nouns *w = s->nouns = &world;
    w->s = s;
    w->old = &w->states[0];
    w->cur = &w->states[1];
    state_clear(w->old);
    state_clear(w->cur);
    w->no = w->spoiled = w->spoiled_session = w->spoiled_no = 0;
    w->latest_ms = 0;
    w->n_calls = w->n_seen = w->n_claims = w->n_taken = w->n_turns = w->n_bytes =
        w->n_since = 0;
    for (size_t i = 0; i < COUNT_OF(w->generation); i++)
        w->generation[i] = 0;
    arena_init(&w->arena);
}

void nouns_close(struct sim *s)
{
    if (s->nouns)
        arena_release(&s->nouns->arena);
}

/* --- telling --- */

void noun_complain(struct nouns *w, const char *complaint)
{
    static const char *const rules[] = {
        "L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8",    "L9",     "L11", "L12",
        "H1", "H2", "Q1", "Q2", "Q4", "Q5", "S1", "S2",    "S3",     "S4",  "S5",
        "S6", "S7", "N1", "N2", "N3", "N4", "E4", "model", "answer",
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

static const char *const kinds[N_CALL_KINDS] = {
    "enqueue", "claim", "renew", "abandon", "cancel", "drop",  "look",  "commit",
    "delete",  "put",   "pin",   "unpin",   "gc",     "spoil", "epoch",
};

static void tell(const struct nouns *w, const struct ncall *c, int64_t now_ms)
{
    if (!w->s->setup->verbose)
        return;
    printf("# %s of actor %u changes something at %lld:", c ? kinds[c->kind] : "nobody",
           c ? c->actor->id : 0, (long long)now_ms);
    for (size_t i = 0; c && i < c->n_at; i++)
        printf(" batch %lld", (long long)c->at[i]);
    printf("\n");
}

/* --- a commit --- */

void nouns_commit(struct sim *s, struct bytes ns, struct ncall *c, int64_t now_ms)
{
    struct nouns *w = s->nouns;
    struct nstate *spare = w->old;

    if (s->rule || !bytes_eq(ns, nouns_space()))
        return;
    s->n_commits++;
    w->old = w->cur;
    w->cur = spare;
    state_read(w, w->cur);
    w->no++;
    bool changed = inbox_changes(w, c, now_ms);
    changed |= other_changes(w, c);
    if (!changed) {
        w->no--;
        return;
    }
    tell(w, c, now_ms);
    if (c && !s->rule)
        noun_complain(w, call_changes(w, c, now_ms));
    if (!s->rule)
        state_check(w, w->cur);
    if (!c)
        return;
    if (c->kind == N_CLAIM && c->n_at > 0 && c->grants++ > 0)
        violation(s, "once", "claim: granted twice");
    bool many = c->kind == N_COLLECT || c->kind == N_DELETE || c->kind == N_PUT ||
                c->kind == N_CLAIM;
    if (c->changed++ > 0 && !many)
        violation(s, "once", "%s: applied %u times", kinds[c->kind], c->changed);
    if (c->returned && c->rc && c->rc != BELAY_UNKNOWN_OUTCOME && !many)
        violation(s, "once", "%s: applied after it was answered %s", kinds[c->kind],
                  belay_error_info((int)c->rc)->name);
}

void nouns_time(struct sim *s, int64_t now_ms)
{
    struct actor *a = s->running->actor;

    if (now_ms > s->nouns->latest_ms)
        s->nouns->latest_ms = now_ms;
    if (!a || !a->noun)
        return;
    a->noun->now_ms = now_ms;
    if (a->noun->begun_ms == 0)
        a->noun->begun_ms = now_ms;
}

/* --- a call --- */

struct space *noun_space(struct actor *a)
{
    struct coroutine *co = a->sim->running;
    struct space *sp = NULL;
    struct belay_error err = { .code = 0 };

    if (co->dead || a->sim->rule || a->sim->nouns->n_calls == N_CALLS)
        return NULL;
    belay_rc rc = store_space(co->front->store, nouns_space(), &sp, &err);
    if (rc && !co->dead && rc != BELAY_UNAVAILABLE)
        violation(a->sim, "answer", "opening a space: %s", err.message);
    return rc || co->dead ? NULL : sp;
}

struct ncall *call_begin(struct actor *a, enum ncall_kind kind, const char *session)
{
    struct nouns *w = a->sim->nouns;
    struct ncall *c = &w->call[w->n_calls++];

    *c = (struct ncall){ .kind = kind,
                         .actor = a,
                         .session = str_of(session),
                         .first_no = w->no,
                         .run_no = w->no,
                         .mourning = mourning_begin(a->sim) };
    a->noun = c;
    trace(a->sim, kinds[kind], a->id, w->no);
    return c;
}

bool is_trouble(const struct ncall *c, belay_rc rc)
{
    const struct sim *s = c->actor->sim;

    if (rc == BELAY_UNAVAILABLE)
        return s->swarm.rate[SIM_UNAVAILABLE] > 0 || s->swarm.rate[SIM_OUTAGE] > 0 ||
               s->swarm.loses_replies;
    if (rc == BELAY_UNKNOWN_OUTCOME)
        return c->lost > 0;
    return rc == BELAY_CONTENTION;
}

void call_refuse(struct ncall *c, belay_rc rc)
{
    if (!is_trouble(c, rc))
        violation(c->actor->sim, "answer", "%s answered %s", kinds[c->kind],
                  belay_error_info((int)rc)->name);
}

bool is_calm(const struct ncall *c)
{
    /* Who lost a reply has begun more than runs of the body since. */
    return c->lost == 0 && c->run_no == c->actor->sim->nouns->no;
}

/* Calls that are one transaction. */
static bool is_single(enum ncall_kind kind)
{
    return kind != N_COLLECT && kind != N_DELETE && kind != N_PUT && kind != N_LOOK;
}

bool call_end(struct ncall *c, belay_rc rc)
{
    struct sim *s = c->actor->sim;

    if (s->running->dead)
        return false;
    c->actor->noun = NULL;
    c->returned = true;
    c->rc = rc;
    trace(s, "returned", c->actor->id, (uint64_t)rc);
    if (s->rule)
        return false;
    if (rc && rc != BELAY_UNKNOWN_OUTCOME && is_single(c->kind) && c->n_at > 0)
        violation(s, "once", "%s: answered %s and changed something", kinds[c->kind],
                  belay_error_info((int)rc)->name);
    return s->rule == NULL;
}
