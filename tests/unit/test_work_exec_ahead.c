/* Claims that find what was read ahead (store/sight.h): one round trip for a completion and the
 * next claim, and whatever others do in between is honoured all the same.  Two stores on one
 * driver are two programs. */
#include "test_work.h"
#include "work/check.h"
#include "work/execution.h"

enum { HERE, THERE, PROGRAMS };

struct lab {
    struct work *w;
    struct store *other;
    struct exec_site site[PROGRAMS];
    struct belay_work now; /* what HERE works on */
    size_t n;              /* 0: nothing */
};

/* Where rows and scans are kept; drivers without a round trip are made to do so, too, if they
 * guard scans at all. */
static bool sees_ahead(const struct work *w)
{
    return (w->driver->caps & DRIVER_SCAN_GUARDS) != 0;
}

static bool lab_open(struct lab *l, struct work *w)
{
    if (sees_ahead(w))
        w->driver->caps |= DRIVER_FAR;
    *l = (struct lab){ .w = w, .other = work_store(w) };
    l->site[HERE] = (struct exec_site){ .space = w->space,
                                        .backend = BELAY_BACKEND_MEMORY,
                                        .grace_ms = 1000 };
    l->site[THERE] = l->site[HERE];
    l->site[THERE].space = work_space(w, l->other, "default");
    return WORK_RC(w, lane_book_open(&l->site[HERE].lanes, &w->err), BELAY_OK) &&
           WORK_RC(w, lane_book_open(&l->site[THERE].lanes, &w->err), BELAY_OK);
}

static void report(void *arg, const struct finding *f)
{
    struct lab *l = arg;

    tap_check_str(l->w->t, f->message, "", f->what, __FILE__, __LINE__);
}

static void lab_close(struct lab *l)
{
    struct check_counts counts;

    WORK_RC(l->w, check_store(l->w->store, report, l, &counts, &l->w->err), BELAY_OK);
    for (unsigned i = 0; i < PROGRAMS; i++)
        lane_book_close(l->site[i].lanes);
    store_close(l->other);
}

static const char *submit(struct lab *l, unsigned program, int priority,
                          int64_t delay_ms)
{
    struct belay_submission s = {
        .size = sizeof(s), .lane = "l", .priority = priority, .delay_ms = delay_ms
    };
    struct belay_submitted out = { .execution_id = NULL };

    fake_advance_us(&l->w->clock, 1000); /* their age tells them apart */
    WORK_RC(l->w, exec_submit(&l->site[program], &s, 1, &l->w->arena, &out, &l->w->err),
            BELAY_OK);
    return out.execution_id ? out.execution_id : "";
}

static struct belay_claim_policy policy(const char *const *lanes)
{
    return (struct belay_claim_policy){ .size = sizeof(struct belay_claim_policy),
                                        .lanes = lanes,
                                        .n_lanes = 1,
                                        .worker = "w",
                                        .max = 1,
                                        .lease_ms = 30000 };
}

static void take(struct lab *l, const struct belay_works *works)
{
    l->n = works->n;
    if (works->n > 0)
        l->now = works->work[0];
}

static void claim(struct lab *l, unsigned program)
{
    static const char *const lanes[] = { "l" };
    struct belay_claim_policy p = policy(lanes);
    struct belay_works works = { .n = 0 };

    WORK_RC(l->w, exec_claim(&l->site[program], &p, &l->w->arena, &works, &l->w->err),
            BELAY_OK);
    take(l, &works);
}

/* Completes what was claimed and claims the next. */
static void step(struct lab *l)
{
    static const char *const lanes[] = { "l" };
    struct belay_claim_policy p = policy(lanes);
    struct belay_completion c = { .size = sizeof(c), .handle = &l->now.handle };
    struct belay_ended ended;
    struct belay_works works = { .n = 0 };

    WORK_RC(l->w,
            exec_complete(&l->site[HERE], &c, 1, &p, &l->w->arena, &ended, &works,
                          &l->w->err),
            BELAY_OK);
    TAP_EQ(l->w->t, ended.code, BELAY_OK);
    take(l, &works);
}

/* A step, and what it took. */
static void step_in(struct lab *l, unsigned reads, unsigned commits)
{
    bool traced = sees_ahead(l->w) && work_is_traced(l->w);

    if (traced)
        trace_reset(l->w->driver);
    step(l);
    if (!traced)
        return;
    struct trace_counts n = trace_counts(l->w->driver);
    TAP_EQ(l->w->t, n.reads, reads);
    TAP_EQ(l->w->t, n.commits, commits);
}

