/* request.h - a command line, understood: what to do, with which values. */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H

#include "cli/args.h"
#include "cli/input.h"
#include "cli/output.h"

/* The value of an environment variable, or NULL. */
typedef const char *env_fn(const char *name);

struct request {
    const struct operation *op;
    struct op_value *values; /* of the command's arguments */
    size_t n_values;
    enum output_format output;
    bool quiet;
    const char *store; /* where op->needs_store: its argument `url`, else --store */
    const char *ns;    /* likewise */
    const char
        *socket; /* of the job that this is part of, for a verb of a holder, unless
                           the line names a store; NULL: none */
    struct stream_in source; /* what an OP_STREAM argument names */
    const char *target; /* what an OP_TARGET argument does; NULL: standard output */
};

/* Reads the values: as typed, else from the environment, else the fallback.  Variables
 * that are empty count as absent, and those of a store are not looked at by a command
 * that needs none.  `invalid` with "command: argument: why"; reason store: inside of a job
 * (BELAY_SOCKET) no store is named, for what is no verb of its own.  Lives in the arena;
 * release it also when this fails. */
MUST_USE belay_rc request_read(struct request *r, const struct op_table *t,
                               const struct args *args, env_fn *env, struct input *in,
                               struct belay_arena *a, struct belay_error *err);

/* Gives back what is not in the arena. */
void request_release(struct request *r);

#endif /* CLI_REQUEST_H */
