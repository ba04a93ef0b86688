/* sim.h - one simulated world: actors, their stores, time, faults, and the watch.
 *
 *   sched.c       coroutines, virtual time, who runs next
 *   front.c       the driver below a store: yields, faults, late commits
 *   watch*.c      tells the model what was applied and compares answers with it
 *   record*.c     the calls of a body, each written down
 *   ops_*.c       what actors do
 *   swarm.c       what a seed enables, and its programs
 *   nouns*.c      inboxes, sessions and blobs under another watch (nouns.h)
 *   execs*.c      executions, likewise (execs.h)
 *   procs*.c      processes, likewise (procs.h)
 *   world.c       one schedule from beginning to end
 *   replay.c      schedules as files, shrinking
 *   main.c        the command line
 *
 * Everything random is drawn from (seed, actor, operation, n-th point in it) or from
 * (seed, salt, step), never from a running stream: an operation that is left out leaves
 * the others as they were, which is what makes shrinking work.
 */
#ifndef SIMULATION_SIM_H
#define SIMULATION_SIM_H

#include <ucontext.h>

#include "base/arena.h"
#include "store/txn.h"

#include "model.h"
#include "things.h"

#define ACTORS_MAX 8
#define FRONTS_MAX 24
#define COROUTINES_MAX 48
#define OPS_MAX 4096
#define RECORDS_MAX 4096
#define CALLS_MAX 8192
#define SPACES_MAX 6
#define WANTS_MAX 64

enum op_kind {
    OP_RMW,
    OP_TRANSFER,
    OP_SKEW,
    OP_CHURN,
    OP_ABSENCE,
    OP_COUNT,
    OP_PUT_COUNTED,
    OP_PRODUCE,
    OP_CLAIM_PICK,
    OP_CLAIM_SCAN,
    OP_FINISH,
    OP_RERANK,
    OP_LOG_APPEND,
    OP_LOG_TRIM,
    OP_FEED_APPEND,
    OP_FEED_TAIL,
    OP_FEED_TRIM,
    OP_SIGNAL,
    OP_WAIT,
    OP_HUNT,
    OP_FAIL,
    OP_CHUNK,
    OP_BLOB_PUT,
    OP_BLOB_GET,
    OP_SWEEP,
    OP_PRUNE,
    OP_NEW_SPACE,
    OP_NOW,
    OP_NOUNS, /* from here on: --nouns */
    OP_ENQUEUE = OP_NOUNS,
    OP_CLAIM,
    OP_CLAIM_EXACT,
    OP_RENEW,
    OP_ABANDON,
    OP_FORGE,
    OP_CANCEL,
    OP_DROP,
    OP_LIST,
    OP_WORK,
    OP_COMMIT,
    OP_COMPLETE,
    OP_RETRY_TURN,
    OP_HEAD,
    OP_DELETE,
    OP_PUT,
    OP_PIN,
    OP_UNPIN,
    OP_COLLECT,
    OP_LOAD,
    OP_SPOIL,
    OP_EPOCH,
    OP_EXECS, /* from here on: --executions */
    OP_XSUBMIT = OP_EXECS,
    OP_XCLAIM,
    OP_XWORK,
    OP_XFINISH,
    OP_XRENEW,
    OP_XPROGRESS,
    OP_XFRAMES,
    OP_XFORGE,
    OP_XCANCEL,
    OP_XREPLAY,
    OP_XPRIORITY,
    OP_XREVOKE,
    OP_XTAG,
    OP_XGRANT,
    OP_XREDEEM,
    OP_XTIMERS,
    OP_XEPOCH,
    OP_PROCS, /* from here on: --processes */
    OP_PREGISTER = OP_PROCS,
    OP_PAPPEND,
    OP_PSAY,
    OP_PCOMPLETE,
    OP_PCANCEL,
    OP_PREF,
    OP_PLEASE,
    OP_PRENEW,
    OP_PRELEASE,
    OP_PWORKER,
    OP_PACK,
    OP_PGRANT,
    OP_PREVOKE,
    OP_PTRANSFER,
    OP_PFORGET,
    OP_PLOOK,
    OP_PCHANGES,
    OP_PINBOX,
    OP_PDROP,
    OP_PEXEC,
    OP_PDELETE,
    OP_PTIMERS,
    OP_PSPOIL,
    OP_PEPOCH,
    OP_KINDS,
    OP_AUDIT = OP_KINDS, /* only at the end */
};

