/* pg.queue - a claim, then a commit with one node of 200 bytes, a turn stamp and that
 * claim's completion: pairs a second of 16 callers over 16 sessions on PostgreSQL,
 * against pgbench with 16 clients that claim a row of a queue with SKIP LOCKED and then
 * delete it, as two transactions.  ratio_1: one caller against one client. */
#include <stdio.h>

#include "pair.h"
#include "pgbench.h"

#define CALLERS 16
#define ROUNDS 5
#define INBOX 100 /* batches that wait in an inbox when a part of a round begins */

/* --- the baseline --- */

static const char raw_script[] =
    "WITH c AS (SELECT seq FROM batch WHERE claim_id IS NULL ORDER BY seq LIMIT 1"
    " FOR UPDATE SKIP LOCKED)"
    " UPDATE batch SET claim_id = 'qwc:1:1', owner = 'worker-1', fence = fence + 1,"
    " token = '27ef8302266499db7abaed79ebe01b1f64b24a05ff3fb3064ecd9c55ab80c071',"
    " claimed_at = 1750000000000, expires_at = 1750000900000"
    " FROM c WHERE batch.seq = c.seq RETURNING batch.seq \\gset\n"
    "DELETE FROM batch WHERE seq = :seq AND claim_id = 'qwc:1:1';\n";

/* A queue of new rows: it must not run dry, and what earlier rounds left behind is not
 * the baseline's fault. */
static bool raw_fill(const struct bench_pg *pg, unsigned n)
{
    char words[1024];

    (void)snprintf(words, sizeof(words),
                   "SET client_min_messages = error;"
                   "DROP TABLE IF EXISTS batch;"
                   "CREATE TABLE batch (seq bigint PRIMARY KEY, batch_id text,"
                   " payload text, claim_id text, owner text, token text, fence bigint,"
                   " claimed_at bigint, expires_at bigint)"
                   " WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02);"
                   "CREATE INDEX ON batch (seq) WHERE claim_id IS NULL;"
                   "INSERT INTO batch SELECT i, 'qwb:' || md5(i::text) || md5(i::text),"
                   " '{\"type\":\"turn_input\",\"input\":{\"items\":[]}}', NULL, NULL,"
                   " NULL, 0, 0, 0 FROM generate_series(1, %u) AS i;"
                   "ANALYZE batch",
                   n);
    return bench_pg_do(pg, words);
}

static double raw_rate(const struct bench_pg *pg, unsigned clients, double seconds)
{
    unsigned rows = seconds < 1 ? 1000 : (unsigned)(15000 * seconds);

    return raw_fill(pg, rows) ? bench_pgbench(pg, raw_script, clients, seconds) : 0;
}

/* --- */

struct rates {
    double one[ROUNDS], many[ROUNDS], raw_one[ROUNDS], raw[ROUNDS], r1[ROUNDS],
        r16[ROUNDS], disk[ROUNDS];
};

static bool measure(struct rates *r, unsigned i, const struct bench_pg *pg,
                    struct belay *b, bool smoke)
{
    double seconds = smoke ? 0.1 : 2;

    r->disk[i] = bench_fdatasync_rate(&pg->folder, seconds / 4);
    r->raw[i] = raw_rate(pg, CALLERS, seconds);
    r->many[i] = bench_pair_rate(b, CALLERS, INBOX, INBOX, 2 * i + 1);
    r->raw_one[i] = raw_rate(pg, 1, seconds);
    r->one[i] = bench_pair_rate(b, 1, 2 * INBOX, INBOX, 2 * i + 2);
    bool ok = r->raw[i] > 0 && r->many[i] > 0 && r->raw_one[i] > 0 && r->one[i] > 0;
    r->r16[i] = ok ? r->many[i] / r->raw[i] : 0;
    r->r1[i] = ok ? r->one[i] / r->raw_one[i] : 0;
    return ok;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    struct bench_pg pg;
    struct belay *b = NULL;
    struct rates r;
    bool ok = bench_pg_open(&pg, &o) && (b = bench_pg_belay(&pg, CALLERS)) != NULL;

    ok = ok && bench_pair_rate(b, CALLERS, INBOX, INBOX, 0) > 0;
    for (unsigned i = 0; i < rounds && ok; i++)
        ok = measure(&r, i, &pg, b, o.smoke);
    belay_close(b);
    bench_pg_close(&pg);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(r.r16, rounds));
        bench_field(&fields, "ratio_1", bench_median(r.r1, rounds));
        bench_field(&fields, "per_s", bench_median(r.many, rounds));
        bench_field(&fields, "per_s_1", bench_median(r.one, rounds));
        bench_field(&fields, "baseline_per_s", bench_median(r.raw, rounds));
        bench_field(&fields, "baseline_per_s_1", bench_median(r.raw_one, rounds));
        bench_field(&fields, "fdatasync_per_s", bench_median(r.disk, rounds));
    }
    return bench_finish(&o, "pg.queue", &fields, ok);
}
