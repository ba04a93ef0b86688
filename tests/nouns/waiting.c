/* Waiting for something to claim (5.2, 14): woken by an enqueue, by a time, by cancel;
 * the deadline is kept.  All of it in real time, with little of it to wait. */
#include <stdatomic.h>
#include <time.h>

#include "nouns.h"

#define LONG_MS ((int64_t)20000)  /* nobody ever waits that long here */
#define PROMPT_MS ((int64_t)3000) /* being woken takes less; looking by chance more */
#define SOON_MS ((int64_t)60)

static int64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* One waits, one does something a little later. */
struct scene {
    void (*meanwhile)(struct world *w, struct scene *s);
    struct ask ask;
    struct belay_cancel *cancel;
    const struct belay_claim *holder; /* of what the other waits for */
    belay_rc rc;
    int32_t why;
    char taken[64];
    int64_t took_ms;
};

static void play(struct world *w, unsigned i, void *arg)
{
    struct scene *s = arg;

    if (i == 0) {
        int64_t began = now_ms();
        s->rc = ask_try(w, s->ask);
        s->took_ms = now_ms() - began;
        s->why = w->claimed.why;
        if (s->rc == BELAY_OK)
            (void)snprintf(s->taken, sizeof(s->taken), "%s", seqs(w, w->claimed.claim));
        return;
    }
    world_pass(w, SOON_MS / 2);
    s->meanwhile(w, s);
}

static void play_scene(struct world *w, struct scene *s)
{
    s->ask.wait = s->ask.wait ? s->ask.wait : LONG_MS;
    world_crowd(w, 2, play, s);
    OK(w, s->took_ms < PROMPT_MS);
}

static void enqueue_one(struct world *w, struct scene *s)
{
    (void)s;
    post_many(w, "s", 1);
}

static void woken_by_enqueue(struct world *w)
{
    for (int i = 1; i <= 5; i++) {
        struct scene s = { .meanwhile = enqueue_one };
        play_scene(w, &s);
        EQ(w, s.rc, BELAY_OK);
        STR(w, s.taken, text(w, "%d", i));
    }
}

static void enqueue_elsewhere(struct world *w, struct scene *s)
{
    post_many(w, "t", 3);
    enqueue_one(w, s);
}

static void not_fooled_by_others(struct world *w)
{
    struct scene s = { .meanwhile = enqueue_elsewhere };

    play_scene(w, &s);
    STR(w, s.taken, "1");
    STR(w, pending(w, "t"), "1 2 3");
}

static void give_back(struct world *w, struct scene *s)
{
    EQ(w, abandoned(w, s->holder), 1);
}

static void woken_by_abandon(struct world *w)
{
    post_many(w, "s", 1);
    struct scene s = { .meanwhile = give_back, .holder = take(w, 1) };

    if (!s.holder)
        return;
    play_scene(w, &s);
    STR(w, s.taken, "1");
}

static void complete_head(struct world *w, struct scene *s)
{
    RC(w, finish(w, "s", 0, s->holder), BELAY_OK);
    post_many(w, "s", 1);
}

static void woken_after_completion(struct world *w)
{
    post_many(w, "s", 1);
    struct scene s = { .meanwhile = complete_head, .holder = take(w, 1) };

    if (!s.holder)
        return;
    play_scene(w, &s);
    STR(w, s.taken, "2");
}

/* A head that is not for checkpoints stands before one that is: whatever takes it away
 * lets the other be had. */
static void cancel_head(struct world *w, struct scene *s)
{
    const struct belay_batch *b = batch_now(w, "s", 1);

    (void)s;
    OK(w, b && cancelled(w, "s", b->batch_id));
}

static void drop_head(struct world *w, struct scene *s)
{
    (void)s;
    RC(w, belay_queue_drop(w->use, "s", "1", &w->err), BELAY_OK);
}

static void take_head(struct world *w, struct scene *s)
{
    (void)s;
    STR(w, seqs(w, ask(w, (struct ask){ .owner = "idle" })), "1");
}

static void woken_when_the_head_goes(struct world *w)
{
    void (*const ways[])(struct world *, struct scene *) = { cancel_head, drop_head,
                                                             take_head };

    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct scene s = { .meanwhile = ways[i],
                           .ask = { .boundary = BELAY_ACTIVE_TURN_CHECKPOINT } };
        struct world v;
        if (world_open(&v, w->t, w->store, 0)) {
            (void)post(&v,
                       (struct post){ .delivery = BELAY_AFTER_CURRENT_TURN_COMMIT });
            (void)post(&v, (struct post){ 0 });
            play_scene(&v, &s);
            if (!STR(&v, s.taken, "2"))
                printf("# in row %zu\n", i);
        }
        world_close(&v);
    }
}

/* The lease that is waited for is prolonged. */
static void renew_it(struct world *w, struct scene *s)
{
    RC(w, renew(w, s->holder, MINUTE), BELAY_OK);
}

static void not_before_a_renewed_lease_ends(struct world *w)
{
    post_many(w, "s", 1);
    struct scene s = { .meanwhile = renew_it,
                       .ask = { .wait = 5 * SOON_MS },
                       .holder = ask(w, (struct ask){ .lease = 4 * SOON_MS }) };

    if (!s.holder)
        return;
    play_scene(w, &s);
    STR(w, s.taken, "");
    EQ(w, s.why, BELAY_NO_HEAD_HELD);
    RC(w, finish(w, "s", 0, s.holder), BELAY_OK);
}

static void delete_it(struct world *w, struct scene *s)
{
    (void)s;
    RC(w, belay_session_delete(session(w, "s"), NULL, &w->err), BELAY_OK);
}

