/* What those do who hold processes, or think so. */
#include "procs.h"

#include <stdio.h>

/* A lease that was ever granted, rather a late one of that process; at times with
 * something wrong about it.  draw 0: the last one, as it is. */
const struct pheld *pheld_any(struct actor *a, unsigned proc, unsigned draw)
{
    struct procs *w = a->sim->procs;
    size_t skip =
        draw && pick_of(a->op, draw, 3) == 0 ? pick_of(a->op, draw + 50, 4) : 0;
    const struct pheld *found = NULL;

    for (size_t i = w->n_held; i-- > 0 && !(found && skip == 0);) {
        if (w->held[i].proc == proc) {
            skip -= found && skip > 0;
            found = &w->held[i];
        }
    }
    if (!found || draw == 0 || pick_of(a->op, draw + 51, 8) > 0 ||
        w->n_held == P_LEASES)
        return found;
    struct pheld *forged = &w->held[w->n_held++];
    *forged = *found;
    forged->proc = P_PROCS; /* never found again */
    forged->lease.lease_id = "00000000000000000000000000000000";
    forged->id = pstr(forged->lease.lease_id);
    return forged;
}

static const char *keep_text(struct procs *w, const char *text)
{
    struct bytes copy;

    return arena_copy(&w->arena, bytes_str(text), &copy) ? (const char *)copy.ptr : "";
}

static void keep_lease(struct pcall *c, const struct belay_process_lease *l)
{
    struct procs *w = c->actor->sim->procs;

    if (w->n_held == P_LEASES)
        return;
    w->held[w->n_held++] = (struct pheld){
        .lease = { .process_id = pname(c->proc),
                   .owner_id = keep_text(w, l->owner_id),
                   .lease_token = keep_text(w, l->lease_token),
                   .lease_id = keep_text(w, l->lease_id),
                   .fence = l->fence,
                   .claimed_at_ms = l->claimed_at_ms,
                   .expires_at_ms = l->expires_at_ms },
        .proc = c->proc,
        .token = pstr(l->lease_token),
        .id = pstr(l->lease_id),
    };
}

void op_please(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    static const int64_t leases_ms[] = { 0, 1, 50, 1000, 30000, 900000, 900000 };
    static const char *const owners[] = { "ann", "bob", "cid" };
    const char *owner = owners[pick_of(a->op, 11, COUNT_OF(owners))];
    const struct belay_process_lease *out = NULL;
    struct belay_error err = { .code = 0 };
    struct proc_site site;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_LEASE, pproc_pick(a));
    c->owner = pstr(owner);
    c->lease_ms = leases_ms[pick_of(a->op, 10, COUNT_OF(leases_ms))];
    belay_rc rc =
        proc_lease(&site, pname(c->proc), owner, c->lease_ms, NULL, &arena, &out, &err);
    if (!pcall_end(c, rc))
        return;
    pcall_judge(c, rc, &err);
    if (rc || a->sim->rule)
        return;
    if (c->changed != 1 && c->lost == 0)
        violation(a->sim, "once", "a lease was granted %u times", c->changed);
    const struct please *now = &a->sim->procs->cur->proc[c->proc].lease;
    if (pis_calm(c) &&
        (now->id != pstr(out->lease_id) || now->token != pstr(out->lease_token) ||
         now->fence != out->fence || now->expires_ms != out->expires_at_ms))
        violation(a->sim, "L2", "a lease says something else than was granted");
    keep_lease(c, out);
}

static void hold_some(struct actor *a, enum pcall_kind kind)
{
    unsigned proc = pproc_pick(a);
    const struct pheld *held = pheld_any(a, proc, 26);
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    int64_t until_ms = 0;
    bool released = false;

    if (!held || !psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, kind, proc);
    struct procs *w = a->sim->procs;
    c->own = *held;
    c->own.proc = proc; /* also where it is made up */
    c->lease = &c->own;
    c->lease_ms = pick_of(a->op, 12, 2) ? 20 : 60000;
    bool held_before = pholds(w->cur, c->lease);
    belay_rc rc = kind == P_RENEW
                      ? proc_renew(&site, &c->own.lease, c->lease_ms, &until_ms, &err)
                      : proc_release(&site, &c->own.lease, &released, &err);
    if (!pcall_end(c, rc))
        return;
    pcall_judge(c, rc, &err);
    if (rc == BELAY_OK && kind == P_RENEW && pis_calm(c) &&
        until_ms != w->cur->proc[proc].lease.expires_ms)
        violation(a->sim, "L6", "a renewal says another time than it wrote");
    if (rc == BELAY_OK && kind == P_RELEASE && released != (c->changed > 0) &&
        c->lost == 0)
        violation(a->sim, "answer", "a lease is said to be given back, and is not");
    if (rc == BELAY_OK && kind == P_RENEW && !held_before)
        violation(a->sim, "L4", "a lease that is dead was renewed");
}

void op_prenew(struct actor *a)
{
    hold_some(a, P_RENEW);
}

void op_prelease(struct actor *a)
{
    hold_some(a, P_RELEASE);
}
