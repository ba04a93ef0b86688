/* impl.h - what the files of the SQLite driver share.
 *
 *   open.c      files, pragmas, hardening, schema, format
 *   sql.c       statement texts, derived from the dictionary
 *   conn.c      connections, prepared statements, error codes
 *   read.c      answering questions
 *   rowcache.c  rows the writer has in mind
 *   commit.c    checking and applying a plan
 *   group.c     many bodies, one write transaction, one fsync
 *   wal.c       checkpoints, and when what was committed is on the disk
 *   walfile.c   one write for a commit's frames, and the sync apart from it
 *   walk.c      everything in a namespace
 *   care.c      erasing a namespace, looking for damage
 *   doctor.c    how file, log, lock and disk are doing
 *   forked.c    what a forked child must not keep
 *   lock.c      one writer among all processes
 *   wakefile.c  wake-ups among them
 *
 * One connection writes, under the file lock, and only the group's leader uses it.
 * Readers have connections of their own, one thread at a time each.
 */
#ifndef STORE_DRIVERS_SQLITE_IMPL_H
#define STORE_DRIVERS_SQLITE_IMPL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "base/park.h"
#include "store/drivers/sqlite.h"
#include "store/drivers/sqlite/lock.h"
#include "store/drivers/sqlite/rowcache.h"
#include "store/drivers/sqlite/wakefile.h"
#include "store/drivers/sqlite/walfile.h"

/* "BLAY" in ASCII; PRAGMA application_id of a Belay file. */
#define SQLITE_BELAY_ID 0x424c4159

/* The layout this driver keeps its tables in; PRAGMA user_version. */
#define LAYOUT 1
#define LAYOUT_TEXT "1"

/* --- statements --- */

/* One per row type. */
enum type_sql { TYPE_GET, TYPE_VER, TYPE_INSERT, TYPE_DELETE, TYPE_ALL, TYPE_SQLS };

/* The rest. */
enum plain_sql {
    SQL_BEGIN_READ,
    SQL_BEGIN_WRITE,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_RANK_ADD,
    SQL_RANK_REMOVE,
    SQL_RANK_AT,
    SQL_RANK_SCAN,
    SQL_RANK_SCAN_DOWN,
    SQL_LOG_APPEND,
    SQL_LOG_LAST,
    SQL_LOG_TRIM,
    SQL_LOG_READ,
    SQL_FEED_NEXT,
    SQL_FEED_HEAD,
    SQL_FEED_APPEND,
    SQL_FEED_TRIM,
    SQL_FEED_TRIMMED,
    SQL_FEED_READ,
    SQL_CHUNK_PUT,
    SQL_CHUNK_DROP,
    SQL_CHUNK_GET,
    SQL_ALL_RANKS,
    SQL_ALL_LOGS,
    SQL_ALL_FEEDS,
    SQL_ALL_CHUNKS,
    PLAIN_SQLS
};

/* An UPDATE of some columns of a type, prepared when first needed. */
struct put_statement {
    struct put_statement *next;
    uint64_t changed;
    sqlite3_stmt *st;
};

struct type_statements {
    sqlite3_stmt *st[TYPE_SQLS];
    struct put_statement *puts;
    sqlite3_stmt *count[SCHEMA_COLUMNS_MAX]; /* SET counter = ? */
};

/* A connection and the statements prepared on it so far. */
struct conn {
    struct conn *next; /* in the pool of readers */
    sqlite3 *db;
    struct sqlite_store *store;
    struct rowcache *rows; /* the writer's; NULL: none */
    unsigned rows_version; /* of the file, when they were read or written */
    sqlite3_stmt *plain[PLAIN_SQLS];
    struct type_statements *types; /* one per row type of the dictionary */
};

/* --- the group --- */

/* What a member is told, beside PARKER_WOKEN by a cancel. */
#define MEMBER_LEADS 2U
#define MEMBER_ANSWERED 4U /* the last word: nobody touches the member after it */
#define MEMBER_SYNCS 8U    /* it waits for the disk and answers its group, itself too */

/* A commit to the log: by the count of this process, and by that of all. */
struct wal_point {
    uint64_t own, all;
};

struct member {
    struct member *next;
    struct driver_job *job;
    struct parker parker;
    bool queued;           /* under the group's mutex: it may leave by itself */
    struct member *group;  /* MEMBER_SYNCS: whom it answers, */
    struct wal_point seen; /* and up to which commit it syncs */
    belay_rc rc;
    struct belay_error err;
};

