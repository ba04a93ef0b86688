/* exec.depth - claim and completion, pairs a second of 64 callers, with 10^6 executions
 * waiting on the lane, against those with 10^3 (ratio); and with 10^5 in front that ask for
 * a capability which nobody has, against none (ratio_unroutable).  What was done is
 * submitted again between the parts of a round, which is not counted.
 *
 *     --many N, --unroutable N    other numbers than 10^6 and 10^5 */
#include <stdlib.h>
#include <string.h>

#include "exec.h"

#define CALLERS 64
#define TURNS 8 /* of each caller, in a part of a round */
#define PARTS 4
#define FEW 1000
#define ROUNDS 5

static unsigned number(int argc, char **argv, const char *name, unsigned usual)
{
    unsigned long n = usual;

    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            n = strtoul(argv[i + 1], NULL, 10);
    return n > 0 && n <= 100000000 ? (unsigned)n : usual;
}

/* Pairs a second, or 0; as many wait afterwards as before. */
static double rate(struct belay *b, const char *lane)
{
    const struct bench_drain d = {
        .b = b, .lane = lane, .callers = CALLERS, .batch = 1, .turns = TURNS
    };
    const unsigned n = CALLERS * TURNS;
    double took = 0;

    for (unsigned i = 0; i < PARTS; i++) {
        double per_s = bench_drain_rate(&d, n);
        if (per_s <= 0 || !bench_submit(b, lane, n, NULL))
            return 0;
        took += n / per_s;
    }
    return PARTS * n / took;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    unsigned many = number(argc, argv, "--many", o.smoke ? 5000 : 1000000);
    unsigned front = number(argc, argv, "--unroutable", o.smoke ? 2000 : 100000);
    double deep[ROUNDS], behind[ROUNDS], few[ROUNDS], disk[ROUNDS];
    struct bench_folder f;

    if (!bench_folder_make(&f))
        return 1;
    struct belay *b = bench_belay_open(&f, "belay.db");
    bool ok = b && bench_submit(b, "few", FEW, NULL) &&
              bench_submit(b, "many", many, NULL) &&
              bench_submit(b, "behind", front, "a-thing-nobody-has") &&
              bench_submit(b, "behind", FEW, NULL);
    ok = ok && rate(b, "few") > 0 && rate(b, "many") > 0 && rate(b, "behind") > 0;
    for (unsigned i = 0; i < rounds && ok; i++) {
        disk[i] = bench_fdatasync_rate(&f, o.smoke ? 0.05 : 0.5);
        few[i] = rate(b, "few");
        double many_rate = rate(b, "many"), behind_rate = rate(b, "behind");
        ok = disk[i] > 0 && few[i] > 0 && many_rate > 0 && behind_rate > 0;
        deep[i] = ok ? many_rate / few[i] : 0;
        behind[i] = ok ? behind_rate / few[i] : 0;
    }
    belay_close(b);
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(deep, rounds));
        bench_field(&fields, "ratio_unroutable", bench_median(behind, rounds));
        bench_field(&fields, "baseline_per_s", bench_median(few, rounds));
        bench_field(&fields, "fdatasync_per_s", bench_median(disk, rounds));
    }
    return bench_finish(&o, "exec.depth", &fields, ok);
}
