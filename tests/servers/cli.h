/* cli.h - the program, as somebody at a shell runs it. */
#ifndef TESTS_SERVERS_CLI_H
#define TESTS_SERVERS_CLI_H

#include <stdbool.h>
#include <stdint.h>

struct cli {
    int status; /* exit status; -1: it did not run, or was killed */
    int64_t ms;
    char text[16384]; /* standard output and standard error */
};

/* `belay --store URL words`, in a shell; env: "NAME=VALUE ..." before it, or "". */
void cli_run(struct cli *out, const char *env, const char *url, const char *words);

/* The same without a store: any words of a shell.  False when they fail. */
bool shell_run(const char *words);

#endif /* TESTS_SERVERS_CLI_H */
