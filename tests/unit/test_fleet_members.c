/* Members that are processes: they die, stop, fork and exec. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "fleet/impl.h"
#include "fleet/step.h"
#include "test_fleet.h"

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void nap(int ms)
{
    struct timespec most = { ms / 1000, ms % 1000 * 1000000L };

    (void)nanosleep(&most, NULL);
}

/* A child that says 'r' when it is ready and then waits to be killed, or for a byte. */
struct child {
    pid_t pid;
    int from, to;
};

static struct child start(void (*run)(int out, int in))
{
    int up[2], down[2];
    struct child c = { -1, -1, -1 };

    if (pipe(up) != 0 || pipe(down) != 0)
        exit(1);
    c.pid = fork();
    if (c.pid == 0) {
        (void)close(up[0]);
        (void)close(down[1]);
        (void)alarm(60);
        run(up[1], down[0]);
        _exit(0);
    }
    (void)close(up[1]);
    (void)close(down[0]);
    c.from = up[0];
    c.to = down[1];
    return c;
}

static char hear(const struct child *c)
{
    char said = '?';

    if (read(c->from, &said, 1) != 1)
        said = '!';
    return said;
}

static void say(int fd, char what)
{
    if (write(fd, &what, 1) != 1)
        _exit(7);
}

static void listen_to(int fd)
{
    char heard;

    if (read(fd, &heard, 1) != 1)
        _exit(6);
}

static int finish(struct child *c)
{
    int status = -1;

    (void)close(c->to);
    (void)close(c->from);
    (void)waitpid(c->pid, &status, 0);
    return status;
}

static void kill_child(struct child *c)
{
    (void)kill(c->pid, SIGKILL);
    (void)finish(c);
}

/* In a child: joins "members" and holds "subject" for long. */
static void hold(int out, int in)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("members", &o);
    struct belay_contest_subject s = subject_of(1, "subject");
    struct belay_contest_terms terms = terms_of("child", 3600000);
    struct belay_contest_claim claim;
    belay_rc rc = belay_contest_claim(f, &s, &terms, 10000, NULL, &claim, NULL);

    say(out, rc == BELAY_OK && claim.is_claimed ? 'r' : 'x');
    listen_to(in);
    say(out, belay_contest_release(&claim.guard, NULL, NULL) == BELAY_OK ? 'o' : 'l');
    belay_fleet_leave(f);
}

static void join_only(int out, int in)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("members", &o);
    struct belay_identity id;

    say(out, belay_identity_get(f, &id, NULL) == BELAY_OK ? 'r' : 'x');
    if (write(out, &id, sizeof(id)) != (ssize_t)sizeof(id))
        _exit(5);
    listen_to(in);
    belay_fleet_leave(f);
}

static struct belay_fleet *fleet(void)
{
    struct belay_fleet_options o = small_fleet(0);

    return must_join("members", &o);
}

static void done(struct tap *t, struct belay_fleet *f)
{
    struct belay_fleet_options o = small_fleet(0);

    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("members", &o, NULL), BELAY_OK);
}

static void nodes_are_given_and_incarnations_never_repeat(struct tap *t)
{
    struct belay_fleet *f = fleet(), *all[8];
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_NODE);
    struct belay_fleet_status s = { .size = sizeof(s) };
    struct belay_error err;
    uint64_t last = 0;

    for (int i = 0; i < 5; i++) {
        struct belay_fleet *g = must_join_beside(f);
        TAP_EQ(t, belay_fleet_status(g, &s, NULL), BELAY_OK);
        TAP_EQ(t, s.node, 1);
        TAP_OK(t, s.incarnation > last);
        TAP_EQ(t, s.members, 2);
        last = s.incarnation;
        belay_fleet_leave(g);
    }
    o.node = 5;
    struct belay_fleet *g = must_join("members", &o);
    TAP_EQ(t, belay_fleet_status(g, &s, NULL), BELAY_OK);
    TAP_EQ(t, s.node, 5);
    belay_fleet_leave(g);
    for (int i = 1; i < 8; i++)
        all[i] = must_join_beside(f);
    TAP_EQ(t, belay_fleet_join_beside(f, NULL, &g, &err), BELAY_UNAVAILABLE);
    TAP_STR(t, err.reason, "fleet_full");
    fleet_abandon(all[3]); /* as if killed: its node is given again */
    all[3] = must_join_beside(f);
    TAP_EQ(t, belay_fleet_status(all[3], &s, NULL), BELAY_OK);
    TAP_EQ(t, s.node, 3);
    TAP_EQ(t, s.members, 8);
    for (int i = 1; i < 8; i++)
        belay_fleet_leave(all[i]);
    done(t, f);
}

