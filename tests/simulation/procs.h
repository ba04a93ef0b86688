/* procs.h - processes simulated (t_sim --processes).
 *
 * The same actors, fronts, faults and schedules; the actors register, append, lease, grant,
 * forget and remove, and what is watched is what is promised about processes
 * (docs/promises.md, work/process.h).
 *
 *   procs_state.c   what a walk of the namespace shows, as plain arrays
 *   procs_check.c   what must be true of every such state
 *   procs_rules.c   what each call makes of a state, or why it is refused: written down here
 *                   once more, from the specification
 *   procs_event.c   likewise of appending an event, with all that it brings about
 *   procs_same.c    whether two states are the same
 *   procs_call.c    beginning, commits and end of a call
 *   procs_life.c, procs_tell.c, procs_share.c, procs_hold.c, procs_look.c   what actors do
 *   procs_end.c     what must be true when everything is quiet
 *
 * After every commit the namespace is walked.  What is found must be what the rules make
 * of the state before, by the call whose commit it is, at the time its body was told; what
 * is drawn (tokens, ids) is taken over, and must be new.  A call that is refused while
 * nobody else has changed anything must be refused by the rules for the same reason.
 *
 * Texts are kept as digests; 0 is none.
 */
#ifndef SIMULATION_PROCS_H
#define SIMULATION_PROCS_H

#include "hosts.h"
#include "sim.h"
#include "work/execution.h"
#include "work/process.h"
#include "work/queue.h"
#include "work/session.h"

#define P_PROCS 3
#define P_SESSIONS 2
#define P_EVENTS 256
#define P_GRANTS 32
#define P_BATCHES 160
#define P_CHANGES 512
#define P_CALLS 4096
#define P_LEASES 256
#define P_CLAIMS 64
#define P_WORKS 64

/* --- a state --- */

struct please {
    uint64_t owner, token, id;
    struct sim_member who; /* the process that was granted it */
    int64_t fence, claimed_ms, expires_ms;
};

/* A process, present or not. */
struct pproc {
    bool there, deleting;
    uint64_t hash, ref, output;
    int64_t first, last, terminal_seq; /* of events; 0: none */
    int64_t created_ms, updated_ms, finished_ms, retention_ms, purge_ms;
    int status;
    bool specs, has_end; /* the rows beside it */
    struct please lease;
    /* Where it stands. */
    unsigned listed, owned, by_status;
    int64_t listed_rank, status_rank;
    uint64_t status_index;
};

struct pwake {
    int state; /* 0: it wakes nobody */
    unsigned session;
    bool frame;
    uint64_t dedupe;
    int64_t batch, created_ms, settled_ms;
    unsigned ranks; /* entries among those that are queued */
};

struct pevent {
    unsigned proc;
    int64_t seq, at_ms, fence;
    uint64_t type, key, payload;
    int authority, terminal;
    unsigned keys, wakes; /* rows beside it */
    struct pwake wake;
    bool marked; /* wakes of that target and dedupe key are this one's */
};

struct pgrant {
    unsigned session, proc;
    bool frame;
    uint64_t kind, label;
    int64_t at_ms;
    unsigned ranks; /* entries of the three indexes */
};

struct pbatch {
    unsigned session;
    int64_t seq, wake_seq, fence, expires_ms; /* expires_ms -1: nobody has it */
    uint64_t id, lease;
    unsigned proc, sources;
    struct sim_member who; /* the process that claimed it */
    bool ready;            /* for anybody, whoever has it */
};

struct pchange {
    unsigned proc;
    int kind, status;
    int64_t seq, at_ms;
};

struct pstate {
    int64_t epoch;
    struct pproc proc[P_PROCS];
    struct pevent event[P_EVENTS];
    size_t n_events;
    struct pgrant grant[P_GRANTS];
    size_t n_grants;
    struct pbatch batch[P_BATCHES];
    size_t n_batches;
    struct pchange change[P_CHANGES];
    size_t n_changes;
    int64_t of_proc[P_PROCS], of_session[P_SESSIONS]; /* grants, as they are counted */
    int64_t last_batch[P_SESSIONS];
    const char *fault; /* what a walk alone shows to be wrong */
};

