/* sigbus.h - a segment that is cut while it is mapped. */
#ifndef FLEET_SIGBUS_H
#define FLEET_SIGBUS_H

#include "base/attr.h"
#include "base/err.h"

/* From now on, in this process, for good: touching a page of a fleet's segment that is no
 * longer there puts a page of zeros in its place instead of ending the process; handles find
 * out by themselves.  Every other SIGBUS goes where it went before. */
MUST_USE belay_rc sigbus_guard(struct belay_error *err);

#endif /* FLEET_SIGBUS_H */
