/* Which steps a commit of a call has taken: each execution whose row has changed is
 * explained by one or two of those that the call may take. */
#include "execs.h"

#include <stdio.h>

#define MAY(step) (1U << (step))
#define BY_TIME                                                                        \
    (MAY(XS_PROMOTE) | MAY(XS_EXPIRE) | MAY(XS_TIMEOUT_RETRY) | MAY(XS_TIMEOUT_FAIL) | \
     MAY(XS_LOSE) | MAY(XS_CAP) | MAY(XS_UNGRANT) | MAY(XS_MOVE))

static const unsigned may[X_CALL_KINDS] = {
    [X_SUBMIT] = MAY(XS_CREATE),
    [X_CLAIM] = BY_TIME | MAY(XS_TAKE),
    [X_RENEW] = MAY(XS_RENEW),
    [X_COMPLETE] = MAY(XS_COMPLETE),
    [X_FAIL] = MAY(XS_RETRY) | MAY(XS_FAIL),
    [X_DELAY] = MAY(XS_DELAY),
    [X_RELEASE] = MAY(XS_RELEASE),
    [X_ABORT] = MAY(XS_ABORT),
    [X_CANCEL] = MAY(XS_CANCEL),
    [X_REPLAY] = MAY(XS_REPLAY),
    [X_PRIORITY] = MAY(XS_PRIORITY),
    [X_REVOKE] = MAY(XS_REVOKE) | MAY(XS_REVOKE_CAP),
    [X_GRANT] = BY_TIME | MAY(XS_SET_ASIDE),
    [X_GRANT_ONE] = BY_TIME | MAY(XS_SET_ASIDE),
    [X_REDEEM] = MAY(XS_TAKE),
    [X_TIMERS] = BY_TIME | MAY(XS_PURGE),
    [X_MOURN] = MAY(XS_EXPIRE) | MAY(XS_TIMEOUT_RETRY) | MAY(XS_TIMEOUT_FAIL) |
                MAY(XS_LOSE) | MAY(XS_CAP),
};

static unsigned may_of(const struct xcall *c)
{
    return may[c->kind] | (c->claims ? may[X_CLAIM] : 0);
}

/* --- comparing --- */

/* How many columns differ, and the first one. */
static unsigned misfits(const struct xtry *t, unsigned *first)
{
    unsigned n = 0;

    if (!t->to)
        return t->there ? EXEC_COLUMNS : 0;
    if (!t->there)
        return EXEC_COLUMNS;
    for (unsigned i = EXEC_COLUMNS; i-- > 1;) {
        if (t->row.v[i] == t->to->v[i])
            continue;
        n++;
        *first = i;
    }
    return n;
}

struct explanation {
    struct xtry best;
    unsigned misfits, first;
    enum xstep steps[2];
    size_t n_steps;
};

/* Whether a try is better than the best one so far. */
static bool is_better(const struct explanation *x, const struct xtry *t, unsigned n)
{
    if (n != x->misfits)
        return n < x->misfits;
    return t->n_complaints < x->best.n_complaints;
}

static void attempt(struct explanation *x, const struct xtry *from, unsigned allowed,
                    size_t depth, enum xstep *steps)
{
    for (unsigned s = 0; s < XS_STEPS; s++) {
        struct xtry t;
        unsigned first = 0;
        if ((allowed & MAY(s)) == 0 || from->there == (s == XS_CREATE) ||
            (from->to == NULL) != (s == XS_PURGE))
            continue;
        t = *from;
        xstep_take(&t, (enum xstep)s);
        steps[depth] = (enum xstep)s;
        unsigned n = misfits(&t, &first);
        if (is_better(x, &t, n)) {
            *x = (struct explanation){ .best = t, .misfits = n, .first = first };
            x->n_steps = depth + 1;
            memcpy(x->steps, steps, sizeof(x->steps));
        }
        if (x->misfits == 0 && !x->best.complaint)
            return;
        if (depth == 0 && t.there && !xis_terminal(&t.row))
            attempt(x, &t, allowed, 1, steps);
    }
}

/* --- what is remembered --- */

static void note_end(struct execs *w, const struct xrow *o, enum xstep step)
{
    if (w->n_ended == X_ENDS)
        return;
    w->ended[w->n_ended++] =
        (struct xended){ .execution = o->id,
                         .token = (uint64_t)o->v[EXEC_LEASE + LEASE_TOKEN],
                         .lease = (uint64_t)o->v[EXEC_LEASE + LEASE_ID],
                         .fence = o->v[EXEC_LEASE + LEASE_FENCE],
                         .step = step };
}

