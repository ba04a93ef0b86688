#include "api/op_json.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                               "0123456789+/";

/* The six bits of a character, or -1. */
static int bits_of(uint8_t c)
{
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

json_t *op_to_base64(struct bytes content)
{
    struct buf text CLEANUP(buf_release) = { 0 };

    for (size_t i = 0; i < content.len; i += 3) {
        size_t n = content.len - i < 3 ? content.len - i : 3;
        uint32_t word = (uint32_t)content.ptr[i] << 16;

        word |= n > 1 ? (uint32_t)content.ptr[i + 1] << 8 : 0;
        word |= n > 2 ? (uint32_t)content.ptr[i + 2] : 0;
        for (size_t k = 0; k < 4; k++) {
            const char *c = &alphabet[word >> (18 - 6 * k) & 0x3f];
            buf_append(&text, bytes_of(k <= n ? c : "=", 1));
        }
    }
    if (text.failed)
        return NULL;
    return json_stringn(text.len > 0 ? (const char *)text.ptr : "", text.len);
}
