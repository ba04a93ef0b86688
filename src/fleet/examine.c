/* What stands in the way of a claim, and its removal.  A tenure is taken only when it can never
 * be the holder's again (I2): its D was made REVOKED by CAS, which every renewal would have to
 * get past, or the kernel says that its member is dead. */
#include "fleet/impl.h"

/* Hole (a): since when this handle has seen this claim under way. */
static bool is_stalled(struct belay_fleet *f, uint32_t entry, uint64_t o)
{
    int64_t now = clock_coarse_us();
    struct seen *oldest = &f->seen[0];

    o &= ~O_WAITERS;
    for (size_t i = 0; i < SEEN_COUNT; i++) {
        struct seen *s = &f->seen[i];
        if (s->o == o && s->entry == entry)
            return now - s->since_us >= STALLED_US;
        if (s->since_us < oldest->since_us)
            oldest = s;
    }
    *oldest = (struct seen){ .o = o, .entry = entry, .since_us = now };
    return false;
}

static struct finding revoke(struct belay_fleet *f, struct entry *e, uint64_t o,
                             uint64_t d, bool is_dry, enum belay_contest_reason reason)
{
    uint64_t revoked = d_make(o_gen(o), 0);

    if (!is_dry && !atomic_compare_exchange_strong_explicit(
                       &e->d, &d, revoked, memory_order_acq_rel, memory_order_acquire))
        return (struct finding){ .verdict = VERDICT_AGAIN }; /* renewed in time */
    if (!is_dry)
        fleet_step(f, STEP_CLAIM_REVOKED);
    return (
        struct finding){ .verdict = VERDICT_TAKE, .reason = (int)reason, .d = revoked };
}

static bool is_of_dead(const struct belay_fleet *f, uint64_t o)
{
    uint32_t node = o_node(o);

    return node < f->fleet_size && member_may_be_dead(f, node) &&
           member_is_dead(
               f, node,
               atomic_load_explicit(&f->members[node].m, memory_order_acquire));
}

struct finding examine(struct belay_fleet *f, uint32_t entry, uint64_t o, uint64_t now,
                       bool is_dry)
{
    struct entry *e = &f->entries[entry];
    uint64_t d = atomic_load_explicit(&e->d, memory_order_acquire);

    if (o_state(o) == O_FREE)
        return (struct finding){ .verdict = VERDICT_TAKE, .d = d };
    if (o_state(o) != O_HELD)
        return (struct finding){ .verdict = VERDICT_AGAIN };
    if (d_is_of(d, o) && d_time(d) == 0)
        return (struct finding){ VERDICT_TAKE, BELAY_CONTEST_EXPIRED, d };
    if (d_is_of(d, o) && d_time(d) <= now && d_time(d) != D_NEVER)
        return revoke(f, e, o, d, is_dry, BELAY_CONTEST_EXPIRED);
    if (is_of_dead(f, o))
        return (struct finding){ VERDICT_TAKE, BELAY_CONTEST_DEAD, d };
    /* D is not of o: of an earlier tenure, if o is still current now that D was read; else
     * perhaps of a later one, which is not ours to revoke. */
    if (!d_is_of(d, o) && !o_same(atomic_load_explicit(&e->o, memory_order_acquire), o))
        return (struct finding){ .verdict = VERDICT_AGAIN };
    if (!d_is_of(d, o) && !f->is_observer && is_stalled(f, entry, o))
        return revoke(f, e, o, d, is_dry, BELAY_CONTEST_STALLED);
    return (struct finding){ .verdict = VERDICT_YIELD };
}
