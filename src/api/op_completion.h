/* op_completion.h - what the completion scripts of all shells are made of.
 *
 * Each script walks the words before the cursor: options are passed over, with their
 * values, and the words of the command are collected as long as some command begins
 * with them.  Where that ends decides what is offered: the next words or the
 * positional's choices, and the options of the command.
 */
#ifndef API_OP_COMPLETION_H
#define API_OP_COMPLETION_H

#include "api/ops.h"

typedef void op_completion_fn(struct buf *out, const struct op_table *t);
op_completion_fn op_completion_bash;
op_completion_fn op_completion_zsh;
op_completion_fn op_completion_fish;

/* Calls `visit` for every beginning of words that something can follow, the empty one
 * and whole commands included; `op` is the command, or NULL for a mere beginning. */
typedef void op_place_fn(void *arg, const struct op_table *t, struct bytes words,
                         const struct operation *op);
void op_each_place(const struct op_table *t, op_place_fn *visit, void *arg);

/* Appends 'text' with what bash and zsh need for it to be one word. */
void op_append_quoted(struct buf *out, struct bytes text);

/* Appends every option that takes a value, with `between` between them. */
void op_append_value_options(struct buf *out, const struct op_table *t,
                             const char *between);

/* The summary of the command that `words` and `word` make; "" when they are only the
 * beginning of one. */
const char *op_summary(const struct op_table *t, struct bytes words, struct bytes word);

/* Appends the case pattern of every beginning of words: 'flow'|'flow submit'|... */
void op_append_known_words(struct buf *out, const struct op_table *t);

#endif /* API_OP_COMPLETION_H */