struct group {
    pthread_mutex_t mutex;
    struct member *first, **last; /* queued, oldest first */
    bool led;                     /* somebody leads */
};

/* What the group's leader is doing; it alone touches this, but for `leader`. */
struct turn {
    uint64_t applied; /* plans, in all turns so far */
    bool wrote;       /* a plan was applied in it */
    bool broken;      /* applying failed half-way: it must be rolled back */
    bool alone;       /* one member has it to itself, and is looked at closely */
    size_t bytes;     /* of the plans applied */
    _Atomic uintptr_t leader; /* the thread whose turn it is, or 0 */
};

#define LEADER_TURNS 16 /* then another leads: this one has its own work to do */
#define GROUP_BODIES_MAX 256
#define GROUP_BYTES_MAX ((size_t)4 << 20)

struct sqlite_store {
    struct driver d;
    struct driver_config config;
    char *path; /* NULL: in memory */
    struct file_lock lock;
    struct wakefile *wakefile;
    struct conn *writer;
    struct walfile *walfile; /* the writer's; NULL: in memory */
    pthread_mutex_t sync_mutex;
    pthread_cond_t sync_done;
    bool syncing; /* somebody waits for the disk: one at a time */
    /* Commits of this process: that anybody may see, that are in the log, that are on the
     * disk; and the number of the last one in the log in the page of all processes. */
    _Atomic uint64_t begun, written, durable, written_mark;
    pthread_mutex_t readers_mutex;
    struct conn *readers;
    unsigned n_readers;
    struct group group;
    struct turn turn;
    atomic_bool poisoned; /* X5 */
    int wal_pages;        /* after the last commit, from the hook */
    int wal_pages_before; /* after the one before it */
    int64_t wal_full_at;  /* pages at which a passive checkpoint is tried next */
};

struct sqlite_attempt {
    struct bytes ns;
    struct conn *conn; /* NULL: nothing was read yet */
    bool writes;       /* in the group's turn, on the writer's connection */
    uint64_t read_at; /* turn.applied + 1 at its first read there; 0: it read nothing */
};

/* --- sql.c --- */

/* The statements that create the schema, one after the other, NUL-terminated. */
MUST_USE belay_rc sql_schema(const struct schema *s, struct buf *out,
                             struct belay_error *err);
void sql_table(const struct row_type *type, struct buf *out);
void sql_add_column(const struct row_type *type, unsigned column, struct buf *out);
void sql_of_type(const struct row_type *type, enum type_sql which, struct buf *out);
void sql_put(const struct row_type *type, uint64_t changed, struct buf *out);
void sql_count(const struct row_type *type, unsigned column, struct buf *out);
const char *sql_plain(enum plain_sql which);

/* --- conn.c --- */

MUST_USE belay_rc conn_open(struct sqlite_store *s, bool create, struct conn **out,
                            struct belay_error *err);
/* From now on only our own statements run on it: no PRAGMA, no ATTACH, no DDL. */
void conn_restrict(struct conn *c);
void conn_close(struct conn *c); /* takes NULL */

/* A reader's connection from the pool, or a new one; and back, its snapshot ended. */
MUST_USE belay_rc reader_take(struct sqlite_store *s, struct conn **out,
                              struct belay_error *err);
void reader_give_back(struct sqlite_store *s, struct conn *c);

/* The statement, prepared if need be, reset and without bindings; NULL: *err says why.
 */
sqlite3_stmt *conn_plain(struct conn *c, enum plain_sql which, struct belay_error *err);
sqlite3_stmt *conn_type(struct conn *c, const struct row_type *type,
                        enum type_sql which, struct belay_error *err);
sqlite3_stmt *conn_put(struct conn *c, const struct row_type *type, uint64_t changed,
                       struct belay_error *err);
sqlite3_stmt *conn_count(struct conn *c, const struct row_type *type, unsigned column,
                         struct belay_error *err);

/* Runs a statement that gives no rows. */
MUST_USE belay_rc conn_run(struct conn *c, sqlite3_stmt *st, const char *what,
                           struct belay_error *err);
MUST_USE belay_rc conn_run_plain(struct conn *c, enum plain_sql which, const char *what,
                                 struct belay_error *err);

/* Inside a write transaction, at its begin: forgets rows if somebody else has written.
 * At its end: what is remembered is of now, if it was committed. */
void conn_rows_begin(struct conn *c);
void conn_rows_end(struct conn *c, bool committed);

/* One place that maps SQLite's codes; a disk that failed poisons the store (X5). */
belay_rc conn_error(struct conn *c, const char *what, struct belay_error *err);

