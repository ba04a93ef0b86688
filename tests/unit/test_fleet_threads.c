/* Threads in the place of processes, over one mapping: what the thread sanitizer can see. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "fleet/step.h"
#include "test_fleet.h"

#define THREADS 4

static struct belay_fleet *small(int32_t subjects, uint32_t flags)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE | flags);

    o.subjects = subjects;
    o.fleet_size = 32;
    return must_join("threads", &o);
}

/* What a subject protects: plain memory, so that two holders at once are a race. */
struct guarded {
    uint64_t value, last_token;
};

struct job {
    struct belay_fleet *f;
    struct guarded *guarded;
    int id, rounds, subjects;
    bool is_mortal;
    uint64_t grants, errors, disorder, unreleased;
};

static void work_once(struct job *j, int subject)
{
    char label[16];
    (void)snprintf(label, sizeof(label), "s%d", subject);
    struct belay_contest_subject s = subject_of(1, label);
    struct belay_contest_terms terms = terms_of("worker", BELAY_CONTEST_FOREVER);
    struct belay_contest_claim c;
    belay_rc rc = j->id % 2 == 0
                      ? belay_contest_try(j->f, &s, &terms, &c, NULL)
                      : belay_contest_claim(j->f, &s, &terms, 2, NULL, &c, NULL);

    if (rc == BELAY_TIMEOUT)
        return;
    if (rc != BELAY_OK) {
        j->errors++;
        return;
    }
    if (!c.is_claimed)
        return;
    struct guarded *g = &j->guarded[subject];
    if (j->is_mortal) {
        /* The sanitizer does not see that the kernel orders a death. */
        uint64_t last =
            __atomic_exchange_n(&g->last_token, c.guard.token, __ATOMIC_RELAXED);
        __atomic_fetch_add(&g->value, 1, __ATOMIC_RELAXED);
        j->disorder += c.guard.token <= last;
    } else {
        g->value++;
        j->disorder += c.guard.token <= g->last_token;
        g->last_token = c.guard.token;
    }
    j->grants++;
    if (j->is_mortal && j->grants % 16 == 0) {
        /* Dies holding it, and begins anew. */
        struct belay_fleet *heir;
        if (belay_fleet_join_beside(j->f, NULL, &heir, NULL) != BELAY_OK) {
            j->errors++;
            return;
        }
        fleet_abandon(j->f);
        j->f = heir;
    } else {
        j->unreleased += belay_contest_release(&c.guard, NULL, NULL) != BELAY_OK;
    }
}

static void *work(void *arg)
{
    struct job *j = arg;

    for (int i = 0; i < j->rounds; i++)
        work_once(j, (i + j->id) % j->subjects);
    return NULL;
}

/* Runs THREADS of them; `is_shared`: all with one handle. */
static void contend(struct tap *t, int subjects, int table, int rounds, bool is_shared,
                    bool is_mortal)
{
    struct belay_fleet *f = small(table, 0);
    struct guarded guarded[64] = { { 0, 0 } };
    struct job jobs[THREADS];
    pthread_t threads[THREADS];
    uint64_t grants = 0, value = 0;

    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){ .f = is_shared ? f : must_join_beside(f),
                                .guarded = guarded,
                                .id = i,
                                .rounds = rounds,
                                .subjects = subjects,
                                .is_mortal = is_mortal };
        TAP_EQ(t, pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        TAP_EQ(t, pthread_join(threads[i], NULL), 0);
        TAP_EQ(t, jobs[i].errors, 0);
        TAP_EQ(t, jobs[i].disorder, 0);
        TAP_EQ(t, jobs[i].unreleased, 0);
        grants += jobs[i].grants;
        if (!is_shared)
            belay_fleet_leave(jobs[i].f);
    }
    for (int i = 0; i < subjects; i++)
        value += guarded[i].value;
    TAP_EQ(t, value, grants);
    TAP_OK(t, grants > 0);
    belay_fleet_leave(f);
}