enum fault_name {
    SIM_UNAVAILABLE,
    SIM_CONFLICT,
    SIM_DELAY,
    SIM_LOST,
    SIM_AFTER,
    SIM_LATE,
    SIM_DEATH,
    SIM_RESTART,
    SIM_FREEZE,
    SIM_CLOG,
    SIM_STEP,
    SIM_LEAP,
    SIM_OUTAGE,
    SIM_FAULTS,
    SIM_NONE = SIM_FAULTS,
};

/* Where in a driver call an actor stands when it yields. */
enum point { AT_BEGIN, AT_READ, AT_COMMIT, AT_REPLY, AT_END };

struct op {
    enum op_kind kind;
    unsigned number; /* within its actor's program, for masks */
    uint64_t r;      /* its own randomness */
};

/* What hosts say of the dead (execs_host.c). */
enum oracle { ORACLE_NONE, ORACLE_RIGHT, ORACLE_LATE, ORACLE_LYING };

/* What a seed enables. */
struct swarm {
    unsigned n_actors, n_fronts, n_spaces, n_keys;
    bool loses_replies;
    unsigned oracle;           /* enum oracle */
    bool far;                  /* a program keeps the rows it wrote (recall.h) */
    bool seen;                 /* and what it read of rank indexes (sight.h) */
    uint32_t rate[SIM_FAULTS]; /* of a million points */
    unsigned sticky;           /* of a hundred: go on with the same actor */
    unsigned walk_every;       /* compare everything after every n-th commit */
    int64_t tick_us;           /* a driver call takes at most this long */
    unsigned max_attempts;
    uint64_t fault_steps; /* afterwards nothing fails any more */
    unsigned weight[OP_KINDS];
};

/* Without it, slots are pruned only while no lost reply is being resolved. */
#define PRUNE_ANY_TIME 1U

/* An operation or fault that is left out: actor, operation, point. */
struct mask {
    unsigned actor, op, point;
};

/* An operation of a replay file. */
struct fixed_op {
    unsigned actor;
    struct op op;
};

/* What a schedule is made of.  A seed says what is enabled and what is done, unless
 * that is given here. */
struct setup {
    uint64_t seed, salt;
    const struct swarm *swarm; /* NULL: by the seed, and so are the programs */
    const struct fixed_op *fixed;
    size_t n_fixed;
    unsigned ops;
    uint32_t faults; /* bit per fault_name */
    const struct mask *no_ops, *no_faults;
    size_t n_no_ops, n_no_faults;
    unsigned prune; /* 0 or PRUNE_ANY_TIME */
    bool sqlite;    /* on SQLite in memory, its queue of bodies left aside */
    bool nouns;     /* inboxes, sessions and blobs instead of things */
    bool execs;     /* executions instead of things */
    bool procs;     /* processes instead of things */
    bool verbose;
};

struct sim;
struct front;
struct actor;
struct nouns;
struct ncall;
struct execs;
struct xcall;
struct procs;
struct pcall;
struct proc_book;
struct lane_book;

struct coroutine {
    ucontext_t context;
    void *stack;
    void *fake; /* AddressSanitizer's, while it does not run */
    struct txn *body;
    struct actor *actor;
    struct front *front;
    struct belay_arena arena; /* of its transactions, one after the other */
    bool used, finished;
    bool dead;     /* its process is gone: it reaches nothing any more */
    bool draining; /* and runs once more, only to give its memory back */
};

struct actor {
    struct sim *sim;
    unsigned id;
    struct coroutine *co;
    struct front *front;
    struct op *program;
    size_t n_ops, next_op;
    const struct op *op;
    unsigned n_points; /* in this operation so far */
    int64_t not_before_us;
    bool unresolved; /* it waits for a reply, or to learn what became of a commit */
    struct listener *waiting;
    bool done;
    struct feed_pos cursor[2][SPACES_MAX];
    struct call *call;  /* the transaction it is in */
    struct ncall *noun; /* the call of a noun it is in */
    struct xcall *exec; /* likewise, of executions */
    struct pcall *proc; /* and of processes */
    /* What the read under way should answer, for the body's check (record.c). */
    const struct scan *scan;
    struct mentry want[WANTS_MAX];
    size_t n_want;
    bool outrun; /* others changed what the body has changed: it conflicts */
    /* What it waits for: a row's number above this, looked at last after that commit.
     */
    uint64_t wait_key, wait_topic, wait_seq;
    int64_t wait_above;
};

