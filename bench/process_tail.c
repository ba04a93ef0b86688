/* process.tail - reading the last 100 events of a log of 10^6, against the same of a log of
 * 10^3, one after the other. */
#include "process.h"

#define SHORT_LOG 1000
#define LONG_LOG 1000000
#define TAIL 100
#define ROUNDS 9
#define READS 50

/* Seconds of one reading, or 0. */
static double read_tail(struct belay *b, const char *id)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct belay_process_event_request request = {
        .size = sizeof(request), .process_id = id, .tail = TAIL, .limit = TAIL
    };
    struct belay_process_events out;
    struct belay_error err;
    double start = bench_now();

    for (unsigned i = 0; i < READS; i++) {
        if (belay_process_events(b, &request, &arena, &out, &err)) {
            (void)bench_failed("events", &err);
            return 0;
        }
        if (out.n != TAIL || out.items[TAIL - 1].sequence != out.last_sequence)
            return 0;
        arena_reset(&arena);
    }
    return (bench_now() - start) / READS;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS, n = o.smoke ? 2 * SHORT_LOG : LONG_LOG;
    double few[ROUNDS], many[ROUNDS], ratio[ROUNDS];
    struct bench_folder f;

    if (!bench_folder_make(&f))
        return 1;
    struct belay *b = bench_belay_open(&f, "belay.db");
    bool ok = b && bench_process(b, "short") && bench_process(b, "long") &&
              bench_notes(b, "short", SHORT_LOG) && bench_notes(b, "long", n) &&
              read_tail(b, "short") > 0 && read_tail(b, "long") > 0;
    for (unsigned i = 0; i < rounds && ok; i++) {
        few[i] = read_tail(b, "short");
        many[i] = read_tail(b, "long");
        ok = few[i] > 0 && many[i] > 0;
        ratio[i] = ok ? many[i] / few[i] : 0;
    }
    belay_close(b);
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(ratio, rounds));
        bench_field(&fields, "ms", bench_median(many, rounds) * 1e3);
        bench_field(&fields, "baseline_ms", bench_median(few, rounds) * 1e3);
    }
    return bench_finish(&o, "process.tail", &fields, ok);
}