/* Some work, of which HERE has claimed the first with whatever is behind it. */
static bool begin(struct lab *l, struct work *w, const char *ids[], size_t n)
{
    if (!lab_open(l, w))
        return false;
    for (size_t i = 0; i < n; i++)
        ids[i] = submit(l, HERE, 0, 0);
    claim(l, HERE);
    return TAP_EQ(w->t, l->n, 1) && TAP_STR(w->t, l->now.execution_id, ids[0]);
}

static void alone_case(struct work *w)
{
    const char *ids[8];
    struct lab l;

    if (begin(&l, w, ids, COUNT_OF(ids))) {
        for (size_t i = 1; i < COUNT_OF(ids); i++) {
            step_in(&l, 0, 1);
            TAP_EQ(w->t, l.n, 1);
            TAP_STR(w->t, l.now.execution_id, ids[i]);
        }
        step(&l);
        TAP_EQ(w->t, l.n, 0);
    }
    lab_close(&l);
}

/* What this program submits itself is known to it. */
static void own_case(struct work *w)
{
    const char *ids[4];
    struct lab l;

    if (begin(&l, w, ids, COUNT_OF(ids))) {
        step_in(&l, 0, 1);
        (void)submit(&l, HERE, 0, 0); /* behind the others */
        step_in(&l, 0, 1);
        TAP_STR(w->t, l.now.execution_id, ids[2]);
        const char *first = submit(&l, HERE, 5, 0); /* before them: asked */
        step_in(&l, 1, 1);
        TAP_STR(w->t, l.now.execution_id, first);
        step_in(&l, 0, 1);
        TAP_STR(w->t, l.now.execution_id, ids[3]);
    }
    lab_close(&l);
}

static void priority_case(struct work *w)
{
    const char *ids[4];
    struct lab l;

    if (begin(&l, w, ids, COUNT_OF(ids))) {
        const char *first = submit(&l, THERE, 5, 0);
        step_in(&l, 1, 2); /* in vain, then asked */
        TAP_STR(w->t, l.now.execution_id, first);
        step(&l);
        TAP_STR(w->t, l.now.execution_id, ids[1]);
    }
    lab_close(&l);
}

static void due_case(struct work *w)
{
    const char *ids[4];
    struct lab l;

    if (begin(&l, w, ids, COUNT_OF(ids))) {
        const char *due = submit(&l, THERE, 5, 50);
        step(&l);
        TAP_STR(w->t, l.now.execution_id, ids[1]);
        fake_advance_us(&w->clock, 60000);
        step(&l);
        TAP_STR(w->t, l.now.execution_id, due);
    }
    lab_close(&l);
}

/* What was taken out of its turn, or is somebody else's by now, is not claimed. */
static void gone_case(struct work *w)
{
    const char *ids[5];
    struct lab l;

    if (begin(&l, w, ids, COUNT_OF(ids))) {
        WORK_RC(w, exec_cancel(&l.site[THERE], ids[1], "no", "operator", &w->err),
                BELAY_OK);
        step(&l);
        TAP_STR(w->t, l.now.execution_id, ids[2]);
        struct belay_work mine = l.now;
        claim(&l, THERE);
        TAP_STR(w->t, l.now.execution_id, ids[3]);
        l.now = mine;
        step(&l);
        TAP_STR(w->t, l.now.execution_id, ids[4]);
    }
    lab_close(&l);
}

/* The priority of what stands behind is raised: it is the first. */
static void moved_case(struct work *w)
{
    const char *ids[3];
    struct lab l;

    if (begin(&l, w, ids, COUNT_OF(ids))) {
        WORK_RC(w, exec_set_priority(&l.site[THERE], ids[2], 7, &w->err), BELAY_OK);
        step(&l);
        TAP_STR(w->t, l.now.execution_id, ids[2]);
        step(&l);
        TAP_STR(w->t, l.now.execution_id, ids[1]);
    }
    lab_close(&l);
}

