#include "fleet/impl.h"

static belay_rc lost(struct belay_error *err, const char *reason)
{
    return err_reason(err, BELAY_LEASE_LOST, reason, "the tenure has ended (%s)",
                      reason);
}

/* A guard or holder is a value that anybody may have scribbled on. */
static belay_rc check_tenure(const struct belay_fleet *f, uint32_t entry, uint64_t word,
                             struct belay_error *err)
{
    belay_rc rc = fleet_check_member(f, err);

    if (rc == BELAY_OK && UNLIKELY(entry >= f->subjects || o_state(word) != O_HELD ||
                                   o_node(word) >= f->fleet_size ||
                                   o_rec(word) >= f->holds || (word & O_WAITERS) != 0))
        rc = err_reason(err, BELAY_BAD_HANDLE, "holder", "that is no tenure");
    return rc;
}

static belay_rc release(struct belay_fleet *f, uint32_t entry, uint64_t word,
                        uint64_t *out_frame, struct belay_error *err)
{
    struct tenure who;
    uint64_t frame = 0;
    bool is_ours;

    fleet_lock(f);
    is_ours = o_same(atomic_load_explicit(&f->entries[entry].o, memory_order_acquire),
                     word) &&
              tenure_read(f, entry, word, &who);
    if (is_ours) {
        /* Before it is free: the next CLAIM stands behind it (K6). */
        frame = log_release(f, &who, fleet_log_ms(f, fleet_now(f)));
        fleet_step(f, STEP_RELEASE_LOGGED);
        is_ours = tenure_end(f, entry, word);
    }
    record_put(f, entry, word);
    fleet_unlock(f);
    if (!is_ours)
        return lost(err, "superseded");
    if (out_frame)
        *out_frame = frame;
    return BELAY_OK;
}

static belay_rc refuse_other(struct belay_error *err, uint64_t word)
{
    return err_reason(err, BELAY_LEASE_HELD, "not_owner",
                      "node %u has it, not this one", o_node(word));
}

belay_rc belay_contest_release(struct belay_contest_guard *guard, uint64_t *out_frame,
                               struct belay_error *err)
{
    belay_rc rc = check_tenure(guard->fleet, guard->entry, guard->word, err);

    if (rc != BELAY_OK)
        return rc;
    if (UNLIKELY(o_node(guard->word) != guard->fleet->node))
        return refuse_other(err, guard->word);
    return release(guard->fleet, guard->entry, guard->word, out_frame, err);
}

belay_rc belay_contest_release_holder(struct belay_fleet *f,
                                      const struct belay_contest_holder *holder,
                                      uint64_t *out_frame, struct belay_error *err)
{
    struct belay_contest_guard guard = { 0 };
    belay_rc rc = belay_contest_guard_holder(f, holder, &guard, err);

    return rc == BELAY_OK ? belay_contest_release(&guard, out_frame, err) : rc;
}

belay_rc belay_contest_guard_holder(struct belay_fleet *f,
                                    const struct belay_contest_holder *holder,
                                    struct belay_contest_guard *out,
                                    struct belay_error *err)
{
    belay_rc rc = check_tenure(f, holder->entry, holder->word, err);

    if (rc != BELAY_OK)
        return rc;
    if (o_node(holder->word) != f->node)
        return refuse_other(err, holder->word);
    uint64_t o =
        atomic_load_explicit(&f->entries[holder->entry].o, memory_order_acquire);
    if (!o_same(o, holder->word))
        return lost(err, "superseded");
    *out = (struct belay_contest_guard){
        .fleet = f,
        .claim_id = holder->claim_id,
        .token = holder->token,
        .claimed_at_ms = holder->claimed_at_ms,
        .expires_at_ms = holder->expires_at_ms,
        .word = holder->word,
        .entry = holder->entry,
        .subject_kind = holder->subject_kind,
    };
    return BELAY_OK;
}

bool belay_contest_is_held(const struct belay_contest_guard *guard)
{
    const struct belay_fleet *f = guard->fleet;

    if (check_tenure(f, guard->entry, guard->word, NULL) != BELAY_OK)
        return false;
    const struct entry *e = &f->entries[guard->entry];
    uint64_t d = atomic_load_explicit(&e->d, memory_order_acquire);
    uint64_t o = atomic_load_explicit(&e->o, memory_order_acquire);
    return o_same(o, guard->word) && d_is_of(d, o) && d_time(d) != 0;
}

static belay_rc renew(struct belay_contest_guard *guard, int64_t ttl_ms, uint64_t now,
                      struct belay_error *err)
{
    struct belay_fleet *f = guard->fleet;
    struct entry *e = &f->entries[guard->entry];
    uint64_t o = atomic_load_explicit(&e->o, memory_order_acquire);
    uint64_t d = atomic_load_explicit(&e->d, memory_order_acquire);
    uint64_t end = contest_deadline(f, now, ttl_ms), later;

