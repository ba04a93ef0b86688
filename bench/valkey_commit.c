/* valkey.commit - guarded one-row commits a second on Valkey or Redis (a get, then a put),
 * 50 callers, against redis-benchmark with 50 clients that call a function of six commands
 * (three HGET, two HSET, one ZADD), over TCP both.  ratio_1: one caller against one
 * client. */
#include "things.h"
#include "valkeyserver.h"

#define ROWS 10000
#define CALLERS 50
#define ROUNDS 5

static const char *const six[] = { "FCALL",
                                   "bench_six",
                                   "3",
                                   "bench:{default}:r:thing:__rand_int__",
                                   "bench:{default}:slot:__rand_int__",
                                   "bench:{default}:z",
                                   "__rand_int__",
                                   "__rand_int__" };

struct rates {
    double one[ROUNDS], many[ROUNDS], raw_one[ROUNDS], raw[ROUNDS], r1[ROUNDS],
        r50[ROUNDS], disk[ROUNDS];
};

static bool measure(struct rates *r, unsigned i, const struct bench_vk *vk,
                    struct bench_store *b, bool smoke)
{
    double seconds = smoke ? 0.1 : 2.0;
    unsigned requests = smoke ? 500 : 50000;

    r->disk[i] = bench_fdatasync_rate(&vk->folder, seconds / 4);
    r->raw[i] = bench_redis_benchmark(vk, CALLERS, requests, ROWS, six, COUNT_OF(six));
    r->many[i] = bench_update_rate(b, ROWS, CALLERS, seconds);
    r->raw_one[i] =
        bench_redis_benchmark(vk, 1, requests / 10, ROWS, six, COUNT_OF(six));
    r->one[i] = bench_update_rate(b, ROWS, 1, seconds / 2);
    bool ok = r->raw[i] > 0 && r->many[i] > 0 && r->raw_one[i] > 0 && r->one[i] > 0;
    r->r50[i] = ok ? r->many[i] / r->raw[i] : 0;
    r->r1[i] = ok ? r->one[i] / r->raw_one[i] : 0;
    return ok;
}

static void report(struct buf *fields, const struct bench_vk *vk, struct rates *r,
                   unsigned rounds)
{
    bench_vk_field(fields, vk, "ratio", bench_median(r->r50, rounds));
    bench_vk_field(fields, vk, "ratio_1", bench_median(r->r1, rounds));
    bench_vk_field(fields, vk, "per_s", bench_median(r->many, rounds));
    bench_vk_field(fields, vk, "per_s_1", bench_median(r->one, rounds));
    bench_vk_field(fields, vk, "baseline_per_s", bench_median(r->raw, rounds));
    bench_vk_field(fields, vk, "baseline_per_s_1", bench_median(r->raw_one, rounds));
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    struct bench_vk vk[BENCH_SYNCS];
    struct bench_store b[BENCH_SYNCS] = { { .driver = NULL } };
    struct rates r[BENCH_SYNCS];
    bool ok = bench_vk_open(vk);

    for (unsigned s = 0; s < BENCH_SYNCS && ok; s++)
        ok = bench_vk_load_six(&vk[s]) &&
             bench_vk_store(&b[s], &vk[s], &schema_things) && bench_fill(&b[s], ROWS) &&
             measure(&r[s], 0, &vk[s], &b[s], true);
    for (unsigned i = 0; i < rounds && ok; i++)
        for (unsigned s = 0; s < BENCH_SYNCS && ok; s++)
            ok = measure(&r[s], i, &vk[s], &b[s], o.smoke);

    struct buf fields = { .ptr = NULL };
    for (unsigned s = 0; s < BENCH_SYNCS; s++) {
        bench_store_close(&b[s]);
        if (ok)
            report(&fields, &vk[s], &r[s], rounds);
    }
    if (ok)
        bench_field(&fields, "fdatasync_per_s", bench_median(r[0].disk, rounds));
    bench_vk_close(vk);
    return bench_finish(&o, "valkey.commit", &fields, ok);
}
