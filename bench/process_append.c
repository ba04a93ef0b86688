/* process.append - events of 64 callers, each on a process of its own, against one-row
 * commits of the store layer by as many callers in the same run. */
#include <stdio.h>

#include "process.h"

#define CALLERS 64
#define ROWS 10000
#define ROUNDS 5

struct appending {
    struct belay *b;
    unsigned n;
};

static void name_of(unsigned i, char out[16])
{
    (void)snprintf(out, 16, "job-%u", i % 1000);
}

static bool append(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct appending *a = arg;
    bool ok = true;
    char id[16];

    name_of(i, id);
    for (unsigned k = 0; k < a->n && ok; k++) {
        ok = bench_note(a->b, id, &arena);
        arena_reset(&arena);
    }
    return ok;
}

/* Events a second, or 0. */
static double append_rate(struct belay *b, unsigned each)
{
    struct appending a = { b, each };
    double took = bench_crew(CALLERS, append, &a);

    return took > 0 ? CALLERS * each / took : 0;
}

static bool prepare(struct belay *b, struct bench_store *s)
{
    bool ok = b && bench_fill(s, ROWS);
    char id[16];

    for (unsigned i = 0; i < CALLERS && ok; i++) {
        name_of(i, id);
        ok = bench_process(b, id);
    }
    return ok;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    double seconds = o.smoke ? 0.1 : 1.0;
    unsigned rounds = o.smoke ? 1 : ROUNDS, each = o.smoke ? 2 : 200;
    double rate[ROUNDS], base[ROUNDS], ratio[ROUNDS];
    struct bench_folder f;
    struct bench_store s;

    if (!bench_folder_make(&f))
        return 1;
    bool ok = bench_store_open(&s, &f, "rows.db");
    struct belay *b = ok ? bench_belay_open(&f, "belay.db") : NULL;
    /* The log of a new file grows until its first checkpoint: that is not counted. */
    ok = ok && prepare(b, &s) && append_rate(b, each) > 0 &&
         bench_update_rate(&s, ROWS, CALLERS, seconds) > 0;
    for (unsigned i = 0; i < rounds && ok; i++) {
        base[i] = bench_update_rate(&s, ROWS, CALLERS, seconds);
        rate[i] = append_rate(b, each);
        ok = base[i] > 0 && rate[i] > 0;
        ratio[i] = ok ? rate[i] / base[i] : 0;
    }
    belay_close(b);
    bench_store_close(&s);
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(ratio, rounds));
        bench_field(&fields, "per_s", bench_median(rate, rounds));
        bench_field(&fields, "baseline_per_s", bench_median(base, rounds));
    }
    return bench_finish(&o, "process.append", &fields, ok);
}
