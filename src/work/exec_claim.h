/* exec_claim.h - claiming, for those who claim within a body of their own.
 *
 *     claim_prepare   checks the policy, draws tickets, takes a view of the lanes
 *     in the body: claim_scans -> txn_load -> claim_take
 *     claim_payloads  what lies in blobs
 */
#ifndef WORK_EXEC_CLAIM_H
#define WORK_EXEC_CLAIM_H

#include "base/rng.h"
#include "work/execution_rows.h"

enum { CLAIM_DUE, CLAIM_ROSTERS, CLAIM_READY, CLAIM_SCANS };

/* What is fetched with a candidate.  What was submitted does not change but for its tags,
 * which decide nothing here, so the spec is a hint: guarding it would cost a lock each. */
enum { CLAIM_ROW, CLAIM_SPEC, CLAIM_FETCHES };
#define CLAIM_HINTS (1U << CLAIM_SPEC)

struct claiming {
    /* What is asked. */
    const struct exec_site *site;
    const struct belay_claim_policy *policy;
    struct lease_holder holder;
    struct bytes *lanes;
    struct bytes has; /* capabilities, joined */
    size_t max;
    int64_t lease_ms;
    struct exec_ticket *tickets; /* max of them */
    struct rng chance;           /* for the jitter of what is seen to along the way */
    bool
        leave_due; /* something due is corrupt: it does not keep anybody from working */
    struct lane_view view;

    /* Of one run of the body. */
    struct fetch fetch[CLAIM_FETCHES];
    struct bytes due_indexes[3];
    int64_t now_ms, epoch;

    /* What came of it; in the arena of the transaction. */
    struct belay_work *work;
    struct bytes *blobs; /* where a payload lies; empty: it is there */
    size_t n;
    bool stale;     /* the lanes have other routes than the view: take another one */
    bool more;      /* some of what is due was seen to, and there is more of it */
    size_t skipped; /* candidates that cannot be read: `check` tells of them */
    size_t late;    /* candidates whose deadline had passed: they were ended */
    bool overdue;   /* a page of such was looked for; a run does that once */
    int64_t next_at_ms;
};

/* `invalid` with a reason: lane, worker, capabilities, max, lease, wait. */
MUST_USE belay_rc claim_prepare(struct claiming *c, const struct exec_site *site,
                                const struct belay_claim_policy *policy,
                                struct belay_arena *a, struct belay_error *err);
/* A view of the lanes; `anew`, after `stale`: read from the store. */
MUST_USE belay_rc claim_view(struct claiming *c, bool anew, struct belay_arena *a,
                             struct belay_error *err);

/* What a body has to load: what is due, the routes there are, what is ready (picked). */
void claim_scans(struct claiming *c, int64_t now_ms, struct scan out[CLAIM_SCANS]);

/* What is due is seen to, then candidates for at most c->max are handed to `take` in their
 * order: it may leave one out.  (exec_claim grants leases to them, exec_grant sets them
 * aside.)
 *
 * However much is due, or stands at the head of its lane past its deadline, one run does a page
 * of each and says c->more: its work and its memory are those of c->max and two pages. */
typedef belay_rc claim_taker(struct txn *t, struct claiming *c, const struct row *row,
                             const struct row *spec, struct event_list *events,
                             bool *out_taken);
MUST_USE belay_rc claim_each(struct txn *t, struct claiming *c,
                             struct hits hits[CLAIM_SCANS], struct event_list *events,
                             claim_taker *take);

/* claim_each with leases: fills work, blobs, n. */
MUST_USE belay_rc claim_take(struct txn *t, struct claiming *c,
                             struct hits hits[CLAIM_SCANS], struct event_list *events);

/* After a run that ended with rc: whether to run it once more without what is due, since
 * something about that is corrupt. */
MUST_USE bool claim_leaves_due(struct claiming *c, belay_rc rc);

/* Runs `body`, whose argument is c and which sets c->n by claim_each, until something came of
 * it or there is nothing to do: with another view, without what is due, once more after a
 * page of it, as c asks.  Each run is a transaction of its own, whose memory is given back
 * before the next.
 *
 * Where a backlog takes longer than CLAIM_LOOK_MS it gives up: c->n is 0 and c->more is set.
 * Nothing was ready then, and who asks again goes on from there. */
#define CLAIM_LOOK_MS ((int64_t)30000)
MUST_USE belay_rc claim_look(struct claiming *c, txn_body *body, struct belay_arena *a,
                             struct belay_error *err);

/* Reads what lies in blobs, once the leases are committed.  A payload that cannot be read
 * concerns its own work only, which is left out of c->work and c->n:
 *   missing or corrupt  its attempt fails, permanent, with a message that says so: nobody can
 *                       do it, and who can mend it replays it; *out_failed counts them
 *   anything else       it is released, to be claimed again: nothing is charged.  That error
 *                       is the call's where nothing is left to hand out. */
MUST_USE belay_rc claim_payloads(struct claiming *c, struct belay_arena *a,
                                 size_t *out_failed, struct belay_error *err);

#endif /* WORK_EXEC_CLAIM_H */
