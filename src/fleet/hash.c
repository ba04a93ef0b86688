#include "fleet/impl.h"

__extension__ typedef unsigned __int128 u128;

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    u128 product = (u128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint64_t load32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* Multiply and fold, 16 bytes at a time, under a key of the fleet's own: whoever does not
 * know it cannot aim at one bucket. */
uint64_t fleet_hash(const uint64_t key[2], uint8_t kind, const void *data, size_t len)
{
    const uint8_t *p = data;
    size_t left = len;
    uint64_t h = key[0] ^ ((uint64_t)kind << 56 | (uint64_t)len);
    uint64_t a, b;

    for (; left > 16; left -= 16, p += 16)
        h = fold(load64(p) ^ key[1], load64(p + 8) ^ h);
    if (left >= 8) {
        a = load64(p);
        b = load64(p + left - 8);
    } else if (left >= 4) {
        a = load32(p);
        b = load32(p + left - 4);
    } else {
        a = left > 0 ? (uint64_t)p[0] << 16 | (uint64_t)p[left / 2] << 8 | p[left - 1]
                     : 0;
        b = 0;
    }
    h = fold(a ^ key[1], b ^ h);
    return fold(h ^ key[0], UINT64_C(0x9e3779b97f4a7c15) ^ key[1]);
}
