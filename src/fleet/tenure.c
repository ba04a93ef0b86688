#include <limits.h>

#include "fleet/impl.h"

static const struct record *record_of(const struct belay_fleet *f, uint64_t o)
{
    if (o_node(o) >= f->fleet_size || o_rec(o) >= f->holds)
        return NULL;
    return &f->records[(size_t)o_node(o) * f->holds + o_rec(o)];
}

/* A record is rewritten only after O has left its tenure, so a copy made while O stayed is a
 * copy of one record. */
static bool is_unchanged(const struct belay_fleet *f, uint32_t entry, uint64_t o)
{
    fence_acquire();
    return o_same(atomic_load_explicit(&f->entries[entry].o, memory_order_relaxed), o);
}

bool tenure_read(struct belay_fleet *f, uint32_t entry, uint64_t o, struct tenure *out)
{
    const struct record *r = record_of(f, o);

    if (!r)
        return false;
    out->token = atomic_load_explicit(&r->token, memory_order_acquire);
    out->owner_len =
        (uint32_t)(atomic_load_explicit(&r->owner_len, memory_order_relaxed) & 0xffff);
    out->node = o_node(o);
    out->entry = entry;
    return is_unchanged(f, entry, o);
}

/* When a tenure ends, as people read it. */
static int64_t expiry_ms(const struct belay_fleet *f, const struct record *r,
                         uint64_t d)
{
    uint64_t end = d_time(d),
             since = atomic_load_explicit(&r->claimed, memory_order_relaxed);
    uint64_t wall = atomic_load_explicit(&r->wall_ms, memory_order_relaxed);

    if (end == D_NEVER)
        return INT64_MAX;
    if (f->is_virtual)
        return (int64_t)end;
    return (int64_t)(wall + (end > since ? (end - since) / 1000 : 0));
}

ON_A_LINE bool holder_read(struct belay_fleet *f, uint32_t entry, uint64_t o,
                           struct belay_contest_holder *out)
{
    const struct record *r = record_of(f, o);
    const struct entry *e = &f->entries[entry];
    const au64 *text;
    size_t len, cut;

    if (!r)
        return false;
    uint64_t d = atomic_load_explicit(&e->d, memory_order_acquire);
    uint64_t token = atomic_load_explicit(&r->token, memory_order_acquire);
    out->is_pending = token == 0 || !d_is_of(d, o);
    out->is_self = false;
    out->token = token;
    out->claim_id = token == 0 ? 0 : claim_id_of(o_node(o), token);
    out->node = (int32_t)o_node(o);
    out->subject_kind =
        (uint8_t)(atomic_load_explicit(&e->lens, memory_order_relaxed) >> 16);
    out->claimed_at_ms =
        (int64_t)atomic_load_explicit(&r->wall_ms, memory_order_relaxed);
    out->expires_at_ms = out->is_pending ? out->claimed_at_ms : expiry_ms(f, r, d);
    out->entry = entry;
    out->word = o & ~O_WAITERS;
    len = atomic_load_explicit(&r->owner_len, memory_order_relaxed) & 0xffff;
    cut = len < sizeof(out->owner) ? len : sizeof(out->owner) - 1;
    text = len <= TEXT_INLINE
               ? r->text
               : arena_at(f, atomic_load_explicit(&r->ref, memory_order_relaxed), len);
    if (!text)
        cut = 0;
    else
        words_load(out->owner, text, cut);
    out->owner[cut] = '\0';
    out->owner_len = (uint32_t)len;
    return is_unchanged(f, entry, o);
}

belay_rc belay_contest_owner(struct belay_fleet *f,
                             const struct belay_contest_holder *holder, char *buf,
                             size_t buf_len, size_t *out_len, struct belay_error *err)
{
    belay_rc rc = fleet_check(f, err);
    if (rc != BELAY_OK)
        return rc;
    const struct record *r =
        holder->entry < f->subjects ? record_of(f, holder->word) : NULL;
    if (!r || o_state(holder->word) != O_HELD)
        return err_reason(err, BELAY_BAD_HANDLE, "holder", "that is no holder");
    size_t len = atomic_load_explicit(&r->owner_len, memory_order_relaxed) & 0xffff;
    const au64 *text =
        len <= TEXT_INLINE
            ? r->text
            : arena_at(f, atomic_load_explicit(&r->ref, memory_order_relaxed), len);
    if (text && len <= buf_len)
        words_load(buf, text, len);
    if (!text || !is_unchanged(f, holder->entry, holder->word))
        return err_reason(err, BELAY_LEASE_LOST, "superseded", "the tenure has ended");
    if (len > buf_len) {
        (void)err_set(err, BELAY_OUT_OF_RANGE, "the owner's label has %zu bytes", len);
        err_numbers(err, (int64_t)len, (int64_t)buf_len);
        return BELAY_OUT_OF_RANGE;
    }
    *out_len = len;
    return BELAY_OK;
}

bool tenure_end(struct belay_fleet *f, uint32_t entry, uint64_t o)
{
    struct entry *e = &f->entries[entry];
    uint64_t now = atomic_load_explicit(&e->o, memory_order_relaxed);

    do {
        if (!o_same(now, o))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(
        &e->o, &now, o_make(o_next(now), 0, 0, O_FREE), memory_order_acq_rel,
        memory_order_relaxed));
    fleet_step(f, STEP_RELEASE_FREED);
    if (UNLIKELY((now & O_WAITERS) != 0)) {
        (void)futex_wake((au32 *)(void *)&e->o, INT_MAX);
        fleet_step(f, STEP_RELEASE_WOKEN);
    }
    return true;
}

void record_put(struct belay_fleet *f, uint32_t entry, uint64_t o)
{
    uint32_t rec = o_rec(o);

    /* Given back before, and perhaps another tenure's by now: that of another entry may have
     * the same word. */
    if (rec >= f->holds || o_node(o) != f->node || f->rec_entries[rec] != entry ||
        f->rec_words[rec] != (o & ~O_WAITERS))
        return;
    struct record *r = &f->records[(size_t)f->node * f->holds + rec];
    size_t len = atomic_load_explicit(&r->owner_len, memory_order_relaxed) & 0xffff;
    if (UNLIKELY(len > TEXT_INLINE))
        arena_free(f, atomic_load_explicit(&r->ref, memory_order_relaxed), len);
    f->rec_words[rec] = 0;
    f->free_recs[f->n_free_recs++] = (uint16_t)rec;
}

/* Guards that were lost and never released. */
static void collect_lost(struct belay_fleet *f)
{
    for (uint32_t rec = 0; rec < f->holds; rec++) {
        uint64_t o = f->rec_words[rec];
        if (o != 0 && !o_same(atomic_load_explicit(&f->entries[f->rec_entries[rec]].o,
                                                   memory_order_acquire),
                              o))
            record_put(f, f->rec_entries[rec], o);
    }
}

bool record_take(struct belay_fleet *f, uint32_t *out)
{
    if (UNLIKELY(f->n_free_recs == 0))
        collect_lost(f);
    if (f->n_free_recs == 0)
        return false;
    *out = f->free_recs[--f->n_free_recs];
    return true;
}
