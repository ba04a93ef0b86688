/* ops_fleet.h - rows of the table about fleets. */
#ifndef API_OPS_FLEET_H
#define API_OPS_FLEET_H

#include "api/ops.h"

extern const struct operation ops_fleet[8];
extern const struct operation ops_fleet_cache[5];

#endif /* API_OPS_FLEET_H */
