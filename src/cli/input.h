/* input.h - values that are read from files or from standard input. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "base/arena.h"
#include "base/err.h"
#include "cli/stream.h"

/* How much is read at a time. */
#define INPUT_CHUNK ((size_t)65536)

/* Where - reads from; only one argument of a line may do so. */
struct input {
    int fd;
    bool used;
};

/* All of a file, or of standard input when path is "-"; a NUL stands behind it.
 * `invalid`, reason `file`, when it cannot be read; reason `too_large` above max. */
MUST_USE belay_rc input_read(struct input *in, const char *path, size_t max,
                             struct belay_arena *a, struct bytes *out,
                             struct belay_error *err);

/* The same file or standard input, to be read piece by piece.  Release what was opened
 * with stream_in_release. */
MUST_USE belay_rc input_open(struct input *in, const char *path, struct belay_arena *a,
                             struct stream_in *out, struct belay_error *err);

#endif /* CLI_INPUT_H */
