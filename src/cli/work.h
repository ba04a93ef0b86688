/* work.h - `belay work`: a worker that runs commands.
 *
 * The main thread supervises: it takes signals, watches the leases by its own clock, and
 * ends processes; it never waits for the store.  Beside it
 *
 *   claimer   claims work for the slots that are free
 *   keeper    renews the leases, however long a job or a call takes
 *   watcher   follows the events of the store, so that a cancel is known at once
 *   timers    what happens by itself in a store
 *   one thread a slot, which runs one job after the other (job.h)
 */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include "api/ops.h"

#define WORK_CONCURRENCY_MAX 256

/* Opens the store by itself, so that the row has OP_REACH_URL.
 *
 * Runs until there is no more to do (--drain, --max) or a signal says so.  The answer
 * counts the jobs. */
MUST_USE belay_rc work_run(const struct op_call *call, json_t **out,
                           struct belay_error *err);

#endif /* CLI_WORK_H */
