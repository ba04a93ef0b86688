/* exec_grant.h - grants, for the timers that take them back. */
#ifndef WORK_EXEC_GRANT_H
#define WORK_EXEC_GRANT_H

#include "work/execution_rows.h"

/* Takes back the grant that it has, if any: its columns and its row.  The caller writes
 * the execution. */
MUST_USE belay_rc exec_ungrant(struct txn *t, struct exec *e);

#endif /* WORK_EXEC_GRANT_H */
