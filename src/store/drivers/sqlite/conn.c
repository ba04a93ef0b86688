#include <stdlib.h>
#include <string.h>

#include "store/drivers/sqlite/impl.h"

/* How long a connection waits for a program that is not Belay and holds SQLite's own
 * locks, a shell for instance; Belay processes queue at the file lock instead. */
#define FOREIGN_LOCK_MS 5000

#define READERS_KEPT 16

/* --- errors --- */

belay_rc store_poisoned(struct belay_error *err)
{
    return err_reason(
        err, BELAY_POISONED, "disk",
        "store: the disk or the file has failed; close it and open it again");
}

/* SQLite's primary codes, and what they mean here.  What is not listed is a bug of ours
 * or of the file: corrupt. */
/* clang-format off */
static const struct {
    int code; belay_rc rc; bool poisons; const char *reason;
} codes[] = {
    { SQLITE_NOMEM,    BELAY_NO_MEMORY,   false, "" },
    { SQLITE_BUSY,     BELAY_UNAVAILABLE, false, "locked" },
    { SQLITE_LOCKED,   BELAY_UNAVAILABLE, false, "locked" },
    { SQLITE_PROTOCOL, BELAY_UNAVAILABLE, false, "locked" },
    { SQLITE_READONLY, BELAY_UNAVAILABLE, false, "read_only" },
    { SQLITE_PERM,     BELAY_UNAVAILABLE, false, "permission" },
    { SQLITE_AUTH,     BELAY_UNAVAILABLE, false, "permission" },
    { SQLITE_CANTOPEN, BELAY_UNAVAILABLE, false, "cannot_open" },
    { SQLITE_NOTADB,   BELAY_UNAVAILABLE, false, "not_a_database" },
    { SQLITE_TOOBIG,   BELAY_INVALID,     false, "too_large" },
    { SQLITE_INTERRUPT, BELAY_TIMEOUT,    false, "" },
    { SQLITE_IOERR,    BELAY_POISONED,    true,  "disk" },
    { SQLITE_FULL,     BELAY_POISONED,    true,  "disk_full" },
    { SQLITE_CORRUPT,  BELAY_CORRUPT,     true,  "sqlite" },
};
/* clang-format on */

belay_rc conn_error(struct conn *c, const char *what, struct belay_error *err)
{
    int code = sqlite3_extended_errcode(c->db);

    if (code == SQLITE_IOERR_NOMEM)
        code = SQLITE_NOMEM;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        if (codes[i].code != (code & 0xff))
            continue;
        /* X9: a broken file is written to no more; a reader that meets the broken page
         * says so, and `check` goes on to find the others. */
        bool reader = c != c->store->writer && codes[i].rc == BELAY_CORRUPT;
        if (codes[i].poisons && !reader)
            atomic_store(&c->store->poisoned, true);
        return err_reason(err, codes[i].rc, codes[i].reason, "sqlite: %s: %s", what,
                          sqlite3_errmsg(c->db));
    }
    return err_reason(err, BELAY_CORRUPT, "sqlite", "sqlite: %s: %s", what,
                      sqlite3_errmsg(c->db));
}

/* --- statements --- */

static sqlite3_stmt *prepare(struct conn *c, const char *text, sqlite3_stmt **kept,
                             struct belay_error *err)
{
    if (sqlite3_prepare_v3(c->db, text, -1, SQLITE_PREPARE_PERSISTENT, kept, NULL)) {
        (void)conn_error(c, "prepare", err);
        return NULL;
    }
    return *kept;
}

/* A statement that was left in the middle of its rows is reset when it is used again;
 * one that ran to its end costs nothing here. */
static sqlite3_stmt *again(sqlite3_stmt *st)
{
    (void)sqlite3_reset(st); /* its error was reported by step */
    return st;
}

sqlite3_stmt *conn_plain(struct conn *c, enum plain_sql which, struct belay_error *err)
{
    if (c->plain[which])
        return again(c->plain[which]);
    return prepare(c, sql_plain(which), &c->plain[which], err);
}

static struct type_statements *type_of(struct conn *c, const struct row_type *type,
                                       struct belay_error *err)
{
    const struct schema *s = c->store->config.schema;

    for (size_t i = 0; i < s->n_types; i++) {
        if (s->types[i] == type)
            return &c->types[i];
    }
    (void)err_set(err, BELAY_MISUSE, "sqlite: row type %s is not in the dictionary",
                  type->name);
    return NULL;
}

static sqlite3_stmt *prepare_buf(struct conn *c, struct buf *text, sqlite3_stmt **kept,
                                 struct belay_error *err)
{
    sqlite3_stmt *st = NULL;

    buf_append_char(text, '\0');
    if (text->failed)
        (void)err_no_memory(err, "a statement");
    else
        st = prepare(c, (const char *)text->ptr, kept, err);
    buf_release(text);
    return st;
}