static void a_killed_holder_is_taken_over_at_once(struct tap *t)
{
    struct belay_fleet *f = fleet();
    struct belay_contest_subject s = subject_of(1, "subject");
    struct belay_contest_terms terms = terms_of("parent", 1000);
    struct belay_contest_claim claim;
    uint64_t last = 0;

    for (int i = 0; i < 20; i++) {
        struct child c = start(hold);
        TAP_EQ(t, hear(&c), 'r');
        TAP_OK(t, !try_now(t, f, "subject", "parent", 1000).is_claimed);
        int64_t before = now_ms();
        (void)kill(c.pid, SIGKILL);
        TAP_EQ(t, belay_contest_claim(f, &s, &terms, 5000, NULL, &claim, NULL),
               BELAY_OK);
        TAP_OK(t, claim.is_claimed && now_ms() - before < 500);
        TAP_OK(t, claim.guard.token > last);
        last = claim.guard.token;
        TAP_EQ(t, belay_contest_release(&claim.guard, NULL, NULL), BELAY_OK);
        (void)finish(&c);
    }
    struct belay_fleet_status status = { .size = sizeof(status) };
    TAP_EQ(t, belay_fleet_status(f, &status, NULL), BELAY_OK);
    TAP_EQ(t, status.members, 1);
    done(t, f);
}

static void a_stopped_holder_is_alive_and_learns_that_it_lost(struct tap *t)
{
    struct belay_fleet *f = fleet();
    struct child c = start(hold);
    struct belay_fleet_member members[8];
    size_t n = 0;

    TAP_EQ(t, hear(&c), 'r');
    (void)kill(c.pid, SIGSTOP);
    nap(50);
    struct belay_contest_claim y = try_now(t, f, "subject", "parent", 1000);
    TAP_OK(t, !y.is_claimed);
    TAP_STR(t, y.holder.owner, "child");
    TAP_EQ(t, belay_fleet_sweep(f, &n, NULL), BELAY_OK);
    TAP_EQ(t, n, 0);
    TAP_EQ(t, belay_fleet_members(f, members, 8, &n, NULL), BELAY_OK);
    TAP_EQ(t, n, 2);
    TAP_EQ(t, members[1].life, BELAY_LIFE_ALIVE);
    TAP_EQ(t, belay_contest_force_release(f, &y.holder, NULL), BELAY_OK);
    TAP_OK(t, try_now(t, f, "subject", "parent", 1000).is_claimed);
    (void)kill(c.pid, SIGCONT);
    say(c.to, 'g');
    TAP_EQ(t, hear(&c), 'l');
    TAP_EQ(t, finish(&c), 0);
    done(t, f);
}

