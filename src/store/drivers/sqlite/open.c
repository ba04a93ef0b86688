#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "store/drivers/sqlite/impl.h"

/* --- what may be opened --- */

/* Files of several hosts: neither SQLite's locks nor ours are safe there. */
static belay_rc check_local(const char *folder, struct belay_error *err)
{
    /* clang-format off */
    static const struct { unsigned long magic; const char *name; } remote[] = {
        { NFS_SUPER_MAGIC, "NFS" }, { SMB_SUPER_MAGIC, "SMB" },
        { 0xff534d42, "CIFS" },     { 0xfe534d42, "SMB2" },
        { AFS_SUPER_MAGIC, "AFS" }, { CEPH_SUPER_MAGIC, "Ceph" },
        { V9FS_MAGIC, "9P" },       { CODA_SUPER_MAGIC, "Coda" },
    };
    /* clang-format on */
    struct statfs fs;

    if (statfs(folder, &fs))
        return BELAY_OK; /* what is wrong with the folder is said better by open */
    for (size_t i = 0; i < COUNT_OF(remote); i++) {
        if (((unsigned long)fs.f_type & 0xffffffff) == remote[i].magic)
            return err_reason(
                err, BELAY_UNAVAILABLE, "network_file_system",
                "sqlite: the file lies on %s; a store must be on a local disk",
                remote[i].name);
    }
    return BELAY_OK;
}

/* NUL-terminated; failed when there is no memory. */
static void folder_of(const char *path, struct buf *out)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;

    buf_append(out, slash ? bytes_of(path, len ? len : 1) : bytes_str("."));
    buf_append_char(out, '\0');
}

static belay_rc check_path(const char *path, struct belay_error *err)
{
    struct stat st;
    CLEANUP(buf_release) struct buf folder = { .ptr = NULL };

    if (!stat(path, &st) && S_ISDIR(st.st_mode))
        return err_reason(err, BELAY_UNAVAILABLE, "directory",
                          "sqlite: %s: is a directory, not a file", path);
    folder_of(path, &folder);
    if (folder.failed)
        return err_no_memory(err, "a path");
    int failed = stat((const char *)folder.ptr, &st) ? errno
                 : S_ISDIR(st.st_mode)               ? 0
                                                     : ENOTDIR;
    if (failed)
        return err_reason(err, BELAY_UNAVAILABLE, "no_folder", "sqlite: folder %s: %s",
                          (const char *)folder.ptr, strerror(failed));
    return check_local((const char *)folder.ptr, err);
}

/* --- the schema --- */

static belay_rc exec(struct conn *c, const char *sql, const char *what,
                     struct belay_error *err)
{
    return sqlite3_exec(c->db, sql, NULL, NULL, NULL) ? conn_error(c, what, err)
                                                      : BELAY_OK;
}

/* The number a query gives; -1 when it gives none. */
static belay_rc ask(struct conn *c, const char *sql, int64_t *out,
                    struct belay_error *err)
{
    sqlite3_stmt *st = NULL;

    *out = -1;
    if (sqlite3_prepare_v2(c->db, sql, -1, &st, NULL))
        return conn_error(c, "read the header", err);
    int step = sqlite3_step(st);
    if (step == SQLITE_ROW)
        *out = sqlite3_column_int64(st, 0);
    belay_rc rc = step == SQLITE_ROW || step == SQLITE_DONE
                      ? BELAY_OK
                      : conn_error(c, "read the header", err);
    (void)sqlite3_finalize(st);
    return rc;
}

/* Application id, layout and all tables in one transaction: nobody sees a part of it.
 */
