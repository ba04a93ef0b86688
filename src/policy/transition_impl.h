/* transition_impl.h - the shape of the table, for what draws it, checks it, and tries the
 * check on tables that are wrong. */
#ifndef POLICY_TRANSITION_IMPL_H
#define POLICY_TRANSITION_IMPL_H

#include "policy/transition.h"

/* The dimensions of a vector come first in enum belay_dimension, in its order. */
#define VECTOR_DIMENSIONS BELAY_DIM_STATE

/* One row.  Values are bits (1 << value). */
struct step_rule {
    enum step step;
    uint32_t from[VECTOR_DIMENSIONS]; /* what it follows; all 0: nothing, it creates */
    uint32_t to[VECTOR_DIMENSIONS];   /* 0: kept; several blocking reasons: the caller
                                         chooses, the first unless it says */
};

struct step_table {
    const struct step_rule *rules;
    size_t n;
};

/* The one table there is. */
struct step_table step_table(void);

int32_t dimension_get(const struct belay_vector *v, size_t dim);
uint32_t dimension_all(size_t dim); /* every value there is */
int dimension_count(size_t dim);

bool rule_creates(const struct step_rule *r);
bool rule_fits(const struct step_rule *r, const struct belay_vector *v);
/* `from` is NULL for one that creates; `out` may be `from`. */
void rule_apply(const struct step_rule *r, const struct belay_vector *from,
                struct belay_vector *out);

/* step_table_fault of any table; *out_step, unless NULL, is the step it is about. */
const char *step_fault_of(struct step_table t, enum step *out_step);
size_t step_reachable_of(struct step_table t, struct belay_vector *out, size_t max);

#endif /* POLICY_TRANSITION_IMPL_H */
