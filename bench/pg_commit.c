/* pg.commit - guarded one-row commits a second on PostgreSQL, 16 callers, against pgbench
 * with 16 clients that update one row of a table of the same shape.  ratio_1: one caller
 * against one client. */
#include "pgbench.h"
#include "things.h"

#define ROWS 10000
#define CALLERS 16
#define ROUNDS 5

struct rates {
    double one[ROUNDS], many[ROUNDS], raw_one[ROUNDS], raw[ROUNDS], r1[ROUNDS],
        r16[ROUNDS], disk[ROUNDS];
};

static bool measure(struct rates *r, unsigned i, const struct bench_pg *pg,
                    struct bench_store *b, double seconds)
{
    char script[256];

    bench_raw_update(ROWS, script);
    r->disk[i] = bench_fdatasync_rate(&pg->folder, seconds / 4);
    r->raw[i] = bench_pgbench(pg, script, CALLERS, seconds);
    r->many[i] = bench_update_rate(b, ROWS, CALLERS, seconds);
    r->raw_one[i] = bench_pgbench(pg, script, 1, seconds);
    r->one[i] = bench_update_rate(b, ROWS, 1, seconds);
    bool ok = r->raw[i] > 0 && r->many[i] > 0 && r->raw_one[i] > 0 && r->one[i] > 0;
    r->r16[i] = ok ? r->many[i] / r->raw[i] : 0;
    r->r1[i] = ok ? r->one[i] / r->raw_one[i] : 0;
    return ok;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    double seconds = o.smoke ? 0.1 : 2.0;
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    struct bench_pg pg;
    struct bench_store b = { .driver = NULL };
    struct rates r;
    bool ok = bench_pg_open(&pg, &o) && bench_raw_things(&pg, ROWS) &&
              bench_pg_store(&b, &pg, CALLERS, &schema_things) && bench_fill(&b, ROWS);

    /* Connections and their prepared statements. */
    ok = ok && bench_update_rate(&b, ROWS, CALLERS, seconds) > 0;
    for (unsigned i = 0; i < rounds && ok; i++)
        ok = measure(&r, i, &pg, &b, seconds);
    bench_store_close(&b);
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
    return bench_finish(&o, "pg.commit", &fields, ok);
}
