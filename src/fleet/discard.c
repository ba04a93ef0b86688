/* Segments that nobody can be in any more: those of an earlier boot.
 *
 * Whoever takes one away has the gate of that very file alone, and the file still has the name then: so it is
 * not the new one of somebody who was faster.  A file whose header is not whole stays; it is not
 * known to be of another boot. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fleet/impl.h"

void segment_unlink_kinds(const char *dir, const char *name, uint64_t fleet_id)
{
    char prefix[128];
    DIR *d = opendir(dir);
    const struct dirent *entry;

    (void)snprintf(prefix, sizeof(prefix), "belay-%u-%s.%016llx.", (unsigned)geteuid(),
                   name, (unsigned long long)fleet_id);
    while (d && (entry = readdir(d)) != NULL) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            (void)unlinkat(dirfd(d), entry->d_name, 0);
    }
    if (d)
        (void)closedir(d);
}

static bool has_name(int fd, const char *path)
{
    struct stat is, named;

    return fstat(fd, &is) == 0 && lstat(path, &named) == 0 &&
           is.st_dev == named.st_dev && is.st_ino == named.st_ino;
}

/* Nobody has the byte of a node. */
static bool is_unlocked(int fd, uint32_t nodes)
{
    struct flock any = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = nodes };

    return fcntl(fd, F_OFD_GETLK, &any) == 0 && any.l_type == F_UNLCK;
}

static bool discard(int fd, const char *dir, const char *name, const char *path,
                    uint64_t *token_floor)
{
    struct segment_header h;
    struct geometry g;
    uint64_t token = 0;

    if (pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
        !segment_header_is_whole(&h, &g) || segment_boot() == 0)
        return false;
    if (h.boot == segment_boot())
        return true; /* a new one by now */
    /* Should a boot ever not be one, whoever lives has a lock. */
    if (!is_unlocked(fd, g.fleet_size))
        return false;
    if (node_lock(fd, GATE_BYTE, false) != 1) {
        const struct belay_clock clock = clock_system();
        clock.sleep_us(clock.arg, 200); /* another one is at it */
        return true;
    }
    if (!has_name(fd, path))
        return true; /* another one was */
    /* Tokens go on; where this cannot be read the clock alone tells (K2). */
    if (pread(fd, &token, sizeof(token), (off_t)g.token_at) == (ssize_t)sizeof(token) &&
        token > *token_floor && token < UINT64_MAX / 2)
        *token_floor = token;
    segment_unlink_kinds(dir, name, h.fleet_id);
    (void)unlink(path);
    return true;
}

bool segment_discard_old(const char *dir, const char *name, uint64_t *token_floor)
{
    char path[320];
    uint64_t len;
    int fd = -1;

    (void)snprintf(path, sizeof(path), "%s/belay-%u-%s", dir, (unsigned)geteuid(),
                   name);
    belay_rc rc = file_open(path, false, &fd, &len, NULL);
    if (rc != BELAY_OK)
        return rc == BELAY_NOT_FOUND;
    bool is_old = discard(fd, dir, name, path, token_floor);
    file_close(&fd);
    return is_old;
}
