/* valkey.batch - plans of 100 rows on Valkey or Redis, rows a second of 4 callers: each row
 * is read, guarded and changed, and its member leaves one rank index and enters another.
 * Against the same HSET, ZREM and ZADD, written by hand as one pipeline of 300 commands
 * without any check, on 4 connections. */
#include <stdio.h>
#include <string.h>

#include "things.h"
#include "valkeyserver.h"

#define ROWS 10000
#define PART (ROWS / CALLERS)
#define BATCH 100
#define CALLERS 4
#define ROUNDS 5

static const char *const indexes[] = { "batch/even", "batch/odd" };

struct job {
    struct bench_store *b;
    redisContext *raw[CALLERS];
    unsigned batches; /* of each caller */
    unsigned
        turn; /* of all rounds: so many times the callers went through their rows */
    unsigned raw_turn;
};

/* A caller goes through its own part of the rows again and again: all of them stand in the
 * same index at a time. */
struct batch {
    unsigned first; /* row */
    unsigned turn;
};

static struct batch batch_of(unsigned caller, unsigned turn, unsigned n)
{
    unsigned at = n * BATCH;

    return (struct batch){ caller * PART + at % PART, turn + at / PART };
}

/* --- Belay --- */

static belay_rc change_row(struct txn *t, const struct batch *batch,
                           const struct row *row, struct value *key)
{
    struct change change = { THING_N, value_i64(row_i64(row, THING_N, 0) + 1) };
    struct bytes from = bytes_str(indexes[batch->turn % 2]);
    struct bytes to = bytes_str(indexes[(batch->turn + 1) % 2]);
    belay_rc rc = txn_put(t, &row_thing, key, &change, 1);

    if (!rc)
        rc = txn_rank_remove(t, from, batch->turn, key->b);
    return rc ? rc : txn_rank_add(t, to, batch->turn + 1, key->b);
}

static belay_rc batch_body(struct txn *t, void *arg)
{
    const struct batch *batch = arg;
    char names[BATCH][ID_MAX];
    struct value keys[BATCH];
    struct row_want wants[BATCH];
    const struct row *rows[BATCH];

    for (unsigned i = 0; i < BATCH; i++) {
        bench_key(batch->first + i, names[i]);
        keys[i] = value_str(names[i]);
        wants[i] = (struct row_want){ &row_thing, &keys[i] };
    }
    belay_rc rc = txn_get_many(t, wants, BATCH, rows);
    for (unsigned i = 0; i < BATCH && !rc; i++) {
        if (!rows[i])
            return txn_fail(t, BELAY_NOT_FOUND, "", "no such row");
        rc = change_row(t, batch, rows[i], &keys[i]);
    }
    return rc;
}

static bool work(void *arg, unsigned caller)
{
    const struct job *job = arg;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_error err;

    for (unsigned n = 0; n < job->batches; n++) {
        struct batch batch = batch_of(caller, job->turn, n);
        if (txn_run(job->b->space, batch_body, &batch, NULL, &arena, &err))
            return bench_failed("batch", &err);
        arena_reset(&arena);
    }
    return true;
}

/* Every row enters the first index. */
static belay_rc enter_body(struct txn *t, void *arg)
{
    const unsigned *first = arg;
    char name[ID_MAX];
    belay_rc rc = BELAY_OK;

    for (unsigned i = *first; i < *first + 1000 && !rc; i++) {
        bench_key(i, name);
        rc = txn_rank_add(t, bytes_str(indexes[0]), 0, bytes_str(name));
    }
    return rc;
}

static bool fill(struct bench_store *b)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_error err;

    if (!bench_fill(b, ROWS))
        return false;
    for (unsigned i = 0; i < ROWS; i += 1000) {
        if (txn_run(b->space, enter_body, &i, NULL, &arena, &err))
            return bench_failed("fill", &err);
        arena_reset(&arena);
    }
    return true;
}

/* --- by hand --- */

static bool raw_append(redisContext *c, const struct batch *batch, unsigned row)
{
    char key[ID_MAX];

    bench_key(row, key);
    return !redisAppendCommand(c, "HSET raw:{default}:r:thing:%s ver %u n %u", key,
                               batch->turn, batch->turn) &&
           !redisAppendCommand(c, "ZREM raw:{default}:z:%s %s",
                               indexes[batch->turn % 2], key) &&
           !redisAppendCommand(c, "ZADD raw:{default}:z:%s %u %s",
                               indexes[(batch->turn + 1) % 2], batch->turn + 1, key);
}

