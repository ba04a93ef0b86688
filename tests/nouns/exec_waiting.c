/* Waiting for work: woken by whatever makes some of it claimable, by cancel, by the
 * deadline.  In real time, with little of it to wait. */
#include "exec.h"

#define LONG_MS ((int64_t)20000)  /* nobody ever waits that long here */
#define PROMPT_MS ((int64_t)3000) /* being woken takes less; looking by chance more */
#define SOON_MS ((int64_t)60)

/* One waits, one does something a little later. */
struct scene {
    void (*meanwhile)(struct world *w, struct scene *s);
    struct belay_claim_policy policy;
    const struct belay_work *holder;
    const char *id;
    belay_rc rc;
    size_t n;
    char submitted[64], taken[64];
    int32_t kind;
    int64_t took_ms;
};

static void play(struct world *w, unsigned i, void *arg)
{
    struct scene *s = arg;

    if (i == 1) {
        world_pass(w, SOON_MS / 2);
        s->meanwhile(w, s);
        return;
    }
    struct belay_works got = { 0 };
    int64_t began = machine_ms();
    s->rc = claim_try(w, s->policy, &got);
    s->took_ms = machine_ms() - began;
    s->n = got.n;
    if (s->rc == BELAY_OK && got.n > 0) {
        (void)snprintf(s->taken, sizeof(s->taken), "%s", got.work[0].execution_id);
        s->kind = got.work[0].handle.kind;
    }
}

static void play_scene(struct world *w, struct scene *s)
{
    s->policy.max_wait_ms = s->policy.max_wait_ms ? s->policy.max_wait_ms : LONG_MS;
    world_crowd(w, 2, play, s);
    OK(w, s->took_ms < PROMPT_MS);
}

/* --- what wakes --- */

static void submit_one(struct world *w, struct scene *s)
{
    const char *id = submit(w, (struct belay_submission){ 0 });

    (void)snprintf(s->submitted, sizeof(s->submitted), "%s", id ? id : "?");
}

static void woken_by_a_submission(struct world *w)
{
    for (int i = 0; i < 3; i++) {
        struct scene s = { .meanwhile = submit_one };
        play_scene(w, &s);
        EQ(w, s.rc, BELAY_OK);
        STR(w, s.taken, s.submitted);
    }
}

static void submit_elsewhere(struct world *w, struct scene *s)
{
    static const char *const gpu[] = { "gpu" };

    (void)submit(w, (struct belay_submission){ .lane = "m" });
    (void)submit(w, (struct belay_submission){ .requires = gpu, .n_requires = 1 });
    submit_one(w, s);
}

static void not_fooled_by_other_work(struct world *w)
{
    struct scene s = { .meanwhile = submit_elsewhere };

    play_scene(w, &s);
    STR(w, s.taken, s.submitted);
}

/* A set of capabilities that the lane never had before. */
static void submit_a_new_route(struct world *w, struct scene *s)
{
    static const char *const tpu[] = { "tpu" };

    (void)submit(w, (struct belay_submission){ .requires = tpu, .n_requires = 1 });
    (void)s;
}

static void woken_by_a_new_route(struct world *w)
{
    static const char *const has[] = { "gpu", "tpu" };
    struct scene s = { .meanwhile = submit_a_new_route,
                       .policy = { .capabilities = has, .n_capabilities = 2 } };

    play_scene(w, &s);
    EQ(w, s.n, 1);
}

static void submit_on_the_third(struct world *w, struct scene *s)
{
    (void)s;
    (void)submit(w, (struct belay_submission){ .lane = "c" });
}

static void waits_on_several_lanes(struct world *w)
{
    static const char *const lanes[] = { "a", "b", "c" };
    struct scene s = { .meanwhile = submit_on_the_third,
                       .policy = { .lanes = lanes, .n_lanes = 3 } };

    play_scene(w, &s);
    EQ(w, s.n, 1);
}

