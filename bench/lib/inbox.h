/* inbox.h - what the benchmarks of sessions and their inboxes share. */
#ifndef BENCH_INBOX_H
#define BENCH_INBOX_H

#include <belay/session.h>

#include "disk.h"

/* A store through the front door, on a new file in the folder. */
struct belay *bench_belay_open(const struct bench_folder *f, const char *name);

/* Puts n batches with a payload of 100 bytes into a session's inbox, many at a time. */
bool bench_enqueue(struct belay *b, const char *session, unsigned n, int32_t slot);

/* work(arg, i) in `callers` threads that start together; the seconds until the last is
 * done, or 0 when one of them answered false. */
double bench_crew(unsigned callers, bool (*work)(void *arg, unsigned i), void *arg);

/* Raw SQLite as it is baseline everywhere: WAL, FULL, default autocheckpoint.  NULL
 * when it cannot be opened or `schema` fails. */
sqlite3 *bench_raw_open(const struct bench_folder *f, const char *name,
                        const char *schema);
sqlite3_stmt *bench_raw_prepare(sqlite3 *db, const char *sql);

/* Tells what went wrong; returns false. */
bool bench_failed(const char *what, const struct belay_error *err);

#endif /* BENCH_INBOX_H */
