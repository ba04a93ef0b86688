/* Servers: meeting them, losing them, finding the one that has a namespace. */
#include <poll.h>
#include <stdlib.h>

#include "base/hash.h"
#include "store/drivers/valkey/net.h"
#include "store/wake.h"
#include "tap.h"
#include "valkey_fake.h"

static const struct schema no_rows;

static struct valkey_options options_of(const struct fake *f)
{
    return (struct valkey_options){ .host = "127.0.0.1",
                                    .port = f->port,
                                    .request_timeout_ms = 5000,
                                    .retries = 3,
                                    .retry_first_ms = 1,
                                    .retry_jitter = 0 };
}

static belay_rc open_with(const struct valkey_options *o, struct vk_store **out,
                          struct belay_error *err)
{
    struct driver_config config = { .schema = &no_rows,
                                    .clock = clock_system(),
                                    .random = random_system() };
    struct driver *d = NULL;
    belay_rc rc = valkey_open(&d, o, &config, err);

    *out = (struct vk_store *)d;
    return rc;
}

static struct vk_store *open_store(struct tap *t, const struct fake *f)
{
    struct valkey_options o = options_of(f);
    struct belay_error err = { .code = 0 };
    struct vk_store *s = NULL;

    if (!TAP_EQ(t, open_with(&o, &s, &err), BELAY_OK))
        printf("# %s\n", err.message);
    return s;
}

static void close_store(struct vk_store *s)
{
    if (s)
        driver_close(&s->d);
}

/* One command; the answer's number, or -1. */
static belay_rc ask(struct vk_store *s, const char *ns, const char *command,
                    enum vk_again again, int64_t *out, enum vk_reached *reached,
                    struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    struct vk_reply reply = { .kind = VK_NIL };
    struct vk_request r;

    vk_request_init(&r, &a);
    vk_command(&r, 1, command);
    belay_rc rc = vk_call(s, bytes_str(ns), &r, again, &reply, reached, err);
    *out = rc == BELAY_OK && reply.kind == VK_INTEGER ? reply.i : -1;
    return rc;
}

/* Asks and checks that the answer is a number. */
static void expect(struct tap *t, struct vk_store *s, const char *command, int64_t want)
{
    struct belay_error err = { .code = 0 };
    enum vk_reached reached;
    int64_t got = -1;

    if (!TAP_EQ(t, ask(s, "ns", command, VK_ONCE, &got, &reached, &err), BELAY_OK))
        printf("# %s\n", err.message);
    TAP_EQ(t, got, want);
    TAP_EQ(t, (int)reached, (int)VK_ANSWERED);
}

/* --- meeting a server --- */

static void meets(struct tap *t)
{
    struct fake f;

    TAP_OK(t, fake_start(&f, NULL, NULL));
    struct vk_store *s = open_store(t, &f);
    if (s) {
        TAP_EQ(t, (int)driver_durability(&s->d), (int)DURABILITY_DURABLE);
        TAP_EQ(t, atomic_load(&f.n_loads), 1);
        TAP_STR(t, f.library, vk_library_text);
    }
    close_store(s);
    s = open_store(t, &f);
    TAP_EQ(t, atomic_load(&f.n_loads), 1); /* it is there */
    close_store(s);
    fake_stop(&f);
}

/* What is different about the server, and what that means. */
static const struct {
    const char *version, *role, *appendonly, *appendfsync, *policy, *info;
    bool relaxed;
    belay_rc code;
    const char *reason;
} meetings[] = {
    { "7.0.0", "master", "yes", "always", "noeviction", "", false, BELAY_OK, "" },
    { "10.1.0", "master", "yes", "always", "noeviction", "", false, BELAY_OK, "" },
    { "6.2.7", "master", "yes", "always", "noeviction", "", false,
      BELAY_UNSUPPORTED_FORMAT, "" },
    { "x", "master", "yes", "always", "noeviction", "", false, BELAY_UNSUPPORTED_FORMAT,
      "" },
    { "7.0.0", "slave", "yes", "always", "noeviction", "", false, BELAY_UNAVAILABLE,
      "replica" },
    { "7.0.0", "master", "no", "always", "noeviction", "", false, BELAY_UNAVAILABLE,
      "durability" },
    { "7.0.0", "master", "yes", "everysec", "noeviction", "", false, BELAY_UNAVAILABLE,
      "durability" },
    { "7.0.0", "master", "yes", "always", "allkeys-lru", "", false, BELAY_UNAVAILABLE,
      "durability" },
    { "7.0.0", "master", "yes", NULL, "noeviction", "", false, BELAY_UNAVAILABLE,
      "durability" },
    { "7.0.0", "master", "yes", NULL, "noeviction", "", true, BELAY_OK, "" },
    { "7.0.0", "master", "no", "no", "allkeys-lru", "", true, BELAY_OK, "" },
};

