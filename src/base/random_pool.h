/* random_pool.h - random bytes in small portions, drawn from OpenSSL in large ones.
 *
 * Its generator goes a long way for every call (4,500 instructions for 16 bytes).  A pool draws a
 * thousand bytes and gives each of them out once; those that were given are wiped.
 *
 * A child of fork has none of its parent's bytes: the kernel wipes them there.
 */
#ifndef BASE_RANDOM_POOL_H
#define BASE_RANDOM_POOL_H

#include <pthread.h>

#include "base/hash.h"

struct random_page;

struct random_pool {
    pthread_mutex_t mutex;
    struct random_page *page; /* NULL: everything is drawn as it is asked for */
};

/* Never fails: without a page of its own it is slower. */
void random_pool_init(struct random_pool *p);
void random_pool_release(struct random_pool *p); /* nobody draws from it */

/* As a hook, for any number of threads. */
struct belay_random random_pool_hook(struct random_pool *p);

#endif /* BASE_RANDOM_POOL_H */
