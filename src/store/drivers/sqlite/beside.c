#include "store/drivers/sqlite/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Somebody may create or remove the file between two of our calls, this often. */
#define TRIES 8

static belay_rc refuse(const char *what, const char *path, int why,
                       struct belay_error *err)
{
    const char *text = strerrordesc_np(why);

    if (why == ENOENT)
        text = "no such folder";
    else if (why == ENOTDIR)
        text = "a part of the path is not a folder";
    else if (why == ELOOP)
        text = "is a symbolic link";
    else if (why == EISDIR)
        text = "is a folder";
    else if (why == ENAMETOOLONG)
        return err_reason(err, BELAY_INVALID, "too_large",
                          "%s: the path is too long: %s", what, path);
    return err_set(err, BELAY_UNAVAILABLE, "%s %s: %s", what, path,
                   text ? text : "unknown error");
}

/* The database file's own name with the suffix.  False when it does not fit. */
static bool name_of(char path[PATH_MAX], const char *database_path, const char *suffix)
{
    char real[PATH_MAX];
    struct stat st;

    if (lstat(database_path, &st) == 0 && S_ISLNK(st.st_mode) &&
        realpath(database_path, real))
        database_path = real;
    int len = snprintf(path, PATH_MAX, "%s%s", database_path, suffix);
    return len >= 0 && len < PATH_MAX;
}

/* A descriptor, or -1 with errno. */
static int create(const char *path, const char *database_path, int flags)
{
    struct stat st;
    bool known = stat(database_path, &st) == 0;
    mode_t mode = known ? (st.st_mode & 0666) | 0600 : 0600;
    int fd = open(path, flags | O_CREAT | O_EXCL, mode);

    if (fd < 0)
        return -1;
    /* As well as it goes: who may not open it is told so then. */
    (void)!fchmod(fd, mode);
    if (known && geteuid() == 0)
        (void)!fchown(fd, st.st_uid, st.st_gid);
    return fd;
}

belay_rc beside_open(int *out_fd, const char *database_path, const char *suffix,
                     const char *what, struct belay_error *err)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
    char path[PATH_MAX];
    struct stat st;
    int fd = -1;

    if (!name_of(path, database_path, suffix))
        return refuse(what, path, ENAMETOOLONG, err);
    for (int i = 0; fd < 0 && i < TRIES; i++) {
        fd = open(path, flags);
        if (fd < 0 && errno == ENOENT)
            fd = create(path, database_path, flags);
        if (fd < 0 && errno != EEXIST && errno != EINTR)
            break;
    }
    if (fd < 0)
        return refuse(what, path, errno, err);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return err_set(err, BELAY_UNAVAILABLE, "%s %s: is not a regular file", what,
                       path);
    }
    *out_fd = fd;
    return BELAY_OK;
}
