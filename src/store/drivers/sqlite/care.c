/* Erasing a namespace, and looking for damage below the shapes. */
#include <string.h>

#include "store/drivers/sqlite/impl.h"

static void finalizep(sqlite3_stmt **st)
{
    (void)sqlite3_finalize(*st);
}

/* --- erasing --- */

/* A chunk is as large as a megabyte: it counts for this many other things. */
#define CHUNK_WEIGHT 64

/* The tables that are no rows, and what tells their entries apart in a namespace. */
static const struct {
    const char *table, *key;
    int64_t weight;
} shapes[] = {
    { "rank", "idx, rank, member", 1 },
    { "log", "stream, seq", 1 },
    { "feed", "feed, pos", 1 },
    { "feed_head", "feed", 1 },
    { "chunk", "upload, no", CHUNK_WEIGHT },
};

struct erasing {
    struct driver_job job;
    struct sqlite_store *s;
    struct bytes ns;
    int64_t limit;
    int64_t left; /* of the limit; not above 0: there may be more */
    belay_rc rc;
    struct belay_error err;
};

/* Deletes at most what is left of the limit.  key: the columns of the key, in a list;
 * empty for a table with one row a namespace. */
static belay_rc erase_from(struct erasing *e, const char *table, struct bytes key,
                           int64_t weight)
{
    CLEANUP(buf_release) struct buf sql = { .ptr = NULL };
    CLEANUP(finalizep) sqlite3_stmt *st = NULL;
    struct conn *c = e->s->writer;
    int64_t most = (e->left + weight - 1) / weight;

    if (e->left <= 0)
        return BELAY_OK;
    buf_printf(&sql, "DELETE FROM belay_%s WHERE ns = ?1", table);
    if (key.len > 0)
        buf_printf(&sql,
                   " AND (%.*s) IN (SELECT %.*s FROM belay_%s WHERE ns = ?1 LIMIT ?2)",
                   (int)key.len, (const char *)key.ptr, (int)key.len,
                   (const char *)key.ptr, table);
    buf_append_char(&sql, '\0');
    if (sql.failed)
        return err_no_memory(&e->err, "a statement");
    if (sqlite3_prepare_v2(c->db, (const char *)sql.ptr, -1, &st, NULL))
        return conn_error(c, "erase", &e->err);
    bind_text(st, 1, e->ns);
    if (key.len > 0)
        (void)sqlite3_bind_int64(st, 2, most);
    if (sqlite3_step(st) != SQLITE_DONE)
        return conn_error(c, "erase", &e->err);
    e->left -= sqlite3_changes(c->db) * weight;
    rowcache_clear(c->rows);
    return BELAY_OK;
}

static belay_rc erase_type(struct erasing *e, const struct row_type *type)
{
    CLEANUP(buf_release) struct buf key = { .ptr = NULL };

    for (unsigned i = 0; i < type->n_key; i++)
        buf_printf(&key, "%s\"%s\"", i > 0 ? ", " : "", type->columns[i].name);
    return key.failed ? err_no_memory(&e->err, "a statement")
                      : erase_from(e, type->name, buf_view(&key), 1);
}

/* One step, inside a turn; perhaps not for the first time. */
static void erase_run(struct driver_job *job)
{
    struct erasing *e = (struct erasing *)job;
    const struct schema *schema = e->s->config.schema;

    e->left = e->limit;
    e->rc = BELAY_OK;
    e->s->turn.wrote = true;
    e->s->turn.bytes = GROUP_BYTES_MAX; /* enough for one fsync */
    for (size_t i = 0; i < COUNT_OF(shapes) && !e->rc; i++)
        e->rc =
            erase_from(e, shapes[i].table, bytes_str(shapes[i].key), shapes[i].weight);
    for (size_t i = 0; i < schema->n_types && !e->rc; i++)
        e->rc = erase_type(e, schema->types[i]);
    if (e->rc)
        e->s->turn.broken = true;
}

belay_rc sqlite_erase(struct driver *d, struct bytes ns, size_t limit, bool *more,
                      struct belay_error *err)
{
    struct erasing e = { .job = { .run = erase_run, .deadline_us = DEADLINE_NONE },
                         .s = (struct sqlite_store *)d,
                         .ns = ns,
                         .limit = limit > INT32_MAX ? INT32_MAX : (int64_t)limit };
    belay_rc rc = group_submit(d, &e.job, err);

