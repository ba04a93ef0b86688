/* impl.h - what the files of the PostgreSQL driver share.
 *
 *   uri.c       a URL as libpq's parameters
 *   open.c      parameters, server checks, close
 *   schema.c    making the tables, once, whoever comes first
 *   connect.c   connecting, host by host
 *   life.c      the server's timeline
 *   conn.c      one connection: statements in a pipeline, answers, deadlines, errors
 *   pool.c      connections taken and given back; the server's time
 *   wire.c      values as the server's binary parameters, and back
 *   sql.c       statement texts, derived from the dictionary
 *   read.c      questions
 *   commit*.c   plans: their rows, the rest of them, and small ones in one statement
 *   line.c      callers that are served together;  *_together.c  their questions, plans
 *   refusal.c   why a plan was refused
 *   walk.c      everything in a namespace
 *   care.c      erasing, looking for damage;  doctor.c  how the server is doing
 *   listen.c    wake-ups among processes
 *
 * Statement texts are made of the dictionary and the schema's name, never of data.
 * Everything travels in binary.
 */
#ifndef STORE_DRIVERS_POSTGRES_IMPL_H
#define STORE_DRIVERS_POSTGRES_IMPL_H

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>

#include "store/drivers/postgres.h"
#include "store/drivers/postgres/fronts.h"
#include "store/drivers/postgres/places.h"
#include "store/server_time.h"

/* The layout this driver keeps its tables in. */
#define PG_LAYOUT 2

/* A place in a rank index (schema.c): the bits that are the index's; those above them are the
 * namespace's. */
#define PG_INDEX_BITS "281474976710655"

/* Raised by the functions of the schema (names carry the wire version). */
#define PG_STATE_GUARD "BLC01"   /* a guard does not hold; the message is its number */
#define PG_STATE_REFUSED "BLR01" /* rule 3: refusal.c finds out why */

/* --- statements --- */

/* A text that was used before, and its number.  They live as long as the store. */
struct pg_sql {
    struct pg_sql *next; /* in its chain */
    uint64_t hash;
    unsigned number;
    char text[];
};

/* How long a transaction that holds picks waits for a lock, in ms.  Whoever has it may be
 * waiting for what is picked. */
#define PG_HOLDER_WAIT "20"

#define PG_SQL_CHAINS 256
#define PG_SQL_MAX 4096 /* different texts; more would mean that data got into them */

/* What a text is made of, where writing it again takes longer than to say so: who makes it, a
 * row type, and whatever else decides. */
struct pg_shape {
    const char *maker;
    const struct row_type *type, *other;
    uint64_t a, b;
    unsigned flags;
};

#define PG_SHAPES 256

struct pg_texts {
    pthread_mutex_t mutex;
    struct pg_sql *chain[PG_SQL_CHAINS];
    unsigned n;
    struct {
        struct pg_shape shape;
        const struct pg_sql *sql;
    } made[PG_SHAPES]; /* by the hash of the shape, the latest */
};

/* One statement of a pipeline, or a sync point (sql NULL). */
struct pg_call {
    struct pg_call *next;
    const struct pg_sql *sql;
    int n_args, max_args;
    const char **values;
    int *lengths;
    int *formats;

    int64_t tag;      /* the caller's: which guard, which question */
    PGresult *result; /* rows, or the error; NULL: it was not reached */
    bool ok;
    bool preparing; /* its text was sent along */

    /* What it meets by its place; what its answer has the new places of, a line each.  Where a
     * call has both they are of the same rows. */
    const struct pg_place *met;
    struct pg_place *made;
    size_t n_places;
};

/* Calls in the order they are sent. */
struct pg_pipe {
    struct belay_arena *arena;
    struct pg_call *first, **last;
    bool no_memory;
};

struct pg_store;

struct pg_conn {
    struct pg_conn *next; /* in the pool */
    struct pg_store *store;
    PGconn *pg;
    uint8_t prepared[PG_SQL_MAX / 8]; /* bit per number */
    bool open_txn;                    /* a transaction holds picks */
    bool holder;                      /* taken for that: pg_take_for_hold */
    bool bad;                         /* not to be used again */
    uint64_t generation;              /* of the store's lives it belongs to */
};

