#include "lane.h"

#include <stdio.h>

#define BATCH 100
#define FILL 1000
#define LEASE_MS 60000

enum { JOB_ID, JOB_STATE, JOB_ATTEMPT, JOB_RANK, JOB_PAYLOAD, JOB_COLUMNS };
/* clang-format off */
static const struct column job_columns[] = {
    [JOB_ID]      = { "id",      VALUE_TEXT, false },
    [JOB_STATE]   = { "state",   VALUE_TEXT, false },
    [JOB_ATTEMPT] = { "attempt", VALUE_I64,  false },
    [JOB_RANK]    = { "rank",    VALUE_I64,  false },
    [JOB_PAYLOAD] = { "payload", VALUE_JSON, false },
};
/* clang-format on */
static const struct row_type row_job = { "job",       301,         1,
                                         JOB_COLUMNS, job_columns, ROW_WORKED };
static const struct row_type *const types[] = {
    &row_namespace, &row_format, &row_epoch, &row_fence_floor, &row_clock,
    &row_slot,      &row_upload, &row_blob,  &row_job,
};
const struct schema bench_schema_jobs = { .types = types, .n_types = COUNT_OF(types) };

static const char payload[] =
    "{\"to\":\"user@example.com\",\"subject\":\"hello\","
    "\"body\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}";

/* --- filling --- */

struct fill {
    struct bytes lane;
    unsigned from, n;
};

static belay_rc fill_body(struct txn *t, void *arg)
{
    const struct fill *f = arg;
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);

    for (unsigned i = f->from; i < f->from + f->n && !rc; i++) {
        char id[ID_MAX];
        bench_key(i, id);
        struct value v[JOB_COLUMNS] = { [JOB_ID] = value_str(id),
                                        [JOB_STATE] = value_str("ready"),
                                        [JOB_ATTEMPT] = value_i64(0),
                                        [JOB_RANK] = value_i64(now_ms),
                                        [JOB_PAYLOAD] =
                                            value_json(bytes_str(payload)) };
        rc = txn_insert(t, &row_job, v);
        if (!rc)
            rc = txn_rank_add(t, f->lane, now_ms, bytes_str(id));
    }
    return rc;
}

static bool fill(struct bench_store *b, struct bytes lane, unsigned from, unsigned n)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_error err;

    for (unsigned i = 0; i < n; i += FILL) {
        struct fill f = { lane, from + i, n - i < FILL ? n - i : FILL };
        if (txn_run(b->space, fill_body, &f, NULL, &arena, &err))
            return bench_failed("fill", &err);
        arena_reset(&arena);
    }
    return true;
}

/* --- claiming and completing --- */

struct grant {
    struct bytes lane;
    bool events;         /* one entry of the feed for each */
    char (*ids)[ID_MAX]; /* BATCH of them */
    size_t n;
    int64_t lease_ms; /* their rank */
};

static belay_rc lease(struct txn *t, const struct hit *hit, struct grant *g)
{
    const struct row *row = hit->rows[0];

    if (!row)
        return txn_fail(t, BELAY_CORRUPT, "", "a rank without a job");
    (void)snprintf(g->ids[g->n], ID_MAX, "%.*s", (int)hit->member.len,
                   (const char *)hit->member.ptr);
    struct value key = value_str(g->ids[g->n++]);
    struct change changes[] = {
        { JOB_STATE, value_str("leased") },
        { JOB_ATTEMPT, value_i64(row_i64(row, JOB_ATTEMPT, 0) + 1) },
        { JOB_RANK, value_i64(g->lease_ms) },
    };
    belay_rc rc = txn_put(t, &row_job, &key, changes, COUNT_OF(changes));
    return rc ? rc : txn_rank_move(t, g->lane, hit->rank, g->lease_ms, hit->member);
}

static belay_rc claim_body(struct txn *t, void *arg)
{
    struct grant *g = arg;
    struct fetch fetch = { &row_job, NULL };
    struct scan scan = { .indexes = &g->lane,
                         .n_indexes = 1,
                         .min_rank = 0,
                         .limit = BATCH,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct hits hits;

    g->n = 0;
    belay_rc rc = txn_now(t, &scan.max_rank);
    g->lease_ms = scan.max_rank + LEASE_MS;
    if (!rc)
        rc = txn_pick(t, &scan, &hits);
    for (size_t i = 0; !rc && i < hits.n; i++)
        rc = lease(t, &hits.hit[i], g);
    return rc;
}

static belay_rc complete_body(struct txn *t, void *arg)
{
    const struct grant *g = arg;
    struct value keys[BATCH];
    struct row_want wants[BATCH];
    const struct row *rows[BATCH];

    for (size_t i = 0; i < g->n; i++) {
        keys[i] = value_str(g->ids[i]);
        wants[i] = (struct row_want){ &row_job, &keys[i] };
    }
    belay_rc rc = txn_get_many(t, wants, g->n, rows);
    for (size_t i = 0; i < g->n && !rc; i++) {
        if (!rows[i] || row_i64(rows[i], JOB_RANK, 0) != g->lease_ms)
            return txn_fail(t, BELAY_LEASE_LOST, "", "somebody else has it");
        struct change change = { JOB_STATE, value_str("done") };
        rc = txn_put(t, &row_job, &keys[i], &change, 1);
        if (!rc)
            rc = txn_rank_remove(t, g->lane, g->lease_ms, bytes_str(g->ids[i]));
        if (!rc && (g->events || i == 0))
            rc = txn_feed_append(t, bytes_str("jobs"), bytes_str(g->ids[i]), NULL);
    }
    return rc;
}

struct drain {
    struct bench_store *b;
    struct bytes lane;
    bool events;
    _Atomic uint64_t done;
};

static bool work(void *arg, unsigned i)
{
    struct drain *d = arg;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    char ids[BATCH][ID_MAX];
    struct grant g = { .lane = d->lane, .events = d->events, .ids = ids };
    struct belay_error err;

    (void)i;
    do {
        if (txn_run(d->b->space, claim_body, &g, NULL, &arena, &err))
            return bench_failed("claim", &err);
        if (g.n > 0 && txn_run(d->b->space, complete_body, &g, NULL, &arena, &err))
            return bench_failed("complete", &err);
        d->done += g.n;
        arena_reset(&arena);
    } while (g.n > 0);
    return true;
}

double bench_lane_rate(struct bench_store *b, unsigned from, unsigned n, bool events)
{
    char lane[32];

    (void)snprintf(lane, sizeof(lane), "lane/%u", from);
    struct drain d = { .b = b, .lane = bytes_str(lane), .events = events };
    double took =
        fill(b, d.lane, from, n) ? bench_crew(BENCH_LANE_WORKERS, work, &d) : 0;

    if (took > 0 && d.done != n)
        (void)fprintf(stderr, "bench: %llu of %u jobs were done\n",
                      (unsigned long long)d.done, n);
    return took > 0 && d.done == n ? n / took : 0;
}
