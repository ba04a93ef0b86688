/* exec.pg - executions on PostgreSQL, claimed and completed by 100 in 4 callers, each
 * completing together with its next claim: executions a second, against what pg-boss
 * drains at its best.  ratio_c1: one by one, likewise, in one caller,
 * against pg-boss the same way.
 *
 *     --peer pg-boss=JOBS_PER_S --peer pg-boss-c1=JOBS_PER_S
 *
 * Without any (peer.h), these figures count: pg-boss 12.35, 27372/s and 714/s, Node 22,
 * PostgreSQL 15 with fsync, two virtual cores, fdatasync 0.12 to 0.25 ms; peer_measured
 * says 0 then. */
#include <stdio.h>

#include "exec.h"
#include "peer.h"
#include "pgserver.h"

#define CALLERS 4
#define POOL (CALLERS + 2) /* not all of them may hold picks at once */
#define BATCH 100
#define ROUNDS 5

enum { BEST, C1, PEERS };

struct rates {
    double disk[ROUNDS], batch[ROUNDS], one[ROUNDS];
};

static bool measure(struct rates *r, unsigned i, const struct bench_pg *pg,
                    struct belay *b, bool smoke)
{
    char alone[32], many[32];

    /* Lanes of their own, as other queues are measured. */
    (void)snprintf(alone, sizeof(alone), "one/%u", i);
    (void)snprintf(many, sizeof(many), "many/%u", i);
    const struct bench_drain one = {
        .b = b, .lane = alone, .callers = 1, .batch = 1, .next = true
    };
    const struct bench_drain batch = {
        .b = b, .lane = many, .callers = CALLERS, .batch = BATCH, .next = true
    };

    r->disk[i] = bench_fdatasync_rate(&pg->folder, smoke ? 0.05 : 0.5);
    r->batch[i] = bench_exec_rate(&batch, smoke ? 1000 : 30000);
    r->one[i] = bench_exec_rate(&one, smoke ? 20 : 1500);
    return r->disk[i] > 0 && r->batch[i] > 0 && r->one[i] > 0;
}

static void report(struct buf *fields, const struct bench_peer *peers, struct rates *r,
                   unsigned rounds)
{
    double per_s = bench_median(r->batch, rounds), one = bench_median(r->one, rounds);

    bench_field(fields, "ratio", per_s / peers[BEST].per_s);
    bench_field(fields, "ratio_c1", one / peers[C1].per_s);
    bench_field(fields, "per_s", per_s);
    bench_field(fields, "per_s_c1", one);
    bench_field(fields, "peer_per_s", peers[BEST].per_s);
    bench_field(fields, "peer_measured", peers[BEST].measured);
    bench_field(fields, "peer_c1_per_s", peers[C1].per_s);
    bench_field(fields, "peer_c1_measured", peers[C1].measured);
    bench_field(fields, "fdatasync_per_s", bench_median(r->disk, rounds));
}

int main(int argc, char **argv)
{
    struct bench_peer peers[PEERS] = { [BEST] = { .name = "pg-boss", .per_s = 27372 },
                                       [C1] = { .name = "pg-boss-c1", .per_s = 714 } };
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    struct rates r;
    struct bench_pg pg;

    bench_take_peers(peers, PEERS, argc, argv);
    bool ok = bench_pg_open(&pg, &o);
    struct belay *b = ok ? bench_pg_belay(&pg, POOL) : NULL;
    ok = b && measure(&r, 0, &pg, b, o.smoke);
    for (unsigned i = 0; i < rounds && ok; i++) {
        if (bench_peer_turn(i, rounds))
            bench_run_peer(&o, "pg-boss", "on", &peers[BEST], &peers[C1]);
        ok = measure(&r, i, &pg, b, o.smoke);
    }
    belay_close(b);
    bench_pg_close(&pg);

    struct buf fields = { .ptr = NULL };
    if (ok)
        report(&fields, peers, &r, rounds);
    return bench_finish(&o, "exec.pg", &fields, ok);
}
