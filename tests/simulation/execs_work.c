/* What workers do: claim, and what a holder does without ending anything. */
#include "execs.h"

#include <stdio.h>
#include <stdlib.h>

/* --- claiming --- */

static const char *const workers[] = { "ann", "bob" };

void xpolicy_make(struct actor *a, unsigned base, struct xpolicy *out, struct xcall *c)
{
    static const int64_t leases_ms[] = { -1, 1, 20, 300, 3000, 30000, 0 };
    static const unsigned has[] = { 3, 3, 3, 1, 2, 0 };
    const struct op *op = a->op;
    unsigned n_lanes = a->sim->swarm.n_keys, first = pick_of(op, base, n_lanes);
    /* What was read ahead is of use to whoever asks the same again. */
    bool same = a->sim->swarm.seen && pick_of(op, base + 7, 8) > 0;

    c->has = has[same ? 0 : pick_of(op, base + 1, COUNT_OF(has))];
    out->p = (struct belay_claim_policy){
        .size = sizeof(out->p),
        .lanes = out->lanes,
        .worker = workers[pick_of(op, base + 2, 2)],
        .capabilities = out->has,
        .max = pick_of(op, base + 3, 3) ? 1 : pick_of(op, base + 4, X_ITEMS + 1),
        .lease_ms = leases_ms[pick_of(op, base + 5, COUNT_OF(leases_ms))],
    };
    c->lanes = 0;
    for (unsigned i = 0; i < n_lanes; i++) {
        if (i != first && !same && pick_of(op, base + 6, 3) == 0)
            continue;
        out->lanes[out->p.n_lanes++] = xlane(i);
        c->lanes |= 1U << i;
    }
    if ((c->has & 1U) != 0)
        out->has[out->p.n_capabilities++] = "a";
    if ((c->has & 2U) != 0)
        out->has[out->p.n_capabilities++] = "b";
    c->max = out->p.max > 0 ? out->p.max : 1;
    c->worker = xstr(out->p.worker);
    c->ttl_ms = out->p.lease_ms < 0    ? 0
                : out->p.lease_ms == 0 ? BELAY_EXECUTION_LEASE_MS
                                       : out->p.lease_ms;
    c->claims = true;
}

/* The work that was handed out is what was granted, all of it. */
void xworks_take(struct xcall *c, const struct belay_work *work, size_t n)
{
    struct execs *w = c->actor->sim->execs;

    if (n != c->n_granted)
        violation(w->s, "L8", "%zu were granted, and %zu handed out", c->n_granted, n);
    for (size_t i = 0; i < n && !w->s->rule; i++) {
        const struct xhandle *h = xhandle_keep(w, &work[i].handle);
        bool same = false;
        for (size_t k = 0; k < c->n_granted; k++) {
            const struct xgranted *g = &c->granted[k];
            same |= g->execution == h->execution && g->token == h->token &&
                    g->lease == h->lease && g->fence == h->fence &&
                    work[i].fence == g->fence &&
                    work[i].expires_at_ms == g->expires_ms &&
                    h->lease_ms == c->ttl_ms && work[i].attempt == h->attempt &&
                    xstr(work[i].execution_id) == g->execution;
        }
        if (!same)
            violation(w->s, "L8", "other work was handed out than was granted");
    }
}

/* Nothing was claimed: then there was nothing. */
static void check_nothing(struct xcall *c)
{
    struct execs *w = c->actor->sim->execs;
    const struct xrow *want[X_ROWS];

    if (c->n_granted > 0)
        violation(w->s, "L8", "something was granted and not handed out");
    else if (xis_calm(c) && xis_alone(c) &&
             xexpected(w, w->cur, c, c->now_ms, want) > 0)
        violation(w->s, "L12", "nothing was claimed although it was the turn of %s",
                  want[0]->name);
}

size_t xdo_claim(struct actor *a, struct xpolicy *p, const struct xhandle *out[X_ITEMS])
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct execs *w = a->sim->execs;
    struct belay_works works = { .n = 0 };
    struct exec_site site;
    struct belay_error err;
    size_t n = 0;

    if (!xsite(a, &site))
        return 0;
    struct xcall *c = xcall_begin(a, X_CLAIM);
    xpolicy_make(a, 30, p, c);
    belay_rc rc = exec_claim(&site, &p->p, &arena, &works, &err);
    if (!xcall_end(c, rc))
        return 0;
    if (rc) {
        xcall_refuse(c, rc, &err);
        return 0;
    }
    size_t before = w->n_handles;
    if (works.n == 0)
        check_nothing(c);
    else
        xworks_take(c, works.work, works.n);
    for (size_t i = before; i < w->n_handles && n < X_ITEMS; i++)
        out[n++] = &w->handle[i];
    return n;
}

