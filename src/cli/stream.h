/* stream.h - bytes that pass through: from a file to an operation, and from an operation
 * to a file. */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include "api/ops.h"
#include "base/arena.h"

/* --- in --- */

struct stream_in {
    int fd;
    bool opened; /* by us: ours to close */
    uint8_t *chunk;
};

/* Where an op_source reads; `invalid`, reason `file`, when that fails. */
MUST_USE belay_rc stream_read(void *arg, struct bytes *out, struct belay_error *err);

void stream_in_release(struct stream_in *in);

/* --- out --- */

/* How much is held back until the whole was found to be right. */
#define STREAM_HELD_MAX ((size_t)1 << 20)

/* A path gets its file when all of it is there: until then the bytes are in another one
 * beside it.  What is there already and no plain file (a device, a pipe, a link) is
 * written to as it is.  Standard output gets the first bytes when there are too many to
 * hold, or at the end. */
struct stream_out {
    const char *path; /* NULL: standard output */
    int fd;           /* standard output, and -1 for a path not opened yet */
    char *beside;     /* the name until the end; NULL: written directly */
    struct buf held;
};

/* Where an op_sink writes, and its end.  `unavailable`, reason `output`. */
MUST_USE belay_rc stream_write(void *arg, struct bytes piece, struct belay_error *err);
MUST_USE belay_rc stream_finish(struct stream_out *out, struct belay_error *err);

/* Gives back, and removes what was not finished. */
void stream_out_release(struct stream_out *out);

#endif /* CLI_STREAM_H */
