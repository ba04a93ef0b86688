/* valkey.queue - a claim, then a commit with one node of 200 bytes, a turn stamp and that
 * claim's completion: pairs a second of 50 callers over 50 sessions on Valkey or Redis,
 * against what BullMQ drains at its best with the same setting of appendfsync:
 *
 *     --peer bullmq-always=JOBS_PER_S --peer bullmq-everysec=JOBS_PER_S
 *
 * measured on the same machine, at the same time of day (fill a backlog, then claim, run an
 * empty handler and complete until nothing is left, best of several concurrencies).  Without
 * the option, and without BELAY_BENCH_PEERS (peer.h), these figures count: BullMQ 6.7, 12937/s and 14358/s, Node 22, Redis 7.0, two
 * virtual cores, fdatasync 0.12 to 0.25 ms; peer_measured says 0 then.
 *
 * per_s_1: one caller. */
#include "pair.h"
#include "peer.h"
#include "valkeyserver.h"

#define CALLERS 50
#define INBOX 100 /* batches that wait in an inbox when a part of a round begins */
#define ROUNDS 5

struct rates {
    double one[ROUNDS], many[ROUNDS], disk[ROUNDS];
};

static bool measure(struct rates *r, unsigned i, unsigned round,
                    const struct bench_vk *vk, struct belay *b, bool smoke)
{
    unsigned inbox = smoke ? 10 : INBOX;

    r->disk[i] = bench_fdatasync_rate(&vk->folder, smoke ? 0.05 : 0.5);
    r->many[i] = bench_pair_rate(b, CALLERS, inbox, inbox, 2 * round);
    r->one[i] = bench_pair_rate(b, 1, 4 * inbox, inbox, 2 * round + 1);
    return r->many[i] > 0 && r->one[i] > 0;
}

static void report(struct buf *fields, const struct bench_vk *vk, struct rates *r,
                   const struct bench_peer *peer, unsigned rounds)
{
    double per_s = bench_median(r->many, rounds);

    bench_vk_field(fields, vk, "ratio", per_s / peer->per_s);
    bench_vk_field(fields, vk, "per_s", per_s);
    bench_vk_field(fields, vk, "per_s_1", bench_median(r->one, rounds));
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
    struct belay *b[BENCH_SYNCS] = { NULL };
    struct rates r[BENCH_SYNCS];

    bench_run_peer(&o, "bullmq", "always", &peers[BENCH_ALWAYS], NULL);
    bench_run_peer(&o, "bullmq", "everysec", &peers[BENCH_EVERYSEC], NULL);
    bench_take_peers(peers, BENCH_SYNCS, argc, argv);
    bool ok = bench_vk_open(vk);
    for (unsigned s = 0; s < BENCH_SYNCS && ok; s++)
        ok = (b[s] = bench_vk_belay(&vk[s])) != NULL &&
             measure(&r[s], 0, 0, &vk[s], b[s], true);
    for (unsigned i = 0; i < rounds && ok; i++)
        for (unsigned s = 0; s < BENCH_SYNCS && ok; s++)
            ok = measure(&r[s], i, i + 1, &vk[s], b[s], o.smoke);

    struct buf fields = { .ptr = NULL };
    for (unsigned s = 0; s < BENCH_SYNCS; s++) {
        belay_close(b[s]);
        if (ok)
            report(&fields, &vk[s], &r[s], &peers[s], rounds);
    }
    if (ok)
        bench_field(&fields, "fdatasync_per_s", bench_median(r[0].disk, rounds));
    bench_vk_close(vk);
    return bench_finish(&o, "valkey.queue", &fields, ok);
}
