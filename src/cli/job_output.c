#include "cli/job_output.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/park.h"

bool output_init(struct output *o)
{
    *o = (struct output){ .bytes = malloc(OUTPUT_ROOM) };
    return o->bytes != NULL;
}

void output_release(struct output *o)
{
    free(o->bytes);
    buf_release(&o->result);
    buf_release(&o->tail);
    *o = (struct output){ 0 };
}

void output_begin(struct output *o, int64_t n_frames, bool keeps_stdout)
{
    output_drop(o);
    o->job_seq = 0;
    o->n_frames = n_frames;
    o->keeps_stdout = keeps_stdout;
    buf_reset(&o->result);
    buf_reset(&o->tail);
}

bool output_has_room(const struct output *o)
{
    return o->len + 2 * BELAY_FRAME_MAX <= OUTPUT_ROOM &&
           o->n_pieces + 2 <= OUTPUT_PIECES;
}

/* The piece that more of this stream goes into, and how much of it. */
static struct piece *piece_for(struct output *o, int32_t kind, size_t *room)
{
    struct piece *last = o->n_pieces > 0 ? &o->pieces[o->n_pieces - 1] : NULL;

    if (!last || last->kind != kind || last->len == BELAY_FRAME_MAX) {
        last = &o->pieces[o->n_pieces];
        *last = (struct piece){ .kind = kind };
    }
    *room = BELAY_FRAME_MAX - last->len;
    if (*room > OUTPUT_ROOM - o->len)
        *room = OUTPUT_ROOM - o->len;
    return last;
}

/* Keeps the last OUTPUT_TAIL bytes, moving them only now and then. */
static void keep_tail(struct buf *tail, struct bytes more)
{
    buf_append(tail, more);
    if (tail->failed)
        buf_reset(tail); /* a failure is told without it */
    if (tail->len < 4 * OUTPUT_TAIL)
        return;
    memmove(tail->ptr, tail->ptr + tail->len - OUTPUT_TAIL, OUTPUT_TAIL);
    tail->len = OUTPUT_TAIL;
}

static void keep(struct output *o, int32_t kind, struct bytes more)
{
    size_t left = OUTPUT_RESULT - o->result.len;

    if (kind == BELAY_FRAME_STDERR)
        keep_tail(&o->tail, more);
    else if (o->keeps_stdout)
        buf_append(&o->result, bytes_of(more.ptr, more.len < left ? more.len : left));
}

static void take(struct output *o, struct piece *into, size_t n, int64_t now_us)
{
    if (o->len == 0)
        o->since_us = now_us;
    if (into->len == 0)
        o->n_pieces++;
    keep(o, into->kind, bytes_of(o->bytes + o->len, n));
    into->len += n;
    o->len += n;
}

bool output_read(struct output *o, int32_t kind, int *fd, bool keeps, int64_t now_us)
{
    size_t room;
    struct piece *into = piece_for(o, kind, &room);
    ssize_t n = read(*fd, o->bytes + o->len, room);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n > 0 && keeps)
        take(o, into, (size_t)n, now_us);
    if (n > 0)
        return true;
    (void)close(*fd);
    *fd = -1;
    return false;
}

bool output_is_due(const struct output *o, int64_t now_us)
{
    return o->len >= OUTPUT_ENOUGH || !output_has_room(o) ||
           output_deadline(o) <= now_us;
}

int64_t output_deadline(const struct output *o)
{
    return o->len > 0 ? o->since_us + OUTPUT_WAIT_US : DEADLINE_NONE;
}

belay_rc output_store(struct output *o, struct belay *b, const struct belay_handle *h,
                      struct belay_error *err)
{
    struct belay_frame frames[OUTPUT_PIECES];
    struct belay_frame_appended done;
    size_t at = 0;

    if (o->n_pieces == 0)
        return BELAY_OK;
    for (size_t i = 0; i < o->n_pieces; i++) {
        frames[i] = (struct belay_frame){
            .size = sizeof(frames[i]),
            .kind = o->pieces[i].kind,
            .mode = BELAY_FRAME_DURABLE,
            .bytes = o->bytes + at,
            .len = o->pieces[i].len,
            .seq = OUTPUT_BASE + o->n_frames + 1 + (int64_t)i,
            .caller_seq = -1, /* the job numbers nothing of what it prints */
        };
        at += o->pieces[i].len;
    }
    belay_rc rc = belay_execution_append_frames(b, h, frames, o->n_pieces, &done, err);
    if (rc)
        return rc;
    o->n_frames = done.frame_count;
    output_drop(o);
    return BELAY_OK;
}

void output_drop(struct output *o)
{
    o->len = 0;
    o->n_pieces = 0;
}

struct bytes output_last_lines(const struct output *o)
{
    if (o->tail.len <= OUTPUT_TAIL)
        return buf_view(&o->tail);
    const uint8_t *end = o->tail.ptr + o->tail.len, *at = end - OUTPUT_TAIL;
    const uint8_t *line = memchr(at - 1, '\n', OUTPUT_TAIL);
    if (line) /* one begins here, or behind the rest of one */
        return bytes_of(line + 1, (size_t)(end - line - 1));
    while (at < end && (*at & 0xc0) == 0x80) /* not within a character */
        at++;
    return bytes_of(at, (size_t)(end - at));
}
