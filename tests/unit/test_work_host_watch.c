/* The host as its fleet knows it (host_watch.h): with real processes that are killed. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <belay/fleet.h>

#include "fakehost.h"
#include "test_work_exec_time.h"
#include "work/host_watch.h"

#define FLEET "watched"

/* A handle that watches, in a fleet of its own. */
struct bench {
    struct lab l;
    char dir[32];
    struct host *host;
    struct fake_host as; /* in whose name the child's leases are taken */
};

static bool bench_open(struct bench *b, struct work *w)
{
    *b = (struct bench){ .dir = "/dev/shm/belay-hw.XXXXXX", .as = fake_host("") };
    const struct host_watch_options options = { .fleet = FLEET,
                                                .dir = b->dir,
                                                .binds = true };

    return lab_open(&b->l, w) && TAP_OK(w->t, mkdtemp(b->dir) != NULL) &&
           WORK_RC(w,
                   host_watch_open(&b->host, w->space, LAB_GRACE_MS, &options, &w->err),
                   BELAY_OK);
}

static void bench_close(struct bench *b)
{
    host_watch_close(b->host);
    TAP_OK(b->l.w->t, rmdir(b->dir) == 0); /* the last one leaves nothing behind */
    lab_close(&b->l);
}

/* --- another member --- */

struct member {
    pid_t pid;
    struct belay_identity id;
};

static struct belay_fleet *join(const char *dir)
{
    const struct belay_fleet_options options = { .size = sizeof(options),
                                                 .flags = BELAY_FLEET_MUST_EXIST,
                                                 .dir = dir,
                                                 .label = "bound" };
    struct belay_fleet *f = NULL;

    return belay_fleet_join(FLEET, &options, &f, NULL) == BELAY_OK ? f : NULL;
}

#define LIVE "--live" /* and a directory: as the program of a member */

/* Tells standard output who it is, and waits to be killed. */
static int live(const char *dir)
{
    (void)alarm(60);
    struct belay_identity id = { .size = sizeof(id) };
    struct belay_fleet *f = join(dir);

    if (!f || belay_identity_get(f, &id, NULL) ||
        write(STDOUT_FILENO, &id, sizeof(id)) < 0)
        return 1;
    for (;;)
        (void)pause();
}

/* A process that binds its leases; as it joined. */
static bool member_start(struct bench *b, struct member *m)
{
    int up[2];

    *m = (struct member){ .pid = -1 };
    if (pipe2(up, O_CLOEXEC))
        return TAP_OK(b->l.w->t, false);
    (void)fflush(NULL);
    /* A program of its own: a fork has the locks of threads that it has not. */
    m->pid = fork();
    if (m->pid == 0) {
        (void)dup2(up[1], STDOUT_FILENO);
        (void)execl("/proc/self/exe", "member", LIVE, b->dir, (char *)NULL);
        _exit(1);
    }
    (void)close(up[1]);
    bool told = read(up[0], &m->id, sizeof(m->id)) == (ssize_t)sizeof(m->id);
    (void)close(up[0]);
    b->as.host.self = (struct host_self){ .host = bytes_str(m->id.host),
                                          .boot = bytes_str(m->id.boot),
                                          .member = bytes_str(m->id.member),
                                          .pid = m->id.pid,
                                          .process_start = m->id.process_start };
    return TAP_OK(b->l.w->t, told);
}

static void member_kill(struct member *m)
{
    if (m->pid > 0 && kill(m->pid, SIGKILL) == 0)
        (void)waitpid(m->pid, NULL, 0);
    m->pid = -1;
}

/* Takes what there is in its name. */
static const char *take_as_member(struct bench *b)
{
    (void)fake_host_join(&b->as.host);
    b->l.site.host = &b->as.host;
    const char *id = take(&b->l, "w1").execution_id;
    b->l.site.host = b->host;
    return id;
}