/* Tags decide nothing, and are handed out as they are. */
static void tags_case(struct work *w)
{
    const char *ids[4];
    struct lab l;

    if (begin(&l, w, ids, COUNT_OF(ids))) {
        for (unsigned program = 0; program < PROGRAMS; program++) {
            const struct belay_tag tag = { "by", program == HERE ? "here" : "there" };
            WORK_RC(w, exec_tag(&l.site[program], ids[1 + program], &tag, 1, &w->err),
                    BELAY_OK);
            step(&l);
            TAP_STR(w->t, l.now.execution_id, ids[1 + program]);
            if (TAP_EQ(w->t, l.now.n_tags, 1))
                TAP_STR(w->t, l.now.tags[0].value, tag.value);
        }
    }
    lab_close(&l);
}

/* A route that somebody else has entered since. */
static void roster_case(struct work *w)
{
    static const char *const needs[] = { "gpu" };
    static const char *const lanes[] = { "l" };
    const char *ids[4];
    struct lab l;

    if (!lab_open(&l, w))
        return;
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        ids[i] = submit(&l, HERE, 0, 0);
    struct belay_claim_policy p = policy(lanes);
    p.capabilities = needs;
    p.n_capabilities = 1;
    struct belay_works works = { .n = 0 };
    for (unsigned i = 0; i < 2; i++) {
        WORK_RC(w, exec_claim(&l.site[HERE], &p, &w->arena, &works, &w->err), BELAY_OK);
        TAP_EQ(w->t, works.n, 1);
        TAP_STR(w->t, works.work[0].execution_id, ids[i]);
    }
    struct belay_submission s = { .size = sizeof(s),
                                  .lane = "l",
                                  .priority = 9,
                                  .requires = needs,
                                  .n_requires = 1 };
    struct belay_submitted out = { .execution_id = NULL };
    WORK_RC(w, exec_submit(&l.site[THERE], &s, 1, &w->arena, &out, &w->err), BELAY_OK);
    WORK_RC(w, exec_claim(&l.site[HERE], &p, &w->arena, &works, &w->err), BELAY_OK);
    TAP_EQ(w->t, works.n, 1);
    TAP_STR(w->t, works.work[0].execution_id, out.execution_id);
    lab_close(&l);
}

/* Two who take turns on one lane soon stop reading ahead: no step of theirs is in vain. */
static void rivals_case(struct work *w)
{
    enum { TURNS = 24 };
    struct lab l;

    if (lab_open(&l, w)) {
        for (unsigned i = 0; i < 2 * TURNS; i++)
            (void)submit(&l, HERE, 0, 0);
        uint64_t conflicts = 0;
        for (unsigned i = 0; i < TURNS; i++) {
            if (work_is_traced(w))
                trace_reset(w->driver);
            claim(&l, HERE);
            TAP_EQ(w->t, l.n, 1);
            claim(&l, THERE);
            TAP_EQ(w->t, l.n, 1);
            if (work_is_traced(w))
                conflicts += trace_counts(w->driver).conflicts;
        }
        TAP_OK(w->t, conflicts <= 6);
    }
    lab_close(&l);
}

/* --- */

static void test_alone(struct tap *t)
{
    work_everywhere(t, alone_case);
}

static void test_own(struct tap *t)
{
    work_everywhere(t, own_case);
}

static void test_priority(struct tap *t)
{
    work_everywhere(t, priority_case);
}

static void test_due(struct tap *t)
{
    work_everywhere(t, due_case);
}

static void test_gone(struct tap *t)
{
    work_everywhere(t, gone_case);
}

static void test_moved(struct tap *t)
{
    work_everywhere(t, moved_case);
}

static void test_tags(struct tap *t)
{
    work_everywhere(t, tags_case);
}

static void test_roster(struct tap *t)
{
    work_everywhere(t, roster_case);
}

static void test_rivals(struct tap *t)
{
    work_everywhere(t, rivals_case);
}

static const struct tap_case cases[] = {
    { "who works alone completes and claims in one round trip", test_alone },
    { "what it submits itself costs at most one more", test_own },
    { "a greater priority that came from elsewhere goes first", test_priority },
    { "what was delayed elsewhere and is due by now goes first", test_due },
    { "what was cancelled or claimed elsewhere is not claimed", test_gone },
    { "a priority that was changed elsewhere counts", test_moved },
    { "tags are those that it has", test_tags },
    { "a route that was entered elsewhere is looked at", test_roster },
    { "those who compete do not do so in vain for long", test_rivals },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
