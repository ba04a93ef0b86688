/* pg.wakeup - a batch is put into an inbox by one process while another waits for it, on
 * PostgreSQL: from the start of the enqueue until the waiter wakes, p50, against a bare
 * commit (a one-row UPDATE by libpq), p50.  ratio_claimed: until it has claimed it. */
#include "pgbench.h"
#include "waiter.h"

#define SAMPLES BENCH_WAKEUPS_MAX
#define ROWS 1000

static struct belay *open_store(const void *pg)
{
    return bench_pg_belay(pg, 2);
}

/* Seconds of a one-row UPDATE, or 0. */
static double bare_commit(void *arg, unsigned i)
{
    PGconn *raw = arg;
    char key[ID_MAX];
    const char *const values[] = { key };

    bench_key(i % ROWS, key);
    double start = bench_now();
    PGresult *r = PQexecPrepared(raw, "u", 1, values, NULL, NULL, 1);
    double took = bench_now() - start;
    bool ok = strcmp(PQcmdTuples(r), "1") == 0;
    PQclear(r);
    return ok ? took : 0;
}

static PGconn *raw_open(const struct bench_pg *pg)
{
    PGconn *raw = bench_raw_things(pg, ROWS) ? bench_pg_connect(pg) : NULL;
    PGresult *r = raw ? PQprepare(raw, "u",
                                  "UPDATE thing SET ver = ver + 1, n = n + 1"
                                  " WHERE ns = 'default' AND id = $1",
                                  0, NULL)
                      : NULL;
    bool ok = PQresultStatus(r) == PGRES_COMMAND_OK;

    PQclear(r);
    if (ok)
        return raw;
    PQfinish(raw);
    return NULL;
}

static bool measure(struct bench_wakeups *s, unsigned n, const struct bench_pg *pg,
                    struct bench_waiter *w)
{
    struct belay *b = open_store(pg);
    PGconn *raw = raw_open(pg);
    bool ok = b && raw && bench_wakeups(s, n, w, b, bare_commit, raw);

    PQfinish(raw);
    belay_close(b);
    return ok;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned n = o.smoke ? 10 : SAMPLES;
    struct bench_waiter w = { .pid = -1, .in = -1 };
    struct bench_wakeups s;
    struct bench_pg pg;
    bool ok = bench_pg_open(&pg, &o) && bench_waiter_start(&w, open_store, &pg) &&
              measure(&s, n, &pg, &w);

    bench_waiter_end(&w);
    bench_pg_close(&pg);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        double bare = bench_median(s.bare, n), woken = bench_median(s.woken, n);
        bench_field(&fields, "ratio", woken / bare);
        bench_field(&fields, "ratio_claimed", bench_median(s.claimed, n) / bare);
        bench_field(&fields, "ratio_enqueue", bench_median(s.enqueued, n) / bare);
        bench_field(&fields, "woken_ms", woken * 1e3);
        bench_field(&fields, "baseline_ms", bare * 1e3);
    }
    return bench_finish(&o, "pg.wakeup", &fields, ok);
}
