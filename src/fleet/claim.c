/* Claiming: O is taken by one CAS (K1); everything before it is our own record, everything
 * after it others can finish or undo. */
#include "fleet/impl.h"

#define TURNS 100000
#define TTL_MAX_MS INT64_C(86400000)

belay_rc contest_check_ttl(int64_t ttl_ms, struct belay_error *err)
{
    if (UNLIKELY(ttl_ms < 0 ||
                 (ttl_ms > TTL_MAX_MS && ttl_ms != BELAY_CONTEST_FOREVER)))
        return err_reason(err, BELAY_INVALID, "ttl", "a ttl is 0 to 24 hours");
    return BELAY_OK;
}

static belay_rc refuse_terms(const struct belay_contest_subject *subject,
                             const struct belay_contest_terms *terms,
                             struct belay_error *err)
{
    if (UNLIKELY(subject->label_len > BELAY_CONTEST_LABEL_MAX ||
                 terms->owner_len > BELAY_CONTEST_LABEL_MAX)) {
        (void)err_reason(
            err, BELAY_INVALID, "contest_frame_too_large",
            "labels of %zu (subject_len) and %zu (owner_len) bytes; max is %d",
            subject->label_len, terms->owner_len, BELAY_CONTEST_LABEL_MAX);
        err_numbers(err, BELAY_CONTEST_LABEL_MAX,
                    (int64_t)(subject->label_len + terms->owner_len));
        return BELAY_INVALID;
    }
    return contest_check_ttl(terms->ttl_ms, err);
}

/* The same, at the price of a few comparisons where nothing is wrong. */
static inline belay_rc check_terms(const struct belay_contest_subject *subject,
                                   const struct belay_contest_terms *terms,
                                   struct belay_error *err)
{
    bool is_good = subject->label_len <= BELAY_CONTEST_LABEL_MAX &&
                   terms->owner_len <= BELAY_CONTEST_LABEL_MAX && terms->ttl_ms >= 0 &&
                   terms->ttl_ms <= TTL_MAX_MS;

    return is_good ? BELAY_OK : refuse_terms(subject, terms, err);
}

uint64_t contest_deadline(const struct belay_fleet *f, uint64_t now, int64_t ttl_ms)
{
    if (ttl_ms == BELAY_CONTEST_FOREVER)
        return D_NEVER;
    uint64_t end = now + (uint64_t)ttl_ms * (f->is_virtual ? 1 : 1000);
    return end < D_NEVER ? end : D_NEVER - 1;
}

/* One attempt that has got past what was in the way. */
struct attempt {
    const struct key *key;
    const struct belay_contest_terms *terms;
    uint64_t now;
    uint32_t entry;
    uint64_t o; /* as it was found */
    uint64_t d;
    uint64_t mine; /* O of our tenure */
    uint32_t rec;
    uint64_t wall_ms;
};

static bool write_record(struct belay_fleet *f, struct attempt *a)
{
    struct record *r = &f->records[(size_t)f->node * f->holds + a->rec];
    const struct belay_contest_terms *t = a->terms;
    uint64_t ref = 0;

    if (UNLIKELY(t->owner_len > TEXT_INLINE) &&
        !arena_put(f, block_of_record(f, a->rec), t->owner, t->owner_len, &ref))
        return false;
    atomic_store_explicit(&r->token, 0, memory_order_relaxed);
    atomic_store_explicit(&r->claimed, a->now, memory_order_relaxed);
    atomic_store_explicit(&r->wall_ms, a->wall_ms, memory_order_relaxed);
    atomic_store_explicit(&r->owner_len, t->owner_len, memory_order_relaxed);
    atomic_store_explicit(&r->ref, ref, memory_order_relaxed);
    if (t->owner_len <= TEXT_INLINE)
        words_store(r->text, t->owner, t->owner_len);
    fleet_step(f, STEP_CLAIM_RECORD);
    return true;
}