static void judges(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(meetings); i++) {
        struct belay_error err = { .code = 0 };
        struct vk_store *s = NULL;
        struct fake f;

        TAP_OK(t, fake_start(&f, NULL, NULL));
        f.version = meetings[i].version;
        f.role = meetings[i].role;
        f.appendonly = meetings[i].appendonly;
        f.appendfsync = meetings[i].appendfsync;
        f.policy = meetings[i].policy;
        struct valkey_options o = options_of(&f);
        o.relaxed = meetings[i].relaxed;
        if (!TAP_EQ(t, open_with(&o, &s, &err), meetings[i].code) ||
            !TAP_STR(t, err.reason, meetings[i].reason))
            printf("# meeting %zu: %s\n", i, err.message);
        if (s)
            TAP_EQ(t, (int)driver_durability(&s->d),
                   (int)(o.relaxed ? DURABILITY_RELAXED : DURABILITY_DURABLE));
        TAP_EQ(t, atomic_load(&f.n_conns), 1); /* nobody asks twice */
        close_store(s);
        fake_stop(&f);
    }
}

static void logs_in(struct tap *t)
{
    static const struct {
        const char *user, *password;
        belay_rc code;
    } rows[] = { { NULL, "sesame", BELAY_OK },
                 { "alice", "sesame", BELAY_OK },
                 { "alice", "hunter2", BELAY_UNAVAILABLE },
                 { NULL, NULL, BELAY_UNAVAILABLE } };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct belay_error err = { .code = 0 };
        struct vk_store *s = NULL;
        struct fake f;

        TAP_OK(t, fake_start(&f, NULL, NULL));
        f.password = "sesame";
        struct valkey_options o = options_of(&f);
        o.user = rows[i].user;
        o.password = rows[i].password;
        TAP_EQ(t, open_with(&o, &s, &err), rows[i].code);
        TAP_STR(t, err.reason, rows[i].code ? "login" : "");
        TAP_OK(t, !strstr(err.message, "hunter2"));
        TAP_EQ(t, atomic_load(&f.n_conns), 1);
        close_store(s);
        fake_stop(&f);
    }
}

static void waits_for_loading(struct tap *t)
{
    struct valkey_options o;
    struct belay_error err = { .code = 0 };
    struct vk_store *s = NULL;
    struct fake f;

    TAP_OK(t, fake_start(&f, NULL, NULL));
    f.loading = true;
    o = options_of(&f);
    TAP_EQ(t, open_with(&o, &s, &err), BELAY_UNAVAILABLE);
    TAP_STR(t, err.reason, "");
    TAP_EQ(t, atomic_load(&f.n_conns), 1 + o.retries);
    fake_stop(&f);
}

static void refuses_options(struct tap *t)
{
    struct belay_error err = { .code = 0 };
    struct vk_store *s = NULL;
    struct fake f;

    TAP_OK(t, fake_start(&f, NULL, NULL));
    struct valkey_options o = options_of(&f);
    o.prefix = "a:b";
    TAP_EQ(t, open_with(&o, &s, &err), BELAY_INVALID);
    TAP_STR(t, err.entity, "prefix");
    o.prefix = "app-1.x_Y";
    o.database = 3;
    TAP_EQ(t, open_with(&o, &s, &err), BELAY_OK);
    close_store(s);
    f.info = "cluster_enabled:1\r\n";
    TAP_EQ(t, open_with(&o, &s, &err), BELAY_INVALID);
    fake_stop(&f);
}