/* --- calls --- */

enum pcall_kind {
    P_REGISTER,
    P_APPEND, /* also what ends a process, and what asks it to end */
    P_REF,
    P_LEASE,
    P_RENEW,
    P_RELEASE,
    P_ACK,
    P_GRANT,
    P_REVOKE,
    P_TRANSFER,
    P_FORGET,
    P_DELETE,
    P_TIMERS,
    P_LOOK, /* whatever only reads */
    P_CLAIM,
    P_ABANDON,
    P_COMMIT, /* completes a claim */
    P_CANCEL_BATCH,
    P_SUBMIT,
    P_WORK, /* takes an execution */
    P_EXEC_END,
    P_SPOIL,
    P_RAISE,
    P_CALL_KINDS
};

struct pscope {
    unsigned session;
    bool frame;
};

/* A lease that was granted, or is made up. */
struct pheld {
    struct belay_process_lease lease;
    unsigned proc;
    uint64_t token, id;
};

struct pcall {
    enum pcall_kind kind;
    struct actor *actor;
    unsigned proc;
    /* register */
    unsigned variant;
    int64_t retention_ms;
    /* append */
    struct pevent event; /* type, key, payload, authority */
    uint64_t output;     /* of one that ends it */
    unsigned type;       /* number of the type; see procs_event.c */
    bool has_target, good;
    struct pscope target;
    const struct pheld *lease;
    struct pheld own;
    /* others */
    uint64_t owner, ref, kind_text, label, batch;
    int64_t lease_ms, seq;
    struct pscope scope, to;
    unsigned many; /* bit for each process */
    bool cancel, force;
    const struct belay_claim *claim;

    /* How it went. */
    uint64_t run_no;
    int64_t now_ms;
    unsigned lost, changed;
    bool returned;
    belay_rc rc;
    int64_t appended; /* sequence of its event, new or not */
    bool replayed;
    unsigned cancelled, preserved; /* bits */
    int64_t revoked;
    struct mourning mourning; /* who was said to be dead */
};

/* What the rules say. */
struct pverdict {
    belay_rc rc;
    const char *reason; /* NULL: any */
};

struct procs {
    struct sim *s;
    struct pstate states[2], want;
    struct pstate *old, *cur;
    uint64_t no; /* commits that changed something */
    struct pcall call[P_CALLS];
    size_t n_calls;
    struct pheld held[P_LEASES];
    size_t n_held;
    uint64_t lease_id[P_LEASES];
    size_t n_lease_ids;
    int64_t fence[P_PROCS];       /* the greatest one of that id, ever */
    uint64_t born[P_PROCS];       /* the change that made it */
    uint64_t granted_no[P_PROCS]; /* the one that granted its lease */
    uint64_t taken[P_LEASES]; /* leases somebody else was granted before their end */
    size_t n_taken;
    bool spoiled[P_PROCS];          /* since then something was taken from it */
    struct pchange told[P_CHANGES]; /* all of the feed, also what was trimmed */
    size_t n_told, n_trimmed;       /* all that were, and those that are not kept */
    size_t trimmed;                 /* by the commit in hand */
    size_t read[ACTORS_MAX + 1];    /* of it, by each actor */
    char cursor[ACTORS_MAX + 1][96];
    uint64_t hash[P_PROCS][2]; /* of the registrations, as they turned out */
    const struct belay_claim *claim[P_CLAIMS];
    size_t n_claims;
    struct belay_handle work[P_WORKS];
    unsigned work_proc[P_WORKS];
    size_t n_works;
    unsigned n_turns;
    struct belay_arena arena;
};

/* --- names --- */

