/* filter.h - which executions a subscriber or a timer is about: the seed's filter.
 *
 * Nothing set matches everything.  What is set must be equal; what is missing does not
 * match.  The namespace is looked at first.
 *
 * Pure: no I/O, no memory.
 */
#ifndef POLICY_FILTER_H
#define POLICY_FILTER_H

#include <belay/execution.h>

#include "base/bytes.h"

struct filter {
    struct bytes ns;                 /* ptr NULL: any */
    struct bytes tag_key, tag_value; /* key.ptr NULL: any */
};

bool filter_is_noop(const struct filter *f);
bool filter_needs_tags(const struct filter *f);
/* tag: the value of tag_key, ptr NULL when it has none. */
bool filter_matches(const struct filter *f, struct bytes ns, struct bytes tag);

#endif /* POLICY_FILTER_H */
