#include "testvfs.h"

#include <string.h>

struct shim_file {
    sqlite3_file file;
    struct testvfs *v;
    enum vfs_part part;
    sqlite3_file *under; /* behind this struct, in the memory SQLite gave */
};

static struct testvfs *of_vfs(sqlite3_vfs *vfs)
{
    return (struct testvfs *)vfs->pAppData;
}

static sqlite3_file *under(sqlite3_file *file)
{
    return ((struct shim_file *)file)->under;
}

static int ask(struct testvfs *v, struct vfs_call *call)
{
    return v->hook ? v->hook(v->arg, call) : SQLITE_OK;
}

static int ask_of(sqlite3_file *file, enum vfs_op op, int64_t offset, int amount,
                  int flags, bool *half)
{
    struct shim_file *f = (struct shim_file *)file;
    struct vfs_call call = {
        .op = op, .part = f->part, .offset = offset, .amount = amount, .flags = flags
    };
    int rc = ask(f->v, &call);

    if (half)
        *half = call.half;
    return rc;
}

/* --- files --- */

static int shim_close(sqlite3_file *file)
{
    return under(file)->pMethods->xClose(under(file));
}

static int shim_read(sqlite3_file *file, void *buf, int amount, sqlite3_int64 offset)
{
    bool half = false;
    int rc = ask_of(file, VFS_READ, offset, amount, 0, &half);

    if (rc == SQLITE_OK || half) {
        int got = under(file)->pMethods->xRead(under(file), buf, amount, offset);
        if (rc == SQLITE_OK)
            return got;
        memset((char *)buf + amount / 2, 0, (size_t)(amount - amount / 2));
    }
    return rc;
}

static int shim_write(sqlite3_file *file, const void *buf, int amount,
                      sqlite3_int64 offset)
{
    bool half = false;
    int rc = ask_of(file, VFS_WRITE, offset, amount, 0, &half);

    if (rc == SQLITE_OK)
        return under(file)->pMethods->xWrite(under(file), buf, amount, offset);
    if (half && amount > 1)
        (void)under(file)->pMethods->xWrite(under(file), buf, amount / 2, offset);
    return rc;
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int rc = ask_of(file, VFS_TRUNCATE, size, 0, 0, NULL);

    return rc ? rc : under(file)->pMethods->xTruncate(under(file), size);
}

static int shim_sync(sqlite3_file *file, int flags)
{
    int rc = ask_of(file, VFS_SYNC, 0, 0, flags, NULL);

    return rc ? rc : under(file)->pMethods->xSync(under(file), flags);
}

static int shim_size(sqlite3_file *file, sqlite3_int64 *out)
{
    int rc = ask_of(file, VFS_SIZE, 0, 0, 0, NULL);

    return rc ? rc : under(file)->pMethods->xFileSize(under(file), out);
}

static int shim_lock(sqlite3_file *file, int lock)
{
    int rc = ask_of(file, VFS_LOCK, 0, 0, lock, NULL);

    return rc ? rc : under(file)->pMethods->xLock(under(file), lock);
}

static int shim_unlock(sqlite3_file *file, int lock)
{
    return under(file)->pMethods->xUnlock(under(file), lock);
}

static int shim_reserved(sqlite3_file *file, int *out)
{
    return under(file)->pMethods->xCheckReservedLock(under(file), out);
}

static int shim_control(sqlite3_file *file, int op, void *arg)
{
    return under(file)->pMethods->xFileControl(under(file), op, arg);
}

static int shim_sector(sqlite3_file *file)
{
    return under(file)->pMethods->xSectorSize(under(file));
}

static int shim_device(sqlite3_file *file)
{
    return under(file)->pMethods->xDeviceCharacteristics(under(file));
}

static int shim_shm_map(sqlite3_file *file, int region, int size, int extend,
                        void volatile **out)
{
    int rc = ask_of(file, VFS_SHM_MAP, 0, region, extend, NULL);

    return rc ? rc
              : under(file)->pMethods->xShmMap(under(file), region, size, extend, out);
}

static int shim_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    int rc = flags & SQLITE_SHM_LOCK
                 ? ask_of(file, VFS_SHM_LOCK, 0, offset, flags, NULL)
                 : SQLITE_OK;

    return rc ? rc : under(file)->pMethods->xShmLock(under(file), offset, n, flags);
}

static void shim_shm_barrier(sqlite3_file *file)
{
    under(file)->pMethods->xShmBarrier(under(file));
}

static int shim_shm_unmap(sqlite3_file *file, int delete)
{
    return under(file)->pMethods->xShmUnmap(under(file), delete);
}

static int shim_fetch(sqlite3_file *file, sqlite3_int64 offset, int amount, void **out)
{
    *out = NULL;
    return under(file)->pMethods->iVersion < 3
               ? SQLITE_OK
               : under(file)->pMethods->xFetch(under(file), offset, amount, out);
}