/* Whoever listens there, it is no server. */
static void nobody_there(struct tap *t)
{
    struct valkey_options o;
    struct belay_error err = { .code = 0 };
    struct vk_store *s = NULL;
    struct fake f;

    TAP_OK(t, fake_start(&f, NULL, NULL));
    o = options_of(&f);
    fake_stop(&f);
    TAP_EQ(t, open_with(&o, &s, &err), BELAY_UNAVAILABLE);
    TAP_STR(t, err.reason, "");
    o.host = "name.invalid";
    TAP_EQ(t, open_with(&o, &s, &err), BELAY_UNAVAILABLE);
    o.host = "/no/such/socket";
    TAP_EQ(t, open_with(&o, &s, &err), BELAY_UNAVAILABLE);
}

/* --- losing a server --- */

/* "ONCE" and "AGAIN" lose their connection the first time; "WELL" is answered. */
static const char *cut_first(struct fake *f, const struct bytes *args, size_t n)
{
    _Atomic unsigned *seen = f->arg;

    (void)n;
    if (bytes_eq(args[0], bytes_str("WELL")))
        return ":7\r\n";
    return atomic_fetch_add(seen, 1) == 0 ? FAKE_CUT : ":8\r\n";
}

static void sends_again(struct tap *t)
{
    _Atomic unsigned seen = 0;
    enum vk_reached reached;
    struct belay_error err;
    int64_t got = 0;
    struct fake f;

    TAP_OK(t, fake_start(&f, cut_first, &seen));
    struct vk_store *s = open_store(t, &f);
    if (!s)
        return;
    expect(t, s, "WELL", 7);
    TAP_EQ(t, ask(s, "ns", "ONCE", VK_ONCE, &got, &reached, &err), BELAY_UNAVAILABLE);
    TAP_EQ(t, (int)reached, (int)VK_SENT);
    TAP_EQ(t, atomic_load(&seen), 1);
    atomic_store(&seen, 0);
    TAP_EQ(t, ask(s, "ns", "AGAIN", VK_AGAIN, &got, &reached, &err), BELAY_OK);
    TAP_EQ(t, got, 8);
    TAP_EQ(t, atomic_load(&seen), 2);
    /* A connection that was lost while nobody used it harms nobody. */
    for (int i = 0; i < 20; i++) {
        fake_cut(&f);
        expect(t, s, "WELL", 7);
    }
    close_store(s);
    fake_stop(&f);
}

static const char *never(struct fake *f, const struct bytes *args, size_t n)
{
    (void)f;
    (void)args;
    (void)n;
    return FAKE_SILENCE;
}

static void gives_up(struct tap *t)
{
    struct valkey_options o;
    enum vk_reached reached;
    struct belay_error err;
    struct vk_store *s = NULL;
    int64_t got = 0;
    struct fake f;

    TAP_OK(t, fake_start(&f, never, NULL));
    o = options_of(&f);
    o.request_timeout_ms = 200;
    TAP_EQ(t, open_with(&o, &s, &err), BELAY_OK);
    int64_t began_us = vk_now_us();
    TAP_EQ(t, ask(s, "ns", "WRITE", VK_ONCE, &got, &reached, &err), BELAY_UNAVAILABLE);
    TAP_EQ(t, (int)reached, (int)VK_SENT);
    TAP_EQ(t, ask(s, "ns", "READ", VK_AGAIN, &got, &reached, &err), BELAY_UNAVAILABLE);
    int64_t took_us = vk_now_us() - began_us;
    TAP_OK(t, took_us >= 400000 && took_us < 5000000);
    close_store(s);
    fake_stop(&f);
}

static const char *seven(struct fake *f, const struct bytes *args, size_t n)
{
    (void)f;
    (void)args;
    (void)n;
    return ":7\r\n";
}

static void notices_another_life(struct tap *t)
{
    struct vk_lineage line;
    uint64_t first = 0, again = 0;
    struct fake f;

    TAP_OK(t, fake_start(&f, seven, NULL));
    struct vk_store *s = open_store(t, &f);
    if (!s)
        return;
    struct bytes ns = bytes_str("ns");
    TAP_EQ(t, vk_lineage(s, ns, &line, &first, NULL), BELAY_OK);
    TAP_STR(t, line.replid, "aaaa");
    TAP_STR(t, line.replid2, "0000");
    TAP_STR(t, line.run_id, "run1");
    fake_cut(&f);
    expect(t, s, "ANY", 7);
    TAP_EQ(t, vk_lineage(s, ns, &line, &again, NULL), BELAY_OK);
    TAP_EQ(t, again, first); /* connected anew, the same life */
    fake_set(&f, &f.run_id, "run2");
    fake_set(&f, &f.replid, "bbbb");
    fake_cut(&f);
    expect(t, s, "ANY", 7);
    TAP_EQ(t, vk_lineage(s, ns, &line, &again, NULL), BELAY_OK);
    TAP_OK(t, again != first);
    TAP_STR(t, line.run_id, "run2");
    TAP_STR(t, line.replid, "bbbb");
    close_store(s);
    fake_stop(&f);
}

