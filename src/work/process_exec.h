/* process_exec.h - executions that belong to a process (process_exec.c). */
#ifndef WORK_PROCESS_EXEC_H
#define WORK_PROCESS_EXEC_H

#include "work/execution_rows.h"

/* In the body that submits it: its process, if it has one, is there and declares the type
 * of event that its end will be.  not_found; `invalid`, reason process_event. */
MUST_USE belay_rc proc_admit_execution(struct txn *t, const struct belay_submission *s);

/* In the body that ends it: the event.  Work ends even if its process cannot be told, for
 * it is gone, has ended, or does not take what came: then the feed of changes says so. */
MUST_USE belay_rc proc_execution_ended(struct txn *t, const struct exec *e,
                                       const struct exec_ending *how);

#endif /* WORK_PROCESS_EXEC_H */
