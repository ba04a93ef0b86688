/* cli.h - the command line, from its words to its exit status. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/request.h"

/* What the program gets from its surroundings. */
struct cli {
    const struct op_table *table;
    env_fn *env;
    int in, out, err;
};

/* Runs one command line, without the name of the program; returns the exit status.
 *
 * Standard output holds a whole answer or nothing, and is written last.  A failure is
 * reported once, on standard error, and decides the exit status; one to write the
 * answer is status 1.  An answer may have a status of its own (check, doctor).
 *
 * What is followed, live or watched, and the output of a job, is the exception: each item or
 * view is written when it comes, so that a failure may stand behind some of them.
 *
 * An answer of bytes goes to standard output, or to the file that is named, by itself:
 * more than STREAM_HELD_MAX of it may be written before a failure is known. */
int cli_run(const struct cli *cli, char *const *argv, size_t n);

#endif /* CLI_CLI_H */
