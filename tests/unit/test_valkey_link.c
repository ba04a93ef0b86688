/* One connection that many callers share, over a pair of sockets. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "store/drivers/valkey/net.h"
#include "tap.h"

#define THREADS 50
#define ROUNDS 200
#define LONG_US ((int64_t)20000000)
#define SHORT_US ((int64_t)50000)

/* A link, and the other end of it in the test's hands. */
struct pair {
    struct vk_link *link;
    int server;
    pthread_t thread;
    _Atomic unsigned reads;
    _Atomic unsigned commands;
};

static struct vk_conn *conn_of(int fd)
{
    struct vk_conn *c = calloc(1, sizeof(*c));

    if (c) {
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
        c->fd = fd;
        c->reader = vk_reader_new();
    }
    return c;
}

static void pair_open(struct tap *t, struct pair *p)
{
    int fds[2] = { -1, -1 };

    memset(p, 0, sizeof(*p));
    TAP_EQ(t, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    TAP_EQ(t, vk_link_open(conn_of(fds[0]), &p->link, NULL), BELAY_OK);
    p->server = fds[1];
}

static void pair_close(struct pair *p)
{
    vk_link_unref(p->link);
    (void)close(p->server);
}

/* --- a server that says everything again --- */

static bool send_back(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = send(fd, bytes, n, MSG_NOSIGNAL);
        if (written <= 0)
            return false;
        bytes += written;
        n -= (size_t)written;
    }
    return true;
}

/* Answers every complete ECHO in the buffer with what stands behind its head, which is an
 * answer already; returns how many bytes those were. */
static size_t answer_some(struct pair *p, const char *buf, size_t n, bool *ok)
{
    static const char head[] = "*2\r\n$4\r\nECHO\r\n";
    const size_t len = sizeof(head) - 1;
    size_t done = 0;

    while (*ok && n - done > len && memcmp(buf + done, head, len) == 0) {
        const char *at = buf + done + len, *line = memchr(at, '\n', n - done - len);
        if (!line)
            break;
        size_t payload = (size_t)strtoull(at + 1, NULL, 10);
        size_t all = (size_t)(line + 1 - at) + payload + 2;
        if (n - done - len < all)
            break;
        atomic_fetch_add(&p->commands, 1);
        *ok = send_back(p->server, at, all);
        done += len + all;
    }
    return done;
}

static void *echo_thread(void *arg)
{
    struct pair *p = arg;
    size_t size = (size_t)4 << 20, n = 0;
    char *buf = malloc(size);
    bool ok = buf != NULL;

    while (ok) {
        ssize_t got = recv(p->server, buf + n, size - n, 0);
        if (got <= 0)
            break;
        atomic_fetch_add(&p->reads, 1);
        n += (size_t)got;
        size_t done = answer_some(p, buf, n, &ok);
        memmove(buf, buf + done, n - done);
        n -= done;
    }
    free(buf);
    return NULL;
}

static void echo_start(struct tap *t, struct pair *p)
{
    TAP_EQ(t, pthread_create(&p->thread, NULL, echo_thread, p), 0);
}

static void echo_stop(struct pair *p)
{
    (void)shutdown(p->server, SHUT_RDWR);
    (void)pthread_join(p->thread, NULL);
}

/* --- calls --- */

static void make_echo(struct vk_request *r, struct belay_arena *a, struct bytes text)
{
    vk_request_init(r, a);
    vk_command(r, 2, "ECHO");
    vk_arg(r, text);
}

static belay_rc call(struct vk_link *l, struct vk_request *r, struct vk_reply *replies,
                     int64_t time_us, enum vk_reached *reached, struct belay_error *err)
{
    struct vk_job job = { .bytes = bytes_of(r->bytes, r->len),
                          .n_replies = r->n_commands,
                          .reply = replies,
                          .arena = r->arena,
                          .deadline_us = vk_now_us() + time_us };

    memset(replies, 0, r->n_commands * sizeof(*replies));
    belay_rc rc = vk_link_call(l, &job, err);
    *reached = job.reached;
    return rc;
}

static belay_rc echo(struct vk_link *l, struct bytes text, int64_t time_us, bool *same,
                     enum vk_reached *reached, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    struct vk_reply reply;
    struct vk_request r;

    make_echo(&r, &a, text);
    belay_rc rc = call(l, &r, &reply, time_us, reached, err);
    *same = rc == BELAY_OK && reply.kind == VK_STRING && bytes_eq(reply.b, text);
    return rc;
}

