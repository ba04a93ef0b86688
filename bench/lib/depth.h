/* depth.h - claims from inboxes in which much or little waits. */
#ifndef BENCH_DEPTH_H
#define BENCH_DEPTH_H

#include "inbox.h"

/* A claim of at most `max` batches, or NULL, and said why. */
const struct belay_claim *bench_claim(struct belay *b, const char *session, size_t max,
                                      struct belay_arena *arena);

/* Who claims, one claim after the other each, and where the claims are kept. */
#define BENCH_CLAIMERS_MAX 64
struct bench_claimers {
    unsigned n, claims; /* claims of each a round */
    struct belay_arena *arenas[BENCH_CLAIMERS_MAX];
};
bool bench_claimers_make(struct bench_claimers *c, unsigned n, unsigned claims);
void bench_claimers_free(struct bench_claimers *c);

/* Claims a second in a session, or 0; what was claimed is given back, which is not
 * counted. */
double bench_claim_rate(struct bench_claimers *c, struct belay *b, const char *session);

#endif /* BENCH_DEPTH_H */
