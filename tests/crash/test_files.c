/* What may be opened, what is refused and how, and files of older and newer programs. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk.h"
#include "rig.h"
#include "testvfs.h"

/* --- files that are refused --- */

static void sql(struct tap *t, const char *path, const char *text)
{
    sqlite3 *db = NULL;

    TAP_EQ(t, sqlite3_open(path, &db), SQLITE_OK);
    TAP_EQ(t, sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
}

/* The store is refused, in words that name something, and the file is not changed. */
static void refused(struct tap *t, struct rig *r, belay_rc want, const char *reason)
{
    struct stat before, after;
    bool there = stat(r->path, &before) == 0;

    CHECK_RC(t, rig_open(r), want);
    CHECK_RC(t, r->err.code, want);
    if (reason)
        TAP_STR(t, r->err.reason, reason);
    TAP_OK(t, strlen(r->err.message) > 10);
    if (there && stat(r->path, &after) == 0 && S_ISREG(before.st_mode))
        TAP_EQ(t, after.st_size, before.st_size);
    rig_close(r);
}

static void foreign_file(struct tap *t)
{
    struct rig r;

    rig_init(&r);
    sql(t, r.path, "PRAGMA application_id = 77; CREATE TABLE theirs (x)");
    refused(t, &r, BELAY_UNSUPPORTED_FORMAT, "file");
    TAP_EQ(t, r.err.expected, SQLITE_BELAY_ID);
    TAP_EQ(t, r.err.actual, 77);
    rig_name(&r, "no-id.db");
    sql(t, r.path, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    refused(t, &r, BELAY_UNSUPPORTED_FORMAT, "file");
    TAP_EQ(t, r.err.actual, 0);
    sql(t, r.path, "INSERT INTO theirs VALUES (2)"); /* it is as usable as before */
    rig_release(&r);
}

static void other_layout(struct tap *t)
{
    struct rig r;

    rig_init(&r);
    CHECK_RC(t, rig_open(&r), BELAY_OK);
    rig_close(&r);
    sql(t, r.path, "PRAGMA user_version = 99");
    refused(t, &r, BELAY_UNSUPPORTED_FORMAT, "file");
    TAP_EQ(t, r.err.expected, 1);
    TAP_EQ(t, r.err.actual, 99);
    sql(t, r.path, "PRAGMA user_version = 1");
    CHECK_RC(t, rig_open(&r), BELAY_OK);
    rig_release(&r);
}

static void write_file(struct tap *t, const char *path, const char *text, size_t times)
{
    FILE *f = fopen(path, "w");

    TAP_OK(t, f != NULL);
    if (!f)
        return;
    for (size_t i = 0; i < times; i++)
        (void)fputs(text, f);
    TAP_EQ(t, fclose(f), 0);
}

static void no_database(struct tap *t)
{
    struct rig r;

    rig_init(&r);
    write_file(t, r.path, "Dear diary, today I was not a database. ", 400);
    refused(t, &r, BELAY_UNAVAILABLE, "not_a_database");
    rig_name(&r, "short.db");
    write_file(t, r.path, "SQLite format 3", 1); /* and then nothing */
    refused(t, &r, BELAY_UNAVAILABLE, "not_a_database");
    rig_name(&r, "empty.db");
    write_file(t, r.path, "", 1); /* an empty file is a new database */
    CHECK_RC(t, rig_open(&r), BELAY_OK);
    rig_release(&r);
}

static void folders(struct tap *t)
{
    struct rig r;

    rig_init(&r);
    rig_name(&r, "folder.db");
    TAP_EQ(t, mkdir(r.path, 0700), 0);
    refused(t, &r, BELAY_UNAVAILABLE, "directory");
    rig_name(&r, "missing/store.db");
    refused(t, &r, BELAY_UNAVAILABLE, "no_folder");
    rig_name(&r, "plain");
    write_file(t, r.path, "x", 1);
    rig_name(&r, "plain/store.db");
    refused(t, &r, BELAY_UNAVAILABLE, "no_folder");
    rig_release(&r);
}

/* --- disks that refuse; permissions do not stop root, so the VFS says no --- */

struct refusal {
    enum vfs_op op;
    int part; /* -1: any */
    int code;
};

static int refuse(void *arg, struct vfs_call *call)
{
    const struct refusal *r = arg;

    if (call->op == VFS_SLEEP)
        return SQLITE_BUSY;
    return call->op == r->op && (r->part < 0 || (int)call->part == r->part) ? r->code
                                                                            : SQLITE_OK;
}

static void disk_refuses(struct tap *t)
{
    /* clang-format off */
    static const struct { const char *what; struct refusal how; const char *reason; } rows[] = {
        { "cannot open",         { VFS_OPEN,  VFS_DB,  SQLITE_CANTOPEN },     "cannot_open" },
        { "no WAL",              { VFS_OPEN,  VFS_WAL, SQLITE_CANTOPEN },     "cannot_open" },
        { "read-only",           { VFS_WRITE, -1,      SQLITE_READONLY },     "read_only" },
        { "read-only folder",    { VFS_OPEN,  VFS_JOURNAL, SQLITE_CANTOPEN }, "cannot_open" },
        { "permission",          { VFS_OPEN,  VFS_DB,  SQLITE_PERM },         "permission" },
        { "full",                { VFS_WRITE, -1,      SQLITE_FULL },         "disk_full" },
        { "broken",              { VFS_READ,  VFS_DB,  SQLITE_IOERR_READ },   "disk" },
        { "locked for ever",     { VFS_LOCK,  VFS_DB,  SQLITE_BUSY },         "locked" },
        { "locked for ever",     { VFS_SHM_LOCK, VFS_DB, SQLITE_BUSY },       "locked" },
    };
    /* clang-format on */
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct refusal how = rows[i].how;
        struct testvfs vfs;
        struct rig r;

        rig_init(&r);
        testvfs_install(&vfs, NULL, refuse, &how);
        CHECK_RC(t, rig_open(&r), BELAY_UNAVAILABLE);
        if (!TAP_STR(t, r.err.reason, rows[i].reason))
            printf("# %s: %s\n", rows[i].what, r.err.message);
        vfs.hook = NULL; /* and when it is well again, all is well */
        if (!CHECK_RC(t, rig_open(&r), BELAY_OK))
            printf("# %s: %s\n", rows[i].what, r.err.message);
        rig_close(&r);
        testvfs_remove(&vfs);
        rig_release(&r);
    }
}

/* A file that SQLite can only open for reading. */
static int open_read_only(void *arg, struct vfs_call *call)
{
    (void)arg;
    return call->op == VFS_OPEN && call->part == VFS_DB &&
                   call->flags & SQLITE_OPEN_READWRITE
               ? SQLITE_CANTOPEN
               : SQLITE_OK;
}

static void read_only_file(struct tap *t)
{
    struct testvfs vfs;
    struct rig r;

    rig_init(&r);
    CHECK_RC(t, rig_open(&r), BELAY_OK);
    rig_close(&r);
    testvfs_install(&vfs, NULL, open_read_only, NULL);
    CHECK_RC(t, rig_open(&r), BELAY_UNAVAILABLE);
    TAP_OK(t, strcmp(r.err.reason, "read_only") == 0 ||
                  strcmp(r.err.reason, "cannot_open") == 0);
    testvfs_remove(&vfs);
    rig_release(&r);
}

static belay_rc fill_body(struct txn *t, void *arg)
{
    int64_t *n = arg;
    static const uint8_t data[60000];

    return txn_chunk_put(t, bytes_str("fill"), ++*n, bytes_of(data, sizeof(data)));
}

/* A disk that runs full under way: one answer says so, and after there is room again
 * the store that is opened anew goes on. */
static void full_under_way(struct tap *t)
{
    struct disk disk;
    struct rig r;
    int64_t n = 0, answered = 0;
    belay_rc rc = BELAY_OK;

    disk_install(&disk);
    rig_init(&r);
    CHECK_RC(t, rig_open(&r), BELAY_OK);
    disk.limit = (size_t)2 << 20;
    while (!rc && n < 100) {
        rc = rig_run(&r, fill_body, &n);
        answered += !rc;
    }
    TAP_OK(t, rc == BELAY_UNKNOWN_OUTCOME || rc == BELAY_POISONED);
    TAP_OK(t, strstr(r.err.message, "disk") != NULL);
    TAP_OK(t, answered > 5);
    CHECK_RC(t, rig_run(&r, fill_body, &n), BELAY_POISONED);
    rig_close(&r);
    disk.limit = 0;
    CHECK_RC(t, rig_open(&r), BELAY_OK);
    CHECK_RC(t, rig_run(&r, fill_body, &n), BELAY_OK);
    rig_release(&r);
    disk_release(&disk);
}

/* --- older and newer programs --- */

/* clang-format off */
enum { NEW_EXTRA = THING_COLUMNS, NEW_COLUMNS };
static const struct column new_thing_columns[] = {
    [THING_ID]    = { "id",    VALUE_TEXT,  false },
    [THING_N]     = { "n",     VALUE_I64,   false },
    [THING_TEXT]  = { "text",  VALUE_TEXT,  false },
    [THING_BYTES] = { "bytes", VALUE_BYTES, false },
    [THING_JSON]  = { "json",  VALUE_JSON,  false },
    [THING_COUNT] = { "count", VALUE_I64,   true },
    [THING_HIGH]  = { "high",  VALUE_I64,   true },
    [NEW_EXTRA]   = { "extra", VALUE_TEXT,  false },
};
static const struct row_type new_thing = { "thing", 201, 1, NEW_COLUMNS, new_thing_columns, 0 };

/* Of another branch: a column of its own in the same place. */
static const struct column other_thing_columns[] = {
    [THING_ID]    = { "id",    VALUE_TEXT,  false },
    [THING_N]     = { "n",     VALUE_I64,   false },
    [THING_TEXT]  = { "text",  VALUE_TEXT,  false },
    [THING_BYTES] = { "bytes", VALUE_BYTES, false },
    [THING_JSON]  = { "json",  VALUE_JSON,  false },
    [THING_COUNT] = { "count", VALUE_I64,   true },
    [THING_HIGH]  = { "high",  VALUE_I64,   true },
    [NEW_EXTRA]   = { "other", VALUE_I64,   false },
};
static const struct row_type other_thing = { "thing", 201, 1, NEW_COLUMNS, other_thing_columns, 0 };

enum { MORE_ID, MORE_N, MORE_COLUMNS };
static const struct column more_columns[] = {
    [MORE_ID] = { "id", VALUE_TEXT, false },
    [MORE_N]  = { "n",  VALUE_I64,  false },
};
static const struct row_type row_more = { "more", 204, 1, MORE_COLUMNS, more_columns, 0 };
/* clang-format on */

#define STORE_TYPES                                                                   \
    &row_namespace, &row_format, &row_epoch, &row_fence_floor, &row_clock, &row_slot, \
        &row_upload, &row_blob
static const struct row_type *const new_types[] = { STORE_TYPES, &new_thing, &row_part,
                                                    &row_head, &row_more };
static const struct row_type *const other_types[] = { STORE_TYPES, &other_thing,
                                                      &row_part, &row_head };
static const struct schema new_schema = { new_types, COUNT_OF(new_types) };
static const struct schema other_schema = { other_types, COUNT_OF(other_types) };

struct thing_call {
    const struct row_type *type;
    const char *id;
    int64_t n;
    const char *extra; /* NULL: none, or the program has no such column */
    char got[32];
    bool found;
};

/* Inserts the thing, or puts n (and the extra, if there is one). */
static belay_rc set_body(struct txn *t, void *arg)
{
    const struct thing_call *c = arg;
    struct value v[NEW_COLUMNS] = { [THING_ID] = value_str(c->id),
                                    [THING_N] = value_i64(c->n),
                                    [THING_COUNT] = value_i64(0),
                                    [THING_HIGH] = value_i64(0) };
    const struct row *row;
    belay_rc rc = txn_get(t, c->type, v, &row);

    if (c->extra)
        v[NEW_EXTRA] = c->type == &other_thing ? value_i64(strtoll(c->extra, NULL, 10))
                                               : value_str(c->extra);
    if (rc || !row)
        return rc ? rc : txn_insert(t, c->type, v);
    struct change changes[] = { { THING_N, v[THING_N] }, { NEW_EXTRA, v[NEW_EXTRA] } };
    return txn_put(t, c->type, v, changes, c->extra ? 2 : 1);
}

static belay_rc get_body(struct txn *t, void *arg)
{
    struct thing_call *c = arg;
    struct value key = value_str(c->id);
    const struct row *row;
    belay_rc rc = txn_get(t, c->type, &key, &row);

    c->found = !rc && row;
    c->n = c->found ? row_i64(row, THING_N, -1) : -1;
    c->got[0] = 0;
    if (c->found && c->type == &new_thing && row->v[NEW_EXTRA].kind == VALUE_TEXT)
        (void)snprintf(c->got, sizeof(c->got), "%.*s", (int)row->v[NEW_EXTRA].b.len,
                       (const char *)row->v[NEW_EXTRA].b.ptr);
    if (c->found && c->type == &other_thing && row->v[NEW_EXTRA].kind != VALUE_NULL)
        (void)snprintf(c->got, sizeof(c->got), "%lld", (long long)row->v[NEW_EXTRA].i);
    return rc;
}

static belay_rc more_body(struct txn *t, void *arg)
{
    struct value v[MORE_COLUMNS] = { value_str("m"), value_i64(1) };
    const struct row *row;

    (void)arg;
    belay_rc rc = txn_get(t, &row_more, v, &row);
    return rc || row ? rc : txn_insert(t, &row_more, v);
}

static void set(struct tap *t, struct rig *r, const struct row_type *type,
                const char *id, int64_t n, const char *extra)
{
    struct thing_call c = { .type = type, .id = id, .n = n, .extra = extra };

    if (!CHECK_RC(t, rig_run(r, set_body, &c), BELAY_OK))
        printf("# %s\n", r->err.message);
}

static void expect(struct tap *t, struct rig *r, const struct row_type *type,
                   const char *id, int64_t n, const char *extra)
{
    struct thing_call c = { .type = type, .id = id };

    if (!CHECK_RC(t, rig_run(r, get_body, &c), BELAY_OK))
        printf("# %s\n", r->err.message);
    TAP_EQ(t, c.n, n);
    TAP_STR(t, c.got, extra);
}

static void reopen(struct tap *t, struct rig *r, const struct schema *schema)
{
    rig_close(r);
    r->schema = schema;
    if (!CHECK_RC(t, rig_open(r), BELAY_OK))
        printf("# %s\n", r->err.message);
}

static void upgrade_and_back(struct tap *t)
{
    struct rig r;

    rig_init(&r);
    reopen(t, &r, &schema_things);
    set(t, &r, &row_thing, "a", 1, NULL);
    set(t, &r, &row_thing, "b", 2, NULL);

    reopen(t, &r, &new_schema);
    expect(t, &r, &new_thing, "a", 1, "");
    set(t, &r, &new_thing, "a", 10, "kept");
    set(t, &r, &new_thing, "c", 3, "fresh");
    CHECK_RC(t, rig_run(&r, more_body, NULL), BELAY_OK);

    reopen(t, &r, &schema_things); /* the old program again */
    expect(t, &r, &row_thing, "a", 10, "");
    set(t, &r, &row_thing, "a", 11, NULL);
    set(t, &r, &row_thing, "d", 4, NULL);

    reopen(t, &r, &new_schema);
    expect(t, &r, &new_thing, "a", 11, "kept");
    expect(t, &r, &new_thing, "c", 3, "fresh");
    expect(t, &r, &new_thing, "d", 4, "");
    CHECK_RC(t, rig_run(&r, more_body, NULL), BELAY_OK);
    rig_release(&r);
}

/* The old one stays open while the new one adds its columns, and both go on. */
static void side_by_side(struct tap *t)
{
    struct rig old, new;

    rig_init(&old);
    rig_init(&new);
    memcpy(new.path, old.path, sizeof(new.path));
    reopen(t, &old, &schema_things);
    set(t, &old, &row_thing, "a", 1, NULL);
    expect(t, &old, &row_thing, "a", 1, "");
    reopen(t, &new, &new_schema);
    set(t, &new, &new_thing, "a", 2, "theirs");
    expect(t, &old, &row_thing, "a", 2, "");
    set(t, &old, &row_thing, "a", 3, NULL);
    set(t, &old, &row_thing, "b", 4, NULL);
    expect(t, &new, &new_thing, "a", 3, "theirs");
    expect(t, &new, &new_thing, "b", 4, "");
    rig_release(&new);
    rig_release(&old);
}

/* As many columns as expected are not the ones expected. */
static void another_branch(struct tap *t)
{
    struct rig r;

    rig_init(&r);
    reopen(t, &r, &new_schema);
    set(t, &r, &new_thing, "a", 1, "kept");
    reopen(t, &r, &other_schema);
    expect(t, &r, &other_thing, "a", 1, "");
    set(t, &r, &other_thing, "a", 2, "7");
    expect(t, &r, &other_thing, "a", 2, "7");
    reopen(t, &r, &new_schema);
    expect(t, &r, &new_thing, "a", 2, "kept");
    rig_release(&r);
}

static const struct tap_case cases[] = {
    { "open: another program's file is refused with both ids", foreign_file },
    { "open: a file of another layout is refused with both versions", other_layout },
    { "open: a file that is no database is refused", no_database },
    { "open: folders in the wrong place, or none", folders },
    { "open: a disk that says no is told apart", disk_refuses },
    { "open: a file that can only be read is refused", read_only_file },
    { "open: a disk that runs full under way", full_under_way },
    { "upgrade: a column and a table more, and the old program keeps them",
      upgrade_and_back },
    { "upgrade: old and new side by side", side_by_side },
    { "upgrade: a program of another branch", another_branch },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
