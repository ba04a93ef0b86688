/* Who is alive.  The hint is a word that the kernel marks when the keeper ends; it costs a
 * load.  But a thread of a killed process may still run for a moment after its keeper has
 * ended, so nothing is taken from anybody before the kernel confirms: the byte lock goes when
 * the last thread has dropped its files, and a pidfd tells when the whole process has ended.
 * Either is proof.  The lock also sees an exec, and through pid namespaces; the pidfd also
 * sees through a forked child that inherited the lock. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fleet/impl.h"

int node_lock(int fd, int64_t byte, bool is_shared)
{
    struct flock lock = {
        .l_type = is_shared ? F_RDLCK : F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = byte,
        .l_len = 1,
    };

    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 1;
    return errno == EAGAIN || errno == EACCES ? 0 : -1;
}

void node_unlock(int fd, int64_t byte)
{
    struct flock lock = {
        .l_type = F_UNLCK,
        .l_whence = SEEK_SET,
        .l_start = byte,
        .l_len = 1,
    };

    (void)fcntl(fd, F_OFD_SETLK, &lock);
}

/* Nobody has the node's byte. */
static bool byte_is_free(int fd, uint32_t node)
{
    struct flock lock = {
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = node,
        .l_len = 1,
    };

    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

bool boot_id_read(char out[40])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, 36);

    file_close(&fd);
    out[n > 0 ? n : 0] = '\0';
    return n == 36;
}

uint64_t namespace_of_self(const char *which)
{
    char path[32];
    struct stat st;

    (void)snprintf(path, sizeof(path), "/proc/self/ns/%s", which);
    return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

int64_t process_start_of(int64_t pid)
{
    char path[40], text[1024];
    const char *at;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    n = read(fd, text, sizeof(text) - 1);
    file_close(&fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    /* The name may contain anything, also ") "; what follows its last parenthesis is
     * field 3. */
    at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoll(at + 1, NULL, 10) : -1;
}

int process_is_gone(int64_t pid, int64_t start, uint64_t pid_space)
{
    if (pid <= 0 || pid > INT32_MAX || pid_space != namespace_of_self("pid"))
        return -1;
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (fd < 0 && errno == ESRCH)
        return 1;
    /* A process found under this number that began at another time is another one. */
    int64_t began = process_start_of(pid);
    bool is_other = began >= 0 && start > 0 && began != start;
    struct pollfd ended = { .fd = fd, .events = POLLIN };
    bool has_ended = fd >= 0 && poll(&ended, 1, 0) == 1;

    file_close(&fd);
    if (is_other || has_ended)
        return 1;
    return began >= 0 ? 0 : -1;
}

bool member_is_gone(const struct belay_fleet *f, uint32_t node, uint64_t m)
{
    const struct member *who = &f->members[node];

    if (member_is_dead(f, node, m))
        return true;
    return m_state(m) == MEMBER_LIVE && f->fd >= 0 && !(node == f->node && f->keeper) &&
           byte_is_free(f->fd, node) &&
           process_is_gone(
               (int64_t)atomic_load_explicit(&who->pid, memory_order_relaxed),
               (int64_t)atomic_load_explicit(&who->process_start, memory_order_relaxed),
               atomic_load_explicit(&who->pid_space, memory_order_relaxed)) == 1;
}

bool member_is_dead(const struct belay_fleet *f, uint32_t node, uint64_t m)
{
    const struct member *who = &f->members[node];
    bool is_died;

    switch (m_state(m)) {
    case MEMBER_DEAD:
    case MEMBER_SWEEPING:
        return true;
    case MEMBER_LIVE:
        is_died =
            (atomic_load_explicit(&who->life, memory_order_acquire) & LIFE_DIED) != 0;
        if (!is_died || f->fd < 0)
            return false;
        break;
    case MEMBER_JOINING:
    case MEMBER_LEAVING:
        if (f->fd < 0)
            return false;
        break; /* it has the byte and perhaps no keeper: the byte alone tells */
    default:
        return false;
    }
    if (node == f->node && f->keeper)
        return false; /* ourselves */
    if (byte_is_free(f->fd, node))
        return true;
    if (m_state(m) == MEMBER_JOINING)
        return false; /* it has not said who it is */
    return process_is_gone(
               (int64_t)atomic_load_explicit(&who->pid, memory_order_relaxed),
               (int64_t)atomic_load_explicit(&who->process_start, memory_order_relaxed),
               atomic_load_explicit(&who->pid_space, memory_order_relaxed)) == 1;
}
