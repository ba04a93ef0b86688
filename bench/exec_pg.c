/* exec.pg - executions on PostgreSQL, claimed and completed by 100 in 4 callers and in 8,
 * each completing together with its next claim: executions a second, the better of both
 * (a slow disk wants more callers), against what pg-boss drains at its best of several
 * such settings.  ratio_c1: one by one, likewise, in one caller, against pg-boss the same
 * way.
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

#define MOST_CALLERS 8
#define POOL (MOST_CALLERS + 2) /* not all of them may hold picks at once */
#define BATCH 100
#define ROUNDS 5

static const struct {
    unsigned callers;
    const char *field;
} crews[] = { { 4, "per_s_4" }, { MOST_CALLERS, "per_s_8" } };

enum { BEST, C1, PEERS };

struct rates {
    double disk[ROUNDS], batch[COUNT_OF(crews)][ROUNDS], one[ROUNDS];
};

/* Lanes of their own, as other queues are measured. */
static double drain_rate(struct belay *b, unsigned round, unsigned callers,
                         unsigned batch, unsigned n)
{
    char lane[32];
    const struct bench_drain d = {
        .b = b, .lane = lane, .callers = callers, .batch = batch, .next = true
    };

    (void)snprintf(lane, sizeof(lane), "%u by %u/%u", callers, batch, round);
    return bench_exec_rate(&d, n);
}

static bool measure(struct rates *r, unsigned i, const struct bench_pg *pg,
                    struct belay *b, bool smoke)
{
    r->disk[i] = bench_fdatasync_rate(&pg->folder, smoke ? 0.05 : 0.5);
    bool ok = r->disk[i] > 0;
    for (size_t k = 0; k < COUNT_OF(crews) && ok; k++) {
        r->batch[k][i] =
            drain_rate(b, i, crews[k].callers, BATCH, smoke ? 1000 : 30000);
        ok = r->batch[k][i] > 0;
    }
    r->one[i] = ok ? drain_rate(b, i, 1, 1, smoke ? 20 : 1500) : 0;
    return r->one[i] > 0;
}

static void report(struct buf *fields, const struct bench_peer *peers, struct rates *r,
                   unsigned rounds)
{
    double one = bench_median(r->one, rounds), best = 0, by[COUNT_OF(crews)];

    for (size_t k = 0; k < COUNT_OF(crews); k++) {
        by[k] = bench_median(r->batch[k], rounds);
        best = by[k] > best ? by[k] : best;
    }
    bench_field(fields, "ratio", best / peers[BEST].per_s);
    bench_field(fields, "ratio_c1", one / peers[C1].per_s);
    for (size_t k = 0; k < COUNT_OF(crews); k++)
        bench_field(fields, crews[k].field, by[k]);
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
