/* Files that appear whole: made without a name, filled, then linked (D17, D18 of the design:
 * nobody sees a segment that is being made, a full file system is an error and not a SIGBUS,
 * and who is killed on the way leaves nothing behind). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fleet/impl.h"

belay_rc io_error(struct belay_error *err, const char *what)
{
    int number = errno;
    char text[96];

    if (number == ENOSPC || number == EDQUOT || number == EFBIG)
        return err_reason(err, BELAY_NO_MEMORY, "shm_full", "%s: no room for it", what);
    if (number == ENOMEM)
        return err_no_memory(err, what);
    if (number == EACCES || number == EPERM)
        return err_reason(err, BELAY_DENIED, "owner", "%s: not permitted", what);
    return err_reason(err, BELAY_UNAVAILABLE, "io", "%s: %s", what,
                      strerror_r(number, text, sizeof(text)));
}

void file_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

belay_rc file_map(int fd, uint64_t len, bool is_read_only, uint8_t **out,
                  struct belay_error *err)
{
    int prot = is_read_only ? PROT_READ : PROT_READ | PROT_WRITE;
    void *base = mmap(NULL, len, prot, MAP_SHARED, fd, 0);

    if (base == MAP_FAILED)
        return io_error(err, "map the segment");
    *out = base;
    return BELAY_OK;
}

belay_rc file_make(const char *dir, uint64_t len, bool is_private, int *out_fd,
                   uint8_t **out_base, struct belay_error *err)
{
    int fd = is_private ? memfd_create("belay-fleet", MFD_CLOEXEC)
                        : open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return io_error(err, "create the segment");

    belay_rc rc = BELAY_OK;
    if (!is_private && fchmod(fd, 0600) != 0) /* whatever the umask */
        rc = io_error(err, "create the segment");
    if (rc == BELAY_OK) {
        /* Its pages exist before anybody touches them. */
        errno = is_private ? (ftruncate(fd, (off_t)len) == 0 ? 0 : errno)
                           : posix_fallocate(fd, 0, (off_t)len);
        if (errno != 0)
            rc = io_error(err, "allocate the segment");
    }
    if (rc == BELAY_OK)
        rc = file_map(fd, len, false, out_base, err);
    if (rc != BELAY_OK) {
        file_close(&fd);
        return rc;
    }
    *out_fd = fd;
    return BELAY_OK;
}

belay_rc file_link(int fd, const char *path, struct belay_error *err)
{
    char self[32];

    (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
        return BELAY_OK;
    if (errno == EEXIST)
        return err_set(err, BELAY_REGISTRATION_CONFLICT, "%s exists", path);
    return io_error(err, "name the segment");
}

belay_rc file_open(const char *path, bool is_read_only, int *out_fd, uint64_t *out_len,
                   struct belay_error *err)
{
    struct stat st;
    int fd = open(path, (is_read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW |
                            O_NONBLOCK);

    if (fd < 0) {
        if (errno == ENOENT)
            return err_set(err, BELAY_NOT_FOUND, "there is no %s", path);
        if (errno == ELOOP)
            return err_reason(err, BELAY_DENIED, "owner", "%s is a link", path);
        return io_error(err, path);
    }
    belay_rc rc = BELAY_OK;
    if (fstat(fd, &st) != 0)
        rc = io_error(err, path);
    else if (!S_ISREG(st.st_mode))
        rc = err_reason(err, BELAY_UNSUPPORTED_FORMAT, "magic", "%s is no file", path);
    else if (st.st_uid != geteuid())
        rc = err_reason(err, BELAY_DENIED, "owner", "%s belongs to user %u", path,
                        st.st_uid);
    else if ((st.st_mode & 077) != 0)
        rc = err_reason(err, BELAY_DENIED, "mode", "%s is open to others (mode %o)",
                        path, st.st_mode & 0777);
    if (rc != BELAY_OK) {
        file_close(&fd);
        return rc;
    }
    *out_fd = fd;
    *out_len = (uint64_t)st.st_size;
    return BELAY_OK;
}
