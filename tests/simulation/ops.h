/* ops.h - what the files of operations share. */
#ifndef SIMULATION_OPS_H
#define SIMULATION_OPS_H

#include "sim.h"

/* The key of a thing: a letter says what it is for, and a digit which one.
 *
 *   t  plain    s  write skew    c  churn    x y  exclude each other    k  counted
 *   j  jobs     l  heads of logs    w  waited for    u  chunks */
struct value thing_id(char letter, unsigned i);

/* Sets a thing's number; row: as it was read, NULL when it is not there. */
belay_rc set_thing(struct run *r, struct value id, const struct row *row, int64_t n);

#endif /* SIMULATION_OPS_H */