static bool settle(struct bench *b, uint64_t mark)
{
    bool again = false;

    WORK_RC(b->l.w, host_settle(b->host, mark, &again, &b->l.w->err), BELAY_OK);
    return again;
}

/* Joins; until the thread has made its first look. */
static void join_calmly(struct bench *b)
{
    TAP_OK(b->l.w->t, host_join(b->host));
    for (int i = 0; i < 5000 && host_mark(b->host) == 0; i++)
        (void)usleep(1000);
    TAP_EQ(b->l.w->t, host_mark(b->host), 1);
}

/* --- settling --- */

static void asks_once(struct work *w)
{
    struct bench b;
    struct member m;

    if (!bench_open(&b, w))
        return;
    join_calmly(&b);
    TAP_OK(w->t, settle(&b, 0)); /* there may be something since */
    if (member_start(&b, &m)) {
        uint64_t mark = host_mark(b.host);
        if (work_is_traced(w))
            trace_reset(w->driver);
        for (int i = 0; i < 100; i++)
            TAP_OK(w->t, !settle(&b, mark)); /* it lives */
        if (work_is_traced(w)) {
            struct trace_counts n = trace_counts(w->driver);
            TAP_EQ(w->t, n.reads + n.commits, 0);
        }
    }
    member_kill(&m);
    bench_close(&b);
}

/* By who asks, whatever the thread does meanwhile. */
static void settles_at_once(struct work *w)
{
    struct bench b;
    struct member m;

    if (!bench_open(&b, w))
        return;
    TAP_OK(w->t, host_join(b.host));
    for (int round = 0; round < 5; round++) {
        const char *id = submit(&b.l, (struct belay_submission){ 0 });
        if (!member_start(&b, &m))
            break;
        TAP_STR(w->t, take_as_member(&b), id);
        TAP_STR(w->t, take(&b.l, "w2").execution_id, "");
        member_kill(&m);
        struct belay_work second = take(&b.l, "w2"); /* a claim that does not wait */
        TAP_STR(w->t, second.execution_id, id);
        TAP_EQ(w->t, second.fence, 2);
        WORK_RC(w, complete(&b.l, &second), BELAY_OK);
    }
    TAP_EQ(w->t, told(&b.l, "\"reason\":\"holder_dead\""), 5);
    bench_close(&b);
}

/* Somebody has swept them from the fleet already, as who takes a seat from them does. */
static void misses_nobody(struct work *w)
{
    struct bench b;
    struct member m;

    if (!bench_open(&b, w))
        return;
    TAP_OK(w->t, settle(&b, 0));
    const char *id = submit(&b.l, (struct belay_submission){ 0 });
    bool is_there = member_start(&b, &m);
    struct belay_fleet *other = join(b.dir);
    if (TAP_OK(w->t, is_there && other)) {
        TAP_STR(w->t, take_as_member(&b), id);
        TAP_STR(w->t, take(&b.l, "w2").execution_id, "");
        member_kill(&m);
        WORK_RC(w, belay_fleet_sweep(other, NULL, &w->err), BELAY_OK);
        TAP_STR(w->t, take(&b.l, "w2").execution_id, id);
    }
    member_kill(&m);
    belay_fleet_leave(other);
    bench_close(&b);
}

/* --- seats --- */

/* Who takes a seat from the dead sweeps them: what they held goes before, and then those are
 * told who looked while they lived, and sleep. */