/* Callers of one kind that wait for their turn. */
struct pg_waiter {
    struct pg_waiter *next;
    struct parker parker;
    bool called; /* it leads, or is to lead: nobody takes it along */
};

struct pg_line {
    pthread_mutex_t mutex;
    struct pg_waiter *first, **last;
    unsigned leaders, most;
};

struct pg_listener;

struct pg_store {
    struct driver d;
    struct driver_config config;
    struct belay_arena arena; /* the options' copies */
    const char **keywords;
    const char ***values; /* by host, in the order they are tried */
    unsigned n_hosts;
    const char *schema, *listen;
    bool pooler, relaxed;
    bool own_options; /* `options` is among the parameters */
    unsigned pool_max, retries, retry_base, retry_jitter;
    int64_t request_timeout_us, retry_first_us;
    int64_t connect_timeout_us; /* of one host */
    enum durability durability;
    const struct row_type *epoch; /* row type `epoch` of the dictionary; NULL: none */

    struct pg_texts texts;
    struct pg_places places;
    struct pg_fronts fronts;
    pthread_mutex_t pool_mutex;
    pthread_cond_t pool_cond;
    struct pg_conn *idle;
    unsigned n_open, n_holders, n_hold_waiters;
    int64_t silent_until_us; /* somebody has just waited in vain for the server */
    pthread_mutex_t life_mutex;
    char life[LIFE_MAX / 2];     /* the server's timeline, as seen last */
    _Atomic uint64_t generation; /* counts them */

    struct pg_line readers, committers;
    struct server_time clock;
    struct pg_listener *listener;
};

/* Where a member lies that the attempt's transaction has locked: nobody moves it, so it need
 * not be looked for again to be removed.  In the memory of the answers. */
struct pg_pick {
    struct bytes index, member;
    int64_t rank;
    uint8_t tid[PG_TID_LEN];
};
struct pg_picks {
    const struct pg_picks *next; /* those of another question */
    size_t n;
    struct pg_pick pick[];
};

struct pg_attempt {
    struct bytes ns;
    const struct pg_picks *picks; /* of its connection's open transaction */
    uint64_t generation;          /* as it began */
    struct pg_conn *conn;         /* NULL: none was needed yet, or it was given back */
    bool lost; /* the last thing asked for had no answer: there was no server */
};

/* --- sql.c --- */

/* The interned text of what the buffer holds (emptied); NULL: no memory, or too many. */
const struct pg_sql *pg_sql_of(struct pg_store *s, struct buf *text);
/* The text of a shape, if it was made not long ago; else NULL. */
const struct pg_sql *pg_sql_known(struct pg_store *s, const struct pg_shape *shape);
/* The same as pg_sql_of, for pg_sql_known. */
const struct pg_sql *pg_sql_made(struct pg_store *s, const struct pg_shape *shape,
                                 struct buf *text);
/* Whether there is room for texts that are only good for speed. */
bool pg_texts_are_few(struct pg_store *s);
void pg_texts_release(struct pg_texts *t);

/* "schema"."belay_<name>" */
void pg_table(const struct pg_store *s, const char *name, struct buf *out);
const char *pg_type_name(enum value_kind kind); /* bigint, text, bytea */
/* "a", "b" ... each with `prefix` in front; key columns only, or all. */
void pg_columns(const struct row_type *type, unsigned n, const char *prefix,
                struct buf *out);
/* unnest($first::t[], ...) of the key columns and n_more further types. */
void pg_unnest_keys(const struct row_type *type, unsigned first, struct buf *out);
/* a.k1 = b.k1 AND a.k2 = b.k2 ...; "true" for a type without a key. */
void pg_key_match(const struct row_type *type, const char *a, const char *b,
                  struct buf *out);
/* Behind a list of keys k: the row of each as `t`, with the columns `what` of x.  By its
 * key, one after the other in the list's order, and never the other way round: the limit
 * says so to a planner that knows nothing of the table yet. */
void pg_find_each(const struct pg_store *s, const struct row_type *type, const char *k,
                  const char *what, const char *lock, struct buf *out);
