/* Following a fleet: who sleeps is woken by whatever it follows, and by nothing else. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "fleet/follow.h"
#include "fleet/impl.h"
#include "test_fleet.h"

#define ROUNDS 2000

static int64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct belay_fleet *join(void)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);

    return must_join("follow", &o);
}

static void claim_once(struct tap *t, struct belay_fleet *f, const char *label)
{
    struct belay_contest_subject s = subject_of(1, label);
    struct belay_contest_terms terms = terms_of("me", BELAY_CONTEST_FOREVER);
    struct belay_contest_claim c;

    TAP_EQ(t, belay_contest_try(f, &s, &terms, &c, NULL), BELAY_OK);
    TAP_EQ(t, belay_contest_release(&c.guard, NULL, NULL), BELAY_OK);
}

/* --- alone --- */

static bool naps_long(struct fleet_follow *w)
{
    int64_t began = now_us();

    fleet_follow_nap(w);
    return now_us() - began >= FOLLOW_NAP_US * 9 / 10;
}

static void what_is_followed_ends_a_nap(struct tap *t)
{
    struct belay_fleet *f = join(), *g = must_join_beside(f);
    struct fleet_follow both, messages;

    TAP_EQ(t,
           fleet_follow_begin(&both, f, FOLLOW_CONTESTS | FOLLOW_MESSAGES, NULL, NULL),
           BELAY_OK);
    TAP_EQ(t, fleet_follow_begin(&messages, f, FOLLOW_MESSAGES, NULL, NULL), BELAY_OK);
    fleet_follow_mark(&both);
    fleet_follow_mark(&messages);
    claim_once(t, g, "s");
    TAP_OK(t, !naps_long(&both));
    TAP_OK(t, naps_long(&messages)); /* contests are not what it follows */
    fleet_follow_mark(&both);
    fleet_follow_mark(&messages);
    TAP_EQ(t, belay_fleet_event_publish(g, "t", "x", 1, NULL, NULL), BELAY_OK);
    TAP_OK(t, !naps_long(&both));
    TAP_OK(t, !naps_long(&messages));
    fleet_follow_mark(&both);
    TAP_EQ(t, belay_fleet_reset(g, NULL), BELAY_OK);
    TAP_OK(t, !naps_long(&both));
    fleet_follow_end(&messages);
    fleet_follow_end(&both);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

static void nobody_is_posted_to_who_does_not_sleep(struct tap *t)
{
    struct belay_fleet *f = join();
    au32 *word = &f->log.shared->followers;

    claim_once(t, f, "s");
    TAP_EQ(t, atomic_load(word), 0);
    (void)word_mark(word); /* one that died in its sleep */
    for (int i = 0; i < 4; i++)
        claim_once(t, f, "s");
    TAP_EQ(t, atomic_load(word), WORD_POST); /* told once, and forgotten */
    belay_fleet_leave(f);
}

static void a_cancel_ends_a_nap(struct tap *t)
{
    struct belay_fleet *f = join();
    struct belay_cancel *cancel = NULL;
    struct fleet_follow w;

    TAP_EQ(t, belay_cancel_new(&cancel, NULL), BELAY_OK);
    TAP_EQ(t, fleet_follow_begin(&w, f, FOLLOW_CONTESTS, cancel, NULL), BELAY_OK);
    fleet_follow_mark(&w);
    belay_cancel_trigger(cancel);
    TAP_OK(t, !naps_long(&w));
    fleet_follow_end(&w);
    belay_cancel_free(cancel);
    belay_fleet_leave(f);
}

static void only_members_follow(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("followed", &o), *observer = NULL;
    struct fleet_follow w = { .n = 0 };

    TAP_EQ(t, belay_fleet_observe("followed", &o, &observer, NULL), BELAY_OK);
    TAP_EQ(t, fleet_follow_begin(&w, observer, FOLLOW_CONTESTS, NULL, NULL),
           BELAY_MISUSE);
    fleet_follow_end(&w);
    belay_fleet_leave(observer);
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("followed", &o, NULL), BELAY_OK);
}

/* --- together --- */

struct follower {
    struct belay_fleet *f;
    struct belay_ring_cursor *c;
    atomic_uint seen; /* frames */
    int long_naps, failures;
};

static uint32_t look(struct follower *w)
{
    struct belay_ring_frame frames[16];
    uint64_t buf[16 * BELAY_CONTEST_PAYLOAD_MAX / 8];
    struct belay_ring_poll poll = { 0 };

    if (belay_ring_poll(w->c, frames, 16, buf, sizeof(buf), &poll, NULL) != BELAY_OK)
        w->failures++;
    return (uint32_t)(poll.n_frames + poll.lost);
}

static void *follow(void *arg)
{
    struct follower *w = arg;
    struct fleet_follow follow;
    bool is_marked = false;

    if (fleet_follow_begin(&follow, w->f, FOLLOW_CONTESTS, NULL, NULL) != BELAY_OK)
        return w;
    while (atomic_load(&w->seen) < 2 * ROUNDS && w->failures == 0) {
        uint32_t n = look(w);
        if (n > 0) {
            atomic_fetch_add(&w->seen, n);
            continue;
        }
        if (is_marked)
            w->long_naps += naps_long(&follow);
        else
            fleet_follow_mark(&follow);
        is_marked = !is_marked;
    }
    fleet_follow_end(&follow);
    return NULL;
}

/* The writer waits until all is seen and begins again at once, so that frames fall everywhere
 * between a look, a mark and a nap; one that is overlooked costs a whole nap. */
static void no_frame_is_overlooked(struct tap *t)
{
    struct belay_fleet *f = join();
    struct follower w = { .f = must_join_beside(f) };
    struct belay_ring *log = NULL;
    pthread_t thread;
    void *failed = NULL;

    TAP_EQ(t, belay_contest_log(w.f, &log, NULL), BELAY_OK);
    TAP_EQ(t, belay_ring_cursor_open(log, BELAY_RING_HEAD, &w.c, NULL), BELAY_OK);
    TAP_EQ(t, pthread_create(&thread, NULL, follow, &w), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        claim_once(t, f, "s");
        for (unsigned spin = 0; atomic_load(&w.seen) < 2 * (i + 1); spin++) {
            if (spin > 200)
                (void)usleep(20);
        }
        for (volatile unsigned pause = i % 64 * 20; pause > 0;)
            pause = pause - 1;
    }
    TAP_EQ(t, pthread_join(thread, &failed), 0);
    TAP_OK(t, failed == NULL);
    TAP_EQ(t, w.failures, 0);
    TAP_EQ(t, w.long_naps, 0);
    belay_ring_cursor_close(w.c);
    belay_fleet_leave(w.f);
    belay_fleet_leave(f);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "follow: what is followed ends a nap", what_is_followed_ends_a_nap },
        { "follow: nobody is posted to who does not sleep",
          nobody_is_posted_to_who_does_not_sleep },
        { "follow: a cancel ends a nap", a_cancel_ends_a_nap },
        { "follow: only members follow", only_members_follow },
        { "follow: no frame is overlooked", no_frame_is_overlooked },
    };

    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
