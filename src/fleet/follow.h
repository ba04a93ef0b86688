/* follow.h - sleeping until something happens in a fleet, for who shows what happens.
 *
 *     look; nothing there: mark; look again; still nothing: nap.
 *
 * The second look is what makes it whole: the log of the contest posts for those alone who have
 * marked.  A member that dies between its frame and its post wakes nobody; so a nap is never
 * longer than FOLLOW_NAP_US.
 */
#ifndef FLEET_FOLLOW_H
#define FLEET_FOLLOW_H

#include <belay/fleet.h>

#include "base/attr.h"
#include "base/park.h"

#define FOLLOW_NAP_US INT64_C(1000000)

struct fleet_follow {
    struct parker parker;
    struct cancel_link link;
    struct belay_cancel *cancel;
    struct park_word words[2]; /* with the values that were marked */
    size_t n;
    bool can_nap;
};

/* Of contests, messages or both.  `f` must be a member, and stay until the end; a trigger of
 * `cancel` (may be NULL) ends a nap.  `no_memory` when the fleet has no word left. */
enum { FOLLOW_CONTESTS = 1, FOLLOW_MESSAGES = 2 };
MUST_USE belay_rc fleet_follow_begin(struct fleet_follow *w, struct belay_fleet *f,
                                     uint32_t what, struct belay_cancel *cancel,
                                     struct belay_error *err);
void fleet_follow_mark(struct fleet_follow *w);
void fleet_follow_nap(struct fleet_follow *w);
void fleet_follow_end(struct fleet_follow *w); /* takes one that has not begun */

#endif /* FLEET_FOLLOW_H */
