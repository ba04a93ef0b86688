/* session_mortals.h - sessions that are deleted while others use them.
 *
 * All workers that come by within a while use the same one: they enqueue, commit, and
 * somebody deletes it.
 */
#ifndef TESTS_CRASH_SESSION_MORTALS_H
#define TESTS_CRASH_SESSION_MORTALS_H

#include "session_deeds.h"
#include "session_laws.h"

void deed_mortal(struct hand *h);

/* When all are dead: what was deleted is gone for good and refuses everything, what was
 * not has all that entered; then all of them are deleted. */
void mortals_after(struct matter *m, struct hand *h);

#endif /* TESTS_CRASH_SESSION_MORTALS_H */
