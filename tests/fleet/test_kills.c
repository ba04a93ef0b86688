/* C2, C3: a member may be killed between any two of its writes.
 *
 * For every operation a victim is started, which raises SIGKILL in the first step of the
 * operation, the next one in the second, and so on until the operation ends before its
 * turn.  After each death a survivor, whose leases are of one hour, has everything that is
 * not its own at once, finds no frame torn or missing, tokens risen, the log in accord with
 * the table, and the dead member's node free.  In the end every kind of step there is must
 * have been somebody's last.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fleet/cache_impl.h"
#include "fleet/step.h"
#include "fleetlib.h"
#include "tap.h"

#define STEPS_MAX 400
#define FRAME_WORDS 8
#define LARGE_WORDS 64

/* Seen by victims and the survivor. */
struct page {
    _Atomic uint32_t killed[FLEET_STEPS]; /* deaths in each step */
    _Atomic int waiter;                   /* a process that the victim left behind */
};

struct scene {
    struct tap *t;
    struct room room;
    struct page *page;
    struct belay_fleet *f; /* the survivor */
    struct belay_contest_claim own;
    struct belay_ring *rings[2];
    struct belay_ring_cursor *cursors[2];
    struct belay_cache *cache;
    uint64_t got[16],
        last[16]; /* frames of each lane of the first ring; the last one */
    struct replay replay;
    uint64_t token;
    char long_label[400];
    char fresh[32]; /* a subject that nobody knows, another one for each victim */
    unsigned victims;
    bool was_reset; /* from then on frames are missing on purpose */
};

struct victim {
    struct belay_fleet *f;
    struct belay_contest_claim claim, second;
    struct belay_ring *rings[2];
    struct belay_cache *cache;
    struct belay_notify word;
    unsigned at, n; /* which step to die in, steps so far */
    struct page *page;
};

static void die_in_step(void *arg, enum fleet_step step)
{
    struct victim *v = arg;

    if (v->n++ == v->at) {
        atomic_fetch_add(&v->page->killed[step], 1);
        (void)raise(SIGKILL);
    }
}

static bool open_rings(struct belay_fleet *f, struct belay_ring *out[2])
{
    struct belay_ring_spec spec = { .size = sizeof(spec),
                                    .capacity = 64,
                                    .payload_max = FRAME_WORDS * 8,
                                    .large_len = 8192,
                                    .schema = 7 };
    struct belay_error err;

    spec.kind = 10;
    spec.name = "lanes";
    spec.notify = 1;
    if (belay_ring_open(f, &spec, &out[0], &err) != BELAY_OK)
        return false;
    spec.kind = 11;
    spec.name = "ordered";
    spec.topology = BELAY_RING_ORDERED;
    return belay_ring_open(f, &spec, &out[1], &err) == BELAY_OK;
}

/* One word over and over: what is torn shows. */
static bool publish(struct belay_ring *ring, uint64_t value, size_t words)
{
    uint64_t data[LARGE_WORDS];
    struct belay_ring_frame frame = { .kind = 1,
                                      .len = (uint32_t)(words * 8),
                                      .data = data };
    struct belay_error err;

    for (size_t i = 0; i < words; i++)
        data[i] = value;
    return belay_ring_publish(ring, &frame, NULL, &err) == BELAY_OK;
}

/* --- operations: what the victim does before its steps count, and then ----------------- */

static bool hold_other(struct scene *s, struct victim *v)
{
    (void)s;
    return try_claim(v->f, "other", "victim", HOUR_MS, &v->claim);
}

static bool claim_new(struct scene *s, struct victim *v)
{
    return try_claim(v->f, s->fresh, "victim", HOUR_MS, &v->claim);
}

static bool claim_long(struct scene *s, struct victim *v)
{
    return try_claim(v->f, s->long_label, s->long_label, HOUR_MS, &v->claim);
}

static bool renew_other(struct scene *s, struct victim *v)
{
    struct belay_error err;

    (void)s;
    return belay_contest_renew(&v->claim.guard, HOUR_MS, &err) == BELAY_OK;
}

static bool release_other(struct scene *s, struct victim *v)
{
    (void)s;
    return release(&v->claim.guard);
}

