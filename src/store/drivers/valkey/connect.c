/* Connecting: address by address, in time, with a login; and why not. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "store/drivers/valkey/net.h"

#define READ_SIZE ((size_t)16 << 10)
#define KEEPALIVE_S 15
#define KEEPALIVE_EVERY_S 5
#define KEEPALIVE_COUNT 3

bool vk_wait_fd(int fd, short events, int64_t deadline_us)
{
    for (;;) {
        struct pollfd p = { .fd = fd, .events = events };
        int64_t left_us = deadline_us - vk_now_us();
        if (left_us <= 0)
            return false;
        int64_t ms = (left_us + 999) / 1000;
        int n = poll(&p, 1, ms > 60000 ? 60000 : (int)ms);
        if (n > 0)
            return true; /* what is wrong with it, reading or writing will tell */
        if (n < 0 && errno != EINTR)
            return false;
    }
}

/* --- sockets --- */

static belay_rc not_connected(const char *why, struct belay_error *err)
{
    return err_set(err, BELAY_UNAVAILABLE, "valkey: no connection: %s", why);
}

/* A peer that has vanished is noticed without anybody sending anything. */
static void set_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        { IPPROTO_TCP, TCP_NODELAY, 1 },
        { SOL_SOCKET, SO_KEEPALIVE, 1 },
        { IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S },
        { IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S },
        { IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT },
    };

    for (size_t i = 0; i < COUNT_OF(options); i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof(options[i].value));
}

static belay_rc connect_socket(const struct sockaddr *address, socklen_t len,
                               int64_t deadline_us, int *out, struct belay_error *err)
{
    char text[128];
    int why = 0;
    socklen_t size = sizeof(why);
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return not_connected(strerror_r(errno, text, sizeof(text)), err);
    if (address->sa_family != AF_UNIX)
        set_options(fd);
    if (connect(fd, address, len) < 0)
        why = errno;
    if (why == EINPROGRESS) {
        if (!vk_wait_fd(fd, POLLOUT, deadline_us))
            why = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size) < 0)
            why = errno;
    }
    if (why) {
        (void)close(fd);
        return not_connected(strerror_r(why, text, sizeof(text)), err);
    }
    *out = fd;
    return BELAY_OK;
}

static belay_rc connect_path(const char *path, int64_t deadline_us, int *out,
                             struct belay_error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    if (strlen(path) >= sizeof(address.sun_path))
        return err_reason(err, BELAY_INVALID, "url",
                          "valkey: the path of the socket is too long");
    memcpy(address.sun_path, path, strlen(path) + 1);
    return connect_socket((const struct sockaddr *)&address, sizeof(address),
                          deadline_us, out, err);
}

/* A name may have several addresses; each has its share of the time. */
static belay_rc connect_name(const char *host, unsigned port, int64_t deadline_us,
                             int *out, struct belay_error *err)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    char service[16];
    int left = 0;

    (void)snprintf(service, sizeof(service), "%u", port);
    int failed = getaddrinfo(host, service, &hints, &list);
    if (failed)
        return not_connected(gai_strerror(failed), err);
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        left++;
    belay_rc rc = not_connected("the name has no address", err);
    for (const struct addrinfo *a = list; a && rc; a = a->ai_next) {
        int64_t now_us = vk_now_us();
        rc = connect_socket(a->ai_addr, a->ai_addrlen,
                            now_us + (deadline_us - now_us) / left--, out, err);
    }
    freeaddrinfo(list);
    return rc;
}

/* --- reading and writing --- */

static ssize_t socket_result(struct vk_conn *c, ssize_t n, short wants)
{
    if (n > 0)
        return n;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        c->wants = wants;
        return 0;
    }
    return -1;
}

ssize_t vk_conn_read(struct vk_conn *c, void *buf, size_t n)
{
    c->wants = 0;
    c->drained = false;
    if (c->tls) /* it may have more in its own hands */
        return vk_tls_read(c->tls, buf, n, &c->wants);
    ssize_t got = socket_result(c, recv(c->fd, buf, n, 0), POLLIN);
    c->drained = got > 0 && (size_t)got < n;
    return got;
}

ssize_t vk_conn_write(struct vk_conn *c, const struct iovec *iov, int n)
{
    struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n };

    c->wants = 0;
    if (c->tls)
        return vk_tls_write(c->tls, iov, n, &c->wants);
    return socket_result(c, sendmsg(c->fd, &message, MSG_NOSIGNAL), POLLOUT);
}

belay_rc vk_conn_send(struct vk_conn *c, const struct vk_request *r,
                      int64_t deadline_us, struct belay_error *err)
{
    struct iovec part = { .iov_base = r->bytes, .iov_len = r->len };

    if (r->no_memory)
        return err_no_memory(err, "a request");
    while (part.iov_len > 0) {
        ssize_t n = vk_conn_write(c, &part, 1);
        if (n < 0)
            return err_set(err, BELAY_UNAVAILABLE, "valkey: the connection was lost");
        if (n == 0 && !vk_wait_fd(c->fd, c->wants, deadline_us))
            return err_set(err, BELAY_UNAVAILABLE, "valkey: no answer in time");
        part.iov_base = (uint8_t *)part.iov_base + n;
        part.iov_len -= (size_t)n;
    }
    return BELAY_OK;
}

belay_rc vk_conn_take(struct vk_conn *c, struct vk_sink *sink, int64_t deadline_us,
                      struct belay_error *err)
{
    char buf[READ_SIZE];

