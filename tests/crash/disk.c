#include "disk_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- bytes --- */

void disk_bytes_resize(struct disk_bytes *b, size_t len)
{
    if (len > b->cap) {
        size_t cap = b->cap ? b->cap : 4096;
        while (cap < len)
            cap *= 2;
        b->ptr = realloc(b->ptr, cap);
        if (!b->ptr)
            abort();
        b->cap = cap;
    }
    if (len > b->len)
        memset(b->ptr + b->len, 0, len - b->len);
    b->len = len;
}

void disk_bytes_write(struct disk_bytes *b, size_t offset, const uint8_t *data,
                      size_t len)
{
    if (offset + len > b->len)
        disk_bytes_resize(b, offset + len);
    if (len > 0)
        memcpy(b->ptr + offset, data, len);
}

void disk_image_release(struct disk_image *image)
{
    for (unsigned i = 0; i < DISK_FILES; i++)
        free(image->files[i].ptr);
    memset(image, 0, sizeof(*image));
}

/* --- the record --- */

static void record(struct disk *d, enum disk_kind kind, unsigned file, size_t offset,
                   const void *data, size_t len, bool whole)
{
    if (!d->recording)
        return;
    if (d->n_events == d->cap_events) {
        d->cap_events = d->cap_events ? 2 * d->cap_events : 1024;
        d->events = realloc(d->events, d->cap_events * sizeof(*d->events));
        if (!d->events)
            abort();
    }
    struct disk_event *e = &d->events[d->n_events++];
    *e = (struct disk_event){
        .kind = kind, .file = file, .whole = whole, .offset = offset, .len = len
    };
    if (len > 0) {
        e->data = malloc(len);
        if (!e->data)
            abort();
        memcpy(e->data, data, len);
    }
}

void disk_mark(struct disk *d, size_t number)
{
    pthread_mutex_lock(&d->mutex);
    record(d, DISK_MARK, 0, number, NULL, 0, false);
    pthread_mutex_unlock(&d->mutex);
}

/* The driver syncs the folder itself, past SQLite.  Programs that want that recorded,
 * and not done, are linked with --wrap=fsync. */
static struct disk *mounted;
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd;
    if (mounted) {
        pthread_mutex_lock(&mounted->mutex);
        record(mounted, DISK_SYNC_FOLDER, 0, 0, NULL, 0, true);
        pthread_mutex_unlock(&mounted->mutex);
    }
    return 0;
}

void disk_lose(struct disk *d, const char *suffix)
{
    int i = disk_index(d, suffix);

    pthread_mutex_lock(&d->mutex);
    if (i >= 0)
        record(d, DISK_LOSE, (unsigned)i, 0, NULL, 0, false);
    pthread_mutex_unlock(&d->mutex);
}

void disk_forget_events(struct disk *d)
{
    for (size_t i = 0; i < d->n_events; i++)
        free(d->events[i].data);
    d->n_events = 0;
}

/* --- reading and writing --- */

static int disk_close(sqlite3_file *file)
{
    struct handle *h = (struct handle *)file;

    pthread_mutex_lock(&h->d->mutex);
    disk_file_of(h)->handles--;
    pthread_mutex_unlock(&h->d->mutex);
    return SQLITE_OK;
}

static int disk_read(sqlite3_file *file, void *buf, int amount, sqlite3_int64 offset)
{
    struct handle *h = (struct handle *)file;
    size_t want = (size_t)amount, at = (size_t)offset, got = 0;

    pthread_mutex_lock(&h->d->mutex);
    const struct disk_bytes *b = &disk_file_of(h)->bytes;
    if (at < b->len) {
        got = b->len - at < want ? b->len - at : want;
        memcpy(buf, b->ptr + at, got);
    }
    pthread_mutex_unlock(&h->d->mutex);
    if (got == want)
        return SQLITE_OK;
    memset((char *)buf + got, 0, want - got);
    return SQLITE_IOERR_SHORT_READ;
}

static size_t used(const struct disk *d)
{
    size_t sum = 0;

    for (unsigned i = 0; i < DISK_FILES && d->files[i]; i++)
        sum += d->files[i]->bytes.len;
    return sum;
}

