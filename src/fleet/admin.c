#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fleet/cache_impl.h"

belay_rc belay_fleet_status(struct belay_fleet *f, struct belay_fleet_status *out,
                            struct belay_error *err)
{
    belay_rc rc = fleet_check(f, err);
    if (rc != BELAY_OK)
        return rc;
    if (out->size != sizeof(*out))
        return err_reason(err, BELAY_MISUSE, "size", "a status of another size");
    rc = segment_check_size(f->fd, f->space->geo.total_len, err);
    if (rc != BELAY_OK)
        return rc;
    struct belay_fleet_status s = {
        .size = sizeof(s),
        .epoch = (uint32_t)atomic_load_explicit(f->epoch, memory_order_acquire),
        .fleet_id = f->space->header.fleet_id,
        .token = atomic_load_explicit(f->token, memory_order_acquire),
        .fleet_size = (int32_t)f->fleet_size,
        .subjects = (int32_t)f->subjects,
        .node = f->is_observer ? -1 : (int32_t)f->node,
        .is_shared = f->space->is_shared,
        .is_virtual_clock = f->is_virtual,
        .incarnation = f->incarnation,
        .segment_len = f->space->geo.total_len,
    };
    for (uint32_t i = 0; i < f->fleet_size; i++) {
        uint64_t m = atomic_load_explicit(&f->members[i].m, memory_order_acquire);
        s.members += m_state(m) == MEMBER_LIVE && !member_is_gone(f, i, m);
    }
    for (uint32_t i = 0; i < f->subjects; i++) {
        uint64_t o = atomic_load_explicit(&f->entries[i].o, memory_order_relaxed);
        s.subjects_used += o_state(o) == O_FREE || o_state(o) == O_HELD;
    }
    *out = s;
    return BELAY_OK;
}

static void show_member(const struct belay_fleet *f, uint32_t node, uint64_t m,
                        struct belay_fleet_member *out)
{
    const struct member *who = &f->members[node];
    uint64_t beat = atomic_load_explicit(&who->beat_us, memory_order_relaxed);
    int64_t now = clock_coarse_us() - f->clock_base_us;

    *out = (struct belay_fleet_member){
        .node = (int32_t)node,
        .life = member_is_gone(f, node, m) ? BELAY_LIFE_DEAD : BELAY_LIFE_ALIVE,
        .incarnation = m_incarnation(m),
        .pid = (int32_t)atomic_load_explicit(&who->pid, memory_order_relaxed),
        .process_start =
            (int64_t)atomic_load_explicit(&who->process_start, memory_order_relaxed),
        .heartbeat_age_ms = -1,
    };
    if (beat != 0)
        out->heartbeat_age_ms = (int64_t)beat >= now ? 0 : (now - (int64_t)beat) / 1000;
    words_load(out->label, who->label, sizeof(out->label));
    out->label[sizeof(out->label) - 1] = '\0';
    for (uint32_t i = 0; i < f->subjects; i++) {
        uint64_t o = atomic_load_explicit(&f->entries[i].o, memory_order_relaxed);
        out->holds += o_state(o) == O_HELD && o_node(o) == node;
    }
}

belay_rc belay_fleet_members(struct belay_fleet *f, struct belay_fleet_member *out,
                             size_t max, size_t *out_n, struct belay_error *err)
{
    size_t n = 0;
    belay_rc rc = fleet_check(f, err);

    if (rc != BELAY_OK)
        return rc;
    for (uint32_t i = 0; i < f->fleet_size && n < max; i++) {
        uint64_t m = atomic_load_explicit(&f->members[i].m, memory_order_acquire);
        unsigned state = m_state(m);
        if (state == MEMBER_LIVE || state == MEMBER_DEAD || state == MEMBER_SWEEPING)
            show_member(f, i, m, &out[n++]);
    }
    *out_n = n;
    return BELAY_OK;
}

