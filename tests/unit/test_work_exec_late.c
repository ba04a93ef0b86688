/* Executions on every driver: what stands before that which can be claimed.  However much is due
 * or too late, a claim sees to it in transactions of a page, and comes to what is behind. */
#include <malloc.h>

#include "test_work_exec_time.h"

#define MANY ((size_t)2000)
/* What a claim of one needs for a page of what is due, and what a program remembers of rows,
 * are below it; memory that is kept of every page is above it. */
#define MEMORY_MAX ((size_t)8 << 20)

/* n executions like s, a thousand at a time; nothing of them stays in memory. */
static void submit_many(struct lab *l, struct belay_submission s, size_t n)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_submission *items = calloc(BELAY_WORK_MAX, sizeof(*items));
    struct belay_submitted *out = calloc(BELAY_WORK_MAX, sizeof(*out));

    s.size = sizeof(s);
    s.lane = s.lane ? s.lane : "l";
    for (size_t i = 0; i < BELAY_WORK_MAX; i++)
        items[i] = s;
    for (size_t done = 0; done < n;) {
        size_t count = n - done < BELAY_WORK_MAX ? n - done : BELAY_WORK_MAX;
        WORK_RC(l->w, exec_submit(&l->site, items, count, &a, out, &l->w->err),
                BELAY_OK);
        done += count;
    }
    free(items);
    free(out);
}