static void an_expired_holder_loses_to_the_next(struct tap *t)
{
    struct belay_fleet *f = fleet(), *g = must_join_beside(f);
    struct belay_contest_claim a = try_now(t, f, "short", "a", 30);
    struct belay_contest_subject s = subject_of(1, "short");
    struct belay_contest_terms terms = terms_of("b", 1000);
    struct belay_contest_claim b;
    int64_t before = now_ms();

    TAP_EQ(t, belay_contest_claim(g, &s, &terms, 5000, NULL, &b, NULL), BELAY_OK);
    TAP_OK(t, b.is_claimed && b.guard.token > a.guard.token);
    int64_t took = now_ms() - before;
    TAP_OK(t, took >= 15 && took < 1000); /* the clock ticks every 10 ms at most */
    TAP_EQ(t, belay_contest_renew(&a.guard, 1000, NULL), BELAY_LEASE_LOST);
    belay_fleet_leave(g);
    done(t, f);
}

static void a_child_of_fork_has_no_handle(struct tap *t)
{
    struct belay_fleet *f = fleet();
    struct belay_contest_claim mine = try_now(t, f, "subject", "parent", 100000);
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        struct belay_fleet_status s = { .size = sizeof(s) };
        struct belay_error err;
        bool good = belay_fleet_status(f, &s, &err) == BELAY_MISUSE &&
                    strcmp(err.reason, "forked") == 0 &&
                    belay_contest_release(&mine.guard, NULL, &err) == BELAY_MISUSE;
        belay_fleet_leave(f);
        struct belay_fleet *g = fleet(); /* for itself it may join */
        good = good && belay_fleet_status(g, &s, &err) == BELAY_OK && s.members == 2;
        struct belay_contest_claim y = try_now(t, g, "subject", "child", 1000);
        good = good && !y.is_claimed && strcmp(y.holder.owner, "parent") == 0;
        belay_fleet_leave(g);
        _exit(good ? 0 : 1);
    }
    (void)waitpid(pid, &status, 0);
    TAP_EQ(t, status, 0);
    TAP_OK(t, belay_contest_is_held(&mine.guard));
    done(t, f);
}

/* In a child: holds, and leaves a grandchild behind that inherits its descriptors. */
static void hold_and_fork(int out, int in)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("members", &o);
    struct belay_contest_subject s = subject_of(1, "subject");
    struct belay_contest_terms terms = terms_of("child", 3600000);
    struct belay_contest_claim claim;
    belay_rc rc = belay_contest_try(f, &s, &terms, &claim, NULL);
    pid_t pid = fork();

    if (pid == 0) {
        nap(3000);
        _exit(0);
    }
    say(out, rc == BELAY_OK && claim.is_claimed ? 'r' : 'x');
    if (write(out, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
        _exit(5);
    listen_to(in);
}

static void a_forked_child_does_not_keep_the_dead_alive(struct tap *t)
{
    struct belay_fleet *f = fleet();
    struct belay_contest_subject s = subject_of(1, "subject");
    struct belay_contest_terms terms = terms_of("parent", 1000);
    struct belay_contest_claim claim;
    struct child c = start(hold_and_fork);
    pid_t grandchild = 0;

    TAP_EQ(t, hear(&c), 'r');
    TAP_EQ(t, read(c.from, &grandchild, sizeof(grandchild)), sizeof(grandchild));
    kill_child(&c);
    TAP_EQ(t, belay_contest_claim(f, &s, &terms, 1000, NULL, &claim, NULL), BELAY_OK);
    TAP_OK(t, claim.is_claimed);
    TAP_EQ(t, kill(grandchild, 0), 0); /* it was there all the time */
    (void)kill(grandchild, SIGKILL);
    done(t, f);
}

static void hold_and_exec(int out, int in)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("members", &o);
    struct belay_contest_subject s = subject_of(1, "subject");
    struct belay_contest_terms terms = terms_of("child", 3600000);
    struct belay_contest_claim claim;
    struct belay_identity id;
    belay_rc rc = belay_contest_try(f, &s, &terms, &claim, NULL);

    say(out,
        rc == BELAY_OK && belay_identity_get(f, &id, NULL) == BELAY_OK ? 'r' : 'x');
    if (write(out, &id, sizeof(id)) != (ssize_t)sizeof(id))
        _exit(5);
    listen_to(in);
    (void)execlp("sleep", "sleep", "3", (char *)NULL);
}

