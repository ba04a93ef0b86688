/* args.h - which command a line is, and which arguments it gives.
 *
 * Works from the operations table alone and touches nothing outside: values are not
 * read here, only assigned.
 *
 *   - Options stand anywhere; those of a command behind its words.
 *   - An option's value is its next word, whatever that looks like, or follows =.
 *   - Behind -- nothing is an option.  A single - is a word.
 *   - --help anywhere asks for help about the words before it.
 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include "api/ops.h"
#include "base/arena.h"

/* One argument as typed.  text points into argv, so that a NUL stands behind it. */
struct given {
    const struct op_arg *arg;
    struct bytes text; /* empty for a flag */
};

struct args {
    const struct operation *op;
    struct given *given; /* the command's and the global ones, in order */
    size_t n_given;
};

/* `invalid`, reason `usage` (or `no_command` for a line without any), with a message
 * that says what and why.  The result lives in the arena and in argv. */
MUST_USE belay_rc args_parse(const struct op_table *t, char *const *argv, size_t n,
                             struct belay_arena *a, struct args *out,
                             struct belay_error *err);

/* How often an argument is given. */
size_t args_count(const struct args *args, const struct op_arg *arg);

/* The argument as a user knows it: --name, or its placeholder. */
void args_append_name(struct buf *out, const struct op_arg *arg);

/* Whether the line, which may be wrong in every other way, asks for JSON.  Errors about
 * it are then JSON too. */
bool args_want_json(char *const *argv, size_t n);

/* Appends a word of the line for use in a message: control characters escaped, cut when
 * it is long. */
void args_append_word(struct buf *out, struct bytes word);

#endif /* CLI_ARGS_H */