void op_xclaim(struct actor *a)
{
    const struct xhandle *got[X_ITEMS];
    struct xpolicy p;

    (void)xdo_claim(a, &p, got);
}

/* --- what a holder is told --- */

/* A refusal is true; returns whether the call was refused, or in trouble. */
bool xrefused(struct xcall *c, const struct xhandle *h, belay_rc rc,
              const struct belay_error *err)
{
    struct execs *w = c->actor->sim->execs;
    const char *reason;

    if (rc == BELAY_OK)
        return false;
    if (rc == BELAY_NOT_FOUND) {
        if (xrow_at(w->cur, h->execution))
            violation(w->s, "L5", "an execution is said to be gone and is not");
        return true;
    }
    if (rc != BELAY_LEASE_LOST) {
        xcall_refuse(c, rc, err);
        return true;
    }
    reason = xlost_reason(w->cur, h);
    if (xholds(w->cur, h))
        violation(w->s, "L5", "who holds was told otherwise: %s", err->reason);
    else if (c->changed == 0 && !c->claims && xis_calm(c) &&
             strcmp(reason, err->reason) != 0)
        violation(w->s, "L4", "a lease is %s, and was said to be %s", reason,
                  err->reason);
    return true;
}

static struct xcall *begin(struct actor *a, enum xcall_kind kind,
                           const struct xhandle *h, struct exec_site *site)
{
    if (!xsite(a, site))
        return NULL;
    struct xcall *c = xcall_begin(a, kind);
    c->handle[c->n_handles++] = h;
    c->id = h->execution;
    return c;
}

belay_rc xdo_renew(struct actor *a, const struct xhandle *h, int64_t ttl_ms)
{
    struct execs *w = a->sim->execs;
    struct belay_lease_renewal out = { .expires_at_ms = 0 };
    bool held = xholds(w->cur, h);
    struct exec_site site;
    struct belay_error err;
    struct xcall *c = begin(a, X_RENEW, h, &site);

    if (!c)
        return BELAY_UNAVAILABLE;
    c->ttl_ms = ttl_ms > 0 ? ttl_ms : h->lease_ms;
    belay_rc rc = exec_renew(&site, &h->h, ttl_ms, &out, &err);
    if (!xcall_end(c, rc) || xrefused(c, h, rc, &err))
        return BELAY_UNAVAILABLE;
    if (!held)
        violation(w->s, "L4", "a lease that is not held was said to be renewed");
    else if (out.fence != h->fence || out.expires_at_ms < c->now_ms + c->ttl_ms)
        violation(w->s, "L6", "a renewal says another time than was asked for");
    return rc;
}

void xdo_progress(struct actor *a, const struct xhandle *h)
{
    bool held = xholds(a->sim->execs->cur, h);
    struct exec_site site;
    struct belay_error err;
    struct xcall *c = begin(a, X_PROGRESS, h, &site);

    if (!c)
        return;
    belay_rc rc = exec_progress(&site, &h->h, (int)pick_of(a->op, 60, 101),
                                pick_of(a->op, 61, 2) ? "half way" : NULL, &err);
    if (xcall_end(c, rc) && !xrefused(c, h, rc, &err) && (!held || c->changed != 1))
        violation(a->sim, held ? "L9" : "L4", "progress was told to nobody");
}

