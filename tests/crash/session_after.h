/* session_after.h - what is done with a store when its workers are dead. */
#ifndef TESTS_CRASH_SESSION_AFTER_H
#define TESTS_CRASH_SESSION_AFTER_H

#include "session_laws.h"

/* Everything, in this order: check, comparison with the ledgers, reading of all that
 * must be readable, draining of the inboxes, a collection without grace, and check on
 * a store that was opened again. */
void look_after(struct laws *laws, const char *dir, const char *url);

#endif /* TESTS_CRASH_SESSION_AFTER_H */
