/* sharing.h - several programs on one store: who makes it, who wakes whom. */
#ifndef TESTS_SERVERS_SHARING_H
#define TESTS_SERVERS_SHARING_H

#include "faults.h"

/* The cases of any server, and n <= FAULT_OWN_MAX of its own. */
int sharing_main(const struct fault_target *target, const struct tap_case *own,
                 size_t n, int argc, char **argv);

#endif /* TESTS_SERVERS_SHARING_H */
