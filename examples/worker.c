/* A worker in C: claims work of a lane, does it, completes it, until there is none.
 *
 *     worker STORE LANE
 *
 * Work is a JSON payload; what this one makes of it is its length. */
#include <stdio.h>

#include <belay/belay.h>

/* 0: it was done, or is somebody else's now. */
static int work_on(struct belay *b, const struct belay_work *work,
                   struct belay_arena *arena)
{
    struct belay_error err;
    struct belay_ended ended;
    char result[64];
    int len = snprintf(result, sizeof(result), "{\"bytes\":%zu}", work->payload_len);
    struct belay_completion done = {
        .size = sizeof(done),
        .handle = &work->handle,
        .result = result,
        .result_len = (size_t)len,
        .result_is_json = true,
    };

    if (belay_execution_complete(b, &done, 1, NULL, arena, &ended, NULL, &err)) {
        (void)fprintf(stderr, "%s: %s\n", work->execution_id, err.message);
        return 1;
    }
    if (ended.code != BELAY_OK) /* lease_lost: whoever has it now will end it */
        (void)fprintf(stderr, "%s: %s\n", work->execution_id, ended.err.message);
    else
        printf("%s\n", work->execution_id);
    return 0;
}

static int work_all(struct belay *b, const char *lane, struct belay_arena *arena)
{
    const struct belay_claim_policy policy = {
        .size = sizeof(policy),
        .lanes = &lane,
        .n_lanes = 1,
        .worker = "example",
    };
    struct belay_error err;
    struct belay_works got;

    for (;;) {
        if (belay_execution_claim(b, &policy, arena, &got, &err)) {
            (void)fprintf(stderr, "%s\n", err.message);
            return 1;
        }
        if (got.n == 0)
            return 0;
        if (work_on(b, &got.work[0], arena))
            return 1;
        belay_arena_reset(arena);
    }
}

int main(int argc, char **argv)
{
    struct belay_arena *arena = NULL;
    struct belay *b = NULL;
    struct belay_error err;

    if (argc != 3) {
        (void)fprintf(stderr, "usage: worker STORE LANE\n");
        return 2;
    }
    if (belay_open(argv[1], NULL, &b, &err) || belay_arena_new(&arena, &err)) {
        (void)fprintf(stderr, "%s\n", err.message);
        belay_close(b);
        return 1;
    }
    int status = work_all(b, argv[2], arena);
    belay_arena_free(arena);
    belay_close(b);
    return status;
}