static void give_back(struct world *w, struct scene *s)
{
    RC(w, belay_execution_release(w->use, &s->holder->handle, &w->err), BELAY_OK);
}

static void revoke_it(struct world *w, struct scene *s)
{
    bool revoked = false;

    RC(w, belay_execution_revoke(w->use, s->id, NULL, "r", &revoked, &w->err),
       BELAY_OK);
    OK(w, revoked);
}

static void replay_it(struct world *w, struct scene *s)
{
    RC(w, complete(w, &s->holder->handle, NULL, NULL), BELAY_OK);
    RC(w, belay_execution_replay(w->use, s->id, "r", &w->err), BELAY_OK);
}

static void woken_when_work_comes_back(struct world *w)
{
    static const struct {
        void (*meanwhile)(struct world *, struct scene *);
        int kind;
    } rows[] = { { give_back, BELAY_HANDLE_RESUMED },
                 { revoke_it, BELAY_HANDLE_RECLAIMED },
                 { replay_it, BELAY_HANDLE_FRESH } };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *lane = text(w, "%zu", i);
        struct scene s = { .meanwhile = rows[i].meanwhile,
                           .policy = { .lanes = &lane, .n_lanes = 1 } };
        s.id = submit(w, (struct belay_submission){ .lane = lane });
        s.holder = work_on(w, lane);
        if (!OK(w, s.id && s.holder))
            return;
        play_scene(w, &s);
        STR(w, s.taken, s.id);
        if (!EQ(w, s.kind, rows[i].kind))
            printf("# in row %zu\n", i);
    }
}

/* --- time alone --- */

static void nothing(struct world *w, struct scene *s)
{
    (void)w;
    (void)s;
}

static void woken_when_a_delay_is_over(struct world *w)
{
    struct scene s = { .meanwhile = nothing };

    s.id = submit(w, (struct belay_submission){ .delay_ms = SOON_MS });
    play_scene(w, &s);
    STR(w, s.taken, s.id);
}

/* Something earlier comes while somebody waits for something later. */
static void submit_soon(struct world *w, struct scene *s)
{
    (void)s;
    (void)submit(w, (struct belay_submission){ .delay_ms = SOON_MS });
}

static void woken_by_an_earlier_time(struct world *w)
{
    struct scene s = { .meanwhile = submit_soon };

    (void)submit(w, (struct belay_submission){ .delay_ms = 10 * LONG_MS });
    play_scene(w, &s);
    EQ(w, s.n, 1);
}

static void woken_when_a_lease_is_lost(struct world *w)
{
    struct scene s = { .meanwhile = nothing };

    if (!quick(w))
        return;
    s.id = submit(w, (struct belay_submission){ 0 });
    s.holder = work_late(w, "l");
    if (!OK(w, s.holder != NULL))
        return;
    play_scene(w, &s);
    STR(w, s.taken, s.id);
    EQ(w, s.kind, BELAY_HANDLE_RECLAIMED);
    OK(w, s.took_ms >= GRACE_MS - SOON_MS);
    WHY(w, complete(w, &s.holder->handle, NULL, NULL), BELAY_LEASE_LOST, "superseded");
}

/* --- ends of waiting --- */

static void trigger(struct world *w, struct scene *s)
{
    (void)w;
    belay_cancel_trigger(s->policy.cancel);
}

static void ended_by_cancel(struct world *w)
{
    struct scene s = { .meanwhile = trigger };
    struct belay_works got = { 0 };

    if (!RC(w, belay_cancel_new(&s.policy.cancel, &w->err), BELAY_OK))
        return;
    play_scene(w, &s);
    EQ(w, s.rc, BELAY_CANCELLED);
    (void)submit(w, (struct belay_submission){ 0 });
    RC(w, claim_try(w, s.policy, &got), BELAY_CANCELLED); /* and every later call */
    belay_cancel_free(s.policy.cancel);
    OK(w, work_on(w, "l") != NULL);
}

