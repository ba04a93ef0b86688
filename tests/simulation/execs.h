/* execs.h - executions simulated (t_sim --executions).
 *
 * The same actors, fronts, faults and schedules; the actors are submitters, workers,
 * schedulers, operators and timers, and what is watched is what is promised about
 * executions (docs/promises.md, work/execution.h).
 *
 *   execs_state.c    what a walk of the namespace shows, as plain arrays
 *   execs_feed.c     what the feed of events tells
 *   execs_find.c     finding something in them; words, the state derived, where one stands
 *   execs_check.c    what must be true of every such state
 *   execs_steps.c, execs_hold.c, execs_time.c   the steps of an execution: when, and
 *                    what exactly they change
 *   execs_rules.c    which steps a commit of a call may have taken
 *   execs_beside.c   and what else it may change: attempts, events, batches, frames, keys
 *   execs_order.c    whose turn it is
 *   execs_call.c     beginning and end of a call
 *   execs_handles.c  handles: whether they hold, forged ones, a memory of them
 *   execs_host.c     what is lost because its holder is said to be dead (hosts.h)
 *   execs_submit.c, execs_work.c, execs_ends.c, execs_more.c   what actors do
 *   execs_end.c      what must be true when everything is quiet
 *
 * After every commit the namespace is walked and compared with the state before.  Each
 * execution whose row has changed must be explained by one or two steps that the call may
 * take, in that state and at the time that its body was told; then every column is what
 * those steps make of it, and so are the events, the attempts and the batches that come
 * with them.  Nothing of src/policy decides: the steps are written down here once more.
 *
 * Texts are kept as digests; 0 is none.  A column that is NULL is XNULL.
 */
#ifndef SIMULATION_EXECS_H
#define SIMULATION_EXECS_H

#include "execs_state.h"
#include "hosts.h"

/* --- calls --- */

enum xcall_kind {
    X_SUBMIT,
    X_CLAIM,
    X_RENEW,
    X_PROGRESS,
    X_FRAMES,
    X_COMPLETE, /* perhaps with a claim */
    X_FAIL,
    X_DELAY,
    X_RELEASE,
    X_ABORT,
    X_CANCEL,
    X_REPLAY,
    X_PRIORITY,
    X_REVOKE,
    X_TAG,
    X_GRANT,
    X_GRANT_ONE,
    X_REDEEM, /* claims by a grant */
    X_TIMERS,
    X_MOURN, /* what the dead held is lost */
    X_RAISE,
    X_CALL_KINDS
};

enum xstep {
    XS_CREATE,
    XS_PROMOTE,
    XS_TAKE, /* a lease is granted */
    XS_COMPLETE,
    XS_RETRY,
    XS_FAIL,
    XS_DELAY,
    XS_RELEASE,
    XS_ABORT,
    XS_CANCEL,
    XS_EXPIRE,
    XS_TIMEOUT_RETRY,
    XS_TIMEOUT_FAIL,
    XS_LOSE,
    XS_CAP,
    XS_REVOKE,
    XS_REVOKE_CAP,
    XS_REPLAY,
    XS_PRIORITY,
    XS_RENEW,
    XS_SET_ASIDE,
    XS_UNGRANT,
    XS_MOVE, /* to when there is something to do */
    XS_PURGE,
    XS_STEPS
};

/* What is submitted. */
struct xwant {
    uint64_t lane, session, key, requires, kind;
    unsigned needs; /* bit per capability */
    int64_t priority, delay_ms, run_at_ms, deadline_ms, timeout_ms;
    int64_t max_retries, retry_ms, retry_longest_ms;
    bool fixed, jitter, transient_only;
    int64_t max_reclaims, retention_ms, window_ms;
    unsigned tag[X_TAGS]; /* number of the value; 0: none */
    unsigned body;        /* which of the contents a key is used for */
};

/* A handle: what it says. */
struct xhandle {
    struct belay_handle h;
    uint64_t execution, token, lease;
    int64_t attempt, fence, lease_ms;
};

/* What a claim got, as the commit shows it. */
struct xgranted {
    uint64_t execution, token, lease;
    int64_t fence, expires_ms;
};

struct xcall {
    enum xcall_kind kind;
    struct actor *actor;
    uint64_t id; /* of an execution, where it is about one */
    struct xwant want[X_ITEMS];
    uint64_t created[X_ITEMS];
    size_t n_want;
    const struct xhandle *handle[X_ITEMS];
    size_t n_handles;
    /* claim, grant */
    bool claims;
    unsigned lanes, has; /* bits */
    size_t max;
    uint64_t worker, grant;
    int64_t ttl_ms;
    /* others */
    int failure_class;
    uint64_t reason, lease;
    int64_t until_ms, priority;
    unsigned frames, first_seq; /* 0: without sequences */
    unsigned tag[X_TAGS];       /* number of the value; 0: as it is, 9: to remove */