/* Our deadline into D, which changes by CAS alone (I3).  False: somebody revoked us before we
 * had one (hole (a)).  When D is not what we found before O was ours, a straggler may have
 * revoked the tenure before ours; but only as long as O is ours, looked at after D, is D not
 * of somebody who came after us.  (The tag of D alone cannot tell: it comes round.) */
static bool install_deadline(struct belay_fleet *f, struct attempt *a,
                             uint64_t deadline)
{
    struct entry *e = &f->entries[a->entry];
    uint64_t was = a->d, ours = d_make(o_gen(a->mine), deadline);

    while (!atomic_compare_exchange_strong_explicit(
        &e->d, &was, ours, memory_order_acq_rel, memory_order_acquire)) {
        if (d_is_of(was, a->mine) ||
            !o_same(atomic_load_explicit(&e->o, memory_order_acquire), a->mine))
            return false;
    }
    fleet_step(f, STEP_CLAIM_DEADLINE);
    return true;
}

static void fill_guard(struct belay_fleet *f, const struct attempt *a, uint64_t token,
                       int64_t expires_ms, struct belay_contest_guard *out)
{
    *out = (struct belay_contest_guard){
        .fleet = f,
        .claim_id = claim_id_of(f->node, token),
        .token = token,
        .claimed_at_ms = (int64_t)a->wall_ms,
        .expires_at_ms = expires_ms,
        .word = a->mine,
        .entry = a->entry,
        .subject_kind = a->key->kind,
    };
}

/* After O is ours.  False: we lost it again before we could use it. */
static bool complete(struct belay_fleet *f, struct attempt *a,
                     struct belay_contest_guard *out)
{
    struct record *r = &f->records[(size_t)f->node * f->holds + a->rec];
    uint64_t deadline = contest_deadline(f, a->now, a->terms->ttl_ms);
    bool is_never = deadline == D_NEVER;
    uint64_t expires =
        f->is_virtual ? deadline : a->wall_ms + (uint64_t)a->terms->ttl_ms;

    f->rec_words[a->rec] = a->mine;
    f->rec_entries[a->rec] = a->entry;
    fleet_step(f, STEP_CLAIM_TAKEN);
    /* Drawn after O was taken: tokens rise with tenures (K2). */
    uint64_t token = atomic_fetch_add_explicit(f->token, 1, memory_order_relaxed) + 1;
    atomic_store_explicit(&r->token, token, memory_order_release);
    fleet_step(f, STEP_CLAIM_TOKEN);
    if (UNLIKELY(!install_deadline(f, a, deadline))) {
        (void)tenure_end(f, a->entry, a->mine);
        record_put(f, a->entry, a->mine);
        return false;
    }
    struct tenure who = { token, f->node, a->entry, (uint32_t)a->terms->owner_len };
    (void)log_claim(f, a->key, a->terms, &who, a->wall_ms,
                    is_never ? UINT64_MAX : expires);
    fleet_step(f, STEP_CLAIM_LOGGED);
    /* Hole (c): whoever took it from us has written REVOKED; our CLAIM came late. */
    uint64_t o = atomic_load_explicit(&f->entries[a->entry].o, memory_order_acquire);
    if (UNLIKELY(!o_same(o, a->mine))) {
        (void)log_release(f, &who, a->wall_ms);
        record_put(f, a->entry, a->mine);
        return false;
    }
    fleet_step(f, STEP_CLAIM_CHECKED);
    fill_guard(f, a, token, is_never ? INT64_MAX : (int64_t)expires, out);
    return true;
}

/* With the lock: takes what was found to be takeable. */
static belay_rc take(struct belay_fleet *f, struct attempt *a, int reason,
                     struct belay_contest_claim *out, bool *out_done,
                     struct belay_error *err)
{
    struct entry *e = &f->entries[a->entry];
    uint32_t loser = o_node(a->o);

