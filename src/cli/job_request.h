/* job_request.h - one request of a job's socket, understood. */
#ifndef CLI_JOB_REQUEST_H
#define CLI_JOB_REQUEST_H

#include "cli/job.h"

/* `args`: all that the command's may be given; `end`: what the attempt is counted as when
 * the verb ends it, TALLY_COUNT where it does not; `said`: how the log calls that. */
struct verb {
    const char *name;
    enum tally end;
    const char *said;
    const char *args[8];
};

struct job_request {
    struct run *run;
    const struct verb *verb;
    const struct operation *op; /* the command of that name */
    const json_t *args;         /* may be NULL */
    struct belay_arena arena;
    struct op_value *values; /* with room for one more */
    size_t n_values;
    struct belay_error *err;
};

/* Reads {"op","args"}; run and err are set.  `invalid`, or bad_handle for the handle of
 * another attempt.  Release it in any case. */
MUST_USE belay_rc job_request_read(struct job_request *q, const json_t *line);
void job_request_release(struct job_request *q);

/* The first value of an argument, or NULL. */
struct op_value *job_request_value(const struct job_request *q, const char *name);

#endif /* CLI_JOB_REQUEST_H */
