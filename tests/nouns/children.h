/* children.h - other processes on the same store: see processes.c. */
#ifndef TESTS_NOUNS_CHILDREN_H
#define TESTS_NOUNS_CHILDREN_H

#include <stdio.h>
#include <sys/types.h>

#include "nouns.h"

struct child {
    pid_t pid;
    FILE *says;
};

/* In the child: a line, and out with it: an acknowledgement that is told is one that was
 * given. */
void child_tell(const char *what, int64_t a, int64_t b);

/* In the parent. */
bool child_start(struct world *w, struct child *c, const char *role);
/* Its next line; false at the end.  What is no such line is a complaint. */
bool child_hear(struct child *c, char what[16], long long *a, long long *b);
void child_end(struct world *w, struct child *c, bool killed);

int64_t mono_ms(void);

/* Role of hosts.c. */
void child_holds(struct world *w);
/* Roles of proc_children.c. */
void child_appends(struct world *w);
void child_lives(struct world *w);

#endif /* TESTS_NOUNS_CHILDREN_H */