static void one_caller(struct tap *t)
{
    enum vk_reached reached;
    struct pair p;
    bool same;

    pair_open(t, &p);
    echo_start(t, &p);
    for (int i = 0; i < 100; i++) {
        TAP_EQ(t, echo(p.link, bytes_str("hello"), LONG_US, &same, &reached, NULL),
               BELAY_OK);
        TAP_OK(t, same);
        TAP_EQ(t, (int)reached, (int)VK_ANSWERED);
    }
    TAP_EQ(t, vk_link_waiting(p.link), 0);
    echo_stop(&p);
    pair_close(&p);
}

struct caller {
    struct vk_link *link;
    pthread_t thread;
    unsigned number, wrong, failed;
};

static void *call_often(void *arg)
{
    struct caller *c = arg;
    enum vk_reached reached;
    char text[32];
    bool same;

    for (unsigned i = 0; i < ROUNDS; i++) {
        int n = snprintf(text, sizeof(text), "%u-%u", c->number, i);
        c->failed += echo(c->link, bytes_of(text, (size_t)n), LONG_US, &same, &reached,
                          NULL) != BELAY_OK;
        c->wrong += !same;
    }
    return NULL;
}

static void many_callers(struct tap *t)
{
    struct caller callers[THREADS] = { { .link = NULL } };
    unsigned wrong = 0, failed = 0;
    struct pair p;

    pair_open(t, &p);
    echo_start(t, &p);
    for (unsigned i = 0; i < THREADS; i++) {
        callers[i].link = p.link;
        callers[i].number = i;
        TAP_EQ(t, pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(callers[i].thread, NULL);
        wrong += callers[i].wrong;
        failed += callers[i].failed;
    }
    TAP_EQ(t, failed, 0);
    TAP_EQ(t, wrong, 0);
    TAP_EQ(t, atomic_load(&p.commands), THREADS * ROUNDS);
    TAP_OK(t, atomic_load(&p.reads) < THREADS * ROUNDS / 2);
    TAP_EQ(t, vk_link_waiting(p.link), 0);
    echo_stop(&p);
    pair_close(&p);
}

/* More than the socket takes at once, from several sides. */
static void *call_large(void *arg)
{
    struct caller *c = arg;
    size_t size = (size_t)2 << 20;
    char *text = malloc(size);
    enum vk_reached reached;
    bool same;

    memset(text, 'a' + (int)c->number, size);
    for (int i = 0; i < 4; i++) {
        c->failed += echo(c->link, bytes_of(text, size), LONG_US, &same, &reached,
                          NULL) != BELAY_OK;
        c->wrong += !same;
    }
    free(text);
    return NULL;
}

static void large_jobs(struct tap *t)
{
    struct caller callers[4] = { { .link = NULL } };
    struct pair p;

    pair_open(t, &p);
    echo_start(t, &p);
    for (unsigned i = 0; i < COUNT_OF(callers); i++) {
        callers[i].link = p.link;
        callers[i].number = i;
        TAP_EQ(t, pthread_create(&callers[i].thread, NULL, call_large, &callers[i]), 0);
    }
    for (unsigned i = 0; i < COUNT_OF(callers); i++) {
        (void)pthread_join(callers[i].thread, NULL);
        TAP_EQ(t, callers[i].failed, 0);
        TAP_EQ(t, callers[i].wrong, 0);
    }
    echo_stop(&p);
    pair_close(&p);
}

/* --- what goes wrong --- */

static void lateness(struct tap *t)
{
    enum vk_reached reached;
    struct belay_error err;
    struct pair p;
    bool same;

    pair_open(t, &p); /* nobody answers */
    TAP_EQ(t, echo(p.link, bytes_str("x"), SHORT_US, &same, &reached, &err),
           BELAY_UNAVAILABLE);
    TAP_EQ(t, (int)reached, (int)VK_SENT);
    TAP_OK(t, vk_link_is_dead(p.link));
    TAP_EQ(t, echo(p.link, bytes_str("x"), SHORT_US, &same, &reached, &err),
           BELAY_UNAVAILABLE);
    TAP_EQ(t, (int)reached, (int)VK_NOTHING_SENT);
    pair_close(&p);
}

struct patient_caller {
    struct vk_link *link;
    pthread_t thread;
    int64_t time_us;
    belay_rc rc;
    enum vk_reached reached;
};

static void *call_patiently(void *arg)
{
    struct patient_caller *c = arg;
    bool same;

    c->rc = echo(c->link, bytes_str("x"), c->time_us, &same, &c->reached, NULL);
    return NULL;
}

static void start_patient(struct tap *t, struct pair *p, struct patient_caller *c,
                          int64_t time_us)
{
    size_t waiting = vk_link_waiting(p->link);

    *c = (struct patient_caller){ .link = p->link, .time_us = time_us };
    TAP_EQ(t, pthread_create(&c->thread, NULL, call_patiently, c), 0);
    while (vk_link_waiting(p->link) == waiting)
        (void)poll(NULL, 0, 1);
}

/* Reads what one ECHO of "x" takes. */
static bool read_echo(const struct pair *p)
{
    char buf[64];

    return recv(p->server, buf, 21, MSG_WAITALL) == 21;
}

/* Somebody leads and waits for long; who comes meanwhile is queued. */
static void late_followers(struct tap *t)
{
    struct patient_caller leader, follower;
    struct pair p;

    pair_open(t, &p);
    start_patient(t, &p, &leader, LONG_US);
    TAP_OK(t, read_echo(&p));
    start_patient(t, &p, &follower, SHORT_US);
    (void)pthread_join(follower.thread, NULL);
    TAP_EQ(t, follower.rc, BELAY_UNAVAILABLE);
    TAP_EQ(t, (int)follower.reached, (int)VK_NOTHING_SENT);
    TAP_OK(t, !vk_link_is_dead(p.link)); /* it has only left the queue */
    TAP_OK(t, send_back(p.server, "$1\r\nx\r\n", 7));
    (void)pthread_join(leader.thread, NULL);
    TAP_EQ(t, leader.rc, BELAY_OK);
    TAP_EQ(t, vk_link_waiting(p.link), 0);
    pair_close(&p);
}

static void lost_connection(struct tap *t)
{
    struct patient_caller leader, followers[5];
    struct pair p;

    pair_open(t, &p);
    start_patient(t, &p, &leader, LONG_US);
    TAP_OK(t, read_echo(&p));
    for (size_t i = 0; i < COUNT_OF(followers); i++)
        start_patient(t, &p, &followers[i], LONG_US);
    (void)shutdown(p.server, SHUT_RDWR);
    (void)pthread_join(leader.thread, NULL);
    TAP_EQ(t, leader.rc, BELAY_UNAVAILABLE);
    TAP_EQ(t, (int)leader.reached, (int)VK_SENT);
    for (size_t i = 0; i < COUNT_OF(followers); i++) {
        (void)pthread_join(followers[i].thread, NULL);
        TAP_EQ(t, followers[i].rc, BELAY_UNAVAILABLE);
        TAP_EQ(t, (int)followers[i].reached, (int)VK_NOTHING_SENT);
    }
    TAP_EQ(t, vk_link_waiting(p.link), 0);
    pair_close(&p);
}

static void killed(struct tap *t)
{
    struct patient_caller leader;
    struct pair p;

    pair_open(t, &p);
    start_patient(t, &p, &leader, LONG_US);
    vk_link_kill(p.link, "it was time");
    (void)pthread_join(leader.thread, NULL);
    TAP_EQ(t, leader.rc, BELAY_UNAVAILABLE);
    TAP_OK(t, vk_link_is_dead(p.link));
    pair_close(&p);
}

/* What nobody asked for would be taken for the answer to the next question. */
static void unasked_answers(struct tap *t)
{
    static const char *const texts[] = { "$1\r\nx\r\n:1\r\n", "$1\r\nx\r\n-", "!",
                                         ":1" };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        enum vk_reached reached;
        struct patient_caller c;
        struct pair p;
        bool same;

        pair_open(t, &p);
        start_patient(t, &p, &c, i == 3 ? SHORT_US : LONG_US);
        TAP_OK(t, read_echo(&p));
        TAP_OK(t, send_back(p.server, texts[i], strlen(texts[i])));
        (void)pthread_join(c.thread, NULL);
        TAP_EQ(t, c.rc, i < 2 ? BELAY_OK : BELAY_UNAVAILABLE);
        TAP_EQ(t, echo(p.link, bytes_str("x"), SHORT_US, &same, &reached, NULL),
               BELAY_UNAVAILABLE);
        pair_close(&p);
    }
}

