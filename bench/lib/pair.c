#include "pair.h"

#include <stdio.h>
#include <string.h>

struct job {
    struct belay *b;
    unsigned pairs; /* of each caller */
    unsigned round;
};

static void session_name(unsigned i, char out[32])
{
    (void)snprintf(out, 32, "session-%02u", i);
}

/* One node of 200 bytes. */
static void node_text(char out[256], const char *turn, const char *parent)
{
    int n = snprintf(out, 256,
                     "{\"kind\":\"event\",\"node_id\":\"%s\",\"parent_node_id\":%s%s%s,"
                     "\"text\":\"",
                     turn, parent ? "\"" : "", parent ? parent : "null",
                     parent ? "\"" : "");
    while (n < 198)
        out[n++] = 'x';
    (void)snprintf(out + n, 256 - (size_t)n, "\"}");
}

static bool pair(struct belay *b, struct belay_session *s, struct belay_arena *arena,
                 const char *turn, const char *parent)
{
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = belay_session_id(s),
                                           .owner_id = turn,
                                           .lease_ms = BELAY_QUEUE_LEASE_MS,
                                           .max = 1 };
    struct belay_claimed claimed;
    struct belay_committed done;
    struct belay_error err;
    char node[256];

    if (belay_queue_claim(b, &request, arena, &claimed, &err))
        return bench_failed("claim", &err);
    if (!claimed.claim) {
        (void)fprintf(stderr, "bench: %s\n", belay_no_claim_name(claimed.why));
        return false;
    }
    node_text(node, turn, parent);
    struct belay_commit commit = { .size = sizeof(commit),
                                   .graph = BELAY_GRAPH_APPEND,
                                   .expected_revision = BELAY_ANY_REVISION,
                                   .turn_id = turn,
                                   .nodes = (const char *const[]){ node },
                                   .n_nodes = 1,
                                   .completes = &claimed.claim,
                                   .n_completes = 1 };
    if (belay_session_commit(s, &commit, arena, &done, &err))
        return bench_failed("commit", &err);
    return true;
}

static bool work(void *arg, unsigned i)
{
    const struct job *job = arg;
    struct belay_session *s = NULL;
    struct belay_arena *arena = NULL;
    char name[32], turn[64], parent[64] = "";
    struct belay_error err;

    session_name(i, name);
    bool ok = (!belay_arena_new(&arena, &err) &&
               !belay_session_open(job->b, name, NULL, &s, &err)) ||
              bench_failed("session", &err);
    for (unsigned n = 0; n < job->pairs && ok; n++) {
        (void)snprintf(turn, sizeof(turn), "turn-%07u-%06u", job->round, n);
        ok = pair(job->b, s, arena, turn, n > 0 ? parent : NULL);
        memcpy(parent, turn, sizeof(parent));
        belay_arena_reset(arena);
    }
    belay_session_close(s);
    belay_arena_free(arena);
    return ok;
}

static bool fill_one(void *arg, unsigned i)
{
    const struct job *job = arg;
    char name[32];

    session_name(i, name);
    return bench_enqueue(job->b, name, job->pairs, BELAY_EXCLUSIVE);
}

double bench_pair_rate(struct belay *b, unsigned callers, unsigned pairs,
                       unsigned inbox, unsigned round)
{
    double took = 0;

    for (unsigned done = 0; done < pairs; done += inbox) {
        struct job job = { b, inbox, 10000 * round + done };
        double part = bench_crew(callers, fill_one, &job) > 0
                          ? bench_crew(callers, work, &job)
                          : 0;
        if (part <= 0)
            return 0;
        took += part;
    }
    return (double)callers * pairs / took;
}