/* Whether our settings decide how statements run (prepare_conn). */
bool pg_plans(const struct pg_store *s);
/* Around "unnest(...) AS u(keys...)" in an UPDATE or DELETE of `t`: the rows of the list, in
 * its order, each by its key.  With a plain "t.ns = $1", or an equality of columns in its
 * place, a planner reads a table that it believes to be small from one end to the other, and
 * goes on doing so when it has grown; an array that depends on u leaves it no way into the
 * index but a list first.  Where the settings are not ours each row is found as pg_find_each
 * does, and met where it lies: a microsecond more. */
void pg_meet_begin(const struct pg_store *s, const char *word, struct buf *out);
void pg_meet_end(const struct pg_store *s, const struct row_type *type,
                 struct buf *out);
/* ns = $1 AND k1 = $first ... */
void pg_where_key(const struct row_type *type, unsigned first, struct buf *out);
/* The entries x (with a dot, or empty) of one rank index in namespace $1: by the number that
 * both make (schema.c), and by their names, since others may have the same number. */
void pg_where_index(const struct pg_store *s, const char *x, const char *index,
                    struct buf *out);
/* What a table, belay_<name>, has of namespace $1. */
void pg_where_ns(const struct pg_store *s, const char *name, struct buf *out);

/* --- wire.c --- */

void pg_pipe_init(struct pg_pipe *p, struct belay_arena *a);
/* A call at the end of the pipe with room for so many arguments.  NULL (and
 * p->no_memory) when sql is NULL or there is no memory; adding arguments to NULL does
 * nothing. */
struct pg_call *pg_add(struct pg_pipe *p, const struct pg_sql *sql, unsigned max_args);
void pg_add_sync(struct pg_pipe *p);
void pg_pipe_clear(struct pg_pipe *p); /* results are freed */

void pg_arg_i64(struct pg_pipe *p, struct pg_call *c, int64_t i);
void pg_arg_i32(struct pg_pipe *p, struct pg_call *c, int32_t i);
void pg_arg_bytes(struct pg_pipe *p, struct pg_call *c, struct bytes b); /* borrowed */
void pg_arg_value(struct pg_pipe *p, struct pg_call *c, const struct value *v);
/* An array of a kind; VALUE_NULL elements are NULL. */
void pg_arg_array(struct pg_pipe *p, struct pg_call *c, enum value_kind kind,
                  const struct value *v, size_t n);
/* Where rows lie: values of PG_TID_LEN bytes. */
void pg_arg_places(struct pg_pipe *p, struct pg_call *c, const struct value *v,
                   size_t n);
/* ns, then the key parts. */
void pg_arg_key(struct pg_pipe *p, struct pg_call *c, struct bytes ns,
                const struct row_ref *ref);

int64_t pg_i64(const PGresult *r, int row, int column); /* NULL: 0 */
/* The places of a list, a line each. */
void pg_take_places(const PGresult *r, struct pg_place *out, size_t n);
bool pg_bool(const PGresult *r, int row, int column);
/* Copied into the arena; false: no memory. */
MUST_USE bool pg_bytes(const PGresult *r, int row, int column, struct belay_arena *a,
                       struct bytes *out);
MUST_USE bool pg_value(const PGresult *r, int row, int column, enum value_kind kind,
                       struct belay_arena *a, struct value *out);
/* The row whose version is at `column`, its columns behind; *out = NULL when that is
 * NULL.  With a key, which lives as long as the arena, the answer is without those columns. */
MUST_USE bool pg_row(const PGresult *r, int row, int column,
                     const struct row_type *type, const struct value *key,
                     struct belay_arena *a, const struct row **out);

/* --- connect.c --- */

/* conninfo NULL: with the store's own parameters.  Takes no longer than a request may.
 *
 *   unavailable  nobody answers; with a reason (login, database, permission, tls, option):
 *                somebody does, and trying again would not help */
MUST_USE belay_rc pg_connect(struct pg_store *s, const char *conninfo,
                             struct pg_conn **out, struct belay_error *err);
/* The same with the store's own parameters, until a time of the monotonic clock. */
MUST_USE belay_rc pg_connect_by(struct pg_store *s, int64_t deadline_us,
                                struct pg_conn **out, struct belay_error *err);
void pg_disconnect(struct pg_conn *c); /* takes NULL */

