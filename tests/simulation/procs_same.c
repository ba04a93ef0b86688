/* Whether two states are the same: what the rules make of one, and what was found. */
#include "procs.h"

static const char *leases_differ(const struct please *a, const struct please *b)
{
    if (a->fence != b->fence)
        return "L2: another fence than the rules give";
    return a->owner == b->owner && a->token == b->token && a->id == b->id &&
                   a->claimed_ms == b->claimed_ms && a->expires_ms == b->expires_ms &&
                   a->who.member == b->who.member && a->who.boot == b->who.boot
               ? NULL
               : "L4: another lease than the rules give";
}

static const char *processes_differ(const struct pproc *a, const struct pproc *b)
{
    if (a->there != b->there || a->deleting != b->deleting || a->specs != b->specs)
        return "D1: a process is there, or is not, against the rules";
    if (!a->there)
        return NULL;
    if (a->status != b->status || a->has_end != b->has_end ||
        a->terminal_seq != b->terminal_seq || a->output != b->output)
        return "D2: a process has ended, or has not, against the rules";
    if (a->first != b->first || a->last != b->last)
        return "E1: another event is the first or the last than by the rules";
    if (a->hash != b->hash || a->ref != b->ref)
        return "D1: a process is another one than was registered";
    if (a->created_ms != b->created_ms || a->updated_ms != b->updated_ms ||
        a->finished_ms != b->finished_ms || a->retention_ms != b->retention_ms ||
        a->purge_ms != b->purge_ms)
        return "D1: a time of a process is not what the rules give";
    return leases_differ(&a->lease, &b->lease);
}

static const char *wakes_differ(const struct pevent *a, const struct pevent *b)
{
    const struct pwake *x = &a->wake, *y = &b->wake;

    if (x->state != y->state || x->batch != y->batch)
        return "P3: a wake went elsewhere than the rules send it";
    if (a->marked != b->marked)
        return "P3: a wake may come again, or may not, against the rules";
    return x->session == y->session && x->frame == y->frame && x->dedupe == y->dedupe &&
                   x->created_ms == y->created_ms && x->settled_ms == y->settled_ms
               ? NULL
               : "P4: a wake is another one than the rules give";
}

static const char *events_differ(const struct pevent *a, const struct pevent *b)
{
    if (a->type != b->type || a->key != b->key || a->payload != b->payload ||
        a->at_ms != b->at_ms)
        return "E3: an event has another content than was appended";
    if (a->terminal != b->terminal || a->authority != b->authority ||
        a->fence != b->fence)
        return "E3: an event means something else than its type says";
    return a->wake.state || b->wake.state ? wakes_differ(a, b) : NULL;
}

static const char *grants_differ(const struct pstate *a, const struct pstate *b)
{
    if (a->n_grants != b->n_grants)
        return "P6: another number of grants than the rules give";
    for (size_t i = 0; i < a->n_grants; i++) {
        const struct pgrant *x = &a->grant[i];
        const struct pgrant *y =
            pgrant_at(b, (struct pscope){ x->session, x->frame }, x->proc);
        if (!y)
            return "P6: a grant is missing";
        if (x->kind != y->kind || x->label != y->label || x->at_ms != y->at_ms)
            return "P6: a grant says something else";
    }
    return NULL;
}

static const char *batches_differ(const struct pstate *a, const struct pstate *b)
{
    if (a->n_batches != b->n_batches)
        return "P3: another number of batches than there are wakes for";
    for (size_t i = 0; i < a->n_batches; i++) {
        const struct pbatch *x = &a->batch[i];
        const struct pbatch *y = pbatch_at(b, x->session, x->seq);
        if (!y || x->proc != y->proc || x->wake_seq != y->wake_seq)
            return "P3: a batch is missing, or that of another wake";
        if (x->sources != y->sources)
            return "P3: a batch has another source key than it may";
        if (x->lease != y->lease || x->expires_ms != y->expires_ms)
            return "L4: a batch is held otherwise";
    }
    return NULL;
}

static const char *changes_differ(const struct pstate *a, const struct pstate *b)
{
    if (a->n_changes != b->n_changes)
        return "E2: the feed tells of more or less than has changed";
    for (size_t i = 0; i < a->n_changes; i++) {
        const struct pchange *x = &a->change[i], *y = &b->change[i];
        if (x->proc != y->proc || x->kind != y->kind || x->status != y->status ||
            x->seq != y->seq || x->at_ms != y->at_ms)
            return "E2: the feed tells something else than has changed";
    }
    return NULL;
}

const char *pstate_differs(const struct pstate *a, const struct pstate *b)
{
    const char *fault = NULL;

    for (unsigned i = 0; i < P_PROCS && !fault; i++)
        fault = processes_differ(&a->proc[i], &b->proc[i]);
    if (!fault && a->n_events != b->n_events)
        fault = "E1: another number of events than the rules give";
    for (size_t i = 0; i < a->n_events && !fault; i++) {
        const struct pevent *e = pevent_at(b, a->event[i].proc, a->event[i].seq);
        fault = e ? events_differ(&a->event[i], e) : "E1: an event is missing";
    }
    if (!fault)
        fault = grants_differ(a, b);
    if (!fault)
        fault = batches_differ(a, b);
    return fault ? fault : changes_differ(a, b);
}