/* One incarnation of a process: a store with its own clock, over the shared driver. */
struct front {
    struct driver d; /* first: it is the driver that the store sees */
    struct sim *sim;
    unsigned uid;
    struct store *store;
    struct lane_book *lanes; /* of executions */
    struct proc_book *book;  /* of registrations */
    int64_t wall_offset_ms;
    int64_t down_until_us; /* nothing gets through before */
    struct {
        uint64_t ns;
        int64_t last_ms;
    } time[SPACES_MAX];
};

/* --- what a body did --- */

struct record_row {
    uint64_t key;
    const struct row_type *type;
    bool observed;    /* the body saw base; otherwise it assumed absence */
    struct mrow base; /* ver 0: absent; v then has what was inserted */
    struct mrow cur;  /* ver 0: absent */
    bool inserted, changed, deleted;
};

enum record_op_kind {
    REC_ADD,
    REC_RAISE,
    REC_RANK,
    REC_LOG_APPEND,
    REC_LOG_TRIM,
    REC_FEED_APPEND,
    REC_FEED_TRIM,
    REC_CHUNK_PUT,
    REC_CHUNK_DROP,
};

struct record_op {
    enum record_op_kind kind;
    uint64_t key; /* of a counter's row */
    unsigned column;
    int64_t number, min, max; /* amount, sequence, position, index */
    uint64_t digest;
    struct mname name;
    struct mrank rank;
    struct txn_sum *sum;
    struct txn_pos *pos;
    int64_t result; /* what the model made of it */
};

#define RECORD_ROWS 16
#define RECORD_OPS 24

/* One run of a body. */
struct record {
    unsigned front;
    uint64_t id;
    struct call *call;
    uint64_t ns;
    uint64_t first_seq; /* of the model when it began */
    belay_rc answer;
    bool answered, asked_time;
    uint64_t topic; /* woken after the commit; 0: none */
    size_t n_rows, n_ops;
    struct record_row rows[RECORD_ROWS];
    struct record_op ops[RECORD_OPS];
};

/* One txn_run. */
struct call {
    struct actor *actor;
    struct front *front;
    enum op_kind op;
    struct record *last;    /* the run under way, or the last one */
    struct record *applied; /* the run that was applied */
    unsigned n_applied;
    unsigned lost;     /* replies that were */
    unsigned runs;     /* of its body */
    unsigned injected; /* conflicts that had no other cause */
    uint64_t first_seq;
    belay_rc commit_rc;
    belay_rc rc;
    bool returned;
    bool limited;         /* it may run out of time, or be cancelled */
    uint64_t applied_seq; /* the commit that applied it */
};

/* What the recording calls of a body take. */
struct run {
    struct txn *t;
    struct sim *s;
    struct actor *a;
    struct record *rec;
    struct bytes ns;
    const struct op *op;
    void *arg;
};
typedef belay_rc run_body(struct run *r);

/* A commit that is still on its way. */
struct late {
    struct late *next;
    struct belay_arena arena;
    struct front *front;
    struct plan plan;
    struct ncall *noun;
    struct xcall *exec;
    struct pcall *proc;
    int64_t now_ms;
};

struct sim {
    const struct setup *setup;
    struct swarm swarm;
    struct model model;
    struct nouns *nouns; /* NULL without --nouns */
    struct execs *execs; /* NULL without --executions */
    struct procs *procs; /* NULL without --processes */
    struct driver *memory;
    int64_t mono_us;
    uint64_t random; /* state of the stores' randomness */
    uint64_t step, trace, n_ops_run, n_commits, n_pruned;
    uint64_t next_holder;
    bool faults_on, ending;

    const char *rule; /* the first violation, or NULL */
    char why[320];

