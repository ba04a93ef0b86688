/* queue.depth - claims a second with 10^6 batches waiting in the session, against those
 * with 10^3 (ratio); and with 10^5 batches held by live claims in front, against none
 * (ratio_held).  64 callers, one claim each after the other; what was claimed is given
 * back between rounds. */
#include <stdio.h>

#include "inbox.h"

#define CALLERS 64
#define CLAIMS 8 /* of each caller a round */
#define ROUNDS 5
#define GROUP 1000

struct job {
    struct belay *b;
    const char *session;
    const struct belay_claim *claims[CALLERS][CLAIMS];
    struct belay_arena *arenas[CALLERS];
};

static const struct belay_claim *claim(struct belay *b, const char *session, size_t max,
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

static bool take(void *arg, unsigned i)
{
    struct job *job = arg;
    bool ok = true;

    for (unsigned n = 0; n < CLAIMS && ok; n++) {
        job->claims[i][n] = claim(job->b, job->session, 1, job->arenas[i]);
        ok = job->claims[i][n] != NULL;
    }
    return ok;
}

static bool give_back(void *arg, unsigned i)
{
    struct job *job = arg;
    bool ok = true;

    for (unsigned n = 0; n < CLAIMS && ok; n++)
        ok = !belay_queue_abandon(job->b, job->claims[i][n], NULL, NULL);
    belay_arena_reset(job->arenas[i]);
    return ok;
}

/* Claims a second, or 0. */
static double rate(struct belay *b, const char *session, struct belay_arena **arenas)
{
    struct job job = { .b = b, .session = session };

    memcpy(job.arenas, arenas, sizeof(job.arenas));
    double took = bench_crew(CALLERS, take, &job);
    bool ok = took > 0 && bench_crew(CALLERS, give_back, &job) > 0;
    return ok ? CALLERS * CLAIMS / took : 0;
}

/* Batches that live claims hold, in front of what comes later. */
static bool hold(struct belay *b, const char *session, unsigned n,
                 struct belay_arena *arena)
{
    bool ok = bench_enqueue(b, session, n, BELAY_JOIN);

    for (unsigned done = 0; done < n && ok; done += GROUP) {
        const struct belay_claim *c = claim(b, session, GROUP, arena);
        ok = c && c->n_batches == GROUP;
        belay_arena_reset(arena);
    }
    return ok;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    unsigned many = o.smoke ? 5000 : 1000000, held = o.smoke ? 2000 : 100000;
    double deep[ROUNDS], behind[ROUNDS], few_rate[ROUNDS], disk[ROUNDS];
    struct belay_arena *arenas[CALLERS] = { NULL };
    struct bench_folder f;
    bool ok = bench_folder_make(&f);

    if (!ok)
        return 1;
    struct belay *b = bench_belay_open(&f, "belay.db");
    ok = b != NULL;
    for (unsigned i = 0; i < CALLERS && ok; i++)
        ok = !belay_arena_new(&arenas[i], NULL);
    ok = ok && bench_enqueue(b, "few", 1000, BELAY_EXCLUSIVE) &&
         bench_enqueue(b, "many", many, BELAY_EXCLUSIVE) &&
         hold(b, "held", held, arenas[0]) &&
         bench_enqueue(b, "held", 1000, BELAY_EXCLUSIVE);
    ok = ok && rate(b, "few", arenas) > 0 && rate(b, "many", arenas) > 0;
    for (unsigned i = 0; i < rounds && ok; i++) {
        disk[i] = bench_fdatasync_rate(&f, o.smoke ? 0.05 : 0.5);
        few_rate[i] = rate(b, "few", arenas);
        double many_rate = rate(b, "many", arenas);
        double held_rate = rate(b, "held", arenas);
        ok = disk[i] > 0 && few_rate[i] > 0 && many_rate > 0 && held_rate > 0;
        deep[i] = ok ? many_rate / few_rate[i] : 0;
        behind[i] = ok ? held_rate / few_rate[i] : 0;
    }
    for (unsigned i = 0; i < CALLERS; i++)
        belay_arena_free(arenas[i]);
    belay_close(b);
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(deep, rounds));
        bench_field(&fields, "ratio_held", bench_median(behind, rounds));
        bench_field(&fields, "baseline_per_s", bench_median(few_rate, rounds));
        bench_field(&fields, "fdatasync_per_s", bench_median(disk, rounds));
    }
    return bench_finish(&o, "queue.depth", &fields, ok);
}