    *out_done = false;
    a->wall_ms = fleet_log_ms(f, a->now);
    if (!record_take(f, &a->rec))
        return err_reason(err, BELAY_NO_MEMORY, "holds",
                          "this member holds %u subjects, as many as it can", f->holds);
    if (!write_record(f, a)) {
        f->free_recs[f->n_free_recs++] = (uint16_t)a->rec;
        return err_reason(err, BELAY_NO_MEMORY, "arena",
                          "no room for the owner's label");
    }
    struct tenure who;
    if (UNLIKELY(reason != 0) && tenure_read(f, a->entry, a->o, &who)) {
        /* Irrevocable by now, so it may be told before it happens: the next CLAIM in the log
         * stands behind it, whoever's it is. */
        log_revoked(f, &who, a->wall_ms, (enum belay_contest_reason)reason);
        fleet_step(f, STEP_CLAIM_NOTED);
    }
    uint64_t was = a->o;
    a->mine = o_make(o_next(was), f->node, a->rec, O_HELD);
    /* D may still have the tag of 65,536 generations ago, and say `revoked` with it: then
     * that generation is left out, or others would take ours for revoked. */
    if (UNLIKELY(d_is_of(a->d, a->mine)))
        a->mine = o_make(o_next(a->mine), f->node, a->rec, O_HELD);
    if (!atomic_compare_exchange_strong_explicit(
            &e->o, &was, a->mine | (was & O_WAITERS), memory_order_acq_rel,
            memory_order_acquire)) {
        f->rec_words[a->rec] = a->mine; /* never seen by anybody; give it back */
        f->rec_entries[a->rec] = a->entry;
        record_put(f, a->entry, a->mine);
        return BELAY_OK;
    }
    *out_done = complete(f, a, &out->guard);
    if (reason == BELAY_CONTEST_DEAD && loser < f->fleet_size)
        (void)fleet_sweep_node(f, loser);
    return BELAY_OK;
}

/* Held by somebody alive whose time is not over: the common failure, which takes no lock and
 * writes nothing (K5). */
static inline bool is_plainly_held(const struct belay_fleet *f, uint32_t entry,
                                   uint64_t o, uint64_t now)
{
    if (o_state(o) != O_HELD || o_node(o) >= f->fleet_size)
        return false;
    uint64_t d = atomic_load_explicit(&f->entries[entry].d, memory_order_acquire);
    return d_is_of(d, o) && d_time(d) > now && !member_may_be_dead(f, o_node(o));
}

static void yield_to_self(const struct key *key,
                          const struct belay_contest_terms *terms, uint64_t wall_ms,
                          struct belay_contest_holder *out)
{
    size_t cut = terms->owner_len < sizeof(out->owner) ? terms->owner_len
                                                       : sizeof(out->owner) - 1;

    *out = (struct belay_contest_holder){
        .claimed_at_ms = (int64_t)wall_ms,
        .expires_at_ms = (int64_t)wall_ms,
        .node = -1,
        .subject_kind = key->kind,
        .is_self = true,
        .owner_len = (uint32_t)terms->owner_len,
    };
    if (cut > 0)
        memcpy(out->owner, terms->owner, cut);
}

/* A ttl of zero asks who holds it and takes nothing. */
static belay_rc ask(struct belay_fleet *f, const struct key *key,
                    const struct belay_contest_terms *terms, uint64_t now,
                    struct belay_contest_claim *out, struct belay_error *err)
{
    uint32_t entry;
    uint64_t o;

    for (int turn = 0; turn < TURNS; turn++) {
        belay_rc rc = table_find(f, key, &entry, &o, err);
        if (rc != BELAY_OK && rc != BELAY_NOT_FOUND)
            return rc;
        fleet_lock(f);
        bool is_held =
            rc == BELAY_OK && examine(f, entry, o, now, true).verdict == VERDICT_YIELD;
        if (!is_held)
            yield_to_self(key, terms, fleet_log_ms(f, now), &out->holder);
        fleet_unlock(f);
        if (!is_held)
            break;
        if (holder_read(f, entry, o, &out->holder))
            break;
    }
    out->is_claimed = false;
    return BELAY_OK;
}

