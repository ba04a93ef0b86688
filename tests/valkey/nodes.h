/* nodes.h - a cluster of the test's own: which node has what, and moving it. */
#ifndef TESTS_VALKEY_NODES_H
#define TESTS_VALKEY_NODES_H

#include "vk.h"

#define NODES_MASTERS 3
#define NODES 6 /* with a replica of each */

/* The slot of a namespace; -1: nobody can be asked. */
int node_slot(struct test_server *s, const char *ns);

/* Whether a node says that the slot is its own. */
bool node_has_slot(struct test_server *s, int node, int slot);

/* The number of the node that says it has the slot as its own; NODES: none does. */
int node_of_slot(struct test_server *s, int slot);
int node_of(struct test_server *s, const char *ns);

/* Moves a slot, key by key with a pause after each few, so that there is time in which
 * keys are here and there.  False, with a line on standard output, when that fails. */
bool node_move_slot(struct test_server *s, int slot, int from, int to);

/* Names of namespaces that are on a node; false when so many are not found. */
bool node_spaces(struct test_server *s, int node, char (*out)[16], size_t n);

#endif /* TESTS_VALKEY_NODES_H */