/* The error of a store whose disk has failed before. */
belay_rc store_poisoned(struct belay_error *err);

/* Binding never fails but for memory, which the step then reports; indexes from 1. */
void bind_bytes(sqlite3_stmt *st, int at, struct bytes b);
void bind_text(sqlite3_stmt *st, int at, struct bytes b);
void bind_value(sqlite3_stmt *st, int at, const struct value *v);
/* ns, then the key parts, from `at` on; returns the next index. */
int bind_key(sqlite3_stmt *st, int at, struct bytes ns, const struct row_ref *ref);

/* The column as a value of the given type, copied into the arena; false: no memory. */
MUST_USE bool column_value(sqlite3_stmt *st, int at, enum value_kind type,
                           struct belay_arena *a, struct value *out);
MUST_USE bool column_bytes(sqlite3_stmt *st, int at, struct belay_arena *a,
                           struct bytes *out);

/* --- read.c --- */

MUST_USE belay_rc conn_read(struct conn *c, struct bytes ns, struct read *reads,
                            size_t n, struct belay_arena *a, struct belay_error *err);
/* The row the statement stands on (ns and key not selected): ver, then all columns. */
MUST_USE belay_rc row_from(sqlite3_stmt *st, const struct row_type *type,
                           struct belay_arena *a, const struct row **out,
                           struct belay_error *err);

/* --- commit.c --- */

/* What need not be looked at before a plan is applied. */
enum trust {
    TRUST_NOTHING,
    TRUST_READS,   /* nothing was applied since the attempt's first read in this
                      transaction: guards it has read hold */
    TRUST_EFFECTS, /* and what is wrong with a row that is inserted, a rank or a log is
                      found by applying it; who finds it so checks again, trusting less */
};
/* Guards, then everything that can be refused (rule 3 of driver.h).  Nothing changes. */
MUST_USE belay_rc plan_check(struct conn *c, const struct plan *plan, enum trust trust,
                             struct plan_result *result, struct belay_error *err);
/* Applies a plan that was checked in the same transaction.  A failure may leave it half
 * applied: the transaction must be rolled back. */
MUST_USE belay_rc plan_apply(struct conn *c, const struct plan *plan,
                             struct plan_result *result, struct belay_error *err);

/* --- group.c --- */

belay_rc group_submit(struct driver *d, struct driver_job *job,
                      struct belay_error *err);
/* driver_ops.commit: inside a turn, or as a turn of its own. */
belay_rc group_commit(struct driver *d, void *attempt, const struct plan *plan,
                      struct plan_result *result, struct belay_error *err);
/* Takes back what a turn left open for want of memory; mostly there is nothing. */
MUST_USE belay_rc group_roll_back(struct sqlite_store *s, struct belay_error *err);
/* Whether the calling thread is in its turn. */
bool group_in_turn(const struct sqlite_store *s);

/* --- wal.c --- */

/* After a commit, still under the lock: whether the log wants looking after, and doing so. */
bool wal_is_due(struct sqlite_store *s);
void wal_after_commit(struct sqlite_store *s);

/* COMMIT on the writer's connection, under the lock.  It is in the log afterwards, and on
 * the disk after wal_sync. */
MUST_USE belay_rc wal_commit(struct sqlite_store *s, bool wrote,
                             struct belay_error *err);
/* The last commit that anybody can have seen by now. */
struct wal_point wal_seen(const struct sqlite_store *s);
/* Returns when all commits up to the given one, of all processes, are on the disk.  A sync
 * that fails poisons the store (X5), and every call after it. */
MUST_USE belay_rc wal_sync(struct sqlite_store *s, struct wal_point upto,
                           struct belay_error *err);
/* At open, under the lock: what an unclean end left in the WAL goes into the file. */
MUST_USE belay_rc wal_recover(struct sqlite_store *s, struct belay_error *err);

/* --- walk.c --- */

belay_rc sqlite_walk(struct driver *d, struct bytes ns, item_visit *visit, void *arg,
                     struct belay_error *err);

/* --- care.c --- */

belay_rc sqlite_erase(struct driver *d, struct bytes ns, size_t limit, bool *more,
                      struct belay_error *err);
belay_rc sqlite_check(struct driver *d, finding_report *report, void *arg,
                      struct belay_error *err);

/* --- doctor.c --- */

belay_rc sqlite_doctor(struct driver *d, finding_report *report, void *arg,
                       struct belay_error *err);

#endif /* STORE_DRIVERS_SQLITE_IMPL_H */
