/* read.h - what the files that ask questions share. */
#ifndef STORE_DRIVERS_POSTGRES_READ_H
#define STORE_DRIVERS_POSTGRES_READ_H

#include "store/drivers/postgres/impl.h"

/* A pick of an index: when it was asked for, and behind which one it began. */
struct pace {
    uint64_t index;
    int64_t asked_us;
    bool behind;
    struct pg_front from;
};

/* One statement, and the questions it answers. */
struct asked {
    struct pg_call *call;
    size_t *reads; /* the questions, by the ordinal of the answer */
    size_t n;
    struct pace *pace; /* NULL: fronts.h has nothing to do with it */
};

struct asking {
    struct pg_store *s;
    struct pg_attempt *at;
    struct pg_pipe pipe;
    struct bytes ns;
    struct read *reads;
    size_t n_reads;
    struct asked *asked;
    size_t n_asked;
    bool *done;                        /* questions that are in a statement */
    struct belay_arena *const *arenas; /* of the answers */
};

/* read_rank.c: question `first`, and those behind it that one statement can answer. */
void pg_ask_ranks(struct asking *q, size_t first);
/* read_hits.c */
MUST_USE bool pg_take_hits(struct asking *q, const struct asked *asked);

/* read_behind.c: whether a pick begins behind the one before it; the members it is given then, and
 * its arguments behind the index; how far it has come. */
void pg_find_front(struct asking *q, struct asked *one, const struct scan *scan);
void pg_behind_source(const struct pg_store *s, struct buf *out);
void pg_arg_behind(struct asking *q, struct asked *one, const struct scan *scan);
void pg_pass_front(struct asking *q, const struct asked *one);

/* A member that cannot be a key is damage, and not a row that is not there. */
MUST_USE belay_rc pg_check_members(const struct read *read, struct belay_arena *a,
                                   struct belay_error *err);

#endif /* STORE_DRIVERS_POSTGRES_READ_H */
