/* Calls of processes: their beginning, what their commits did, their end. */
#include "procs.h"

#include <stdio.h>

void procs_open(struct sim *s)
{
    static struct procs world;

    s->procs = NULL;
    if (!s->setup->procs)
        return;
    struct procs *w = s->procs = &world;
    w->s = s;
    w->old = &w->states[0];
    w->cur = &w->states[1];
    pstate_clear(w->old);
    pstate_clear(w->cur);
    w->no = 0;
    w->n_calls = w->n_held = w->n_lease_ids = w->n_told = w->n_claims = w->n_works = 0;
    w->n_turns = 0;
    w->trimmed = w->n_trimmed = w->n_taken = 0;
    memset(w->fence, 0, sizeof(w->fence));
    memset(w->born, 0, sizeof(w->born));
    memset(w->granted_no, 0, sizeof(w->granted_no));
    memset(w->spoiled, 0, sizeof(w->spoiled));
    memset(w->read, 0, sizeof(w->read));
    memset(w->cursor, 0, sizeof(w->cursor));
    memset(w->hash, 0, sizeof(w->hash));
    arena_init(&w->arena);
}

void procs_close(struct sim *s)
{
    if (!s->procs)
        return;
    arena_release(&s->procs->arena);
    for (unsigned i = 0; i < s->n_fronts; i++) {
        lane_book_close(s->fronts[i].lanes);
        proc_book_close(s->fronts[i].book);
    }
}

/* --- telling --- */

static const char *const kinds[P_CALL_KINDS] = {
    "register", "append", "ref",      "lease",    "renew",  "release",
    "ack",      "grant",  "revoke",   "transfer", "forget", "delete",
    "timers",   "look",   "claim",    "abandon",  "commit", "cancel batch",
    "submit",   "work",   "exec end", "spoil",    "raise",
};

static void complain_of(struct procs *w, const char *complaint, const struct pcall *c)
{
    static const char *const rules[] = { "L1", "L2", "L4", "L7",   "H1", "H2",
                                         "E1", "E2", "E3", "E4",   "D1", "D2",
                                         "P3", "P4", "P6", "model" };
    size_t len = complaint ? strcspn(complaint, ":") : 0;

    for (size_t i = 0; i < COUNT_OF(rules) && complaint; i++) {
        if (strlen(rules[i]) == len && memcmp(rules[i], complaint, len) == 0)
            violation(w->s, rules[i], "%s (%s)", complaint + len + 2,
                      c ? kinds[c->kind] : "nobody");
    }
    if (complaint && !w->s->rule)
        violation(w->s, "model", "no such rule: %s", complaint);
}

/* --- a commit --- */

bool pis_many(const struct pcall *c)
{
    return c->kind == P_DELETE || c->kind == P_TIMERS;
}

static void check_once(struct procs *w, struct pcall *c)
{
    if (c->changed++ > 0 && !pis_many(c))
        violation(w->s, "once", "%s: applied %u times", kinds[c->kind], c->changed);
    if (c->returned && c->rc && c->rc != BELAY_UNKNOWN_OUTCOME)
        violation(w->s, "once", "%s: applied after it was answered %s", kinds[c->kind],
                  belay_error_info((int)c->rc)->name);
}

/* What is remembered of all that there was. */
static void remember(struct procs *w)
{
    size_t before = w->old->n_changes;

    for (unsigned i = 0; i < P_PROCS; i++) {
        const struct pproc *p = &w->cur->proc[i];
        if (p->lease.fence > w->fence[i])
            w->fence[i] = p->lease.fence;
        if (p->there && p->lease.id && p->lease.id != w->old->proc[i].lease.id) {
            if (w->n_lease_ids < P_LEASES)
                w->lease_id[w->n_lease_ids++] = p->lease.id;
            if (w->old->proc[i].lease.id) /* also one that is past due */
                w->taken[w->n_taken++ % P_LEASES] = w->old->proc[i].lease.id;
            w->granted_no[i] = w->no;
        }
        if (p->there && !w->old->proc[i].there) {
            w->born[i] = w->no;
            w->spoiled[i] = false;
        }
    }
    /* What was trimmed is at the beginning: the last ones are new. */
    size_t dropped = w->trimmed;
    w->n_trimmed += dropped;
    w->trimmed = 0;
    for (size_t i = before - dropped; i < w->cur->n_changes; i++) {
        if (w->n_told < P_CHANGES)
            w->told[w->n_told++] = w->cur->change[i];
    }
}

/* Whoever lost its lease to somebody else changes nothing by it any more, whatever the
 * row says. */
static const char *stale_fault(const struct procs *w, const struct pcall *c)
{
    for (size_t i = 0; c->lease && i < w->n_taken && i < P_LEASES; i++) {
        if (w->taken[i] == c->lease->id)
            return "L4: somebody has written by a lease that another was granted";
    }
    return NULL;
}