uint64_t pstr(const char *text); /* 0 for NULL */
uint64_t ptext(struct bytes b);
const char *pname(unsigned proc);
const char *psession(unsigned session);
const char *pframe(bool frame);
/* The number of a text, or n when it is none of them. */
unsigned pname_of(struct bytes b);
unsigned psession_of(struct bytes b);

/* --- procs_state.c --- */

void pstate_clear(struct pstate *st);
void pstate_read(struct procs *w, struct pstate *st);
struct pevent *pevent_at(const struct pstate *st, unsigned proc, int64_t seq);
struct pevent *pevent_by_key(const struct pstate *st, unsigned proc, uint64_t key);
struct pgrant *pgrant_at(const struct pstate *st, struct pscope scope, unsigned proc);
struct pbatch *pbatch_at(const struct pstate *st, unsigned session, int64_t seq);

/* --- procs_check.c --- */

const char *pstate_fault(const struct procs *w, const struct pstate *st);

/* --- procs_event.c --- */

enum ptype {
    PT_NOTE,
    PT_WAKE,
    PT_RING,
    PT_DONE,
    PT_CANCEL_REQUESTED,
    PT_COMPLETED,
    PT_FAILED,
    PT_CANCELLED,
    PT_EXECUTION,
    PT_EXTRA,
    PT_UNKNOWN,
    PT_TYPES
};
const char *ptype_name(enum ptype t);
const char *pvariant_types(unsigned variant);

/* Each changes the state as the call says, or refuses. */
struct pverdict pdo_append(struct procs *w, struct pcall *c, struct pstate *st,
                           int64_t now_ms);
void pchange_tell(struct pstate *st, unsigned proc, int kind, int64_t at_ms);
void pwake_settle(struct pstate *st, struct pevent *e, int state, int64_t now_ms);
bool pholds(const struct pstate *st, const struct pheld *h);
bool pis_live(const struct please *l, int64_t now_ms);
bool pis_held(const struct pstate *st, unsigned proc, int64_t now_ms);

/* --- procs_rules.c --- */

/* What becomes of `st` by the call; `to` is what was found, for what is drawn; NULL: the
 * call was refused, and nothing is. */
struct pverdict pcall_apply(struct procs *w, struct pcall *c, struct pstate *st,
                            const struct pstate *to, int64_t now_ms);

/* --- procs_same.c --- */

/* What differs; NULL: nothing. */
const char *pstate_differs(const struct pstate *a, const struct pstate *b);

/* --- procs_call.c --- */

void procs_open(struct sim *s);
void procs_close(struct sim *s);
void procs_commit(struct sim *s, struct bytes ns, struct pcall *c, int64_t now_ms);
void procs_time(struct sim *s, int64_t now_ms);

const struct proc_site *psite(struct actor *a, struct proc_site *out);
struct pcall *pcall_begin(struct actor *a, enum pcall_kind kind, unsigned proc);
/* Whether the call is over for the one who made it (and not dead, or at its end). */
bool pcall_end(struct pcall *c, belay_rc rc);
/* Whether the answer is one that the rules give; err is that of the call. */
void pcall_judge(struct pcall *c, belay_rc rc, const struct belay_error *err);
bool pis_calm(const struct pcall *c);
bool pis_many(const struct pcall *c);

/* --- what actors do --- */

unsigned pproc_pick(const struct actor *a);
struct pscope pscope_pick(const struct op *op, unsigned n);
struct belay_scope pscope_public(struct pscope s);
const struct pheld *pheld_any(struct actor *a, unsigned proc, unsigned draw);
void pdo_forget(struct actor *a, unsigned session, bool cancel);
bool pdo_timers(struct actor *a);
/* Reads what is new in the feed; false: there was nothing, or it failed. */
bool pdo_changes(struct actor *a);
void pdo_events(struct actor *a, unsigned proc, int64_t after, bool wakes);
void pdo_delete(struct actor *a, unsigned proc, bool force);

/* --- procs_end.c --- */

void procs_audit_begin(struct actor *a);
void procs_audit(struct actor *a);

#endif /* SIMULATION_PROCS_H */
