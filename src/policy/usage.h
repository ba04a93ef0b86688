/* usage.h - what work reports to have used.
 *
 * Pure: memory only from the arena it is handed.
 */
#ifndef POLICY_USAGE_H
#define POLICY_USAGE_H

#include <belay/budget.h>

#include "base/arena.h"
#include "base/err.h"

/* As belay_usage_sort; `out` may be `usage`. */
MUST_USE belay_rc usage_sort(const struct belay_usage_dimensions *usage,
                             struct belay_arena *a, struct belay_usage_dimensions *out,
                             struct belay_error *err);

/* Whether two say the same; both sorted. */
bool usage_eq(const struct belay_usage_dimensions *a,
              const struct belay_usage_dimensions *b);

#endif /* POLICY_USAGE_H */