static void a_member_that_became_another_program_is_dead(struct tap *t)
{
    struct belay_fleet *f = fleet();
    struct belay_contest_subject s = subject_of(1, "subject");
    struct belay_contest_terms terms = terms_of("parent", 1000);
    struct belay_contest_claim claim;
    struct belay_identity id;
    struct child c = start(hold_and_exec);

    TAP_EQ(t, hear(&c), 'r');
    TAP_EQ(t, read(c.from, &id, sizeof(id)), sizeof(id));
    TAP_EQ(t, belay_fleet_member_is_dead(f, &id), BELAY_LIFE_ALIVE);
    say(c.to, 'g');
    TAP_EQ(t, belay_fleet_wait_death(f, &id, 2000, NULL, NULL), BELAY_OK);
    TAP_EQ(t, belay_contest_claim(f, &s, &terms, 2000, NULL, &claim, NULL), BELAY_OK);
    TAP_OK(t, claim.is_claimed);
    TAP_EQ(t, kill(c.pid, 0), 0);
    kill_child(&c);
    done(t, f);
}

static void who_is_dead_is_known_and_told(struct tap *t)
{
    struct belay_fleet *f = fleet();
    struct belay_identity id, changed, self;
    struct belay_error err;
    struct child c = start(join_only);
    int fd = -1;

    TAP_EQ(t, hear(&c), 'r');
    TAP_EQ(t, read(c.from, &id, sizeof(id)), sizeof(id));
    TAP_EQ(t, belay_fleet_member_is_dead(f, &id), BELAY_LIFE_ALIVE);
    TAP_EQ(t, belay_fleet_member_is_dead(NULL, &id), BELAY_LIFE_ALIVE);
    TAP_EQ(t, belay_fleet_wait_death(f, &id, 20, NULL, &err), BELAY_TIMEOUT);
    changed = id;
    changed.boot[0] = changed.boot[0] == 'a' ? 'b' : 'a';
    TAP_EQ(t, belay_fleet_member_is_dead(f, &changed), BELAY_LIFE_UNKNOWN);
    TAP_EQ(t, belay_fleet_wait_death(f, &changed, 20, NULL, &err), BELAY_INVALID);
    changed = id;
    changed.member[1] = changed.member[1] == '1' ? '2' : '1'; /* pid namespace */
    TAP_EQ(t, belay_fleet_member_is_dead(NULL, &changed), BELAY_LIFE_UNKNOWN);
    memcpy(changed.member, "nonsense", 9);
    TAP_EQ(t, belay_fleet_member_is_dead(f, &changed), BELAY_LIFE_UNKNOWN);
    changed = id;
    changed.process_start++; /* the number was used again */
    TAP_EQ(t, belay_fleet_member_is_dead(NULL, &changed), BELAY_LIFE_DEAD);
    TAP_EQ(t, belay_identity_get(NULL, &self, NULL), BELAY_OK);
    TAP_EQ(t, belay_fleet_member_is_dead(f, &self), BELAY_LIFE_ALIVE);

    TAP_EQ(t, belay_identity_pidfd(&id, &fd, &err), BELAY_OK);
    struct pollfd ended = { .fd = fd, .events = POLLIN };
    TAP_EQ(t, poll(&ended, 1, 0), 0);
    (void)kill(c.pid, SIGKILL);
    TAP_EQ(t, belay_fleet_wait_death(f, &id, 5000, NULL, &err), BELAY_OK);
    TAP_EQ(t, poll(&ended, 1, 1000), 1);
    (void)close(fd);
    TAP_EQ(t, belay_fleet_member_is_dead(f, &id), BELAY_LIFE_DEAD); /* not yet reaped */
    (void)finish(&c);
    TAP_EQ(t, belay_fleet_member_is_dead(f, &id), BELAY_LIFE_DEAD);
    TAP_EQ(t, belay_fleet_member_is_dead(NULL, &id), BELAY_LIFE_DEAD);
    TAP_EQ(t, belay_identity_pidfd(&id, &fd, &err), BELAY_NOT_FOUND);
    size_t n = 0;
    TAP_EQ(t, belay_fleet_sweep(f, &n, NULL), BELAY_OK);
    TAP_EQ(t, n, 1);
    TAP_EQ(t, belay_fleet_member_is_dead(f, &id), BELAY_LIFE_DEAD);
    done(t, f);
}

