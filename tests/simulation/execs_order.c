/* Whose turn it is: by priority, then age, of all that a claim may have. */
#include "execs.h"

#include <stdio.h>
#include <stdlib.h>

bool xpicks(const struct xcall *c)
{
    return c->kind == X_CLAIM || c->kind == X_GRANT || c->claims;
}

/* What somebody who picks has in hand is hidden from others, for a while also when he is
 * dead. */
bool xis_alone(const struct xcall *c)
{
    const struct sim *s = c->actor->sim;
    const struct execs *w = s->execs;

    if (s->setup->sqlite)
        return true;
    for (unsigned i = 0; i < s->n_actors; i++) {
        const struct xcall *o = s->actors[i].exec;
        if (o && o != c && xpicks(o))
            return false;
    }
    return w->picked_step <= c->begun_step &&
           (w->picked_us == 0 || w->picked_us + 60000000 < c->begun_us);
}

/* What becomes of it when what is due is seen to. */
static bool becomes_ready(struct execs *w, const struct xrow *r, int64_t now_ms)
{
    const struct xseen *seen = xseen_at(w, r->id);

    switch (xplace_of(r)) {
    case XP_READY:
        return true;
    case XP_GRANTED:
        return r->v[EXEC_GRANT_UNTIL_MS] <= now_ms;
    case XP_DELAYED:
        return r->v[EXEC_DELAY_UNTIL_MS] <= now_ms;
    case XP_LEASED:
        return xlost_at(r) <= now_ms && xtime(r, EXEC_TIMEOUT_AT_MS) > now_ms && seen &&
               r->v[EXEC_RECLAIMS] < seen->spec.max_reclaims;
    case XP_DONE:
    case XP_NOWHERE:
        break;
    }
    return false;
}

bool xis_eligible(struct execs *w, const struct xrow *r, const struct xcall *c,
                  int64_t now_ms)
{
    const struct xseen *seen = xseen_at(w, r->id);
    bool listed = false;

    for (unsigned i = 0; i < 4; i++)
        listed |=
            (c->lanes >> i & 1U) != 0 && xstr(xlane(i)) == (uint64_t)r->v[EXEC_LANE];
    return listed && seen && (seen->spec.needs & ~c->has) == 0 &&
           xtime(r, EXEC_DEADLINE_AT_MS) > now_ms && becomes_ready(w, r, now_ms);
}

static int64_t turn_of(const struct xrow *r)
{
    return r->v[EXEC_CREATED_AT_MS] - r->v[EXEC_PRIORITY] * INT64_C(1000000000000);
}

static int by_turn(const void *a, const void *b)
{
    const struct xrow *x = *(const struct xrow *const *)a,
                      *y = *(const struct xrow *const *)b;

    if (turn_of(x) != turn_of(y))
        return turn_of(x) < turn_of(y) ? -1 : 1;
    return strcmp(x->name, y->name);
}

size_t xexpected(struct execs *w, const struct xstate *st, const struct xcall *c,
                 int64_t now_ms, const struct xrow *out[X_ROWS])
{
    size_t n = 0;

    for (size_t i = 0; i < st->n_rows; i++) {
        const struct xrow *after = xrow_at(w->cur, st->row[i].id);
        bool completed = c->kind == X_COMPLETE && (!after || xis_terminal(after));
        if (!completed && xis_eligible(w, &st->row[i], c, now_ms))
            out[n++] = &st->row[i];
    }
    qsort(out, n, sizeof(out[0]), by_turn);
    return n < c->max ? n : c->max;
}

static bool was_taken(const struct execs *w, const struct xcall *c, uint64_t id)
{
    if (c->kind == X_GRANT)
        return xrow_at(w->cur, id) && xrow_at(w->cur, id)->v[EXEC_GRANT] != XNULL &&
               (uint64_t)xrow_at(w->cur, id)->v[EXEC_GRANT] == c->grant;
    for (size_t i = 0; i < c->n_granted; i++) {
        if (c->granted[i].execution == id)
            return true;
    }
    return false;
}

const char *xorder(struct execs *w, const struct xcall *c, int64_t now_ms,
                   uint64_t began)
{
    const struct xrow *want[X_ROWS];
    size_t taken = c->kind == X_GRANT ? (size_t)c->steps[XS_SET_ASIDE] : c->n_granted;

    if (!xpicks(c) || taken == 0)
        return NULL;
    if (taken > c->max)
        return "L8: more than was asked for";
    /* Others have changed something, or hide something: any of them will do. */
    if (c->lost > 0 || began + 1 != w->no || !xis_alone(c))
        return NULL;
    size_t n = xexpected(w, w->old, c, now_ms, want);
    for (size_t i = 0; i < n && w->s->setup->verbose; i++)
        printf("#   it is the turn of %s\n", want[i]->name);
    if (n != taken)
        return "L12: another number than the rules give";
    for (size_t i = 0; i < n; i++) {
        if (!was_taken(w, c, want[i]->id))
            return "L12: others than those whose turn it is";
    }
    return NULL;
}
