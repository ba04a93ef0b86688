#include "stores.h"

#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store_postgres.h"
#include "store_valkey.h"

#define SQLITE_FILE "/store.db"

/* --- directories --- */

#define MEMORY_DIR "/dev/shm"

/* In memory where that can be had: these cases are about what a store says, and a new
 * store costs a disk some twenty syncs.  What disks do is tested in tests/crash. */
static const char *base_dir(void)
{
    const char *tmp = getenv("TMPDIR");

    if (access(MEMORY_DIR, W_OK | X_OK) == 0)
        return MEMORY_DIR;
    return tmp && *tmp ? tmp : "/tmp";
}

bool directory_make(char *out, size_t size)
{
    int len = snprintf(out, size, "%s/belay-XXXXXX", base_dir());

    if (len < 0 || (size_t)len >= size || !mkdtemp(out)) {
        *out = 0;
        return false;
    }
    return true;
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void directory_remove(const char *dir)
{
    if (*dir)
        (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* --- URLs --- */

static bool fits(int len, size_t size)
{
    return len >= 0 && (size_t)len < size;
}

static bool memory_url(const char *dir, char *out, size_t size)
{
    (void)dir;
    return fits(snprintf(out, size, "memory:"), size);
}

static bool sqlite_url(const char *dir, char *out, size_t size)
{
    return fits(snprintf(out, size, "sqlite:%s" SQLITE_FILE, dir), size);
}

static bool sqlite_memory_url(const char *dir, char *out, size_t size)
{
    (void)dir;
    return fits(snprintf(out, size, "sqlite::memory:"), size);
}

/* --- below the library --- */

static sqlite3 *sqlite_file(const char *dir)
{
    char path[512];
    sqlite3 *db = NULL;

    if (!fits(snprintf(path, sizeof(path), "%s" SQLITE_FILE, dir), sizeof(path)))
        return NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
        return db;
    (void)sqlite3_close(db);
    return NULL;
}

static bool sqlite_damage(const char *dir, const char *sql, char *why, size_t size)
{
    sqlite3 *db = sqlite_file(dir);
    char *message = NULL;

    if (!db || sqlite3_exec(db, sql, NULL, NULL, &message)) {
        (void)snprintf(why, size, "%s", message ? message : "no such file");
        sqlite3_free(message);
        (void)sqlite3_close(db);
        return false;
    }
    /* A statement that meets nothing damages nothing: that would be a wrong test. */
    bool met = sqlite3_total_changes(db) > 0 || strncmp(sql, "PRAGMA", 6) == 0;
    (void)snprintf(why, size, "nothing was changed by: %s", sql);
    return sqlite3_close(db) == SQLITE_OK && met;
}

static bool sqlite_ask(const char *dir, const char *sql, char *out, size_t size)
{
    sqlite3 *db = sqlite_file(dir);
    sqlite3_stmt *st = NULL;
    bool found = db && sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
                 sqlite3_step(st) == SQLITE_ROW;

    if (found) {
        const unsigned char *text = sqlite3_column_text(st, 0);
        found = fits(snprintf(out, size, "%s", text ? (const char *)text : ""), size);
    }
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
    return found;
}

/* --- the table --- */

#define NOT_OURS "NOT LIKE 'belay%'"

static const struct below below_sqlite = {
    .damage = sqlite_damage,
    .ask = sqlite_ask,
    .layout = "PRAGMA user_version",
    .layout_99 = "PRAGMA user_version = 99",
    .foreign = "SELECT count(*) FROM sqlite_master WHERE name LIKE '%replay%' OR"
               " (type = 'table' AND name " NOT_OURS ")",
};

static const struct below below_postgres = {
    .damage = postgres_damage,
    .ask = postgres_ask,
    .layout = "SELECT layout FROM belay_layout",
    .layout_99 = "UPDATE belay_layout SET layout = 99",
    .foreign = "SELECT count(*) FROM pg_class WHERE relnamespace ="
               " current_schema()::regnamespace AND (relname LIKE '%replay%' OR"
               " (relkind = 'r' AND relname " NOT_OURS "))",
};

static const struct below below_valkey = {
    .damage = valkey_damage,
    .ask = valkey_ask,
    .foreign = "SELECT count(*) FROM keys WHERE name LIKE '%replay%'",
};

/* clang-format off */
const struct test_store test_stores[] = {
    /* name            url                durability                shared own_clock below           forget */
    { "memory",        memory_url,        BELAY_DURABILITY_INLINE,  false, false, NULL,            NULL },
    { "sqlite",        sqlite_url,        BELAY_DURABILITY_DURABLE, true,  false, &below_sqlite,   NULL },
    { "sqlite:memory", sqlite_memory_url, BELAY_DURABILITY_INLINE,  false, false, NULL,            NULL },
    { "postgres",      postgres_url,      BELAY_DURABILITY_DURABLE, true,  true,  &below_postgres, postgres_forget },
    { "valkey",        valkey_url,        BELAY_DURABILITY_DURABLE, true,  true,  &below_valkey,   valkey_forget },
};
/* clang-format on */
const size_t n_test_stores = sizeof(test_stores) / sizeof(test_stores[0]);

const struct test_store *test_store_find(const char *name)
{
    for (size_t i = 0; i < n_test_stores; i++) {
        if (strcmp(test_stores[i].name, name) == 0)
            return &test_stores[i];
    }
    return NULL;
}

void test_store_remove(const struct test_store *store, const char *dir)
{
    if (store->forget)
        store->forget(dir);
    directory_remove(dir);
}
