/* disk.h - what the benchmarks of durable stores share: a folder, the disk's own speed,
 * raw SQLite as a baseline, and callers in threads. */
#ifndef BENCH_DISK_H
#define BENCH_DISK_H

#include <sqlite3.h>

#include "bench.h"
#include "store/txn.h"

/* A temporary folder below the working directory (so on the disk that is measured),
 * removed by bench_folder_remove. */
struct bench_folder {
    char path[256];
};
bool bench_folder_make(struct bench_folder *f);
void bench_folder_remove(struct bench_folder *f);

/* fdatasync calls a second, each after 4 KiB appended. */
double bench_fdatasync_rate(const struct bench_folder *f, double seconds);

/* An open store on a new file in the folder. */
struct bench_store {
    struct driver *driver;
    struct store *store;
    struct space *space;
};
bool bench_store_open(struct bench_store *b, const struct bench_folder *f,
                      const char *name);
void bench_store_close(struct bench_store *b);

/* Makes rows 0..n-1 of row_thing, in large transactions. */
bool bench_fill(struct bench_store *b, unsigned n);

/* Updates of one random row each, by `callers` threads, for `seconds`; commits a
 * second, or 0 when one failed. */
double bench_update_rate(struct bench_store *b, unsigned rows, unsigned callers,
                         double seconds);

/* Raw SQLite on the file of a closed store: the same table, prepared statements, WAL,
 * FULL, its default autocheckpoint; `batch` updates to a transaction.  Rows a second,
 * or 0. */
double bench_raw_rate(const struct bench_folder *f, const char *name, unsigned rows,
                      unsigned batch, double seconds);

/* The name of row i. */
void bench_key(unsigned i, char out[ID_MAX]);

#endif /* BENCH_DISK_H */
