/* program_impl.h - what the two files of random programs share. */
#ifndef TESTS_PROGRAM_IMPL_H
#define TESTS_PROGRAM_IMPL_H

#include "base/rng.h"
#include "program.h"

#define OPS_MAX 6
#define POSITIONS_MAX (PROGRAM_CALLS_MAX * OPS_MAX)
#define PROGRAM_IDS 5

enum op_kind {
    OP_GET,
    OP_PEEK,
    OP_GET_MANY,
    OP_INSERT,
    OP_PUT,
    OP_DELETE,
    OP_ADD,
    OP_RAISE,
    OP_INSERT_PART,
    OP_RANK_ADD,
    OP_RANK_MOVE,
    OP_RANK_REMOVE,
    OP_SCAN,
    OP_PICK,
    OP_LOG_APPEND,
    OP_LOG_READ,
    OP_LOG_TRIM,
    OP_FEED_APPEND,
    OP_FEED_READ,
    OP_FEED_TRIM,
    OP_CHUNK_PUT,
    OP_CHUNK_GET,
    OP_CHUNK_DROP,
    OP_NOW,
    OP_FAIL,
    OP_KINDS
};

struct op {
    enum op_kind kind;
    unsigned id, other; /* which name */
    unsigned number;    /* small, whatever it means */
    unsigned flags;
    bool stubborn; /* the body goes on when this one fails */
};

/* A feed's positions in the order they were given: a position is its place here. */
struct positions {
    struct feed_pos pos[POSITIONS_MAX];
    size_t n;
};

struct machine {
    struct rng rng;
    struct harness h;
    struct driver *driver;
    struct space *space[PROGRAM_SPACES];
    unsigned in; /* the space of the running transaction */
    struct positions feeds[PROGRAM_SPACES][PROGRAM_IDS];
    struct op ops[OPS_MAX];
    size_t n_ops;
    struct txn_sum sums[OPS_MAX];
    struct txn_pos pos[OPS_MAX];
    struct buf line; /* of this run of the body */
};

/* Which of the entries so far a position is, from 1; 0: before all of them. */
int64_t program_ordinal(const struct positions *p, struct feed_pos pos);

/* The body of the transaction that is drawn.  arg: the machine. */
belay_rc program_body(struct txn *t, void *arg);

#endif /* TESTS_PROGRAM_IMPL_H */
