/* naive_impl.h - what the two files of the naive driver share. */
#ifndef TESTS_NAIVE_IMPL_H
#define TESTS_NAIVE_IMPL_H

#include <pthread.h>

#include "naive.h"

/* Beside the kinds of items: how far a feed was trimmed. */
#define KIND_TRIM 100

/* Anything that is stored.  One malloc: the bytes follow the struct. */
struct record {
    int kind; /* enum item_kind or KIND_TRIM */
    struct bytes ns, name, member, data;
    int64_t number; /* rank, sequence, position, chunk index, trimmed up to */
    struct row row; /* ITEM_ROW, with name = the encoded key */
    uint64_t holder;
    int64_t held_until_us;
    bool fresh;   /* made by the plan that is being applied */
    bool dropped; /* by that plan */
    struct value v[];
};

struct naive {
    struct driver d;
    struct driver_config config;
    pthread_mutex_t mutex;
    struct record **records;
    size_t n, cap;
    int64_t last_pos;
    uint64_t last_attempt;
};

static inline bool naive_has_bytes(const struct value *v)
{
    return v->kind != VALUE_NULL && v->kind != VALUE_I64;
}

static inline bool naive_is_in(const struct record *r, int kind, struct bytes ns,
                               struct bytes name)
{
    return !r->dropped && r->kind == kind && bytes_eq(r->ns, ns) &&
           bytes_eq(r->name, name);
}

struct record *naive_find_row(struct naive *s, struct bytes ns,
                              const struct row_ref *ref);
struct record *naive_find_number(struct naive *s, int kind, struct bytes ns,
                                 struct bytes name, int64_t number);
struct record *naive_find_any(struct naive *s, int kind, struct bytes ns,
                              struct bytes name);

/* driver_ops.commit, with the mutex held. */
belay_rc naive_commit(struct naive *s, const struct plan *plan,
                      struct plan_result *result, struct belay_error *err);

#endif /* TESTS_NAIVE_IMPL_H */