static bool leave(struct scene *s, struct victim *v)
{
    (void)s;
    belay_fleet_leave(v->f);
    v->f = NULL;
    return true;
}

/* A process beside the victim, which waits for what the victim holds. */
static bool hold_while_another_waits(struct scene *s, struct victim *v)
{
    if (!hold_other(s, v))
        return false;
    pid_t waiter = fork();
    if (waiter == 0) {
        struct belay_fleet *f = room_join(&s->room, "kills", 0);
        struct belay_contest_subject subject = subject_of(1, "other");
        struct belay_contest_terms terms = terms_of("waiter", HOUR_MS);
        struct belay_contest_claim claim;
        struct belay_error err;

        if (!f || belay_contest_claim(f, &subject, &terms, 20000, NULL, &claim, &err))
            _exit(3);
        _exit(release(&claim.guard) ? 0 : 4);
    }
    atomic_store(&s->page->waiter, waiter);
    const au64 *o = &v->f->entries[v->claim.guard.entry].o;
    for (int i = 0; i < 10000 && !(atomic_load(o) & O_WAITERS); i++)
        (void)usleep(1000);
    return (atomic_load(o) & O_WAITERS) != 0;
}

static bool wait_for_other(struct scene *s, struct victim *v)
{
    struct belay_contest_subject subject = subject_of(1, "survivor's");
    struct belay_error err;

    (void)s;
    return belay_contest_wait(v->f, &subject, 1, NULL, &err) == BELAY_TIMEOUT;
}

static bool use_rings(struct scene *s, struct victim *v)
{
    (void)s;
    return open_rings(v->f, v->rings);
}

static bool publish_lane(struct scene *s, struct victim *v)
{
    uint64_t first = (uint64_t)s->victims << 8 | 1;

    return publish(v->rings[0], first, FRAME_WORDS) &&
           publish(v->rings[0], first + 1, FRAME_WORDS);
}

static bool publish_large(struct scene *s, struct victim *v)
{
    (void)s;
    return publish(v->rings[0], 3, LARGE_WORDS) && publish(v->rings[1], 4, LARGE_WORDS);
}

static bool publish_batch(struct scene *s, struct victim *v)
{
    uint64_t first = (uint64_t)s->victims << 8 | 1, data[3][FRAME_WORDS];
    struct belay_ring_frame frames[3];
    struct belay_error err;

    for (size_t i = 0; i < 3; i++) {
        for (size_t w = 0; w < FRAME_WORDS; w++)
            data[i][w] = first + i;
        frames[i] = (struct belay_ring_frame){ .kind = 1,
                                               .len = sizeof(data[i]),
                                               .data = data[i] };
    }
    return belay_ring_publish_batch(v->rings[0], frames, 3, NULL, &err) == BELAY_OK &&
           belay_ring_publish_batch(v->rings[1], frames, 3, NULL, &err) == BELAY_OK;
}

static bool publish_ordered(struct scene *s, struct victim *v)
{
    (void)s;
    return publish(v->rings[1], 5, FRAME_WORDS) && publish(v->rings[1], 6, FRAME_WORDS);
}

/* The ring of a kind that nobody has opened. */
static bool open_new_ring(struct scene *s, struct victim *v)
{
    struct belay_ring_spec spec = { .size = sizeof(spec), .kind = 12, .name = "more" };
    struct belay_ring *ring;
    struct belay_error err;

    (void)s;
    return belay_ring_open(v->f, &spec, &ring, &err) == BELAY_OK &&
           publish(ring, 1, FRAME_WORDS);
}

static bool sweep(struct scene *s, struct victim *v)
{
    struct belay_error err;

    (void)s;
    return belay_fleet_sweep(v->f, NULL, &err) == BELAY_OK;
}

/* Every entry of the table has had its subject, so that a new one costs an old one. */
static bool fill_table(struct scene *s, struct victim *v)
{
    (void)s;
    for (uint32_t i = 0; i < v->f->subjects + 8; i++) {
        char label[32];

        (void)snprintf(label, sizeof(label), "filler %u", i);
        if (!try_claim(v->f, label, "victim", HOUR_MS, &v->claim) ||
            !release(&v->claim.guard))
            return false;
    }
    return true;
}

