/* The steps of a lane, and one worker. */
#include "lanes.h"

#define LEASE 5000000

enum state { READY, RUNNING, DONE };

const struct bytes lane_ready = { (const uint8_t *)"ready", 5 };
static const struct bytes running = { (const uint8_t *)"running", 7 };
const struct bytes lane_feed = { (const uint8_t *)"steps", 5 };

/* Due in another order than they are numbered in. */
static int64_t due_of(int64_t id)
{
    return id * 7919 % LANE_ROWS;
}

static void name_of(int64_t id, char out[8])
{
    (void)snprintf(out, 8, "x%04d", (int)id);
}

int64_t lane_number(struct bytes member)
{
    int64_t id = 0;

    for (size_t i = 1; i < member.len; i++)
        id = 10 * id + (member.ptr[i] - '0');
    return id < LANE_ROWS ? id : 0;
}

/* --- filling --- */

static belay_rc fill_body(struct txn *t, void *arg)
{
    int64_t first = *(int64_t *)arg;
    belay_rc rc = BELAY_OK;

    for (int64_t id = first; id < first + LANE_BATCH && !rc; id++) {
        char name[8];
        name_of(id, name);
        rc = thing_insert(t, name, READY);
        if (!rc)
            rc = txn_rank_add(t, lane_ready, due_of(id), bytes_str(name));
    }
    return rc;
}

bool lane_open(struct harness *h, struct tap *t, unsigned flags)
{
    if (!harness_open(h, t, flags))
        return false;
    for (int64_t first = 0; first < LANE_ROWS; first += LANE_BATCH)
        CHECK_RC(h, harness_run(h, fill_body, &first), BELAY_OK);
    return true;
}

/* --- the two steps --- */

/* "c0007": the step, and the row's number. */
static belay_rc note(struct txn *t, char step, int64_t id)
{
    char text[8];

    name_of(id, text);
    text[0] = step;
    return txn_feed_append(t, lane_feed, bytes_str(text), NULL);
}

static belay_rc set_state(struct txn *t, int64_t id, enum state state,
                          const char *worker)
{
    char name[8];
    struct change changes[] = { { THING_N, value_i64((int64_t)state) },
                                { THING_TEXT, value_str(worker) } };

    name_of(id, name);
    struct value key = value_str(name);
    return txn_put(t, &row_thing, &key, changes, COUNT_OF(changes));
}

static belay_rc take_row(struct txn *t, struct batch *b, const struct hit *hit)
{
    struct value key = value_text(hit->member);
    int64_t id = lane_number(hit->member);

    if (b->n == LANE_BATCH || !hit->rows[0] || hit->rows[0]->v[THING_N].i != READY ||
        hit->rank != due_of(id))
        return txn_fail(t, BELAY_CORRUPT, "", "a row that is not ready");
    b->id[b->n] = id;
    b->due[b->n++] = hit->rank;
    belay_rc rc = set_state(t, id, RUNNING, b->worker);
    if (!rc)
        rc = txn_add(t, &row_thing, &key, THING_COUNT, 1, 0, LANE_ROWS, NULL);
    if (!rc)
        rc = txn_rank_remove(t, lane_ready, hit->rank, hit->member);
    if (!rc)
        rc = txn_rank_add(t, running, LEASE + hit->rank, hit->member);
    return rc ? rc : note(t, 'c', id);
}

belay_rc lane_claim(struct txn *t, void *arg)
{
    struct batch *b = arg;
    const struct fetch fetch = { .type = &row_thing };
    const struct scan scan = { .indexes = &lane_ready,
                               .n_indexes = 1,
                               .max_rank = RANK_MAX,
                               .limit = b->limit,
                               .fetch = &fetch,
                               .n_fetch = 1 };
    struct hits hits;
    belay_rc rc = txn_pick(t, &scan, &hits);

    b->n = 0;
    if (!rc && hits.n > b->limit)
        return txn_fail(t, BELAY_CORRUPT, "", "more than were asked for");
    for (size_t i = 0; i < hits.n && !rc; i++)
        rc = take_row(t, b, &hits.hit[i]);
    return rc || !b->dies ? rc : txn_fail(t, BELAY_WRONG_STATE, "dies", "it dies");
}

belay_rc lane_complete(struct txn *t, void *arg)
{
    const struct batch *b = arg;
    char name[LANE_BATCH][8];
    struct value key[LANE_BATCH];
    struct row_want wants[LANE_BATCH];
    const struct row *rows[LANE_BATCH];

    for (size_t i = 0; i < b->n; i++) {
        name_of(b->id[i], name[i]);
        key[i] = value_str(name[i]);
        wants[i] = (struct row_want){ &row_thing, &key[i] };
    }
    belay_rc rc = txn_get_many(t, wants, b->n, rows);
    for (size_t i = 0; i < b->n && !rc; i++) {
        if (!rows[i] || rows[i]->v[THING_N].i != RUNNING ||
            !bytes_eq(rows[i]->v[THING_TEXT].b, bytes_str(b->worker)))
            return txn_fail(t, BELAY_CORRUPT, "", "a lease that is not ours");
        rc = set_state(t, b->id[i], DONE, b->worker);
        if (!rc)
            rc = txn_rank_remove(t, running, LEASE + b->due[i], key[i].b);
        if (!rc)
            rc = note(t, 'd', b->id[i]);
    }
    return rc;
}

