/* A handler of signals is told an address and nothing else, so this is the one place of the
 * library with state of the process: what was to be done with SIGBUS before.  Which mapping an
 * address belongs to is read from /proc/self/maps, by system calls alone. */
#include "fleet/sigbus.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fleet/impl.h"

static struct sigaction before;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int failure;

static uintptr_t hex(const char **p)
{
    uintptr_t n = 0;

    for (;; (*p)++) {
        char c = **p;
        if (c >= '0' && c <= '9')
            n = n * 16 + (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            n = n * 16 + (uintptr_t)(c - 'a' + 10);
        else
            return n;
    }
}

/* "/belay-<euid>-...", or private memory. */
static bool is_fleet(const char *line)
{
    const char *at = strrchr(line, '/'); /* the folder may be called so, too */

    return (at && strncmp(at, "/belay-", 7) == 0 && at[7] >= '0' && at[7] <= '9') ||
           strstr(line, "memfd:belay-fleet");
}

/* Whether a line of the table is of a fleet's segment and has the address. */
static bool line_is_ours(const char *line, uintptr_t address)
{
    const char *p = line;
    uintptr_t from = hex(&p);

    if (*p++ != '-')
        return false;
    uintptr_t to = hex(&p);
    return address >= from && address < to && is_fleet(line);
}

static bool is_ours(uintptr_t address)
{
    char line[512];
    size_t len = 0;
    char c;
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    while (!found && read(fd, &c, 1) == 1) {
        if (c != '\n') {
            if (len < sizeof(line) - 1)
                line[len++] = c;
            continue;
        }
        line[len] = '\0';
        found = line_is_ours(line, address);
        len = 0;
    }
    (void)close(fd);
    return found;
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    long page = sysconf(_SC_PAGESIZE);
    uintptr_t address = (uintptr_t)info->si_addr;
    void *at = (void *)(address & ~((uintptr_t)page - 1));

    if (info->si_code == BUS_ADRERR && is_ours(address) &&
        mmap(at, (size_t)page, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at) {
        errno = kept;
        return;
    }
    errno = kept;
    if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else {
        /* As it would have been: the access is repeated and ends the process. */
        struct sigaction plain = { .sa_handler = SIG_DFL };
        (void)sigaction(SIGBUS, &plain, NULL);
    }
}

static void install(void)
{
    struct sigaction action = { .sa_sigaction = on_sigbus,
                                .sa_flags = SA_SIGINFO | SA_RESTART };

    (void)sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, &before) != 0)
        atomic_store(&failure, errno);
}

belay_rc sigbus_guard(struct belay_error *err)
{
    (void)pthread_once(&once, install);
    errno = atomic_load(&failure);
    return errno == 0 ? BELAY_OK : io_error(err, "handle SIGBUS");
}
