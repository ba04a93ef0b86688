/* ops_executions.h - the rows of executions, and of those who work on them. */
#ifndef API_OPS_EXECUTIONS_H
#define API_OPS_EXECUTIONS_H

#include "api/ops.h"

extern const struct operation ops_execution[9];
extern const struct operation ops_control[5];
extern const struct operation ops_worker[3];
extern const struct operation ops_holder[9];
extern const struct operation ops_activity[4];

/* Of a table of claims. */
extern const char *const op_claim_columns[];

#endif /* API_OPS_EXECUTIONS_H */
