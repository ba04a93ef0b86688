/* op_handlers.h - what the rows of the table call. */
#ifndef API_OP_HANDLERS_H
#define API_OP_HANDLERS_H

#include "api/ops.h"

op_handler op_version;
op_handler op_errors;
op_handler op_help;
op_handler op_completion;
op_handler op_man;

/* The names that op_completion takes; ends with NULL. */
extern const char *const op_completion_shells[];

/* Turns a finished text into {"text":"..."}. */
MUST_USE belay_rc op_prose(const struct buf *text, json_t **out,
                           struct belay_error *err);

#endif /* API_OP_HANDLERS_H */
