/* disk_impl.h - what the files of the disk in memory share. */
#ifndef TESTS_CRASH_DISK_IMPL_H
#define TESTS_CRASH_DISK_IMPL_H

#include "disk.h"

#define REGIONS 64
#define REGION_MAX 32768

/* A file by name.  Locks are SQLite's five states and the eight slots of the WAL. */
struct disk_file {
    char *name;
    struct disk_bytes bytes;
    unsigned handles;
    unsigned shared; /* holders of SHARED or more */
    struct handle *reserved, *exclusive;
    void *region[REGIONS];
    unsigned shm_users;
    int slot[SQLITE_SHM_NLOCK]; /* > 0: shared by so many, -1: exclusive */
};

struct handle {
    sqlite3_file file;
    struct disk *d;
    unsigned index; /* of the file */
    int lock;
    bool new_entry;      /* its first sync is the folder's, too */
    bool maps;           /* uses the shared memory */
    unsigned mine, only; /* slots it holds shared, exclusively */
};

static inline struct disk_file *disk_file_of(struct handle *h)
{
    return h->d->files[h->index];
}

/* disk_locks.c: methods of a file. */
int disk_lock(sqlite3_file *file, int want);
int disk_unlock(sqlite3_file *file, int want);
int disk_reserved(sqlite3_file *file, int *out);
int disk_shm_map(sqlite3_file *file, int region, int size, int extend,
                 void volatile **out);
int disk_shm_lock(sqlite3_file *file, int offset, int n, int flags);
void disk_shm_barrier(sqlite3_file *file);
int disk_shm_unmap(sqlite3_file *file, int delete);

#endif /* TESTS_CRASH_DISK_IMPL_H */