static void note_grant(struct xcall *c, struct xseen *seen, const struct xrow *n)
{
    struct xgranted g = { .execution = n->id,
                          .token = (uint64_t)n->v[EXEC_LEASE + LEASE_TOKEN],
                          .lease = (uint64_t)n->v[EXEC_LEASE + LEASE_ID],
                          .fence = n->v[EXEC_LEASE + LEASE_FENCE],
                          .expires_ms = n->v[EXEC_LEASE + LEASE_EXPIRES_AT_MS] };

    seen->fence = g.fence;
    seen->granted_no = c->actor->sim->execs->no;
    if (seen->n_leases < COUNT_OF(seen->lease))
        seen->lease[seen->n_leases++] = g.lease;
    if (c->n_granted < X_ROWS)
        c->granted[c->n_granted++] = g;
}

static void remember(struct execs *w, struct xcall *c, const struct explanation *x,
                     const struct xrow *o, const struct xrow *n)
{
    struct xseen *seen = xseen_at(w, (o ? o : n)->id);

    for (size_t i = 0; i < x->n_steps; i++) {
        enum xstep s = x->steps[i];
        c->steps[s]++;
        if (s == XS_TAKE)
            note_grant(c, seen, n);
        else if (s == XS_PURGE)
            seen->gone = true;
        else if (s == XS_SET_ASIDE)
            c->grant = (uint64_t)n->v[EXEC_GRANT];
        bool ends = s != XS_RENEW && s != XS_MOVE && s != XS_PRIORITY;
        if (o && i == 0 && ((ends && xis_leased(o)) || s == XS_CANCEL))
            note_end(w, o, s);
    }
}

/* --- one execution --- */

/* Which of the submissions it is: the row tells all that matters. */
static struct xseen *create_seen(struct execs *w, struct xcall *c, const struct xrow *n)
{
    for (size_t i = 0; i < c->n_want; i++) {
        struct xwant *s = &c->want[i];
        if (c->created[i] || s->kind != n->kind || s->key != n->key)
            continue;
        if (w->n_seen == X_SEEN)
            return NULL;
        c->created[i] = n->id;
        w->seen[w->n_seen] = (struct xseen){ .id = n->id, .spec = *s };
        return &w->seen[w->n_seen++];
    }
    return NULL;
}

static const char *unexplained(const struct explanation *x)
{
    static char text[128];

    if (x->best.complaint)
        return x->best.complaint;
    if (x->misfits == UINT32_MAX)
        return "L4: changed by a call that changes no such thing";
    if (!x->best.to)
        return "L9: it is gone";
    (void)snprintf(
        text, sizeof(text), "W1: after %s its %s is not what that makes of it",
        x->n_steps > 1 ? "two steps" : "a step", row_execution.columns[x->first].name);
    return text;
}

static const char *explain(struct execs *w, struct xcall *c, const struct xrow *o,
                           const struct xrow *n, int64_t now_ms)
{
    struct explanation x = { .misfits = UINT32_MAX };
    enum xstep steps[2] = { XS_STEPS, XS_STEPS };
    struct xseen *seen = xseen_at(w, (o ? o : n)->id);

    if (!c)
        return "L4: changed by nobody";
    if (!o) {
        if (c->kind != X_SUBMIT || seen || !(seen = create_seen(w, c, n)))
            return "L9: an execution that nobody submitted";
    }
    if (!seen)
        return "model: an execution is not known";
    struct xtry t = { .there = o != NULL,
                      .to = n,
                      .c = c,
                      .st = w->old,
                      .seen = seen,
                      .now_ms = now_ms };
    t.row = o ? *o : *n;
    attempt(&x, &t, may_of(c), 0, steps);
    if (w->s->setup->verbose)
        printf("#   %s: steps %d %d\n", (o ? o : n)->name, (int)x.steps[0],
               x.n_steps > 1 ? (int)x.steps[1] : -1);
    if (x.misfits > 0 || x.best.complaint)
        return unexplained(&x);
    remember(w, c, &x, o, n);
    return xbeside_row(w, &x.best);
}

/* --- all of them --- */

static bool is_same(const struct xrow *o, const struct xrow *n)
{
    return o && n && o->ver == n->ver &&
           memcmp(o->v + 1, n->v + 1, sizeof(o->v) - sizeof(o->v[0])) == 0;
}

bool xrow_changes(struct execs *w, struct xcall *c, int64_t now_ms)
{
    const char *fault = NULL;
    bool changed = false;

    if (c && xis_many(c))
        c->n_granted = c->grants > 0 ? c->n_granted : 0;
    for (size_t i = 0; i < w->old->n_rows && !fault; i++) {
        const struct xrow *o = &w->old->row[i], *n = xrow_at(w->cur, o->id);
        if (is_same(o, n))
            continue;
        changed = true;
        fault = explain(w, c, o, n, now_ms);
    }
    for (size_t i = 0; i < w->cur->n_rows && !fault; i++) {
        const struct xrow *n = &w->cur->row[i];
        if (xrow_at(w->old, n->id))
            continue;
        changed = true;
        fault = explain(w, c, NULL, n, now_ms);
    }
    xcomplain(w, fault);
    return changed;
}