void procs_commit(struct sim *s, struct bytes ns, struct pcall *c, int64_t now_ms)
{
    struct procs *w = s->procs;
    struct pstate *spare = w->old;
    struct pverdict v = { BELAY_OK, NULL };

    if (s->rule || !bytes_eq(ns, space_bytes(0)))
        return;
    s->n_commits++;
    w->old = w->cur;
    w->cur = spare;
    pstate_read(w, w->cur);
    if (s->setup->verbose)
        printf("# a commit of %s of actor %u at %lld\n", c ? kinds[c->kind] : "nobody",
               c ? c->actor->id : 0, (long long)now_ms);
    bool changed = w->cur->fault || pstate_differs(w->old, w->cur) ||
                   w->old->epoch != w->cur->epoch;
    /* Else it was about something else: a lane, what became of a commit.  (The end of an
     * execution must be told.) */
    if (!changed && !(c && c->kind == P_EXEC_END && now_ms > 0))
        return;
    w->no += changed;
    w->want = *w->old;
    if (c)
        v = pcall_apply(w, c, &w->want, w->cur, now_ms);
    if (v.rc)
        violation(s, v.rc == BELAY_LEASE_LOST ? "L4" : "answer",
                  "%s: applied although the rules say %s (%s)", kinds[c->kind],
                  belay_error_info((int)v.rc)->name, v.reason ? v.reason : "");
    const char *fault = w->cur->fault ? w->cur->fault : w->want.fault;
    complain_of(w, fault ? fault : pstate_differs(&w->want, w->cur), c);
    if (s->rule || !changed)
        return;
    if (c)
        complain_of(w, stale_fault(w, c), c);
    remember(w);
    complain_of(w, pstate_fault(w, w->cur), c);
    if (c && !s->rule)
        check_once(w, c);
}

void procs_time(struct sim *s, int64_t now_ms)
{
    struct actor *a = s->running->actor;

    if (a && a->proc)
        a->proc->now_ms = now_ms;
}

/* --- a call --- */

const struct proc_site *psite(struct actor *a, struct proc_site *out)
{
    struct coroutine *co = a->sim->running;
    struct belay_error err = { .code = 0 };

    *out = (struct proc_site){ .principal = bytes_str("sim"),
                               .host = hosts_of(a->sim, co->front) };
    if (co->dead || a->sim->rule || a->sim->procs->n_calls + 4 > P_CALLS)
        return NULL;
    if (!co->front->book && proc_book_open(&co->front->book, &err))
        return NULL;
    belay_rc rc = store_space(co->front->store, space_bytes(0), &out->space, &err);
    if (rc && !co->dead && rc != BELAY_UNAVAILABLE)
        violation(a->sim, "answer", "opening a space: %s", err.message);
    out->book = co->front->book;
    return rc || co->dead ? NULL : out;
}

struct pcall *pcall_begin(struct actor *a, enum pcall_kind kind, unsigned proc)
{
    struct procs *w = a->sim->procs;
    struct pcall *c = &w->call[w->n_calls++];

    *c = (struct pcall){ .kind = kind,
                         .actor = a,
                         .proc = proc,
                         .good = true,
                         .run_no = w->no,
                         .mourning = mourning_begin(a->sim) };
    a->proc = c;
    trace(a->sim, kinds[kind], a->id, w->no);
    return c;
}

bool pcall_end(struct pcall *c, belay_rc rc)
{
    struct sim *s = c->actor->sim;

    if (s->running->dead)
        return false;
    c->actor->proc = NULL;
    c->returned = true;
    c->rc = rc;
    trace(s, "returned", c->actor->id, (uint64_t)rc);
    if (s->rule)
        return false;
    if (rc && rc != BELAY_UNKNOWN_OUTCOME && c->changed > 0 && !pis_many(c))
        violation(s, "once", "%s: answered %s and changed something", kinds[c->kind],
                  belay_error_info((int)rc)->name);
    return s->rule == NULL;
}

bool pis_calm(const struct pcall *c)
{
    uint64_t own = pis_many(c) ? 0 : c->changed;

    return c->lost == 0 && c->run_no + own == c->actor->sim->procs->no;
}

static bool is_trouble(const struct pcall *c, belay_rc rc)
{
    const struct sim *s = c->actor->sim;

    if (rc == BELAY_UNAVAILABLE)
        return s->swarm.rate[SIM_UNAVAILABLE] > 0 || s->swarm.rate[SIM_OUTAGE] > 0 ||
               s->swarm.loses_replies;
    if (rc == BELAY_UNKNOWN_OUTCOME)
        return c->lost > 0;
    return rc == BELAY_CONTENTION;
}

void pcall_judge(struct pcall *c, belay_rc rc, const struct belay_error *err)
{
    struct procs *w = c->actor->sim->procs;
    const char *name = belay_error_info((int)rc)->name;

    if (rc && is_trouble(c, rc))
        return;
    if (c->changed > 0 ||
        !pis_calm(c)) /* its commit was judged; or others were there */
        return;
    w->want = *w->cur;
    struct pverdict v = pcall_apply(w, c, &w->want, NULL, c->now_ms);
    if (v.rc != rc)
        violation(w->s, "answer", "%s answered %s (%s), by the rules it is %s (%s): %s",
                  kinds[c->kind], name, rc ? err->reason : "",
                  belay_error_info((int)v.rc)->name, v.reason ? v.reason : "",
                  rc ? err->message : "");
    else if (rc && v.reason && strcmp(v.reason, err->reason) != 0)
        violation(w->s, "answer", "%s answered %s for %s, by the rules it is %s",
                  kinds[c->kind], name, err->reason, v.reason);
    else if (!rc && c->kind != P_LEASE && c->kind != P_DELETE &&
             pstate_differs(&w->want, w->cur))
        violation(w->s, "once", "%s: answered, and nothing was changed: %s",
                  kinds[c->kind], pstate_differs(&w->want, w->cur));
}