static void two_never_hold_one_subject(struct tap *t)
{
    contend(t, 1, 64, 3000, false, false);
    contend(t, 3, 64, 3000, false, false);
}

static void threads_may_share_a_handle(struct tap *t)
{
    contend(t, 2, 64, 2000, true, false);
}

/* More subjects than entries: they come and go under those who look for them. */
static void entries_come_and_go_under_the_claimers(struct tap *t)
{
    contend(t, 40, 8, 3000, false, false);
}

static void what_the_dead_held_goes_to_the_living(struct tap *t)
{
    contend(t, 3, 64, 400, false, true);
    contend(t, 40, 16, 400, false, true);
}

/* --- rings --- */

struct writer {
    struct belay_ring *ring;
    uint64_t id, n;
    atomic_bool *done;
};

static void *write_frames(void *arg)
{
    struct writer *w = arg;
    uint64_t data[8];

    for (uint64_t i = 0; i < w->n; i++) {
        for (size_t k = 0; k < 8; k++)
            data[k] = w->id << 32 | i;
        struct belay_ring_frame frame = { .ver = i, .data = data, .len = sizeof(data) };
        if (belay_ring_publish(w->ring, &frame, NULL, NULL) != BELAY_OK)
            return w;
    }
    return NULL;
}

/* Whole, in each writer's order, and every one of them read or counted. */
static void readers_get_frames_whole(struct tap *t)
{
    static const uint64_t n = 3000;

    for (int topology = BELAY_RING_LANES; topology <= BELAY_RING_ORDERED; topology++) {
        struct belay_fleet *f = small(8, 0), *members[2];
        struct belay_ring_spec spec = { .size = sizeof(spec),
                                        .kind = 3,
                                        .topology = (uint8_t)topology,
                                        .capacity = 32,
                                        .payload_max = 64,
                                        .notify = 1,
                                        .name = "frames" };
        struct writer writers[2];
        struct belay_ring *ring;
        struct belay_ring_cursor *c;
        struct belay_ring_frame frames[16];
        struct belay_ring_poll poll = { 0 };
        pthread_t threads[2];
        uint64_t buf[16 * 8], seen = 0, last[8] = { 0 };

        TAP_EQ(t, belay_ring_open(f, &spec, &ring, NULL), BELAY_OK);
        TAP_EQ(t, belay_ring_cursor_open(ring, BELAY_RING_START, &c, NULL), BELAY_OK);
        for (int i = 0; i < 2; i++) {
            members[i] = must_join_beside(f);
            writers[i] = (struct writer){ .id = (uint64_t)i, .n = n };
            TAP_EQ(t, belay_ring_open(members[i], &spec, &writers[i].ring, NULL),
                   BELAY_OK);
            TAP_EQ(t, pthread_create(&threads[i], NULL, write_frames, &writers[i]), 0);
        }
        while (seen + poll.total_lost < 2 * n) {
            TAP_EQ(t, belay_ring_wait(c, 5000, NULL, NULL), BELAY_OK);
            TAP_EQ(t, belay_ring_poll(c, frames, 16, buf, sizeof(buf), &poll, NULL),
                   BELAY_OK);
            for (size_t i = 0; i < poll.n_frames; i++) {
                const uint64_t *data = frames[i].data;
                uint64_t want = (uint64_t)(frames[i].node - 1) << 32 | frames[i].ver;
                for (size_t k = 0; k < 8; k++)
                    TAP_OK(t, data[k] == want);
                TAP_OK(t, frames[i].ver + 1 > last[frames[i].node]);
                last[frames[i].node] = frames[i].ver + 1;
            }
            seen += poll.n_frames;
        }
        TAP_EQ(t, seen + poll.total_lost, 2 * n);
        for (int i = 0; i < 2; i++) {
            void *failed = NULL;
            TAP_EQ(t, pthread_join(threads[i], &failed), 0);
            TAP_OK(t, failed == NULL);
            belay_fleet_leave(members[i]);
        }
        belay_ring_cursor_close(c);
        belay_fleet_leave(f);
    }
}

