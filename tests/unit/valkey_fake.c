#include "valkey_fake.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define IN_SIZE ((size_t)1 << 20)

struct served {
    struct fake *f;
    int fd;
    bool known; /* has logged in */
};

/* --- what every server says --- */

static void put_string(struct buf *out, const char *text)
{
    buf_printf(out, "$%zu\r\n%s\r\n", strlen(text), text);
}

static bool is(struct bytes arg, const char *word)
{
    return bytes_eq(arg, bytes_str(word));
}

static void say_pong(struct fake *f, struct buf *out)
{
    const char *pong = atomic_load(&f->pong);

    atomic_fetch_add(&f->n_pings, 1);
    buf_append_str(out, pong ? pong : "+PONG\r\n");
}

static void say_info(struct fake *f, struct buf *out)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_printf(&text,
               "# Server\r\nredis_version:%s\r\nrun_id:%s\r\nloading:%d\r\nrole:%s\r\n"
               "master_replid:%s\r\nmaster_replid2:%s\r\n%s",
               f->version, f->run_id, f->loading, f->role, f->replid, f->replid2,
               f->info);
    buf_append_char(&text, '\0');
    put_string(out, (const char *)text.ptr);
}

static void say_config(struct fake *f, struct bytes name, struct buf *out)
{
    const char *value = is(name, "appendonly")    ? f->appendonly
                        : is(name, "appendfsync") ? f->appendfsync
                                                  : f->policy;

    if (!value) {
        buf_append_str(out, "-NOPERM no\r\n");
        return;
    }
    buf_append_str(out, "*2\r\n$1\r\nx\r\n");
    put_string(out, value);
}

static void load(struct fake *f, struct bytes text, struct buf *out)
{
    atomic_fetch_add(&f->n_loads, 1);
    if (!f->may_load) {
        buf_append_str(out, "-NOPERM no\r\n");
        return;
    }
    free(f->library);
    f->library = strndup((const char *)text.ptr, text.len);
    buf_append_str(out, "$6\r\nbelay6\r\n");
}

static void say_functions(struct fake *f, const struct bytes *args, size_t n,
                          struct buf *out)
{
    if (is(args[1], "LOAD")) {
        load(f, args[n - 1], out);
    } else if (!f->library) {
        buf_append_str(out, "*0\r\n");
    } else {
        buf_append_str(out, "*1\r\n*4\r\n$12\r\nlibrary_name\r\n$6\r\nbelay6\r\n"
                            "$12\r\nlibrary_code\r\n");
        put_string(out, f->library);
    }
}

static void log_in(struct served *s, const struct bytes *args, size_t n,
                   struct buf *out)
{
    atomic_fetch_add(&s->f->n_logins, 1);
    s->known = s->f->password && is(args[n - 1], s->f->password);
    buf_append_str(out, s->known ? "+OK\r\n" : "-WRONGPASS invalid\r\n");
}

/* With the mutex held; false: it is the test's. */
static bool say_usual(struct served *s, const struct bytes *args, size_t n,
                      struct buf *out)
{
    struct fake *f = s->f;

    if (is(args[0], "AUTH"))
        log_in(s, args, n, out);
    else if (f->password && !s->known)
        buf_append_str(out, "-NOAUTH Authentication required.\r\n");
    else if (is(args[0], "SELECT") || is(args[0], "CLIENT"))
        buf_append_str(out, "+OK\r\n");
    else if (is(args[0], "PING"))
        say_pong(f, out);
    else if (is(args[0], "INFO"))
        say_info(f, out);
    else if (is(args[0], "CONFIG"))
        say_config(f, args[2], out);
    else if (is(args[0], "FUNCTION"))
        say_functions(f, args, n, out);
    else
        return false;
    return true;
}

/* --- commands --- */

/* Takes a command off the bytes; returns its length, or 0 when it has not all come. */
static size_t take_command(struct bytes in, struct bytes args[FAKE_ARGS], size_t *n)
{
    const char *at = (const char *)in.ptr, *end = at + in.len;
    const char *line = memchr(at, '\n', in.len);
    size_t want = line ? (size_t)strtoull(at + 1, NULL, 10) : 0;

    if (!line)
        return 0;
    at = line + 1;
    for (*n = 0; *n < want; (*n)++) {
        line = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (!line)
            return 0;
        size_t len = (size_t)strtoull(at + 1, NULL, 10);
        if ((size_t)(end - line - 1) < len + 2)
            return 0;
        if (*n < FAKE_ARGS)
            args[*n] = bytes_of(line + 1, len);
        at = line + 1 + len + 2;
    }
    if (*n > FAKE_ARGS)
        *n = FAKE_ARGS;
    return (size_t)(at - (const char *)in.ptr);
}

