/* job_output.h - what a job prints, on its way into frames.
 *
 * Bytes are collected in pieces, each of one stream, and stored as one frame a piece.  The
 * room is fixed: who reads asks first whether there is some, so that a slow store holds
 * the job back instead of filling memory.
 *
 * A frame's number is its place among the frames of its attempt, above OUTPUT_BASE, and
 * stays the same until it is stored: storing it again after an unknown outcome adds nothing
 * twice, and none is below one that an earlier holder of the same attempt used.
 */
#ifndef CLI_JOB_OUTPUT_H
#define CLI_JOB_OUTPUT_H

#include <belay/execution.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/err.h"

#define OUTPUT_ROOM ((size_t)512 * 1024)
#define OUTPUT_PIECES 64
/* Stored when there is so much, or when the first byte has waited so long. */
#define OUTPUT_ENOUGH ((size_t)256 * 1024)
#define OUTPUT_WAIT_US ((int64_t)50 * 1000)
/* What is kept of standard error for a failure, and of standard output as a result. */
#define OUTPUT_TAIL ((size_t)2048)
#define OUTPUT_RESULT ((size_t)1 << 20)

/* Above the numbers of whoever held the attempt before and numbered frames by hand. */
#define OUTPUT_BASE ((int64_t)1 << 62)

struct piece {
    int32_t kind; /* enum belay_frame_kind */
    size_t len;
};

struct output {
    uint8_t *bytes; /* OUTPUT_ROOM of them, for the life of the slot */
    size_t len;
    struct piece pieces[OUTPUT_PIECES];
    size_t n_pieces;
    int64_t since_us;  /* of the first byte */
    int64_t job_seq;   /* the last that the job itself gave to one of its own */
    int64_t n_frames;  /* of the attempt, from all its holders */
    bool keeps_stdout; /* as the result */
    struct buf result; /* up to OUTPUT_RESULT */
    struct buf tail;   /* of standard error */
};

/* False: no memory. */
MUST_USE bool output_init(struct output *o);
void output_release(struct output *o);
/* Another attempt, or the next part of one that has `n_frames` already. */
void output_begin(struct output *o, int64_t n_frames, bool keeps_stdout);

/* Whether there is room for more of both streams. */
bool output_has_room(const struct output *o);

/* Reads once from *fd, which is closed and -1 at its end.  `keeps` false: what is read
 * goes nowhere.  False: there was nothing to be read just now. */
bool output_read(struct output *o, int32_t kind, int *fd, bool keeps, int64_t now_us);

/* Whether to store now; and when, at the latest (DEADLINE_NONE: nothing is there). */
bool output_is_due(const struct output *o, int64_t now_us);
int64_t output_deadline(const struct output *o);

/* One attempt to store all pieces; on success there are none. */
MUST_USE belay_rc output_store(struct output *o, struct belay *b,
                               const struct belay_handle *h, struct belay_error *err);
void output_drop(struct output *o);

/* Whole lines at the end of standard error. */
struct bytes output_last_lines(const struct output *o);

#endif /* CLI_JOB_OUTPUT_H */