static void ended_by_deletion(struct world *w)
{
    struct scene s = { .meanwhile = delete_it };

    (void)post(w, (struct post){ .at = INT64_MAX });
    play_scene(w, &s);
    EQ(w, s.rc, BELAY_WRONG_STATE);
}

static void nothing(struct world *w, struct scene *s)
{
    (void)w;
    (void)s;
}

/* Nobody posts anything: time alone does it. */
static void woken_by_due_time(struct world *w)
{
    const struct belay_batch *b = post(w, (struct post){ .session = "t" });
    if (!b)
        return;
    (void)post(w, (struct post){ .at = b->enqueued_at_ms + SOON_MS });
    struct scene s = { .meanwhile = nothing };
    play_scene(w, &s);
    STR(w, s.taken, "1");
}

static void woken_by_lease_end(struct world *w)
{
    post_many(w, "s", 1);
    const struct belay_claim *c =
        ask(w, (struct ask){ .owner = "x", .lease = SOON_MS });
    struct scene s = { .meanwhile = nothing };
    if (!c)
        return;
    play_scene(w, &s);
    STR(w, s.taken, "1");
    WHY(w, renew(w, c, MINUTE), BELAY_LEASE_LOST, "superseded");
}

/* An earlier time that is enqueued while somebody waits for a later one. */
static void enqueue_soon(struct world *w, struct scene *s)
{
    (void)s;
    const struct belay_batch *b = post(w, (struct post){ .session = "t" });
    if (b)
        (void)post(w, (struct post){ .at = b->enqueued_at_ms + SOON_MS });
}

static void woken_by_an_earlier_time(struct world *w)
{
    const struct belay_batch *b = post(w, (struct post){ .session = "t" });
    if (!b)
        return;
    (void)post(w, (struct post){ .at = b->enqueued_at_ms + 10 * LONG_MS });
    struct scene s = { .meanwhile = enqueue_soon };
    play_scene(w, &s);
    STR(w, s.taken, "2");
}

static void trigger(struct world *w, struct scene *s)
{
    (void)w;
    belay_cancel_trigger(s->cancel);
}

static void ended_by_cancel(struct world *w)
{
    struct scene s = { .meanwhile = trigger };

    if (!RC(w, belay_cancel_new(&s.cancel, &w->err), BELAY_OK))
        return;
    s.ask.cancel = s.cancel;
    play_scene(w, &s);
    EQ(w, s.rc, BELAY_CANCELLED);
    post_many(w, "s", 1);
    RC(w, ask_try(w, s.ask), BELAY_CANCELLED); /* and every later call with it */
    STR(w, pending(w, "s"), "1");
    belay_cancel_free(s.cancel);
}

static void deadline_is_kept(struct world *w)
{
    struct scene s = { .meanwhile = nothing, .ask = { .wait = SOON_MS } };

    play_scene(w, &s);
    EQ(w, s.rc, BELAY_OK); /* an answer, and no error */
    EQ(w, s.why, BELAY_NO_EMPTY);
    OK(w, s.took_ms >= SOON_MS);

    (void)post(w, (struct post){ .at = INT64_MAX });
    play_scene(w, &s);
    EQ(w, s.why, BELAY_NO_NOT_YET_AVAILABLE);
    OK(w, s.took_ms >= SOON_MS);
    int64_t began = now_ms();
    OK(w, !take(w, 1)); /* no wait: at once */
    OK(w, now_ms() - began < PROMPT_MS);
}

/* Two wait for one batch: one gets it, the other goes on waiting. */
static void compete(struct world *w, unsigned i, void *arg)
{
    atomic_int *won = arg;

    if (i == 2) {
        world_pass(w, SOON_MS / 2);
        post_many(w, "s", 1);
        return;
    }
    (void)ask(w, (struct ask){ .wait = 5 * SOON_MS });
    if (w->claimed.claim)
        atomic_fetch_add(won, 1);
    else
        OK(w, w->claimed.why == BELAY_NO_HEAD_HELD);
}

static void one_of_two_waiters(struct world *w)
{
    atomic_int won = 0;

    world_crowd(w, 3, compete, &won);
    EQ(w, atomic_load(&won), 1);
}

static const struct noun_case cases[] = {
    { "threads: a waiting claim is woken by an enqueue", woken_by_enqueue,
      CASE_REAL_TIME },
    { "threads: a waiting claim is not fooled by other inboxes", not_fooled_by_others,
      CASE_REAL_TIME },
    { "threads: a waiting claim is woken when a batch is given back", woken_by_abandon,
      CASE_REAL_TIME },
    { "threads: a waiting claim gets what comes after a completion",
      woken_after_completion, CASE_REAL_TIME },
    { "threads: a waiting claim is woken when the head that blocks it goes",
      woken_when_the_head_goes, CASE_REAL_TIME },
    { "threads: a waiting claim waits on when the lease is renewed",
      not_before_a_renewed_lease_ends, CASE_REAL_TIME },
    { "threads: a waiting claim ends when the session is deleted", ended_by_deletion,
      CASE_REAL_TIME },
    { "threads: a waiting claim is woken when a batch becomes available",
      woken_by_due_time, CASE_REAL_TIME },
    { "threads: a waiting claim is woken when a lease ends", woken_by_lease_end,
      CASE_REAL_TIME },
    { "threads: a waiting claim learns of an earlier time", woken_by_an_earlier_time,
      CASE_REAL_TIME },
    { "threads: a waiting claim is ended by cancel", ended_by_cancel, CASE_REAL_TIME },
    { "threads: a waiting claim keeps its deadline", deadline_is_kept, CASE_REAL_TIME },
    { "threads: of two that wait for one batch one gets it", one_of_two_waiters,
      CASE_REAL_TIME },
};

const struct topic topic_waiting = { cases, COUNT_OF(cases) };
