/* ops_args.h - arguments that many rows have. */
#ifndef API_OPS_ARGS_H
#define API_OPS_ARGS_H

#include <belay/queue.h>

#include "api/ops.h"
#include "base/clock.h"

#define ARG_LIMIT                                                                  \
    {                                                                              \
        .name = "limit", .kind = OP_OPTION, .type = OP_I64, .min = 1, .max = 1000, \
        .placeholder = "N", .fallback = "100", .help = "how many at most"          \
    }
/* Of what is also read to its end, where there is no limit unless told. */
#define ARG_LIMIT_ANY(its_help)                                                    \
    {                                                                              \
        .name = "limit", .kind = OP_OPTION, .type = OP_I64, .min = 1, .max = 1000, \
        .placeholder = "N", .help = (its_help)                                     \
    }
#define ARG_CURSOR                                                                  \
    {                                                                               \
        .name = "cursor", .kind = OP_OPTION, .type = OP_TEXT, .min = 1, .max = 512, \
        .placeholder = "C", .help = "go on where a list before ended"               \
    }
/* When it was made; both ends count. */
#define ARG_CREATED_FROM                                                            \
    {                                                                               \
        .name = "created_from", .kind = OP_OPTION, .type = OP_I64, .min = 0,        \
        .max = TIME_MAX_MS, .placeholder = "MS", .help = "not older than this time" \
    }
#define ARG_CREATED_TO                                                                \
    {                                                                                 \
        .name = "created_to", .kind = OP_OPTION, .type = OP_I64, .min = 0,            \
        .max = TIME_MAX_MS, .placeholder = "MS", .help = "not younger than this time" \
    }
#define ARG_SESSION                                                             \
    {                                                                           \
        .name = "session", .kind = OP_POSITIONAL, .type = OP_TEXT, .min = 1,    \
        .max = 255, .required = true, .placeholder = "S", .help = "the session" \
    }
/* Of a claim's own session, where a path names it. */
#define ARG_SESSION_CHECK                                                              \
    {                                                                                  \
        .name = "session", .kind = OP_OPTION, .type = OP_TEXT, .min = 1, .max = 255,   \
        .placeholder = "S", .help = "refuse a claim on the inbox of any other session" \
    }
#define OP_CLAIM_MAX ((int64_t)16 << 20)
#define ARG_CLAIM                                                                     \
    {                                                                                 \
        .name = "claim", .kind = OP_POSITIONAL, .type = OP_CLAIM, .min = 1,           \
        .max = OP_CLAIM_MAX, .required = true,                                        \
        .help = "the handle of the claim, or what queue claim --json has printed of " \
                "it"                                                                  \
    }
#define ARG_LEASE                                                            \
    {                                                                        \
        .name = "lease", .kind = OP_OPTION, .type = OP_DURATION, .min = 0,   \
        .max = BELAY_LEASE_MAX_MS, .placeholder = "D", .fallback = "15m",    \
        .help = "for how long from now; past it others may take the batches" \
    }
#define ARG_EXPECT                                                                 \
    {                                                                              \
        .name = "expect", .kind = OP_OPTION, .type = OP_TEXT, .min = 1, .max = 32, \
        .placeholder = "REV|any",                                                  \
        .help = "the revision the session must have; 0 for none yet, any for no "  \
                "check"                                                            \
    }
#define ARG_TURN                                                                  \
    {                                                                             \
        .name = "turn", .kind = OP_OPTION, .type = OP_TEXT, .min = 1, .max = 255, \
        .placeholder = "ID",                                                      \
        .help = "the turn; committed once more, it answers as the first time"     \
    }
#define ARG_PROFILE                                                              \
    {                                                                            \
        .name = "profile", .kind = OP_OPTION, .type = OP_TEXT,                   \
        .choices = op_profile_names, .placeholder = "P", .fallback = "default",  \
        .help = "from which size on blobs are compressed: never, 4 KiB or 1 KiB" \
    }

/* --- executions --- */

#define ARG_BATCH_BYTES_MAX ((int64_t)16 << 20)
#define ARG_ID                                                                      \
    {                                                                               \
        .name = "id", .kind = OP_POSITIONAL, .type = OP_TEXT, .min = 1, .max = 255, \
        .required = true, .placeholder = "ID", .help = "the execution"              \
    }
#define ARG_REASON                                                                   \
    {                                                                                \
        .name = "reason", .kind = OP_OPTION, .type = OP_TEXT, .min = 1, .max = 1024, \
        .placeholder = "TEXT", .help = "why, for whoever looks at it later"          \
    }
#define ARG_DURATION(its_name, its_help)                                      \
    {                                                                         \
        .name = (its_name), .kind = OP_OPTION, .type = OP_DURATION, .min = 0, \
        .max = TIME_MAX_MS, .placeholder = "D", .help = (its_help)            \
    }
#define ARG_TEXT(its_name, letter_of_it, its_help)                                    \
    {                                                                                 \
        .name = (its_name), .kind = OP_OPTION, .type = OP_TEXT, .min = 1, .max = 255, \
        .placeholder = (letter_of_it), .help = (its_help)                             \
    }
#define ARG_TAG_FILTER(its_name, its_help)                                            \
    {                                                                                 \
        .name = (its_name), .kind = OP_OPTION, .type = OP_TEXT, .min = 1, .max = 512, \
        .placeholder = "K=V", .help = (its_help)                                      \
    }

#endif /* API_OPS_ARGS_H */