    struct coroutine coroutines[COROUTINES_MAX];
    struct coroutine main, *running;
    struct coroutine *alone; /* while it lives nobody else runs */
    struct actor actors[ACTORS_MAX];
    unsigned n_actors;
    struct front fronts[FRONTS_MAX];
    unsigned n_fronts; /* the last one opened may replace a dead one */
    unsigned current_front[3];
    struct op ops[OPS_MAX];
    struct record records[RECORDS_MAX];
    size_t n_records;
    struct call calls[CALLS_MAX];
    size_t n_calls;
    struct late *late;
    unsigned n_late;
    struct mask fired[1024]; /* faults that happened, for shrinking */
    size_t n_fired;
    unsigned blobs[SPACES_MAX]; /* bit per blob that was put */
};

/* Actors call what src/work offers, and the model of things has nothing to do. */
static inline bool is_work(const struct setup *u)
{
    return u->nouns || u->execs || u->procs;
}

/* --- chance --- */

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * UINT64_C(0x9e3779b97f4a7c15) ^ (b + UINT64_C(0x632be59bd9b4e019));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The n-th number below `below` of an operation. */
static inline unsigned pick_of(const struct op *op, unsigned n, unsigned below)
{
    return (unsigned)(mix(op->r, n) % below);
}

/* --- failing and telling (world.c) --- */