/* --- the functions --- */

/* A server that loses its functions once. */
static const char *function_once(struct fake *f, const struct bytes *args, size_t n)
{
    const char *text = ":7\r\n";

    (void)args;
    (void)n;
    pthread_mutex_lock(&f->mutex);
    if (!f->library)
        text = "-ERR Function not found\r\n";
    pthread_mutex_unlock(&f->mutex);
    return text;
}

static void forget_library(struct fake *f, const char *text)
{
    pthread_mutex_lock(&f->mutex);
    free(f->library);
    f->library = text ? strdup(text) : NULL;
    pthread_mutex_unlock(&f->mutex);
}

static void loads_functions(struct tap *t)
{
    enum vk_reached reached;
    struct belay_error err;
    int64_t got = 0;
    struct fake f;

    TAP_OK(t, fake_start(&f, function_once, NULL));
    forget_library(&f, "#!lua name=belay6\n-- revision 0\n"); /* an older one */
    struct vk_store *s = open_store(t, &f);
    if (!s)
        return;
    TAP_STR(t, f.library, vk_library_text);
    forget_library(&f, NULL);
    expect(t, s, "FCALL", 7);
    TAP_EQ(t, atomic_load(&f.n_loads), 2);
    f.may_load = false;
    forget_library(&f, NULL);
    TAP_EQ(t, ask(s, "ns", "FCALL", VK_ONCE, &got, &reached, &err), BELAY_DENIED);
    TAP_STR(t, err.reason, "functions");
    close_store(s);
    /* Who may not load works with what is there; a newer one stays. */
    forget_library(&f, "#!lua name=belay6\n-- revision 999999\n");
    unsigned loads = atomic_load(&f.n_loads);
    s = open_store(t, &f);
    expect(t, s, "FCALL", 7);
    TAP_EQ(t, atomic_load(&f.n_loads), loads);
    close_store(s);
    fake_stop(&f);
}

/* --- who is told first --- */

static const char *five(struct fake *f, const struct bytes *args, size_t n)
{
    (void)f;
    (void)args;
    (void)n;
    return ":5\r\n";
}

/* A server writes to those first whom it has answered last: who publishes is answered once
 * before, and nobody minds how. */
static void tells_others_first(struct tap *t)
{
    static const char *const pongs[] = { "+PONG\r\n", "-NOPERM no\r\n" };
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    struct fake f;

    TAP_OK(t, fake_start(&f, five, NULL));
    struct vk_store *s = open_store(t, &f);
    for (size_t i = 0; i < COUNT_OF(pongs) && s; i++) {
        struct vk_reply reply = { .kind = VK_NIL };
        enum vk_reached reached = VK_NOTHING_SENT;
        struct vk_request r;

        expect(t, s, "WRITE", 5);
        unsigned before = atomic_load(&f.n_pings);
        atomic_store(&f.pong, pongs[i]);
        vk_request_init(&r, &a);
        vk_command(&r, 1, "WRITE");
        r.publishes = true;
        TAP_EQ(t, vk_call(s, bytes_str("ns"), &r, VK_ONCE, &reply, &reached, NULL),
               BELAY_OK);
        TAP_EQ(t, reply.i, 5);
        TAP_EQ(t, (int)reached, (int)VK_ANSWERED);
        TAP_EQ(t, atomic_load(&f.n_pings), before + 1);
        expect(t, s, "WRITE", 5);
        TAP_EQ(t, atomic_load(&f.n_pings), before + 1); /* the others are not */
    }
    close_store(s);
    fake_stop(&f);
}

/* --- answers that concern the whole request --- */

static const char *later(struct fake *f, const struct bytes *args, size_t n)
{
    _Atomic unsigned *seen = f->arg;
    static const char *const texts[] = { "-LOADING Redis is loading\r\n",
                                         "-TRYAGAIN Multiple keys request\r\n",
                                         "-CLUSTERDOWN The cluster is down\r\n" };
    unsigned i = atomic_fetch_add(seen, 1);

    (void)args;
    (void)n;
    return i < COUNT_OF(texts) ? texts[i] : ":9\r\n";
}

