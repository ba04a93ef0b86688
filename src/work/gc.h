/* gc.h - pins, and the collection of blobs that nothing names.
 *
 * Mark and sweep in bounded steps, beside writers:
 *
 *   1. a page of candidates: blobs touched before the grace began, with their versions
 *   2. the trace: every session's checkpoint (manifest and what it names), every frame's
 *      ref, every pin.  What is named leaves the candidates.  Whatever cannot be read
 *      ends the collection: nothing is deleted (refused)
 *   3. the sweep: in small transactions, each candidate whose version is still the one
 *      of step 1 goes
 *
 * Whoever names a blob that it did not name before touches it in that transaction
 * (blob_touch), so its version changes: a blob that came to life between 1 and 3 is
 * spared (S5, S6).  What stays unnamed goes with the first collection after its grace
 * (S7).
 */
#ifndef WORK_GC_H
#define WORK_GC_H

#include <belay/blob.h>

#include "store/blob.h"

/* Candidates that are held in memory at once. */
#define GC_PAGE 65536

MUST_USE belay_rc gc_run(struct space *sp, const struct belay_gc_options *options,
                         struct belay_gc_report *out, struct belay_error *err);

MUST_USE belay_rc pin_put(struct space *sp, const char *name, const char *sha256,
                          struct belay_error *err);
MUST_USE belay_rc pin_remove(struct space *sp, const char *name, bool *out_removed,
                             struct belay_error *err);
MUST_USE belay_rc pin_list(struct space *sp, const char *cursor, size_t limit,
                           struct belay_arena *a, struct belay_pins *out,
                           struct belay_error *err);

#endif /* WORK_GC_H */