/* Notes the first violation; the schedule then ends. */
void violation(struct sim *s, const char *rule, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Notes a complaint of the model, unless it is NULL. */
void complain(struct sim *s, const char *complaint, const char *where);
/* Adds to the trace hash, and prints when asked to. */
void trace(struct sim *s, const char *what, uint64_t a, uint64_t b);

/* --- sched.c --- */

bool turn_stacks(struct sim *s);
void turn_start(struct sim *s, struct actor *a);
/* Gives the others a turn. */
void turn_over(struct sim *s);
/* The same and not back before `us` have passed. */
void turn_sleep(struct sim *s, int64_t us);
/* Waits until the listener is woken; false: everything is at its end. */
bool turn_wait(struct sim *s, struct listener *l);
/* Runs everybody until nobody can. */
void turn_run(struct sim *s);
/* Lets a coroutine that is over run to its end, reaching nothing. */
void turn_drain(struct sim *s);
void turn_kill(struct sim *s, struct actor *a);

struct belay_clock front_clock(struct front *f);

/* --- front.c --- */

struct front *front_open(struct sim *s, unsigned slot);
void deliver_late(struct sim *s, unsigned which);
void drop_late(struct sim *s);

/* --- watch.c --- */

uint64_t key_of(struct bytes ns, const struct row_type *type, const struct value *key);
uint64_t ns_of(struct bytes ns);
struct mname name_of(struct bytes b);
uint64_t data_of(struct bytes b);
struct mrow row_of(struct bytes ns, const struct row_type *type,
                   const struct value *key, const struct row *row);
struct mvalue mvalue_of(const struct value *v);
void watch_commit(struct front *f, const struct plan *plan,
                  const struct plan_result *result, belay_rc rc);
/* Compares all of a namespace with the model. */
void watch_space(struct sim *s, struct bytes ns);

/* --- watch_read.c --- */

void watch_read(struct front *f, uint64_t holder, int64_t *hold_until_us,
                struct bytes ns, const struct read *q);
/* Whether the plan is one that a driver must understand: at most one effect a row, and
 * a rank entry. */
bool watch_plan(struct front *f, const struct plan *plan);
struct mscan mscan_of(struct bytes ns, const struct scan *scan, struct mname *names);

/* --- record.c --- */

/* Runs a body under the watch and checks how it ended. */
belay_rc run_call(struct actor *a, unsigned space, run_body *body, void *arg,
                  const struct txn_options *options);
struct bytes space_bytes(unsigned space);
/* One more thing that a body does. */
struct record_op *record_note(struct run *r, enum record_op_kind kind);
/* Which space an operation works in. */
unsigned op_space(const struct actor *a);

belay_rc r_get(struct run *r, const struct row_type *type, const struct value *key,
               const struct row **out);
belay_rc r_get_many(struct run *r, const struct row_want *wants, size_t n,
                    const struct row **out);
belay_rc r_peek(struct run *r, const struct row_type *type, const struct value *key,
                const struct row **out);
belay_rc r_insert(struct run *r, const struct row_type *type, const struct value *v);
belay_rc r_put(struct run *r, const struct row_type *type, const struct value *key,
               const struct change *changes, size_t n);
belay_rc r_delete(struct run *r, const struct row_type *type, const struct value *key);
belay_rc r_add(struct run *r, const struct row_type *type, const struct value *key,
               unsigned column, int64_t delta, int64_t min, int64_t max,
               struct txn_sum *out);
belay_rc r_raise(struct run *r, const struct row_type *type, const struct value *key,
                 unsigned column, int64_t value);
belay_rc r_rank(struct run *r, const char *index, struct bytes member, bool had,
                int64_t old_rank, bool has, int64_t rank);
belay_rc r_scan(struct run *r, const struct scan *scan, bool hold, struct hits *out);
belay_rc r_log_append(struct run *r, struct bytes stream, int64_t seq,
                      struct bytes data);
belay_rc r_log_read(struct run *r, struct bytes stream, int64_t after, size_t limit,
                    struct log_entries *out);
belay_rc r_log_trim(struct run *r, struct bytes stream, int64_t upto);
belay_rc r_feed_append(struct run *r, struct bytes feed, struct bytes data,
                       struct txn_pos *out);
belay_rc r_feed_read(struct run *r, struct bytes feed, struct feed_pos after,
                     size_t limit, struct feed_entries *out);
belay_rc r_feed_trim(struct run *r, struct bytes feed, struct feed_pos upto);
belay_rc r_chunk_put(struct run *r, struct bytes upload, int64_t index,
                     struct bytes data);
belay_rc r_chunk_get(struct run *r, struct bytes upload, int64_t index, bool *found,
                     struct bytes *out);
belay_rc r_chunk_drop(struct run *r, struct bytes upload, int64_t index);
belay_rc r_wake(struct run *r, struct bytes topic);
belay_rc r_now(struct run *r, int64_t *out_ms);

/* --- ops --- */

typedef void op_run(struct actor *a);
op_run op_rmw, op_transfer, op_skew, op_churn, op_absence, op_count, op_put_counted;
op_run op_hunt, op_fail, op_now, op_new_space;
op_run op_produce, op_claim_pick, op_claim_scan, op_finish, op_rerank, op_audit;
op_run op_log_append, op_log_trim, op_feed_append, op_feed_tail, op_feed_trim;
op_run op_signal, op_wait, op_chunk, op_blob_put, op_blob_get, op_sweep, op_prune;
op_run op_enqueue, op_claim, op_claim_exact, op_renew, op_abandon, op_forge, op_cancel;
op_run op_drop, op_list, op_work, op_commit, op_complete, op_retry_turn, op_head;
op_run op_delete, op_put, op_pin, op_unpin, op_collect, op_load, op_spoil, op_epoch;
op_run op_xsubmit, op_xclaim, op_xwork, op_xfinish, op_xrenew, op_xprogress, op_xframes;
op_run op_xforge, op_xcancel, op_xreplay, op_xpriority, op_xrevoke, op_xtag, op_xgrant;
op_run op_xredeem, op_xtimers, op_xepoch;
op_run op_pregister, op_pappend, op_psay, op_pcomplete, op_pcancel, op_pref, op_please;
op_run op_prenew, op_prelease, op_pworker, op_pack, op_pgrant, op_prevoke, op_ptransfer;
op_run op_pforget, op_plook, op_pchanges, op_pinbox, op_pdrop, op_pexec, op_pdelete;
op_run op_ptimers, op_pspoil, op_pepoch;

/* State predicates of what the operations keep up; called after every commit. */
void check_invariants(struct sim *s, struct bytes ns);

/* --- swarm.c --- */

void swarm_make(struct sim *s);
enum fault_name swarm_fault(struct sim *s, struct actor *a, enum point at,
                            uint64_t *draw);
const char *op_name(enum op_kind kind);
op_run *op_of(enum op_kind kind);
const char *fault_text(enum fault_name f);

/* --- execs_call.c --- */

/* An actor in a call dies. */
void execs_dead(struct sim *s, struct actor *a);

/* --- world.c --- */

/* Runs one schedule; true: no rule was broken. */
bool world_run(struct sim *s, const struct setup *setup);

#endif /* SIMULATION_SIM_H */
