/* exec.pickup - an execution is submitted while a worker waits for one, until that has
 * claimed it (handoff.h). */
#include "exec.h"
#include "handoff.h"

static double wait_and_work(struct belay *b, struct belay_cancel *cancel,
                            struct belay_arena *arena)
{
    static const char *const lane = "mail";
    const struct belay_claim_policy policy = { .size = sizeof(policy),
                                               .lanes = &lane,
                                               .n_lanes = 1,
                                               .worker = "worker",
                                               .max_wait_ms = HANDOFF_PATIENCE_MS,
                                               .cancel = cancel };
    struct belay_works works;
    struct belay_ended ended;
    struct belay_error err;

    if (belay_execution_claim(b, &policy, arena, &works, &err)) {
        if (!belay_cancel_triggered(cancel))
            (void)bench_failed("claim", &err);
        return 0;
    }
    double at = bench_now();
    if (works.n != 1)
        return 0;
    struct belay_completion done = { .size = sizeof(done),
                                     .handle = &works.work[0].handle };
    if (belay_execution_complete(b, &done, 1, NULL, arena, &ended, NULL, &err)) {
        (void)bench_failed("complete", &err);
        return 0;
    }
    return at;
}

static bool submit(struct belay *b)
{
    return bench_submit(b, "mail", 1, NULL);
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    const struct bench_handoff how = { .send = submit, .wait = wait_and_work };

    return bench_handoff(&o, "exec.pickup", &how);
}
