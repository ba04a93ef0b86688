/* test_work_exec_time.h - hands for cases about executions, time and operators. */
#ifndef TESTS_WORK_EXEC_TIME_H
#define TESTS_WORK_EXEC_TIME_H

#include "base/clock.h"
#include "test_work.h"
#include "work/check.h"
#include "work/exec_claim.h"

#define LAB_LEASE_MS ((int64_t)30000)
#define LAB_GRACE_MS ((int64_t)1000)

struct lab {
    struct work *w;
    struct exec_site site;
    struct belay_ended ended;
    struct belay_timer_report report;
};

static inline bool lab_open(struct lab *l, struct work *w)
{
    *l = (struct lab){ .w = w,
                       .site = { .space = w->space,
                                 .backend = BELAY_BACKEND_MEMORY,
                                 .grace_ms = LAB_GRACE_MS } };
    return WORK_RC(w, lane_book_open(&l->site.lanes, &w->err), BELAY_OK);
}

static inline void lab_note(void *arg, const struct finding *f)
{
    struct work *w = arg;

    if (!TAP_OK(w->t, f->level != FINDING_BAD)) {
        printf("# %s %.*s: %s\n", f->what, (int)f->entity.len,
               (const char *)f->entity.ptr, f->message);
    }
}

/* Every case leaves a sound store. */
static inline void lab_close(struct lab *l)
{
    struct check_counts counts;

    WORK_RC(l->w, check_store(l->w->store, lab_note, l->w, &counts, &l->w->err),
            BELAY_OK);
    lane_book_close(l->site.lanes);
}

static inline void pass(struct lab *l, int64_t ms)
{
    fake_advance_us(&l->w->clock, ms * 1000);
}

static inline int64_t now(struct lab *l)
{
    return atomic_load(&l->w->clock.wall_ms);
}

static inline const char *submit(struct lab *l, struct belay_submission s)
{
    struct belay_submitted out = { .execution_id = "" };

    s.size = sizeof(s);
    s.lane = s.lane ? s.lane : "l";
    WORK_RC(l->w, exec_submit(&l->site, &s, 1, &l->w->arena, &out, &l->w->err),
            BELAY_OK);
    return out.execution_id;
}

static inline struct belay_claim_policy policy_of(const char *worker)
{
    static const char *const lanes[] = { "l" };

    return (struct belay_claim_policy){ .size = sizeof(struct belay_claim_policy),
                                        .lanes = lanes,
                                        .n_lanes = 1,
                                        .worker = worker,
                                        .lease_ms = LAB_LEASE_MS };
}

/* One piece of work; execution_id "" when there is none. */
static inline struct belay_work take(struct lab *l, const char *worker)
{
    struct belay_claim_policy p = policy_of(worker);
    struct belay_works out = { .n = 0 };
    struct belay_work none = { .execution_id = "" };

    WORK_RC(l->w, exec_claim(&l->site, &p, &l->w->arena, &out, &l->w->err), BELAY_OK);
    return out.n > 0 ? out.work[0] : none;
}

static inline belay_rc complete(struct lab *l, const struct belay_work *work)
{
    struct belay_completion c = { .size = sizeof(c), .handle = &work->handle };
    belay_rc rc =
        exec_complete(&l->site, &c, 1, NULL, &l->w->arena, &l->ended, NULL, &l->w->err);

    return rc ? rc : l->ended.code;
}

static inline belay_rc fail(struct lab *l, const struct belay_work *work)
{
    struct belay_failure f = { .size = sizeof(f),
                               .failure_class = BELAY_FAILURE_TRANSIENT,
                               .handle = &work->handle,
                               .message = "why" };
    belay_rc rc = exec_fail(&l->site, &f, 1, &l->w->arena, &l->ended, &l->w->err);

    return rc ? rc : l->ended.code;
}

struct lab_look {
    const char *id;
    struct exec e;
    bool there;
};

static inline belay_rc lab_look_body(struct txn *t, void *arg)
{
    struct lab_look *k = arg;
    belay_rc rc = exec_get(t, bytes_str(k->id), &k->e);

    k->there = rc == BELAY_OK;
    return rc == BELAY_NOT_FOUND ? BELAY_OK : rc;
}

static inline struct lab_look look(struct lab *l, const char *id)
{
    struct lab_look k = { .id = id };

    WORK_RC(l->w,
            txn_run(l->w->space, lab_look_body, &k, NULL, &l->w->arena, &l->w->err),
            BELAY_OK);
    return k;
}

/* The public state, or "" for one that is not there. */
static inline const char *state_of(struct lab *l, const char *id)
{
    struct lab_look k = look(l, id);

    return k.there ? vector_name(BELAY_DIM_STATE, (int)vector_state(&k.e.vector)) : "";
}

static inline int64_t column(struct lab *l, const char *id, unsigned column)
{
    struct lab_look k = look(l, id);

    return exec_i64(&k.e, column, TIME_NONE);
}

/* One step of the timers. */
static inline struct belay_timer_report tick(struct lab *l)
{
    WORK_RC(l->w, exec_timers_step(&l->site, NULL, &l->report, &l->w->err), BELAY_OK);
    return l->report;
}

/* What is told about executions, one text. */
struct lab_feed {
    struct buf text;
    size_t entries;
};

static inline belay_rc lab_feed_body(struct txn *t, void *arg)
{
    struct lab_feed *f = arg;
    struct feed_entries page;
    belay_rc rc = txn_feed_read(t, bytes_str(EXECUTION_FEED), (struct feed_pos){ 0 },
                                1000, &page);

    buf_reset(&f->text);
    for (size_t i = 0; i < page.n && rc == BELAY_OK; i++)
        buf_append(&f->text, page.entry[i].data);
    buf_append_char(&f->text, '\0');
    f->entries = page.n;
    return rc;
}

/* How often something is told in the feed. */
static inline int told(struct lab *l, const char *what)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct lab_feed f = { .entries = 0 };
    int n = 0;

    WORK_RC(l->w, txn_run(l->w->space, lab_feed_body, &f, NULL, &a, &l->w->err),
            BELAY_OK);
    for (const char *p = (const char *)f.text.ptr; (p = strstr(p, what)); p++)
        n++;
    buf_release(&f.text);
    return n;
}

#endif /* TESTS_WORK_EXEC_TIME_H */