static belay_rc attempt_locked(struct belay_fleet *f, struct attempt *a,
                               struct belay_contest_claim *out, bool *out_done,
                               struct belay_error *err)
{
    fleet_step(f, STEP_CLAIM_FOUND);
    struct finding found = examine(f, a->entry, a->o, a->now, false);

    *out_done = false;
    if (found.verdict == VERDICT_TAKE) {
        a->d = found.d;
        belay_rc rc = take(f, a, found.reason, out, out_done, err);
        if (rc == BELAY_OK && *out_done)
            out->is_claimed = true;
        return rc;
    }
    if (found.verdict == VERDICT_YIELD &&
        holder_read(f, a->entry, a->o, &out->holder)) {
        out->is_claimed = false;
        *out_done = true;
    }
    return BELAY_OK;
}

static belay_rc try_key(struct belay_fleet *f, const struct key *key, uint32_t *entry,
                        const struct belay_contest_terms *terms, uint64_t now,
                        struct belay_contest_claim *out, struct belay_error *err)
{
    struct attempt a = { .key = key, .terms = terms, .now = now, .entry = *entry };

    for (int turn = 0; turn < TURNS; turn++) {
        belay_rc rc = BELAY_NOT_FOUND;
        if (a.entry < f->subjects) { /* remembered */
            a.o = atomic_load_explicit(&f->entries[a.entry].o, memory_order_acquire);
            enum o_state state = o_state(a.o);
            if ((state == O_FREE || state == O_HELD) &&
                entry_has_key(f, &f->entries[a.entry], key))
                rc = BELAY_OK;
        }
        if (rc != BELAY_OK)
            rc = table_find(f, key, &a.entry, &a.o, err);
        if (rc == BELAY_OK && is_plainly_held(f, a.entry, a.o, now) &&
            holder_read(f, a.entry, a.o, &out->holder)) {
            out->is_claimed = false;
            *entry = a.entry;
            return BELAY_OK;
        }
        bool is_done = false;
        fleet_lock(f);
        if (rc == BELAY_NOT_FOUND)
            rc = table_intern(f, key, &a.entry, &a.o, err);
        if (rc == BELAY_OK)
            rc = attempt_locked(f, &a, out, &is_done, err);
        fleet_unlock(f);
        *entry = a.entry;
        if (rc != BELAY_OK || is_done)
            return rc;
        a.entry = UINT32_MAX; /* it may be another's by now */
    }
    return err_reason(err, BELAY_CORRUPT, "entry", "the subject's entry is damaged");
}

/* Who yields tries again, and mostly for the same subject: where it was the last time.  O is
 * read before the label is compared and again in the end, so the entry is the subject's. */
static inline bool yields_again(struct belay_fleet *f, const struct key *key,
                                uint64_t now, struct belay_contest_holder *out)
{
    uint32_t entry = atomic_load_explicit(&f->last_yield, memory_order_relaxed);

    if (entry >= f->subjects)
        return false;
    uint64_t o = atomic_load_explicit(&f->entries[entry].o, memory_order_acquire);
    return is_plainly_held(f, entry, o, now) &&
           entry_has_key(f, &f->entries[entry], key) && holder_read(f, entry, o, out);
}

static belay_rc try_subject(struct belay_fleet *f,
                            const struct belay_contest_subject *subject,
                            const struct belay_contest_terms *terms, uint64_t now,
                            struct belay_contest_claim *out, struct belay_error *err)
{
    belay_rc rc = check_terms(subject, terms, err);
    if (rc != BELAY_OK)
        return rc;
    struct key key = {
        .label = subject->label,
        .len = subject->label_len,
        .kind = subject->kind,
    };
    if (yields_again(f, &key, now, &out->holder)) {
        out->is_claimed = false;
        return BELAY_OK;
    }
    uint32_t entry = UINT32_MAX;
    key.hash = fleet_hash(f->key, subject->kind, subject->label, subject->label_len);
    if (UNLIKELY(terms->ttl_ms == 0))
        return ask(f, &key, terms, now, out, err);
    rc = try_key(f, &key, &entry, terms, now, out, err);
    if (rc == BELAY_OK && !out->is_claimed)
        atomic_store_explicit(&f->last_yield, entry, memory_order_relaxed);
    return rc;
}