/* --- conn.c --- */

/* Of the system's monotonic clock. */
int64_t pg_mono_us(void);

/* Waits until the socket is ready; false: the time is up, or it is broken. */
MUST_USE bool pg_wait_socket(PGconn *pg, short events, int64_t deadline_us,
                             short *ready);
/* `unavailable`: what libpq says is wrong, as one line without anything secret in it.  The
 * connection is bad from then on. */
belay_rc pg_lost(struct pg_conn *c, const char *what, struct belay_error *err);

/* How far an exchange got. */
enum pg_reached {
    PG_NOTHING_SENT, /* the server knows nothing of it */
    PG_SENT,         /* it may have everything */
    PG_ANSWERED,     /* every call has its result */
};

/* Sends all calls at once and takes the answers.  Fails only when the connection does
 * (it is bad then); what a statement answers, even an error, is in its call. */
MUST_USE belay_rc pg_exchange(struct pg_conn *c, struct pg_pipe *p,
                              enum pg_reached *reached, struct belay_error *err);

/* The first call that has an error, or NULL. */
struct pg_call *pg_failed(const struct pg_pipe *p);
/* The error of a call as one of Belay's: unavailable, corrupt, no_memory ... */
belay_rc pg_call_error(const struct pg_call *c, const char *what,
                       struct belay_error *err);
const char *pg_state(const struct pg_call *c); /* SQLSTATE, "" when there is none */

/* One statement without arguments, run for its effect. */
MUST_USE belay_rc pg_run(struct pg_conn *c, const char *text, const char *what,
                         struct belay_error *err);

/* --- pool.c --- */

/* Waits for one that others have, or connects, with pauses in between, for as long as one
 * request may take: `unavailable` then, reason pool when the others kept theirs. */
MUST_USE belay_rc pg_take(struct pg_store *s, struct pg_conn **out,
                          struct belay_error *err);
/* One that picks will keep.  Not all of them may be kept: who holds picks needs another
 * one to get on (a slot of its own, the time), and would wait for the rest of them. */
MUST_USE belay_rc pg_take_for_hold(struct pg_store *s, struct pg_conn **out,
                                   struct belay_error *err);
void pg_give_back(struct pg_store *s, struct pg_conn *c); /* takes NULL */
/* Closes what is idle, after a connection was found dead. */
void pg_drop_idle(struct pg_store *s);
/* Adds the question for the time where the last answer is old; and takes the answer. */
struct pg_call *pg_ask_time(struct pg_store *s, struct pg_pipe *p,
                            int64_t *out_asked_us);
void pg_take_time(struct pg_store *s, const struct pg_call *c, int64_t asked_us);
belay_rc pg_now_ms(struct driver *d, void *attempt, int64_t *out,
                   struct belay_error *err);

/* --- line.c --- */

void pg_line_init(struct pg_line *l, unsigned most); /* so many may lead at a time */
void pg_line_release(struct pg_line *l);

/* Waits until the caller leads (true) or was answered by somebody who does (false). */
bool pg_line_enter(struct pg_line *l, struct pg_waiter *w);

/* Whether a waiter goes with those that were taken before; under the line's mutex. */
typedef bool pg_line_fits(void *arg, struct pg_waiter *w);

/* By a leader: takes itself (unless NULL) out of the line, and everybody who waits there
 * and fits. */
struct pg_waiter *pg_line_take(struct pg_line *l, struct pg_waiter *leader,
                               pg_line_fits *fits, void *arg);
void pg_line_leave(struct pg_line *l);    /* the next one may lead */
void pg_line_answer(struct pg_waiter *w); /* it may be gone then */

/* --- life.c --- */

/* Asks a new connection for the server's timeline. */
MUST_USE belay_rc pg_learn_life(struct pg_conn *c, struct belay_error *err);
belay_rc pg_life(struct driver *d, void *attempt, struct bytes known,
                 struct lineage *out, struct belay_error *err);

uint64_t pg_era(struct driver *d, void *attempt);

/* --- schema.c --- */

MUST_USE belay_rc pg_make_schema(struct pg_store *s, struct pg_conn *c,
                                 struct belay_error *err);

/* --- read*.c, commit*.c, refusal.c --- */

