/* words.h - bytes in words of shared memory, zeros behind the last one.  Inline: a claim copies
 * half a dozen short labels, and a call for each would be half its price. */
#ifndef FLEET_WORDS_H
#define FLEET_WORDS_H

#include <string.h>

#include "fleet/layout.h"

/* The last 1 to 7 bytes as a word, zeros behind them. */
static inline uint64_t tail_word(const uint8_t *p, size_t n)
{
    uint32_t lo, hi;

    if (n >= 4) {
        memcpy(&lo, p, 4);
        memcpy(&hi, p + n - 4, 4);
        return lo | (uint64_t)hi << (8 * (n - 4));
    }
    return (uint64_t)p[0] | (uint64_t)p[n / 2] << (8 * (n / 2)) |
           (uint64_t)p[n - 1] << (8 * (n - 1));
}

static inline void words_store(au64 *to, const void *from, size_t len)
{
    const uint8_t *p = from;
    uint64_t word;

    for (; len >= 8; len -= 8, p += 8) {
        memcpy(&word, p, 8);
        atomic_store_explicit(to++, word, memory_order_relaxed);
    }
    if (len > 0)
        atomic_store_explicit(to, tail_word(p, len), memory_order_relaxed);
}

static inline void words_load(void *to, const au64 *from, size_t len)
{
    uint8_t *p = to;
    uint64_t word;

    for (; len >= 8; len -= 8, p += 8) {
        word = atomic_load_explicit(from++, memory_order_relaxed);
        memcpy(p, &word, 8);
    }
    if (len > 0) {
        word = atomic_load_explicit(from, memory_order_relaxed);
        memcpy(p, &word, len);
    }
}

static inline bool words_equal(const au64 *a, const void *b, size_t len)
{
    const uint8_t *p = b;
    uint64_t word;

    for (; len >= 8; len -= 8, p += 8) {
        memcpy(&word, p, 8);
        if (atomic_load_explicit(a++, memory_order_relaxed) != word)
            return false;
    }
    return len == 0 ||
           atomic_load_explicit(a, memory_order_relaxed) == tail_word(p, len);
}

#endif /* FLEET_WORDS_H */
