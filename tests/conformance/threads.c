/* Many callers at once: rows, counters, picks. */
#include <sched.h>
#include <stdatomic.h>

#include "conformance.h"

struct crowd {
    struct harness *h;
    int64_t round;
    bool present;
    atomic_int ok, refused, failed;
    atomic_int torn, looks;

    _Atomic int64_t sum;
    atomic_int taken[256];
};

static belay_rc run_in(struct crowd *c, struct belay_arena *a, txn_body *body,
                       void *arg)
{
    arena_reset(a);
    return txn_run(c->h->space, body, arg, NULL, a, NULL);
}

/* --- write skew --- */

/* Two doctors on call; each may leave while the other one is there.  With absent rows:
 * each may come while the other one is not. */
struct doctor {
    char own[32], other[32];
    bool present, acted;
};

static belay_rc leave_or_come(struct txn *t, void *arg)
{
    struct doctor *c = arg;
    const struct row *own, *other;
    belay_rc rc = thing_get(t, c->own, &own);

    rc = rc ? rc : thing_get(t, c->other, &other);
    c->acted = false;
    if (rc)
        return rc;
    if (c->present) {
        c->acted = own->v[THING_N].i + other->v[THING_N].i == 2;
        return c->acted ? thing_put(t, c->own, 0) : BELAY_OK;
    }
    c->acted = !own && !other;
    return c->acted ? thing_insert(t, c->own, 1) : BELAY_OK;
}

static void doctor_works(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct crowd *c = arg;
    struct doctor d = { .present = c->present };

    (void)snprintf(d.own, sizeof(d.own), "d%lld.%u", (long long)c->round, i);
    (void)snprintf(d.other, sizeof(d.other), "d%lld.%u", (long long)c->round, 1 - i);
    if (run_in(c, &arena, leave_or_come, &d))
        c->failed++;
    else if (d.acted)
        c->ok++;
}

static void skew_by_threads(struct tap *t, bool present)
{
    CLEANUP(harness_close) struct harness h;
    struct crowd c = { .h = &h, .present = present };
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;

    for (c.round = 0; c.round < 100; c.round++) {
        char id[32];
        for (int i = 0; i < 2 && present; i++) {
            (void)snprintf(id, sizeof(id), "d%lld.%d", (long long)c.round, i);
            thing_set(&h, id, 1);
        }
        c.ok = 0;
        crew_run(t, 2, doctor_works, &c);
        TAP_EQ(t, c.ok, 1);
    }
    TAP_EQ(t, c.failed, 0);
}

static void no_skew_with_rows(struct tap *t)
{
    skew_by_threads(t, true);
}

static void no_skew_without_rows(struct tap *t)
{
    skew_by_threads(t, false);
}

/* --- lost updates and torn reads --- */

static belay_rc increment(struct txn *t, void *arg)
{
    const struct row *row;
    belay_rc rc = thing_get(t, arg, &row);

    return rc ? rc : thing_put(t, arg, row->v[THING_N].i + 1);
}

#define INCREMENTS 50

static void increments(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct crowd *c = arg;

    (void)i;
    for (int n = 0; n < INCREMENTS; n++) {
        if (run_in(c, &arena, increment, (void *)(uintptr_t) "a"))
            c->failed++;
        else
            c->ok++;
    }
}

static void no_update_is_lost(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct crowd c = { .h = &h };
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;

    thing_set(&h, "a", 0);
    crew_run(t, 8, increments, &c);
    TAP_EQ(t, c.failed, 0);
    TAP_EQ(t, c.ok, 8 * INCREMENTS);
    TAP_EQ(t, thing_n(&h, "a"), 8 * INCREMENTS);
}

static belay_rc move_some(struct txn *t, void *arg)
{
    const struct row *x, *y;
    belay_rc rc = thing_get(t, "x", &x);

    rc = rc ? rc : thing_get(t, "y", &y);
    if (rc)
        return rc;
    rc = thing_put(t, "x", x->v[THING_N].i + *(int64_t *)arg);
    return rc ? rc : thing_put(t, "y", y->v[THING_N].i - *(int64_t *)arg);
}

/* Says so when the pair looks torn; nobody outside may ever hear it. */
static belay_rc inspect(struct txn *t, void *arg)
{
    struct value keys[] = { value_str("x"), value_str("y") };
    struct row_want wants[] = { { &row_thing, &keys[0] }, { &row_thing, &keys[1] } };
    const struct row *rows[2];
    bool one_trip = *(unsigned *)arg & 2; /* which is not confirmed, nor need it be */
    belay_rc rc =
        one_trip ? txn_get_many(t, wants, 2, rows) : thing_get(t, "x", &rows[0]);

    if (!rc && !one_trip)
        rc = thing_get(t, "y", &rows[1]);
    if (rc)
        return rc;
    if (rows[0]->v[THING_N].i + rows[1]->v[THING_N].i == 0)
        return BELAY_OK;
    return *(unsigned *)arg & 1 ? txn_fail(t, BELAY_NOT_FOUND, "torn", "torn")
                                : txn_fail(t, BELAY_CORRUPT, "torn", "torn");
}

static void move_or_inspect(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct crowd *c = arg;

    for (int64_t n = 0; n < 150 && i < 2; n++) {
        if (run_in(c, &arena, move_some, &n))
            c->failed++;
        while (c->looks < n && !c->failed)
            (void)sched_yield(); /* until the others have kept up */
        c->ok++;
    }
    for (unsigned n = i; i >= 2 && c->ok < 300; n++) {
        belay_rc rc = run_in(c, &arena, inspect, &n);
        c->looks++;
        c->torn += rc == BELAY_NOT_FOUND || rc == BELAY_CORRUPT;
        c->failed += rc != BELAY_OK && rc != BELAY_CONTENTION;
    }
}