static void deadline_is_kept(struct world *w)
{
    struct scene s = { .meanwhile = nothing, .policy = { .max_wait_ms = SOON_MS } };

    play_scene(w, &s);
    EQ(w, s.rc, BELAY_OK); /* an answer, and no error */
    EQ(w, s.n, 0);
    OK(w, s.took_ms >= SOON_MS - 1);
}

/* --- waiting for one execution --- */

struct vigil {
    const char *id;
    const struct belay_work *held;
    belay_rc rc;
    int state;
    int64_t took_ms;
};

static void watch(struct world *w, unsigned i, void *arg)
{
    struct vigil *v = arg;

    if (i == 1) {
        world_pass(w, SOON_MS / 2);
        RC(w, frame(w, &v->held->handle, "out"), BELAY_OK);
        world_pass(w, SOON_MS / 2);
        RC(w, complete(w, &v->held->handle, NULL, NULL), BELAY_OK);
        return;
    }
    struct belay_frame_request r = { .size = sizeof(r),
                                     .execution_id = v->id,
                                     .wait_ms = LONG_MS };
    struct belay_frames all = { 0 };
    int64_t began = machine_ms();
    RC(w, belay_execution_frames(w->use, &r, w->arena, &all, &w->err), BELAY_OK);
    EQ(w, all.n, 1); /* woken by the frame */
    v->rc = belay_execution_wait(w->use, v->id, LONG_MS, NULL, &v->state, &w->err);
    r.after_seq = all.last_seq;
    RC(w, belay_execution_frames(w->use, &r, w->arena, &all, &w->err), BELAY_OK);
    EQ(w, all.n, 0); /* and does not wait for more of what has ended */
    OK(w, all.closed && all.terminal);
    v->took_ms = machine_ms() - began;
}

static void frames_and_ends_are_waited_for(struct world *w)
{
    struct vigil v = { 0 };

    v.id = submit(w, (struct belay_submission){ 0 });
    v.held = work_on(w, "l");
    if (!OK(w, v.id && v.held))
        return;
    int state = 0;
    RC(w, belay_execution_wait(w->use, v.id, 1, NULL, &state, &w->err), BELAY_TIMEOUT);
    EQ(w, state, BELAY_STATE_ACTIVE);
    world_crowd(w, 2, watch, &v);
    EQ(w, v.rc, BELAY_OK);
    EQ(w, v.state, BELAY_STATE_COMPLETED);
    OK(w, v.took_ms < PROMPT_MS);
}

static const struct noun_case cases[] = {
    { "threads: a waiting worker is woken by a submission", woken_by_a_submission,
      CASE_REAL_TIME },
    { "threads: a waiting worker is not fooled by work it cannot do",
      not_fooled_by_other_work, CASE_REAL_TIME },
    { "threads: a waiting worker is woken by a new set of capabilities",
      woken_by_a_new_route, CASE_REAL_TIME },
    { "threads: a worker waits on several lanes", waits_on_several_lanes,
      CASE_REAL_TIME },
    { "threads: a waiting worker is woken when work comes back",
      woken_when_work_comes_back, CASE_REAL_TIME },
    { "threads: a waiting worker is woken when a delay is over",
      woken_when_a_delay_is_over, CASE_REAL_TIME },
    { "threads: a waiting worker is woken by an earlier delay",
      woken_by_an_earlier_time, CASE_REAL_TIME },
    { "threads: a waiting worker is woken when a lease is lost",
      woken_when_a_lease_is_lost, CASE_REAL_TIME },
    { "threads: a worker's waiting ends by cancel", ended_by_cancel, CASE_REAL_TIME },
    { "threads: a worker's waiting ends in time", deadline_is_kept, CASE_REAL_TIME },
    { "threads: frames and the end of an execution are waited for",
      frames_and_ends_are_waited_for, CASE_REAL_TIME },
};

const struct topic topic_exec_waiting = { cases, COUNT_OF(cases) };
