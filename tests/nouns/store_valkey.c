/* Worlds on a Valkey or Redis server, each under a prefix of its own.
 *
 * Below the library the cases speak SQL: what is there is copied into tables of SQLite in
 * memory, one per row type, the statement runs on them, and what it has changed or deleted
 * is brought back. */
#include "store_valkey.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redisserver.h"

#define CHANGES_MAX 64
#define COLUMNS_MAX 32 /* that a statement names and no row has */

bool valkey_url(const char *dir, char *out, size_t size)
{
    char prefix[REDIS_PREFIX_MAX];

    redis_test_prefix(dir, prefix);
    int len = snprintf(out, size, "%s?prefix=%s", redis_test_url(), prefix);
    return len >= 0 && (size_t)len < size;
}

/* Processes that were killed may have sent something that is being done still. */
void valkey_forget(const char *dir)
{
    char prefix[REDIS_PREFIX_MAX];

    redis_test_prefix(dir, prefix);
    if (redis_test_settle(redis_test_url()))
        (void)redis_test_forget(redis_test_url(), prefix);
}

/* --- the copy --- */

struct copy {
    sqlite3 *db;
    redisContext *c;
    struct {
        char table[64];
        sqlite3_int64 rowid;
    } changed[CHANGES_MAX];
    size_t n_changed;
};

/* Columns that are in the key: <type>:<part>:<part>. */
static const struct {
    const char *table, *part[2];
} in_key[] = {
    { "belay_batch", { "session", "seq" } },
    { "belay_node", { "session", "seq" } },
    { "belay_blob", { "sha256", NULL } },
    { "belay_chunk", { "upload", "number" } },
};

static bool run(struct copy *m, const char *format, const char *a, const char *b)
{
    char *sql = sqlite3_mprintf(format, a, b);
    bool ok = sql && sqlite3_exec(m->db, sql, NULL, NULL, NULL) == SQLITE_OK;

    sqlite3_free(sql);
    return ok;
}

/* Numbers as numbers, all else as it is. */
static void put(struct copy *m, const char *table, const char *key, const char *column,
                const char *value, size_t len)
{
    sqlite3_stmt *st = NULL;
    char *sql = sqlite3_mprintf("UPDATE \"%w\" SET \"%w\" = ? WHERE redis_key = ?",
                                table, column);
    char *end = NULL, again[32];
    long long number = strtoll(value, &end, 10);

    (void)run(m, "ALTER TABLE \"%w\" ADD COLUMN \"%w\"", table, column);
    if (sql && sqlite3_prepare_v2(m->db, sql, -1, &st, NULL) == SQLITE_OK) {
        (void)snprintf(again, sizeof(again), "%lld", number);
        if (strlen(again) == len && memcmp(again, value, len) == 0)
            (void)sqlite3_bind_int64(st, 1, number);
        else
            (void)sqlite3_bind_text(st, 1, value, (int)len, SQLITE_TRANSIENT);
        (void)sqlite3_bind_text(st, 2, key, -1, SQLITE_TRANSIENT);
        (void)sqlite3_step(st);
    }
    (void)sqlite3_finalize(st);
    sqlite3_free(sql);
}

static void put_parts(struct copy *m, const char *table, const char *key, char *parts)
{
    for (size_t i = 0; i < sizeof(in_key) / sizeof(in_key[0]); i++) {
        char *rest = NULL, *part;
        if (strcmp(in_key[i].table, table) != 0)
            continue;
        part = strtok_r(parts, ":", &rest);
        for (size_t k = 0; k < 2 && part && in_key[i].part[k]; k++) {
            put(m, table, key, in_key[i].part[k], part, strlen(part));
            part = strtok_r(NULL, ":", &rest);
        }
        return;
    }
}

