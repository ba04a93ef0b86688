/* What actors read of processes: events, wakes, grants, and what has changed. */
#include "procs.h"

#include <stdio.h>

/* A process that was there all the time: what is read of it is of that one. */
static bool is_same(const struct pcall *c, uint64_t born, uint64_t no)
{
    const struct procs *w = c->actor->sim->procs;

    return w->born[c->proc] == born && w->cur->proc[c->proc].there &&
           !w->cur->proc[c->proc].deleting && no >= born;
}

/* What was read is there, and nothing between is missing (E1, E2). */
static void check_events(struct pcall *c, const struct belay_process_events *out,
                         int64_t after, bool wakes, uint64_t born, uint64_t no)
{
    struct procs *w = c->actor->sim->procs;
    bool same = is_same(c, born, no);

    for (size_t i = 0; i < out->n; i++) {
        const struct belay_process_event *e = &out->items[i];
        const struct pevent *found = pevent_at(w->cur, c->proc, e->sequence);
        int64_t before = i == 0 ? after : out->items[i - 1].sequence;
        if (wakes ? e->sequence <= before : e->sequence != before + 1) {
            violation(w->s, "E2", "event %lld was read behind %lld",
                      (long long)e->sequence, (long long)before);
            return;
        }
        if (same &&
            (!found || found->type != pstr(e->event_type) ||
             found->payload != pstr(e->payload) || found->at_ms != e->occurred_at_ms))
            violation(w->s, "E1", "event %lld is read as another one",
                      (long long)e->sequence);
    }
    if (!pis_calm(c))
        return;
    int64_t want = 0;
    for (size_t i = 0; i < w->cur->n_events; i++) {
        const struct pevent *e = &w->cur->event[i];
        want += e->proc == c->proc && e->seq > after &&
                (!wakes || e->wake.state == BELAY_WAKE_QUEUED);
    }
    if ((int64_t)out->n != want)
        violation(w->s, "E2", "%zu of %lld events were read", out->n, (long long)want);
}

void pdo_events(struct actor *a, unsigned proc, int64_t after, bool wakes)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct procs *w = a->sim->procs;
    const struct belay_process_event_request request = { .size = sizeof(request),
                                                         .wakes_only = wakes,
                                                         .process_id = pname(proc),
                                                         .after = after,
                                                         .limit = 1000 };
    struct belay_process_events out = { .n = 0 };
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    uint64_t born = w->born[proc], no = w->no;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_LOOK, proc);
    belay_rc rc = proc_events(&site, &request, &arena, &out, &err);
    if (!pcall_end(c, rc))
        return;
    const struct pproc *p = &w->cur->proc[proc];
    if (rc == BELAY_NOT_FOUND && pis_calm(c) && p->there && !p->deleting)
        violation(a->sim, "answer", "a process that is there was not found");
    else if (rc && rc != BELAY_NOT_FOUND)
        pcall_judge(c, rc, &err);
    else if (rc == BELAY_OK)
        check_events(c, &out, after, wakes, born, no);
}

/* --- wakes --- */

static void look_wakes(struct actor *a, unsigned proc)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct procs *w = a->sim->procs;
    const struct belay_wake_page page = { .size = sizeof(page),
                                          .all = pick_of(a->op, 6, 2),
                                          .process_id = pname(proc),
                                          .limit = 1000 };
    struct belay_wakes out = { .n = 0 };
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    size_t want = 0;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_LOOK, proc);
    belay_rc rc = proc_wakes(&site, &page, &arena, &out, &err);
    if (!pcall_end(c, rc) || rc || !pis_calm(c))
        return;
    for (size_t i = 0; i < w->cur->n_events; i++) {
        const struct pevent *e = &w->cur->event[i];
        if (e->proc != proc || e->wake.state == 0 ||
            (!page.all && e->wake.state != BELAY_WAKE_QUEUED))
            continue;
        want++;
        bool found = false;
        for (size_t k = 0; k < out.n; k++)
            found |= out.items[k].sequence == e->seq &&
                     out.items[k].state == e->wake.state &&
                     out.items[k].enqueue_seq == e->wake.batch;
        if (!found)
            violation(a->sim, "P4", "wake %lld is not told as it is",
                      (long long)e->seq);
    }
    if (out.n != want)
        violation(a->sim, "P4", "%zu of %zu wakes were told", out.n, want);
}

