/* What must be true when everything is quiet: the feed is read to its end, events and wakes
 * as they are, and whatever is removed leaves nothing behind. */
#include "procs.h"

#include "work/check.h"

#define ROUNDS_MAX 200

void procs_audit_begin(struct actor *a)
{
    a->sim->procs->cursor[a->id][0] = 0;
    a->sim->procs->read[a->id] = 0;
}

static void read_all(struct actor *a)
{
    const struct procs *w = a->sim->procs;

    for (int i = 0; i < ROUNDS_MAX && pdo_changes(a) && !a->sim->rule; i++)
        continue;
    if (!a->sim->rule && w->read[a->id] != w->n_told && w->n_trimmed < w->n_told)
        violation(a->sim, "E2", "%zu of %zu changes are in the feed", w->read[a->id],
                  w->n_told);
    for (unsigned i = 0; i < P_PROCS && !a->sim->rule; i++) {
        pdo_events(a, i, 0, false);
        pdo_events(a, i, 0, true);
    }
}

static void remove_all(struct actor *a)
{
    const struct pstate *st;

    for (unsigned i = 0; i < P_SESSIONS && !a->sim->rule; i++)
        pdo_forget(a, i, true);
    for (unsigned i = 0; i < P_PROCS && !a->sim->rule; i++)
        pdo_delete(a, i, true);
    st = a->sim->procs->cur;
    for (unsigned i = 0; i < P_PROCS && !a->sim->rule; i++) {
        if (st->proc[i].there)
            violation(a->sim, "liveness", "process %u cannot be removed", i);
    }
    if (!a->sim->rule && (st->n_events > 0 || st->n_grants > 0))
        violation(a->sim, "D1", "something is left of processes that are gone");
}

void procs_audit(struct actor *a)
{
    switch (a->op->number) {
    case 0:
        read_all(a);
        return;
    case 1:
        remove_all(a);
        return;
    default:
        return;
    }
}