/* In a child: holds "subject", and dies where the kernel cannot mark its life word. */
static void hold_read_only(int out, int in)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("members", &o);
    struct belay_contest_claim claim = { 0 };
    struct belay_contest_subject s = subject_of(1, "subject");
    struct belay_contest_terms terms = terms_of("child", 3600000);
    belay_rc rc = belay_contest_try(f, &s, &terms, &claim, NULL);
    bool is_set = mprotect(f->space->base, f->space->geo.total_len, PROT_READ) == 0;

    say(out, rc == BELAY_OK && claim.is_claimed && is_set ? 'r' : 'x');
    listen_to(in);
}

static void the_dead_are_found_without_their_mark(struct tap *t)
{
    struct belay_fleet *f = fleet();
    struct belay_contest_subject s = subject_of(1, "subject");
    struct belay_contest_terms terms = terms_of("next", 3600000);
    struct belay_contest_claim claim = { 0 };
    struct belay_fleet_member members[8];
    size_t n = 0;

    for (int round = 0; round < 2; round++) {
        struct child c = start(hold_read_only);
        TAP_EQ(t, hear(&c), 'r');
        TAP_EQ(t, belay_fleet_sweep(f, &n, NULL), BELAY_OK);
        TAP_EQ(t, n, 0); /* it lives */
        kill_child(&c);
        if (round == 0) {
            TAP_EQ(t, belay_fleet_members(f, members, 8, &n, NULL), BELAY_OK);
            TAP_OK(t, n == 2 && members[1].life == BELAY_LIFE_DEAD);
            TAP_EQ(t, belay_fleet_sweep(f, &n, NULL), BELAY_OK);
            TAP_EQ(t, n, 1);
        }
        TAP_EQ(t, belay_contest_claim(f, &s, &terms, 5000, NULL, &claim, NULL),
               BELAY_OK);
        TAP_OK(t, claim.is_claimed);
        TAP_EQ(t, belay_contest_release(&claim.guard, NULL, NULL), BELAY_OK);
    }
    done(t, f);
}

