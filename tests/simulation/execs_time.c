/* Steps that time, an operator or a scheduler takes. */
#include "execs_steps.h"

/* --- by time, in the order in which it is asked (L7: by the row as it is) --- */

int64_t xlost_at(const struct xrow *r)
{
    int64_t expires = r->v[EXEC_LEASE + LEASE_EXPIRES_AT_MS];

    return expires == XNULL ? INT64_MAX : expires + X_GRACE_MS;
}

/* What is asked first is not due. */
static void in_time(struct xtry *t, bool timeout)
{
    const struct xrow *r = &t->row;

    xobject(t, xis_terminal(r), "W5: time goes on after its end");
    xobject(t, xtime(r, EXEC_DEADLINE_AT_MS) <= t->now_ms,
            "L7: its deadline has passed and it goes on");
    xobject(t, timeout && xtime(r, EXEC_TIMEOUT_AT_MS) <= t->now_ms,
            "L7: its attempt took too long and it goes on");
}

static void do_promote(struct xtry *t)
{
    in_time(t, false);
    xobject(t, xplace_of(&t->row) != XP_DELAYED, "L7: promoted and it was not delayed");
    xobject(t, xtime(&t->row, EXEC_DELAY_UNTIL_MS) > t->now_ms,
            "L7: promoted before its time");
    xready(t, XKEPT);
    t->row.v[EXEC_DELAY_UNTIL_MS] = XNULL;
    xwrite(t);
}

static void do_expire(struct xtry *t)
{
    xobject(t, xtime(&t->row, EXEC_DEADLINE_AT_MS) > t->now_ms,
            "L7: expired before its deadline");
    xend(t, BELAY_TERMINAL_EXPIRED, xstr("execution_deadline"), NULL);
}

static void timed_out(struct xtry *t)
{
    in_time(t, false);
    xobject(t, !xis_leased(&t->row) || xtime(&t->row, EXEC_TIMEOUT_AT_MS) > t->now_ms,
            "L7: timed out before its time");
    t->end_class = xstr("timeout");
}

static void do_timeout_retry(struct xtry *t)
{
    timed_out(t);
    xretry(t, BELAY_FAILURE_TIMEOUT);
}

static void do_timeout_fail(struct xtry *t)
{
    timed_out(t);
    xobject(t, xmay_retry(t, BELAY_FAILURE_TIMEOUT),
            "W5: its policy allows another try");
    xend(t, BELAY_TERMINAL_FAILED, 0, "timeout");
}

static void lapsed(struct xtry *t)
{
    in_time(t, true);
    xobject(t, !xis_leased(&t->row), "L7: a lease was lost that nobody had");
    if (t->c->kind == X_MOURN) { /* its time does not matter */
        const char *complaint = xmourning(t);
        xobject(t, complaint != NULL, complaint);
        return;
    }
    xobject(t, xlost_at(&t->row) > t->now_ms,
            "L1: a lease was ended before its time and the grace have passed");
}

static void lose(struct xtry *t, int64_t ownership)
{
    xvector(t, BELAY_PHASE_ACTIVE, ownership, XKEPT, BELAY_WAITING_FOR_WORKER,
            BELAY_TERMINAL_NONE, BELAY_ATTEMPT_INTERRUPTED);
    t->row.v[EXEC_LOST_AT_MS] = t->now_ms;
    t->row.v[EXEC_TIMEOUT_AT_MS] = XNULL;
    xwrite(t);
}

static bool is_capped(const struct xtry *t)
{
    return t->row.v[EXEC_RECLAIMS] >= t->seen->spec.max_reclaims;
}

static void do_lose(struct xtry *t)
{
    lapsed(t);
    xobject(t, is_capped(t), "W5: lost once more than its policy allows");
    xtell(t, "expired");
    lose(t, BELAY_LEASE_EXPIRED_RECLAIMABLE);
}

static void do_cap(struct xtry *t)
{
    lapsed(t);
    xobject(t, !is_capped(t), "W5: ended as lost too often, and it was not");
    xtell(t, "expired");
    xend(t, BELAY_TERMINAL_FAILED, xstr("max_reclaims_exceeded"), "infra_crash");
}

static void do_ungrant(struct xtry *t)
{
    in_time(t, false);
    xobject(t, xplace_of(&t->row) != XP_GRANTED, "L7: no grant to end");
    xobject(t, xtime(&t->row, EXEC_GRANT_UNTIL_MS) > t->now_ms,
            "L7: a grant was ended before its time");
    xdrop_grant(&t->row);
    xwrite(t);
}

/* Nothing is to be done yet: it is looked at again when that may be. */
static void do_move(struct xtry *t)
{
    const struct xrow *r = &t->row;
    int64_t next = xlost_at(r);

    in_time(t, true);
    xobject(t, !xis_leased(r) || next <= t->now_ms, "L7: moved although it is due");
    if (xtime(r, EXEC_TIMEOUT_AT_MS) < next)
        next = xtime(r, EXEC_TIMEOUT_AT_MS);
    if (xtime(r, EXEC_DEADLINE_AT_MS) < next)
        next = xtime(r, EXEC_DEADLINE_AT_MS);
    t->row.v[EXEC_RANK] = next;
    t->row.v[EXEC_UPDATED_AT_MS] = t->now_ms;
}

static void do_purge(struct xtry *t)
{
    xobject(t, !xis_terminal(&t->row), "L9: removed before its end");
    xobject(t, t->row.v[EXEC_RANK] > t->now_ms,
            "L9: removed before its retention is over");
    t->there = false;
}

/* --- by operators and schedulers --- */