static void tries_later(struct tap *t)
{
    _Atomic unsigned seen = 0;
    struct fake f;

    TAP_OK(t, fake_start(&f, later, &seen));
    struct vk_store *s = open_store(t, &f);
    if (s)
        expect(t, s, "WRITE", 9);
    close_store(s);
    fake_stop(&f);
}

static const char *waits(struct fake *f, const struct bytes *args, size_t n)
{
    (void)n;
    return bytes_eq(args[0], bytes_str("WAIT")) ? f->arg : ":7\r\n";
}

static void waits_for_replicas(struct tap *t)
{
    static const char *const answers[] = { ":2\r\n", ":1\r\n", "-ERR no\r\n" };

    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        enum vk_reached reached;
        struct belay_error err = { .code = 0 };
        struct vk_store *s = NULL;
        char text[16];
        int64_t got = 0;
        struct fake f;

        (void)snprintf(text, sizeof(text), "%s", answers[i]);
        TAP_OK(t, fake_start(&f, waits, text));
        struct valkey_options o = options_of(&f);
        o.wait_replicas = 2;
        TAP_EQ(t, open_with(&o, &s, &err), BELAY_OK);
        TAP_EQ(t, ask(s, "ns", "WRITE", VK_ONCE, &got, &reached, &err),
               i == 0 ? BELAY_OK : BELAY_UNAVAILABLE);
        TAP_EQ(t, (int)reached, i == 0 ? (int)VK_ANSWERED : (int)VK_SENT);
        TAP_EQ(t, atomic_load(&f.n_answers), 2);
        TAP_EQ(t, ask(s, "ns", "READ", VK_AGAIN, &got, &reached, &err), BELAY_OK);
        TAP_EQ(t, atomic_load(&f.n_answers), 3); /* a read waits for nobody */
        close_store(s);
        fake_stop(&f);
    }
}

/* --- a cluster of two --- */

struct two {
    struct fake a, b;
    char slots[300], moved[64], ask[64];
    _Atomic bool b_has_it, migrating;
    _Atomic unsigned asked;
};

static const char *node_answer(struct fake *f, const struct bytes *args, size_t n)
{
    struct two *two = f->arg;
    bool has = (f == &two->b) == atomic_load(&two->b_has_it);

    (void)n;
    if (bytes_eq(args[0], bytes_str("CLUSTER")))
        return two->slots;
    if (bytes_eq(args[0], bytes_str("ASKING"))) {
        atomic_fetch_add(&two->asked, 1);
        return "+OK\r\n";
    }
    if (f == &two->a && atomic_load(&two->migrating))
        return two->ask;
    if (f == &two->b && atomic_load(&two->migrating))
        return ":2\r\n";
    if (!has)
        return two->moved;
    return f == &two->a ? ":1\r\n" : ":2\r\n";
}

static bool start_two(struct two *two)
{
    memset(two, 0, sizeof(*two));
    if (!fake_start(&two->a, node_answer, two) ||
        !fake_start(&two->b, node_answer, two))
        return false;
    two->a.info = two->b.info = "cluster_enabled:1\r\n";
    two->b.run_id = "run9";
    (void)snprintf(two->slots, sizeof(two->slots),
                   "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$0\r\n\r\n:%u\r\n$1\r\nx\r\n",
                   two->a.port);
    (void)snprintf(two->moved, sizeof(two->moved), "-MOVED 1 127.0.0.1:%u\r\n",
                   two->b.port);
    (void)snprintf(two->ask, sizeof(two->ask), "-ASK 1 127.0.0.1:%u\r\n", two->b.port);
    return true;
}