    /* How it went. */
    uint64_t begun_step, run_no;
    int64_t begun_us;
    int64_t now_ms; /* what its bodies were told last; 0: nothing */
    unsigned lost, changed, grants;
    bool returned;
    belay_rc rc;
    struct xgranted granted[X_ROWS];
    size_t n_granted;
    int64_t steps[XS_STEPS];
    int64_t keys;             /* that were removed */
    struct mourning mourning; /* who was said to be dead */
};

/* An execution that was once there. */
struct xseen {
    uint64_t id;
    struct xwant spec;
    int64_t fence;       /* of its last grant, heard of or not */
    uint64_t granted_no; /* the commit of that */
    uint64_t lease[64];
    size_t n_leases;
    bool gone;
};

/* How the holder of a triple has ended it. */
struct xended {
    uint64_t execution, token, lease;
    int64_t fence;
    enum xstep step;
};

struct execs {
    struct sim *s;
    struct xstate states[2];
    struct xstate *old, *cur; /* before and after the last commit */
    uint64_t no;              /* commits that changed something */
    int64_t latest_ms;        /* time told to anybody */
    struct xcall call[X_CALLS];
    size_t n_calls;
    struct xseen seen[X_SEEN];
    size_t n_seen;
    struct xhandle handle[X_HANDLES];
    size_t n_handles;
    struct xended ended[X_ENDS];
    size_t n_ended;
    struct xevent event[X_EVENTS]; /* of the last commit */
    size_t n_events;
    int64_t picked_us;    /* when somebody who picks has died: what it held is hidden */
    uint64_t picked_step; /* when somebody who picks has ended */
    char grant[16][48];
    unsigned grant_worker[16];
    size_t n_grants;
    struct belay_arena arena; /* of the whole schedule */
};

/* --- execs_state.c --- */

void xstate_clear(struct xstate *st);
void xstate_read(struct execs *w, struct xstate *st);

/* --- execs_feed.c --- */

void xfeed_read(struct execs *w, struct xstate *st, const struct item *item);

/* --- execs_find.c --- */

uint64_t xtext(struct bytes b);     /* 0 for none */
uint64_t xstr(const char *text);    /* likewise for NULL */
const char *xlane(unsigned i);      /* "l0" ... */
uint64_t xrequires(unsigned needs); /* of bits */
struct xrow *xrow_at(const struct xstate *st, uint64_t id);
const struct xattempt *xattempt_at(const struct xstate *st, uint64_t execution,
                                   int64_t index);
struct xhead *xhead_at(const struct xstate *st, uint64_t execution, int64_t attempt);
struct xkey *xkey_at(const struct xstate *st, uint64_t key);
const struct xgrant *xgrant_at(const struct xstate *st, uint64_t id);
struct xseen *xseen_at(struct execs *w, uint64_t id);
/* The number of a word of a vector's column, or of the state; -1: there is none such. */
int64_t xword(unsigned column, struct bytes word);
/* The public state of a vector. */
int64_t xderive(const struct xrow *r);
enum xplace { XP_READY, XP_GRANTED, XP_DELAYED, XP_LEASED, XP_DONE, XP_NOWHERE };
enum xplace xplace_of(const struct xrow *r);
uint64_t xindex_of(const struct xrow *r);
bool xis_terminal(const struct xrow *r);
bool xis_leased(const struct xrow *r);
/* The time in a column; never where there is none. */
int64_t xtime(const struct xrow *r, unsigned column);

/* --- execs_check.c --- */

void xstate_check(struct execs *w, const struct xstate *st);

/* --- execs_steps.c --- */

/* A step tried on a row: what it makes of it, and what comes with it. */
struct xtry {
    struct xrow row;
    bool there;            /* before: it exists; after: it is not gone */
    const struct xrow *to; /* as it is after the commit; what was drawn is seen there */
    const struct xcall *c;
    const struct xstate *st; /* before the commit */
    const struct xseen *seen;
    int64_t now_ms;
    const char *complaint; /* why it may not be taken: the first, and how many */
    unsigned n_complaints;
    struct xevent event[4];
    size_t n_events;
    struct xattempt archived;
    bool archives, batch;
    uint64_t end_class;
};
void xstep_take(struct xtry *t, enum xstep step);
/* When a leased one is lost. */
int64_t xlost_at(const struct xrow *r);

/* --- execs_host.c --- */

const char *xmourning(const struct xtry *t);
void xdo_mourn(struct actor *a);

/* --- execs_rules.c --- */

/* Whether anything differs between w->old and w->cur; complains where the call may not
 * change that.  c may be NULL. */
