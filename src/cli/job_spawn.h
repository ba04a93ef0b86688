/* job_spawn.h - a job's process: in a group of its own, with pipes, and without anything
 * of the worker's.
 *
 * The program starts itself with the word JOB_WORD first: that one asks to be killed when
 * the worker dies, closes what it was left, and becomes the command (job_become).
 */
#ifndef CLI_JOB_SPAWN_H
#define CLI_JOB_SPAWN_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"

#define JOB_WORD "__job"

struct child {
    pid_t pid;
    int pidfd;    /* readable when it has ended */
    int in;       /* its standard input, and ... */
    int out, err; /* ... output; all of them do not block */
    int failure; /* an int comes: errno, why the command could not be run; or nothing */
};

/* What is set in the environment of a job. */
struct child_variable {
    const char *name, *value;
};

/* The environment without anything that begins with one of `without`, and with those of
 * these that have a value; ends with NULL, in the arena.  NULL: no memory. */
MUST_USE char **child_environment(char *const *environment,
                                  const char *const *without /* ends with NULL */,
                                  const struct child_variable *variables, size_t n,
                                  struct belay_arena *a);

/* argv and environment end with NULL.  `unavailable`, reason `spawn`, where something is
 * short; `invalid`, reason `too_long`, for more than the system takes.  Nothing is left
 * then.  To be called by a thread that stays until the child has ended. */
MUST_USE belay_rc child_spawn(char *const *argv, char *const *environment,
                              struct child *out, struct belay_error *err);

/* The same with this program's standard descriptors instead of pipes: in, out and err are
 * -1. */
MUST_USE belay_rc child_spawn_beside(char *const *argv, char *const *environment,
                                     struct child *out, struct belay_error *err);

/* The other side, called by main: words behind JOB_WORD.  Returns only to fail. */
int job_become(int n, char *const *words);

#endif /* CLI_JOB_SPAWN_H */
