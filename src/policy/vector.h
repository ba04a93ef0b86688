/* vector.h - the state of an execution: six dimensions, their names, and the public state
 * that is derived from them.
 *
 * Pure: no I/O, no clock, no randomness, no memory.
 *
 *   V1  the public state is vector_state() of the vector, at every write
 */
#ifndef POLICY_VECTOR_H
#define POLICY_VECTOR_H

#include <belay/execution.h>

#include "base/bytes.h"
#include "base/err.h"

/* Names of the enums of execution.h by dimension; NULL where there is none such. */
const char *vector_name(enum belay_dimension dim, int value);
/* How many values a dimension has: 0 to n-1; states and failure classes: 1 to n, since
 * their 0 stands for none.  0 for what is no dimension. */
int vector_count(enum belay_dimension dim);
MUST_USE bool vector_parse(enum belay_dimension dim, struct bytes name, int *out);

/* The public state: total, also over vectors that no transition leads to. */
enum belay_state vector_state(const struct belay_vector *v);

bool vector_eq(const struct belay_vector *a, const struct belay_vector *b);
bool vector_is_terminal(const struct belay_vector *v);

/* Where an execution stands, and so in which one of the indexes (schema.h) it is found:
 * exactly one for each vector. */
enum place {
    PLACE_READY,   /* to be claimed: waiting, or lost by its holder */
    PLACE_DELAYED, /* until a time */
    PLACE_LEASED,  /* somebody works on it */
    PLACE_HELD,    /* waits for something else than time or a worker */
    PLACE_DONE,
};
enum place vector_place(const struct belay_vector *v);

#endif /* POLICY_VECTOR_H */
