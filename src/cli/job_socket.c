#include "cli/job_socket.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/park.h"

#define CHUNK ((size_t)65536)
#define BACKLOG 128 /* who connects without waiting shall not be refused */
#define SHUT_US ((int64_t)100 * 1000)
#define NAME_MAX_LEN 24 /* of a socket in its directory, with the slash */

/* --- the directory --- */

/* A directory below `parent`, whose sockets have names that are not too long; NULL: it
 * cannot be had there. */
static char *make_below(const char *parent)
{
    char *path = NULL;

    if (!parent || parent[0] != '/' ||
        strlen(parent) + sizeof("/belay-XXXXXX") + NAME_MAX_LEN >
            sizeof(((struct sockaddr_un *)0)->sun_path) ||
        asprintf(&path, "%s/belay-XXXXXX", parent) < 0)
        return NULL;
    if (mkdtemp(path)) /* mode 0700 */
        return path;
    free(path);
    return NULL;
}

belay_rc socket_directory_new(char **out, struct belay_error *err)
{
    const char *const parents[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"),
                                    "/tmp" };

    for (size_t i = 0; i < COUNT_OF(parents); i++) {
        *out = make_below(parents[i]);
        if (*out)
            return BELAY_OK;
    }
    return err_reason(err, BELAY_UNAVAILABLE, "directory",
                      "a directory for sockets: none can be made in XDG_RUNTIME_DIR, "
                      "TMPDIR or /tmp");
}

void socket_directory_free(char *directory)
{
    DIR *entries = directory ? opendir(directory) : NULL;
    const struct dirent *e;

    while (entries && (e = readdir(entries))) /* what a failure left */
        (void)unlinkat(dirfd(entries), e->d_name, 0);
    if (entries)
        (void)closedir(entries);
    if (directory)
        (void)rmdir(directory);
    free(directory);
}

/* --- beginning and end --- */

void socket_init(struct job_socket *s)
{
    *s = (struct job_socket){ .listening = -1 };
    for (size_t i = 0; i < SOCKET_PEERS; i++)
        s->peers[i].fd = -1;
}

static belay_rc wrong(struct belay_error *err, const char *what)
{
    return err_reason(err, BELAY_UNAVAILABLE, "socket", "a job's socket: %s: %s", what,
                      strerrordesc_np(errno));
}

/* Where old files are removed from time to time, so is an idle directory.  In one that
 * anybody may write to it must be ours and nobody else's. */
static bool make_again(const char *directory)
{
    struct stat info;

    if (mkdir(directory, S_IRWXU) && errno != EEXIST)
        return false;
    return lstat(directory, &info) == 0 && S_ISDIR(info.st_mode) &&
           info.st_uid == geteuid() && (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

static bool bind_at(int fd, const struct sockaddr_un *address, const char *directory)
{
    if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
        return true;
    return errno == ENOENT && make_again(directory) &&
           bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
}

belay_rc socket_open(struct job_socket *s, const char *directory, uint64_t number,
                     struct belay_error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    s->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listening < 0)
        return wrong(err, "socket");
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%llu", directory,
                   (unsigned long long)number);
    if (!bind_at(s->listening, &address, directory))
        return wrong(err, "bind");
    (void)snprintf(s->path, sizeof(s->path), "%s", address.sun_path);
    /* Nobody else enters the directory, so that there is no moment in between. */
    if (chmod(s->path, S_IRUSR | S_IWUSR) || listen(s->listening, BACKLOG))
        return wrong(err, "listen");
    return BELAY_OK;
}

static void hang_up(struct peer *p)
{
    if (p->fd >= 0)
        (void)close(p->fd);
    buf_release(&p->in);
    buf_release(&p->out);
    *p = (struct peer){ .fd = -1 };
}

void socket_close(struct job_socket *s)
{
    for (size_t i = 0; i < SOCKET_PEERS; i++)
        hang_up(&s->peers[i]);
    if (s->listening >= 0)
        (void)close(s->listening);
    if (s->path[0])
        (void)unlink(s->path);
    socket_init(s);
}

/* --- polling --- */

static bool has_answer(const struct peer *p)
{
    return p->sent < p->out.len;
}

/* A free place, or that of who has been silent for the longest time. */
static const struct peer *place_of(const struct job_socket *s)
{
    const struct peer *oldest = &s->peers[0];

    for (size_t i = 0; i < SOCKET_PEERS; i++) {
        const struct peer *p = &s->peers[i];
        if (p->fd < 0)
            return p;
        if (p->since_us < oldest->since_us)
            oldest = p;
    }
    return oldest;
}

static bool has_place(const struct job_socket *s, int64_t now_us)
{
    const struct peer *p = place_of(s);

    if (now_us < s->shut_until_us)
        return false;
    return p->fd < 0 || now_us - p->since_us >= SOCKET_HUSH_US;
}

void socket_poll(const struct job_socket *s, int64_t now_us,
                 struct pollfd fds[SOCKET_FDS])
{
    fds[0] = (struct pollfd){ .fd = has_place(s, now_us) ? s->listening : -1,
                              .events = POLLIN };
    for (size_t i = 0; i < SOCKET_PEERS; i++) {
        const struct peer *p = &s->peers[i];
        fds[1 + i] =
            (struct pollfd){ .fd = p->fd, .events = has_answer(p) ? POLLOUT : POLLIN };
    }
}

