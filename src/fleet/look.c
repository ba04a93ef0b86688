#include "fleet/impl.h"

#define TURNS 100000

static struct key key_of(const struct belay_fleet *f,
                         const struct belay_contest_subject *subject)
{
    return (struct key){
        .label = subject->label,
        .len = subject->label_len,
        .kind = subject->kind,
        .hash = fleet_hash(f->key, subject->kind, subject->label, subject->label_len),
    };
}

/* Held, in time and by somebody alive. */
static bool is_held(struct belay_fleet *f, uint32_t entry, uint64_t o, uint64_t now)
{
    fleet_lock(f);
    struct finding found = examine(f, entry, o, now, true);
    fleet_unlock(f);
    return found.verdict == VERDICT_YIELD;
}

static belay_rc look(struct belay_fleet *f, const struct belay_contest_subject *subject,
                     uint64_t now, struct belay_contest_holder *out,
                     struct belay_error *err)
{
    struct key key = key_of(f, subject);
    struct belay_contest_holder holder;
    uint32_t entry;
    uint64_t o;

    for (int turn = 0; turn < TURNS; turn++) {
        belay_rc rc = subject->label_len > BELAY_CONTEST_LABEL_MAX
                          ? BELAY_NOT_FOUND
                          : table_find(f, &key, &entry, &o, err);
        if (rc != BELAY_OK && rc != BELAY_NOT_FOUND)
            return rc;
        if (rc == BELAY_NOT_FOUND || !is_held(f, entry, o, now))
            return err_set(err, BELAY_NOT_FOUND, "nobody holds the subject");
        if (holder_read(f, entry, o, &holder)) {
            *out = holder;
            return BELAY_OK;
        }
    }
    return err_reason(err, BELAY_CORRUPT, "entry", "the subject's entry is damaged");
}

belay_rc belay_contest_holder(struct belay_fleet *f,
                              const struct belay_contest_subject *subject,
                              struct belay_contest_holder *out, struct belay_error *err)
{
    belay_rc rc = fleet_check(f, err);

    if (rc == BELAY_OK && f->is_virtual)
        rc = contest_refuse_clock(err);
    return rc == BELAY_OK ? look(f, subject, fleet_now(f), out, err) : rc;
}

belay_rc belay_contest_holder_at(struct belay_fleet *f,
                                 const struct belay_contest_subject *subject,
                                 int64_t now_ms, struct belay_contest_holder *out,
                                 struct belay_error *err)
{
    belay_rc rc = fleet_check(f, err);

    if (rc == BELAY_OK && !f->is_virtual)
        rc = contest_refuse_clock(err);
    return rc == BELAY_OK ? look(f, subject, contest_tell_time(f, now_ms), out, err)
                          : rc;
}

/* One entry as it is at a moment; false: it is nobody's subject. */
static bool list_one(struct belay_fleet *f, uint32_t at, uint64_t now,
                     struct belay_contest_entry *out)
{
    const struct entry *e = &f->entries[at];

    for (int turn = 0; turn < 100; turn++) {
        uint64_t o = atomic_load_explicit(&e->o, memory_order_acquire);
        size_t len;
        if (o_state(o) != O_FREE && o_state(o) != O_HELD)
            return false;
        if (!entry_label(f, e, out->label, sizeof(out->label) - 1, &len))
            return false;
        out->label_len = (uint32_t)len;
        out->label[len < sizeof(out->label) ? len : sizeof(out->label) - 1] = '\0';
        out->is_held = o_state(o) == O_HELD && is_held(f, at, o, now);
        out->holder = (struct belay_contest_holder){ .node = -1, .entry = at };
        out->holder.subject_kind =
            (uint8_t)(atomic_load_explicit(&e->lens, memory_order_relaxed) >> 16);
        bool is_whole = o_state(o) != O_HELD || holder_read(f, at, o, &out->holder);
        fence_acquire();
        if (is_whole && o_same(atomic_load_explicit(&e->o, memory_order_relaxed), o))
            return true;
    }
    return false;
}

belay_rc belay_contest_list(struct belay_fleet *f, uint64_t *cursor,
                            struct belay_contest_entry *out, size_t max, size_t *out_n,
                            struct belay_error *err)
{
    belay_rc rc = fleet_check(f, err);
    if (rc != BELAY_OK)
        return rc;
    uint64_t now = fleet_now(f), at = *cursor;
    size_t n = 0;

    for (; at < f->subjects && n < max; at++)
        n += list_one(f, (uint32_t)at, now, &out[n]);
    *cursor = at < f->subjects ? at : 0;
    *out_n = n;
    return BELAY_OK;
}
