#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fleet/impl.h"

/* With the node's byte locked: FREE -> JOINING. */
static bool take_free(struct belay_fleet *f, uint32_t node)
{
    uint64_t m = atomic_load_explicit(&f->members[node].m, memory_order_acquire);

    if (m_state(m) != MEMBER_FREE)
        return false;
    f->incarnation = (m_incarnation(m) + 1) & GEN_MASK;
    return atomic_compare_exchange_strong_explicit(
        &f->members[node].m, &m, m_make(f->incarnation, MEMBER_JOINING),
        memory_order_acq_rel, memory_order_acquire);
}

static void bind_node(struct belay_fleet *f, uint32_t node)
{
    f->node = node;
    f->me = &f->members[node];
    ring_bind(&f->log, f, f->space->maps[BELAY_CONTEST_RING_KIND]);
    ring_adopt(&f->log);
}

/* The byte first: from JOINING on it says that somebody is behind the node. */
static bool try_node(struct belay_fleet *f, uint32_t node, bool may_sweep)
{
    uint64_t m = atomic_load_explicit(&f->members[node].m, memory_order_acquire);
    bool is_free = m_state(m) == MEMBER_FREE;

    if (!is_free && (!may_sweep || !member_is_gone(f, node, m)))
        return false;
    if (node_lock(f->fd, node, false) != 1)
        return false;
    fleet_step(f, STEP_JOIN_LOCKED);
    if (!is_free) {
        /* Its lane is ours to write: its member is dead and we have the byte. */
        bind_node(f, node);
        (void)fleet_sweep_node(f, node);
        f->node = UINT32_MAX;
    }
    if (take_free(f, node))
        return true;
    node_unlock(f->fd, node);
    return false;
}

static bool find_node(struct belay_fleet *f, int32_t wanted, uint32_t *out)
{
    for (int may_sweep = 0; may_sweep <= 1; may_sweep++) {
        if (wanted >= 0 && try_node(f, (uint32_t)wanted, may_sweep != 0)) {
            *out = (uint32_t)wanted;
            return true;
        }
        for (uint32_t node = 0; node < f->fleet_size; node++) {
            if (try_node(f, node, may_sweep != 0)) {
                *out = node;
                return true;
            }
        }
    }
    return false;
}

static void say_who(struct belay_fleet *f)
{
    struct member *me = f->me;

    atomic_store_explicit(&me->pid, (uint64_t)getpid(), memory_order_relaxed);
    atomic_store_explicit(&me->process_start, (uint64_t)process_start_of(getpid()),
                          memory_order_relaxed);
    atomic_store_explicit(&me->pid_space, namespace_of_self("pid"),
                          memory_order_relaxed);
    atomic_store_explicit(&me->beat_us, 0, memory_order_relaxed);
    words_store(me->label, f->label, sizeof(f->label));
}

/* Joiners share the gate, who removes the fleet has it alone; a fleet that was removed has
 * no name any more. */
static belay_rc pass_gate(struct belay_fleet *f, struct belay_error *err)
{
    struct stat st;

    for (int turn = 0; node_lock(f->fd, GATE_BYTE, true) != 1; turn++) {
        if (turn == 200)
            return err_set(err, BELAY_CONTENTION, "the fleet is being removed");
        f->clock.sleep_us(f->clock.arg, 5000);
    }
    if (fstat(f->fd, &st) == 0 && st.st_nlink > 0)
        return BELAY_OK;
    node_unlock(f->fd, GATE_BYTE);
    return err_set(err, BELAY_NOT_FOUND, "the fleet was removed");
}

belay_rc member_join(struct belay_fleet *f, int32_t wanted, struct belay_error *err)
{
    uint32_t node = 0;

    if (wanted >= (int32_t)f->fleet_size)
        return err_reason(err, BELAY_INVALID, "node_range", "node %d of %u", wanted,
                          f->fleet_size);
    if (f->space->is_shared) {
        belay_rc rc = pass_gate(f, err);
        if (rc != BELAY_OK)
            return rc;
    }
    bool is_found = find_node(f, wanted, &node);
    if (f->space->is_shared)
        node_unlock(f->fd, GATE_BYTE);
    if (!is_found)
        return err_reason(err, BELAY_UNAVAILABLE, "fleet_full",
                          "all %u nodes of the fleet are taken", f->fleet_size);
    bind_node(f, node);
    fleet_step(f, STEP_JOIN_TAKEN);
    say_who(f);
    fleet_step(f, STEP_JOIN_FILLED);
    belay_rc rc = keeper_start(&f->me->life, &f->keeper, err);
    if (rc != BELAY_OK) {
        atomic_store_explicit(&f->me->m, m_make(f->incarnation, MEMBER_FREE),
                              memory_order_release);
        node_unlock(f->fd, node);
        return rc;
    }
    fleet_step(f, STEP_JOIN_KEPT);
    atomic_store_explicit(&f->me->m, m_make(f->incarnation, MEMBER_LIVE),
                          memory_order_release);
    fleet_step(f, STEP_JOIN_LIVE);
    return BELAY_OK;
}

void member_leave(struct belay_fleet *f)
{
    uint64_t m = m_make(f->incarnation, MEMBER_LEAVING);

    for (uint32_t rec = 0; rec < f->holds; rec++) {
        if (f->rec_words[rec] == 0)
            continue;
        struct belay_contest_guard guard = { .fleet = f,
                                             .word = f->rec_words[rec],
                                             .entry = f->rec_entries[rec] };
        belay_rc rc = belay_contest_release(&guard, NULL, NULL);
        (void)rc; /* what was lost before is not ours to give back */
    }
    atomic_store_explicit(&f->me->m, m, memory_order_release);
    fleet_step(f, STEP_LEAVE_MARKED);
    fleet_sweep_entries(f, f->node, m);
    fleet_step(f, STEP_LEAVE_SWEPT);
    keeper_stop(f->keeper, false);
    f->keeper = NULL;
    atomic_store_explicit(&f->me->m, m_make(f->incarnation, MEMBER_FREE),
                          memory_order_release);
    fleet_step(f, STEP_LEAVE_FREED);
    node_unlock(f->fd, f->node);
}
