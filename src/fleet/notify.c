/* Words that wake.  Who posts raises the word, then looks for waiters; who waits says so, then
 * looks at the word: with both in one total order at least one sees the other (2.7). */
#include <limits.h>

#include "fleet/impl.h"

belay_rc belay_notify_open(struct belay_fleet *f, const char *name,
                           struct belay_notify *out, struct belay_error *err)
{
    belay_rc rc = fleet_check(f, err);
    if (rc != BELAY_OK)
        return rc;
    size_t len = name ? strlen(name) : 0;
    if (len == 0 || len > 255)
        return err_reason(err, BELAY_INVALID, "name",
                          "a word's name has 1 to 255 bytes");

    uint64_t hash = fleet_hash(f->key, 1, name, len) | 1;
    for (uint32_t i = 0; i < f->n_words; i++) {
        uint64_t is = atomic_load_explicit(&f->words[i].name, memory_order_acquire);
        if (is == 0 && f->is_observer)
            break;
        if (is == hash ||
            (is == 0 && (atomic_compare_exchange_strong_explicit(
                             &f->words[i].name, &is, hash, memory_order_acq_rel,
                             memory_order_acquire) ||
                         is == hash))) {
            out->slot = i;
            return BELAY_OK;
        }
    }
    if (f->is_observer)
        return err_set(err, BELAY_NOT_FOUND, "nobody uses the word %s", name);
    return err_reason(err, BELAY_NO_MEMORY, "words",
                      "all %u words of the fleet are taken", f->n_words);
}

static bool has_waiters(const struct belay_fleet *f, const struct notify_word *w)
{
    for (uint32_t i = 0; i < (f->fleet_size + 63) / 64; i++) {
        if (atomic_load_explicit(&w->waiters[i], memory_order_seq_cst) != 0)
            return true;
    }
    return false;
}

static belay_rc check_word(const struct belay_fleet *f, struct belay_notify word,
                           struct belay_error *err)
{
    if (word.slot >= f->n_words)
        return err_reason(err, BELAY_BAD_HANDLE, "word", "that is no word");
    return BELAY_OK;
}

belay_rc belay_notify_post(struct belay_fleet *f, struct belay_notify word,
                           struct belay_error *err)
{
    belay_rc rc = fleet_check_member(f, err);

    if (rc == BELAY_OK)
        rc = check_word(f, word, err);
    if (rc != BELAY_OK)
        return rc;
    struct notify_word *w = &f->words[word.slot];
    atomic_fetch_add_explicit(&w->value, 1, memory_order_seq_cst);
    fleet_step(f, STEP_NOTIFY_RAISED);
    if (UNLIKELY(has_waiters(f, w)))
        futex_wake(&w->value, INT_MAX);
    return BELAY_OK;
}

uint32_t belay_notify_value(struct belay_fleet *f, struct belay_notify word)
{
    if (fleet_check(f, NULL) != BELAY_OK || word.slot >= f->n_words)
        return 0;
    return atomic_load_explicit(&f->words[word.slot].value, memory_order_acquire);
}

void notify_set_waiting(struct belay_fleet *f, uint32_t slot, int change)
{
    /* Threads of a member share its bit. */
    au64 *bits = &f->words[slot].waiters[f->node / 64];
    uint64_t bit = UINT64_C(1) << (f->node % 64);

    fleet_lock(f);
    f->waiting[slot] += (uint32_t)change;
    if (change >= 0)
        atomic_fetch_or_explicit(bits, bit, memory_order_seq_cst);
    else if (f->waiting[slot] == 0)
        atomic_fetch_and_explicit(bits, ~bit, memory_order_seq_cst);
    fleet_unlock(f);
}

belay_rc belay_notify_wait(struct belay_fleet *f, struct belay_notify word,
                           uint32_t seen, int64_t timeout_ms,
                           struct belay_cancel *cancel, uint32_t *out,
                           struct belay_error *err)
{
    struct patience patience;
    belay_rc rc = fleet_check_member(f, err);
    int64_t us;

    if (rc == BELAY_OK)
        rc = check_word(f, word, err);
    if (rc == BELAY_OK)
        rc = patience_init(&patience, timeout_ms, cancel, err);
    if (rc != BELAY_OK)
        return rc;
    au32 *value = &f->words[word.slot].value;
    uint32_t now = atomic_load_explicit(value, memory_order_seq_cst);
    int change = 1;
    while (now == seen && rc == BELAY_OK) {
        /* Once more each time: a sweep of the node's last member may have cleared it. */
        notify_set_waiting(f, word.slot, change);
        change = 0;
        fleet_step(f, STEP_NOTIFY_MARKED);
        now = atomic_load_explicit(value, memory_order_seq_cst);
        if (now != seen)
            break;
        rc = patience_slice(&patience, &us, err);
        if (rc == BELAY_OK)
            futex_wait(value, seen, us);
        now = atomic_load_explicit(value, memory_order_seq_cst);
    }
    if (change == 0)
        notify_set_waiting(f, word.slot, -1);
    if (now != seen) {
        if (out)
            *out = now;
        return BELAY_OK;
    }
    return rc;
}