static int disk_write(sqlite3_file *file, const void *buf, int amount,
                      sqlite3_int64 offset)
{
    struct handle *h = (struct handle *)file;
    size_t at = (size_t)offset, len = (size_t)amount;

    pthread_mutex_lock(&h->d->mutex);
    struct disk_bytes *b = &disk_file_of(h)->bytes;
    size_t more = at + len > b->len ? at + len - b->len : 0;
    bool fits = !more || !h->d->limit || used(h->d) + more <= h->d->limit;
    if (fits) {
        disk_bytes_write(b, at, buf, len);
        record(h->d, DISK_WRITE, h->index, at, buf, len, false);
    }
    pthread_mutex_unlock(&h->d->mutex);
    return fits ? SQLITE_OK : SQLITE_FULL;
}

static int disk_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct handle *h = (struct handle *)file;

    pthread_mutex_lock(&h->d->mutex);
    disk_bytes_resize(&disk_file_of(h)->bytes, (size_t)size);
    record(h->d, DISK_TRUNCATE, h->index, (size_t)size, NULL, 0, false);
    pthread_mutex_unlock(&h->d->mutex);
    return SQLITE_OK;
}

static int disk_sync(sqlite3_file *file, int flags)
{
    struct handle *h = (struct handle *)file;

    (void)flags;
    pthread_mutex_lock(&h->d->mutex);
    record(h->d, DISK_SYNC, h->index, 0, NULL, 0, h->new_entry);
    h->new_entry = false;
    pthread_mutex_unlock(&h->d->mutex);
    return SQLITE_OK;
}

static int disk_file_size(sqlite3_file *file, sqlite3_int64 *out)
{
    struct handle *h = (struct handle *)file;

    pthread_mutex_lock(&h->d->mutex);
    *out = (sqlite3_int64)disk_file_of(h)->bytes.len;
    pthread_mutex_unlock(&h->d->mutex);
    return SQLITE_OK;
}

static int disk_control(sqlite3_file *file, int op, void *arg)
{
    (void)file;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int disk_sector(sqlite3_file *file)
{
    (void)file;
    return DISK_SECTOR;
}

static int disk_device(sqlite3_file *file)
{
    struct handle *h = (struct handle *)file;

    return h->d->powersafe ? SQLITE_IOCAP_POWERSAFE_OVERWRITE : 0;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = disk_close,
    .xRead = disk_read,
    .xWrite = disk_write,
    .xTruncate = disk_truncate,
    .xSync = disk_sync,
    .xFileSize = disk_file_size,
    .xLock = disk_lock,
    .xUnlock = disk_unlock,
    .xCheckReservedLock = disk_reserved,
    .xFileControl = disk_control,
    .xSectorSize = disk_sector,
    .xDeviceCharacteristics = disk_device,
    .xShmMap = disk_shm_map,
    .xShmLock = disk_shm_lock,
    .xShmBarrier = disk_shm_barrier,
    .xShmUnmap = disk_shm_unmap,
};

/* --- names --- */

static int find_name(const struct disk *d, const char *name)
{
    for (int i = 0; i < DISK_FILES && d->files[i]; i++) {
        if (strcmp(d->files[i]->name, name) == 0)
            return i;
    }
    return -1;
}

/* The index of a name, entered if it is new. */
static int enter_name(struct disk *d, const char *name)
{
    int i = find_name(d, name);

    if (i >= 0)
        return i;
    for (i = 0; i < DISK_FILES && d->files[i]; i++)
        ;
    if (i == DISK_FILES)
        return -1;
    d->files[i] = calloc(1, sizeof(*d->files[i]));
    if (!d->files[i] || !(d->files[i]->name = strdup(name)))
        abort();
    return i;
}

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *out_flags)
{
    struct disk *d = vfs->pAppData;
    struct handle *h = (struct handle *)file;
    int rc = SQLITE_OK;

    memset(h, 0, sizeof(*h));
    if (!name)
        return SQLITE_CANTOPEN; /* temporary files are kept in memory */
    pthread_mutex_lock(&d->mutex);
    int i = enter_name(d, name);
    bool there = i >= 0 && d->files[i]->bytes.exists;
    if (i < 0 || (!there && !(flags & SQLITE_OPEN_CREATE))) {
        rc = SQLITE_CANTOPEN;
    } else {
        h->d = d;
        h->index = (unsigned)i;
        h->file.pMethods = &methods;
        d->files[i]->handles++;
        if (!there) {
            d->files[i]->bytes.exists = true;
            h->new_entry = !(flags & SQLITE_OPEN_MAIN_DB);
            record(d, DISK_CREATE, h->index, 0, NULL, 0, false);
        }
    }
    pthread_mutex_unlock(&d->mutex);
    if (out_flags)
        *out_flags = flags;
    return rc;
}

