/* A thread that holds a word of shared memory as a robust futex: when the thread ends, however
 * it ends, the kernel writes FUTEX_OWNER_DIED into the word and wakes one who waits there.
 *
 * The list the kernel walks is in private memory and only its offset leads to the shared word,
 * so nothing in the segment is ever followed as a pointer (C4), which pthread's robust mutexes
 * cannot say of theirs.  The thread uses no mutex of that kind itself. */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/park.h"
#include "base/thread.h"
#include "fleet/impl.h"

struct keeper {
    pthread_t thread;
    au32 *life;
    struct robust_list_head head;
    struct robust_list entry;
    struct parker started, stop;
    _Atomic int failed;
    atomic_bool is_dead;
};

static void *keep(void *arg)
{
    struct keeper *k = arg;
    const struct belay_clock clock = clock_system();

    k->entry.next = &k->head.list;
    k->head.list.next = &k->entry;
    k->head.futex_offset = (long)((uintptr_t)k->life - (uintptr_t)&k->entry);
    k->head.list_op_pending = NULL;
    if (syscall(SYS_set_robust_list, &k->head, sizeof(k->head)) != 0) {
        atomic_store(&k->failed, errno);
        parker_wake(&k->started);
        return NULL;
    }
    atomic_store_explicit(k->life, (uint32_t)syscall(SYS_gettid), memory_order_release);
    parker_wake(&k->started);
    while (!parker_wait(&k->stop, &clock, DEADLINE_NONE))
        continue;
    if (!atomic_load(&k->is_dead)) {
        k->head.list.next = &k->head.list;
        atomic_store_explicit(k->life, 0, memory_order_release);
    }
    return NULL;
}

belay_rc keeper_start(au32 *life, struct keeper **out, struct belay_error *err)
{
    const struct belay_clock clock = clock_system();
    struct keeper *k = calloc(1, sizeof(*k));

    if (!k)
        return err_no_memory(err, "a keeper");
    k->life = life;
    if (!thread_start(&k->thread, keep, k)) {
        free(k);
        return err_no_memory(err, "a keeper's thread");
    }
    while (!parker_wait(&k->started, &clock, DEADLINE_NONE))
        continue;
    if (atomic_load(&k->failed) != 0) {
        (void)pthread_join(k->thread, NULL);
        errno = atomic_load(&k->failed);
        free(k);
        return io_error(err, "robust list");
    }
    *out = k;
    return BELAY_OK;
}

void keeper_stop(struct keeper *k, bool is_dead)
{
    if (!k)
        return;
    atomic_store(&k->is_dead, is_dead);
    parker_wake(&k->stop);
    (void)pthread_join(k->thread, NULL); /* the kernel is through with the list */
    free(k);
}
