/* handoff.h - something is handed to who waits for it: from the start of that until the
 * other one has got it, p50, against a bare durable commit of raw SQLite (a one-row
 * UPDATE), p50.  ratio: both are threads of one process with one handle;
 * ratio_processes: who waits is a process of its own. */
#ifndef BENCH_HANDOFF_H
#define BENCH_HANDOFF_H

#include "inbox.h"

#define HANDOFF_PATIENCE_MS ((int64_t)10000)
/* The two files: for threads, and for processes. */
#define HANDOFF_ONE "one.db"
#define HANDOFF_TWO "two.db"

struct bench_handoff {
    /* What must be there before, in both files; may be NULL. */
    bool (*prepare)(const struct bench_folder *f);
    bool (*send)(struct belay *b);
    /* When it was got, by the monotonic clock; 0: it failed, or was cancelled. */
    double (*wait)(struct belay *b, struct belay_cancel *cancel,
                   struct belay_arena *arena);
};

/* Measures, prints, and returns the exit code. */
int bench_handoff(const struct bench_options *o, const char *name,
                  const struct bench_handoff *how);

#endif /* BENCH_HANDOFF_H */
