/* check_process.h - what every public function about processes looks at first. */
#ifndef API_CHECK_PROCESS_H
#define API_CHECK_PROCESS_H

#include <belay/process.h>

#include "base/attr.h"

/* A lease as somebody may have put it together: `misuse` when it lacks something that
 * proves holding. */
MUST_USE belay_rc lease_given(const struct belay_process_lease *lease,
                              struct belay_error *err);

#endif /* API_CHECK_PROCESS_H */
