/* pg.depth - claims a second with 10^6 batches waiting in the session, against those with
 * 10^3, on PostgreSQL (ratio); and with 10^3 in a session of a store through which 10^6
 * batches went (enqueued, claimed, completed), against one in a store that is new
 * (ratio_bloat).  4 callers, one claim each after the other; what was claimed is given
 * back between rounds.
 *
 *     --through N    batches instead of 10^6 */
#include <stdio.h>
#include <stdlib.h>

#include "depth.h"
#include "pgserver.h"

#define CALLERS 4
#define CLAIMS 50 /* of each caller a round, at most */
#define ROUNDS 5
#define GROUP 1000
#define WORN_SESSIONS 4

/* --- wearing --- */

struct wear {
    struct belay *b;
    unsigned groups; /* for each session */
};

static bool complete(struct belay_session *s, const struct belay_claim *c,
                     struct belay_arena *arena)
{
    struct belay_commit commit = { .size = sizeof(commit),
                                   .expected_revision = BELAY_ANY_REVISION,
                                   .completes = &c,
                                   .n_completes = 1 };
    struct belay_committed done;
    struct belay_error err;

    if (belay_session_commit(s, &commit, arena, &done, &err))
        return bench_failed("commit", &err);
    return true;
}

static bool wear_one(void *arg, unsigned i)
{
    const struct wear *w = arg;
    struct belay_session *s = NULL;
    struct belay_arena *arena = NULL;
    char name[32];

    (void)snprintf(name, sizeof(name), "worn-%u", i);
    bool ok = !belay_arena_new(&arena, NULL) &&
              !belay_session_open(w->b, name, NULL, &s, NULL);
    for (unsigned n = 0; n < w->groups && ok; n++) {
        ok = bench_enqueue(w->b, name, GROUP, BELAY_JOIN);
        const struct belay_claim *c = ok ? bench_claim(w->b, name, GROUP, arena) : NULL;
        ok = c && c->n_batches == GROUP && complete(s, c, arena);
        belay_arena_reset(arena);
    }
    belay_session_close(s);
    belay_arena_free(arena);
    return ok;
}

static bool wear_down(struct belay *b, unsigned through)
{
    struct wear w = { b, through / GROUP / WORN_SESSIONS };

    return bench_crew(WORN_SESSIONS, wear_one, &w) > 0;
}

/* --- */

static unsigned through_of(int argc, char **argv, unsigned otherwise)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--through") == 0)
            return (unsigned)strtoul(argv[i + 1], NULL, 10);
    }
    return otherwise;
}

struct rates {
    double few[ROUNDS], deep[ROUNDS], worn[ROUNDS], disk[ROUNDS];
};

static bool measure(struct rates *r, unsigned i, struct belay *b, struct belay *worn,
                    struct bench_claimers *who)
{
    double first = bench_claim_rate(who, b, "few");
    double many = bench_claim_rate(who, b, "many");
    double old = bench_claim_rate(who, worn, "worn-0");
    double second = bench_claim_rate(who, b, "few");

    r->few[i] = (first + second) / 2;
    r->deep[i] = many / r->few[i];
    r->worn[i] = old / r->few[i];
    return first > 0 && many > 0 && old > 0 && second > 0;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS, many = o.smoke ? 2000 : 1000000;
    unsigned through = through_of(argc, argv, o.smoke ? 4000 : 1000000);
    struct bench_claimers who = { .n = 0 };
    struct belay *b = NULL, *worn = NULL;
    struct bench_pg pg, pg_worn;
    struct rates r;
    bool ok = bench_pg_open(&pg, &o);

    pg_worn = pg;
    (void)snprintf(pg_worn.schema, sizeof(pg_worn.schema), "%.40s_raw", pg.schema);
    ok = ok && (b = bench_pg_belay(&pg, CALLERS)) != NULL &&
         (worn = bench_pg_belay(&pg_worn, CALLERS)) != NULL;
    ok = ok && bench_claimers_make(&who, CALLERS, o.smoke ? 4 : CLAIMS) &&
         wear_down(worn, through) &&
         bench_enqueue(worn, "worn-0", 1000, BELAY_EXCLUSIVE) &&
         bench_enqueue(b, "few", 1000, BELAY_EXCLUSIVE) &&
         bench_enqueue(b, "many", many, BELAY_EXCLUSIVE);
    ok = ok && measure(&r, 0, b, worn, &who); /* statements and pages */
    for (unsigned i = 0; i < rounds && ok; i++) {
        r.disk[i] = bench_fdatasync_rate(&pg.folder, o.smoke ? 0.05 : 0.5);
        ok = measure(&r, i, b, worn, &who);
    }
    bench_claimers_free(&who);
    belay_close(b);
    belay_close(worn);
    bench_pg_close(&pg);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(r.deep, rounds));
        bench_field(&fields, "ratio_bloat", bench_median(r.worn, rounds));
        bench_field(&fields, "baseline_per_s", bench_median(r.few, rounds));
        bench_field(&fields, "fdatasync_per_s", bench_median(r.disk, rounds));
    }
    return bench_finish(&o, "pg.depth", &fields, ok);
}
