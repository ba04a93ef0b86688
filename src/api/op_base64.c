#include "api/op_json.h"

/* The six bits of a character, or -1. */
static int bits_of(uint8_t c)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        "0123456789+/";
    const char *at = c ? strchr(alphabet, c) : NULL;

    return at ? (int)(at - alphabet) : -1;
}

const void *op_base64(struct bytes text, struct belay_arena *a, size_t *len,
                      bool *no_memory)
{
    size_t pad = 0, n = 0;
    uint32_t word = 0;

    *no_memory = false;
    while (pad < 2 && pad < text.len && text.ptr[text.len - 1 - pad] == '=')
        pad++;
    if (text.len % 4 != 0)
        return NULL;
    uint8_t *out = arena_alloc(a, text.len / 4 * 3 + 1);
    if (!out) {
        *no_memory = true;
        return NULL;
    }
    for (size_t i = 0; i < text.len - pad; i++) {
        int bits = bits_of(text.ptr[i]);
        if (bits < 0)
            return NULL;
        word = word << 6 | (uint32_t)bits;
        /* After the i-th character from 0 there are 6, 4, 2 or 0 bits over. */
        if (i % 4 != 0)
            out[n++] = (uint8_t)(word >> (6 - 2 * (i % 4)));
    }
    /* What the padding cuts off must be zero: a content has one text. */
    if (pad > 0 && (word & (pad == 2 ? 0xfU : 0x3U)) != 0)
        return NULL;
    *len = n;
    return out;
}