static bool raw_batch(redisContext *c, const struct batch *batch)
{
    bool ok = true;

    for (unsigned i = 0; i < BATCH && ok; i++)
        ok = raw_append(c, batch, batch->first + i);
    for (unsigned i = 0; i < 3 * BATCH && ok; i++) {
        void *reply = NULL;
        ok = redisGetReply(c, &reply) == REDIS_OK && bench_vk_is_done(c, reply);
    }
    return ok;
}

static bool raw_work(void *arg, unsigned caller)
{
    const struct job *job = arg;
    bool ok = true;

    for (unsigned n = 0; n < job->batches && ok; n++) {
        struct batch batch = batch_of(caller, job->raw_turn, n);
        ok = raw_batch(job->raw[caller], &batch);
    }
    return ok;
}

/* --- */

static double rows_per_s(bool (*what)(void *arg, unsigned i), struct job *job,
                         unsigned *turn)
{
    double took = bench_crew(CALLERS, what, job);

    *turn += job->batches * BATCH / PART;
    return took > 0 ? (double)CALLERS * BATCH * job->batches / took : 0;
}

struct rates {
    double mine[ROUNDS], raw[ROUNDS], ratio[ROUNDS], disk[ROUNDS];
};

static bool measure(struct rates *r, unsigned i, const struct bench_vk *vk,
                    struct job *job, bool smoke)
{
    r->disk[i] = bench_fdatasync_rate(&vk->folder, smoke ? 0.05 : 0.5);
    r->raw[i] = rows_per_s(raw_work, job, &job->raw_turn);
    r->mine[i] = rows_per_s(work, job, &job->turn);
    bool ok = r->raw[i] > 0 && r->mine[i] > 0;
    r->ratio[i] = ok ? r->mine[i] / r->raw[i] : 0;
    return ok;
}

static bool open_job(struct job *job, struct bench_store *b, const struct bench_vk *vk,
                     bool smoke)
{
    bool ok = bench_vk_store(b, vk, &schema_things) && fill(b);

    /* A round goes through all rows a whole number of times. */
    *job = (struct job){ .b = b, .batches = (smoke ? 1U : 8U) * PART / BATCH };
    for (unsigned i = 0; i < CALLERS && ok; i++)
        ok = (job->raw[i] = bench_vk_connect(vk)) != NULL;
    return ok;
}

static void close_job(struct job *job)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        if (job->raw[i])
            redisFree(job->raw[i]);
    }
    if (job->b)
        bench_store_close(job->b);
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    struct bench_vk vk[BENCH_SYNCS];
    struct bench_store b[BENCH_SYNCS] = { { .driver = NULL } };
    struct job job[BENCH_SYNCS] = { { .b = NULL } };
    struct rates r[BENCH_SYNCS];
    bool ok = bench_vk_open(vk);

    for (unsigned s = 0; s < BENCH_SYNCS && ok; s++)
        ok = open_job(&job[s], &b[s], &vk[s], o.smoke) &&
             measure(&r[s], 0, &vk[s], &job[s], true);
    for (unsigned i = 0; i < rounds && ok; i++)
        for (unsigned s = 0; s < BENCH_SYNCS && ok; s++)
            ok = measure(&r[s], i, &vk[s], &job[s], o.smoke);

    struct buf fields = { .ptr = NULL };
    for (unsigned s = 0; s < BENCH_SYNCS; s++) {
        close_job(&job[s]);
        if (!ok)
            continue;
        bench_vk_field(&fields, &vk[s], "ratio", bench_median(r[s].ratio, rounds));
        bench_vk_field(&fields, &vk[s], "rows_per_s", bench_median(r[s].mine, rounds));
        bench_vk_field(&fields, &vk[s], "baseline_rows_per_s",
                       bench_median(r[s].raw, rounds));
    }
    if (ok)
        bench_field(&fields, "fdatasync_per_s", bench_median(r[0].disk, rounds));
    bench_vk_close(vk);
    return bench_finish(&o, "valkey.batch", &fields, ok);
}