/* --- grants --- */

static void look_grants(struct actor *a, unsigned proc)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct procs *w = a->sim->procs;
    struct pscope scope = pscope_pick(a->op, 6);
    bool of_scope = pick_of(a->op, 8, 2), live = pick_of(a->op, 9, 2);
    struct belay_grant_page page = { .size = sizeof(page),
                                     .live = live,
                                     .limit = 1000 };
    struct belay_process_grants out = { .n = 0 };
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    size_t want = 0;

    if (!psite(a, &site))
        return;
    if (of_scope)
        page.scope = pscope_public(scope);
    else
        page.process_id = pname(proc);
    struct pcall *c = pcall_begin(a, P_LOOK, proc);
    belay_rc rc = proc_grants(&site, &page, &arena, &out, &err);
    if (!pcall_end(c, rc) || rc || !pis_calm(c))
        return;
    for (size_t i = 0; i < w->cur->n_grants; i++) {
        const struct pgrant *g = &w->cur->grant[i];
        const struct pproc *p = &w->cur->proc[g->proc];
        bool listed = of_scope ? g->session == scope.session && g->frame == scope.frame
                               : g->proc == proc;
        want += listed && !p->deleting && (!live || p->status == BELAY_PROCESS_RUNNING);
    }
    if (out.n != want)
        violation(a->sim, "P6", "%zu of %zu grants were listed", out.n, want);
}

void op_plook(struct actor *a)
{
    unsigned proc = pproc_pick(a);

    switch (pick_of(a->op, 2, 5)) {
    case 0:
        look_wakes(a, proc);
        return;
    case 1:
        look_grants(a, proc);
        return;
    case 2:
        pdo_events(a, proc, 0, true);
        return;
    default:
        pdo_events(a, proc, pick_of(a->op, 3, 4), false);
    }
}

/* --- what has changed --- */

/* One page behind what this actor has read: nothing is missing, in order (E2). */
bool pdo_changes(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct procs *w = a->sim->procs;
    char *cursor = w->cursor[a->id];
    const struct belay_change_request request = { .size = sizeof(request),
                                                  .after = cursor[0] ? cursor : NULL,
                                                  .limit = 1 + pick_of(a->op, 2, 9) };
    struct belay_process_changes out = { .n = 0 };
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    size_t *at = &w->read[a->id];

    if (!psite(a, &site))
        return false;
    struct pcall *c = pcall_begin(a, P_LOOK, 0);
    belay_rc rc = proc_changes(&site, &request, &arena, &out, &err);
    if (!pcall_end(c, rc))
        return false;
    if (rc)
        pcall_judge(c, rc, &err);
    if (rc)
        return false;
    for (size_t i = 0; i < out.n && !a->sim->rule; i++, (*at)++) {
        const struct belay_process_change *o = &out.items[i];
        /* Only what is old is not kept: that may be missing. */
        while (w->n_trimmed > *at && *at < w->n_told && (out.trimmed || !cursor[0]))
            (*at)++;
        const struct pchange *t = &w->told[*at];
        if (*at >= w->n_told || t->proc != pname_of(bytes_str(o->process_id)) ||
            t->kind != o->kind || t->seq != o->sequence || t->at_ms != o->at_ms)
            violation(a->sim, "E2", "change %zu is read as another one", *at);
    }
    if (pis_calm(c) && out.n == 0 && *at < w->n_told && w->n_trimmed <= *at)
        violation(a->sim, "E2", "%zu of %zu changes can be read", *at, w->n_told);
    if (out.cursor)
        (void)snprintf(cursor, sizeof(w->cursor[0]), "%s", out.cursor);
    return out.n > 0;
}

void op_pchanges(struct actor *a)
{
    (void)pdo_changes(a);
}