/* A peer without a request or an answer under way may rest as long as it likes. */
static bool is_busy(const struct peer *p)
{
    return p->fd >= 0 && (p->in.len > 0 || has_answer(p));
}

int64_t socket_deadline(const struct job_socket *s, int64_t now_us)
{
    int64_t first = DEADLINE_NONE;

    if (!has_place(s, now_us)) /* else who comes wakes us */
        first = now_us < s->shut_until_us ? s->shut_until_us
                                          : place_of(s)->since_us + SOCKET_HUSH_US;

    for (size_t i = 0; i < SOCKET_PEERS; i++) {
        const struct peer *p = &s->peers[i];
        if (is_busy(p) && p->since_us + SOCKET_PATIENCE_US < first)
            first = p->since_us + SOCKET_PATIENCE_US;
    }
    return first;
}

/* --- serving --- */

static bool is_same_user(int fd)
{
    struct ucred who;
    socklen_t len = sizeof(who);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
           who.uid == geteuid();
}

/* False: nobody is waiting any more. */
static bool take_peer(struct job_socket *s, int64_t now_us)
{
    int fd = accept4(s->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        s->shut_until_us = now_us + SHUT_US; /* it would be asked again at once */
    if (fd < 0)
        return false;
    if (!is_same_user(fd)) {
        (void)close(fd);
        return true;
    }
    struct peer *p = &s->peers[place_of(s) - s->peers];
    hang_up(p);
    p->fd = fd;
    p->since_us = now_us;
    return true;
}

static int64_t now_of(const struct belay_clock *clock)
{
    return clock->mono_us(clock->arg);
}

static void send_answer(struct peer *p, const struct belay_clock *clock)
{
    while (has_answer(p)) {
        ssize_t n = send(p->fd, p->out.ptr + p->sent, p->out.len - p->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            hang_up(p);
            return;
        }
        p->sent += (size_t)n;
        p->since_us = now_of(clock); /* an answer may have taken long */
    }
    p->sent = 0;
    buf_reset(&p->out);
    if (p->is_last)
        hang_up(p);
}

/* Answers the lines that are there, one after the other, as long as they are read. */
static void answer_lines(struct peer *p, const struct belay_clock *clock,
                         socket_answer *answer, void *arg)
{
    const uint8_t *end;

    while (p->fd >= 0 && !has_answer(p) && p->in.len > 0 &&
           (end = memchr(p->in.ptr, '\n', p->in.len))) {
        size_t len = (size_t)(end - p->in.ptr);
        answer(arg, bytes_of(p->in.ptr, len), &p->out);
        p->in.len -= len + 1;
        memmove(p->in.ptr, p->in.ptr + len + 1, p->in.len);
        if (p->out.failed) {
            hang_up(p);
            return;
        }
        send_answer(p, clock);
    }
}

/* Reads what there is, up to a chunk more than a line may have. */
static void hear(struct peer *p, const struct belay_clock *clock)
{
    uint8_t chunk[CHUNK];
    ssize_t n = recv(p->fd, chunk, sizeof(chunk), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        buf_append(&p->in, bytes_of(chunk, (size_t)n));
    if (n <= 0 || p->in.failed) {
        hang_up(p);
        return;
    }
    if (p->in.len ==
        (size_t)n) /* a request begins; slow ones do not gain by dripping */
        p->since_us = now_of(clock);
    if (p->in.len <= SOCKET_LINE_MAX || memchr(p->in.ptr, '\n', p->in.len))
        return;
    buf_reset(&p->in);
    buf_append_str(&p->out,
                   "{\"error\":{\"code\":\"invalid\",\"message\":\"a request is "
                   "longer than 1.5 MiB\",\"reason\":\"too_large\"},\"ok\":false}\n");
    p->is_last = true;
}

static void serve_peer(struct peer *p, const struct pollfd *found,
                       const struct belay_clock *clock, socket_answer *answer,
                       void *arg)
{
    if (p->fd < 0 || p->fd != found->fd)
        return;
    if (found->revents && has_answer(p))
        send_answer(p, clock);
    else if (found->revents)
        hear(p, clock);
    if (p->fd >= 0 && p->is_last)
        send_answer(p, clock);
    else
        answer_lines(p, clock, answer, arg);
    if (is_busy(p) && now_of(clock) - p->since_us >= SOCKET_PATIENCE_US)
        hang_up(p);
}

void socket_serve(struct job_socket *s, const struct pollfd fds[SOCKET_FDS],
                  const struct belay_clock *clock, socket_answer *answer, void *arg)
{
    for (size_t i = 0; i < SOCKET_PEERS; i++)
        serve_peer(&s->peers[i], &fds[1 + i], clock, answer, arg);
    if (fds[0].fd < 0 || !fds[0].revents)
        return;
    int64_t now_us = now_of(clock);
    while (has_place(s, now_us) && take_peer(s, now_us))
        continue;
}
