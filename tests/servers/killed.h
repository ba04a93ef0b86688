/* killed.h - a client that is killed between its commit and the reply: the commit may
 * arrive long after everybody has forgotten it, and happens once or never. */
#ifndef TESTS_SERVERS_KILLED_H
#define TESTS_SERVERS_KILLED_H

#include "faults.h"

int killed_main(const struct fault_target *target, int argc, char **argv);

#endif /* TESTS_SERVERS_KILLED_H */