/* --- jobs of several parts, and posted ones --- */

static void several_parts(struct tap *t)
{
    static const char echo_a[] = "*2\r\n$4\r\nECHO\r\n$1\r\na\r\n";
    static const char echo_b[] = "*2\r\n$4\r\nECHO\r\n$1\r\nb\r\n";
    static const char echo_c[] = "*2\r\n$4\r\nECHO\r\n$1\r\nc\r\n";
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    struct vk_reply reply = { .kind = VK_NIL };
    struct vk_job job = { .before = bytes_str(echo_a),
                          .bytes = bytes_str(echo_b),
                          .n_replies = 1,
                          .after = bytes_str(echo_c),
                          .reply = &reply,
                          .arena = &a,
                          .deadline_us = vk_now_us() + LONG_US };
    struct pair p;

    pair_open(t, &p);
    echo_start(t, &p);
    TAP_EQ(t, vk_link_call(p.link, &job, NULL), BELAY_OK);
    TAP_OK(t, bytes_eq(reply.b, bytes_str("b")));
    TAP_OK(t, bytes_eq(job.waited.b, bytes_str("c")));
    echo_stop(&p);
    pair_close(&p);
}

static void posted(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    enum vk_reached reached;
    struct vk_request r;
    struct pair p;
    bool same;

    pair_open(t, &p);
    make_echo(&r, &a, bytes_str("posted"));
    echo_start(t, &p);
    for (int i = 0; i < 300; i++)
        vk_link_post(p.link, &r, 0);
    arena_release(&a); /* it has been copied */
    TAP_EQ(t, echo(p.link, bytes_str("mine"), LONG_US, &same, &reached, NULL),
           BELAY_OK);
    TAP_OK(t, same);
    TAP_EQ(t, atomic_load(&p.commands), 301);
    make_echo(&r, &a, bytes_str("posted"));
    vk_link_post(p.link, &r, 0);
    vk_link_drain(p.link, vk_now_us() + LONG_US);
    TAP_EQ(t, atomic_load(&p.commands), 302);
    TAP_EQ(t, vk_link_waiting(p.link), 0);
    echo_stop(&p);
    vk_link_post(p.link, &r, 0);
    vk_link_post(p.link, &r, 0); /* nobody is there any more */
    vk_link_drain(p.link, vk_now_us() + LONG_US);
    pair_close(&p);
}