static belay_rc create_schema(struct conn *c, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf sql = { .ptr = NULL };
    belay_rc rc = exec(c, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL",
                       "create", err);
    if (rc)
        return rc;
    buf_printf(
        &sql,
        "BEGIN IMMEDIATE; PRAGMA application_id = %d; PRAGMA user_version = %d;\n",
        SQLITE_BELAY_ID, LAYOUT);
    rc = sql_schema(c->store->config.schema, &sql, err);
    if (!rc)
        rc = exec(c, (const char *)sql.ptr, "create the schema", err);
    if (!rc)
        rc = exec(c, "COMMIT", "create the schema", err);
    if (rc && !sqlite3_get_autocommit(c->db))
        (void)sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

static belay_rc refuse(int64_t expected, int64_t found, const char *why,
                       struct belay_error *err)
{
    belay_rc rc = err_reason(err, BELAY_UNSUPPORTED_FORMAT, "file",
                             "sqlite: %s: found %lld, expected %lld", why,
                             (long long)found, (long long)expected);
    err_numbers(err, expected, found);
    return rc;
}

/* Adds what this program's dictionary has and the file has not: columns and tables.
 * What a newer program added is left alone: statements name their columns. */
static belay_rc add_missing(struct conn *c, const struct row_type *type,
                            struct belay_error *err)
{
    CLEANUP(buf_release) struct buf sql = { .ptr = NULL };
    int64_t there = 0;

    buf_printf(&sql,
               "SELECT count(*) FROM pragma_table_info('belay_%s')"
               " WHERE name IN ('ns', 'ver'",
               type->name);
    for (unsigned i = 0; i < type->n_columns; i++)
        buf_printf(&sql, ", '%s'", type->columns[i].name);
    buf_append_char(&sql, ')');
    buf_append_char(&sql, '\0');
    if (sql.failed)
        return err_no_memory(err, "a statement");
    belay_rc rc = ask(c, (const char *)sql.ptr, &there, err);
    if (rc || there == type->n_columns + 2)
        return rc;
    if (there == 0) {
        buf_reset(&sql);
        sql_table(type, &sql);
        buf_append_char(&sql, '\0');
        return sql.failed ? err_no_memory(err, "a statement")
                          : exec(c, (const char *)sql.ptr, "add a table", err);
    }
    for (unsigned i = type->n_key; i < type->n_columns && !rc; i++) {
        buf_reset(&sql);
        buf_printf(
            &sql,
            "SELECT count(*) FROM pragma_table_info('belay_%s') WHERE name = '%s'",
            type->name, type->columns[i].name);
        buf_append_char(&sql, '\0');
        rc = sql.failed ? err_no_memory(err, "a statement")
                        : ask(c, (const char *)sql.ptr, &there, err);
        if (rc || there > 0)
            continue;
        buf_reset(&sql);
        sql_add_column(type, i, &sql);
        buf_append_char(&sql, '\0');
        rc = sql.failed ? err_no_memory(err, "a statement")
                        : exec(c, (const char *)sql.ptr, "add a column", err);
    }
    return rc;
}

static belay_rc check_schema(struct conn *c, struct belay_error *err)
{
    const struct schema *s = c->store->config.schema;
    int64_t id = 0, layout = 0, tables = 0;
    belay_rc rc = ask(c, "PRAGMA application_id", &id, err);

    if (!rc)
        rc = ask(c, "PRAGMA user_version", &layout, err);
    if (!rc)
        rc = ask(c, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (rc)
        return rc;
    if (tables == 0 && id == 0 && layout == 0)
        return create_schema(c, err);
    if (id != SQLITE_BELAY_ID)
        return refuse(SQLITE_BELAY_ID, id, "another program's file (application id)",
                      err);
    if (layout != LAYOUT)
        return refuse(LAYOUT, layout, "a file of another format", err);
    rc = exec(c, "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE", "open", err);
    for (size_t i = 0; i < s->n_types && !rc; i++)
        rc = add_missing(c, s->types[i], err);
    if (!rc)
        rc = exec(c, "COMMIT", "open", err);
    if (rc && !sqlite3_get_autocommit(c->db))
        (void)sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

static int count_pages(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct sqlite_store *)arg)->wal_pages = pages;
    return SQLITE_OK;
}

/* The settings that promises rest on, read back (X1). */
static belay_rc check_durable(struct sqlite_store *s, struct belay_error *err)
{
    int64_t sync = 0, wal = 0;
    belay_rc rc = ask(s->writer, "PRAGMA synchronous", &sync, err);

    if (!rc)
        rc = ask(s->writer, "SELECT journal_mode = 'wal' FROM pragma_journal_mode",
                 &wal, err);
    if (!rc && s->path && (sync != 2 || wal != 1))
        rc = err_reason(err, BELAY_UNAVAILABLE, "durability",
                        "sqlite: the file cannot be written durably here");
    return rc;
}

/* SQLite syncs the folder when it creates a file and lives to sync that.  Who finds the
 * file there, after one that did not, must not rely on its name before this. */
static belay_rc sync_folder(struct sqlite_store *s, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf folder = { .ptr = NULL };

    if (!s->path)
        return BELAY_OK;
    folder_of(sqlite3_db_filename(s->writer->db, NULL), &folder);
    if (folder.failed)
        return err_no_memory(err, "a path");
    int fd = open((const char *)folder.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return BELAY_OK; /* not ours to read: then SQLite could not sync it either */
    int failed = fsync(fd) && errno != EINVAL ? errno : 0;
    close(fd);
    return failed ? err_reason(err, BELAY_UNAVAILABLE, "disk", "sqlite: folder %s: %s",
                               (const char *)folder.ptr, strerror(failed))
                  : BELAY_OK;
}

/* A new file is its owner's alone.  SQLite would make it by the umask; a file that is
 * there already is left to SQLite (opening it here would drop its locks at close), and
 * what is wrong with the path is said better by it, too. */
static void create_private(const char *path)
{
    int fd = path ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;

    if (fd >= 0)
        (void)close(fd);
}

/* What ends a transaction is prepared before any begins: taking one back must not need
 * memory that is not there. */
static belay_rc prepare_ends(struct conn *c, struct belay_error *err)
{
    static const enum plain_sql ends[] = { SQL_BEGIN_WRITE, SQL_COMMIT, SQL_ROLLBACK };

    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        if (!conn_plain(c, ends[i], err))
            return (belay_rc)err->code;
    }
    return BELAY_OK;
}

/* Everything that must not meet another process: under the file lock. */
static belay_rc open_writer(struct sqlite_store *s, struct belay_error *err)
{
    belay_rc rc = file_lock_take(&s->lock, err);

    if (rc)
        return rc;
    create_private(s->path);
    rc = conn_open(s, true, &s->writer, err);
    if (!rc)
        rc = check_schema(s->writer, err);
    if (!rc)
        rc = prepare_ends(s->writer, err);
    if (!rc && !(s->writer->rows = rowcache_new()))
        rc = err_no_memory(err, "a store");
    if (!rc)
        rc = wal_recover(s, err);
    if (!rc)
        rc = check_durable(s, err);
    if (!rc)
        rc = sync_folder(s, err);
    if (!rc) {
        conn_restrict(s->writer);
        (void)sqlite3_wal_hook(s->writer->db, count_pages, s);
    }
    file_lock_release(&s->lock);
    return rc;
}

/* --- the driver --- */

static belay_rc lite_begin(struct driver *d, void *attempt, struct bytes ns,
                           struct belay_error *err)
{
    struct sqlite_store *s = (struct sqlite_store *)d;
    struct sqlite_attempt *a = attempt;

    (void)err;
    a->ns = ns;
    a->writes = group_in_turn(s);
    if (a->writes)
        a->conn = s->writer;
    return BELAY_OK;
}

static belay_rc lite_read(struct driver *d, void *attempt, struct read *reads, size_t n,
                          struct belay_arena *arena, struct belay_error *err)
{
    struct sqlite_store *s = (struct sqlite_store *)d;
    struct sqlite_attempt *a = attempt;
    struct belay_error local = { .code = 0 };

    if (!err)
        err = &local;
    if (atomic_load(&s->poisoned))
        return store_poisoned(err);
    if (!s->path && !a->writes) {
        pthread_mutex_lock(&s->readers_mutex);
        belay_rc rc = group_roll_back(s, err);
        if (!rc)
            rc = conn_read(s->writer, a->ns, reads, n, arena, err);
        pthread_mutex_unlock(&s->readers_mutex);
        return rc;
    }
    if (a->writes && a->read_at == 0)
        a->read_at = s->turn.applied + 1;
    if (!a->conn) {
        struct conn *c = NULL;
        belay_rc rc = reader_take(s, &c, err);
        if (rc)
            return rc;
        rc = conn_run_plain(c, SQL_BEGIN_READ, "begin", err);
        if (rc) {
            reader_give_back(s, c);
            return rc;
        }
        a->conn = c;
    }
    belay_rc rc = conn_read(a->conn, a->ns, reads, n, arena, err);
    /* A reader may have seen a commit that is not on the disk yet; bodies in a turn are
     * answered after it is. */
    return rc || a->writes ? rc : wal_sync(s, wal_seen(s), err);
}

static void lite_end(struct driver *d, void *attempt)
{
    struct sqlite_store *s = (struct sqlite_store *)d;
    struct sqlite_attempt *a = attempt;

    if (a->writes || !a->conn)
        return;
    reader_give_back(s, a->conn);
    a->conn = NULL;
}

static void lite_notify(struct driver *d, struct bytes ns, struct bytes topic)
{
    struct sqlite_store *s = (struct sqlite_store *)d;

    if (s->wakefile)
        wakefile_post(s->wakefile, ns, topic);
}

static enum durability lite_durability(struct driver *d)
{
    struct sqlite_store *s = (struct sqlite_store *)d;

    return s->path ? DURABILITY_DURABLE : DURABILITY_INLINE;
}

static void lite_close(struct driver *d)
{
    struct sqlite_store *s = (struct sqlite_store *)d;

    wakefile_close(s->wakefile);
    while (s->readers) {
        struct conn *c = s->readers;
        s->readers = c->next;
        conn_close(c);
    }
    conn_close(s->writer);
    walfile_free(s->walfile);
    file_lock_close(&s->lock);
    wake_hub_close(s->d.hub);
    pthread_mutex_destroy(&s->group.mutex);
    pthread_mutex_destroy(&s->sync_mutex);
    pthread_cond_destroy(&s->sync_done);
    pthread_mutex_destroy(&s->readers_mutex);
    free(s->path);
    free(s);
}

static const struct driver_ops sqlite_ops = {
    .name = "sqlite",
    .version = DRIVER_VERSION,
    .caps = DRIVER_SNAPSHOT | DRIVER_SEES_TWICE,
    .attempt_size = sizeof(struct sqlite_attempt),
    .begin = lite_begin,
    .read = lite_read,
    .commit = group_commit,
    .end = lite_end,
    .submit = group_submit,
    .notify = lite_notify,
    .walk = sqlite_walk,
    .erase = sqlite_erase,
    .check = sqlite_check,
    .doctor = sqlite_doctor,
    .durability = lite_durability,
    .close = lite_close,
};

static belay_rc open_files(struct sqlite_store *s, const char *path,
                           struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    s->lock.fd = -1;
    if (strcmp(path, ":memory:") != 0) {
        s->path = strdup(path);
        if (!s->path)
            return err_no_memory(err, "a path");
        rc = check_path(path, err);
        if (!rc)
            rc = file_lock_open(&s->lock, path, &s->config.clock, err);
    }
    if (!rc)
        rc = open_writer(s, err);
    if (!rc && s->path)
        rc = wakefile_open(&s->wakefile, path, s->d.hub, WAKE_ON_BUCKETS, err);
    if (!rc && s->path)
        rc = walfile_attach(&s->walfile, s->writer->db, err);
    if (rc == BELAY_POISONED) { /* there is no handle yet that could be */
        rc = BELAY_UNAVAILABLE;
        err->code = (int32_t)rc;
    }
    return rc;
}

int64_t sqlite_longest_lock_wait_us(const struct driver *d)
{
    return ((const struct sqlite_store *)d)->lock.longest_wait_us;
}

belay_rc sqlite_open(struct driver **out, const char *path,
                     const struct driver_config *config, struct belay_error *err)
{
    struct belay_error local = { .code = 0 };
    const char *fault = schema_fault(config->schema);

    if (!err)
        err = &local;
    if (fault)
        return err_reason(err, BELAY_INVALID, "schema", "data dictionary: %s", fault);
    struct sqlite_store *s = calloc(1, sizeof(*s));
    if (!s)
        return err_no_memory(err, "a store");
    s->d.ops = &sqlite_ops;
    s->d.attempt_size = sqlite_ops.attempt_size;
    s->config = *config;
    s->group.last = &s->group.first;
    pthread_mutex_init(&s->group.mutex, NULL);
    pthread_mutex_init(&s->sync_mutex, NULL);
    pthread_cond_init(&s->sync_done, NULL);
    pthread_mutex_init(&s->readers_mutex, NULL);
    belay_rc rc = wake_hub_open(&s->d.hub, err);
    if (!rc)
        rc = open_files(s, path, err);
    if (rc) {
        lite_close(&s->d);
        return rc;
    }
    s->d.caps = sqlite_ops.caps;
    if (!s->path) /* one connection has no snapshots */
        s->d.caps &= ~(unsigned)DRIVER_SNAPSHOT;
    *out = &s->d;
    return BELAY_OK;
}