/* --- what is there afterwards --- */

static belay_rc scan_body(struct txn *t, void *arg)
{
    struct hits *out = arg;
    const struct bytes both[] = { lane_ready, running };
    const struct fetch fetch = { .type = &row_thing };
    const struct scan scan = { .indexes = both,
                               .n_indexes = COUNT_OF(both),
                               .max_rank = RANK_MAX,
                               .limit = LANE_ROWS + 1,
                               .fetch = &fetch,
                               .n_fetch = 1 };

    return txn_scan(t, &scan, out);
}

/* Exactly the batch is leased, and everything else as it was (L8). */
static void check_leased(struct harness *h, const struct batch *b)
{
    bool mine[LANE_ROWS] = { false };
    struct hits hits = { .n = 0 };
    size_t leased = 0, wrong = 0;

    for (size_t i = 0; i < b->n; i++)
        mine[b->id[i]] = true;
    CHECK_RC(h, harness_run(h, scan_body, &hits), BELAY_OK);
    TAP_EQ(h->t, hits.n, LANE_ROWS);
    for (size_t i = 0; i < hits.n; i++) {
        int64_t id = lane_number(hits.hit[i].member);
        const struct row *row = hits.hit[i].rows[0];
        bool is = bytes_eq(hits.hit[i].index, running);
        leased += is;
        wrong += !row || is != mine[id] ||
                 row->v[THING_N].i != (is ? RUNNING : READY) ||
                 row->v[THING_COUNT].i != (is ? 1 : 0);
    }
    TAP_EQ(h->t, leased, b->n);
    TAP_EQ(h->t, wrong, 0);
}

static void takes_what_it_returns(struct tap *t)
{
    static const size_t limits[] = { 1, 7, 99, LANE_BATCH };

    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        CLEANUP(harness_close) struct harness h;
        struct batch b = { .worker = "w", .limit = limits[i], .dies = true };
        if (!lane_open(&h, t, 0))
            return;
        CHECK_RC(&h, harness_run(&h, lane_claim, &b), BELAY_WRONG_STATE);
        b.n = 0; /* nobody has them */
        check_leased(&h, &b);
        b.dies = false;
        CHECK_RC(&h, harness_run(&h, lane_claim, &b), BELAY_OK);
        TAP_EQ(t, b.n, limits[i]);
        check_leased(&h, &b);
    }
}

static void one_worker_keeps_the_order(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct batch b = { .worker = "w", .limit = LANE_BATCH };
    int64_t next = 0, wrong = 0;
    if (!lane_open(&h, t, 0))
        return;

    do {
        if (!CHECK_RC(&h, harness_run(&h, lane_claim, &b), BELAY_OK))
            return;
        for (size_t i = 0; i < b.n; i++)
            wrong += b.due[i] != next++;
        CHECK_RC(&h, harness_run(&h, lane_complete, &b), BELAY_OK);
    } while (b.n > 0);
    TAP_EQ(t, next, LANE_ROWS);
    TAP_EQ(t, wrong, 0);
}

/* The dues of what an attempt picks are first..first + LANE_BATCH - 1. */
static void check_pick(struct raw *r, int64_t first)
{
    struct scan scan = { .indexes = &lane_ready,
                         .n_indexes = 1,
                         .max_rank = RANK_MAX,
                         .limit = LANE_BATCH };
    struct read q = { .kind = READ_RANK, .rank = { .scan = &scan, .hold = true } };

    CHECK_RC(r->h, raw_read(r, &q), BELAY_OK);
    if (TAP_EQ(r->h->t, q.rank.out.n, LANE_BATCH)) {
        TAP_EQ(r->h->t, q.rank.out.hit[0].rank, first);
        TAP_EQ(r->h->t, q.rank.out.hit[LANE_BATCH - 1].rank, first + LANE_BATCH - 1);
    }
}

static void the_dead_give_back(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    bool hides = ((const struct test_driver *)t->arg)->hides;
    struct raw one, two, three;
    if (!lane_open(&h, t, 0))
        return;

    raw_begin(&one, &h);
    raw_begin(&two, &h);
    raw_begin(&three, &h);
    check_pick(&one, 0);
    check_pick(&two, hides ? LANE_BATCH : 0);
    raw_end(&one); /* without a commit */
    check_pick(&three, 0);
    raw_end(&three);
    raw_end(&two);
    struct batch none = { .n = 0 };
    check_leased(&h, &none);
}

static const struct tap_case cases[] = {
    { "lanes: a batch leases what it returns, and nothing else",
      takes_what_it_returns },
    { "lanes: one worker takes rows in the order of their ranks",
      one_worker_keeps_the_order },
    { "lanes: a worker that dies gives its batch back", the_dead_give_back },
};
const struct topic topic_lanes = { cases, COUNT_OF(cases) };
