/* thread.h - threads of the library's own. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/attr.h"

/* Starts a thread that takes no signals: they are for the program's own threads, and a
 * handler, or the end of the process, must not begin in one of ours.  False: there is no
 * room for one. */
MUST_USE bool thread_start(pthread_t *out, void *(*run)(void *arg), void *arg);

#endif /* BASE_THREAD_H */
