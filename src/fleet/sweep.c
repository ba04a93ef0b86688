/* What the dead leave behind.  Sweeping is idempotent and may be done by many at once: each
 * change is a CAS from a word that names the dead member, read while its M still said
 * SWEEPING, so that it cannot be a word of the node's next member (2.3: reuse after sweep). */
#include "fleet/impl.h"

static bool still(const struct belay_fleet *f, uint32_t node, uint64_t m)
{
    return atomic_load_explicit(&f->members[node].m, memory_order_acquire) == m;
}

void fleet_sweep_entries(struct belay_fleet *f, uint32_t node, uint64_t m)
{
    for (uint32_t i = 0; i < f->subjects; i++) {
        uint64_t o = atomic_load_explicit(&f->entries[i].o, memory_order_acquire);
        enum o_state state = o_state(o);

        if (o_node(o) != node || state == O_GONE || state == O_FREE)
            continue;
        if (!still(f, node, m))
            return;
        if (state == O_HELD) {
            struct tenure who;
            if (tenure_read(f, i, o, &who))
                log_revoked(f, &who, fleet_log_ms(f, fleet_now(f)), BELAY_CONTEST_DEAD);
            (void)tenure_end(f, i, o);
            fleet_step(f, STEP_SWEEP_ENTRY);
        } else {
            chain_settle(f, i, o);
        }
    }
}

static bool move(struct belay_fleet *f, uint32_t node, uint64_t from,
                 enum member_state to)
{
    return atomic_compare_exchange_strong_explicit(
        &f->members[node].m, &from, m_make(m_incarnation(from), to),
        memory_order_acq_rel, memory_order_acquire);
}

bool fleet_sweep_node(struct belay_fleet *f, uint32_t node)
{
    uint64_t m = atomic_load_explicit(&f->members[node].m, memory_order_acquire);
    uint64_t inc = m_incarnation(m);

    if (m_state(m) == MEMBER_FREE || !member_is_gone(f, node, m))
        return false;
    if (m_state(m) != MEMBER_DEAD && m_state(m) != MEMBER_SWEEPING &&
        !move(f, node, m, MEMBER_DEAD))
        return false;
    fleet_step(f, STEP_SWEEP_DEAD);
    (void)move(f, node, m_make(inc, MEMBER_DEAD), MEMBER_SWEEPING);
    fleet_step(f, STEP_SWEEP_BEGUN);
    m = m_make(inc, MEMBER_SWEEPING);
    if (!still(f, node, m))
        return false;
    fleet_sweep_entries(f, node, m);
    bool is_ours = move(f, node, m, MEMBER_FREE);
    fleet_step(f, STEP_SWEEP_FREED);
    return is_ours;
}

size_t fleet_sweep_all(struct belay_fleet *f)
{
    size_t n = 0;

    for (uint32_t node = 0; node < f->fleet_size; node++) {
        if (node != f->node)
            n += fleet_sweep_node(f, node);
    }
    return n;
}

belay_rc belay_fleet_sweep(struct belay_fleet *f, size_t *out_swept,
                           struct belay_error *err)
{
    belay_rc rc = fleet_check_member(f, err);
    if (rc != BELAY_OK)
        return rc;

    fleet_lock(f);
    size_t n = fleet_sweep_all(f);
    fleet_unlock(f);
    if (out_swept)
        *out_swept = n;
    return BELAY_OK;
}
