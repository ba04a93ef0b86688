#include "rig.h"

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/dump.h"

void rig_init(struct rig *r)
{
    const char *base = getenv("TMPDIR");

    memset(r, 0, sizeof(*r));
    (void)snprintf(r->dir, sizeof(r->dir), "%s/belay-crash-XXXXXX",
                   base && *base ? base : "/tmp");
    if (!mkdtemp(r->dir)) {
        printf("Bail out! no temporary directory\n");
        exit(1);
    }
    r->schema = &schema_things;
    r->clock = clock_system();
    atomic_store(&r->random.state, (uint64_t)getpid() << 32 | (uint64_t)now_us());
    rig_name(r, "store.db");
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void rig_release(struct rig *r)
{
    rig_close(r);
    arena_release(&r->arena);
    (void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void rig_name(struct rig *r, const char *name)
{
    (void)snprintf(r->path, sizeof(r->path), "%.120s/%.30s", r->dir, name);
}

belay_rc rig_open(struct rig *r)
{
    struct driver_config config = { .schema = r->schema,
                                    .clock = r->clock,
                                    .random = fake_random_hook(&r->random) };
    struct store_options options = { .schema = r->schema,
                                     .clock = r->clock,
                                     .random = fake_random_hook(&r->random) };

    memset(&r->err, 0, sizeof(r->err));
    belay_rc rc = sqlite_open(&r->driver, r->path, &config, &r->err);
    if (!rc)
        rc = store_open(&r->store, r->driver, &options, &r->err);
    if (!rc)
        rc = store_space(r->store, bytes_str("default"), &r->space, &r->err);
    if (rc)
        rig_close(r);
    return rc;
}

void rig_close(struct rig *r)
{
    store_close(r->store);
    driver_close(r->driver);
    r->store = NULL;
    r->driver = NULL;
    r->space = NULL;
}

belay_rc rig_run(struct rig *r, txn_body *body, void *arg)
{
    arena_reset(&r->arena);
    memset(&r->err, 0, sizeof(r->err));
    return txn_run(r->space, body, arg, NULL, &r->arena, &r->err);
}

struct sqlite_store *rig_sqlite(struct rig *r)
{
    return (struct sqlite_store *)r->driver;
}

void rig_checkpoint_soon(struct rig *r)
{
    rig_sqlite(r)->wal_full_at = 0;
}

const char *rig_integrity(const struct rig *r, char out[128])
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;

    (void)snprintf(out, 128, "cannot be opened");
    if (sqlite3_open_v2(r->path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
        (void)sqlite3_busy_timeout(db, 5000);
        (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
        if (sqlite3_prepare_v2(db, "PRAGMA integrity_check(1)", -1, &st, NULL) ||
            sqlite3_step(st) != SQLITE_ROW)
            (void)snprintf(out, 128, "%s", sqlite3_errmsg(db));
        else
            (void)snprintf(out, 128, "%s", (const char *)sqlite3_column_text(st, 0));
        (void)sqlite3_finalize(st);
    }
    (void)sqlite3_close(db);
    for (char *c = strchr(out, '\n'); c; c = strchr(c, '\n'))
        *c = ' ';
    return out;
}

struct buf rig_dump(struct rig *r)
{
    struct buf out = { .ptr = NULL };

    if (dump_namespace(r->driver, bytes_str("default"), &out, &r->err))
        out.failed = true;
    buf_append_char(&out, '\0');
    return out;
}

uint64_t option_u64(int *argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < *argc; i++) {
        if (strcmp(argv[i], name) != 0)
            continue;
        uint64_t value = strtoull(argv[i + 1], NULL, 0);
        for (int j = i; j + 2 <= *argc; j++)
            argv[j] = argv[j + 2];
        *argc -= 2;
        return value;
    }
    return otherwise;
}

int64_t now_us(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg);
}

int64_t wall_ms(void)
{
    struct belay_clock clock = clock_system();

    return clock.wall_ms(clock.arg);
}