static bool force_own(struct scene *s, struct victim *v)
{
    struct belay_contest_subject subject = subject_of(1, "other");
    struct belay_contest_holder holder;
    struct belay_error err;

    (void)s;
    return belay_contest_holder(v->f, &subject, &holder, &err) == BELAY_OK &&
           belay_contest_force_release(v->f, &holder, &err) == BELAY_OK;
}

static bool reset(struct scene *s, struct victim *v)
{
    struct belay_error err;

    (void)s;
    return belay_fleet_reset(v->f, &err) == BELAY_OK;
}

static bool post(struct scene *s, struct victim *v)
{
    struct belay_error err;

    (void)s;
    return belay_notify_open(v->f, "word", &v->word, &err) == BELAY_OK &&
           belay_notify_post(v->f, v->word, &err) == BELAY_OK;
}

static bool wait_word(struct scene *s, struct victim *v)
{
    struct belay_error err;
    uint32_t value;

    (void)s;
    return belay_notify_open(v->f, "word", &v->word, &err) == BELAY_OK &&
           belay_notify_wait(v->f, v->word, belay_notify_value(v->f, v->word), 1, NULL,
                             &value, &err) == BELAY_TIMEOUT;
}

static bool open_cache(struct belay_fleet *f, struct belay_cache **out)
{
    struct belay_cache_options o = { .size = sizeof(o),
                                     .entries = 8,
                                     .arena_len = 8192 };
    struct belay_error err;

    return belay_cache_open(f, &o, out, &err) == BELAY_OK;
}

static bool use_cache(struct scene *s, struct victim *v)
{
    (void)s;
    return open_cache(v->f, &v->cache);
}

/* Over what is there, with more than an entry holds; then gone again. */
static bool put_and_delete(struct scene *s, struct victim *v)
{
    struct belay_error err;
    char value[3000];

    (void)s;
    memset(value, 'v', sizeof(value));
    return belay_cache_put(v->cache, "key", 3, value, sizeof(value), 0, NULL, &err) ==
               BELAY_OK &&
           belay_cache_delete(v->cache, "key", 3, NULL, &err) == BELAY_OK;
}

/* --- stages: what somebody else did before ---------------------------------------------- */

/* A member that died holding "other", a frame of its own in the rings. */
static void a_dead_holder(struct scene *s)
{
    pid_t child = fork();

    if (child == 0) {
        struct victim v = { .f = room_join(&s->room, "kills", 0) };

        if (v.f && hold_other(s, &v))
            (void)raise(SIGKILL);
        _exit(3);
    }
    TAP_OK(s->t, WIFSIGNALED(reap(child, 0)));
}

struct operation {
    const char *name;
    void (*stage)(struct scene *s);                     /* may be NULL */
    bool (*prepare)(struct scene *s, struct victim *v); /* may be NULL */
    bool (*run)(struct scene *s, struct victim *v);     /* NULL: joining */
    unsigned least;                                     /* steps it has at least */
};

/* --- the survivor ---------------------------------------------------------------------- */

/* R3: a victim's second frame comes behind its first one, whoever had the node before. */
static void count(struct scene *s, int32_t node, uint64_t value)
{
    s->got[node]++;
    if (value >> 8 != 0 && (value & 255) > 1)
        TAP_OK(s->t, value == s->last[node] + 1);
    s->last[node] = value;
}

static bool drain(struct scene *s, struct belay_ring_cursor *c)
{
    struct belay_ring_frame frames[32];
    static _Alignas(8) uint8_t buf[32 * 1024];
    struct belay_ring_poll poll = { .is_more = true };
    struct belay_error err;
    size_t n = 0;

    while (poll.is_more || poll.n_frames > 0) {
        if (belay_ring_poll(c, frames, 32, buf, sizeof(buf), &poll, &err) != BELAY_OK) {
            printf("# poll: %s\n", err.message);
            return false;
        }
        TAP_EQ(s->t, poll.lost, 0);
        for (size_t i = 0; i < poll.n_frames; i++, n++) {
            const uint64_t *data = frames[i].data;
            if (c == s->cursors[0])
                count(s, frames[i].node, data[0]);
            for (uint32_t w = 1; w < frames[i].len / 8; w++)
                TAP_OK(s->t, data[w] == data[0]); /* C3 */
        }
    }
    return n > 0;
}

