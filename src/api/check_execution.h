/* check_execution.h - what the functions about executions look at before they work. */
#ifndef API_CHECK_EXECUTION_H
#define API_CHECK_EXECUTION_H

#include <belay/execution.h>

#include "api/check.h"

/* `misuse` when there is no handle, or its bytes are NULL. */
MUST_USE belay_rc handle_given(const struct belay_handle *h, struct belay_error *err);

/* `invalid`, reason count, when n is not 1 to max. */
MUST_USE belay_rc count_given(size_t n, size_t max, const char *what,
                              struct belay_error *err);

/* `misuse` when there are bytes and a pointer that is NULL. */
MUST_USE belay_rc bytes_given(const void *bytes, size_t len, const char *what,
                              struct belay_error *err);

/* A claim policy of any version, as this library knows it; with a worker, and no list in
 * it lacks an element. */
MUST_USE belay_rc claim_policy_read(const struct belay_claim_policy *in,
                                    struct belay_claim_policy *out,
                                    struct belay_error *err);

#endif /* API_CHECK_EXECUTION_H */
