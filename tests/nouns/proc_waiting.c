/* Waiting for events, the end of a process, and changes: woken by another thread, by
 * another handle, by cancel; the deadline is kept (5.2, 14).  All of it in real time. */
#include <time.h>

#include "proc.h"

#define LONG_MS ((int64_t)20000)  /* nobody ever waits that long here */
#define PROMPT_MS ((int64_t)3000) /* being woken takes less; looking by chance more */
#define SOON_MS ((int64_t)40)

static int64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* One waits, one does something a little later. */
struct scene {
    belay_rc (*wait)(struct world *w, struct scene *s);
    void (*meanwhile)(struct world *w, struct scene *s);
    struct belay_cancel *cancel;
    belay_rc rc;
    int64_t found, took_ms;
};

static void play(struct world *w, unsigned i, void *arg)
{
    struct scene *s = arg;

    if (i == 1) {
        world_pass(w, SOON_MS);
        s->meanwhile(w, s);
        return;
    }
    int64_t began = now_ms();
    s->rc = s->wait(w, s);
    s->took_ms = now_ms() - began;
}

static void play_scene(struct world *w, struct scene *s, belay_rc want)
{
    world_crowd(w, 2, play, s);
    EQ(w, s->rc, want);
    OK(w, s->took_ms < PROMPT_MS);
}

static belay_rc for_type(struct world *w, struct scene *s)
{
    const struct belay_process_event *e = NULL;
    belay_rc rc = wait_type(w, "p", "producer.wake", 1, LONG_MS, s->cancel, &e);

    s->found = rc ? -1 : e->sequence;
    return rc;
}

static belay_rc for_any(struct world *w, struct scene *s)
{
    struct belay_process_event_request r = { .size = sizeof(r),
                                             .process_id = "p",
                                             .after = 1,
                                             .wait_ms = LONG_MS,
                                             .cancel = s->cancel };
    struct belay_process_events e = { 0 };
    belay_rc rc = belay_process_events(w->use, &r, w->arena, &e, &w->err);

    s->found = rc || e.n == 0 ? -1 : e.items[0].sequence;
    return rc;
}

static belay_rc for_end(struct world *w, struct scene *s)
{
    const struct belay_process *p = NULL;
    belay_rc rc =
        belay_process_await(w->use, "p", LONG_MS, s->cancel, w->arena, &p, &w->err);

    s->found = rc ? -1 : p->status;
    return rc;
}

static belay_rc for_change(struct world *w, struct scene *s)
{
    struct belay_change_request r = { .size = sizeof(r),
                                      .wait_ms = LONG_MS,
                                      .cancel = s->cancel };
    struct belay_process_changes c = { 0 };
    const char *cursor = NULL;

    (void)changes(w, NULL, &cursor);
    r.after = cursor;
    belay_rc rc = belay_process_changed_since(w->use, &r, w->arena, &c, &w->err);
    s->found = rc || c.n == 0 ? -1 : c.items[0].kind;
    return rc;
}

static void say_both(struct world *w, struct scene *s)
{
    (void)s;
    (void)line(w, "p", "not this one");
    (void)wake(w, "p", "s", "but this");
}

static void end_it(struct world *w, struct scene *s)
{
    (void)s;
    finish_process(w, "p");
}

static void call_off(struct world *w, struct scene *s)
{
    (void)w;
    belay_cancel_trigger(s->cancel);
}

static void begin(struct world *w)
{
    enroll_id(w, "p");
    (void)line(w, "p", "old");
}

static void woken_by_type(struct world *w)
{
    struct scene s = { .wait = for_type, .meanwhile = say_both };

    begin(w);
    play_scene(w, &s, BELAY_OK);
    EQ(w, s.found, 3);
}

static void woken_by_any(struct world *w)
{
    struct scene s = { .wait = for_any, .meanwhile = say_both };

    begin(w);
    play_scene(w, &s, BELAY_OK);
    EQ(w, s.found, 2);
}

static void woken_by_end(struct world *w)
{
    struct scene s = { .wait = for_end, .meanwhile = end_it };

    begin(w);
    play_scene(w, &s, BELAY_OK);
    EQ(w, s.found, BELAY_PROCESS_COMPLETED);
}

static void woken_by_change(struct world *w)
{
    struct scene s = { .wait = for_change, .meanwhile = end_it };

    begin(w);
    play_scene(w, &s, BELAY_OK);
    EQ(w, s.found, BELAY_CHANGE_ENDED);
}