/* What is allocated now.  A sanitizer's allocator does not tell: then it is 0. */
static size_t memory_in_use(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* --- past their deadlines --- */

/* MANY that are too late, and one behind them that is not. */
static const char *put_late(struct lab *l)
{
    submit_many(l, (struct belay_submission){ .deadline_ms = 1000 }, MANY);
    pass(l, 1);
    const char *live = submit(l, (struct belay_submission){ .priority = 0 });
    pass(l, 1000);
    return live;
}

static void expect_expired(struct lab *l, size_t n)
{
    struct belay_execution_stats stats = { .size = sizeof(stats) };

    WORK_RC(l->w, exec_count(&l->site, &stats, &l->w->err), BELAY_OK);
    TAP_EQ(l->w->t, stats.count[BELAY_STATE_EXPIRED], (int64_t)n);
    TAP_EQ(l->w->t, told(l, "\"outcome\":\"expired\""), (int)n);
}

static void claimed(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *live = put_late(&l);
    size_t before = memory_in_use();
    struct belay_work work = take(&l, "w1");
    TAP_OK(w->t, memory_in_use() < before + MEMORY_MAX);
    TAP_STR(w->t, work.execution_id, live);
    expect_expired(&l, MANY);
    lab_close(&l);
}

static void granted(struct work *w)
{
    struct belay_claim_policy p = policy_of("w1");
    struct belay_grant grant = { .execution_id = NULL };
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *live = put_late(&l);
    size_t before = memory_in_use();
    WORK_RC(w, exec_grant(&l.site, &p, 1000, &w->arena, &grant, &w->err), BELAY_OK);
    TAP_OK(w->t, memory_in_use() < before + MEMORY_MAX);
    TAP_STR(w->t, grant.execution_id ? grant.execution_id : "none", live);
    expect_expired(&l, MANY);
    lab_close(&l);
}

static void claimed_next(struct work *w)
{
    struct belay_claim_policy p = policy_of("w1");
    struct belay_works next = { .n = 0 };
    struct lab l;

    if (!lab_open(&l, w))
        return;
    (void)submit(&l, (struct belay_submission){ .priority = 1 });
    struct belay_work first = take(&l, "w1");
    const char *live = put_late(&l);
    const struct belay_completion c = { .size = sizeof(c), .handle = &first.handle };
    size_t before = memory_in_use();
    WORK_RC(w, exec_complete(&l.site, &c, 1, &p, &w->arena, &l.ended, &next, &w->err),
            BELAY_OK);
    TAP_OK(w->t, memory_in_use() < before + MEMORY_MAX);
    WORK_RC(w, l.ended.code, BELAY_OK);
    TAP_EQ(w->t, next.n, 1);
    TAP_STR(w->t, next.n > 0 ? next.work[0].execution_id : "none", live);
    expect_expired(&l, MANY);
    lab_close(&l);
}

/* Late ones among those that are not: a claim of several leaves no room empty. */
static void between(struct work *w)
{
    struct belay_claim_policy p = policy_of("w1");
    struct belay_works works = { .n = 0 };
    struct lab l;

    if (!lab_open(&l, w))
        return;
    for (int i = 0; i < 20; i++) {
        (void)submit(&l, (struct belay_submission){ .deadline_ms = i % 2 ? 1000 : 0 });
    }
    pass(&l, 1000);
    p.max = 9;
    WORK_RC(w, exec_claim(&l.site, &p, &w->arena, &works, &w->err), BELAY_OK);
    TAP_EQ(w->t, works.n, 9);
    expect_expired(&l, 10);
    lab_close(&l);
}

/* --- due --- */

/* What is due elsewhere is seen to, all of it, and costs no memory. */
static void elsewhere(struct work *w)
{
    struct belay_claim_policy p = policy_of("w1");
    struct belay_works works = { .n = 9 };
    struct lab l;

    if (!lab_open(&l, w))
        return;
    submit_many(&l, (struct belay_submission){ .lane = "other", .delay_ms = 1000 },
                MANY);
    pass(&l, 1000);
    size_t before = memory_in_use();
    WORK_RC(w, exec_claim(&l.site, &p, &w->arena, &works, &w->err), BELAY_OK);
    TAP_OK(w->t, memory_in_use() < before + MEMORY_MAX);
    TAP_EQ(w->t, works.n, 0);
    TAP_EQ(w->t, works.next_at_ms, TIME_NONE);
    TAP_EQ(w->t, tick(&l).promoted, 0);
    lab_close(&l);
}

/* A clock that is a minute later whenever it is asked how long something takes. */
static int64_t hasty_us(void *arg)
{
    return atomic_fetch_add(&((struct fake_clock *)arg)->mono_us, 60000000);
}

/* A claim that does not come to an end says so: ask again at once.  Who does gets on. */
static void given_up(struct work *w)
{
    struct belay_claim_policy p = policy_of("w1");
    struct belay_works works = { .n = 0 };
    int64_t now_ms = 0;
    int asked = 0;
    struct lab l;

    if (!lab_open(&l, w))
        return;
    submit_many(&l, (struct belay_submission){ .lane = "other", .delay_ms = 1000 },
                300);
    pass(&l, 1);
    const char *live = submit(&l, (struct belay_submission){ .delay_ms = 1000 });
    pass(&l, 1000);
    w->config.clock.mono_us = hasty_us;
    struct store *hasty = work_store(w);
    l.site.space = work_space(w, hasty, "default");
    do {
        WORK_RC(w, exec_claim(&l.site, &p, &w->arena, &works, &w->err), BELAY_OK);
        WORK_RC(w, space_now(l.site.space, &now_ms, &w->err), BELAY_OK);
        TAP_OK(w->t, works.n > 0 ||
                         (works.next_at_ms != TIME_NONE && works.next_at_ms <= now_ms));
    } while (works.n == 0 && ++asked < 20);
    TAP_OK(w->t, asked > 0);
    TAP_STR(w->t, works.n > 0 ? works.work[0].execution_id : "none", live);
    l.site.space = w->space;
    store_close(hasty);
    lab_close(&l);
}

/* --- damaged --- */

struct misplacing {
    const char *index, *id;
    int64_t rank;
};

/* The entry stands where its row does not say: every commit that moves it is `corrupt`. */
static belay_rc misplace_body(struct txn *t, void *arg)
{
    const struct misplacing *m = arg;

    return txn_rank_move(t, bytes_str(m->index), m->rank, m->rank - 1,
                         bytes_str(m->id));
}

static void misplace(struct lab *l, const char *index, const char *id, int64_t rank)
{
    struct misplacing m = { index, id, rank };

    WORK_RC(l->w, work_run(l->w, l->w->space, misplace_body, &m), BELAY_OK);
}

/* Neither what is due nor what is too late keeps anybody from what can be done. */
static void damaged(struct work *w, const char *index, struct belay_submission damage)
{
    struct belay_claim_policy p = policy_of("w1");
    struct belay_grant grant = { .execution_id = NULL };
    char sick[64], live[64];
    struct lab l;

    if (!lab_open(&l, w))
        return;
    (void)snprintf(sick, sizeof(sick), "%s", submit(&l, damage));
    int64_t at_ms = now(&l) + 1000;
    pass(&l, 1);
    (void)snprintf(live, sizeof(live), "%s",
                   submit(&l, (struct belay_submission){ .priority = 0 }));
    misplace(&l, index, sick, at_ms);
    pass(&l, 2000);
    WORK_RC(w, exec_grant(&l.site, &p, 1000, &w->arena, &grant, &w->err), BELAY_OK);
    TAP_STR(w->t, grant.execution_id ? grant.execution_id : "none", live);
    (void)snprintf(live, sizeof(live), "%s",
                   submit(&l, (struct belay_submission){ .priority = 0 }));
    TAP_STR(w->t, take(&l, "w1").execution_id, live);
    lane_book_close(l.site.lanes); /* the store is not sound, on purpose */
}

static void damaged_due(struct work *w)
{
    damaged(w, DELAYED_INDEX, (struct belay_submission){ .delay_ms = 1000 });
}

static void damaged_late(struct work *w)
{
    damaged(w, DEADLINE_INDEX, (struct belay_submission){ .deadline_ms = 1000 });
}

/* --- */

static void test_claimed(struct tap *t)
{
    work_everywhere(t, claimed);
}

static void test_granted(struct tap *t)
{
    work_everywhere(t, granted);
}

static void test_claimed_next(struct tap *t)
{
    work_everywhere(t, claimed_next);
}

static void test_between(struct tap *t)
{
    work_everywhere(t, between);
}

static void test_elsewhere(struct tap *t)
{
    work_everywhere(t, elsewhere);
}

static void test_given_up(struct tap *t)
{
    work_everywhere(t, given_up);
}

static void test_damaged(struct tap *t)
{
    work_everywhere(t, damaged_due);
    work_everywhere(t, damaged_late);
}

static const struct tap_case cases[] = {
    { "a claim ends all that is too late, in bounded steps, and comes to the rest",
      test_claimed },
    { "so does a grant", test_granted },
    { "so does a completion that claims the next", test_claimed_next },
    { "what is too late between others leaves no room empty", test_between },
    { "what is due elsewhere costs a claim no memory", test_elsewhere },
    { "a claim that takes too long says to ask again, and gets on", test_given_up },
    { "a corrupt rank keeps neither claims nor grants from the rest", test_damaged },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