static int disk_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    struct disk *d = vfs->pAppData;

    pthread_mutex_lock(&d->mutex);
    int i = find_name(d, name);
    bool there = i >= 0 && d->files[i]->bytes.exists;
    if (there) {
        disk_bytes_resize(&d->files[i]->bytes, 0);
        d->files[i]->bytes.exists = false;
        record(d, DISK_DELETE, (unsigned)i, 0, NULL, 0, sync_folder);
    }
    pthread_mutex_unlock(&d->mutex);
    return there ? SQLITE_OK : SQLITE_IOERR_DELETE_NOENT;
}

static int disk_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    struct disk *d = vfs->pAppData;

    (void)flags;
    pthread_mutex_lock(&d->mutex);
    int i = find_name(d, name);
    *out = i >= 0 && d->files[i]->bytes.exists &&
           (flags != SQLITE_ACCESS_EXISTS || d->files[i]->bytes.len > 0);
    pthread_mutex_unlock(&d->mutex);
    return SQLITE_OK;
}

static int disk_full_name(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    (void)vfs;
    return snprintf(out, (size_t)size, "%s", name) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

/* Time and chance do not matter here, but must be the same in every run. */
static int disk_random(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    for (int i = 0; i < size; i++)
        out[i] = (char)(i * 37 + 11);
    return size;
}

static int disk_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us; /* nobody else is going to move while we wait */
}

static int disk_time(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    (void)vfs;
    *out = (sqlite3_int64)212000000000000;
    return SQLITE_OK;
}

void disk_install(struct disk *d)
{
    memset(d, 0, sizeof(*d));
    pthread_mutex_init(&d->mutex, NULL);
    d->vfs = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = sizeof(struct handle),
        .mxPathname = 512,
        .zName = "disk",
        .pAppData = d,
        .xOpen = disk_open,
        .xDelete = disk_delete,
        .xAccess = disk_access,
        .xFullPathname = disk_full_name,
        .xRandomness = disk_random,
        .xSleep = disk_sleep,
        .xCurrentTimeInt64 = disk_time,
    };
    (void)sqlite3_vfs_register(&d->vfs, 1);
    mounted = d;
}

void disk_release(struct disk *d)
{
    (void)sqlite3_vfs_unregister(&d->vfs);
    mounted = NULL;
    for (unsigned i = 0; i < DISK_FILES && d->files[i]; i++) {
        free(d->files[i]->bytes.ptr);
        free(d->files[i]->name);
        free(d->files[i]);
    }
    disk_forget_events(d);
    free(d->events);
    pthread_mutex_destroy(&d->mutex);
}

/* --- whole disks --- */

static void copy_bytes(struct disk_bytes *to, const struct disk_bytes *from)
{
    to->len = 0;
    disk_bytes_write(to, 0, from->ptr, from->len);
    disk_bytes_resize(to, from->len);
    to->exists = from->exists;
}

void disk_save(struct disk *d, struct disk_image *out)
{
    memset(out, 0, sizeof(*out));
    for (unsigned i = 0; i < DISK_FILES && d->files[i]; i++)
        copy_bytes(&out->files[i], &d->files[i]->bytes);
}

void disk_load(struct disk *d, const struct disk_image *image)
{
    for (unsigned i = 0; i < DISK_FILES && d->files[i]; i++) {
        if (d->files[i]->handles > 0)
            abort();
        copy_bytes(&d->files[i]->bytes, &image->files[i]);
    }
}

int disk_index(struct disk *d, const char *suffix)
{
    size_t n = strlen(suffix);
    int found = -1;

    pthread_mutex_lock(&d->mutex);
    for (int i = 0; i < DISK_FILES && d->files[i]; i++) {
        size_t len = strlen(d->files[i]->name);
        if (len >= n && strcmp(d->files[i]->name + len - n, suffix) == 0)
            found = i;
    }
    pthread_mutex_unlock(&d->mutex);
    return found;
}

size_t disk_size(struct disk *d, const char *suffix)
{
    int i = disk_index(d, suffix);

    return i < 0 ? 0 : d->files[i]->bytes.len;
}