/* The survivor's value, or the victim's whole one, or none; and all the room. */
static void check_cache(struct scene *s)
{
    char value[4096], buf[4096];
    struct belay_cache_got got = { .len = 1 };
    struct belay_error err;

    TAP_EQ(s->t, belay_cache_get(s->cache, "key", 3, buf, sizeof(buf), &got, &err),
           BELAY_OK);
    if (got.is_hit && TAP_OK(s->t, got.len == 2000 || got.len == 3000)) {
        memset(value, got.len == 2000 ? 's' : 'v', sizeof(value));
        TAP_OK(s->t, memcmp(buf, value, got.len) == 0);
    }
    memset(value, 's', sizeof(value));
    for (int i = 0; i < 2; i++) {
        TAP_EQ(s->t, belay_cache_put(s->cache, "other", 5, value, 4096, 0, NULL, &err),
               BELAY_OK);
        TAP_EQ(s->t, belay_cache_put(s->cache, "key", 3, value, 2000, 0, NULL, &err),
               BELAY_OK);
    }
}

static void take_at_once(struct scene *s, const char *label)
{
    struct belay_contest_claim claim;

    if (!TAP_OK(s->t, try_claim(s->f, label, "survivor", HOUR_MS, &claim))) {
        printf("# %s yields to %s\n", label, claim.holder.owner);
        return;
    }
    TAP_OK(s->t, claim.guard.token > s->token); /* K2, C1 */
    s->token = claim.guard.token;
    TAP_OK(s->t, release(&claim.guard));
}

static void check_survivor(struct scene *s, bool was_reset)
{
    struct belay_fleet_member members[16];
    struct belay_error err;
    size_t n = 0;

    s->was_reset |= was_reset;
    if (was_reset && !belay_contest_is_held(&s->own.guard))
        TAP_OK(s->t, try_claim(s->f, "survivor's", "survivor", HOUR_MS, &s->own));
    TAP_OK(s->t, belay_contest_is_held(&s->own.guard));
    take_at_once(s, "other");
    take_at_once(s, s->fresh);
    take_at_once(s, s->long_label);
    for (size_t i = 0; i < 2; i++) {
        TAP_OK(s->t, publish(s->rings[i], 9, FRAME_WORDS));
        TAP_OK(s->t, drain(s, s->cursors[i]));
    }
    for (int32_t i = 0; i < 16 && !s->was_reset; i++)
        TAP_EQ(s->t, s->got[i], belay_ring_head(s->rings[0], i)); /* R3 */
    TAP_EQ(s->t, belay_fleet_sweep(s->f, NULL, &err), BELAY_OK);
    TAP_EQ(s->t, belay_fleet_members(s->f, members, 16, &n, &err), BELAY_OK);
    TAP_EQ(s->t, n, 1);
    TAP_OK(s->t, replay_equals_table(&s->replay, s->f));
    check_cache(s);
}

/* --- victims ---------------------------------------------------------------------------- */

/* Exit status 0: the operation ended before its turn to die; 3: it did not work. */
static void be_victim(struct scene *s, const struct operation *op, unsigned at)
{
    struct victim v = { .at = at, .page = s->page };
    struct belay_error err;

    if (!op->run) {
        struct belay_fleet_options o = room_options(&s->room, 0);
        _exit(fleet_join_stepped("kills", &o, die_in_step, &v, &v.f, &err) ? 3 : 0);
    }
    v.f = room_join(&s->room, "kills", 0);
    if (!v.f || (op->prepare && !op->prepare(s, &v)))
        _exit(3);
    fleet_set_step(v.f, die_in_step, &v);
    bool done = op->run(s, &v);
    if (v.f)
        fleet_set_step(v.f, NULL, NULL);
    _exit(done ? 0 : 3);
}

