#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void closep(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* it was only read */
}

static belay_rc read_all(int fd, size_t max, struct buf *text, struct belay_error *err)
{
    char chunk[16384];

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n == 0)
            return BELAY_OK;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_reason(err, BELAY_INVALID, "file", "cannot be read: %s",
                              strerror(errno));
        buf_append(text, bytes_of(chunk, (size_t)n));
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

belay_rc input_read(struct input *in, const char *path, size_t max,
                    struct belay_arena *a, struct bytes *out, struct belay_error *err)
{
    struct buf text CLEANUP(buf_release) = { 0 };
    int opened CLEANUP(closep) = -1;
    bool is_stdin = strcmp(path, "-") == 0;

    if (is_stdin && in->used)
        return err_reason(err, BELAY_INVALID, "usage",
                          "standard input is already read by another argument");
    if (is_stdin) {
        in->used = true;
    } else {
        opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (opened < 0)
            return err_reason(err, BELAY_INVALID, "file", "cannot be opened: %s",
                              strerror(errno));
    }
    belay_rc rc = read_all(is_stdin ? in->fd : opened, max, &text, err);
    if (rc == BELAY_OK && !arena_copy(a, buf_view(&text), out))
        rc = err_no_memory(err, "the input");
    return rc;
}
