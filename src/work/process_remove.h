/* process_remove.h - removing processes, in steps (process_remove.c). */
#ifndef WORK_PROCESS_REMOVE_H
#define WORK_PROCESS_REMOVE_H

#include "work/process_rows.h"

/* The first step: nobody finds it any more, and the feed tells.  Of one that is not being
 * removed yet. */
MUST_USE belay_rc proc_mark_removed(struct txn *t, struct proc *p, int64_t now_ms);
/* A further one; *out_left: there is more. */
MUST_USE belay_rc proc_remove_step(struct txn *t, struct proc *p, bool *out_left);

/* Does to a process what its time asks for: nothing yet, one step, or (one that is held)
 * another time.  *out_left: there is more to do now; *out_purged: it is gone. */
MUST_USE belay_rc proc_due(struct txn *t, const struct row *row, int64_t now_ms,
                           bool *out_left, bool *out_purged);

#endif /* WORK_PROCESS_REMOVE_H */
