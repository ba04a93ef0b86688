/* ear.h - a connection on which wake-ups come, and who reads it.
 *
 * A driver's thread hears what other processes tell, and wakes those who wait.  That is one
 * thread more than is needed between the server and one who waits: so one of them, whoever comes
 * first, reads the connection itself while it sleeps, finds its own wake-up there without
 * anybody in between, and posts the others'.  When it leaves, the thread hears again.
 *
 *   E1  The connection has one reader at a time, and passes on under the mutex.  Nothing gets lost
 *       between two readers: what nobody has read yet stands in the socket, and whoever
 *       is next polls it.
 *   E2  The thread gets it back when it needs it (ear_own), for connecting, talking, closing.
 *   E3  Nothing runs while nothing comes: the thread sleeps on its bell alone meanwhile, and is not
 *       woken when the reader changes.
 */
#ifndef STORE_EAR_H
#define STORE_EAR_H

#include <pthread.h>

#include "base/err.h"
#include "base/park.h"

struct ear {
    /* Reads what has come, without waiting, and posts it; false: the connection is gone.
     * Called by whoever reads. */
    bool (*hear)(void *arg);
    void *arg;

    int bell;  /* wakes the thread; eventfd */
    int knock; /* wakes the waiter that reads; eventfd */
    int epoll; /* what the thread sleeps on: the bell, and the connection unless a waiter reads */

    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t given;
    int fd;                 /* of the connection; -1: there is none */
    bool thread, waiter;    /* who has it now; neither: the next one to come */
    bool broken;            /* a waiter has found it gone */
    struct parker *hopeful; /* of a waiter that would read if the thread did not */
};

MUST_USE belay_rc ear_open(struct ear *e, bool (*hear)(void *arg), void *arg,
                           struct belay_error *err);
void ear_close(struct ear *e); /* nobody is in any of the following */

void ear_ring(struct ear *e); /* wakes the thread */

/* --- the thread, which has the connection but for when it sleeps --- */

/* There is another connection now, or (-1) none; the one before is still open. */
void ear_set(struct ear *e, int fd);
/* Sleeps at most so long (negative: for ever), until the bell rings or something comes, which is
 * heard.  False: the connection is gone.  While it sleeps others may read. */
MUST_USE bool ear_sleep(struct ear *e, int ms);

/* --- one who waits --- */

/* As `sleep` of struct wake_line. */
void ear_wait(struct ear *e, struct parker *p, int64_t us);

#endif /* STORE_EAR_H */
