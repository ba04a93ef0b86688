/* execs_state.h - a state of the namespace as plain arrays (execs.h).
 *
 * Texts are digests, 0 is none; a column that is NULL is XNULL.
 */
#ifndef SIMULATION_EXECS_STATE_H
#define SIMULATION_EXECS_STATE_H

#include "sim.h"
#include "work/execution.h"

#define X_ROWS 96
#define X_ATTEMPTS 512
#define X_HEADS 256
#define X_KEYS 8
#define X_ROUTES 32
#define X_BATCHES 256
#define X_FEED 2048
#define X_EVENTS 96
#define X_CALLS 4096
#define X_SEEN 256
#define X_HANDLES 512
#define X_ENDS 1024
#define X_ITEMS 4
#define X_TAGS 2
#define X_GRACE_MS 1000

#define XNULL INT64_MIN

/* --- a state --- */

struct xrank {
    unsigned n;
    uint64_t index;
    int64_t rank;
};

struct xrow {
    uint64_t id;
    char name[48];
    int64_t ver;
    int64_t v[EXEC_COLUMNS]; /* the vector's own as numbers, texts as digests */
    uint64_t ready;          /* its index when it is to be claimed */
    /* What else there is of it. */
    unsigned specs, ends, progresses;
    uint64_t requires, tags, key, kind;
    int64_t spec_ver, end_ver, end_fence, progress_ver, progress_fence;
    uint64_t end_class;
    struct xrank place, listed, lost, deadline;
    unsigned tag_ranks;       /* bit for each tag it stands under */
    unsigned tag_ranks_wrong; /* entries that cannot be */
};

struct xattempt {
    uint64_t execution, id, type, end, worker;
    int64_t index, fence, started_ms, ended_ms;
    uint64_t whole; /* all columns */
};

struct xhead {
    uint64_t execution, stream;
    int64_t attempt, last, first, caller, logs, last_log;
};

struct xkey {
    uint64_t key, execution, hash;
    int64_t until_ms;
    struct xrank rank;
};

struct xgrant {
    uint64_t id, execution, worker;
    int64_t until_ms;
};

struct xroute {
    uint64_t lane, route, requires;
    unsigned listed;
};

struct xbatch {
    uint64_t session, source;
    int64_t seq, ver;
};

struct xentry { /* of the feed */
    size_t len;
    int64_t at_ms;
};

struct xstate {
    int64_t epoch;
    struct xrow row[X_ROWS];
    size_t n_rows;
    struct xattempt attempt[X_ATTEMPTS];
    size_t n_attempts;
    struct xhead head[X_HEADS];
    size_t n_heads;
    struct xkey key[X_KEYS];
    size_t n_keys;
    struct xgrant grant[X_ROWS];
    size_t n_grants;
    struct xroute route[X_ROUTES];
    size_t n_routes;
    struct xbatch batch[X_BATCHES];
    size_t n_batches;
    struct xentry feed[X_FEED];
    size_t n_feed;
    const char *fault; /* what a walk alone shows to be wrong */
};

/* Told in the entries of the feed that were not there before. */
struct xevent {
    uint64_t type, execution, outcome;
    int64_t fence, at_ms;
};

#endif /* SIMULATION_EXECS_STATE_H */