    if (!rc && e.rc) {
        rc = e.rc;
        if (err)
            *err = e.err;
    }
    if (!rc)
        *more = e.left <= 0;
    return rc;
}

/* --- looking for damage --- */

struct checking {
    struct conn *c;
    finding_report *report;
    void *arg;
    struct belay_error *err;
};

static belay_rc failed(struct checking *k)
{
    return conn_error(k->c, "check", k->err);
}

static struct bytes column_view(sqlite3_stmt *st, int at)
{
    const void *ptr = sqlite3_column_blob(st, at);

    return bytes_of(ptr, (size_t)sqlite3_column_bytes(st, at));
}

static void found(struct checking *k, const char *what, struct bytes ns,
                  struct bytes entity, const char *message)
{
    k->report(k->arg, &(struct finding){ .level = FINDING_BAD,
                                         .what = what,
                                         .ns = ns,
                                         .entity = entity,
                                         .message = message });
}

static belay_rc check_integrity(struct checking *k)
{
    CLEANUP(finalizep) sqlite3_stmt *st = NULL;
    int step;

    if (sqlite3_prepare_v2(k->c->db, "PRAGMA integrity_check", -1, &st, NULL))
        return failed(k);
    while ((step = sqlite3_step(st)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(st, 0);
        if (!text)
            return err_no_memory(k->err, "a finding");
        if (strcmp(text, "ok") != 0)
            found(k, "integrity", bytes_of(NULL, 0), bytes_of(NULL, 0), text);
    }
    return step == SQLITE_DONE ? BELAY_OK : failed(k);
}

/* One column or index of a new file: is it in this one, and is it the same? */
static belay_rc compare_part(struct checking *k, sqlite3_stmt *want, sqlite3_stmt *got)
{
    bool same = true;

    (void)sqlite3_reset(got);
    bind_text(got, 1, column_view(want, 0));
    bind_text(got, 2, column_view(want, 1));
    int step = sqlite3_step(got);
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        return failed(k);
    for (int i = 0; i < 3 && step == SQLITE_ROW; i++)
        same = same && bytes_eq(column_view(want, i + 2), column_view(got, i));
    if (step == SQLITE_DONE)
        found(k, "schema_missing", column_view(want, 5), column_view(want, 0),
              "schema: the table lacks a column or an index");
    else if (!same)
        found(k, "schema_differs", column_view(want, 5), column_view(want, 0),
              "schema: a column or an index is not as the dictionary has it");
    return BELAY_OK;
}

/* A new database in memory is what the dictionary says; this one must have as much. */
static belay_rc compare_schema(struct checking *k, sqlite3 *fresh)
{
    static const char wanted[] =
        "SELECT m.name, t.name, t.type, t.\"notnull\", t.pk, '' FROM sqlite_schema m"
        " JOIN pragma_table_info(m.name) t WHERE m.type = 'table'"
        " UNION ALL SELECT tbl_name, name, sql, '', '', '' FROM sqlite_schema"
        " WHERE type = 'index' AND sql IS NOT NULL";
    static const char there[] =
        "SELECT type, \"notnull\", pk FROM pragma_table_info(?1) WHERE name = ?2"
        " UNION ALL SELECT sql, '', '' FROM sqlite_schema"
        " WHERE type = 'index' AND tbl_name = ?1 AND name = ?2";
    CLEANUP(finalizep) sqlite3_stmt *want = NULL;
    CLEANUP(finalizep) sqlite3_stmt *got = NULL;
    belay_rc rc = BELAY_OK;
    int step = SQLITE_ROW;

    if (sqlite3_prepare_v2(fresh, wanted, -1, &want, NULL))
        return err_set(k->err, BELAY_NO_MEMORY, "check: %s", sqlite3_errmsg(fresh));
    if (sqlite3_prepare_v2(k->c->db, there, -1, &got, NULL))
        return failed(k);
    while (!rc && (step = sqlite3_step(want)) == SQLITE_ROW)
        rc = compare_part(k, want, got);
    if (!rc && step != SQLITE_DONE)
        rc = err_set(k->err, BELAY_NO_MEMORY, "check: %s", sqlite3_errmsg(fresh));
    return rc;
}

static belay_rc check_schema(struct checking *k)
{
    CLEANUP(buf_release) struct buf sql = { .ptr = NULL };
    sqlite3 *fresh = NULL;
    belay_rc rc = sql_schema(k->c->store->config.schema, &sql, k->err);

    if (rc)
        return rc;
    if (sqlite3_open_v2(":memory:", &fresh,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY,
                        NULL) ||
        sqlite3_exec(fresh, (const char *)sql.ptr, NULL, NULL, NULL))
        rc = err_set(k->err, BELAY_NO_MEMORY, "check: %s",
                     fresh ? sqlite3_errmsg(fresh) : "no memory");
    if (!rc)
        rc = compare_schema(k, fresh);
    (void)sqlite3_close(fresh);
    return rc;
}

/* Reports each row (namespace, entity) of a query. */
static belay_rc report_rows(struct checking *k, const char *sql, const char *what,
                            const char *message)
{
    CLEANUP(finalizep) sqlite3_stmt *st = NULL;
    int step;

    if (sqlite3_prepare_v2(k->c->db, sql, -1, &st, NULL))
        return failed(k);
    while ((step = sqlite3_step(st)) == SQLITE_ROW)
        found(k, what, column_view(st, 0), column_view(st, 1), message);
    return step == SQLITE_DONE ? BELAY_OK : failed(k);
}

static belay_rc check_feeds(struct checking *k)
{
    return report_rows(k,
                       "SELECT DISTINCT f.ns, f.feed FROM belay_feed f"
                       " LEFT JOIN belay_feed_head h ON h.ns = f.ns AND h.feed = f.feed"
                       " WHERE h.last IS NULL OR f.pos > h.last OR f.pos <= h.trimmed",
                       "feed_position",
                       "feed: an entry stands outside the positions that were given");
}

/* What no namespace of the registry owns is shown by no walk. */
static belay_rc check_owned(struct checking *k, const char *table)
{
    CLEANUP(buf_release) struct buf sql = { .ptr = NULL };

    buf_printf(&sql,
               "SELECT DISTINCT ns, 'belay_%s' FROM belay_%s WHERE ns <> '%s' AND ns "
               "NOT IN (SELECT name FROM belay_%s WHERE ns = '%s')",
               table, table, SYSTEM_NAMESPACE, row_namespace.name, SYSTEM_NAMESPACE);
    buf_append_char(&sql, '\0');
    if (sql.failed)
        return err_no_memory(k->err, "a statement");
    return report_rows(k, (const char *)sql.ptr, "unregistered",
                       "namespace: holds something and is not in the registry");
}

static belay_rc check_registry(struct checking *k)
{
    const struct schema *s = k->c->store->config.schema;
    bool kept = false;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < s->n_types; i++)
        kept = kept || s->types[i] == &row_namespace;
    for (size_t i = 0; kept && i < s->n_types && !rc; i++)
        rc = check_owned(k, s->types[i]->name);
    for (size_t i = 0; kept && i < COUNT_OF(shapes) && !rc; i++)
        rc = check_owned(k, shapes[i].table);
    return rc;
}

static belay_rc check_contents(struct checking *k)
{
    belay_rc rc = check_feeds(k);

    return rc ? rc : check_registry(k);
}

belay_rc sqlite_check(struct driver *d, finding_report *report, void *arg,
                      struct belay_error *err)
{
    struct sqlite_store *s = (struct sqlite_store *)d;
    struct belay_error local = { .code = 0 };
    struct checking k = { .report = report, .arg = arg, .err = err ? err : &local };

    if (!s->path) { /* no file to be damaged, and one connection for all */
        pthread_mutex_lock(&s->readers_mutex);
        k.c = s->writer;
        belay_rc rc = check_contents(&k);
        pthread_mutex_unlock(&s->readers_mutex);
        return rc;
    }
    /* One of its own: those of the pool may not look at the schema. */
    belay_rc rc = conn_open(s, false, &k.c, k.err);
    if (rc)
        return rc;
    rc = conn_run_plain(k.c, SQL_BEGIN_READ, "begin", k.err);
    if (!rc)
        rc = check_integrity(&k);
    if (!rc)
        rc = check_schema(&k);
    if (!rc)
        rc = check_contents(&k);
    conn_close(k.c);
    return rc;
}
