/* op_text.h - how operations and arguments are written for people. */
#ifndef API_OP_TEXT_H
#define API_OP_TEXT_H

#include "api/ops.h"

/* The option as typed: --name with - for _. */
void op_append_option(struct buf *out, const struct op_arg *arg);

/* What stands for the value: its placeholder, its choices a|b, or a word of the type.
 */
void op_append_placeholder(struct buf *out, const struct op_arg *arg);

/* -q, --quiet; --store URL; SHELL. */
void op_append_arg(struct buf *out, const struct op_arg *arg);

/* The arguments as in a usage line, each with a space before it: " --lane L [ID]...".
 */
void op_append_usage(struct buf *out, const struct operation *op);

/* The remarks behind an argument's help: its choices, bounds, environment and default.
 */
void op_append_remarks(struct buf *out, const struct op_arg *arg);

#endif /* API_OP_TEXT_H */