belay_rc contest_refuse_clock(struct belay_error *err)
{
    return err_reason(err, BELAY_MISUSE, "virtual_clock",
                      "this fleet's contests are told the time, or must not be");
}

ON_A_LINE belay_rc belay_contest_try(struct belay_fleet *f,
                                     const struct belay_contest_subject *subject,
                                     const struct belay_contest_terms *terms,
                                     struct belay_contest_claim *out,
                                     struct belay_error *err)
{
    belay_rc rc = fleet_check_member(f, err);

    if (rc != BELAY_OK)
        return rc;
    if (UNLIKELY(f->is_virtual))
        return contest_refuse_clock(err);
    return try_subject(f, subject, terms, fleet_now(f), out, err);
}

uint64_t contest_tell_time(struct belay_fleet *f, int64_t now_ms)
{
    if (now_ms < 0)
        now_ms = 0;
    if ((uint64_t)now_ms > D_NEVER - 1)
        now_ms = (int64_t)D_NEVER - 1;
    fleet_lock(f);
    f->virtual_now_ms = now_ms;
    fleet_unlock(f);
    return (uint64_t)now_ms;
}

belay_rc belay_contest_try_at(struct belay_fleet *f,
                              const struct belay_contest_subject *subject,
                              const struct belay_contest_terms *terms, int64_t now_ms,
                              struct belay_contest_claim *out, struct belay_error *err)
{
    belay_rc rc = fleet_check_member(f, err);

    if (rc != BELAY_OK)
        return rc;
    if (!f->is_virtual)
        return contest_refuse_clock(err);
    return try_subject(f, subject, terms, contest_tell_time(f, now_ms), out, err);
}

belay_rc belay_contest_intern(struct belay_fleet *f,
                              const struct belay_contest_subject *subject,
                              struct belay_contest_ref *out, struct belay_error *err)
{
    static const struct belay_contest_terms none = { .owner = "" };
    belay_rc rc = fleet_check_member(f, err);
    uint64_t o;

    if (rc == BELAY_OK)
        rc = check_terms(subject, &none, err);
    if (rc != BELAY_OK)
        return rc;
    struct belay_contest_ref ref = {
        .subject = *subject,
        .hash = fleet_hash(f->key, subject->kind, subject->label, subject->label_len),
    };
    struct key key = { subject->label, subject->label_len, subject->kind, ref.hash };
    fleet_lock(f);
    rc = table_intern(f, &key, &ref.entry, &o, err);
    fleet_unlock(f);
    if (rc == BELAY_OK)
        *out = ref;
    return rc;
}

belay_rc belay_contest_try_ref(struct belay_fleet *f, struct belay_contest_ref *ref,
                               const struct belay_contest_terms *terms,
                               struct belay_contest_claim *out, struct belay_error *err)
{
    belay_rc rc = fleet_check_member(f, err);

    if (rc == BELAY_OK && UNLIKELY(f->is_virtual))
        rc = contest_refuse_clock(err);
    if (rc == BELAY_OK)
        rc = check_terms(&ref->subject, terms, err);
    if (rc != BELAY_OK)
        return rc;
    struct key key = { ref->subject.label, ref->subject.label_len, ref->subject.kind,
                       ref->hash };
    if (UNLIKELY(terms->ttl_ms == 0))
        return ask(f, &key, terms, fleet_now(f), out, err);
    return try_key(f, &key, &ref->entry, terms, fleet_now(f), out, err);
}
