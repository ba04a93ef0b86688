/* The steps of an execution, after section 2.16 of the specification and the decisions
 * about leases: when each may be taken, and what exactly it makes of the row. */
#include "execs_steps.h"

#define ORDER_STEP ((int64_t)1000000000000)

/* --- what steps share --- */

void xobject(struct xtry *t, bool when, const char *complaint)
{
    if (!when)
        return;
    t->complaint = t->complaint ? t->complaint : complaint;
    t->n_complaints++;
}

void xvector(struct xtry *t, int64_t phase, int64_t ownership, int64_t eligibility,
             int64_t blocking, int64_t outcome, int64_t attempt)
{
    const int64_t to[] = { phase, ownership, eligibility, blocking, outcome, attempt };

    for (unsigned i = 0; i < COUNT_OF(to); i++) {
        if (to[i] != XKEPT)
            t->row.v[EXEC_PHASE + i] = to[i];
    }
    t->row.v[EXEC_STATE] = xderive(&t->row);
}

void xready(struct xtry *t, int64_t attempt)
{
    xvector(t, BELAY_PHASE_RUNNABLE, BELAY_UNOWNED, BELAY_ELIGIBLE_NOW,
            BELAY_WAITING_FOR_WORKER, BELAY_TERMINAL_NONE, attempt);
}

void xlater(struct xtry *t, int64_t blocking, int64_t attempt)
{
    xvector(t, BELAY_PHASE_RUNNABLE, BELAY_UNOWNED, BELAY_NOT_ELIGIBLE_UNTIL_TIME,
            blocking, BELAY_TERMINAL_NONE, attempt);
}

/* It was written: where it stands now, unless it is leased. */
void xwrite(struct xtry *t)
{
    struct xrow *r = &t->row;

    r->v[EXEC_UPDATED_AT_MS] = t->now_ms;
    switch (xplace_of(r)) {
    case XP_READY:
        r->v[EXEC_RANK] = r->v[EXEC_CREATED_AT_MS] - r->v[EXEC_PRIORITY] * ORDER_STEP;
        break;
    case XP_GRANTED:
        r->v[EXEC_RANK] = r->v[EXEC_GRANT_UNTIL_MS];
        break;
    case XP_DELAYED:
        r->v[EXEC_RANK] = r->v[EXEC_DELAY_UNTIL_MS];
        break;
    case XP_DONE:
        r->v[EXEC_RANK] = r->v[EXEC_FINISHED_AT_MS] + r->v[EXEC_RETENTION_MS];
        break;
    case XP_LEASED:
    case XP_NOWHERE:
        break;
    }
}

void xtell(struct xtry *t, const char *type)
{
    static const char *const outcomes[] = { NULL, "success", "failed", "cancelled",
                                            "expired" };
    bool completion = xis_terminal(&t->row) && strcmp(type, "completion") == 0;

    if (t->n_events == COUNT_OF(t->event))
        return;
    t->event[t->n_events++] = (struct xevent){
        .type = xstr(type),
        .execution = t->row.id,
        .outcome = completion ? xstr(outcomes[t->row.v[EXEC_OUTCOME]]) : 0,
        .fence = t->row.v[EXEC_LEASE + LEASE_FENCE],
        .at_ms = t->now_ms,
    };
}

void xdrop_grant(struct xrow *r)
{
    r->v[EXEC_GRANT] = r->v[EXEC_GRANT_UNTIL_MS] = r->v[EXEC_GRANT_WORKER] = XNULL;
}

/* The last attempt becomes a row. */
void xarchive(struct xtry *t, const char *end, int64_t ended_ms)
{
    const int64_t *v = t->row.v;

    t->archives = true;
    t->archived = (struct xattempt){
        .execution = t->row.id,
        .id = (uint64_t)v[EXEC_LEASE + LEASE_TOKEN],
        .type = (uint64_t)v[EXEC_ATTEMPT_TYPE],
        .end = xstr(end),
        .worker = (uint64_t)v[EXEC_LEASE + LEASE_OWNER],
        .index = v[EXEC_ATTEMPTS] - 1,
        .fence = v[EXEC_LEASE + LEASE_FENCE],
        .started_ms = v[EXEC_ATTEMPT_AT_MS],
        .ended_ms = ended_ms,
    };
}

