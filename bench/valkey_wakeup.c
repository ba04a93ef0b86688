/* valkey.wakeup - a batch is put into an inbox by one process while another waits for it, on
 * Valkey or Redis: from the start of the enqueue until the waiter wakes, p50, against a bare
 * commit (one HSET by hiredis), p50.  ratio_claimed: until it has claimed it.  ratio_function:
 * against a function of six commands, p50, which is about what a guarded commit takes. */
#include <poll.h>

#include "valkeyserver.h"
#include "waiter.h"

#define ROWS 1000

struct samples {
    struct bench_wakeups of;
    double function[BENCH_WAKEUPS_MAX];
};

static struct belay *open_store(const void *vk)
{
    return bench_vk_belay(vk);
}

/* The one who does without Belay. */
struct bare {
    redisContext *raw;
    double *function; /* seconds of the function, beside those of each HSET */
};

/* Seconds of an HSET, or 0. */
static double bare_commit(void *arg, unsigned i)
{
    struct bare *bare = arg;
    char key[ID_MAX];

    bench_key(i % ROWS, key);
    double start = bench_now();
    redisReply *r =
        redisCommand(bare->raw, "HSET raw:{default}:r:thing:%s ver %u n %u", key, i, i);
    double took = bench_now() - start;
    if (!bench_vk_is_done(bare->raw, r))
        return 0;
    (void)poll(NULL, 0, 3); /* as before the others */
    start = bench_now();
    r = redisCommand(bare->raw,
                     "FCALL bench_six 3 raw:{default}:r:six:%s raw:{default}:slot:%s"
                     " raw:{default}:z %u %u",
                     key, key, i, i);
    bare->function[i] = bench_now() - start;
    return bench_vk_is_done(bare->raw, r) ? took : 0;
}

static bool measure(struct samples *s, unsigned n, const struct bench_vk *vk,
                    struct bench_waiter *w)
{
    struct belay *b = open_store(vk);
    struct bare bare = { bench_vk_connect(vk), s->function };
    bool ok = b && bare.raw && bench_vk_load_six(vk) &&
              bench_wakeups(&s->of, n, w, b, bare_commit, &bare);

    if (bare.raw)
        redisFree(bare.raw);
    belay_close(b);
    return ok;
}

static void report(struct buf *fields, const struct bench_vk *vk, struct samples *s,
                   unsigned n)
{
    double bare = bench_median(s->of.bare, n), woken = bench_median(s->of.woken, n);
    double function = bench_median(s->function, n);

    bench_vk_field(fields, vk, "ratio", woken / bare);
    bench_vk_field(fields, vk, "ratio_function", woken / function);
    bench_vk_field(fields, vk, "ratio_claimed", bench_median(s->of.claimed, n) / bare);
    bench_vk_field(fields, vk, "ratio_enqueue", bench_median(s->of.enqueued, n) / bare);
    bench_vk_field(fields, vk, "woken_ms", woken * 1e3);
    bench_vk_field(fields, vk, "baseline_ms", bare * 1e3);
    bench_vk_field(fields, vk, "function_ms", function * 1e3);
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned n = o.smoke ? 10 : BENCH_WAKEUPS_MAX;
    struct bench_waiter w[BENCH_SYNCS] = { { .pid = -1, .in = -1 },
                                           { .pid = -1, .in = -1 } };
    struct samples samples[BENCH_SYNCS];
    struct bench_vk vk[BENCH_SYNCS];
    struct buf fields = { .ptr = NULL };
    bool ok = bench_vk_open(vk);

    for (unsigned s = 0; s < BENCH_SYNCS && ok; s++)
        ok = bench_waiter_start(&w[s], open_store, &vk[s]);
    for (unsigned s = 0; s < BENCH_SYNCS; s++) {
        ok = ok && measure(&samples[s], n, &vk[s], &w[s]);
        bench_waiter_end(&w[s]);
        if (ok)
            report(&fields, &vk[s], &samples[s], n);
    }
    bench_vk_close(vk);
    return bench_finish(&o, "valkey.wakeup", &fields, ok);
}
