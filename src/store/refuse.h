/* refuse.h - rule 3 of driver.h, for drivers that check a plan in C.
 *
 * What a plan can be refused for, and in which words, is the same on every store.  A driver
 * looks up what is stored; what that means for the plan is said here, once.
 */
#ifndef STORE_REFUSE_H
#define STORE_REFUSE_H

#include "store/plan.h"

/* A rank effect, against the rank its member has in the index (NULL: it is not there). */
MUST_USE belay_rc refuse_rank(const struct effect *e, const int64_t *found,
                              struct belay_error *err);

/* Whether effect i, a log append, needs the stored tail of its stream; if not, *tail is the
 * plan's own entry before it. */
bool log_needs_tail(const struct plan *plan, size_t i, int64_t *tail);

/* A log append, against the last entry before it (0: there is none). */
MUST_USE belay_rc refuse_log(const struct effect *e, int64_t tail,
                             struct belay_error *err);

bool is_counter_effect(const struct effect *e);

/* Effect i, a counter's, against its stored value (NULL: there is no such row).  The plan's
 * own effects before it count: rows it inserts, counters it has changed (their new values
 * are in result).  Gives the value that effect i finds.  `not_found` (entity: row type). */
MUST_USE belay_rc refuse_counter(const struct plan *plan,
                                 const struct plan_result *result, size_t i,
                                 const int64_t *stored, int64_t *out,
                                 struct belay_error *err);

#endif /* STORE_REFUSE_H */