/* The end: T10, T14, T20 to T22. */
void xend(struct xtry *t, int64_t outcome, uint64_t detail, const char *class_name)
{
    int64_t *v = t->row.v;
    bool never = v[EXEC_ATTEMPT_STATE] == BELAY_PENDING_FIRST_ATTEMPT;

    xobject(t, xis_terminal(&t->row), "W5: it ended twice");
    xvector(t, BELAY_PHASE_TERMINAL, BELAY_UNOWNED, BELAY_NOT_APPLICABLE,
            BELAY_BLOCKING_NONE, outcome, never ? XKEPT : BELAY_ATTEMPT_TERMINAL);
    v[EXEC_TIMEOUT_AT_MS] = v[EXEC_LOST_AT_MS] = v[EXEC_DELAY_UNTIL_MS] = XNULL;
    v[EXEC_DETAIL] = detail ? (int64_t)detail : XNULL;
    v[EXEC_FINISHED_AT_MS] = t->now_ms;
    xdrop_grant(&t->row);
    xwrite(t);
    t->end_class = xstr(class_name);
    t->batch = v[EXEC_SESSION] != XNULL;
    xtell(t, "completion");
}

/* --- created --- */

void xdo_create(struct xtry *t)
{
    const struct xwant *s = &t->seen->spec;
    int64_t *v = t->row.v, until = t->now_ms + s->delay_ms;

    xobject(t, t->there, "L9: it is there already");
    for (unsigned i = 0; i < EXEC_COLUMNS; i++)
        v[i] = XNULL;
    until = until > s->run_at_ms ? until : s->run_at_ms;
    v[EXEC_LANE] = (int64_t)s->lane;
    v[EXEC_ROUTE] = t->to->v[EXEC_ROUTE]; /* checked with the routes */
    v[EXEC_PRIORITY] = s->priority;
    v[EXEC_ATTEMPTS] = v[EXEC_RETRIES] = v[EXEC_RECLAIMS] = v[EXEC_REPLAYS] = 0;
    v[EXEC_CREATED_AT_MS] = t->now_ms;
    v[EXEC_DEADLINE_AT_MS] = s->deadline_ms > 0 ? t->now_ms + s->deadline_ms : XNULL;
    v[EXEC_RETENTION_MS] = s->retention_ms;
    v[EXEC_SESSION] = s->session ? (int64_t)s->session : XNULL;
    v[EXEC_LEASE + LEASE_FENCE] = 0;
    t->there = true;
    if (until > t->now_ms) {
        v[EXEC_DELAY_UNTIL_MS] = until;
        xlater(t, BELAY_WAITING_FOR_DELAY, BELAY_PENDING_FIRST_ATTEMPT);
    } else {
        xready(t, BELAY_PENDING_FIRST_ATTEMPT);
    }
    xwrite(t);
}

/* --- granted --- */

static void check_lease(struct xtry *t, int64_t before)
{
    const int64_t *v = t->row.v;
    int64_t fence = v[EXEC_LEASE + LEASE_FENCE];

    xobject(t, fence <= t->seen->fence || fence <= before,
            "L2: a fence that is not above those granted before");
    xobject(t, fence >> 40 != t->st->epoch, "L2: a fence of another epoch");
    xobject(t, (uint64_t)v[EXEC_LEASE + LEASE_OWNER] != t->c->worker,
            "L8: granted to somebody else");
    xobject(t,
            v[EXEC_LEASE + LEASE_CLAIMED_AT_MS] != t->now_ms ||
                v[EXEC_LEASE + LEASE_EXPIRES_AT_MS] != t->now_ms + t->c->ttl_ms,
            "L8: the lease is not the one that was asked for");
    for (size_t i = 0; i < t->seen->n_leases; i++)
        xobject(t, t->seen->lease[i] == (uint64_t)v[EXEC_LEASE + LEASE_ID],
                "L3: a lease id was given out before");
}

