/* process.wake_latency - an event is appended while somebody waits for the next one of its
 * process, until that has it (handoff.h). */
#include "handoff.h"
#include "process.h"

#define PROCESS "job"

static bool prepare(const struct bench_folder *f)
{
    static const char *const files[] = { HANDOFF_ONE, HANDOFF_TWO };
    bool ok = true;

    for (unsigned i = 0; i < COUNT_OF(files) && ok; i++) {
        struct belay *b = bench_belay_open(f, files[i]);
        ok = b && bench_process(b, PROCESS);
        belay_close(b);
    }
    return ok;
}

static bool append(struct belay *b)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };

    return bench_note(b, PROCESS, &arena);
}

/* The next event behind the last one that was seen. */
static double wait_for_it(struct belay *b, struct belay_cancel *cancel,
                          struct belay_arena *arena)
{
    struct belay_process_event_request request = { .size = sizeof(request),
                                                   .process_id = PROCESS,
                                                   .limit = 10,
                                                   .wait_ms = HANDOFF_PATIENCE_MS,
                                                   .cancel = cancel };
    const struct belay_process *now = NULL;
    struct belay_process_events out = { .n = 0 };
    struct belay_error err;

    /* Nothing is appended before this one waits: what is there was seen. */
    if (belay_process_get(b, PROCESS, arena, &now, &err)) {
        (void)bench_failed("get", &err);
        return 0;
    }
    request.after = now->last_sequence;
    if (belay_process_events(b, &request, arena, &out, &err)) {
        if (!belay_cancel_triggered(cancel))
            (void)bench_failed("events", &err);
        return 0;
    }
    return out.n > 0 ? bench_now() : 0;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    const struct bench_handoff how = { .prepare = prepare,
                                       .send = append,
                                       .wait = wait_for_it };

    return bench_handoff(&o, "process.wake_latency", &how);
}
