#include "store/drivers/sqlite/walfile.h"

#include <stdlib.h>
#include <string.h>

/* SQLite's own files take less than 128 KiB at once. */
#define COLLECTED_MAX (124 << 10)

/* The log's file object belongs to SQLite; its first field, the table of its methods, is
 * part of SQLite's interface.  Ours stands there instead and calls the real one. */
struct walfile {
    sqlite3_io_methods methods; /* first: how a method finds the rest */
    const sqlite3_io_methods *real;
    sqlite3_file *file; /* NULL: closed */
    bool later;
    bool new_header; /* not synced yet */
    bool at_once;    /* nothing is collected: no sync of SQLite's follows */
    sqlite3_int64 at;
    int len; /* collected, to be written at `at` */
    uint8_t *collected;
};

static struct walfile *of(sqlite3_file *f)
{
    return (struct walfile *)(uintptr_t)f->pMethods;
}

/* What could not be written is not tried again: SQLite takes the commit back. */
static int write_out(struct walfile *w)
{
    int len = w->len;

    w->len = 0;
    return len > 0 ? w->real->xWrite(w->file, w->collected, len, w->at) : SQLITE_OK;
}

static int wal_write(sqlite3_file *f, const void *data, int len, sqlite3_int64 at)
{
    struct walfile *w = of(f);
    bool fits = !w->at_once && len <= COLLECTED_MAX - w->len &&
                (w->len == 0 || at == w->at + w->len);

    if (at == 0)
        w->new_header = true;
    if (!fits) {
        int rc = write_out(w);
        if (rc)
            return rc;
    }
    if (w->at_once || len > COLLECTED_MAX)
        return w->real->xWrite(f, data, len, at);
    if (w->len == 0)
        w->at = at;
    memcpy(w->collected + w->len, data, (size_t)len);
    w->len += len;
    return SQLITE_OK;
}

static int wal_sync(sqlite3_file *f, int flags)
{
    struct walfile *w = of(f);
    bool later = w->later && !w->new_header;
    int rc = write_out(w);

    /* On a disk that tears sectors the last frame goes on behind the sync. */
    w->at_once = later;
    if (rc || later)
        return rc;
    w->new_header = false;
    return w->real->xSync(f, flags);
}

/* Everything else sees the file as if nothing were collected. */

static int wal_read(sqlite3_file *f, void *out, int len, sqlite3_int64 at)
{
    int rc = write_out(of(f));

    return rc ? rc : of(f)->real->xRead(f, out, len, at);
}

static int wal_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    int rc = write_out(of(f));

    return rc ? rc : of(f)->real->xTruncate(f, size);
}

static int wal_file_size(sqlite3_file *f, sqlite3_int64 *out)
{
    int rc = write_out(of(f));

    return rc ? rc : of(f)->real->xFileSize(f, out);
}

static int wal_file_control(sqlite3_file *f, int op, void *arg)
{
    int rc = write_out(of(f));

    return rc ? rc : of(f)->real->xFileControl(f, op, arg);
}

static int wal_close(sqlite3_file *f)
{
    struct walfile *w = of(f);

    (void)write_out(w); /* of no commit: those were written out by their sync */
    w->file = NULL;
    f->pMethods = w->real;
    return w->real->xClose(f);
}

/* A log is not locked and not mapped; what SQLite asks of its device is asked of the real
 * file. */

static int wal_lock(sqlite3_file *f, int level)
{
    return of(f)->real->xLock(f, level);
}

static int wal_unlock(sqlite3_file *f, int level)
{
    return of(f)->real->xUnlock(f, level);
}

static int wal_check_lock(sqlite3_file *f, int *out)
{
    return of(f)->real->xCheckReservedLock(f, out);
}

static int wal_sector_size(sqlite3_file *f)
{
    return of(f)->real->xSectorSize(f);
}

static int wal_device(sqlite3_file *f)
{
    return of(f)->real->xDeviceCharacteristics(f);
}

belay_rc walfile_attach(struct walfile **out, sqlite3 *db, struct belay_error *err)
{
    sqlite3_file *file = NULL;
    struct walfile *w;

    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) ||
        !file || !file->pMethods)
        return err_reason(err, BELAY_UNAVAILABLE, "durability",
                          "sqlite: the file has no write-ahead log");
    w = calloc(1, sizeof(*w));
    if (w)
        w->collected = malloc((size_t)COLLECTED_MAX);
    if (!w || !w->collected) {
        free(w);
        return err_no_memory(err, "the write-ahead log");
    }
    w->methods = (sqlite3_io_methods){ .iVersion = 1,
                                       .xClose = wal_close,
                                       .xRead = wal_read,
                                       .xWrite = wal_write,
                                       .xTruncate = wal_truncate,
                                       .xSync = wal_sync,
                                       .xFileSize = wal_file_size,
                                       .xLock = wal_lock,
                                       .xUnlock = wal_unlock,
                                       .xCheckReservedLock = wal_check_lock,
                                       .xFileControl = wal_file_control,
                                       .xSectorSize = wal_sector_size,
                                       .xDeviceCharacteristics = wal_device };
    w->real = file->pMethods;
    w->file = file;
    file->pMethods = &w->methods;
    *out = w;
    return BELAY_OK;
}

void walfile_free(struct walfile *w)
{
    if (!w)
        return;
    free(w->collected);
    free(w);
}

void walfile_sync_later(struct walfile *w)
{
    w->later = true;
}

void walfile_sync_again(struct walfile *w)
{
    w->later = w->at_once = false;
}

int walfile_sync(struct walfile *w)
{
    return w->real->xSync(w->file, SQLITE_SYNC_NORMAL);
}
