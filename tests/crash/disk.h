/* disk.h - a disk in memory that can lose its power.
 *
 * A VFS whose files live in memory, shared by the connections of this process.  It
 * writes down what was done to it; a cut (cut.h) replays that up to any point and says
 * what a real disk could hold if the power failed there.
 */
#ifndef TESTS_CRASH_DISK_H
#define TESTS_CRASH_DISK_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_FILES 6
#define DISK_SECTOR 512

enum disk_kind {
    DISK_CREATE,
    DISK_WRITE,
    DISK_TRUNCATE,
    DISK_SYNC,
    DISK_DELETE,
    DISK_LOSE, /* what was unsynced never arrives, though programs still see it */
    DISK_SYNC_FOLDER, /* by the driver: see disk.c */
    DISK_MARK         /* the test's own: something was acknowledged */
};

struct disk_event {
    enum disk_kind kind;
    unsigned file; /* index of its name */
    bool whole;    /* the folder is synced with it */
    size_t offset; /* DISK_TRUNCATE: the new size; DISK_MARK: its number */
    size_t len;
    uint8_t *data;
};

/* The bytes of one file. */
struct disk_bytes {
    bool exists;
    uint8_t *ptr;
    size_t len, cap;
};

/* All files at one moment. */
struct disk_image {
    struct disk_bytes files[DISK_FILES];
};

struct disk_file; /* an open or existing file: private to disk.c */

struct disk {
    sqlite3_vfs vfs;
    pthread_mutex_t mutex;
    struct disk_file *files[DISK_FILES]; /* by name, in the order they were seen */
    struct disk_event *events;
    size_t n_events, cap_events;
    bool recording;
    bool powersafe; /* a write that is cut leaves its neighbours alone */
    size_t limit;   /* bytes that fit on it; 0: any number */
};

/* Makes d the default VFS.  Release needs all files closed. */
void disk_install(struct disk *d);
void disk_release(struct disk *d);

/* Adds a mark to the record. */
void disk_mark(struct disk *d, size_t number);

/* As a disk whose sync failed does: what was unsynced of this file is not on it and no
 * later sync brings it there. */
void disk_lose(struct disk *d, const char *suffix);

void disk_forget_events(struct disk *d);

/* What the files hold now, and replacing it: then no file may be open. */
void disk_save(struct disk *d, struct disk_image *out);
void disk_load(struct disk *d, const struct disk_image *image);
void disk_image_release(struct disk_image *image);

/* The file whose name ends in `suffix` ("-wal"): its index, -1 when there never was
 * one, and its size. */
int disk_index(struct disk *d, const char *suffix);
size_t disk_size(struct disk *d, const char *suffix);

/* Bytes that grow; new ones are 0.  Ends the program when there is no memory. */
void disk_bytes_resize(struct disk_bytes *b, size_t len);
void disk_bytes_write(struct disk_bytes *b, size_t offset, const uint8_t *data,
                      size_t len);

#endif /* TESTS_CRASH_DISK_H */
