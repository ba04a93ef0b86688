#include "cli/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/input.h"
#include "cli/report.h"

/* --- in --- */

belay_rc stream_read(void *arg, struct bytes *out, struct belay_error *err)
{
    struct stream_in *in = arg;
    ssize_t n;

    do
        n = read(in->fd, in->chunk, INPUT_CHUNK);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_reason(err, BELAY_INVALID, "file", "cannot be read: %s",
                          strerror(errno));
    *out = bytes_of(in->chunk, (size_t)n);
    return BELAY_OK;
}

void stream_in_release(struct stream_in *in)
{
    if (in->opened)
        (void)close(in->fd); /* it was only read */
    in->opened = false;
}

/* --- out --- */

#define BESIDE_TRIES 100

static belay_rc cannot(struct belay_error *err, const char *what, int why)
{
    return err_reason(err, BELAY_UNAVAILABLE, "output", "cannot be %s: %s", what,
                      strerror(why));
}

/* A new file beside the path, so that a rename puts it there. */
static belay_rc open_beside(struct stream_out *out, struct belay_error *err)
{
    size_t len = strlen(out->path) + 40;

    out->beside = malloc(len);
    if (!out->beside)
        return err_no_memory(err, "a file name");
    for (int i = 0; i < BESIDE_TRIES && out->fd < 0; i++) {
        (void)snprintf(out->beside, len, "%s.%ld-%d", out->path, (long)getpid(), i);
        out->fd = open(out->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (out->fd < 0 && errno != EEXIST)
            break;
    }
    if (out->fd >= 0)
        return BELAY_OK;
    int why = errno;
    free(out->beside);
    out->beside = NULL;
    return cannot(err, "opened", why);
}

static belay_rc open_path(struct stream_out *out, struct belay_error *err)
{
    struct stat found;

    if (out->fd >= 0)
        return BELAY_OK;
    bool is_new = lstat(out->path, &found) != 0;
    if (is_new || S_ISREG(found.st_mode)) {
        belay_rc rc = open_beside(out, err);
        if (rc == BELAY_OK && !is_new && fchmod(out->fd, found.st_mode & 0777) != 0)
            rc = cannot(err, "written", errno);
        return rc;
    }
    out->fd = open(out->path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    return out->fd < 0 ? cannot(err, "opened", errno) : BELAY_OK;
}

/* Writes what is held. */
static belay_rc flush(struct stream_out *out, struct belay_error *err)
{
    belay_rc rc = out->path ? open_path(out, err) : BELAY_OK;

    if (rc == BELAY_OK && !report_write_all(out->fd, buf_view(&out->held)))
        rc = cannot(err, "written", errno);
    if (rc != BELAY_OK && rc != BELAY_NO_MEMORY)
        err_context(err, out->path ? out->path : "standard output");
    buf_reset(&out->held);
    return rc;
}

belay_rc stream_write(void *arg, struct bytes piece, struct belay_error *err)
{
    struct stream_out *out = arg;

    if (out->held.len > 0 && out->held.len + piece.len > STREAM_HELD_MAX) {
        belay_rc rc = flush(out, err);
        if (rc != BELAY_OK)
            return rc;
    }
    buf_append(&out->held, piece);
    return out->held.failed ? err_no_memory(err, "the output") : BELAY_OK;
}

belay_rc stream_finish(struct stream_out *out, struct belay_error *err)
{
    belay_rc rc = flush(out, err);

    if (rc != BELAY_OK || !out->path)
        return rc;
    int failed = close(out->fd);
    out->fd = -1;
    if (!failed && out->beside)
        failed = rename(out->beside, out->path);
    if (failed) {
        (void)cannot(err, "written", errno);
        err_context(err, out->path);
        return BELAY_UNAVAILABLE;
    }
    free(out->beside);
    out->beside = NULL;
    return BELAY_OK;
}

void stream_out_release(struct stream_out *out)
{
    if (out->path && out->fd >= 0)
        (void)close(out->fd);
    if (out->beside)
        (void)unlink(out->beside);
    free(out->beside);
    buf_release(&out->held);
}
