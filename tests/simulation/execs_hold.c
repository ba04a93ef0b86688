/* Steps that the holder of an execution takes. */
#include "execs_steps.h"

/* --- by the holder --- */

static const struct xhandle *handle_of(const struct xtry *t)
{
    for (size_t i = 0; i < t->c->n_handles; i++) {
        const struct xhandle *h = t->c->handle[i];
        if (h->execution == t->row.id && xholds(t->st, h))
            return h;
    }
    return NULL;
}

static void holder(struct xtry *t)
{
    xobject(t, !handle_of(t), "L4: changed by who does not hold it");
}

bool xmay_retry(const struct xtry *t, int class_no)
{
    const struct xwant *s = &t->seen->spec;
    bool transient = class_no == BELAY_FAILURE_TRANSIENT;
    bool possible = transient || class_no == BELAY_FAILURE_INFRA_CRASH ||
                    class_no == BELAY_FAILURE_TIMEOUT;

    return possible && (transient || !s->transient_only) &&
           t->row.v[EXEC_RETRIES] < s->max_retries;
}

void xretry(struct xtry *t, int class_no)
{
    const struct xwant *s = &t->seen->spec;
    int64_t *v = t->row.v, delay = s->retry_ms, least;

    xobject(t, !xmay_retry(t, class_no),
            "W5: tried again although its policy does not");
    for (int64_t i = 0; i < v[EXEC_RETRIES] && !s->fixed; i++)
        delay *= 3; /* the multiplier of all who submit */
    if (!s->fixed && delay > s->retry_longest_ms)
        delay = s->retry_longest_ms;
    least = !s->fixed && s->jitter ? delay / 2 : delay;
    xlater(t, BELAY_WAITING_FOR_RETRY_BACKOFF, BELAY_PENDING_RETRY_ATTEMPT);
    v[EXEC_DELAY_UNTIL_MS] = t->to->v[EXEC_DELAY_UNTIL_MS];
    xobject(t,
            v[EXEC_DELAY_UNTIL_MS] < t->now_ms + least ||
                v[EXEC_DELAY_UNTIL_MS] > t->now_ms + delay,
            "L7: tried again at another time than its policy says");
    v[EXEC_RETRIES]++;
    v[EXEC_TIMEOUT_AT_MS] = v[EXEC_LOST_AT_MS] = v[EXEC_DETAIL] = XNULL;
    xarchive(t, "ended_failure", t->now_ms);
    xwrite(t);
    xtell(t, "released");
}

static const char *const classes[] = { NULL,          "transient", "permanent",
                                       "infra_crash", "timeout",   "cancelled" };

void xhold_complete(struct xtry *t)
{
    holder(t);
    xend(t, BELAY_TERMINAL_SUCCESS, 0, NULL);
}

void xhold_retry(struct xtry *t)
{
    holder(t);
    t->end_class = xstr(classes[t->c->failure_class]);
    xretry(t, t->c->failure_class);
}

void xhold_fail(struct xtry *t)
{
    holder(t);
    xobject(t, xmay_retry(t, t->c->failure_class), "W5: its policy allows another try");
    xend(t, BELAY_TERMINAL_FAILED, 0, classes[t->c->failure_class]);
}

void xhold_abort(struct xtry *t)
{
    holder(t);
    xend(t, BELAY_TERMINAL_CANCELLED, t->c->reason, NULL);
}

void xhold_delay(struct xtry *t)
{
    holder(t);
    xlater(t, BELAY_WAITING_FOR_DELAY, BELAY_ATTEMPT_INTERRUPTED);
    t->row.v[EXEC_DELAY_UNTIL_MS] = t->c->until_ms;
    t->row.v[EXEC_TIMEOUT_AT_MS] = XNULL;
    xwrite(t);
    xtell(t, "released");
}

void xhold_release(struct xtry *t)
{
    holder(t);
    xready(t, BELAY_ATTEMPT_INTERRUPTED);
    t->row.v[EXEC_TIMEOUT_AT_MS] = XNULL;
    xwrite(t);
    xtell(t, "released");
}

void xhold_renew(struct xtry *t)
{
    int64_t *expires = &t->row.v[EXEC_LEASE + LEASE_EXPIRES_AT_MS];
    int64_t until = t->now_ms + t->c->ttl_ms;

    holder(t);
    xobject(t, t->to->v[EXEC_LEASE + LEASE_EXPIRES_AT_MS] < *expires,
            "L6: a renewal has shortened a lease");
    if (until > *expires)
        *expires = until;
    xobject(t, t->to->v[EXEC_LEASE + LEASE_EXPIRES_AT_MS] != *expires,
            "L6: renewed to another time than was asked for");
    *expires = t->to->v[EXEC_LEASE + LEASE_EXPIRES_AT_MS];
    xwrite(t);
}