static void meant(struct xtry *t)
{
    xobject(t, t->row.id != t->c->id,
            "L4: another execution than the one that was named");
}

static void do_cancel(struct xtry *t)
{
    meant(t);
    xend(t, BELAY_TERMINAL_CANCELLED, t->c->reason, NULL);
}

static void revoked(struct xtry *t)
{
    meant(t);
    xobject(t, !xis_leased(&t->row), "L4: a lease was revoked that nobody had");
    xobject(t, t->c->lease && t->c->lease != (uint64_t)t->row.v[EXEC_LEASE + LEASE_ID],
            "L4: another lease was revoked than the one that was named");
    xtell(t, "revoked");
}

static void do_revoke(struct xtry *t)
{
    revoked(t);
    xobject(t, is_capped(t), "W5: lost once more than its policy allows");
    lose(t, BELAY_LEASE_REVOKED);
    t->row.v[EXEC_DETAIL] = t->c->reason ? (int64_t)t->c->reason : XNULL;
}

static void do_revoke_cap(struct xtry *t)
{
    revoked(t);
    xobject(t, !is_capped(t), "W5: ended as lost too often, and it was not");
    xend(t, BELAY_TERMINAL_FAILED, xstr("max_reclaims_exceeded"), "infra_crash");
}

static void do_replay(struct xtry *t)
{
    static const char *const how[] = { "", "ended_success", "ended_failure",
                                       "ended_cancelled", "ended_failure" };
    static const unsigned cleared[] = { EXEC_STARTED_AT_MS,  EXEC_FINISHED_AT_MS,
                                        EXEC_DELAY_UNTIL_MS, EXEC_TIMEOUT_AT_MS,
                                        EXEC_LOST_AT_MS,     EXEC_DETAIL };
    int64_t *v = t->row.v, deadline = t->seen->spec.deadline_ms;

    meant(t);
    xobject(t, !xis_terminal(&t->row), "W5: replayed before its end");
    xobject(t, v[EXEC_REPLAYS] >= BELAY_MAX_REPLAYS, "W5: replayed too often");
    if (v[EXEC_ATTEMPTS] > 0 && !xattempt_at(t->st, t->row.id, v[EXEC_ATTEMPTS] - 1))
        xarchive(t, how[v[EXEC_OUTCOME]], v[EXEC_FINISHED_AT_MS]);
    for (size_t i = 0; i < COUNT_OF(cleared); i++)
        v[cleared[i]] = XNULL;
    v[EXEC_RETRIES] = v[EXEC_RECLAIMS] = 0;
    v[EXEC_REPLAYS]++;
    v[EXEC_DEADLINE_AT_MS] = deadline > 0 ? t->now_ms + deadline : XNULL;
    xready(t, BELAY_PENDING_REPLAY_ATTEMPT);
    xwrite(t);
    xtell(t, "replay_initiated");
}

static void do_priority(struct xtry *t)
{
    meant(t);
    xobject(t, xis_terminal(&t->row), "W5: its priority changed after its end");
    t->row.v[EXEC_PRIORITY] = t->c->priority;
    xwrite(t);
}

static void do_set_aside(struct xtry *t)
{
    enum xplace place = xplace_of(&t->row);
    int64_t *v = t->row.v;

    if (t->c->kind == X_GRANT_ONE)
        meant(t);
    else
        xobject(t, (t->seen->spec.needs & ~t->c->has) != 0,
                "L12: set aside for who lacks a capability");
    xobject(t, place != XP_READY && place != XP_GRANTED,
            "L1: set aside although nobody can claim it");
    xobject(t, place == XP_GRANTED && v[EXEC_GRANT_UNTIL_MS] > t->now_ms,
            "L1: set aside for two");
    v[EXEC_GRANT_UNTIL_MS] = t->now_ms + t->c->ttl_ms;
    v[EXEC_GRANT] = t->to->v[EXEC_GRANT];
    v[EXEC_GRANT_WORKER] = (int64_t)t->c->worker;
    xobject(t, xgrant_at(t->st, (uint64_t)v[EXEC_GRANT]) != NULL,
            "L3: a grant id was given out before");
    xwrite(t);
}

/* --- all of them --- */

void xstep_take(struct xtry *t, enum xstep step)
{
    static void (*const take[XS_STEPS])(struct xtry * t) = {
        [XS_CREATE] = xdo_create,
        [XS_PROMOTE] = do_promote,
        [XS_TAKE] = xdo_take,
        [XS_COMPLETE] = xhold_complete,
        [XS_RETRY] = xhold_retry,
        [XS_FAIL] = xhold_fail,
        [XS_DELAY] = xhold_delay,
        [XS_RELEASE] = xhold_release,
        [XS_ABORT] = xhold_abort,
        [XS_CANCEL] = do_cancel,
        [XS_EXPIRE] = do_expire,
        [XS_TIMEOUT_RETRY] = do_timeout_retry,
        [XS_TIMEOUT_FAIL] = do_timeout_fail,
        [XS_LOSE] = do_lose,
        [XS_CAP] = do_cap,
        [XS_REVOKE] = do_revoke,
        [XS_REVOKE_CAP] = do_revoke_cap,
        [XS_REPLAY] = do_replay,
        [XS_PRIORITY] = do_priority,
        [XS_RENEW] = xhold_renew,
        [XS_SET_ASIDE] = do_set_aside,
        [XS_UNGRANT] = do_ungrant,
        [XS_MOVE] = do_move,
        [XS_PURGE] = do_purge,
    };

    xobject(t, t->c->kind == X_GRANT_ONE && t->row.id != t->c->id,
            "L4: another execution than the one that was named");
    take[step](t);
}
