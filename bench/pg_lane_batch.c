/* pg.lane_batch - work as executions will have it (lane.h), on PostgreSQL: jobs a second of
 * 4 workers by batches of 100, against what job queues on PostgreSQL do at their best:
 *
 *     --peer pg-boss=JOBS_PER_S --peer graphile-worker=JOBS_PER_S
 *
 * measured on the same machine, at the same time of day (fill a backlog, then claim, run
 * an empty handler and complete in batches until nothing is left), by hand or by the run
 * itself (peer.h).  Without any, these figures count: pg-boss 12.35, 27372/s, and graphile-worker 0.18, 37103/s, each
 * the best of several concurrencies and batch sizes, Node 22, PostgreSQL 15 with fsync, two
 * virtual cores, fdatasync 0.12 to 0.25 ms; peer_measured says 0 then.
 *
 * per_s_events: the same with one entry of the feed for each job. */
#include "lane.h"
#include "peer.h"
#include "pgserver.h"

#define ROUNDS 5

static void report(struct buf *fields, const struct bench_peer *peers, double *rates,
                   double *events, double *disk, unsigned rounds)
{
    double per_s = bench_median(rates, rounds);

    bench_field(fields, "ratio", per_s / peers[0].per_s);
    bench_field(fields, "ratio_graphile", per_s / peers[1].per_s);
    bench_field(fields, "per_s", per_s);
    bench_field(fields, "per_s_events", bench_median(events, rounds));
    bench_field(fields, "peer_per_s", peers[0].per_s);
    bench_field(fields, "peer_measured", peers[0].measured);
    bench_field(fields, "peer_graphile_per_s", peers[1].per_s);
    bench_field(fields, "peer_graphile_measured", peers[1].measured);
    bench_field(fields, "fdatasync_per_s", bench_median(disk, rounds));
}

int main(int argc, char **argv)
{
    struct bench_peer peers[] = { { .name = "pg-boss", .per_s = 27372 },
                                  { .name = "graphile-worker", .per_s = 37103 } };
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS, jobs = o.smoke ? 1000 : 30000;
    double rates[ROUNDS], events[ROUNDS], disk[ROUNDS];
    struct bench_pg pg;
    struct bench_store b = { .driver = NULL };

    bench_run_peer(&o, "pg-boss", "on", &peers[0], NULL);
    bench_run_peer(&o, "graphile-worker", "on", &peers[1], NULL);
    bench_take_peers(peers, COUNT_OF(peers), argc, argv);
    bool ok = bench_pg_open(&pg, &o) &&
              bench_pg_store(&b, &pg, BENCH_LANE_WORKERS, &bench_schema_jobs);
    ok = ok && bench_lane_rate(&b, 0, jobs, false) > 0;
    for (unsigned i = 0; i < rounds && ok; i++) {
        disk[i] = bench_fdatasync_rate(&pg.folder, o.smoke ? 0.05 : 0.5);
        rates[i] = bench_lane_rate(&b, jobs * (2 * i + 1), jobs, false);
        events[i] = bench_lane_rate(&b, jobs * (2 * i + 2), jobs, true);
        ok = rates[i] > 0 && events[i] > 0;
    }
    bench_store_close(&b);
    bench_pg_close(&pg);

    struct buf fields = { .ptr = NULL };
    if (ok)
        report(&fields, peers, rates, events, disk, rounds);
    return bench_finish(&o, "pg.lane_batch", &fields, ok);
}