sqlite3_stmt *conn_type(struct conn *c, const struct row_type *type,
                        enum type_sql which, struct belay_error *err)
{
    struct type_statements *of = type_of(c, type, err);

    if (!of)
        return NULL;
    if (of->st[which])
        return again(of->st[which]);
    struct buf text = { .ptr = NULL };
    sql_of_type(type, which, &text);
    return prepare_buf(c, &text, &of->st[which], err);
}

sqlite3_stmt *conn_put(struct conn *c, const struct row_type *type, uint64_t changed,
                       struct belay_error *err)
{
    struct type_statements *of = type_of(c, type, err);

    if (!of)
        return NULL;
    for (struct put_statement *p = of->puts; p; p = p->next) {
        if (p->changed == changed)
            return again(p->st);
    }
    struct put_statement *p = calloc(1, sizeof(*p));
    if (!p) {
        (void)err_no_memory(err, "a statement");
        return NULL;
    }
    struct buf text = { .ptr = NULL };
    sql_put(type, changed, &text);
    p->changed = changed;
    if (!prepare_buf(c, &text, &p->st, err)) {
        free(p);
        return NULL;
    }
    p->next = of->puts;
    of->puts = p;
    return p->st;
}

sqlite3_stmt *conn_count(struct conn *c, const struct row_type *type, unsigned column,
                         struct belay_error *err)
{
    struct type_statements *of = type_of(c, type, err);

    if (!of)
        return NULL;
    if (of->count[column])
        return again(of->count[column]);
    struct buf text = { .ptr = NULL };
    sql_count(type, column, &text);
    return prepare_buf(c, &text, &of->count[column], err);
}

belay_rc conn_run(struct conn *c, sqlite3_stmt *st, const char *what,
                  struct belay_error *err)
{
    if (!st)
        return err && err->code ? (belay_rc)err->code : BELAY_NO_MEMORY;
    int step = sqlite3_step(st);
    while (step == SQLITE_ROW)
        step = sqlite3_step(st);
    belay_rc rc = step == SQLITE_DONE ? BELAY_OK : conn_error(c, what, err);
    (void)sqlite3_reset(st);
    return rc;
}

belay_rc conn_run_plain(struct conn *c, enum plain_sql which, const char *what,
                        struct belay_error *err)
{
    return conn_run(c, conn_plain(c, which, err), what, err);
}

/* --- rows in mind --- */

/* Changes with every commit, of this connection or another. */
static unsigned file_version(struct conn *c)
{
    unsigned version = 0;

    (void)sqlite3_file_control(c->db, "main", SQLITE_FCNTL_DATA_VERSION, &version);
    return version;
}

void conn_rows_begin(struct conn *c)
{
    if (c->rows && file_version(c) != c->rows_version)
        rowcache_clear(c->rows);
}

void conn_rows_end(struct conn *c, bool committed)
{
    if (c->rows && !committed)
        rowcache_clear(c->rows);
    c->rows_version = file_version(c);
}

/* --- binding and reading columns --- */

void bind_bytes(sqlite3_stmt *st, int at, struct bytes b)
{
    (void)sqlite3_bind_blob64(st, at, b.len ? (const void *)b.ptr : "", b.len,
                              SQLITE_STATIC);
}

void bind_text(sqlite3_stmt *st, int at, struct bytes b)
{
    (void)sqlite3_bind_text64(st, at, b.len ? (const char *)b.ptr : "", b.len,
                              SQLITE_STATIC, SQLITE_UTF8);
}

void bind_value(sqlite3_stmt *st, int at, const struct value *v)
{
    switch (v->kind) {
    case VALUE_NULL:
        (void)sqlite3_bind_null(st, at);
        break;
    case VALUE_I64:
        (void)sqlite3_bind_int64(st, at, v->i);
        break;
    case VALUE_TEXT:
    case VALUE_JSON:
        bind_text(st, at, v->b);
        break;
    case VALUE_BYTES:
        bind_bytes(st, at, v->b);
        break;
    }
}

int bind_key(sqlite3_stmt *st, int at, struct bytes ns, const struct row_ref *ref)
{
    bind_text(st, at++, ns);
    for (unsigned i = 0; i < ref->type->n_key; i++)
        bind_value(st, at++, &ref->key[i]);
    return at;
}

bool column_bytes(sqlite3_stmt *st, int at, struct belay_arena *a, struct bytes *out)
{
    const void *ptr = sqlite3_column_blob(st, at);

    return arena_copy(a, bytes_of(ptr, (size_t)sqlite3_column_bytes(st, at)), out);
}

bool column_value(sqlite3_stmt *st, int at, enum value_kind type, struct belay_arena *a,
                  struct value *out)
{
    *out = (struct value){ .kind = VALUE_NULL };
    if (sqlite3_column_type(st, at) == SQLITE_NULL)
        return true;
    out->kind = type;
    if (type == VALUE_I64) {
        out->i = sqlite3_column_int64(st, at);
        return true;
    }
    return column_bytes(st, at, a, &out->b);
}