/* --- words --- */

struct ping {
    struct belay_fleet *f;
    struct belay_notify mine, other;
    int rounds;
};

static void *ping(void *arg)
{
    struct ping *p = arg;
    uint32_t seen = 0;

    for (int i = 0; i < p->rounds; i++) {
        if (belay_notify_post(p->f, p->other, NULL) != BELAY_OK)
            return p;
        while (seen <= (uint32_t)i) { /* posts may come together */
            if (belay_notify_wait(p->f, p->mine, seen, 10000, NULL, &seen, NULL) !=
                BELAY_OK)
                return p;
        }
    }
    return NULL;
}

static void no_wake_up_is_lost(struct tap *t)
{
    struct belay_fleet *f = small(8, 0), *g = must_join_beside(f);
    struct ping pings[2] = { { .f = f, .rounds = 2000 }, { .f = g, .rounds = 2000 } };
    pthread_t threads[2];

    TAP_EQ(t, belay_notify_open(f, "a", &pings[0].mine, NULL), BELAY_OK);
    TAP_EQ(t, belay_notify_open(f, "b", &pings[0].other, NULL), BELAY_OK);
    pings[1].mine = pings[0].other;
    pings[1].other = pings[0].mine;
    for (int i = 0; i < 2; i++)
        TAP_EQ(t, pthread_create(&threads[i], NULL, ping, &pings[i]), 0);
    for (int i = 0; i < 2; i++) {
        void *failed = NULL;
        TAP_EQ(t, pthread_join(threads[i], &failed), 0);
        TAP_OK(t, failed == NULL);
    }
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

/* Hole (a): a member that stops in the middle of claiming holds nobody up for long. */
struct stall {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    enum fleet_step at;
    bool is_stopped, may_go_on, is_claimed;
    struct belay_fleet *f;
    struct belay_contest_claim claim;
};

static void stop_at(void *arg, enum fleet_step step)
{
    struct stall *s = arg;

    if (step != s->at)
        return;
    (void)pthread_mutex_lock(&s->mutex);
    if (!s->is_stopped) {
        s->is_stopped = true;
        (void)pthread_cond_broadcast(&s->cond);
        while (!s->may_go_on)
            (void)pthread_cond_wait(&s->cond, &s->mutex);
    }
    (void)pthread_mutex_unlock(&s->mutex);
}

static void *claim_and_stall(void *arg)
{
    struct stall *s = arg;
    struct belay_contest_subject subject = subject_of(1, "s");
    struct belay_contest_terms terms = terms_of("the stopped", 3600000);

    fleet_set_step(s->f, stop_at, s);
    if (belay_contest_try(s->f, &subject, &terms, &s->claim, NULL) != BELAY_OK)
        return s;
    s->is_claimed = s->claim.is_claimed;
    return NULL;
}

/* Another claims while the first is stopped at a step; what both got. */
static void stall_at(struct tap *t, enum fleet_step at, bool is_taken)
{
    struct belay_fleet *f = small(8, 0);
    struct stall s = { .mutex = PTHREAD_MUTEX_INITIALIZER,
                       .cond = PTHREAD_COND_INITIALIZER,
                       .at = at,
                       .f = must_join_beside(f) };
    struct belay_contest_subject subject = subject_of(1, "s");
    struct belay_contest_terms terms = terms_of("the other", 3600000);
    struct belay_contest_claim other = { 0 };
    pthread_t thread;
    void *failed = NULL;

    TAP_EQ(t, pthread_create(&thread, NULL, claim_and_stall, &s), 0);
    (void)pthread_mutex_lock(&s.mutex);
    while (!s.is_stopped)
        (void)pthread_cond_wait(&s.cond, &s.mutex);
    (void)pthread_mutex_unlock(&s.mutex);
    belay_rc rc = belay_contest_claim(f, &subject, &terms, 200, NULL, &other, NULL);
    TAP_EQ(t, rc, is_taken ? BELAY_OK : BELAY_TIMEOUT);
    (void)pthread_mutex_lock(&s.mutex);
    s.may_go_on = true;
    (void)pthread_cond_broadcast(&s.cond);
    (void)pthread_mutex_unlock(&s.mutex);
    TAP_EQ(t, pthread_join(thread, &failed), 0);
    TAP_OK(t, failed == NULL);
    TAP_OK(t, s.is_claimed == !is_taken); /* never both, never none */
    if (is_taken) {
        TAP_STR(t, s.claim.holder.owner, "the other");
        TAP_OK(t, belay_contest_is_held(&other.guard));
    }
    belay_fleet_leave(s.f);
    belay_fleet_leave(f);
}

static void a_claim_that_stops_on_the_way_blocks_nobody(struct tap *t)
{
    stall_at(t, STEP_INTERN_TAKEN, true);
    stall_at(t, STEP_INTERN_LINKED, true);
    stall_at(t, STEP_CLAIM_RECORD, true);
    stall_at(t, STEP_CLAIM_TAKEN, true);
    stall_at(t, STEP_CLAIM_TOKEN, true);
    stall_at(t, STEP_CLAIM_DEADLINE, false); /* it has its deadline: it holds */
    stall_at(t, STEP_CLAIM_LOGGED, false);
}

/* --- a word as a descriptor --- */

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, timeout_ms) == 1;
}