static void signs_of_life_are_counted(struct tap *t)
{
    struct belay_fleet *f = fleet(), *g = must_join_beside(f), *h = must_join_beside(f);
    struct belay_fleet_beats beats = { .size = sizeof(beats) };
    struct belay_fleet_member members[8];
    size_t n = 0;

    TAP_EQ(t, belay_fleet_beat(f, NULL), BELAY_OK);
    TAP_EQ(t, belay_fleet_beats(g, 1000, &beats, NULL), BELAY_OK);
    TAP_OK(t, beats.fresh == 1 && beats.stale == 2 && beats.missing == 5);
    fleet_abandon(h);
    nap(40);
    TAP_EQ(t, belay_fleet_beat(g, NULL), BELAY_OK);
    TAP_EQ(t, belay_fleet_beats(g, 20, &beats, NULL), BELAY_OK);
    TAP_OK(t, beats.fresh == 1 && beats.stale == 1 && beats.dead == 1);
    TAP_EQ(t, beats.missing, 5);
    TAP_EQ(t, belay_fleet_members(g, members, 8, &n, NULL), BELAY_OK);
    TAP_OK(t, n == 3 && members[0].heartbeat_age_ms >= 20);
    TAP_EQ(t, members[2].life, BELAY_LIFE_DEAD);
    TAP_EQ(t, members[2].heartbeat_age_ms, -1);

    /* One by one. */
    struct belay_fleet_node nodes[8];
    static const int32_t beat[] = { BELAY_BEAT_STALE, BELAY_BEAT_FRESH, BELAY_BEAT_DEAD,
                                    BELAY_BEAT_MISSING };
    TAP_EQ(t, belay_fleet_nodes(g, 20, nodes, 8, &n, NULL), BELAY_OK);
    TAP_EQ(t, n, 8);
    for (int32_t i = 0; i < 8; i++) {
        TAP_EQ(t, nodes[i].node, i);
        TAP_EQ(t, nodes[i].beat, beat[i < 3 ? i : 3]);
        TAP_EQ(t, nodes[i].incarnation, i < 3);
    }
    TAP_OK(t, nodes[0].age_ms >= 20 && nodes[1].age_ms < 1000);
    TAP_OK(t, nodes[2].age_ms == -1 && nodes[3].age_ms == -1);
    TAP_EQ(t, belay_fleet_nodes(g, 20, nodes, 2, &n, NULL), BELAY_OK);
    TAP_EQ(t, n, 2);

    /* As frames, seldom: a thousand beats are one, and push nobody's out. */
    for (int i = 0; i < 1000; i++)
        TAP_EQ(t, belay_fleet_beat(g, NULL), BELAY_OK);
    struct belay_ring *ring = NULL;
    struct belay_ring_frame frame;
    uint64_t buf[2];
    TAP_EQ(t, belay_ring_attach(f, BELAY_FLEET_BEAT_KIND, &ring, NULL), BELAY_OK);
    for (int32_t i = 0; i < 2 && ring; i++) {
        TAP_EQ(t, belay_ring_head(ring, i), 1);
        TAP_EQ(t, belay_ring_read(ring, i, 0, buf, sizeof(buf), &frame, NULL),
               BELAY_OK);
        TAP_OK(t, frame.kind == 1 && frame.len == 0 && frame.ver > 1600000000000);
    }
    belay_fleet_leave(g);
    done(t, f);
}

static void who_left_is_not_dead(struct tap *t)
{
    struct belay_fleet *f = fleet(), *g = must_join_beside(f);
    struct belay_identity id;

    TAP_EQ(t, belay_identity_get(g, &id, NULL), BELAY_OK);
    belay_fleet_leave(g);
    TAP_EQ(t, belay_fleet_member_is_dead(f, &id), BELAY_LIFE_ALIVE);
    done(t, f);
}

static void a_waiter_is_woken_by_a_release(struct tap *t)
{
    struct belay_fleet *f = fleet();
    struct belay_contest_claim mine = try_now(t, f, "subject", "parent", 100000);
    struct child c = start(hold);

    nap(100);
    struct pollfd ready = { .fd = c.from, .events = POLLIN };
    TAP_EQ(t, poll(&ready, 1, 0), 0);
    int64_t before = now_ms();
    TAP_EQ(t, belay_contest_release(&mine.guard, NULL, NULL), BELAY_OK);
    TAP_EQ(t, hear(&c), 'r');
    TAP_OK(t, now_ms() - before < 500);
    say(c.to, 'g');
    TAP_EQ(t, hear(&c), 'o');
    TAP_EQ(t, finish(&c), 0);
    done(t, f);
}

