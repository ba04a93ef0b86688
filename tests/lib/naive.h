/* naive.h - a second driver, as simple as one can be, to compare the others with.
 *
 * Written from the comments of driver.h alone: an array, linear search, qsort where
 * order matters, one mutex.  It shares no code with the memory driver, so that what
 * both agree on is more likely the contract than a common mistake.
 */
#ifndef TESTS_NAIVE_H
#define TESTS_NAIVE_H

#include "store/driver.h"

MUST_USE belay_rc naive_open(struct driver **out, const struct driver_config *config,
                             struct belay_error *err);

#endif /* TESTS_NAIVE_H */
