/* exec.valkey - executions on Valkey or Redis, claimed and completed by 100 in 4 callers,
 * each completing together with its next claim: executions a second, against what BullMQ
 * drains at its best with the same setting of appendfsync.  ratio_c1: one by one, a claim
 * and a completion, in one caller, against BullMQ's one.
 *
 *     --peer bullmq-always=JOBS_PER_S --peer bullmq-everysec=JOBS_PER_S
 *     --peer bullmq-always-c1=JOBS_PER_S --peer bullmq-everysec-c1=JOBS_PER_S
 *
 * Without any (peer.h), these figures count: BullMQ 6.7, 12937/s and 14358/s, one by one
 * 1540/s and 2646/s, Node 22, Redis 7.0, two virtual cores, fdatasync 0.12 to 0.25 ms;
 * peer_measured says 0 then. */
#include <stdio.h>
#include <string.h>

#include "exec.h"
#include "peer.h"
#include "valkeyserver.h"

#define CALLERS 4
#define BATCH 100
#define ROUNDS 5

enum { PEERS = 2 * BENCH_SYNCS }; /* at their best, then one by one */

struct rates {
    double disk[ROUNDS], batch[ROUNDS];
    /* One by one, before the batches and behind them: the disk has its moods. */
    double before[ROUNDS], behind[ROUNDS];
};

static bool measure(struct rates *r, unsigned i, const struct bench_vk *vk,
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

    r->disk[i] = bench_fdatasync_rate(&vk->folder, smoke ? 0.05 : 0.5);
    r->before[i] = bench_exec_rate(&one, smoke ? 20 : 2000);
    r->batch[i] = bench_exec_rate(&batch, smoke ? 1000 : 30000);
    r->behind[i] = bench_exec_rate(&one, smoke ? 20 : 2000);
    return r->disk[i] > 0 && r->batch[i] > 0 && r->before[i] > 0 && r->behind[i] > 0;
}

static void report(struct buf *fields, const struct bench_vk *vk, struct rates *r,
                   const struct bench_peer *peers, unsigned rounds)
{
    const struct bench_peer *best = &peers[vk->sync],
                            *c1 = &peers[BENCH_SYNCS + vk->sync];
    double per_s = bench_median(r->batch, rounds);
    double all[2 * ROUNDS];

    memcpy(all, r->before, rounds * sizeof(all[0]));
    memcpy(all + rounds, r->behind, rounds * sizeof(all[0]));
    double one = bench_median(all, 2 * rounds);

    bench_vk_field(fields, vk, "ratio", per_s / best->per_s);
    bench_vk_field(fields, vk, "ratio_c1", one / c1->per_s);
    bench_vk_field(fields, vk, "per_s", per_s);
    bench_vk_field(fields, vk, "per_s_c1", one);
    bench_vk_field(fields, vk, "peer_per_s", best->per_s);
    bench_vk_field(fields, vk, "peer_measured", best->measured);
    bench_vk_field(fields, vk, "peer_c1_per_s", c1->per_s);
    bench_vk_field(fields, vk, "peer_c1_measured", c1->measured);
}

static void run_peers(struct bench_peer *peers, const struct bench_options *o)
{
    static const char *const syncs[BENCH_SYNCS] = {
        [BENCH_ALWAYS] = "always", [BENCH_EVERYSEC] = "everysec"
    };

    for (unsigned s = 0; s < BENCH_SYNCS; s++)
        bench_run_peer(o, "bullmq", syncs[s], &peers[s], &peers[BENCH_SYNCS + s]);
}

int main(int argc, char **argv)
{
    struct bench_peer peers[PEERS] = {
        [BENCH_ALWAYS] = { .name = "bullmq-always", .per_s = 12937 },
        [BENCH_EVERYSEC] = { .name = "bullmq-everysec", .per_s = 14358 },
        [BENCH_SYNCS + BENCH_ALWAYS] = { .name = "bullmq-always-c1", .per_s = 1540 },
        [BENCH_SYNCS +
            BENCH_EVERYSEC] = { .name = "bullmq-everysec-c1", .per_s = 2646 },
    };
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    struct bench_vk vk[BENCH_SYNCS];
    struct belay *b[BENCH_SYNCS] = { NULL };
    struct rates r[BENCH_SYNCS];

    bench_take_peers(peers, PEERS, argc, argv);
    bool ok = bench_vk_open(vk);
    for (unsigned s = 0; s < BENCH_SYNCS && ok; s++) {
        b[s] = bench_vk_belay(&vk[s]);
        ok = b[s] && measure(&r[s], 0, &vk[s], b[s], true);
    }
    for (unsigned i = 0; i < rounds && ok; i++) {
        if (bench_peer_turn(i, rounds))
            run_peers(peers, &o);
        for (unsigned s = 0; s < BENCH_SYNCS && ok; s++)
            ok = measure(&r[s], i, &vk[s], b[s], o.smoke);
    }

    struct buf fields = { .ptr = NULL };
    for (unsigned s = 0; s < BENCH_SYNCS; s++) {
        belay_close(b[s]);
        if (ok)
            report(&fields, &vk[s], &r[s], peers, rounds);
    }
    if (ok)
        bench_field(&fields, "fdatasync_per_s", bench_median(r[0].disk, rounds));
    bench_vk_close(vk);
    return bench_finish(&o, "exec.valkey", &fields, ok);
}