static void a_wait_ends_in_time_or_when_cancelled(struct tap *t)
{
    struct belay_fleet *f = fleet(), *g = must_join_beside(f);
    struct belay_contest_subject s = subject_of(1, "subject");
    struct belay_contest_terms terms = terms_of("b", 1000);
    struct belay_contest_claim mine = try_now(t, f, "subject", "a", 100000), claim;
    struct belay_cancel *cancel;
    struct belay_error err;
    int64_t before = now_ms();

    TAP_EQ(t, belay_contest_claim(g, &s, &terms, 60, NULL, &claim, &err),
           BELAY_TIMEOUT);
    TAP_OK(t, now_ms() - before >= 60);
    TAP_EQ(t, belay_contest_wait(g, &s, 10, NULL, &err), BELAY_TIMEOUT);
    TAP_EQ(t, belay_cancel_new(&cancel, NULL), BELAY_OK);
    belay_cancel_trigger(cancel);
    TAP_EQ(t, belay_contest_claim(g, &s, &terms, -1, cancel, &claim, &err),
           BELAY_CANCELLED);
    belay_cancel_free(cancel);
    TAP_EQ(t, belay_contest_claim(g, &s, &terms, -2, NULL, &claim, &err),
           BELAY_INVALID);
    TAP_EQ(t, belay_contest_release(&mine.guard, NULL, NULL), BELAY_OK);
    TAP_EQ(t, belay_contest_wait(g, &s, -1, NULL, &err), BELAY_OK);
    belay_fleet_leave(g);
    done(t, f);
}

static void post_when_told(int out, int in)
{
    struct belay_fleet *f = fleet();
    struct belay_notify word;
    belay_rc rc = belay_notify_open(f, "store /some/file", &word, NULL);

    say(out, rc == BELAY_OK ? 'r' : 'x');
    for (int i = 0; i < 20; i++) {
        listen_to(in);
        nap(i % 3);
        if (belay_notify_post(f, word, NULL) != BELAY_OK)
            _exit(4);
    }
    listen_to(in);
    belay_fleet_leave(f);
}

static void a_word_wakes_other_processes(struct tap *t)
{
    struct belay_fleet *f = fleet();
    struct belay_notify word, other;
    struct belay_error err;
    struct child c = start(post_when_told);

    TAP_EQ(t, hear(&c), 'r');
    TAP_EQ(t, belay_notify_open(f, "another", &other, NULL), BELAY_OK);
    TAP_EQ(t, belay_notify_open(f, "store /some/file", &word, NULL), BELAY_OK);
    TAP_OK(t, word.slot != other.slot);
    uint32_t seen = belay_notify_value(f, word);
    TAP_EQ(t, belay_notify_wait(f, word, seen, 10, NULL, &seen, &err), BELAY_TIMEOUT);
    for (int i = 0; i < 20; i++) {
        say(c.to, 'g');
        uint32_t got = seen;
        TAP_EQ(t, belay_notify_wait(f, word, seen, 5000, NULL, &got, &err), BELAY_OK);
        TAP_EQ(t, got, seen + 1);
        seen = got;
    }
    TAP_EQ(t, belay_notify_value(f, other), 0);
    say(c.to, 'g');
    TAP_EQ(t, finish(&c), 0);
    done(t, f);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "nodes are given, and incarnations never repeat",
          nodes_are_given_and_incarnations_never_repeat },
        { "a killed holder is taken over at once",
          a_killed_holder_is_taken_over_at_once },
        { "a stopped holder is alive, and learns that it lost",
          a_stopped_holder_is_alive_and_learns_that_it_lost },
        { "an expired holder loses to the next", an_expired_holder_loses_to_the_next },
        { "a child of fork has no handle", a_child_of_fork_has_no_handle },
        { "a forked child does not keep the dead alive",
          a_forked_child_does_not_keep_the_dead_alive },
        { "a member that became another program is dead",
          a_member_that_became_another_program_is_dead },
        { "who is dead is known, and told", who_is_dead_is_known_and_told },
        { "signs of life are counted", signs_of_life_are_counted },
        { "the dead are found without their mark",
          the_dead_are_found_without_their_mark },
        { "who left is not dead", who_left_is_not_dead },
        { "a waiter is woken by a release", a_waiter_is_woken_by_a_release },
        { "a wait ends in time, or when cancelled",
          a_wait_ends_in_time_or_when_cancelled },
        { "a word wakes other processes", a_word_wakes_other_processes },
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