void xdo_frames(struct actor *a, const struct xhandle *h)
{
    struct belay_frame_appended out = { .seq = 0 };
    struct belay_frame frames[3];
    struct exec_site site;
    struct belay_error err;
    struct xcall *c = begin(a, X_FRAMES, h, &site);

    if (!c)
        return;
    c->frames = 1 + pick_of(a->op, 62, COUNT_OF(frames));
    c->first_seq = pick_of(a->op, 63, 3) ? 1 + pick_of(a->op, 64, 5) : 0;
    for (unsigned i = 0; i < c->frames; i++)
        frames[i] = (struct belay_frame){ .size = sizeof(frames[i]),
                                          .bytes = "line\n",
                                          .len = 5,
                                          .seq = c->first_seq ? c->first_seq + i : 0 };
    belay_rc rc = exec_append_frames(&site, &h->h, frames, c->frames, &out, &err);
    if (!xcall_end(c, rc) || xrefused(c, h, rc, &err))
        return;
    const struct xhead *head = xhead_at(a->sim->execs->cur, h->execution, h->attempt);
    if (xis_calm(c) && (!head || head->last != out.seq))
        violation(a->sim, "frames", "the last one is said to be another");
    if (c->first_seq == 0 && c->changed != 1)
        violation(a->sim, "frames", "acknowledged and not there");
}

/* --- as operations --- */

void op_xrenew(struct actor *a)
{
    static const int64_t ttls_ms[] = { 0, 1, 300, 5000, 60000 };
    const struct xhandle *h = xhandle_any(a, pick_of(a->op, 3, 1U << 30));

    if (h)
        (void)xdo_renew(a, h, ttls_ms[pick_of(a->op, 4, COUNT_OF(ttls_ms))]);
}

void op_xprogress(struct actor *a)
{
    const struct xhandle *h = xhandle_any(a, pick_of(a->op, 3, 1U << 30));

    if (h)
        xdo_progress(a, h);
}

void op_xframes(struct actor *a)
{
    const struct xhandle *h = xhandle_any(a, pick_of(a->op, 3, 1U << 30));

    if (h)
        xdo_frames(a, h);
}

/* Ends it in one of the ways. */
static void end_some(struct actor *a, const struct xhandle *const *h, size_t n)
{
    switch (pick_of(a->op, 70, 10)) {
    case 0:
    case 1:
        xdo_fail(a, h, n, 1 + (int)pick_of(a->op, 71, 5));
        break;
    case 2:
        xdo_pause(a, h[0], X_DELAY);
        break;
    case 3:
        xdo_pause(a, h[0], X_RELEASE);
        break;
    case 4:
        xdo_pause(a, h[0], X_ABORT);
        break;
    case 5: /* dead, or forgets it */
        break;
    default:
        xdo_complete(a, h, n, pick_of(a->op, 72, 3) == 0);
        break;
    }
}

/* A worker: claims, works for a while, ends it; at times it is too late. */
void op_xwork(struct actor *a)
{
    const struct xhandle *h[X_ITEMS];
    struct coroutine *co = a->sim->running;
    int64_t longest_us = 1 + (int64_t)(1 << pick_of(a->op, 5, 23));
    struct xpolicy p;
    size_t n = xdo_claim(a, &p, h);

    if (n == 0 || co->dead)
        return;
    turn_sleep(a->sim, (int64_t)pick_of(a->op, 6, (unsigned)longest_us));
    if (!co->dead && pick_of(a->op, 7, 3) == 0)
        (void)xdo_renew(a, h[0], 200);
    if (!co->dead && pick_of(a->op, 8, 4) == 0)
        xdo_frames(a, h[0]);
    if (!co->dead && pick_of(a->op, 10, 5) == 0)
        xdo_progress(a, h[0]);
    if (co->dead)
        return;
    end_some(a, h, n);
    if (!co->dead && pick_of(a->op, 9, 6) == 0)
        end_some(a, h, n); /* once more, as if nothing was heard */
}

/* Ends something that anybody was ever granted: mostly that is stale. */
void op_xfinish(struct actor *a)
{
    const struct xhandle *h[2] = { xhandle_any(a, pick_of(a->op, 3, 1U << 30)),
                                   xhandle_any(a, pick_of(a->op, 4, 1U << 30)) };

    if (h[0])
        end_some(a, h, pick_of(a->op, 5, 3) ? 1 : 2);
}

/* Calls with a handle that somebody has made up. */
void op_xforge(struct actor *a)
{
    const struct xhandle *h = xhandle_any(a, pick_of(a->op, 3, 1U << 30));

    if (!h)
        return;
    h = xhandle_forged(a, h, pick_of(a->op, 4, 1U << 20));
    switch (pick_of(a->op, 5, 5)) {
    case 0:
        (void)xdo_renew(a, h, 1000);
        break;
    case 1:
        xdo_frames(a, h);
        break;
    case 2:
        xdo_progress(a, h);
        break;
    default:
        end_some(a, &h, 1);
        break;
    }
}