static void called_off(struct world *w)
{
    static belay_rc (*const waits[])(struct world * w,
                                     struct scene * s) = { for_type, for_any, for_end,
                                                           for_change };

    begin(w);
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        struct scene s = { .wait = waits[i], .meanwhile = call_off };
        RC(w, belay_cancel_new(&s.cancel, &w->err), BELAY_OK);
        play_scene(w, &s, BELAY_CANCELLED);
        belay_cancel_free(s.cancel);
    }
}

static void deadlines(struct world *w)
{
    const struct belay_process_event *e = NULL;
    const struct belay_process *p = NULL;
    struct belay_process_event_request r = { .after = 1, .wait_ms = SOON_MS };

    begin(w);
    int64_t began = now_ms();
    RC(w, wait_type(w, "p", "producer.wake", 0, SOON_MS, NULL, &e), BELAY_TIMEOUT);
    RC(w, belay_process_await(w->use, "p", SOON_MS, NULL, w->arena, &p, &w->err),
       BELAY_TIMEOUT);
    EQ(w, read_events(w, r).n, 0);
    int64_t took = now_ms() - began;
    OK(w, took >= 3 * SOON_MS - 10 && took < PROMPT_MS);
    WHY(w, belay_process_await(w->use, "p", -1, NULL, w->arena, &p, &w->err),
        BELAY_INVALID, "wait");
}

/* --- many callers at once --- */

#define WRITERS 4
#define EACH 15

static void write_some(struct world *w, unsigned i, void *arg)
{
    (void)arg;
    for (int k = 0; k < EACH; k++) {
        struct belay_event_draft d = { .event_type = "producer.line",
                                       .payload = text(w, "{\"line\":\"%u.%d\"}", i, k),
                                       .replay_key = text(w, "key %d", k) };
        struct belay_appended out = { 0 };
        (void)line(w, "p", "plain");
        belay_rc rc = note_try(w, d, &out); /* one of them wins, the others differ */
        OK(w, rc == BELAY_OK || rc == BELAY_REPLAY_CONFLICT);
    }
}

/* E1: 1..n, whoever appends. */
static void gapless(struct world *w)
{
    enroll_id(w, "p");
    world_crowd(w, WRITERS, write_some, NULL);
    int64_t next = 1, keyed = 0;
    struct belay_process_events e;
    do {
        e = read_events(w, (struct belay_process_event_request){ .after = next - 1 });
        for (size_t i = 0; i < e.n; i++) {
            EQ(w, e.items[i].sequence, next++);
            keyed += e.items[i].replay_key != NULL;
        }
    } while (e.n > 0);
    EQ(w, next - 1, WRITERS * EACH + EACH);
    EQ(w, keyed, EACH);
}

static void take_it(struct world *w, unsigned i, void *arg)
{
    int64_t *fences = arg;
    const struct belay_process_lease *l = NULL;
    const char *owner = text(w, "o%u", i);
    belay_rc rc =
        belay_process_lease(w->use, "p", owner, MINUTE, NULL, w->arena, &l, &w->err);

    OK(w, rc == BELAY_OK || rc == BELAY_LEASE_HELD);
    fences[i] = rc ? 0 : l->fence;
}

static void one_holder(struct world *w)
{
    int64_t fences[WRITERS] = { 0 };
    int winners = 0;

    enroll_id(w, "p");
    world_crowd(w, WRITERS, take_it, fences);
    for (int i = 0; i < WRITERS; i++)
        winners += fences[i] > 0;
    EQ(w, winners, 1);
    EQ(w, proc_now(w, "p")->fence, 1);
}

static const struct noun_case cases[] = {
    { "threads: who waits for a type of event is woken by the first of it",
      woken_by_type, CASE_REAL_TIME },
    { "threads: who waits for events is woken by the next", woken_by_any,
      CASE_REAL_TIME },
    { "threads: who awaits a process is woken by its end", woken_by_end,
      CASE_REAL_TIME },
    { "threads: who waits for changes is woken by the next", woken_by_change,
      CASE_REAL_TIME },
    { "threads: every wait for a process can be called off", called_off,
      CASE_REAL_TIME },
    { "waits for a process keep their deadline", deadlines, CASE_REAL_TIME },
    { "threads: E1: events of many callers have no gap and none is double", gapless,
      CASE_REAL_TIME },
    { "threads: L1: of many claimers of a process one holds it", one_holder,
      CASE_REAL_TIME },
};
const struct topic topic_proc_waiting = { cases, COUNT_OF(cases) };
