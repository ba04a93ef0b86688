/* Waiting for a subject: on O, which changes when it is released, and on the holder's life
 * word, which the kernel changes when it dies; until the deadline at most. */
#include <limits.h>

#include "fleet/impl.h"

/* How long to sleep at most before looking again. */
static int64_t nap_us(const struct belay_fleet *f, const struct entry *e, uint64_t o,
                      int64_t most)
{
    uint64_t d = atomic_load_explicit(&e->d, memory_order_acquire);
    uint64_t now = fleet_now(f);
    int64_t nap = most;

    if (!d_is_of(d, o))
        nap = STALLED_US / 2; /* a claim under way */
    else if (d_time(d) <= now)
        nap = 0;
    else if (d_time(d) != D_NEVER && (int64_t)(d_time(d) - now) < most)
        nap = (int64_t)(d_time(d) - now);
    nap += 500; /* the clock of deadlines ticks */
    return nap < most ? nap : most;
}

/* Once in a while: a holder that the kernel could not mark. */
static void look_for_gone(struct belay_fleet *f, uint64_t o, int64_t slept_us)
{
    if (slept_us < WAIT_SLICE_US || o_node(o) >= f->fleet_size)
        return;
    fleet_lock(f);
    (void)fleet_sweep_node(f, o_node(o));
    fleet_unlock(f);
}

/* Sleeps while O is o. */
static void sleep_on(struct belay_fleet *f, uint32_t entry, uint64_t o, int64_t most)
{
    struct entry *e = &f->entries[entry];
    struct member *holder = &f->members[o_node(o) < f->fleet_size ? o_node(o) : 0];
    const struct belay_clock clock = clock_system();

    if ((o & O_WAITERS) == 0) {
        uint64_t was = o;
        if (!atomic_compare_exchange_strong_explicit(
                &e->o, &was, o | O_WAITERS, memory_order_acq_rel, memory_order_acquire))
            return;
        o |= O_WAITERS;
    }
    fleet_step(f, STEP_WAIT_MARKED);
    uint32_t life = atomic_load_explicit(&holder->life, memory_order_acquire);
    if ((life & LIFE_DIED) != 0) {
        /* Dying: the kernel will confirm in a moment. */
        clock.sleep_us(clock.arg, most < 200 ? most : 200);
        return;
    }
    if (life != 0 && (life & LIFE_WAITERS) == 0 &&
        atomic_compare_exchange_strong_explicit(
            &holder->life, &life, life | LIFE_WAITERS, memory_order_acq_rel,
            memory_order_acquire))
        life |= LIFE_WAITERS;
    futex_wait_two((au32 *)(void *)&e->o, (uint32_t)o, &holder->life, life,
                   nap_us(f, e, o, most));
    /* The kernel wakes one. */
    if ((atomic_load_explicit(&holder->life, memory_order_acquire) & LIFE_DIED) != 0)
        futex_wake(&holder->life, INT_MAX);
}

belay_rc belay_contest_claim(struct belay_fleet *f,
                             const struct belay_contest_subject *subject,
                             const struct belay_contest_terms *terms,
                             int64_t timeout_ms, struct belay_cancel *cancel,
                             struct belay_contest_claim *out, struct belay_error *err)
{
    struct belay_contest_claim claim;
    struct patience patience;
    belay_rc rc = patience_init(&patience, timeout_ms, cancel, err);
    int64_t us;

    while (rc == BELAY_OK) {
        rc = belay_contest_try(f, subject, terms, &claim, err);
        if (rc != BELAY_OK)
            break;
        if (claim.is_claimed || claim.holder.is_self) {
            *out = claim;
            break;
        }
        rc = patience_slice(&patience, &us, err);
        if (rc != BELAY_OK)
            break;
        uint64_t o = atomic_load_explicit(&f->entries[claim.holder.entry].o,
                                          memory_order_acquire);
        if (o_same(o, claim.holder.word)) {
            int64_t began = clock_coarse_us();
            sleep_on(f, claim.holder.entry, o, us);
            look_for_gone(f, o, clock_coarse_us() - began);
        }
    }
    return rc;
}

belay_rc belay_contest_wait(struct belay_fleet *f,
                            const struct belay_contest_subject *subject,
                            int64_t timeout_ms, struct belay_cancel *cancel,
                            struct belay_error *err)
{
    struct belay_contest_holder holder;
    struct patience patience;
    belay_rc rc = fleet_check_member(f, err);
    int64_t us;

    if (rc == BELAY_OK)
        rc = patience_init(&patience, timeout_ms, cancel, err);
    while (rc == BELAY_OK) {
        rc = belay_contest_holder(f, subject, &holder, err);
        if (rc == BELAY_NOT_FOUND)
            return BELAY_OK;
        if (rc == BELAY_OK)
            rc = patience_slice(&patience, &us, err);
        if (rc != BELAY_OK)
            break;
        uint64_t o =
            atomic_load_explicit(&f->entries[holder.entry].o, memory_order_acquire);
        if (o_same(o, holder.word))
            sleep_on(f, holder.entry, o, us);
    }
    return rc;
}
