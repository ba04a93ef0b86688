/* The lock of a handle.
 *
 * A handle is mostly one thread's, though it could be shared: an exchange for each call would
 * be the dearest part of a claim that everybody else can do without.  So the lock leans to the
 * first thread that takes it.  That one stores is_inside and then looks at leans_to, without a
 * barrier in between; another thread stores LEANS_TO_NOBODY, lets the kernel put a barrier into
 * every thread of the process, and then looks at is_inside.  Whichever way the stores fell, one
 * of the two has seen the other's.  From then on the word is everybody's lock.
 */
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fleet/impl.h"

#define INSIDE_NAP_US 100

static long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

bool lock_can_lean(void)
{
    return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

/* Unlocking the word is a plain store and a look for waiters, half the price of an exchange.  A
 * waiter may be overlooked that came in between; it sleeps a millisecond at most. */
static void take_word(struct belay_fleet *f)
{
    uint32_t free = 0;

    if (atomic_compare_exchange_strong_explicit(
            &f->lock, &free, 1, memory_order_acquire, memory_order_relaxed))
        return;
    atomic_fetch_add_explicit(&f->lock_waiters, 1, memory_order_seq_cst);
    free = 0;
    while (!atomic_compare_exchange_strong_explicit(
        &f->lock, &free, 1, memory_order_acquire, memory_order_relaxed)) {
        futex_wait(&f->lock, 1, 1000);
        free = 0;
    }
    atomic_fetch_sub_explicit(&f->lock_waiters, 1, memory_order_relaxed);
}

/* With the word: nobody enters without it any more, and nobody is left inside who did. */
static void stand_upright(struct belay_fleet *f)
{
    const struct belay_clock clock = clock_system();

    if (atomic_load_explicit(&f->leans_to, memory_order_relaxed) == LEANS_TO_NOBODY)
        return;
    atomic_store_explicit(&f->leans_to, LEANS_TO_NOBODY, memory_order_seq_cst);
    /* It has worked before, or the lock would not lean.  Without it nothing can be said about
     * who is inside, ever: but it fails for nobody who is registered. */
    while (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)
        (void)sched_yield();
    while (atomic_load_explicit(&f->is_inside, memory_order_acquire) != 0)
        clock.sleep_us(clock.arg, INSIDE_NAP_US);
}

void fleet_lock_slow(struct belay_fleet *f)
{
    uintptr_t nobody_yet = 0, self = (uintptr_t)pthread_self();

    if (atomic_compare_exchange_strong_explicit(&f->leans_to, &nobody_yet, self,
                                                memory_order_acq_rel,
                                                memory_order_relaxed)) {
        fleet_lock(f); /* as whom it leans to, if it still does */
        return;
    }
    take_word(f);
    stand_upright(f);
}

void fleet_unlock_slow(struct belay_fleet *f)
{
    (void)futex_wake(&f->lock, 1);
}
