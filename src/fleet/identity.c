#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fleet/impl.h"

/* `member` as text: "p<pid namespace>" and, in a fleet, ".<fleet id>.<node>.<incarnation>". */
struct place {
    unsigned long long pid_space, fleet_id, incarnation;
    unsigned node;
    bool is_in_fleet;
};

static void place_print(const struct place *p, char *out, size_t out_len)
{
    if (p->is_in_fleet)
        (void)snprintf(out, out_len, "p%llu.%llx.%u.%llu", p->pid_space, p->fleet_id,
                       p->node, p->incarnation);
    else
        (void)snprintf(out, out_len, "p%llu", p->pid_space);
}

static bool number(const char **text, unsigned base, unsigned long long *out)
{
    unsigned long long n = 0;
    const char *p = *text;

    for (;; p++) {
        unsigned digit = *p >= '0' && *p <= '9'   ? (unsigned)(*p - '0')
                         : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a' + 10)
                                                  : 99;
        if (digit >= base)
            break;
        if (n > (~0ULL - digit) / base)
            return false;
        n = n * base + digit;
    }
    if (p == *text)
        return false;
    *text = p;
    *out = n;
    return true;
}

static bool place_parse(const char *text, struct place *out)
{
    struct place p = { 0 };
    unsigned long long node;

    if (*text++ != 'p' || !number(&text, 10, &p.pid_space))
        return false;
    if (*text == '.') {
        p.is_in_fleet = true;
        text++;
        if (!number(&text, 16, &p.fleet_id) || *text++ != '.' ||
            !number(&text, 10, &node) || *text++ != '.' ||
            !number(&text, 10, &p.incarnation) || node >= FLEET_SIZE_MAX)
            return false;
        p.node = (unsigned)node;
    }
    *out = p;
    return *text == '\0';
}

static void host_id_read(char out[40])
{
    int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, 32);

    file_close(&fd);
    out[n == 32 ? n : 0] = '\0';
}

belay_rc belay_identity_get(struct belay_fleet *f, struct belay_identity *out,
                            struct belay_error *err)
{
    struct belay_identity id = { .size = sizeof(id), .pid = (int32_t)getpid() };
    struct place place = { .pid_space = namespace_of_self("pid") };

    if (f) {
        belay_rc rc = fleet_check_member(f, err);
        if (rc != BELAY_OK)
            return rc;
        place.is_in_fleet = true;
        place.fleet_id = f->space->header.fleet_id;
        place.node = f->node;
        place.incarnation = f->incarnation;
    }
    id.process_start = process_start_of(id.pid);
    if (id.process_start < 0 || !boot_id_read(id.boot))
        return err_reason(err, BELAY_UNAVAILABLE, "io",
                          "/proc does not tell who we are");
    host_id_read(id.host);
    place_print(&place, id.member, sizeof(id.member));
    *out = id;
    return BELAY_OK;
}

/* Of this boot, and readable. */
static bool is_of_here(const struct belay_identity *who, struct place *out)
{
    char boot[40];

    return who && memchr(who->boot, '\0', sizeof(who->boot)) &&
           memchr(who->member, '\0', sizeof(who->member)) && boot_id_read(boot) &&
           strcmp(boot, who->boot) == 0 && place_parse(who->member, out);
}

enum belay_life belay_fleet_member_is_dead(struct belay_fleet *f,
                                           const struct belay_identity *who)
{
    struct place place;

    if (!is_of_here(who, &place))
        return BELAY_LIFE_UNKNOWN;
    if (f && fleet_check(f, NULL) == BELAY_OK && place.is_in_fleet &&
        place.fleet_id == f->space->header.fleet_id && place.node < f->fleet_size) {
        uint64_t m =
            atomic_load_explicit(&f->members[place.node].m, memory_order_acquire);
        unsigned state = m_state(m);
        /* Once the node is another's, or free, the member may just have left: then the
         * process is asked. */
        if (m_incarnation(m) == place.incarnation && state != MEMBER_FREE) {
            if (member_is_gone(f, place.node, m))
                return BELAY_LIFE_DEAD;
            if (state == MEMBER_LIVE)
                return BELAY_LIFE_ALIVE;
        }
    }
    switch (process_is_gone(who->pid, who->process_start, place.pid_space)) {
    case 1:
        return BELAY_LIFE_DEAD;
    case 0:
        return BELAY_LIFE_ALIVE;
    default:
        return BELAY_LIFE_UNKNOWN;
    }
}

