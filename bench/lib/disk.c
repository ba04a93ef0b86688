#include "disk.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/drivers/sqlite.h"
#include "things.h"

/* --- folder and disk --- */

bool bench_folder_make(struct bench_folder *f)
{
    (void)snprintf(f->path, sizeof(f->path), "bench.XXXXXX");
    return mkdtemp(f->path) != NULL;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void bench_folder_remove(struct bench_folder *f)
{
    (void)nftw(f->path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void path_of(const struct bench_folder *f, const char *name, char out[512])
{
    (void)snprintf(out, 512, "%s/%s", f->path, name);
}

double bench_fdatasync_rate(const struct bench_folder *f, double seconds)
{
    static const char page[4096];
    char path[512];
    unsigned n = 0;

    path_of(f, "fdatasync", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return 0;
    double start = bench_now(), took = 0;
    while (took < seconds) {
        if (write(fd, page, sizeof(page)) != (ssize_t)sizeof(page) || fdatasync(fd))
            break;
        n++;
        took = bench_now() - start;
    }
    (void)close(fd);
    (void)unlink(path);
    return took > 0 ? n / took : 0;
}

/* --- Belay --- */

void bench_key(unsigned i, char out[ID_MAX])
{
    (void)snprintf(out, ID_MAX, "exe_01jd4k8m2q7r9s%012u", i);
}

bool bench_store_open(struct bench_store *b, const struct bench_folder *f,
                      const char *name)
{
    struct driver_config config = { &schema_things, clock_system(), random_system() };
    struct store_options options = { .schema = &schema_things,
                                     .clock = config.clock,
                                     .random = config.random };
    struct belay_error err;
    char path[512];

    *b = (struct bench_store){ .driver = NULL };
    path_of(f, name, path);
    if (sqlite_open(&b->driver, path, &config, &err) ||
        store_open(&b->store, b->driver, &options, &err) ||
        store_space(b->store, bytes_str("default"), &b->space, &err)) {
        (void)fprintf(stderr, "bench: %s\n", err.message);
        return false;
    }
    return true;
}

void bench_store_close(struct bench_store *b)
{
    store_close(b->store);
    driver_close(b->driver);
    *b = (struct bench_store){ .driver = NULL };
}

struct fill {
    unsigned from, to;
};

static belay_rc fill_body(struct txn *t, void *arg)
{
    const struct fill *f = arg;
    char key[ID_MAX];
    belay_rc rc = BELAY_OK;

    for (unsigned i = f->from; i < f->to && !rc; i++) {
        bench_key(i, key);
        struct value v[THING_COLUMNS] = { [THING_ID] = value_str(key),
                                          [THING_N] = value_i64(0),
                                          [THING_TEXT] = value_str("waiting") };
        rc = txn_insert(t, &row_thing, v);
    }
    return rc;
}

bool bench_fill(struct bench_store *b, unsigned n)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_error err;

    for (unsigned from = 0; from < n; from += 5000) {
        struct fill f = { from, from + 5000 < n ? from + 5000 : n };
        if (txn_run(b->space, fill_body, &f, NULL, &arena, &err)) {
            (void)fprintf(stderr, "bench: %s\n", err.message);
            return false;
        }
        arena_reset(&arena);
    }
    return true;
}

static belay_rc update_body(struct txn *t, void *arg)
{
    struct value key = value_str(arg);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_thing, &key, &row);

    if (rc)
        return rc;
    if (!row)
        return txn_fail(t, BELAY_NOT_FOUND, "", "no such row");
    struct change change = { THING_N, value_i64(row_i64(row, THING_N, 0) + 1) };
    return txn_put(t, &row_thing, &key, &change, 1);
}

struct caller {
    struct bench_store *b;
    unsigned rows, seed;
    atomic_bool *stop;
    _Atomic uint64_t *done, *failed;
};

static void *call(void *arg)
{
    struct caller *c = arg;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    uint32_t at = c->seed * 2654435761U + 1;
    char key[ID_MAX];
    uint64_t n = 0;

    while (!atomic_load_explicit(c->stop, memory_order_relaxed)) {
        at = at * 1664525 + 1013904223;
        bench_key((at >> 8) % c->rows, key);
        if (txn_run(c->b->space, update_body, key, NULL, &arena, NULL)) {
            atomic_fetch_add(c->failed, 1);
            break;
        }
        arena_reset(&arena);
        n++;
    }
    atomic_fetch_add(c->done, n);
    return NULL;
}

double bench_update_rate(struct bench_store *b, unsigned rows, unsigned callers,
                         double seconds)
{
    pthread_t threads[256];
    struct caller c[256];
    atomic_bool stop = false;
    _Atomic uint64_t done = 0, failed = 0;
    double start = bench_now();
    unsigned n = 0;

    for (; n < callers && n < 256; n++) {
        c[n] = (struct caller){ b, rows, n + 1, &stop, &done, &failed };
        if (pthread_create(&threads[n], NULL, call, &c[n]))
            break;
    }
    struct belay_clock clock = clock_system();
    clock.sleep_us(clock.arg, (int64_t)(seconds * 1e6));
    atomic_store(&stop, true);
    for (unsigned i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    double took = bench_now() - start;
    return n == callers && failed == 0 ? (double)done / took : 0;
}

/* --- raw SQLite --- */

static bool raw_transaction(sqlite3 *db, sqlite3_stmt *update, unsigned rows,
                            unsigned batch, uint32_t *at)
{
    char key[ID_MAX];

    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL))
        return false;
    for (unsigned i = 0; i < batch; i++) {
        *at = *at * 1664525 + 1013904223;
        bench_key((*at >> 8) % rows, key);
        (void)sqlite3_bind_text(update, 1, "default", -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(update, 2, key, -1, SQLITE_STATIC);
        if (sqlite3_step(update) != SQLITE_DONE || sqlite3_changes(db) != 1)
            return false;
        (void)sqlite3_reset(update);
    }
    return !sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
}

double bench_raw_rate(const struct bench_folder *f, const char *name, unsigned rows,
                      unsigned batch, double seconds)
{
    static const char sql[] = "UPDATE belay_thing SET ver = ver + 1, n = n + 1"
                              " WHERE ns = ?1 AND id = ?2";
    sqlite3 *db = NULL;
    sqlite3_stmt *update = NULL;
    uint32_t at = 7;
    uint64_t n = 0;
    char path[512];

    path_of(f, name, path);
    bool ok =
        !sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                         NULL) &&
        !sqlite3_exec(db,
                      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                      "PRAGMA cache_size = -16384",
                      NULL, NULL, NULL) &&
        !sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &update, NULL);
    double start = bench_now(), took = 0;
    while (ok && took < seconds) {
        ok = raw_transaction(db, update, rows, batch, &at);
        n += batch;
        took = bench_now() - start;
    }
    (void)sqlite3_finalize(update);
    (void)sqlite3_close(db);
    return ok && took > 0 ? (double)n / took : 0;
}
