/* test_work_postgres.h - the store of the work tests on a server: one schema of this
 * program, made once and emptied for each case. */
#ifndef TESTS_WORK_POSTGRES_H
#define TESTS_WORK_POSTGRES_H

#include "store/driver.h"

/* With nothing in it.  The server is that of BELAY_TEST_POSTGRES. */
MUST_USE belay_rc work_postgres_open(struct driver **out,
                                     const struct driver_config *config,
                                     struct belay_error *err);

/* When the driver is closed; false: the next case would find something. */
bool work_postgres_empty(void);

#endif /* TESTS_WORK_POSTGRES_H */