static void empty_ring(struct belay_fleet *f, struct ring_map *map)
{
    struct belay_ring r;

    ring_bind(&r, f, map);
    for (uint32_t i = 0; i < map->geo.lanes; i++)
        word_raise(&r.lanes[i].floor, lane_head(&r, i));
    word_raise(&r.shared->order_floor,
               atomic_load_explicit(&r.shared->order_head, memory_order_acquire));
    fleet_step(f, STEP_RESET_RING);
}

static void free_all(struct belay_fleet *f)
{
    for (uint32_t i = 0; i < f->subjects; i++) {
        uint64_t o = atomic_load_explicit(&f->entries[i].o, memory_order_acquire);
        if (o_state(o) != O_HELD)
            continue;
        /* Guards of before fail by their generation (D8). */
        struct belay_contest_holder holder = { .entry = i, .word = o & ~O_WAITERS };
        belay_rc rc = belay_contest_force_release(f, &holder, NULL);
        (void)rc; /* released meanwhile: as good */
        fleet_step(f, STEP_RESET_ENTRY);
    }
}

belay_rc belay_fleet_reset(struct belay_fleet *f, struct belay_error *err)
{
    struct belay_ring *ring;
    belay_rc rc = fleet_check_member(f, err);

    if (rc != BELAY_OK)
        return rc;
    for (unsigned kind = 0; kind < 256; kind++) {
        rc = belay_ring_attach(f, (uint8_t)kind, &ring, err);
        if (rc == BELAY_OK)
            empty_ring(f, ring->map);
        else if (rc != BELAY_NOT_FOUND)
            return rc;
    }
    /* After the log: who holds anything when this is over has claimed it later, and so is
     * its CLAIM behind the floor. */
    free_all(f);
    cache_empty(f);
    /* Last: whoever sees the new epoch finds the new floors. */
    atomic_fetch_add_explicit(f->epoch, 1, memory_order_seq_cst);
    fleet_step(f, STEP_RESET_EPOCH);
    log_tell(f);
    return BELAY_OK;
}

static belay_rc remove_locked(struct belay_fleet *f, struct belay_error *err)
{
    const struct space *s = f->space;
    char path[320];

    for (uint32_t i = 0; i < f->fleet_size; i++) {
        uint64_t m = atomic_load_explicit(&f->members[i].m, memory_order_acquire);
        if (m_state(m) != MEMBER_FREE && !member_is_gone(f, i, m))
            return err_reason(err, BELAY_LEASE_HELD, "member", "node %u is alive", i);
    }
    (void)snprintf(path, sizeof(path), "%s/belay-%u-%s", s->dir, (unsigned)geteuid(),
                   s->name);
    /* The fleet's own goes last. */
    segment_unlink_kinds(s->dir, s->name, s->header.fleet_id);
    return unlink(path) == 0 ? BELAY_OK : io_error(err, "remove the segment");
}

belay_rc belay_fleet_remove(const char *name, const struct belay_fleet_options *options,
                            struct belay_error *err)
{
    struct belay_fleet_options o = { .size = sizeof(o) };
    struct belay_fleet *f;
    int fd = -1;

    if (options)
        o.dir = options->dir;
    belay_rc rc = belay_fleet_observe(name, &o, &f, err);
    uint64_t token = 0;
    if (rc == BELAY_UNSUPPORTED_FORMAT &&
        segment_discard_old(o.dir ? o.dir : "/dev/shm", name, &token))
        return BELAY_OK;
    if (rc != BELAY_OK)
        return rc;
    /* Nobody joins while the gate is ours (member.c). */
    rc = segment_reopen(f->space, &fd, err);
    if (rc == BELAY_OK && node_lock(fd, GATE_BYTE, false) != 1)
        rc = err_reason(err, BELAY_LEASE_HELD, "member", "somebody is joining");
    if (rc == BELAY_OK)
        rc = remove_locked(f, err);
    file_close(&fd);
    belay_fleet_leave(f);
    return rc;
}