static void a_word_can_be_polled(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("bridge", &o), *g = must_join_beside(f);
    struct belay_notify_bridge *a = NULL, *b = NULL;
    struct belay_notify word, other;

    TAP_EQ(t, belay_notify_open(f, "word", &word, NULL), BELAY_OK);
    TAP_EQ(t, belay_notify_open(f, "other", &other, NULL), BELAY_OK);
    TAP_EQ(t, belay_notify_post(f, word, NULL), BELAY_OK);
    TAP_EQ(t, belay_notify_bridge_open(f, word, &a, NULL), BELAY_OK);
    TAP_EQ(t, belay_notify_bridge_open(g, word, &b, NULL), BELAY_OK);
    TAP_OK(t, !is_readable(belay_notify_bridge_fd(a), 20)); /* before its time */
    TAP_OK(t, !belay_notify_bridge_drain(a));
    for (int round = 0; round < 200; round++) {
        /* Posts come together, and each bridge has its own. */
        for (int i = 0; i < 1 + round % 3; i++)
            TAP_EQ(t, belay_notify_post(g, word, NULL), BELAY_OK);
        TAP_OK(t, is_readable(belay_notify_bridge_fd(a), 20000));
        TAP_OK(t, is_readable(belay_notify_bridge_fd(b), 20000));
        while (belay_notify_bridge_drain(a) ||
               is_readable(belay_notify_bridge_fd(a), 1))
            continue;
        TAP_OK(t, belay_notify_bridge_drain(b));
    }
    TAP_EQ(t, belay_notify_post(g, other, NULL), BELAY_OK);
    (void)usleep(5000);
    (void)belay_notify_bridge_drain(b);
    TAP_OK(t, !is_readable(belay_notify_bridge_fd(b), 10));
    belay_notify_bridge_close(a);
    belay_notify_bridge_close(b);
    belay_notify_bridge_close(NULL);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a word can be polled", a_word_can_be_polled },
        { "threads: two never hold one subject", two_never_hold_one_subject },
        { "threads: threads may share a handle", threads_may_share_a_handle },
        { "threads: entries come and go under the claimers",
          entries_come_and_go_under_the_claimers },
        { "threads: what the dead held goes to the living",
          what_the_dead_held_goes_to_the_living },
        { "threads: readers get frames whole", readers_get_frames_whole },
        { "threads: no wake-up is lost", no_wake_up_is_lost },
        { "threads: a claim that stops on the way blocks nobody",
          a_claim_that_stops_on_the_way_blocks_nobody },
    };

    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
