#include "base/clock.h"
#include "fakes.h"
#include "store/wake.h"
#include "tap.h"

#define TOPIC(name) (&(const struct bytes){ (const uint8_t *)(name), sizeof(name) - 1 })

struct place {
    struct wake_hub *hub;
    struct belay_arena arena;
    struct belay_clock clock;
};

static bool place_open(struct tap *t, struct place *p)
{
    *p = (struct place){ .clock = clock_system() };
    return TAP_EQ(t, wake_hub_open(&p->hub, NULL), BELAY_OK);
}

static void place_close(struct place *p)
{
    arena_release(&p->arena);
    wake_hub_close(p->hub);
}

static struct listener *listen_to(struct tap *t, struct place *p, const char *ns,
                                  const struct bytes *topics, size_t n,
                                  struct belay_cancel *cancel)
{
    struct listener *l = NULL;

    struct wake_topics wanted = { .ns = bytes_str(ns), .topic = topics, .n = n };

    TAP_EQ(t, wake_listen(p->hub, &wanted, &p->clock, cancel, &p->arena, &l, NULL),
           BELAY_OK);
    return l;
}

static void a_post_wakes_its_topic_only(struct tap *t)
{
    struct place p;

    if (!place_open(t, &p))
        return;
    struct listener *a = listen_to(t, &p, "ns", TOPIC("a"), 1, NULL);
    struct listener *b = listen_to(t, &p, "ns", TOPIC("b"), 1, NULL);
    struct listener *other = listen_to(t, &p, "other", TOPIC("a"), 1, NULL);

    wake_post(p.hub, bytes_str("ns"), bytes_str("a"));
    TAP_OK(t, listener_poll(a));
    TAP_OK(t, !listener_poll(a));
    TAP_OK(t, !listener_poll(b));
    TAP_OK(t, !listener_poll(other)); /* X8: not even the time of another namespace */
    listener_close(a);
    listener_close(b);
    listener_close(other);
    wake_post(p.hub, bytes_str("ns"), bytes_str("a")); /* nobody listens any more */
    TAP_EQ(t, wake_hub_counts(p.hub).posted, 2);
    TAP_EQ(t, wake_hub_counts(p.hub).delivered, 1);
    place_close(&p);
}

static void one_listener_hears_several_topics(struct tap *t)
{
    const struct bytes topics[] = { *TOPIC("a"), *TOPIC("b"), *TOPIC("c") };
    struct place p;

    if (!place_open(t, &p))
        return;
    struct listener *l = listen_to(t, &p, "ns", topics, 3, NULL);
    for (int i = 0; i < 3; i++) {
        wake_post(p.hub, bytes_str("ns"), topics[i]);
        TAP_EQ(t, listener_wait(l, DEADLINE_NONE, NULL), BELAY_OK);
    }
    listener_close(l);
    place_close(&p);
}

static void waiting_ends_by_deadline_or_cancel(struct tap *t)
{
    struct place p;
    struct belay_error err;
    struct belay_cancel *cancel = NULL;

    if (!place_open(t, &p) || !TAP_EQ(t, belay_cancel_new(&cancel, NULL), BELAY_OK))
        return;
    struct listener *l = listen_to(t, &p, "ns", TOPIC("a"), 1, cancel);
    int64_t now = p.clock.mono_us(p.clock.arg);
    TAP_EQ(t, listener_wait(l, now + 5000, &err), BELAY_TIMEOUT);
    TAP_EQ(t, err.code, BELAY_TIMEOUT);
    belay_cancel_trigger(cancel);
    TAP_EQ(t, listener_wait(l, DEADLINE_NONE, &err), BELAY_CANCELLED);
    TAP_EQ(t, listener_wait(l, DEADLINE_NONE, &err), BELAY_CANCELLED); /* and stays */
    listener_close(l);
    belay_cancel_free(cancel);
    place_close(&p);
}

static void a_bad_topic_is_refused(struct tap *t)
{
    const struct bytes topics[] = { *TOPIC("a"), *TOPIC("") };
    struct place p;
    struct listener *l = NULL;

    if (!place_open(t, &p))
        return;
    struct wake_topics wanted = { .ns = bytes_str("ns"), .topic = topics, .n = 2 };
    TAP_EQ(t, wake_listen(p.hub, &wanted, &p.clock, NULL, &p.arena, &l, NULL),
           BELAY_INVALID);
    TAP_OK(t, !l);
    wake_post(p.hub, bytes_str("ns"), topics[0]); /* nothing was left behind to wake */
    TAP_EQ(t, wake_hub_counts(p.hub).delivered, 0);
    place_close(&p);
}

/* A counter that producers raise and a consumer follows: wake-ups may merge, none is
 * lost, or this test hangs and its budget ends it. */
struct stream {
    struct place *place;
    _Atomic int64_t produced;
};

#define PRODUCERS 4
#define EACH 2000

static void *produce(void *arg)
{
    struct stream *s = arg;

    for (int i = 0; i < EACH; i++) {
        atomic_fetch_add(&s->produced, 1);
        wake_post(s->place->hub, bytes_str("ns"), bytes_str("stream"));
    }
    return NULL;
}

static void no_wake_up_is_lost(struct tap *t)
{
    struct place p;
    pthread_t threads[PRODUCERS];

    if (!place_open(t, &p))
        return;
    struct stream s = { .place = &p };
    struct listener *l = listen_to(t, &p, "ns", TOPIC("stream"), 1, NULL);
    for (int i = 0; i < PRODUCERS; i++)
        TAP_EQ(t, pthread_create(&threads[i], NULL, produce, &s), 0);
    while (atomic_load(&s.produced) < (int64_t)PRODUCERS * EACH)
        TAP_EQ(t, listener_wait(l, DEADLINE_NONE, NULL), BELAY_OK);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    listener_close(l);
    place_close(&p);
}

static void *wait_half_a_second(void *arg)
{
    struct listener *l = arg;
    struct belay_clock clock = clock_system();

    (void)!listener_wait(l, clock.mono_us(clock.arg) + 300000, NULL);
    return NULL;
}

static void an_idle_listener_never_runs(struct tap *t)
{
    struct place p;
    pthread_t thread;

    if (!place_open(t, &p))
        return;
    struct listener *l = listen_to(t, &p, "ns", TOPIC("idle"), 1, NULL);
    if (TAP_EQ(t, pthread_create(&thread, NULL, wait_half_a_second, l), 0)) {
        p.clock.sleep_us(p.clock.arg, 150000);
        TAP_EQ(t, wake_hub_counts(p.hub).waits, 0); /* it has not come back once */
        pthread_join(thread, NULL);
        TAP_EQ(t, wake_hub_counts(p.hub).waits, 1);
    }
    listener_close(l);
    place_close(&p);
}

static const struct tap_case cases[] = {
    { "a post wakes its topic in its namespace only", a_post_wakes_its_topic_only },
    { "one listener hears several topics", one_listener_hears_several_topics },
    { "waiting ends by deadline or cancel", waiting_ends_by_deadline_or_cancel },
    { "a bad topic is refused, and nothing is left behind", a_bad_topic_is_refused },
    { "no wake-up is lost", no_wake_up_is_lost },
    { "an idle listener never runs", an_idle_listener_never_runs },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
