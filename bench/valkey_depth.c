/* valkey.depth - claims a second with 10^6 batches waiting in the session, against those
 * with 10^3, on Valkey or Redis.  4 callers, one claim each after the other; what was
 * claimed is given back between rounds. */
#include "depth.h"
#include "valkeyserver.h"

#define CALLERS 4
#define CLAIMS 50 /* of each caller a round */
#define ROUNDS 5

struct rates {
    double few[ROUNDS], deep[ROUNDS], disk[ROUNDS];
};

static bool measure(struct rates *r, unsigned i, const struct bench_vk *vk,
                    struct belay *b, struct bench_claimers *who, bool smoke)
{
    r->disk[i] = bench_fdatasync_rate(&vk->folder, smoke ? 0.05 : 0.5);
    double first = bench_claim_rate(who, b, "few");
    double many = bench_claim_rate(who, b, "many");
    double second = bench_claim_rate(who, b, "few");

    r->few[i] = (first + second) / 2;
    r->deep[i] = many / r->few[i];
    return first > 0 && many > 0 && second > 0;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS, many = o.smoke ? 2000 : 1000000;
    struct bench_claimers who = { .n = 0 };
    struct bench_vk vk[BENCH_SYNCS];
    struct belay *b[BENCH_SYNCS] = { NULL };
    struct rates r[BENCH_SYNCS];
    bool ok =
        bench_vk_open(vk) && bench_claimers_make(&who, CALLERS, o.smoke ? 2 : CLAIMS);

    for (unsigned s = 0; s < BENCH_SYNCS && ok; s++)
        ok = (b[s] = bench_vk_belay(&vk[s])) != NULL &&
             bench_enqueue(b[s], "few", 1000, BELAY_EXCLUSIVE) &&
             bench_enqueue(b[s], "many", many, BELAY_EXCLUSIVE) &&
             measure(&r[s], 0, &vk[s], b[s], &who, true);
    for (unsigned i = 0; i < rounds && ok; i++)
        for (unsigned s = 0; s < BENCH_SYNCS && ok; s++)
            ok = measure(&r[s], i, &vk[s], b[s], &who, o.smoke);
    bench_claimers_free(&who);

    struct buf fields = { .ptr = NULL };
    for (unsigned s = 0; s < BENCH_SYNCS; s++) {
        belay_close(b[s]);
        if (!ok)
            continue;
        bench_vk_field(&fields, &vk[s], "ratio", bench_median(r[s].deep, rounds));
        bench_vk_field(&fields, &vk[s], "baseline_per_s",
                       bench_median(r[s].few, rounds));
    }
    if (ok)
        bench_field(&fields, "fdatasync_per_s", bench_median(r[0].disk, rounds));
    bench_vk_close(vk);
    return bench_finish(&o, "valkey.depth", &fields, ok);
}