static void torn_reads_never_surface(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct crowd c = { .h = &h };
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;

    thing_set(&h, "x", 0);
    thing_set(&h, "y", 0);
    crew_run(t, 4, move_or_inspect, &c);
    TAP_EQ(t, c.torn, 0);
    TAP_EQ(t, c.failed, 0);
    TAP_EQ(t, thing_n(&h, "x") + thing_n(&h, "y"), 0);
}

/* --- counters --- */

#define CALLERS 64
#define ROOM 100

struct bounded {
    int64_t delta;
    struct txn_sum sum;
};

static belay_rc bounded_add(struct txn *t, void *arg)
{
    struct bounded *c = arg;
    struct value key = value_str("a");

    c->sum = (struct txn_sum){ .known = false };
    return txn_add(t, &row_thing, &key, THING_COUNT, c->delta, 0, ROOM, &c->sum);
}

static void add_once(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct crowd *c = arg;
    struct bounded b = { .delta = c->round ? (int64_t)(i % 9) - 3 : 2 };
    belay_rc rc = run_in(c, &arena, bounded_add, &b);

    if (!rc && b.sum.known && b.sum.value >= 0 && b.sum.value <= ROOM) {
        c->ok++;
        c->sum += b.delta;
    } else if (rc == BELAY_OUT_OF_RANGE) {
        c->refused++;
    } else {
        c->failed++;
    }
}

static void bounds_under_64_callers(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct crowd c = { .h = &h };
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;

    thing_set(&h, "a", 0);
    crew_run(t, CALLERS, add_once, &c); /* 64 times 2: fifty fit */
    TAP_EQ(t, c.ok, ROOM / 2);
    TAP_EQ(t, c.refused, CALLERS - ROOM / 2);
    TAP_EQ(t, c.failed, 0);
    TAP_EQ(t, thing_count(&h, "a"), ROOM);
    c.round = 1; /* up and down */
    crew_run(t, CALLERS, add_once, &c);
    TAP_EQ(t, c.failed, 0);
    TAP_EQ(t, thing_count(&h, "a"), c.sum);
}

/* --- claims --- */

#define JOBS 120

static belay_rc fill_jobs(struct txn *t, void *arg)
{
    belay_rc rc = BELAY_OK;

    (void)arg;
    for (int i = 0; i < JOBS && !rc; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "%d", i);
        rc = thing_insert(t, id, 0);
        rc = rc ? rc : txn_rank_add(t, bytes_str("jobs"), i / 4, bytes_str(id));
    }
    return rc;
}

struct claim {
    int64_t got[3];
    size_t n;
    bool empty;
};

static belay_rc claim_some(struct txn *t, void *arg)
{
    struct claim *c = arg;
    struct bytes jobs = bytes_str("jobs");
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = { .indexes = &jobs,
                         .n_indexes = 1,
                         .max_rank = RANK_MAX,
                         .limit = COUNT_OF(c->got),
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct hits hits;
    belay_rc rc = txn_pick(t, &scan, &hits);

    c->n = 0;
    if (rc)
        return rc;
    for (size_t i = 0; i < hits.n && !rc; i++) {
        const struct hit *hit = &hits.hit[i];
        struct value key = value_text(hit->member);
        struct change change = { THING_N, value_i64(1) };
        if (!hit->rows[0] || !bytes_to_i64(hit->member, &c->got[c->n++]))
            return txn_fail(t, BELAY_CORRUPT, "", "a job without a row");
        rc = txn_put(t, &row_thing, &key, &change, 1);
        rc = rc ? rc : txn_rank_remove(t, jobs, hit->rank, hit->member);
    }
    /* Others may hold what is left, so look without picking, too. */
    scan.n_fetch = 0;
    if (!rc && hits.n == 0)
        rc = txn_scan(t, &scan, &hits);
    c->empty = !rc && hits.n == 0;
    return rc;
}

static void claim_all(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct crowd *c = arg;
    struct claim claim = { .empty = false };

    (void)i;
    while (!claim.empty && !c->failed) {
        belay_rc rc = run_in(c, &arena, claim_some, &claim);
        c->failed += rc != BELAY_OK && rc != BELAY_CONTENTION;
        for (size_t j = 0; j < claim.n && !rc; j++)
            c->taken[claim.got[j]]++;
    }
}

static void every_job_is_granted_once(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct crowd c = { .h = &h };
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;

    CHECK_RC(&h, harness_run(&h, fill_jobs, NULL), BELAY_OK);
    crew_run(t, 6, claim_all, &c);
    TAP_EQ(t, c.failed, 0);
    for (int i = 0; i < JOBS; i++)
        TAP_EQ(t, c.taken[i], 1);
}

static const struct tap_case cases[] = {
    { "threads: of two that guard what the other writes one acts", no_skew_with_rows },
    { "threads: of two that guard what the other inserts one acts",
      no_skew_without_rows },
    { "threads: no update is lost", no_update_is_lost },
    { "threads: torn reads never surface", torn_reads_never_surface },
    { "threads: bounds hold under 64 callers", bounds_under_64_callers },
    { "threads: every job is granted once", every_job_is_granted_once },
};
const struct topic topic_threads = { cases, COUNT_OF(cases) };