static void follows(struct tap *t)
{
    struct vk_lineage line;
    uint64_t at_a = 0, at_b = 0;
    struct two two;

    TAP_OK(t, start_two(&two));
    struct vk_store *s = open_store(t, &two.a);
    if (!s)
        return;
    expect(t, s, "WRITE", 1);
    TAP_EQ(t, vk_lineage(s, bytes_str("ns"), &line, &at_a, NULL), BELAY_OK);
    atomic_store(&two.migrating, true);
    expect(t, s, "WRITE", 2);
    TAP_EQ(t, atomic_load(&two.asked), 1);
    atomic_store(&two.migrating, false);
    expect(t, s, "WRITE", 1); /* an ASK is for once */
    atomic_store(&two.b_has_it, true);
    expect(t, s, "WRITE", 2);
    unsigned answers = atomic_load(&two.a.n_answers);
    expect(t, s, "WRITE", 2);
    TAP_EQ(t, atomic_load(&two.a.n_answers), answers); /* a MOVED is for good */
    TAP_EQ(t, vk_lineage(s, bytes_str("ns"), &line, &at_b, NULL), BELAY_OK);
    TAP_OK(t, at_a != at_b);
    TAP_STR(t, line.run_id, "run9");
    TAP_EQ(t, atomic_load(&two.b.n_loads), 1);
    close_store(s);
    fake_stop(&two.a);
    fake_stop(&two.b);
}

/* The node is gone; the others know who has its slots. */
static void finds_another(struct tap *t)
{
    enum vk_reached reached;
    struct belay_error err;
    int64_t got = 0;
    struct two two;

    TAP_OK(t, start_two(&two));
    struct valkey_options o = options_of(&two.a);
    struct vk_store *s = NULL;
    struct vk_node *b = NULL;
    TAP_EQ(t, open_with(&o, &s, &err), BELAY_OK);
    if (!s)
        return;
    TAP_EQ(t, vk_node_at(s, "127.0.0.1", two.b.port, &b, NULL), BELAY_OK);
    expect(t, s, "WRITE", 1);
    (void)snprintf(two.slots, sizeof(two.slots),
                   "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
                   two.b.port);
    atomic_store(&two.b_has_it, true);
    fake_stop(&two.a);
    TAP_EQ(t, ask(s, "ns", "READ", VK_AGAIN, &got, &reached, &err), BELAY_OK);
    TAP_EQ(t, got, 2);
    close_store(s);
    fake_stop(&two.b);
}

/* --- many callers --- */

struct caller {
    struct vk_store *s;
    pthread_t thread;
    unsigned wrong;
    _Atomic bool *stop;
};

static void *call_often(void *arg)
{
    struct caller *c = arg;
    enum vk_reached reached;
    int64_t got;

    while (!atomic_load(c->stop)) {
        belay_rc rc = ask(c->s, "ns", "READ", VK_AGAIN, &got, &reached, NULL);
        c->wrong += rc != BELAY_OK || got != 7;
    }
    return NULL;
}

static void many_callers(struct tap *t)
{
    struct caller callers[20] = { { .s = NULL } };
    _Atomic bool stop = false;
    struct fake f;

    TAP_OK(t, fake_start(&f, seven, NULL));
    struct vk_store *s = open_store(t, &f);
    if (!s)
        return;
    for (size_t i = 0; i < COUNT_OF(callers); i++) {
        callers[i] = (struct caller){ .s = s, .stop = &stop };
        TAP_EQ(t, pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < 10; i++) {
        unsigned answers = atomic_load(&f.n_answers);
        while (atomic_load(&f.n_answers) < answers + 100)
            (void)poll(NULL, 0, 1);
        fake_cut(&f);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < COUNT_OF(callers); i++) {
        (void)pthread_join(callers[i].thread, NULL);
        TAP_EQ(t, callers[i].wrong, 0);
    }
    close_store(s);
    fake_stop(&f);
}

static const struct tap_case cases[] = {
    { "a server is checked, and given the functions", meets },
    { "a server that will not do is refused, and not asked again", judges },
    { "a login is made, a refused one is not tried again, no password is told",
      logs_in },
    { "a server that loads its data is asked again", waits_for_loading },
    { "a prefix or a database that cannot be is invalid", refuses_options },
    { "without a server there is no store", nobody_there },
    { "a read is sent again, a write that may have arrived is not", sends_again },
    { "no request takes longer than it may", gives_up },
    { "another life of the server has another generation", notices_another_life },
    { "functions are loaded when they are missing or old", loads_functions },
    { "who publishes is answered behind those whom it tells", tells_others_first },
    { "what the server cannot do yet is sent again", tries_later },
    { "a write waits for replicas, and its outcome is unknown without",
      waits_for_replicas },
    { "a namespace that has moved is followed", follows },
    { "when a node is gone another one is asked for the map", finds_another },
    { "threads: many callers outlive cut connections", many_callers },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
