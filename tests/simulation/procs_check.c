/* What must be true of every state of processes. */
#include "procs.h"

/* --- one process --- */

static const char *log_fault(const struct pstate *st, unsigned at)
{
    const struct pproc *p = &st->proc[at];
    int64_t n = 0;

    for (size_t i = 0; i < st->n_events; i++) {
        const struct pevent *e = &st->event[i];
        if (e->proc != at)
            continue;
        if (!p->there)
            return "D1: events of a process that is gone";
        n++;
        if (e->seq < p->first || e->seq > p->last)
            return "E1: an event outside of those that its process counts";
        if (e->keys != (e->key != 0))
            return "E4: an event's key is not kept, or one that it has not";
    }
    return !p->there || n == p->last - p->first + 1 ? NULL : "E1: a log with gaps";
}

/* Its end is what an event says (E3, D2). */
static const char *end_fault(const struct procs *w, const struct pstate *st,
                             unsigned at)
{
    const struct pproc *p = &st->proc[at];
    const struct pevent *e = pevent_at(st, at, p->terminal_seq);
    unsigned n = 0;

    if (!p->there || p->deleting || w->spoiled[at])
        return NULL;
    for (size_t i = 0; i < st->n_events; i++)
        n += st->event[i].proc == at && st->event[i].terminal;
    bool ended = p->status != BELAY_PROCESS_RUNNING;
    if (n > 1)
        return "D2: a process has ended twice";
    if (ended != (n == 1) || ended != p->has_end || ended != (p->terminal_seq > 0) ||
        (ended && (!e || e->terminal != p->status)))
        return "E3: a state that no event tells of, or an event without its state";
    if (ended != (p->finished_ms >= 0) || ended != (p->purge_ms >= 0))
        return "E3: half an end";
    if (ended && e->at_ms != p->finished_ms)
        return "E3: it ended at another time than the event says";
    return NULL;
}

static const char *place_fault(const struct pproc *p)
{
    static const char *const words[] = { "deleting", "running", "completed", "failed",
                                         "cancelled" };

    if (!p->there)
        return p->listed + p->owned + p->by_status == 0 && !p->specs && !p->has_end &&
                       !p->ref
                   ? NULL
                   : "D1: something is left of a process that is gone";
    if (p->status < 0)
        return "D2: a status that is none";
    if (p->by_status != 1 || p->status_index != pstr(words[p->status]) ||
        p->status_rank != (p->purge_ms >= 0 ? p->purge_ms : 0))
        return "D1: a process does not stand where its status says";
    if (p->listed != !p->deleting || p->owned != !p->deleting ||
        (p->listed && p->listed_rank != p->created_ms))
        return "D1: a process is not listed, or one that is being removed";
    if (p->specs == p->deleting)
        return "D1: a process without its registration";
    return NULL;
}

static const char *lease_fault(const struct procs *w, const struct pproc *p,
                               unsigned at)
{
    const struct please *l = &p->lease;
    bool held = l->owner != 0;

    if (!p->there)
        return NULL;
    if (held != (l->id != 0) || held != (l->token != 0) || held != (l->expires_ms >= 0))
        return "L4: half a lease";
    if (held && l->fence <= 0)
        return "L2: a lease without a fence";
    return l->fence > w->fence[at] ? "L2: a fence that nobody was granted" : NULL;
}

/* --- wakes --- */

static const char *wake_fault(const struct pstate *st, const struct pevent *e)
{
    const struct pwake *k = &e->wake;

    if ((k->dedupe != 0) != (k->state != 0) || e->wakes != (k->state != 0))
        return "P3: an event that wakes has no wake, or another one has";
    if (k->state < 0)
        return "P3: a state of a wake that is none";
    bool queued = k->state == BELAY_WAKE_QUEUED;
    if (k->ranks != queued)
        return "P3: a wake that is queued does not stand among those, or another one";
    if (queued != (k->settled_ms < 0) && k->state != 0)
        return "P4: a wake is settled without a time, or the other way round";
    const struct pbatch *b = pbatch_at(st, k->session, k->batch);
    if (queued && (!b || b->proc != e->proc || b->wake_seq != e->seq))
        return "P3: a wake that is queued has no batch";
    return NULL;
}

/* One of a target and dedupe key at most is to come, or has come (P3). */
static const char *twins_fault(const struct pstate *st)
{
    for (size_t i = 0; i < st->n_events; i++) {
        const struct pevent *a = &st->event[i];
        for (size_t k = 0; k < i && a->marked; k++) {
            const struct pevent *b = &st->event[k];
            if (b->marked && b->wake.dedupe == a->wake.dedupe &&
                b->wake.session == a->wake.session && b->wake.frame == a->wake.frame)
                return "P3: two wakes of one target and dedupe key";
        }
    }
    return NULL;
}

/* --- grants --- */

static const char *counts_fault(const struct pstate *st)
{
    int64_t of_proc[P_PROCS] = { 0 }, of_session[P_SESSIONS] = { 0 };

    for (size_t i = 0; i < st->n_grants; i++) {
        const struct pgrant *g = &st->grant[i];
        if (g->proc >= P_PROCS || g->session >= P_SESSIONS)
            return "model: a grant of nobody";
        if (!st->proc[g->proc].there)
            return "P6: a grant of a process that is gone";
        if (g->ranks != 7)
            return "P6: a grant does not stand in all of its lists";
        of_proc[g->proc]++;
        of_session[g->session]++;
    }
    for (unsigned i = 0; i < P_PROCS; i++) {
        if (of_proc[i] != st->of_proc[i])
            return "P6: grants of a process do not add up";
    }
    for (unsigned i = 0; i < P_SESSIONS; i++) {
        if (of_session[i] != st->of_session[i])
            return "P6: grants of a session do not add up";
    }
    return NULL;
}

const char *pstate_fault(const struct procs *w, const struct pstate *st)
{
    const char *fault = st->fault;

    for (unsigned i = 0; i < P_PROCS && !fault; i++) {
        fault = place_fault(&st->proc[i]);
        if (!fault)
            fault = log_fault(st, i);
        if (!fault)
            fault = end_fault(w, st, i);
        if (!fault)
            fault = lease_fault(w, &st->proc[i], i);
    }
    for (size_t i = 0; i < st->n_events && !fault; i++)
        fault = wake_fault(st, &st->event[i]);
    if (!fault)
        fault = twins_fault(st);
    return fault ? fault : counts_fault(st);
}
