/* session_truth.h - what a store of sessions holds, read through the library. */
#ifndef TESTS_CRASH_SESSION_TRUTH_H
#define TESTS_CRASH_SESSION_TRUTH_H

#include <belay/session.h>

#include "session_ledger.h"

struct truth_batch {
    int64_t seq, fence, expires_at_ms;
    uint64_t id;
    struct maker item;
    bool known; /* the item could be read */
    char claim_id[64];
};

struct truth_commit {
    int64_t revision;
    struct maker turn;
    bool known;                     /* the turn is of a worker's making */
    uint64_t done[NOTE_BATCHES];    /* batches it completed (batch_number) */
    int64_t done_seq[NOTE_BATCHES]; /* ... as the ledgers know them; 0: they do not */
    size_t n_done;
};

struct truth_session {
    int64_t revision, node_count, input_tokens;
    struct truth_batch *batch; /* ascending */
    size_t n_batches;
    struct truth_commit *commit; /* as the log has them */
    size_t n_commits;
    struct maker *node; /* in the order they were committed */
    size_t n_nodes;
    char checkpoint_ref[72];
};

struct truth_pin {
    struct maker thing;
    bool known;
    char sha256[72];
};

struct truth {
    struct truth_session session[NOTE_SESSIONS];
    struct truth_pin *pin;
    size_t n_pins;
    char wrong[300]; /* why it could not be read; empty: it could */
};

void truth_read(struct belay *b, struct truth *out);
void truth_release(struct truth *t);

#endif /* TESTS_CRASH_SESSION_TRUTH_H */