belay_rc belay_identity_pidfd(const struct belay_identity *who, int *out_fd,
                              struct belay_error *err)
{
    struct place place;

    if (!is_of_here(who, &place) || place.pid_space != namespace_of_self("pid"))
        return err_reason(err, BELAY_INVALID, "identity",
                          "the process is of another boot or pid namespace");
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)who->pid, 0);
    if (fd < 0 && errno != ESRCH)
        return io_error(err, "pidfd");
    /* Only if it is still that process: numbers are used again. */
    if (fd < 0 || process_start_of(who->pid) != who->process_start) {
        file_close(&fd);
        return err_set(err, BELAY_NOT_FOUND, "process %d has ended", who->pid);
    }
    *out_fd = fd;
    return BELAY_OK;
}

/* Sleeps until the process ends, at most so long. */
static void sleep_on(struct belay_fleet *f, const struct belay_identity *who, int pidfd,
                     int64_t us)
{
    const struct belay_clock clock = clock_system();
    struct pollfd ended = { .fd = pidfd, .events = POLLIN };
    struct place place;

    /* A member may end before its process does: by leaving through exec. */
    if (pidfd >= 0) {
        (void)poll(&ended, 1, (int)((us + 999) / 1000));
        if ((ended.revents & POLLIN) != 0)
            clock.sleep_us(clock.arg, 50);
        return;
    }
    if (f && !f->is_observer && is_of_here(who, &place) && place.node < f->fleet_size) {
        au32 *life = &f->members[place.node].life;
        uint32_t is = atomic_load_explicit(life, memory_order_acquire);
        if (is != 0 && (is & LIFE_DIED) == 0) {
            if (atomic_compare_exchange_strong_explicit(life, &is, is | LIFE_WAITERS,
                                                        memory_order_acq_rel,
                                                        memory_order_acquire))
                is |= LIFE_WAITERS;
            futex_wait(life, is, us);
            /* The kernel wakes one. */
            if ((atomic_load_explicit(life, memory_order_acquire) & LIFE_DIED) != 0)
                futex_wake(life, INT_MAX);
            return;
        }
    }
    clock.sleep_us(clock.arg, us < 1000 ? us : 1000);
}

belay_rc belay_fleet_wait_death(struct belay_fleet *f, const struct belay_identity *who,
                                int64_t timeout_ms, struct belay_cancel *cancel,
                                struct belay_error *err)
{
    struct patience patience;
    int pidfd = -1;
    int64_t us;
    belay_rc rc = patience_init(&patience, timeout_ms, cancel, err);

    if (rc == BELAY_OK && f)
        rc = fleet_check(f, err);
    if (rc != BELAY_OK)
        return rc;
    if (belay_identity_pidfd(who, &pidfd, NULL) != BELAY_OK)
        pidfd = -1;
    while (rc == BELAY_OK) {
        enum belay_life life = belay_fleet_member_is_dead(f, who);
        if (life == BELAY_LIFE_DEAD)
            break;
        if (life == BELAY_LIFE_UNKNOWN)
            rc = err_reason(err, BELAY_INVALID, "identity",
                            "nothing on this host tells whether it lives");
        if (rc == BELAY_OK)
            rc = patience_slice(&patience, &us, err);
        if (rc == BELAY_OK)
            sleep_on(f, who, pidfd, us);
    }
    file_close(&pidfd);
    return rc;
}
