/* names.h - which fleets there are. */
#ifndef FLEET_NAMES_H
#define FLEET_NAMES_H

#include <belay/error.h>

#include "base/attr.h"

typedef belay_rc fleet_name_fn(void *arg, const char *name, struct belay_error *err);

/* Calls `each` for every fleet of this user in dir (NULL: /dev/shm), in no order; ends early
 * with what `each` fails with.  `unavailable`, reason io: the directory cannot be read. */
MUST_USE belay_rc fleet_names(const char *dir, fleet_name_fn *each, void *arg,
                              struct belay_error *err);

#endif /* FLEET_NAMES_H */
