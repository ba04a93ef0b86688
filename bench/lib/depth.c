#include "depth.h"

#define CLAIMS_MAX 64

const struct belay_claim *bench_claim(struct belay *b, const char *session, size_t max,
                                      struct belay_arena *arena)
{
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = session,
                                           .owner_id = "worker",
                                           .lease_ms = BELAY_LEASE_MAX_MS,
                                           .max = max };
    struct belay_claimed claimed = { .claim = NULL };
    struct belay_error err;

    if (belay_queue_claim(b, &request, arena, &claimed, &err))
        (void)bench_failed("claim", &err);
    return claimed.claim;
}

bool bench_claimers_make(struct bench_claimers *c, unsigned n, unsigned claims)
{
    bool ok = n <= BENCH_CLAIMERS_MAX && claims <= CLAIMS_MAX;

    *c = (struct bench_claimers){ .n = n, .claims = claims };
    for (unsigned i = 0; i < n && ok; i++)
        ok = !belay_arena_new(&c->arenas[i], NULL);
    return ok;
}

void bench_claimers_free(struct bench_claimers *c)
{
    for (unsigned i = 0; i < BENCH_CLAIMERS_MAX; i++)
        belay_arena_free(c->arenas[i]);
}

struct job {
    const struct bench_claimers *who;
    struct belay *b;
    const char *session;
    const struct belay_claim *claims[BENCH_CLAIMERS_MAX][CLAIMS_MAX];
};

static bool take(void *arg, unsigned i)
{
    struct job *job = arg;
    bool ok = true;

    for (unsigned n = 0; n < job->who->claims && ok; n++) {
        job->claims[i][n] = bench_claim(job->b, job->session, 1, job->who->arenas[i]);
        ok = job->claims[i][n] != NULL;
    }
    return ok;
}

static bool give_back(void *arg, unsigned i)
{
    struct job *job = arg;
    bool ok = true;

    for (unsigned n = 0; n < job->who->claims && ok; n++)
        ok = !belay_queue_abandon(job->b, job->claims[i][n], NULL, NULL);
    belay_arena_reset(job->who->arenas[i]);
    return ok;
}

double bench_claim_rate(struct bench_claimers *c, struct belay *b, const char *session)
{
    struct job job = { .who = c, .b = b, .session = session };
    double took = bench_crew(c->n, take, &job);
    bool ok = took > 0 && bench_crew(c->n, give_back, &job) > 0;

    return ok ? c->n * c->claims / took : 0;
}
