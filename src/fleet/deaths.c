/* Waiting for the death of any member: on the life word of each, which the kernel changes when
 * its keeper ends, and on words of notify beside them.  The kernel wakes one waiter of a word;
 * whoever is woken passes it on. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fleet/impl.h"

#define WATCHED_MAX 4
#define LINES_MAX 128 /* of one futex_waitv */
#define DYING_US 200
#define BLIND_US 20000 /* between looks, where the kernel has no futex_waitv */

struct watch {
    struct futex_waitv line[LINES_MAX];
    unsigned n;
    bool is_dead;  /* somebody is */
    bool is_dying; /* somebody is about to be, or more are there than there are lines */
};

static void add(struct watch *w, au32 *word, uint32_t value)
{
    if (w->n == LINES_MAX) {
        w->is_dying = true;
        return;
    }
    w->line[w->n++] = (struct futex_waitv){ .val = value,
                                            .uaddr = (uintptr_t)word,
                                            .flags = FUTEX_32 };
}

static void add_life(struct watch *w, au32 *life)
{
    uint32_t is = atomic_load_explicit(life, memory_order_acquire);

    for (int turn = 0; turn < 4; turn++) {
        if (is == 0 || (is & LIFE_DIED) != 0)
            break; /* leaving, or dying */
        if ((is & LIFE_WAITERS) != 0 ||
            atomic_compare_exchange_weak_explicit(life, &is, is | LIFE_WAITERS,
                                                  memory_order_acq_rel,
                                                  memory_order_acquire)) {
            add(w, life, is | LIFE_WAITERS);
            return;
        }
    }
    w->is_dying = w->is_dying || is != 0;
}

static void add_member(struct watch *w, struct belay_fleet *f, uint32_t node)
{
    uint64_t m = atomic_load_explicit(&f->members[node].m, memory_order_acquire);
    unsigned state = m_state(m);

    if (state != MEMBER_LIVE && state != MEMBER_DEAD && state != MEMBER_SWEEPING)
        return;
    if (member_is_dead(f, node, m))
        w->is_dead = true;
    else if (state == MEMBER_LIVE)
        add_life(w, &f->members[node].life);
}

static void sleep_on(const struct watch *w, int64_t us)
{
    struct futex_waitv line[LINES_MAX];
    const struct belay_clock clock = clock_system();

    if (w->is_dying) {
        clock.sleep_us(clock.arg, us < DYING_US ? us : DYING_US);
        return;
    }
    memcpy(line, w->line, w->n * sizeof(*line));
    int64_t until = clock.mono_us(clock.arg) + us;
    struct timespec end = { .tv_sec = until / 1000000,
                            .tv_nsec = until % 1000000 * 1000 };
    if (syscall(SYS_futex_waitv, line, w->n, 0, &end, CLOCK_MONOTONIC) < 0 &&
        errno == ENOSYS)
        futex_wait((au32 *)(uintptr_t)line[0].uaddr, (uint32_t)line[0].val,
                   us < BLIND_US ? us : BLIND_US);
}

/* Whether what is slept on is still as it was: somebody who died may have been swept since. */
static bool is_same(const struct watch *w)
{
    for (unsigned i = 0; i < w->n; i++) {
        au32 *word = (au32 *)(uintptr_t)w->line[i].uaddr;
        if (atomic_load_explicit(word, memory_order_acquire) !=
            (uint32_t)w->line[i].val)
            return false;
    }
    return true;
}

/* Others wait for the same deaths. */
static void pass_on(struct belay_fleet *f)
{
    for (uint32_t node = 0; node < f->fleet_size; node++) {
        const struct member *who = &f->members[node];
        uint64_t m = atomic_load_explicit(&who->m, memory_order_acquire);
        uint32_t life = atomic_load_explicit(&who->life, memory_order_acquire);
        if (m_state(m) != MEMBER_FREE && (life & LIFE_DIED) != 0)
            futex_wake(&f->members[node].life, INT_MAX);
    }
}

/* Once: looks, and sleeps unless there is something to see. */
static bool watch_once(struct belay_fleet *f, const struct belay_notify *words,
                       const uint32_t *seen, size_t n, int64_t us)
{
    struct watch w = { .n = 0 };

    bool is_posted = false;

    for (size_t i = 0; i < n; i++) {
        au32 *word = &f->words[words[i].slot].value;
        uint32_t is = word_mark(word);
        is_posted = is_posted || is / WORD_POST != seen[i];
        add(&w, word, is);
    }
    for (uint32_t node = 0; node < f->fleet_size; node++) {
        if (node != f->node)
            add_member(&w, f, node);
    }
    atomic_thread_fence(memory_order_seq_cst); /* we wait; now look at the words */
    bool is_over = w.is_dead || is_posted || !is_same(&w);
    if (!is_over)
        sleep_on(&w, us);
    is_over = is_over || !is_same(&w);
    pass_on(f);
    return is_over;
}

belay_rc belay_fleet_wait_deaths(struct belay_fleet *f,
                                 const struct belay_notify *words, const uint32_t *seen,
                                 size_t n, int64_t timeout_ms, struct belay_error *err)
{
    const struct belay_clock clock = clock_system();
    belay_rc rc = fleet_check_member(f, err);

    if (rc == BELAY_OK &&
        (n == 0 || n > WATCHED_MAX || timeout_ms < 0 || timeout_ms > INT64_C(86400000)))
        rc = err_reason(err, BELAY_INVALID, "words",
                        "1 to %d words and a timeout of at most a day", WATCHED_MAX);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        if (words[i].slot >= f->n_words)
            rc = err_reason(err, BELAY_BAD_HANDLE, "word", "that is no word");
    }
    if (rc != BELAY_OK)
        return rc;
    int64_t until = clock.mono_us(clock.arg) + timeout_ms * 1000;
    for (;;) {
        int64_t left = until - clock.mono_us(clock.arg);
        if (watch_once(f, words, seen, n, left > 0 ? left : 0))
            return BELAY_OK;
        if (left <= 0)
            return err_set(err, BELAY_TIMEOUT, "nobody died in time");
    }
}
