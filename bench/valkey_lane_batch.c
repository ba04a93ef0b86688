/* valkey.lane_batch - work as executions will have it (lane.h), on Valkey or Redis: jobs a
 * second of 4 workers by batches of 100, against what BullMQ drains at its best with the
 * same setting of appendfsync:
 *
 *     --peer bullmq-always=JOBS_PER_S --peer bullmq-everysec=JOBS_PER_S
 *
 * as valkey.queue has it.  per_s_events: the same with one entry of the feed for each job. */
#include "lane.h"
#include "peer.h"
#include "valkeyserver.h"

#define ROUNDS 5

struct rates {
    double rate[ROUNDS], events[ROUNDS], disk[ROUNDS];
};

static bool measure(struct rates *r, unsigned i, unsigned round,
                    const struct bench_vk *vk, struct bench_store *b, bool smoke)
{
    unsigned jobs = smoke ? 1000 : 30000, from = 2 * jobs * round;

    r->disk[i] = bench_fdatasync_rate(&vk->folder, smoke ? 0.05 : 0.5);
    r->rate[i] = bench_lane_rate(b, from, jobs, false);
    r->events[i] = bench_lane_rate(b, from + jobs, jobs, true);
    return r->rate[i] > 0 && r->events[i] > 0;
}

static void report(struct buf *fields, const struct bench_vk *vk, struct rates *r,
                   const struct bench_peer *peer, unsigned rounds)
{
    double per_s = bench_median(r->rate, rounds);

    bench_vk_field(fields, vk, "ratio", per_s / peer->per_s);
    bench_vk_field(fields, vk, "per_s", per_s);
    bench_vk_field(fields, vk, "per_s_events", bench_median(r->events, rounds));
    bench_vk_field(fields, vk, "peer_per_s", peer->per_s);
    bench_vk_field(fields, vk, "peer_measured", peer->measured);
}

int main(int argc, char **argv)
{
    struct bench_peer peers[BENCH_SYNCS] = {
        [BENCH_ALWAYS] = { .name = "bullmq-always", .per_s = 12937 },
        [BENCH_EVERYSEC] = { .name = "bullmq-everysec", .per_s = 14358 },
    };
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    struct bench_vk vk[BENCH_SYNCS];
    struct bench_store b[BENCH_SYNCS] = { { .driver = NULL } };
    struct rates r[BENCH_SYNCS];

    bench_run_peer(&o, "bullmq", "always", &peers[BENCH_ALWAYS], NULL);
    bench_run_peer(&o, "bullmq", "everysec", &peers[BENCH_EVERYSEC], NULL);
    bench_take_peers(peers, BENCH_SYNCS, argc, argv);
    bool ok = bench_vk_open(vk);
    for (unsigned s = 0; s < BENCH_SYNCS && ok; s++)
        ok = bench_vk_store(&b[s], &vk[s], &bench_schema_jobs) &&
             measure(&r[s], 0, 0, &vk[s], &b[s], true);
    for (unsigned i = 0; i < rounds && ok; i++)
        for (unsigned s = 0; s < BENCH_SYNCS && ok; s++)
            ok = measure(&r[s], i, i + 1, &vk[s], &b[s], o.smoke);

    struct buf fields = { .ptr = NULL };
    for (unsigned s = 0; s < BENCH_SYNCS; s++) {
        bench_store_close(&b[s]);
        if (ok)
            report(&fields, &vk[s], &r[s], &peers[s], rounds);
    }
    if (ok)
        bench_field(&fields, "fdatasync_per_s", bench_median(r[0].disk, rounds));
    bench_vk_close(vk);
    return bench_finish(&o, "valkey.lane_batch", &fields, ok);
}
