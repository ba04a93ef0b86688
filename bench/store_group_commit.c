/* store.group_commit - durable one-row commits of 64 callers (10^4 rows, random keys),
 * against raw SQLite with one commit per fsync and the same row shape.
 * ratio_1: the same with one caller. */
#include "disk.h"

#define ROWS 10000
#define ROUNDS 5

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    double seconds = o.smoke ? 0.1 : 1.0;
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    double raw[ROUNDS], one[ROUNDS], many[ROUNDS], disk[ROUNDS], r1[ROUNDS],
        r64[ROUNDS];
    struct bench_folder f;
    struct bench_store b;
    bool ok = bench_folder_make(&f);

    if (!ok)
        return 1;
    ok = bench_store_open(&b, &f, "raw.db") && bench_fill(&b, ROWS);
    bench_store_close(&b);
    ok = ok && bench_store_open(&b, &f, "belay.db") && bench_fill(&b, ROWS);
    /* The log of a new file grows until its first checkpoint, and growing costs: let both
     * get that behind them. */
    ok = ok && bench_update_rate(&b, ROWS, 64, seconds) > 0 &&
         bench_raw_rate(&f, "raw.db", ROWS, 64, seconds) > 0;
    for (unsigned i = 0; i < rounds && ok; i++) {
        disk[i] = bench_fdatasync_rate(&f, seconds / 2);
        raw[i] = bench_raw_rate(&f, "raw.db", ROWS, 1, seconds);
        one[i] = bench_update_rate(&b, ROWS, 1, seconds);
        many[i] = bench_update_rate(&b, ROWS, 64, seconds);
        ok = disk[i] > 0 && raw[i] > 0 && one[i] > 0 && many[i] > 0;
        r1[i] = ok ? one[i] / raw[i] : 0;
        r64[i] = ok ? many[i] / raw[i] : 0;
    }
    bench_store_close(&b);
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(r64, rounds));
        bench_field(&fields, "ratio_1", bench_median(r1, rounds));
        bench_field(&fields, "per_s", bench_median(many, rounds));
        bench_field(&fields, "per_s_1", bench_median(one, rounds));
        bench_field(&fields, "baseline_per_s", bench_median(raw, rounds));
        bench_field(&fields, "fdatasync_per_s", bench_median(disk, rounds));
        ok = bench_plausible(&o, bench_median(raw, rounds), bench_median(disk, rounds));
    }
    return bench_finish(&o, "store.group_commit", &fields, ok);
}
