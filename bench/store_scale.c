/* store.scale - the commit rate with 10^6 rows present, against that with 10^3: one
 * caller (ratio) and 64 callers (ratio_64).  Cost must not grow with what is stored. */
#include "disk.h"

#define FEW 1000
#define ROUNDS 5

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    double seconds = o.smoke ? 0.1 : 1.0;
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    unsigned many_rows = o.smoke ? 20000 : 1000000;
    double one[ROUNDS], sixty_four[ROUNDS], disk[ROUNDS], few_rate[ROUNDS];
    struct bench_folder f;
    struct bench_store few, many;
    bool ok = bench_folder_make(&f);

    if (!ok)
        return 1;
    ok = bench_store_open(&few, &f, "few.db") && bench_fill(&few, FEW);
    ok = bench_store_open(&many, &f, "many.db") && ok && bench_fill(&many, many_rows);
    /* Past the first checkpoint, where the logs stop growing. */
    ok = ok && bench_update_rate(&few, FEW, 64, seconds) > 0 &&
         bench_update_rate(&many, many_rows, 64, seconds) > 0;
    for (unsigned i = 0; i < rounds && ok; i++) {
        disk[i] = bench_fdatasync_rate(&f, seconds / 2);
        few_rate[i] = bench_update_rate(&few, FEW, 1, seconds);
        double many_1 = bench_update_rate(&many, many_rows, 1, seconds);
        double few_64 = bench_update_rate(&few, FEW, 64, seconds);
        double many_64 = bench_update_rate(&many, many_rows, 64, seconds);
        ok = disk[i] > 0 && few_rate[i] > 0 && many_1 > 0 && few_64 > 0 && many_64 > 0;
        one[i] = ok ? many_1 / few_rate[i] : 0;
        sixty_four[i] = ok ? many_64 / few_64 : 0;
    }
    bench_store_close(&few);
    bench_store_close(&many);
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(one, rounds));
        bench_field(&fields, "ratio_64", bench_median(sixty_four, rounds));
        bench_field(&fields, "baseline_per_s", bench_median(few_rate, rounds));
        bench_field(&fields, "fdatasync_per_s", bench_median(disk, rounds));
    }
    return bench_finish(&o, "store.scale", &fields, ok);
}
