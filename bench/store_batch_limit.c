/* store.batch_limit - durable one-row commits of 64 callers, against raw SQLite writing
 * the same rows in batches of 64: how much of the best that batching could give is
 * reached. */
#include "disk.h"

#define ROWS 10000
#define ROUNDS 5

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    double seconds = o.smoke ? 0.1 : 1.0;
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    double batch[ROUNDS], many[ROUNDS], disk[ROUNDS], ratio[ROUNDS];
    struct bench_folder f;
    struct bench_store b;
    bool ok = bench_folder_make(&f);

    if (!ok)
        return 1;
    ok = bench_store_open(&b, &f, "raw.db") && bench_fill(&b, ROWS);
    bench_store_close(&b);
    ok = ok && bench_store_open(&b, &f, "belay.db") && bench_fill(&b, ROWS);
    for (unsigned i = 0; i < rounds && ok; i++) {
        disk[i] = bench_fdatasync_rate(&f, seconds / 2);
        batch[i] = bench_raw_rate(&f, "raw.db", ROWS, 64, seconds);
        many[i] = bench_update_rate(&b, ROWS, 64, seconds);
        ok = disk[i] > 0 && batch[i] > 0 && many[i] > 0;
        ratio[i] = ok ? many[i] / batch[i] : 0;
    }
    bench_store_close(&b);
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(ratio, rounds));
        bench_field(&fields, "per_s", bench_median(many, rounds));
        bench_field(&fields, "baseline_per_s", bench_median(batch, rounds));
        bench_field(&fields, "fdatasync_per_s", bench_median(disk, rounds));
    }
    return bench_finish(&o, "store.batch_limit", &fields, ok);
}
