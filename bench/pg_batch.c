/* pg.batch - guarded updates of 100 rows in one transaction on PostgreSQL, rows a second
 * of 4 callers, against a hand-written UPDATE ... FROM unnest() of 100 rows on 4
 * connections, to a table of the same shape. */
#include <stdio.h>

#include "pgbench.h"
#include "things.h"

#define ROWS 10000
#define BATCH 100
#define CALLERS 4
#define ROUNDS 5

struct job {
    struct bench_store *b;
    PGconn *raw[CALLERS];
    unsigned batches; /* of each caller */
    uint32_t seed;
};

/* The rows of a caller's next batch, of its own part of the table. */
static unsigned first_row(unsigned caller, uint32_t *at)
{
    *at = *at * 1664525 + 1013904223;
    return caller * (ROWS / CALLERS) + (*at >> 8) % (ROWS / CALLERS - BATCH);
}

/* --- Belay --- */

static belay_rc update_body(struct txn *t, void *arg)
{
    const unsigned *first = arg;
    char names[BATCH][ID_MAX];
    struct value keys[BATCH];
    struct row_want wants[BATCH];
    const struct row *rows[BATCH];

    for (unsigned i = 0; i < BATCH; i++) {
        bench_key(*first + i, names[i]);
        keys[i] = value_str(names[i]);
        wants[i] = (struct row_want){ &row_thing, &keys[i] };
    }
    belay_rc rc = txn_get_many(t, wants, BATCH, rows);
    for (unsigned i = 0; i < BATCH && !rc; i++) {
        if (!rows[i])
            return txn_fail(t, BELAY_NOT_FOUND, "", "no such row");
        struct change change = { THING_N, value_i64(row_i64(rows[i], THING_N, 0) + 1) };
        rc = txn_put(t, &row_thing, &keys[i], &change, 1);
    }
    return rc;
}

static bool work(void *arg, unsigned caller)
{
    const struct job *job = arg;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    uint32_t at = job->seed + caller;
    struct belay_error err;

    for (unsigned n = 0; n < job->batches; n++) {
        unsigned first = first_row(caller, &at);
        if (txn_run(job->b->space, update_body, &first, NULL, &arena, &err))
            return bench_failed("update", &err);
        arena_reset(&arena);
    }
    return true;
}

/* --- by hand --- */

static const char raw_sql[] =
    "UPDATE thing SET ver = k.ver, n = k.n"
    " FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS k(id, ver, n)"
    " WHERE thing.ns = 'default' AND thing.id = k.id";

static bool raw_batch(PGconn *c, unsigned first, unsigned turn)
{
    char ids[BATCH * ID_MAX + 2], numbers[BATCH * 12 + 2], key[ID_MAX];
    const char *const values[] = { ids, numbers, numbers };
    size_t n = 0, m = 0;

    for (unsigned i = 0; i < BATCH; i++) {
        bench_key(first + i, key);
        char before = i == 0 ? '{' : ',';
        n += (size_t)snprintf(ids + n, sizeof(ids) - n, "%c%s", before, key);
        m += (size_t)snprintf(numbers + m, sizeof(numbers) - m, "%c%u", before, turn);
    }
    (void)snprintf(ids + n, sizeof(ids) - n, "}");
    (void)snprintf(numbers + m, sizeof(numbers) - m, "}");
    PGresult *r = PQexecPrepared(c, "u", 3, values, NULL, NULL, 1);
    bool ok = strcmp(PQcmdTuples(r), "100") == 0;
    if (!ok)
        (void)fprintf(stderr, "bench: %s", PQerrorMessage(c));
    PQclear(r);
    return ok;
}

static bool raw_work(void *arg, unsigned caller)
{
    const struct job *job = arg;
    uint32_t at = job->seed + caller;
    bool ok = true;

    for (unsigned n = 0; n < job->batches && ok; n++)
        ok = raw_batch(job->raw[caller], first_row(caller, &at), n);
    return ok;
}

static bool raw_connect(struct job *job, const struct bench_pg *pg)
{
    bool ok = true;

    for (unsigned i = 0; i < CALLERS && ok; i++) {
        job->raw[i] = bench_pg_connect(pg);
        PGresult *r =
            job->raw[i] ? PQprepare(job->raw[i], "u", raw_sql, 0, NULL) : NULL;
        ok = PQresultStatus(r) == PGRES_COMMAND_OK;
        PQclear(r);
    }
    return ok;
}

static double rows_per_s(bool (*what)(void *arg, unsigned i), struct job *job)
{
    double took = bench_crew(CALLERS, what, job);

    job->seed += CALLERS;
    return took > 0 ? (double)CALLERS * BATCH * job->batches / took : 0;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    double mine[ROUNDS], raw[ROUNDS], ratio[ROUNDS], disk[ROUNDS];
    struct bench_pg pg;
    struct bench_store b = { .driver = NULL };
    struct job job = { .b = &b, .batches = o.smoke ? 5 : 150, .seed = 1 };
    bool ok = bench_pg_open(&pg, &o) && bench_raw_things(&pg, ROWS) &&
              raw_connect(&job, &pg) &&
              bench_pg_store(&b, &pg, CALLERS, &schema_things) && bench_fill(&b, ROWS);

    ok = ok && rows_per_s(work, &job) > 0 && rows_per_s(raw_work, &job) > 0;
    for (unsigned i = 0; i < rounds && ok; i++) {
        disk[i] = bench_fdatasync_rate(&pg.folder, o.smoke ? 0.05 : 0.5);
        raw[i] = rows_per_s(raw_work, &job);
        mine[i] = rows_per_s(work, &job);
        ok = raw[i] > 0 && mine[i] > 0;
        ratio[i] = ok ? mine[i] / raw[i] : 0;
    }
    for (unsigned i = 0; i < CALLERS; i++)
        PQfinish(job.raw[i]);
    bench_store_close(&b);
    bench_pg_close(&pg);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(ratio, rounds));
        bench_field(&fields, "rows_per_s", bench_median(mine, rounds));
        bench_field(&fields, "baseline_rows_per_s", bench_median(raw, rounds));
        bench_field(&fields, "fdatasync_per_s", bench_median(disk, rounds));
    }
    return bench_finish(&o, "pg.batch", &fields, ok);
}
