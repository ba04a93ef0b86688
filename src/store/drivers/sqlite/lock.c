#include "store/drivers/sqlite/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/drivers/sqlite/beside.h"
#include "store/drivers/sqlite/forked.h"

#define TURNSTILE 0
#define WRITE 1
#define NAME_AT 64
#define NAME_LEN 32

/* Sets or clears a lock on a range; false says why in errno. */
static bool set_lock(int fd, int cmd, short type, off_t start, off_t len)
{
    struct flock range = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len
    };
    int rc;

    do
        rc = fcntl(fd, cmd, &range);
    while (rc != 0 && errno == EINTR);
    return rc == 0;
}

/* Both bytes at once when nobody has either, which is what the two waits below would
 * get without waiting; so nobody in the queue is overtaken. */
static bool take_both(int fd)
{
    if (set_lock(fd, F_OFD_SETLK, F_WRLCK, TURNSTILE, 2))
        return true;
    if (errno != EAGAIN && errno != EACCES)
        return false;
    return set_lock(fd, F_OFD_SETLKW, F_WRLCK, TURNSTILE, 1) &&
           set_lock(fd, F_OFD_SETLKW, F_WRLCK, WRITE, 1);
}

/* The whole file: the one unlock for which the kernel needs no memory. */
static void give_both(int fd)
{
    (void)set_lock(fd, F_OFD_SETLK, F_UNLCK, 0, 0);
}

/* The name is for people; a lock without one, on a full disk, is as good. */
static bool write_name(int fd)
{
    char ours[NAME_LEN + 1], there[NAME_LEN];
    int len = snprintf(ours, sizeof(ours), "pid %ld\n", (long)getpid());

    if (len < 0 || len > NAME_LEN)
        return false;
    memset(ours + len, ' ', (size_t)(NAME_LEN - len));
    if (pread(fd, there, NAME_LEN, NAME_AT) == NAME_LEN &&
        memcmp(there, ours, NAME_LEN) == 0)
        return true;
    return pwrite(fd, ours, NAME_LEN, NAME_AT) == NAME_LEN;
}

belay_rc file_lock_open(struct file_lock *l, const char *database_path,
                        const struct belay_clock *clock, struct belay_error *err)
{
    int fd;
    belay_rc rc = beside_open(&fd, database_path, "-belay", "lock file", err);

    if (rc)
        return rc;
    rc = forked_watch(fd, err);
    if (rc)
        (void)close(fd);
    else
        *l = (struct file_lock){ .fd = fd, .clock = *clock };
    return rc;
}

belay_rc file_lock_take(struct file_lock *l, struct belay_error *err)
{
    if (l->fd < 0) {
        l->held = true;
        return BELAY_OK;
    }
    int64_t start = l->clock.mono_us(l->clock.arg);
    if (!take_both(l->fd) || !set_lock(l->fd, F_OFD_SETLK, F_UNLCK, TURNSTILE, 1)) {
        const char *why = strerrordesc_np(errno);
        give_both(l->fd);
        return err_set(err, BELAY_UNAVAILABLE, "lock file: cannot be locked: %s",
                       why ? why : "unknown error");
    }
    int64_t waited = l->clock.mono_us(l->clock.arg) - start;
    if (waited > l->longest_wait_us)
        l->longest_wait_us = waited;
    l->held = true;
    l->named = write_name(l->fd);
    return BELAY_OK;
}

void file_lock_release(struct file_lock *l)
{
    if (l->fd >= 0)
        give_both(l->fd);
    l->held = false;
}

/* A description of its own, since a lock never conflicts with itself.  Without /proc
 * ours has to do: then only other holders are seen. */
static bool is_held(const struct file_lock *l)
{
    struct flock range = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = WRITE, .l_len = 1
    };
    char link[64];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", l->fd);
    int fd = open(link, O_RDWR | O_CLOEXEC | O_NOCTTY);
    bool held =
        fcntl(fd < 0 ? l->fd : fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
    if (fd >= 0)
        close(fd);
    return held;
}

/* The file is anybody's to write: 0 when the text is not one of ours. */
static int64_t pid_in(const char text[NAME_LEN])
{
    const char *end = memchr(text, '\n', NAME_LEN);
    int64_t pid = 0;

    if (!end || end - text < 4 || memcmp(text, "pid ", 4) != 0 ||
        !bytes_to_i64(bytes_of(text + 4, (size_t)(end - text - 4)), &pid))
        return 0;
    return pid;
}

bool file_lock_holder(const struct file_lock *l, char *out, size_t len)
{
    char text[NAME_LEN];
    int64_t pid = 0;

    if (l->fd < 0 || !is_held(l))
        return false;
    /* Who has just taken it may not have written yet; then the last one stands there.
     */
    if (pread(l->fd, text, NAME_LEN, NAME_AT) == NAME_LEN)
        pid = pid_in(text);
    if (pid > 0)
        (void)snprintf(out, len, "pid %" PRId64, pid);
    else
        (void)snprintf(out, len, "an unknown process");
    return true;
}

void file_lock_close(struct file_lock *l)
{
    if (l->fd >= 0)
        forked_close(l->fd);
    l->fd = -1;
    l->held = false;
}