static void kill_everywhere(struct scene *s, const struct operation *op)
{
    for (unsigned at = 0; at < STEPS_MAX && s->t->failed == 0; at++) {
        (void)snprintf(s->fresh, sizeof(s->fresh), "fresh %u", s->victims++);
        if (op->stage)
            op->stage(s);
        atomic_store(&s->page->waiter, 0);
        pid_t child = fork();
        if (child == 0)
            be_victim(s, op, at);
        int status = reap(child, 0);
        if (atomic_load(&s->page->waiter) != 0)
            TAP_EQ(s->t, reap(atomic_load(&s->page->waiter), 0), 0);
        check_survivor(s, op->run == reset);
        if (s->t->failed > 0)
            printf("# after %s was killed in step %u\n", op->name, at);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            continue;
        TAP_EQ(s->t, status, 0);
        if (!TAP_OK(s->t, at >= op->least))
            printf("# %s has %u steps\n", op->name, at);
        return;
    }
    TAP_OK(s->t, s->t->failed > 0);
}

static bool scene_open(struct scene *s)
{
    struct belay_error err;

    s->f = room_join(&s->room, "kills", 0);
    memset(s->long_label, 'l', sizeof(s->long_label) - 1);
    if (!s->f || !replay_open(&s->replay, s->f) || !open_rings(s->f, s->rings) ||
        !open_cache(s->f, &s->cache))
        return false;
    for (size_t i = 0; i < 2; i++) {
        if (belay_ring_cursor_open(s->rings[i], BELAY_RING_START, &s->cursors[i], &err))
            return false;
    }
    return try_claim(s->f, "survivor's", "survivor", HOUR_MS, &s->own);
}

static void scene_close(struct scene *s)
{
    replay_close(&s->replay);
    for (size_t i = 0; i < 2; i++)
        belay_ring_cursor_close(s->cursors[i]);
    belay_fleet_leave(s->f);
}

/* clang-format off */
static const struct operation operations[] = {
    { "join",                  NULL,           NULL,                     NULL,              3 },
    { "leave",                 NULL,           hold_other,               leave,             3 },
    { "claim",                 NULL,           NULL,                     hold_other,        6 },
    { "claim of a new subject", NULL,           NULL,                    claim_new,         6 },
    { "claim with long labels", NULL,           NULL,                    claim_long,        6 },
    { "claim that retires",    NULL,           fill_table,               claim_new,         8 },
    { "takeover of the dead",  a_dead_holder,  NULL,                     hold_other,        7 },
    { "renew",                 NULL,           hold_other,               renew_other,       2 },
    { "release",               NULL,           hold_other,               release_other,     4 },
    { "release to a waiter",   NULL,           hold_while_another_waits, release_other,     4 },
    { "wait",                  NULL,           NULL,                     wait_for_other,    1 },
    { "publish",               NULL,           use_rings,                publish_lane,      8 },
    { "publish large",         NULL,           use_rings,                publish_large,     8 },
    { "publish in order",      NULL,           use_rings,                publish_ordered,   8 },
    { "publish a batch",       NULL,           use_rings,                publish_batch,    20 },
    { "open a ring",           NULL,           NULL,                     open_new_ring,     1 },
    { "sweep",                 a_dead_holder,  NULL,                     sweep,             3 },
    { "release by force",      NULL,           hold_other,               force_own,         2 },
    { "post",                  NULL,           NULL,                     post,              1 },
    { "wait for a post",       NULL,           NULL,                     wait_word,         1 },
    { "put and delete",        NULL,           use_cache,                put_and_delete,    9 },
    { "reset",                 NULL,           hold_other,               reset,             3 },
};
/* clang-format on */
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static void test_members(struct tap *t)
{
    struct scene *s = t->arg;

    s->t = t;
    if (!TAP_OK(t, scene_open(s)))
        return;
    for (size_t i = 0; i < OPERATIONS && t->failed == 0; i++)
        kill_everywhere(s, &operations[i]);
    scene_close(s);
}