belay_rc pg_read(struct driver *d, void *attempt, struct read *reads, size_t n,
                 struct belay_arena *a, struct belay_error *err);
belay_rc pg_commit(struct driver *d, void *attempt, const struct plan *plan,
                   struct plan_result *result, struct belay_error *err);
/* Questions on the attempt's connection, or one from the pool; answers to question i go
 * to arenas[i]. */
MUST_USE belay_rc pg_read_alone(struct pg_store *s, struct pg_attempt *at,
                                struct read *reads, size_t n,
                                struct belay_arena *const *arenas,
                                struct belay_error *err);
/* A plan on the attempt's connection, or one from the pool. */
MUST_USE belay_rc pg_commit_alone(struct pg_store *s, struct pg_attempt *at,
                                  const struct plan *plan, struct plan_result *result,
                                  struct belay_error *err);
/* The same, perhaps together with others' plans. */
MUST_USE belay_rc pg_commit_together(struct pg_store *s, struct pg_attempt *at,
                                     const struct plan *plan,
                                     struct plan_result *result,
                                     struct belay_error *err);

/* A row that was to be inserted is there, and the server does not say which of its type: the
 * first one is the guard that failed, if that can be found out. */
MUST_USE belay_rc pg_which_was_there(struct pg_store *s, struct pg_conn *conn,
                                     const struct plan *plan,
                                     struct plan_result *result, struct belay_arena *a,
                                     struct belay_error *err);
/* Why the plan was refused, or BELAY_OK and a conflict when there is no reason any
 * more. */
MUST_USE belay_rc pg_why_refused(struct pg_store *s, struct pg_conn *c,
                                 const struct plan *plan, struct plan_result *result,
                                 struct belay_arena *a, struct belay_error *err);

/* A plan without effects, by an attempt that holds nothing: whether its guards hold. */
MUST_USE belay_rc pg_confirm(struct driver *d, const struct plan *plan,
                             struct plan_result *result, struct belay_arena *a,
                             struct belay_error *err);

/* What of a plan is in the pipe. */
enum pg_added {
    PG_ADDED_ROWS, /* its rows */
    PG_ADDED_ALL,  /* all of it */
    PG_ADDED_WHOLE, /* all of it, and it needs no transaction of its own kind: whatever was
                       changed since it began is a conflict, at any isolation level */
};
MUST_USE belay_rc pg_add_rows(struct pg_store *s, struct pg_pipe *p,
                              const struct plan *plan, bool holds, enum pg_added *added,
                              struct belay_error *err);
/* Ranks, as far as there is memory (p->no_memory).  picks: of the transaction in which that is
 * done. */
void pg_add_ranks(struct pg_store *s, struct pg_pipe *p, const struct plan *plan,
                  const struct pg_picks *picks);
/* Logs, counters, feeds, chunks. */
MUST_USE belay_rc pg_add_rest(struct pg_store *s, struct pg_pipe *p,
                              const struct plan *plan, struct pg_call **calls,
                              struct belay_error *err);

/* --- walk.c, care.c, doctor.c --- */

belay_rc pg_walk(struct driver *d, struct bytes ns, item_visit *visit, void *arg,
                 struct belay_error *err);
belay_rc pg_erase(struct driver *d, struct bytes ns, size_t limit, bool *more,
                  struct belay_error *err);
belay_rc pg_check(struct driver *d, finding_report *report, void *arg,
                  struct belay_error *err);
belay_rc pg_doctor(struct driver *d, finding_report *report, void *arg,
                   struct belay_error *err);

/* --- listen.c --- */

MUST_USE belay_rc pg_listener_open(struct pg_store *s, struct belay_error *err);
void pg_listener_close(struct pg_store *s);
void pg_notify(struct driver *d, struct bytes ns, struct bytes topic);
/* Adds a NOTIFY of the plan's topics to its commit, where somebody waits and hardly
 * anything else happens: commits that have one go one after the other.  False: it is left
 * to pg_notify. */
MUST_USE bool pg_add_notice(struct pg_store *s, struct pg_pipe *p,
                            const struct plan *plan);

#endif /* STORE_DRIVERS_POSTGRES_IMPL_H */
