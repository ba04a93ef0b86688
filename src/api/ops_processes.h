/* ops_processes.h - the rows of processes. */
#ifndef API_OPS_PROCESSES_H
#define API_OPS_PROCESSES_H

#include "api/ops.h"

extern const struct operation ops_process[13];
extern const struct operation ops_process_scope[8];

/* Arguments that rows of both files have. */
#define ARG_PROCESS                                                             \
    {                                                                           \
        .name = "process", .kind = OP_POSITIONAL, .type = OP_TEXT, .min = 1,    \
        .max = 255, .required = true, .placeholder = "P", .help = "the process" \
    }
#define ARG_NAME(its_name, its_placeholder, its_help)                                 \
    {                                                                                 \
        .name = (its_name), .kind = OP_OPTION, .type = OP_TEXT, .min = 1, .max = 255, \
        .placeholder = (its_placeholder), .help = (its_help)                          \
    }
#define ARG_WITH_LEASE                                                       \
    {                                                                        \
        .name = "with_lease", .kind = OP_OPTION, .type = OP_TEXT, .min = 1,  \
        .max = 2048, .placeholder = "HANDLE",                                \
        .help = "a lease that must be held, as process lease has printed it" \
    }
#define ARG_PROCESS_LEASE                                                    \
    {                                                                        \
        .name = "lease", .kind = OP_OPTION, .type = OP_DURATION, .min = 0,   \
        .max = BELAY_LEASE_MAX_MS, .placeholder = "D", .fallback = "15m",    \
        .help = "for how long from now; past it others may take the process" \
    }

#endif /* API_OPS_PROCESSES_H */
