#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>

static belay_rc read_all(struct stream_in *from, size_t max, struct buf *text,
                         struct belay_error *err)
{
    struct bytes piece;

    for (;;) {
        belay_rc rc = stream_read(from, &piece, err);
        if (rc != BELAY_OK || piece.len == 0)
            return rc;
        buf_append(text, piece);
        if (text->failed)
            return err_no_memory(err, "the input");
        if (text->len > max) {
            (void)err_reason(err, BELAY_INVALID, "too_large",
                             "is longer than %zu bytes", max);
            err_numbers(err, (int64_t)max, (int64_t)text->len);
            return BELAY_INVALID;
        }
    }
}

belay_rc input_open(struct input *in, const char *path, struct belay_arena *a,
                    struct stream_in *out, struct belay_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    struct stream_in opened = { .fd = in->fd, .opened = !is_stdin };

    if (is_stdin && in->used)
        return err_reason(err, BELAY_INVALID, "usage",
                          "standard input is already read by another argument");
    opened.chunk = arena_alloc(a, INPUT_CHUNK);
    if (!opened.chunk)
        return err_no_memory(err, "the input");
    if (!is_stdin)
        opened.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (!is_stdin && opened.fd < 0)
        return err_reason(err, BELAY_INVALID, "file", "cannot be opened: %s",
                          strerror(errno));
    in->used |= is_stdin;
    *out = opened;
    return BELAY_OK;
}

belay_rc input_read(struct input *in, const char *path, size_t max,
                    struct belay_arena *a, struct bytes *out, struct belay_error *err)
{
    struct buf text CLEANUP(buf_release) = { 0 };
    struct stream_in from CLEANUP(stream_in_release) = { 0 };

    belay_rc rc = input_open(in, path, a, &from, err);
    if (rc == BELAY_OK)
        rc = read_all(&from, max, &text, err);
    if (rc == BELAY_OK && !arena_copy(a, buf_view(&text), out))
        rc = err_no_memory(err, "the input");
    return rc;
}