    do {
        if (!o_same(o, guard->word) || !d_is_of(d, o))
            return lost(err, "superseded");
        if (d_time(d) == 0)
            return lost(err, "revoked");
        if (d_time(d) <= now && d_time(d) != D_NEVER)
            return lost(err, "expired");
        fleet_step(f, STEP_RENEW_READ);
        later = end > d_time(d) ? end : d_time(d); /* never back */
    } while (!atomic_compare_exchange_strong_explicit(
        &e->d, &d, d_make(o_gen(o), later), memory_order_acq_rel,
        memory_order_acquire));
    fleet_step(f, STEP_RENEW_SET);
    /* Hole (d): D has 16 bits of the generation, O has all of it. */
    if (!o_same(atomic_load_explicit(&e->o, memory_order_acquire), guard->word))
        return lost(err, "superseded");
    if (later == D_NEVER) {
        guard->expires_at_ms = INT64_MAX;
    } else if (f->is_virtual) {
        guard->expires_at_ms = (int64_t)later;
    } else {
        struct record *r = &f->records[(size_t)f->node * f->holds + o_rec(guard->word)];
        uint64_t since = atomic_load_explicit(&r->claimed, memory_order_relaxed);
        guard->expires_at_ms = guard->claimed_at_ms + (int64_t)((later - since) / 1000);
    }
    return BELAY_OK;
}

static belay_rc check_renewal(const struct belay_contest_guard *guard, int64_t ttl_ms,
                              bool is_virtual, struct belay_error *err)
{
    belay_rc rc = check_tenure(guard->fleet, guard->entry, guard->word, err);

    if (rc == BELAY_OK && o_node(guard->word) != guard->fleet->node)
        rc = refuse_other(err, guard->word);
    if (rc == BELAY_OK)
        rc = contest_check_ttl(ttl_ms, err);
    if (rc == BELAY_OK && guard->fleet->is_virtual != is_virtual)
        rc = contest_refuse_clock(err);
    return rc;
}

belay_rc belay_contest_renew(struct belay_contest_guard *guard, int64_t ttl_ms,
                             struct belay_error *err)
{
    belay_rc rc = check_renewal(guard, ttl_ms, false, err);

    return rc == BELAY_OK ? renew(guard, ttl_ms, fleet_now(guard->fleet), err) : rc;
}

belay_rc belay_contest_renew_at(struct belay_contest_guard *guard, int64_t ttl_ms,
                                int64_t now_ms, struct belay_error *err)
{
    belay_rc rc = check_renewal(guard, ttl_ms, true, err);

    return rc == BELAY_OK
               ? renew(guard, ttl_ms, contest_tell_time(guard->fleet, now_ms), err)
               : rc;
}

belay_rc belay_contest_force_release(struct belay_fleet *f,
                                     const struct belay_contest_holder *holder,
                                     struct belay_error *err)
{
    belay_rc rc = check_tenure(f, holder->entry, holder->word, err);
    if (rc != BELAY_OK)
        return rc;
    struct entry *e = &f->entries[holder->entry];
    uint64_t d = atomic_load_explicit(&e->d, memory_order_acquire);
    struct tenure who;
    bool is_current = true;

    fleet_lock(f);
    /* Also a claim that has no deadline yet: it will find D taken (hole (a)).  O is looked at
     * after D was read, so that D is not of a later tenure. */
    while (is_current && !(d_is_of(d, holder->word) && d_time(d) == 0)) {
        is_current =
            o_same(atomic_load_explicit(&e->o, memory_order_acquire), holder->word);
        if (is_current && atomic_compare_exchange_strong_explicit(
                              &e->d, &d, d_make(o_gen(holder->word), 0),
                              memory_order_acq_rel, memory_order_acquire))
            break;
    }
    fleet_step(f, STEP_FORCE_REVOKED);
    if (is_current && tenure_read(f, holder->entry, holder->word, &who)) {
        log_revoked(f, &who, fleet_log_ms(f, fleet_now(f)), BELAY_CONTEST_FORCED);
        fleet_step(f, STEP_FORCE_NOTED);
    }
    is_current = is_current && tenure_end(f, holder->entry, holder->word);
    fleet_step(f, STEP_FORCE_FREED);
    fleet_unlock(f);
    return is_current ? BELAY_OK : lost(err, "superseded");
}

bool belay_fence_admit(uint64_t *high_water, uint64_t token)
{
    uint64_t seen = __atomic_load_n(high_water, __ATOMIC_ACQUIRE);

    while (token >= seen) {
        if (__atomic_compare_exchange_n(high_water, &seen, token, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return true;
    }
    return false;
}
