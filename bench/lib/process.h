/* process.h - what the benchmarks of processes share. */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <belay/process.h>

#include "inbox.h"

/* Registers a process whose events `note` are objects with a text, at most; what it was
 * registered with is the same each time. */
bool bench_process(struct belay *b, const char *id);

/* Appends one such event, with 100 bytes of payload. */
bool bench_note(struct belay *b, const char *id, struct belay_arena *arena);

/* Appends n of them, many in a transaction. */
bool bench_notes(struct belay *b, const char *id, unsigned n);

#endif /* BENCH_PROCESS_H */
