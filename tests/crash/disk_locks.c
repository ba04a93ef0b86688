#include <stdlib.h>

#include "disk_impl.h"

/* --- SQLite's locks on the database file --- */

static int lock_file(struct disk_file *f, struct handle *h, int want)
{
    if (want == SQLITE_LOCK_SHARED) {
        if (f->exclusive)
            return SQLITE_BUSY;
        f->shared++;
    }
    if (want == SQLITE_LOCK_RESERVED) {
        if (f->reserved)
            return SQLITE_BUSY;
        f->reserved = h;
    }
    if (want == SQLITE_LOCK_EXCLUSIVE) {
        if ((f->reserved && f->reserved != h) || f->shared > 1)
            return SQLITE_BUSY;
        f->reserved = f->exclusive = h;
    }
    h->lock = want;
    return SQLITE_OK;
}

int disk_lock(sqlite3_file *file, int want)
{
    struct handle *h = (struct handle *)file;

    pthread_mutex_lock(&h->d->mutex);
    int rc = h->lock >= want ? SQLITE_OK : lock_file(disk_file_of(h), h, want);
    pthread_mutex_unlock(&h->d->mutex);
    return rc;
}

int disk_unlock(sqlite3_file *file, int want)
{
    struct handle *h = (struct handle *)file;

    pthread_mutex_lock(&h->d->mutex);
    struct disk_file *f = disk_file_of(h);
    if (f->reserved == h)
        f->reserved = NULL;
    if (f->exclusive == h)
        f->exclusive = NULL;
    if (want == SQLITE_LOCK_NONE && h->lock > SQLITE_LOCK_NONE)
        f->shared--;
    if (want < h->lock)
        h->lock = want;
    pthread_mutex_unlock(&h->d->mutex);
    return SQLITE_OK;
}

int disk_reserved(sqlite3_file *file, int *out)
{
    struct handle *h = (struct handle *)file;

    pthread_mutex_lock(&h->d->mutex);
    *out = disk_file_of(h)->reserved != NULL;
    pthread_mutex_unlock(&h->d->mutex);
    return SQLITE_OK;
}

/* --- the shared memory of the WAL, gone when nobody maps it any more --- */

int disk_shm_map(sqlite3_file *file, int region, int size, int extend,
                 void volatile **out)
{
    struct handle *h = (struct handle *)file;

    *out = NULL;
    if (region >= REGIONS || size > REGION_MAX)
        return SQLITE_IOERR_SHMMAP;
    pthread_mutex_lock(&h->d->mutex);
    struct disk_file *f = disk_file_of(h);
    if (!h->maps) {
        h->maps = true;
        f->shm_users++;
    }
    if (!f->region[region] && extend) {
        f->region[region] = calloc(1, REGION_MAX);
        if (!f->region[region])
            abort();
    }
    *out = f->region[region];
    pthread_mutex_unlock(&h->d->mutex);
    return SQLITE_OK;
}

static int lock_slots(struct disk_file *f, struct handle *h, unsigned mask, int flags)
{
    bool exclusive = flags & SQLITE_SHM_EXCLUSIVE;

    for (unsigned i = 0; i < SQLITE_SHM_NLOCK; i++) {
        if (!((mask >> i) & 1))
            continue;
        int others = f->slot[i] - (int)((h->mine >> i) & 1);
        if (exclusive ? f->slot[i] < 0 || others > 0 : f->slot[i] < 0)
            return SQLITE_BUSY;
    }
    for (unsigned i = 0; i < SQLITE_SHM_NLOCK; i++) {
        if (!((mask >> i) & 1))
            continue;
        if (exclusive)
            f->slot[i] = -1;
        else if (!((h->mine >> i) & 1))
            f->slot[i]++;
    }
    *(exclusive ? &h->only : &h->mine) |= mask;
    return SQLITE_OK;
}

static void unlock_slots(struct disk_file *f, struct handle *h, unsigned mask)
{
    for (unsigned i = 0; i < SQLITE_SHM_NLOCK; i++) {
        unsigned bit = 1U << i;
        if (!(mask & bit))
            continue;
        if (h->only & bit)
            f->slot[i] = 0;
        else if (h->mine & bit)
            f->slot[i]--;
    }
    h->only &= ~mask;
    h->mine &= ~mask;
}

int disk_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    struct handle *h = (struct handle *)file;
    unsigned mask = ((1U << n) - 1) << offset;
    int rc = SQLITE_OK;

    pthread_mutex_lock(&h->d->mutex);
    if (flags & SQLITE_SHM_UNLOCK)
        unlock_slots(disk_file_of(h), h, mask);
    else
        rc = lock_slots(disk_file_of(h), h, mask, flags);
    pthread_mutex_unlock(&h->d->mutex);
    return rc;
}

void disk_shm_barrier(sqlite3_file *file)
{
    struct handle *h = (struct handle *)file;

    pthread_mutex_lock(&h->d->mutex);
    pthread_mutex_unlock(&h->d->mutex);
}

int disk_shm_unmap(sqlite3_file *file, int delete)
{
    struct handle *h = (struct handle *)file;

    (void)delete;
    pthread_mutex_lock(&h->d->mutex);
    struct disk_file *f = disk_file_of(h);
    unlock_slots(f, h, h->mine | h->only);
    if (h->maps && --f->shm_users == 0) {
        for (unsigned i = 0; i < REGIONS; i++) {
            free(f->region[i]);
            f->region[i] = NULL;
        }
    }
    h->maps = false;
    pthread_mutex_unlock(&h->d->mutex);
    return SQLITE_OK;
}