static bool send_all(int fd, struct bytes out)
{
    while (out.len > 0) {
        ssize_t n = send(fd, out.ptr, out.len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        out = bytes_of(out.ptr + n, out.len - (size_t)n);
    }
    return true;
}

/* False: the connection ends. */
static bool serve(struct served *s, const struct bytes *args, size_t n)
{
    CLEANUP(buf_release) struct buf out = { .ptr = NULL };

    pthread_mutex_lock(&s->f->mutex);
    bool usual = say_usual(s, args, n, &out);
    pthread_mutex_unlock(&s->f->mutex);
    if (!usual) {
        atomic_fetch_add(&s->f->n_answers, 1);
        const char *text = s->f->answer ? s->f->answer(s->f, args, n) : FAKE_UNKNOWN;
        if (text && strcmp(text, FAKE_CUT) == 0)
            return false;
        buf_append_str(&out, text ? text : "-ERR unknown command\r\n");
    }
    return send_all(s->fd, buf_view(&out));
}

static void *serve_thread(void *arg)
{
    struct served s = *(struct served *)arg;
    uint8_t *in = malloc(IN_SIZE);
    size_t len = 0, n = 0;
    bool ok = in != NULL;

    free(arg);
    while (ok) {
        ssize_t got = recv(s.fd, in + len, IN_SIZE - len, 0);
        struct bytes args[FAKE_ARGS];
        size_t used = 0, one;
        if (got <= 0)
            break;
        len += (size_t)got;
        while (ok &&
               (one = take_command(bytes_of(in + used, len - used), args, &n)) > 0) {
            ok = serve(&s, args, n);
            used += one;
        }
        memmove(in, in + used, len - used);
        len -= used;
    }
    (void)shutdown(s.fd, SHUT_RDWR); /* fake_stop closes it */
    free(in);
    return NULL;
}

/* --- connections --- */

static void *accept_thread(void *arg)
{
    struct fake *f = arg;
    int fd;

    while ((fd = accept(f->listening, NULL, NULL)) >= 0) {
        struct served *s = calloc(1, sizeof(*s));
        unsigned i = atomic_load(&f->n_conns);

        pthread_mutex_lock(&f->mutex);
        bool take = s && !f->stopping && i < FAKE_CONNS;
        if (take) {
            *s = (struct served){ .f = f, .fd = fd };
            f->conns[i] = fd;
            take = pthread_create(&f->threads[i], NULL, serve_thread, s) == 0;
        }
        if (take)
            atomic_store(&f->n_conns, i + 1);
        pthread_mutex_unlock(&f->mutex);
        if (!take) {
            free(s);
            (void)close(fd);
        }
    }
    return NULL;
}

bool fake_start(struct fake *f, fake_answer *answer, void *arg)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);

    *f = (struct fake){ .answer = answer,
                        .arg = arg,
                        .version = "7.0.15",
                        .role = "master",
                        .replid = "aaaa",
                        .replid2 = "0000",
                        .run_id = "run1",
                        .appendonly = "yes",
                        .appendfsync = "always",
                        .policy = "noeviction",
                        .info = "",
                        .may_load = true };
    (void)pthread_mutex_init(&f->mutex, NULL);
    f->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (f->listening < 0 ||
        bind(f->listening, (const struct sockaddr *)&address, sizeof(address)) ||
        listen(f->listening, 64) ||
        getsockname(f->listening, (struct sockaddr *)&address, &len))
        return false;
    f->port = ntohs(address.sin_port);
    return pthread_create(&f->acceptor, NULL, accept_thread, f) == 0;
}

void fake_cut(struct fake *f)
{
    pthread_mutex_lock(&f->mutex);
    for (unsigned i = 0; i < atomic_load(&f->n_conns); i++)
        (void)shutdown(f->conns[i], SHUT_RDWR);
    pthread_mutex_unlock(&f->mutex);
}

void fake_set(struct fake *f, const char **what, const char *text)
{
    pthread_mutex_lock(&f->mutex);
    *what = text;
    pthread_mutex_unlock(&f->mutex);
}

void fake_stop(struct fake *f)
{
    pthread_mutex_lock(&f->mutex);
    f->stopping = true;
    pthread_mutex_unlock(&f->mutex);
    (void)shutdown(f->listening, SHUT_RDWR);
    (void)pthread_join(f->acceptor, NULL);
    (void)close(f->listening);
    fake_cut(f);
    for (unsigned i = 0; i < atomic_load(&f->n_conns); i++) {
        (void)pthread_join(f->threads[i], NULL);
        (void)close(f->conns[i]);
    }
    free(f->library);
    (void)pthread_mutex_destroy(&f->mutex);
}
