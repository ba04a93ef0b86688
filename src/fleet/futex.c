#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/park.h"
#include "fleet/impl.h"

long futex_wake(au32 *word, int n)
{
    return syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0);
}

void futex_wait(au32 *word, uint32_t value, int64_t timeout_us)
{
    struct timespec most = { .tv_sec = timeout_us / 1000000,
                             .tv_nsec = timeout_us % 1000000 * 1000 };

    if (timeout_us > 0)
        (void)syscall(SYS_futex, word, FUTEX_WAIT, value, &most, NULL, 0);
}

void futex_wait_two(au32 *a, uint32_t a_value, au32 *b, uint32_t b_value,
                    int64_t timeout_us)
{
    struct futex_waitv both[2] = {
        { .val = a_value, .uaddr = (uintptr_t)a, .flags = FUTEX_32 },
        { .val = b_value, .uaddr = (uintptr_t)b, .flags = FUTEX_32 },
    };
    const struct belay_clock clock = clock_system();

    if (timeout_us <= 0)
        return;
    int64_t until = clock.mono_us(clock.arg) + timeout_us;
    struct timespec end = { .tv_sec = until / 1000000,
                            .tv_nsec = until % 1000000 * 1000 };
    if (syscall(SYS_futex_waitv, both, 2, 0, &end, CLOCK_MONOTONIC) < 0 &&
        errno == ENOSYS)
        futex_wait(a, a_value, timeout_us < 5000 ? timeout_us : 5000);
}

belay_rc patience_init(struct patience *p, int64_t timeout_ms,
                       struct belay_cancel *cancel, struct belay_error *err)
{
    const struct belay_clock clock = clock_system();

    if (timeout_ms < BELAY_NONE)
        return err_reason(err, BELAY_INVALID, "timeout", "a timeout below zero");
    p->cancel = cancel;
    p->until_us = INT64_MAX;
    if (timeout_ms != BELAY_NONE && timeout_ms < INT64_MAX / 4000)
        p->until_us = clock.mono_us(clock.arg) + timeout_ms * 1000;
    return BELAY_OK;
}

belay_rc patience_slice(const struct patience *p, int64_t *out_us,
                        struct belay_error *err)
{
    const struct belay_clock clock = clock_system();
    int64_t left = p->until_us - clock.mono_us(clock.arg);

    if (cancel_is_set(p->cancel))
        return err_set(err, BELAY_CANCELLED, "the caller gave up waiting");
    if (left <= 0)
        return err_set(err, BELAY_TIMEOUT, "nothing happened in time");
    *out_us = left < WAIT_SLICE_US ? left : WAIT_SLICE_US;
    return BELAY_OK;
}