bool xrow_changes(struct execs *w, struct xcall *c, int64_t now_ms);

/* --- execs_beside.c --- */

bool xbeside_changes(struct execs *w, struct xcall *c, int64_t now_ms);
/* What came with the steps of one execution. */
const char *xbeside_row(struct execs *w, const struct xtry *t);

/* --- execs_order.c --- */

/* Whether a claim can take it in that state, after what is due was seen to. */
bool xis_eligible(struct execs *w, const struct xrow *r, const struct xcall *c,
                  int64_t now_ms);
/* Which ones the rules give, in order; returns how many. */
size_t xexpected(struct execs *w, const struct xstate *st, const struct xcall *c,
                 int64_t now_ms, const struct xrow *out[X_ROWS]);
/* Whether what the commit of a claim took are those. */
const char *xorder(struct execs *w, const struct xcall *c, int64_t now_ms,
                   uint64_t began);
/* Whether it shows what others do not have in hand, and hides what it has. */
bool xpicks(const struct xcall *c);
/* Nobody else has hidden anything since it began. */
bool xis_alone(const struct xcall *c);

/* --- execs_handles.c --- */

bool xholds(const struct xstate *st, const struct xhandle *h);
/* Why it does not. */
const char *xlost_reason(const struct xstate *st, const struct xhandle *h);
/* Whether the last grant is the handle's, and over. */
bool xwas_last(const struct xstate *st, const struct xhandle *h);
const struct xhandle *xhandle_keep(struct execs *w, const struct belay_handle *h);
/* One of those that were ever granted, rather a late one; NULL: there is none. */
const struct xhandle *xhandle_any(struct actor *a, unsigned draw);
/* The same with something wrong about it. */
const struct xhandle *xhandle_forged(struct actor *a, const struct xhandle *h,
                                     unsigned how);
/* Whether the bearer of this triple has once ended it by that step. */
bool xhas_ended(const struct execs *w, const struct xhandle *h, enum xstep step);

/* --- execs_call.c --- */

void execs_open(struct sim *s);
void execs_close(struct sim *s);
/* After every applied commit; its body was told that time, and had begun when the world had
 * changed so often. */
void execs_commit(struct sim *s, struct bytes ns, struct xcall *c, int64_t now_ms,
                  uint64_t began);
/* A body of the running actor was told the time. */
void execs_time(struct sim *s, int64_t now_ms);

/* Notes a complaint, "rule: what", unless it is NULL. */
void xcomplain(struct execs *w, const char *complaint);
struct bytes execs_space(void);
/* The site of the actor's process; NULL: it cannot be reached. */
const struct exec_site *xsite(struct actor *a, struct exec_site *out);
struct xcall *xcall_begin(struct actor *a, enum xcall_kind kind);
/* Whether the call is over for the one who made it (and not dead, or at its end). */
bool xcall_end(struct xcall *c, belay_rc rc);
/* Notes an answer that nothing explains. */
void xcall_refuse(struct xcall *c, belay_rc rc, const struct belay_error *err);
/* Nobody else has changed anything since the last run of its body began. */
bool xis_calm(const struct xcall *c);
/* Whether the call may take several commits. */
bool xis_many(const struct xcall *c);

/* --- what actors do --- */

struct xpolicy {
    struct belay_claim_policy p;
    const char *lanes[4], *has[2];
};
void xpolicy_make(struct actor *a, unsigned base, struct xpolicy *out, struct xcall *c);
/* Notes what was claimed, which must be what was granted. */
void xworks_take(struct xcall *c, const struct belay_work *work, size_t n);
size_t xdo_claim(struct actor *a, struct xpolicy *p,
                 const struct xhandle *out[X_ITEMS]);
/* Whether a holder was refused, which must be true, or in trouble. */
bool xrefused(struct xcall *c, const struct xhandle *h, belay_rc rc,
              const struct belay_error *err);
belay_rc xdo_renew(struct actor *a, const struct xhandle *h, int64_t ttl_ms);
void xdo_progress(struct actor *a, const struct xhandle *h);
void xdo_frames(struct actor *a, const struct xhandle *h);
void xdo_complete(struct actor *a, const struct xhandle *const *h, size_t n, bool next);
void xdo_fail(struct actor *a, const struct xhandle *const *h, size_t n, int class_no);
void xdo_pause(struct actor *a, const struct xhandle *h, enum xcall_kind kind);
/* An execution that is there, as its id; NULL: there is none. */
const char *xany(struct actor *a, unsigned draw);
bool xdo_timers(struct actor *a, struct belay_timer_report *out);

/* --- execs_end.c --- */

void execs_audit_begin(struct actor *a);
void execs_audit(struct actor *a);

#endif /* SIMULATION_EXECS_H */
