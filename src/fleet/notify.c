/* Words that wake: bit 0 says that somebody sleeps, what is above it counts posts.  With both in
 * one word a post has seen the bit or has changed what the waiter would sleep on.  A post that
 * wakes nobody takes the bit away, and wakes once more, for those who came in between: so
 * nothing is left to do for waiters that died, and nobody can take another's bit. */
#include <limits.h>
#include <stdio.h>

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

void ring_word_name(uint32_t kind, char out[RING_WORD_MAX])
{
    (void)snprintf(out, RING_WORD_MAX, "ring %u", kind);
}

static belay_rc check_word(const struct belay_fleet *f, struct belay_notify word,
                           struct belay_error *err)
{
    if (word.slot >= f->n_words)
        return err_reason(err, BELAY_BAD_HANDLE, "word", "that is no word");
    return BELAY_OK;
}

/* Out of line: without sleepers a post is one addition. */
static __attribute__((noinline)) void wake_sleepers(au32 *word)
{
    if (futex_wake(word, INT_MAX) > 0)
        return;
    uint32_t is = atomic_load_explicit(word, memory_order_relaxed);
    if ((is & WORD_SLEEPERS) != 0 &&
        atomic_compare_exchange_strong_explicit(
            word, &is, is & ~WORD_SLEEPERS, memory_order_acq_rel, memory_order_relaxed))
        (void)futex_wake(word, INT_MAX);
}

void word_post(au32 *word)
{
    uint32_t was = atomic_fetch_add_explicit(word, WORD_POST, memory_order_seq_cst);

    if ((was & WORD_SLEEPERS) != 0)
        wake_sleepers(word);
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
    uint32_t was =
        atomic_fetch_add_explicit(&w->value, WORD_POST, memory_order_seq_cst);
    fleet_step(f, STEP_NOTIFY_RAISED);
    if (UNLIKELY((was & WORD_SLEEPERS) != 0))
        wake_sleepers(&w->value);
    return BELAY_OK;
}

uint32_t belay_notify_value(struct belay_fleet *f, struct belay_notify word)
{
    if (fleet_check(f, NULL) != BELAY_OK || word.slot >= f->n_words)
        return 0;
    return atomic_load_explicit(&f->words[word.slot].value, memory_order_acquire) /
           WORD_POST;
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
    while (now / WORD_POST == seen && rc == BELAY_OK) {
        now = word_mark(value);
        fleet_step(f, STEP_NOTIFY_MARKED);
        if (now / WORD_POST != seen)
            break;
        rc = patience_slice(&patience, &us, err);
        if (rc == BELAY_OK)
            futex_wait(value, now, us);
        now = atomic_load_explicit(value, memory_order_seq_cst);
    }
    if (now / WORD_POST != seen) {
        if (out)
            *out = now / WORD_POST;
        return BELAY_OK;
    }
    return rc;
}
