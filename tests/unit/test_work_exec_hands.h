/* test_work_exec_hands.h - hands for the cases that look at executions. */
#ifndef TESTS_WORK_EXEC_HANDS_H
#define TESTS_WORK_EXEC_HANDS_H

#include <pthread.h>

#include "base/clock.h"
#include "test_work.h"
#include "work/execution_rows.h"

#define LEASE_MS ((int64_t)30000)
#define GRACE_MS ((int64_t)1000)

struct hands {
    struct work *w;
    struct exec_site site;
};

static inline bool hands_open(struct hands *h, struct work *w)
{
    *h = (struct hands){ .w = w,
                         .site = { .space = w->space,
                                   .backend = BELAY_BACKEND_MEMORY,
                                   .grace_ms = GRACE_MS } };
    return WORK_RC(w, lane_book_open(&h->site.lanes, &w->err), BELAY_OK);
}

static inline void hands_close(struct hands *h)
{
    lane_book_close(h->site.lanes);
}

static inline void pass(struct hands *h, int64_t ms)
{
    fake_advance_us(&h->w->clock, ms * 1000);
}

static inline int64_t now_of(struct hands *h)
{
    return atomic_load(&h->w->clock.wall_ms);
}

static inline const char *submit(struct hands *h, struct belay_submission s)
{
    struct belay_submitted out = { .execution_id = NULL };

    s.size = sizeof(s);
    if (!s.lane)
        s.lane = "l";
    if (s.process)
        work_process(h->w, s.process);
    WORK_RC(h->w, exec_submit(&h->site, &s, 1, &h->w->arena, &out, &h->w->err),
            BELAY_OK);
    return out.execution_id ? out.execution_id : "none";
}

static inline const char *submit_plain(struct hands *h)
{
    return submit(h, (struct belay_submission){ .priority = 0 });
}

/* The next piece of work of a lane. */
static inline struct belay_work take_from(struct hands *h, const char *lane,
                                          const char *worker)
{
    const struct belay_claim_policy p = { .size = sizeof(p),
                                          .lanes = &lane,
                                          .n_lanes = 1,
                                          .worker = worker,
                                          .max = 1,
                                          .lease_ms = LEASE_MS };
    struct belay_works works = { .n = 0 };

    WORK_RC(h->w, exec_claim(&h->site, &p, &h->w->arena, &works, &h->w->err), BELAY_OK);
    TAP_EQ(h->w->t, works.n, 1);
    return works.n > 0 ? works.work[0] : (struct belay_work){ .execution_id = "none" };
}

static inline struct belay_work take(struct hands *h, const char *worker)
{
    return take_from(h, "l", worker);
}

static inline void complete_with(struct hands *h, const struct belay_work *work,
                                 struct bytes result, bool is_json)
{
    const struct belay_completion c = { .size = sizeof(c),
                                        .handle = &work->handle,
                                        .result = result.ptr,
                                        .result_len = result.len,
                                        .result_is_json = is_json };
    struct belay_ended ended = { .code = BELAY_OK };

    WORK_RC(
        h->w,
        exec_complete(&h->site, &c, 1, NULL, &h->w->arena, &ended, NULL, &h->w->err),
        BELAY_OK);
    WORK_RC(h->w, ended.code, BELAY_OK);
}

static inline void complete(struct hands *h, const struct belay_work *work)
{
    complete_with(h, work, bytes_of(NULL, 0), false);
}

static inline void fail(struct hands *h, const struct belay_work *work, int class,
                        const char *message)
{
    const struct belay_failure f = { .size = sizeof(f),
                                     .failure_class = class,
                                     .handle = &work->handle,
                                     .message = message };
    struct belay_ended ended = { .code = BELAY_OK };

    WORK_RC(h->w, exec_fail(&h->site, &f, 1, &h->w->arena, &ended, &h->w->err),
            BELAY_OK);
    WORK_RC(h->w, ended.code, BELAY_OK);
}

/* Time passes until the lease is lost, and the timers see to it. */
static inline void lose(struct hands *h)
{
    struct belay_timer_report report;

    pass(h, LEASE_MS + GRACE_MS + 1);
    WORK_RC(h->w, exec_timers_step(&h->site, NULL, &report, &h->w->err), BELAY_OK);
}

static inline struct belay_execution describe(struct hands *h, const char *id)
{
    struct belay_execution e = { .id = "none" };

    WORK_RC(h->w, exec_describe(&h->site, id, &h->w->arena, &e, &h->w->err), BELAY_OK);
    return e;
}

static inline void append(struct hands *h, const struct belay_work *work,
                          const char *text)
{
    const struct belay_frame f = { .size = sizeof(f),
                                   .kind = BELAY_FRAME_STDOUT,
                                   .bytes = text,
                                   .len = strlen(text) };

    WORK_RC(h->w, exec_append_frames(&h->site, &work->handle, &f, 1, NULL, &h->w->err),
            BELAY_OK);
}

/* Writes something beside the nouns. */
static inline void write_aside(struct hands *h, txn_body *body, void *arg)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };

    WORK_RC(h->w, txn_run(h->w->space, body, arg, NULL, &arena, &h->w->err), BELAY_OK);
}

static inline int64_t real_ms(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg) / 1000;
}

/* A moment in which a thread most likely begins to wait; if not, it need not be woken. */
static inline void real_pause(void)
{
    struct belay_clock clock = clock_system();

    clock.sleep_us(clock.arg, 20000);
}

/* Runs a case's work on every driver, with hands. */
static inline void with_hands(struct tap *t, void (*run)(struct hands *h))
{
    for (int on = 0; on < ON_DRIVERS; on++) {
        unsigned failed = t->failed;
        struct hands h;
        struct work w;
        if (!work_chosen(t, (enum work_driver)on))
            continue;
        if (work_open(&w, t, (enum work_driver)on) && hands_open(&h, &w)) {
            run(&h);
            hands_close(&h);
        }
        work_close(&w);
        if (t->failed > failed)
            printf("# on %s\n", work_names[on]);
    }
}

#endif /* TESTS_WORK_EXEC_HANDS_H */