/* While somebody leads, what is posted waits to be sent; once is enough. */
static void tags(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    struct patient_caller leader;
    struct vk_request r;
    struct pair p;

    pair_open(t, &p);
    make_echo(&r, &a, bytes_str("y"));
    start_patient(t, &p, &leader, LONG_US);
    TAP_OK(t, read_echo(&p));
    for (unsigned i = 0; i < 10; i++) {
        vk_link_post(p.link, &r, 1);
        vk_link_post(p.link, &r, VK_TAGS);
    }
    TAP_EQ(t, vk_link_waiting(p.link), 3);
    TAP_OK(t, send_back(p.server, "$1\r\nx\r\n", 7));
    (void)pthread_join(leader.thread, NULL);
    TAP_OK(t, read_echo(&p) && read_echo(&p)); /* the leader has sent them */
    vk_link_post(p.link, &r, 1);               /* that is another one */
    TAP_OK(t, read_echo(&p));
    pair_close(&p);
}

static const struct tap_case cases[] = {
    { "a lone caller has its answers", one_caller },
    { "threads: many callers share a connection, and few writes", many_callers },
    { "threads: jobs that are larger than the socket's buffer", large_jobs },
    { "an answer that does not come in time ends the connection", lateness },
    { "threads: who was not sent in time leaves, and harms nobody", late_followers },
    { "threads: a lost connection tells everybody what was sent", lost_connection },
    { "threads: a connection can be ended from outside", killed },
    { "threads: an answer without a question ends the connection", unasked_answers },
    { "what stands before and behind a job has its own answers", several_parts },
    { "threads: who posts does not wait, and what was posted arrives", posted },
    { "threads: of equal tags one is sent", tags },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
