/* oom.h - memory that runs out at a chosen allocation. */
#ifndef TESTS_OOM_H
#define TESTS_OOM_H

#include <stdbool.h>

/* From now on the n-th allocation of this process fails (1: the next one); for_ever
 * makes every later one fail, too.  0 disarms. */
void oom_arm(unsigned long n, bool for_ever);

/* Disarms and tells whether an allocation failed since oom_arm. */
bool oom_disarm(void);

/* Lets OpenSSL, Jansson and SQLite allocate through the same counter; call it first in main. */
bool oom_hook_libraries(void);

#endif /* TESTS_OOM_H */