    for (;;) {
        enum vk_parsed parsed = vk_reader_next(c->reader, sink);
        if (parsed == VK_PARSE_ANSWER)
            return sink->no_memory ? err_no_memory(err, "an answer") : BELAY_OK;
        if (parsed == VK_PARSE_BROKEN)
            return err_set(err, BELAY_UNAVAILABLE,
                           "valkey: what answers does not speak the protocol");
        if (c->drained && deadline_us == VK_NO_WAIT) {
            c->drained = false; /* the next one looks */
            return err_set(err, BELAY_TIMEOUT, "valkey: nothing has come");
        }
        ssize_t n = vk_conn_read(c, buf, sizeof(buf));
        if (n < 0)
            return err_set(err, BELAY_UNAVAILABLE, "valkey: the connection was lost");
        if (n == 0 && !vk_wait_fd(c->fd, c->wants, deadline_us))
            return err_set(err, BELAY_TIMEOUT, "valkey: no answer in time");
        if (n > 0 && !vk_reader_feed(c->reader, buf, (size_t)n))
            return err_no_memory(err, "an answer");
    }
}

belay_rc vk_conn_call(struct vk_conn *c, struct vk_request *r, struct vk_reply *replies,
                      int64_t deadline_us, struct belay_error *err)
{
    belay_rc rc = vk_conn_send(c, r, deadline_us, err);

    for (size_t i = 0; i < r->n_commands && rc == BELAY_OK; i++) {
        struct vk_sink sink = { .arena = r->arena, .reply = &replies[i] };
        rc = vk_conn_take(c, &sink, deadline_us, err);
    }
    if (rc == BELAY_TIMEOUT)
        rc = err_set(err, BELAY_UNAVAILABLE, "valkey: no answer in time");
    return rc;
}

/* --- logging in --- */

/* What a server answers to somebody it does not want, and would answer again. */
static const struct {
    const char *begins;
    belay_rc code;
    const char *reason, *means;
} refusals[] = {
    { "WRONGPASS", BELAY_UNAVAILABLE, "login", "user or password is wrong" },
    { "ERR AUTH", BELAY_UNAVAILABLE, "login", "the server has no such login" },
    { "ERR Client sent AUTH", BELAY_UNAVAILABLE, "login",
      "the server has no password" },
    { "ERR invalid password", BELAY_UNAVAILABLE, "login", "the password is wrong" },
    { "NOAUTH", BELAY_UNAVAILABLE, "login", "the server wants a login" },
    { "NOPERM", BELAY_UNAVAILABLE, "permission", "the user lacks a permission" },
    { "DENIED", BELAY_UNAVAILABLE, "permission", "the server is in protected mode" },
    { "ERR DB index", BELAY_UNAVAILABLE, "database", "there is no such database" },
    { "ERR SELECT is not", BELAY_INVALID, "option",
      "a cluster has no database but number 0" },
};

belay_rc vk_refused(const struct vk_reply *reply, struct belay_error *err)
{
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        if (vk_reply_is_error(reply, refusals[i].begins))
            return err_reason(err, refusals[i].code, refusals[i].reason,
                              "valkey: refused: %s", refusals[i].means);
    }
    /* Too many clients, still loading: it may be otherwise in a moment. */
    return err_set(err, BELAY_UNAVAILABLE, "valkey: no connection: %.*s",
                   (int)(reply->b.len < 100 ? reply->b.len : 100),
                   reply->kind == VK_ERROR ? (const char *)reply->b.ptr : "");
}

static belay_rc log_in(struct vk_store *s, struct vk_conn *c, int64_t deadline_us,
                       struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct valkey_options *o = &s->options;
    struct vk_reply replies[3] = { 0 };
    struct vk_request r;

    vk_request_init(&r, &arena);
    if (o->password) {
        vk_command(&r, o->user ? 3 : 2, "AUTH");
        if (o->user)
            vk_arg_str(&r, o->user);
        vk_arg_str(&r, o->password);
    }
    if (o->database > 0) {
        vk_command(&r, 2, "SELECT");
        vk_arg_i64(&r, o->database);
    }
    size_t must = r.n_commands;
    vk_command(&r, 3, "CLIENT"); /* who may not say a name goes without one */
    vk_arg_str(&r, "SETNAME");
    vk_arg_str(&r, "belay");
    belay_rc rc = vk_conn_call(c, &r, replies, deadline_us, err);
    for (size_t i = 0; i < must && rc == BELAY_OK; i++) {
        if (replies[i].kind == VK_ERROR)
            rc = vk_refused(&replies[i], err);
    }
    if (rc == BELAY_OK && vk_reply_is_error(&replies[must], "NOAUTH"))
        rc = vk_refused(&replies[must], err);
    return rc;
}

belay_rc vk_conn_open(struct vk_store *s, const char *host, unsigned port,
                      int64_t deadline_us, struct vk_conn **out,
                      struct belay_error *err)
{
    struct vk_conn *c = calloc(1, sizeof(*c));

    if (!c)
        return err_no_memory(err, "a connection");
    c->fd = -1;
    c->reader = vk_reader_new();
    belay_rc rc = !c->reader       ? err_no_memory(err, "a connection")
                  : host[0] == '/' ? connect_path(host, deadline_us, &c->fd, err)
                                   : connect_name(host, port, deadline_us, &c->fd, err);
    if (rc == BELAY_OK && s->options.tls)
        rc = vk_tls_open(&s->options, host, c->fd, deadline_us, &c->tls, err);
    if (rc == BELAY_OK)
        rc = log_in(s, c, deadline_us, err);
    if (rc) {
        vk_conn_close(c);
        return rc;
    }
    *out = c;
    return BELAY_OK;
}

void vk_conn_close(struct vk_conn *c)
{
    if (!c)
        return;
    vk_tls_close(c->tls);
    if (c->fd >= 0)
        (void)close(c->fd);
    vk_reader_free(c->reader);
    free(c);
}