/* --- connections --- */

static void finalize_type(struct type_statements *of)
{
    for (unsigned i = 0; i < TYPE_SQLS; i++)
        (void)sqlite3_finalize(of->st[i]);
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++)
        (void)sqlite3_finalize(of->count[i]);
    for (struct put_statement *next, *p = of->puts; p; p = next) {
        next = p->next;
        (void)sqlite3_finalize(p->st);
        free(p);
    }
}

void conn_close(struct conn *c)
{
    if (!c)
        return;
    for (unsigned i = 0; i < PLAIN_SQLS; i++)
        (void)sqlite3_finalize(c->plain[i]);
    for (size_t i = 0; c->types && i < c->store->config.schema->n_types; i++)
        finalize_type(&c->types[i]);
    (void)sqlite3_close(c->db);
    rowcache_free(c->rows);
    free(c->types);
    free(c);
}

/* What every connection is set to before its first use. */
static belay_rc harden(struct conn *c, struct belay_error *err)
{
    static const struct {
        int what, value;
    } configs[] = {
        { SQLITE_DBCONFIG_DEFENSIVE, 1 },
        { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
        { SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0 },
        { SQLITE_DBCONFIG_DQS_DML, 0 }, /* a column that is not there is no text */
        { SQLITE_DBCONFIG_DQS_DDL, 0 },
        { SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1 }, /* it would be outside the lock */
    };
    static const struct {
        int what, value;
    } limits[] = {
        { SQLITE_LIMIT_LENGTH, 64 << 20 },   { SQLITE_LIMIT_SQL_LENGTH, 64 << 10 },
        { SQLITE_LIMIT_ATTACHED, 0 },        { SQLITE_LIMIT_EXPR_DEPTH, 50 },
        { SQLITE_LIMIT_COMPOUND_SELECT, 4 }, { SQLITE_LIMIT_VARIABLE_NUMBER, 128 },
    };
    static const char pragmas[] =
        "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;"
        "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;"
        "PRAGMA cache_size = -16384; PRAGMA foreign_keys = OFF";

    for (size_t i = 0; i < COUNT_OF(configs); i++)
        (void)sqlite3_db_config(c->db, configs[i].what, configs[i].value, (int *)NULL);
    for (size_t i = 0; i < COUNT_OF(limits); i++)
        (void)sqlite3_limit(c->db, limits[i].what, limits[i].value);
    (void)sqlite3_busy_timeout(c->db, FOREIGN_LOCK_MS);
    (void)sqlite3_wal_autocheckpoint(c->db, 0);
    return sqlite3_exec(c->db, pragmas, NULL, NULL, NULL) ? conn_error(c, "set up", err)
                                                          : BELAY_OK;
}

/* After set-up nothing but our statements may run. */
static int authorise(void *arg, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)arg;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_TRANSACTION:
    case SQLITE_FUNCTION:
        return SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

void conn_restrict(struct conn *c)
{
    (void)sqlite3_set_authorizer(c->db, authorise, NULL);
}

belay_rc conn_open(struct sqlite_store *s, bool create, struct conn **out,
                   struct belay_error *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    struct conn *c = calloc(1, sizeof(*c));

    if (c)
        c->types = calloc(s->config.schema->n_types, sizeof(*c->types));
    if (!c || !c->types) {
        free(c);
        return err_no_memory(err, "a connection");
    }
    c->store = s;
    if (create)
        flags |= SQLITE_OPEN_CREATE;
    belay_rc rc = BELAY_OK;
    if (sqlite3_open_v2(s->path ? s->path : ":memory:", &c->db, flags, NULL))
        rc = c->db ? conn_error(c, "open", err) : err_no_memory(err, "a connection");
    if (!rc)
        rc = harden(c, err);
    if (rc)
        conn_close(c);
    else
        *out = c;
    return rc;
}

belay_rc reader_take(struct sqlite_store *s, struct conn **out, struct belay_error *err)
{
    pthread_mutex_lock(&s->readers_mutex);
    struct conn *c = s->readers;
    if (c) {
        s->readers = c->next;
        s->n_readers--;
    }
    pthread_mutex_unlock(&s->readers_mutex);
    if (!c) {
        belay_rc rc = conn_open(s, false, &c, err);
        if (rc)
            return rc;
        conn_restrict(c);
    }
    *out = c;
    return BELAY_OK;
}

void reader_give_back(struct sqlite_store *s, struct conn *c)
{
    struct belay_error ignored = { .code = 0 };
    bool clean = sqlite3_get_autocommit(c->db) ||
                 !conn_run_plain(c, SQL_ROLLBACK, "end a snapshot", &ignored);

    pthread_mutex_lock(&s->readers_mutex);
    bool keep = clean && s->n_readers < READERS_KEPT;
    if (keep) {
        c->next = s->readers;
        s->readers = c;
        s->n_readers++;
    }
    pthread_mutex_unlock(&s->readers_mutex);
    if (!keep)
        conn_close(c);
}