static void check_taker(struct xtry *t)
{
    const struct xrow *r = &t->row;
    const struct xcall *c = t->c;
    enum xplace place = xplace_of(r);

    xobject(t, xis_leased(r), "L1: granted while somebody held it");
    xobject(t, xis_terminal(r), "W5: granted after its end");
    xobject(t, place == XP_DELAYED, "L7: granted before its time");
    xobject(t, xtime(r, EXEC_DEADLINE_AT_MS) <= t->now_ms,
            "L7: granted after its deadline");
    if (c->kind == X_REDEEM) {
        xobject(t,
                place != XP_GRANTED || (uint64_t)r->v[EXEC_GRANT] != c->grant ||
                    (uint64_t)r->v[EXEC_GRANT_WORKER] != c->worker,
                "L8: claimed by another grant than its own");
        xobject(t, xtime(r, EXEC_GRANT_UNTIL_MS) <= t->now_ms,
                "L7: claimed by a grant that is over");
        return;
    }
    xobject(t, place == XP_GRANTED, "L12: claimed although it is set aside");
    xobject(t, (t->seen->spec.needs & ~c->has) != 0,
            "L12: claimed by who lacks a capability");
    bool listed = false;
    for (unsigned i = 0; i < 4; i++)
        listed |=
            (c->lanes >> i & 1U) != 0 && xstr(xlane(i)) == (uint64_t)r->v[EXEC_LANE];
    xobject(t, !listed, "L12: claimed from a lane that was not asked for");
}

void xdo_take(struct xtry *t)
{
    int64_t *v = t->row.v, before = v[EXEC_LEASE + LEASE_FENCE];
    int64_t token = v[EXEC_LEASE + LEASE_TOKEN], attempt = v[EXEC_ATTEMPT_STATE];
    bool lost = v[EXEC_PHASE] == BELAY_PHASE_ACTIVE;
    bool resumed = !lost && attempt == BELAY_ATTEMPT_INTERRUPTED;

    check_taker(t);
    if (lost) {
        xobject(t, v[EXEC_RECLAIMS] >= t->seen->spec.max_reclaims,
                "W5: taken over more often than its policy allows");
        xarchive(t, "interrupted_reclaimed", v[EXEC_LOST_AT_MS]);
        v[EXEC_RECLAIMS]++;
    }
    if (!resumed) {
        v[EXEC_ATTEMPTS]++;
        v[EXEC_ATTEMPT_AT_MS] = t->now_ms;
        v[EXEC_ATTEMPT_TYPE] =
            (int64_t)xstr(lost                                      ? "reclaim"
                          : attempt == BELAY_PENDING_RETRY_ATTEMPT  ? "retry"
                          : attempt == BELAY_PENDING_REPLAY_ATTEMPT ? "replay"
                                                                    : "initial");
        if (v[EXEC_STARTED_AT_MS] == XNULL)
            v[EXEC_STARTED_AT_MS] = t->now_ms;
    }
    xvector(t, BELAY_PHASE_ACTIVE, BELAY_LEASED, BELAY_NOT_APPLICABLE,
            BELAY_BLOCKING_NONE, BELAY_TERMINAL_NONE, BELAY_RUNNING_ATTEMPT);
    v[EXEC_DELAY_UNTIL_MS] = v[EXEC_DETAIL] = v[EXEC_LOST_AT_MS] = XNULL;
    xdrop_grant(&t->row);
    for (unsigned i = 0; i < LEASE_COLUMNS; i++)
        v[EXEC_LEASE + i] = t->to->v[EXEC_LEASE + i];
    xobject(t, resumed != (v[EXEC_LEASE + LEASE_TOKEN] == token),
            "W2: a new attempt has the id of another one, or one that goes on has not");
    check_lease(t, before);
    int64_t timeout = t->seen->spec.timeout_ms;
    v[EXEC_TIMEOUT_AT_MS] = timeout > 0 ? t->now_ms + timeout : XNULL;
    xwrite(t);
    int64_t lost_at = xlost_at(&t->row), over = xtime(&t->row, EXEC_TIMEOUT_AT_MS);
    v[EXEC_RANK] = over < lost_at ? over : lost_at;
    xtell(t, lost ? "reclaimed" : "acquired");
}