static void seats_come_after(struct work *w)
{
    struct host_seat seat = { .label = "seat", .label_len = 4 };
    struct belay_notify word;
    struct bench b;
    struct member m;

    if (!bench_open(&b, w))
        return;
    join_calmly(&b);
    struct belay_fleet *other = join(b.dir);
    const char *id = submit(&b.l, (struct belay_submission){ 0 });
    if (member_start(&b, &m) && TAP_OK(w->t, other != NULL)) {
        WORK_RC(w, belay_notify_open(other, "members", &word, &w->err), BELAY_OK);
        TAP_STR(w->t, take_as_member(&b), id);
        member_kill(&m);
        uint32_t before = belay_notify_value(other, word);
        TAP_OK(w->t, host_hold(b.host, &seat));
        TAP_EQ(w->t, told(&b.l, "\"reason\":\"holder_dead\""), 1);
        uint32_t after = belay_notify_value(other, word);
        TAP_OK(w->t, after != before);
        TAP_OK(w->t, host_hold(b.host, &seat)); /* and stays in it */
        TAP_EQ(w->t, belay_notify_value(other, word), after);
        host_yield(b.host, &seat);
    }
    member_kill(&m);
    belay_fleet_leave(other);
    bench_close(&b);
}

/* --- all at once --- */

#define SETTLERS 3
#define TURNS 40

struct settler {
    struct bench *b;
    pthread_t thread;
    unsigned failed;
};

static void *settle_often(void *arg)
{
    struct host_seat seat = { .label = "seat", .label_len = 4 };
    struct settler *s = arg;

    for (int i = 0; i < TURNS; i++) {
        struct belay_error err;
        bool again;
        s->failed += host_settle(s->b->host, host_mark(s->b->host), &again, &err) != 0;
        if (host_hold(s->b->host, &seat))
            host_yield(s->b->host, &seat);
    }
    return NULL;
}

/* Members come and go meanwhile, and the thread that watches sees to them. */
static void many_settle(struct work *w)
{
    struct settler s[SETTLERS];
    struct bench b;

    if (!bench_open(&b, w))
        return;
    TAP_OK(w->t, host_join(b.host));
    for (int i = 0; i < SETTLERS; i++) {
        s[i] = (struct settler){ .b = &b };
        TAP_OK(w->t, pthread_create(&s[i].thread, NULL, settle_often, &s[i]) == 0);
    }
    for (int i = 0; i < TURNS / 4; i++) {
        struct belay_fleet *f = join(b.dir);
        TAP_OK(w->t, f != NULL);
        (void)usleep(500);
        belay_fleet_leave(f);
    }
    for (int i = 0; i < SETTLERS; i++) {
        (void)pthread_join(s[i].thread, NULL);
        TAP_EQ(w->t, s[i].failed, 0);
    }
    TAP_OK(w->t, host_mark(b.host) > 0);
    bench_close(&b);
}

/* H3 */
static void goes_on_alone(struct work *w)
{
    const struct host_watch_options options = { .fleet = FLEET,
                                                .dir = "/nonexistent/anywhere",
                                                .binds = true };
    struct host *h = NULL;
    bool again = true;

    WORK_RC(w, host_watch_open(&h, w->space, LAB_GRACE_MS, &options, &w->err),
            BELAY_OK);
    WORK_RC(w, host_settle(h, 0, &again, &w->err), BELAY_OK);
    TAP_OK(w->t, !again);
    host_watch_close(h);
    again = true;
    WORK_RC(w, host_settle(NULL, host_mark(NULL), &again, &w->err), BELAY_OK);
    TAP_OK(w->t, !again);
}

/* clang-format off */
#define EVERYWHERE(name) static void test_##name(struct tap *t) { work_everywhere(t, name); }
EVERYWHERE(asks_once) EVERYWHERE(settles_at_once) EVERYWHERE(misses_nobody)
EVERYWHERE(seats_come_after) EVERYWHERE(many_settle) EVERYWHERE(goes_on_alone)

static const struct tap_case cases[] = {
    { "nothing is asked of the store while nobody dies", test_asks_once },
    { "what a member held is lost for who asks right after its death", test_settles_at_once },
    { "also when others have swept it from the fleet", test_misses_nobody },
    { "a seat is taken after what the dead held is lost, and all are told", test_seats_come_after },
    { "threads: many settle while members come and go", test_many_settle },
    { "without a fleet nothing is settled", test_goes_on_alone },
};
/* clang-format on */

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], LIVE) == 0)
        return live(argv[2]);
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
