/* limits.h - how long a call takes at most: a network that swallows everything, a server
 * that is away. */
#ifndef TESTS_SERVERS_LIMITS_H
#define TESTS_SERVERS_LIMITS_H

#include "faults.h"

/* The cases of any server, and n <= FAULT_OWN_MAX of its own. */
int limits_main(const struct fault_target *target, const struct tap_case *own, size_t n,
                int argc, char **argv);

#endif /* TESTS_SERVERS_LIMITS_H */