static void put_fields(struct copy *m, const char *table, const char *key)
{
    bool chunk = strcmp(table, "belay_chunk") == 0;
    redisReply *r = redisCommand(m->c, chunk ? "GET %s" : "HGETALL %s", key);

    if (r && r->type == REDIS_REPLY_STRING)
        put(m, table, key, "data", r->str, r->len);
    for (size_t i = 0; r && i + 1 < r->elements; i += 2)
        put(m, table, key, r->element[i]->str, r->element[i + 1]->str,
            r->element[i + 1]->len);
    freeReplyObject(r);
}

/* <prefix>:{<ns>}:r:<type>:<parts> and <prefix>:{<ns>}:c:<upload>:<index> */
static void take_key(struct copy *m, const char *key)
{
    const char *at = strstr(key, "}:");
    char table[64] = "", parts[512];

    if (at && strncmp(at, "}:r:", 4) == 0)
        (void)snprintf(table, sizeof(table), "belay_%.*s", (int)strcspn(at + 4, ":"),
                       at + 4);
    else if (at && strncmp(at, "}:c:", 4) == 0)
        (void)snprintf(table, sizeof(table), "belay_chunk");
    (void)run(m, "INSERT INTO keys VALUES (%Q, %Q)", key, table);
    if (!*table)
        return;
    (void)run(m, "CREATE TABLE IF NOT EXISTS \"%w\" (redis_key)", table, "");
    (void)run(m, "INSERT INTO \"%w\" (redis_key) VALUES (%Q)", table, key);
    at += at[2] == 'r' ? 4 + strcspn(at + 4, ":") : 3;
    (void)snprintf(parts, sizeof(parts), "%s", at);
    put_parts(m, table, key, parts);
    put_fields(m, table, key);
}

static bool open_copy(struct copy *m, const char *dir)
{
    char prefix[REDIS_PREFIX_MAX];

    *m = (struct copy){ .c = redis_test_connect(redis_test_url()) };
    redis_test_prefix(dir, prefix);
    if (!m->c || sqlite3_open(":memory:", &m->db) != SQLITE_OK ||
        !run(m, "CREATE TABLE keys (name, tab)", "", ""))
        return false;
    redisReply *r = redisCommand(m->c, "KEYS %s:*", prefix);
    for (size_t i = 0; r && i < r->elements; i++)
        take_key(m, r->element[i]->str);
    freeReplyObject(r);
    return true;
}

static void close_copy(struct copy *m)
{
    (void)sqlite3_close(m->db);
    redisFree(m->c);
}

/* --- statements --- */

/* A column that every row leaves out is there, too. */
static bool add_missing(struct copy *m, const char *sql)
{
    static const char missing[] = "no such column: ";
    const char *message = sqlite3_errmsg(m->db), *at = strstr(sql, "belay_");
    char table[64], column[64];

    if (strncmp(message, missing, strlen(missing)) != 0 || !at)
        return false;
    (void)snprintf(column, sizeof(column), "%s", message + strlen(missing));
    (void)snprintf(table, sizeof(table), "%.*s", (int)strcspn(at, " "), at);
    return run(m, "ALTER TABLE \"%w\" ADD COLUMN \"%w\"", table, column);
}

static sqlite3_stmt *prepare(struct copy *m, const char *sql)
{
    sqlite3_stmt *st = NULL;

    for (int i = 0; i < COLUMNS_MAX; i++) {
        if (sqlite3_prepare_v2(m->db, sql, -1, &st, NULL) == SQLITE_OK)
            return st;
        if (!add_missing(m, sql))
            return NULL;
    }
    return NULL;
}

static void on_change(void *arg, int what, const char *db, const char *table,
                      sqlite3_int64 rowid)
{
    struct copy *m = arg;

    (void)db;
    if (what != SQLITE_UPDATE || m->n_changed == CHANGES_MAX)
        return;
    (void)snprintf(m->changed[m->n_changed].table, sizeof(m->changed[0].table), "%s",
                   table);
    m->changed[m->n_changed++].rowid = rowid;
}

