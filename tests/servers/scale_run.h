/* scale_run.h - processes with claimers on one store, of which any may be killed. */
#ifndef TESTS_SERVERS_SCALE_RUN_H
#define TESTS_SERVERS_SCALE_RUN_H

#include <belay/session.h>
#include <sys/types.h>

#include "base/rng.h"
#include "harness.h"
#include "scale_worker.h"
#include "url_store.h"

#define SCALE_BATCHES ((size_t)SCALE_SESSIONS * SCALE_PER_SESSION)
#define SCALE_ID_MAX 80

struct scale_run {
    bool ran;
    char dir[TEMP_DIR_MAX], notes[TEMP_DIR_MAX + 8];
    const struct url_kind *kind;
    struct url_store store; /* of the workers; ours is the same under another name */
    struct belay *b;
    struct belay_arena *arena;
    struct belay_error err;
    struct rng rng;
    char id[SCALE_SESSIONS][SCALE_PER_SESSION + 1][SCALE_ID_MAX];

    pid_t pid[SCALE_PROCESSES]; /* 0: it has ended by itself */
    int32_t life[SCALE_PROCESSES];
    unsigned kills, wrong_ends;
    /* When all were dead and their leases had ended: batches that had been granted, and
     * those of them that were held all the same. */
    int64_t orphans, held;

    struct scale_grant *grant;
    size_t n_grants;
};

/* Fills the inboxes, and lets the processes empty them. */
void scale_run(struct scale_run *r, struct tap *t);
void scale_run_release(struct scale_run *r); /* removes the store */

/* How many batches are in an inbox; adds those that were ever granted to *out_granted.
 * pending: without those that a live claim holds. */
int64_t scale_listed(struct scale_run *r, int32_t session, bool pending,
                     int64_t *out_granted);

#endif /* TESTS_SERVERS_SCALE_RUN_H */