/* The creator of a segment: whoever comes next finds a whole fleet, or none and makes it. */
static void test_create(struct tap *t)
{
    struct scene *s = t->arg;
    unsigned at;

    for (at = 0; at < STEPS_MAX && t->failed == 0; at++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "made-%u", at);
        pid_t child = fork();
        if (child == 0) {
            struct belay_fleet_options o = room_options(&s->room, 0);
            struct victim v = { .at = at, .page = s->page };
            struct belay_error err;
            _exit(fleet_join_stepped(name, &o, die_in_step, &v, &v.f, &err) ? 3 : 0);
        }
        int status = reap(child, 0);
        struct belay_contest_claim claim;
        struct belay_fleet *f = room_join(&s->room, name, 0);
        if (TAP_OK(t, f != NULL))
            TAP_OK(t, try_claim(f, "subject", "next", HOUR_MS, &claim));
        belay_fleet_leave(f);
        if (WIFSIGNALED(status))
            continue;
        TAP_EQ(t, status, 0);
        break;
    }
    TAP_OK(t, at >= 5 && at < STEPS_MAX);
}

/* Takeover of a tenure whose time is over, in virtual time: nobody has died but victims. */
static void test_expired(struct tap *t)
{
    struct scene *s = t->arg;
    struct belay_fleet *f = room_join(&s->room, "virtual", BELAY_FLEET_VIRTUAL_CLOCK);
    struct replay replay = { .cursor = NULL };
    struct belay_contest_claim claim;
    uint64_t token = 0;
    unsigned at = 0;
    bool ended = false;

    if (!TAP_OK(t, f && replay_open(&replay, f)))
        return;
    for (int64_t now = 1000; at < STEPS_MAX && !ended && t->failed == 0;
         at++, now += 100) {
        TAP_OK(t, try_claim_at(f, "timed", "first", 50, now, &claim));
        TAP_OK(t, claim.guard.token > token);
        token = claim.guard.token;
        pid_t child = fork();
        if (child == 0) {
            struct victim v = { .at = at, .page = s->page };

            v.f = room_join(&s->room, "virtual", BELAY_FLEET_VIRTUAL_CLOCK);
            if (!v.f)
                _exit(3);
            fleet_set_step(v.f, die_in_step, &v);
            _exit(try_claim_at(v.f, "timed", "second", 9999999, now + 50, &v.claim)
                      ? 0
                      : 3);
        }
        int status = reap(child, 0);
        ended = !WIFSIGNALED(status);
        if (ended)
            TAP_EQ(t, status, 0);
        /* Dead or expired: free in either case, at the same time, though the second one's
         * lease is long. */
        struct belay_contest_claim third;
        TAP_OK(t, try_claim_at(f, "timed", "third", 1, now + 50, &third));
        TAP_OK(t, third.guard.token > token);
        token = third.guard.token;
        TAP_OK(t, release(&third.guard));
        TAP_OK(t, !release(&claim.guard));
        struct belay_error err;
        TAP_EQ(t, belay_fleet_sweep(f, NULL, &err), BELAY_OK);
        TAP_OK(t, replay_equals_table(&replay, f));
    }
    TAP_OK(t, at > 8);
    replay_close(&replay);
    belay_fleet_leave(f);
}

static void test_all_steps(struct tap *t)
{
    struct scene *s = t->arg;
    unsigned deaths = 0;

    for (unsigned i = 0; i < FLEET_STEPS; i++) {
        deaths += atomic_load(&s->page->killed[i]);
        if (!TAP_OK(t, atomic_load(&s->page->killed[i]) > 0))
            printf("# nobody died in step %s\n", fleet_step_name(i));
    }
    printf("# %u deaths\n", deaths);
}

static const struct tap_case cases[] = {
    { "a creator may be killed anywhere", test_create },
    { "a member may be killed anywhere, in every operation", test_members },
    { "who takes over an expired tenure may be killed anywhere", test_expired },
    { "there is no step in which nobody was killed", test_all_steps },
};

int main(int argc, char **argv)
{
    struct scene s = { .t = NULL };

    if (!room_init(&s.room) || prctl(PR_SET_CHILD_SUBREAPER, 1))
        return 1;
    s.page = mmap(NULL, sizeof(*s.page), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.page == MAP_FAILED)
        return 1;
    int code = tap_main(cases, sizeof(cases) / sizeof(cases[0]), &s, argc, argv);
    room_release(&s.room);
    return code;
}