static void bring_back(struct copy *m, const char *table, sqlite3_stmt *st)
{
    const char *key = (const char *)sqlite3_column_text(st, 0);

    for (int i = 1; i < sqlite3_column_count(st); i++) {
        const char *name = sqlite3_column_name(st, i);
        const void *value = sqlite3_column_blob(st, i);
        size_t len = (size_t)sqlite3_column_bytes(st, i);
        bool null = sqlite3_column_type(st, i) == SQLITE_NULL, of_key = false;
        for (size_t k = 0; k < sizeof(in_key) / sizeof(in_key[0]); k++) {
            for (size_t p = 0; p < 2 && strcmp(in_key[k].table, table) == 0; p++)
                of_key |= in_key[k].part[p] && strcmp(in_key[k].part[p], name) == 0;
        }
        if (of_key)
            continue;
        freeReplyObject(
            strcmp(table, "belay_chunk") == 0
                ? redisCommand(m->c, "SET %s %b", key, value, len)
            : null ? redisCommand(m->c, "HDEL %s %s", key, name)
                   : redisCommand(m->c, "HSET %s %s %b", key, name, value, len));
    }
}

static void bring_back_changed(struct copy *m)
{
    for (size_t i = 0; i < m->n_changed; i++) {
        char *sql = sqlite3_mprintf("SELECT * FROM \"%w\" WHERE rowid = %lld",
                                    m->changed[i].table, m->changed[i].rowid);
        sqlite3_stmt *st = NULL;
        if (sql && sqlite3_prepare_v2(m->db, sql, -1, &st, NULL) == SQLITE_OK &&
            sqlite3_step(st) == SQLITE_ROW)
            bring_back(m, m->changed[i].table, st);
        (void)sqlite3_finalize(st);
        sqlite3_free(sql);
    }
}

static void unlink_deleted(struct copy *m, const char *table)
{
    char *sql = sqlite3_mprintf("SELECT name FROM keys WHERE tab = %Q AND name NOT IN"
                                " (SELECT redis_key FROM \"%w\")",
                                table, table);
    sqlite3_stmt *st = NULL;

    if (sql && sqlite3_prepare_v2(m->db, sql, -1, &st, NULL) == SQLITE_OK) {
        while (sqlite3_step(st) == SQLITE_ROW)
            freeReplyObject(
                redisCommand(m->c, "UNLINK %s", sqlite3_column_text(st, 0)));
    }
    (void)sqlite3_finalize(st);
    sqlite3_free(sql);
}

bool valkey_damage(const char *dir, const char *sql, char *why, size_t size)
{
    const char *from = strstr(sql, "DELETE FROM ");
    struct copy m;
    char table[64] = "";
    sqlite3_stmt *st = open_copy(&m, dir) ? prepare(&m, sql) : NULL;

    if (from)
        (void)snprintf(table, sizeof(table), "%.*s", (int)strcspn(from + 12, " "),
                       from + 12);
    (void)sqlite3_update_hook(m.db, on_change, &m);
    bool ok = st && sqlite3_step(st) == SQLITE_DONE;
    /* A statement that meets nothing damages nothing: that would be a wrong test. */
    bool met = ok && sqlite3_changes(m.db) > 0;
    (void)sqlite3_finalize(st);
    if (ok)
        (void)snprintf(why, size, "nothing was changed by: %s", sql);
    else
        (void)snprintf(why, size, "%s", m.db ? sqlite3_errmsg(m.db) : "no connection");
    if (met) {
        bring_back_changed(&m);
        if (from)
            unlink_deleted(&m, table);
    }
    close_copy(&m);
    return met;
}

bool valkey_ask(const char *dir, const char *sql, char *out, size_t size)
{
    struct copy m;
    sqlite3_stmt *st = open_copy(&m, dir) ? prepare(&m, sql) : NULL;
    bool found = st && sqlite3_step(st) == SQLITE_ROW;

    if (found)
        (void)snprintf(out, size, "%s", (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    close_copy(&m);
    return found;
}
