/* command.h - a command that is run for as long as a handler has something for it. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "api/ops.h"

/* An op_runner; its argument is the stopper, with a relay, whose signals go to the command.
 * The command is in a process group of its own and is killed when this program is. */
MUST_USE belay_rc command_run(void *stopper, const struct op_command *command,
                              int *out_status, struct belay_error *err);

#endif /* CLI_COMMAND_H */
