/* queue.depth - claims a second with 10^6 batches waiting in the session, against those
 * with 10^3 (ratio); and with 10^5 batches held by live claims in front, against none
 * (ratio_held).  64 callers, one claim each after the other; what was claimed is given
 * back between rounds. */
#include "depth.h"

#define CALLERS 64
#define CLAIMS 8 /* of each caller a round */
#define ROUNDS 5
#define GROUP 1000

/* Batches that live claims hold, in front of what comes later. */
static bool hold(struct belay *b, const char *session, unsigned n,
                 struct belay_arena *arena)
{
    bool ok = bench_enqueue(b, session, n, BELAY_JOIN);

    for (unsigned done = 0; done < n && ok; done += GROUP) {
        const struct belay_claim *c = bench_claim(b, session, GROUP, arena);
        ok = c && c->n_batches == GROUP;
        belay_arena_reset(arena);
    }
    return ok;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    unsigned many = o.smoke ? 5000 : 1000000, held = o.smoke ? 2000 : 100000;
    double deep[ROUNDS], behind[ROUNDS], few_rate[ROUNDS], disk[ROUNDS];
    struct bench_claimers who = { .n = 0 };
    struct bench_folder f;
    bool ok = bench_folder_make(&f);

    if (!ok)
        return 1;
    struct belay *b = bench_belay_open(&f, "belay.db");
    ok = b != NULL && bench_claimers_make(&who, CALLERS, CLAIMS);
    ok = ok && bench_enqueue(b, "few", 1000, BELAY_EXCLUSIVE) &&
         bench_enqueue(b, "many", many, BELAY_EXCLUSIVE) &&
         hold(b, "held", held, who.arenas[0]) &&
         bench_enqueue(b, "held", 1000, BELAY_EXCLUSIVE);
    ok = ok && bench_claim_rate(&who, b, "few") > 0 &&
         bench_claim_rate(&who, b, "many") > 0;
    for (unsigned i = 0; i < rounds && ok; i++) {
        disk[i] = bench_fdatasync_rate(&f, o.smoke ? 0.05 : 0.5);
        few_rate[i] = bench_claim_rate(&who, b, "few");
        double many_rate = bench_claim_rate(&who, b, "many");
        double held_rate = bench_claim_rate(&who, b, "held");
        ok = disk[i] > 0 && few_rate[i] > 0 && many_rate > 0 && held_rate > 0;
        deep[i] = ok ? many_rate / few_rate[i] : 0;
        behind[i] = ok ? held_rate / few_rate[i] : 0;
    }
    bench_claimers_free(&who);
    belay_close(b);
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(deep, rounds));
        bench_field(&fields, "ratio_held", bench_median(behind, rounds));
        bench_field(&fields, "baseline_per_s", bench_median(few_rate, rounds));
        bench_field(&fields, "fdatasync_per_s", bench_median(disk, rounds));
    }
    return bench_finish(&o, "queue.depth", &fields, ok);
}
