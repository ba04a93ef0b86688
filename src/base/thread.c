#include "base/thread.h"

#include <signal.h>

bool thread_start(pthread_t *out, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before))
        return false;
    bool started = pthread_create(out, NULL, run, arg) == 0; /* it inherits the mask */
    return pthread_sigmask(SIG_SETMASK, &before, NULL) == 0 && started;
}