static int shim_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *page)
{
    (void)ask_of(file, VFS_UNFETCH, offset, 0, 0, NULL);
    return under(file)->pMethods->iVersion < 3
               ? SQLITE_OK
               : under(file)->pMethods->xUnfetch(under(file), offset, page);
}

static const sqlite3_io_methods shim_methods = {
    .iVersion = 3,
    .xClose = shim_close,
    .xRead = shim_read,
    .xWrite = shim_write,
    .xTruncate = shim_truncate,
    .xSync = shim_sync,
    .xFileSize = shim_size,
    .xLock = shim_lock,
    .xUnlock = shim_unlock,
    .xCheckReservedLock = shim_reserved,
    .xFileControl = shim_control,
    .xSectorSize = shim_sector,
    .xDeviceCharacteristics = shim_device,
    .xShmMap = shim_shm_map,
    .xShmLock = shim_shm_lock,
    .xShmBarrier = shim_shm_barrier,
    .xShmUnmap = shim_shm_unmap,
    .xFetch = shim_fetch,
    .xUnfetch = shim_unfetch,
};

/* --- the file system --- */

static enum vfs_part part_of_flags(int flags)
{
    if (flags & SQLITE_OPEN_MAIN_DB)
        return VFS_DB;
    if (flags & SQLITE_OPEN_WAL)
        return VFS_WAL;
    return flags & SQLITE_OPEN_MAIN_JOURNAL ? VFS_JOURNAL : VFS_OTHER;
}

static enum vfs_part part_of_name(const char *name)
{
    size_t len = strlen(name);

    if (len > 4 && strcmp(name + len - 4, "-wal") == 0)
        return VFS_WAL;
    return len > 8 && strcmp(name + len - 8, "-journal") == 0 ? VFS_JOURNAL : VFS_OTHER;
}

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *out_flags)
{
    struct testvfs *v = of_vfs(vfs);
    struct shim_file *f = (struct shim_file *)file;
    struct vfs_call call = { .op = VFS_OPEN,
                             .part = part_of_flags(flags),
                             .flags = flags };

    memset(f, 0, sizeof(*f));
    int rc = ask(v, &call);
    if (rc)
        return rc;
    f->v = v;
    f->part = call.part;
    f->under = (sqlite3_file *)(f + 1);
    rc = v->base->xOpen(v->base, name, f->under, flags, out_flags);
    if (f->under->pMethods)
        f->file.pMethods = &shim_methods;
    return rc;
}

static int shim_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    struct testvfs *v = of_vfs(vfs);
    struct vfs_call call = { .op = VFS_DELETE, .part = part_of_name(name) };
    int rc = ask(v, &call);

    return rc ? rc : v->base->xDelete(v->base, name, sync_folder);
}

static int shim_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    struct testvfs *v = of_vfs(vfs);
    struct vfs_call call = { .op = VFS_ACCESS, .part = part_of_name(name) };
    int rc = ask(v, &call);

    return rc ? rc : v->base->xAccess(v->base, name, flags, out);
}

static int shim_full_name(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    struct testvfs *v = of_vfs(vfs);

    return v->base->xFullPathname(v->base, name, size, out);
}

static int shim_random(sqlite3_vfs *vfs, int size, char *out)
{
    struct testvfs *v = of_vfs(vfs);

    return v->base->xRandomness(v->base, size, out);
}

static int shim_sleep(sqlite3_vfs *vfs, int us)
{
    struct testvfs *v = of_vfs(vfs);
    struct vfs_call call = { .op = VFS_SLEEP, .part = VFS_OTHER, .amount = us };

    return ask(v, &call) ? us : v->base->xSleep(v->base, us);
}

static int shim_time(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    struct testvfs *v = of_vfs(vfs);

    return v->base->xCurrentTimeInt64(v->base, out);
}

static int shim_last_error(sqlite3_vfs *vfs, int size, char *out)
{
    struct testvfs *v = of_vfs(vfs);

    return v->base->xGetLastError ? v->base->xGetLastError(v->base, size, out) : 0;
}

void testvfs_install(struct testvfs *v, sqlite3_vfs *base, vfs_hook *hook, void *arg)
{
    memset(v, 0, sizeof(*v));
    v->base = base ? base : sqlite3_vfs_find(NULL);
    v->hook = hook;
    v->arg = arg;
    v->vfs = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = (int)sizeof(struct shim_file) + v->base->szOsFile,
        .mxPathname = v->base->mxPathname,
        .zName = "test",
        .pAppData = v,
        .xOpen = shim_open,
        .xDelete = shim_delete,
        .xAccess = shim_access,
        .xFullPathname = shim_full_name,
        .xRandomness = shim_random,
        .xSleep = shim_sleep,
        .xGetLastError = shim_last_error,
        .xCurrentTimeInt64 = shim_time,
    };
    (void)sqlite3_vfs_register(&v->vfs, 1);
}

void testvfs_remove(struct testvfs *v)
{
    (void)sqlite3_vfs_unregister(&v->vfs);
    (void)sqlite3_vfs_register(v->base, 1);
}
