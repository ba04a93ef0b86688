#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

int bytes_cmp(struct bytes a, struct bytes b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter == 0 ? 0 : memcmp(a.ptr, b.ptr, shorter);
    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

size_t bytes_utf8_len(struct bytes b)
{
    if (b.len == 0)
        return 0;
    uint8_t lead = b.ptr[0];
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    size_t n = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (b.len < n)
        return 0;

    /* Overlong forms, surrogates and what lies above U+10FFFF all show in the second
     * byte. */
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (b.ptr[1] < low || b.ptr[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if ((b.ptr[i] & 0xc0) != 0x80)
            return 0;
    }
    return n;
}

/* The view without its first n bytes. */
static struct bytes skip(struct bytes b, size_t n)
{
    return bytes_of(b.ptr + n, b.len - n);
}

/* How many bytes at the front are certainly ASCII, looking at eight at a time: keys and
 * most text are nothing else. */
static size_t ascii_words(struct bytes b)
{
    size_t n = 0;

    for (; b.len - n >= 8; n += 8) {
        uint64_t word;
        memcpy(&word, b.ptr + n, 8);
        if (word & UINT64_C(0x8080808080808080))
            break;
    }
    return n;
}

bool bytes_is_utf8(struct bytes b)
{
    if (b.len >= 8) {
        struct bytes rest = skip(b, ascii_words(b));
        /* Fewer than a word: with what is before them they are one. */
        if (rest.len < 8)
            rest = skip(b, b.len - 8 + ascii_words(skip(b, b.len - 8)));
        b = rest;
    }
    while (b.len > 0) {
        size_t n = bytes_utf8_len(b);
        if (n == 0)
            return false;
        b = skip(b, n);
    }
    return true;
}

/* Whether b, which begins with a character, begins with a control character. */
static bool is_control(struct bytes b)
{
    uint8_t lead = b.ptr[0];
    return lead < 0x20 || lead == 0x7f || (lead == 0xc2 && b.ptr[1] < 0xa0);
}

/* How many bytes at the front are certainly ASCII and no control characters, likewise. */
static size_t plain_words(struct bytes b)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones * 0x80;
    size_t n = 0;

    for (; b.len - n >= 8; n += 8) {
        uint64_t word;
        memcpy(&word, b.ptr + n, 8);
        /* Of bytes below 0x80: one below 0x20 borrows its highest bit, 0x7f carries into it. */
        if (((word | (word - ones * 0x20) | (word + ones)) & high) != 0)
            break;
    }
    return n;
}

bool bytes_is_id(struct bytes b, size_t max)
{
    if (b.len == 0 || b.len > max)
        return false;
    b = skip(b, plain_words(b));
    while (b.len > 0) {
        size_t n = bytes_utf8_len(b);
        if (n == 0 || is_control(b))
            return false;
        b = skip(b, n);
    }
    return true;
}

bool bytes_to_i64(struct bytes b, int64_t *out)
{
    bool negative = b.len > 0 && b.ptr[0] == '-';
    struct bytes digits = negative ? skip(b, 1) : b;
    if (digits.len == 0 || digits.len > 19) /* 19 digits cannot wrap a uint64_t */
        return false;
    if (digits.ptr[0] == '0' && (negative || digits.len > 1))
        return false;

    uint64_t n = 0;
    for (size_t i = 0; i < digits.len; i++) {
        uint8_t c = digits.ptr[i];
        if (c < '0' || c > '9')
            return false;
        n = n * 10 + (uint64_t)(c - '0');
    }
    if (n > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    /* -n would overflow for the smallest value; -(n - 1) - 1 does not. */
    *out = negative ? -(int64_t)(n - 1) - 1 : (int64_t)n;
    return true;
}

size_t bytes_put_i64(char out[I64_TEXT_MAX], int64_t n)
{
    char text[I64_TEXT_MAX];
    size_t at = sizeof(text);
    uint64_t rest = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;

    text[--at] = '\0';
    for (; rest >= 100; rest /= 100) {
        unsigned two = (unsigned)(rest % 100);
        text[--at] = (char)('0' + two % 10);
        text[--at] = (char)('0' + two / 10);
    }
    if (rest >= 10)
        text[--at] = (char)('0' + rest % 10);
    text[--at] = (char)('0' + (rest >= 10 ? rest / 10 : rest));
    if (n < 0)
        text[--at] = '-';
    memcpy(out, text + at, sizeof(text) - at);
    return sizeof(text) - at - 1;
}

/* The first `len` bytes in a larger place, or NULL. */
static uint8_t *larger(const struct buf *b, size_t cap)
{
    if (!b->arena)
        return realloc(b->ptr, cap);
    uint8_t *ptr = arena_alloc(b->arena, cap);
    if (ptr && b->len > 0)
        memcpy(ptr, b->ptr, b->len);
    return ptr;
}

/* Room for `more` bytes behind len, or the sticky failure. */
static bool reserve(struct buf *b, size_t more)
{
    if (b->failed)
        return false;
    if (more <= b->cap - b->len)
        return true;
    if (more > PTRDIFF_MAX - b->len) {
        b->failed = true;
        return false;
    }
    size_t cap = b->cap < 64 ? 64 : b->cap * 2;
    if (cap < b->len + more)
        cap = b->len + more;
    uint8_t *ptr = larger(b, cap);
    if (!ptr) {
        b->failed = true;
        return false;
    }
    b->ptr = ptr;
    b->cap = cap;
    return true;
}

void buf_expect(struct buf *b, size_t more)
{
    (void)reserve(b, more);
}

void buf_append(struct buf *b, struct bytes more)
{
    if (more.len == 0 || !reserve(b, more.len))
        return;
    memcpy(b->ptr + b->len, more.ptr, more.len);
    b->len += more.len;
}

void buf_append_str(struct buf *b, const char *text)
{
    buf_append(b, bytes_str(text));
}

void buf_append_char(struct buf *b, char c)
{
    buf_append(b, bytes_of(&c, 1));
}

void buf_append_i64(struct buf *b, int64_t n)
{
    char text[I64_TEXT_MAX];

    buf_append(b, bytes_of(text, bytes_put_i64(text, n)));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args, again;

    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    if (n < 0)
        b->failed = true;
    else if (reserve(b, (size_t)n + 1)) { /* vsnprintf writes a NUL as well */
        (void)vsnprintf((char *)b->ptr + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

static void append_escaped_byte(struct buf *b, uint8_t c)
{
    switch (c) {
    case '\n':
        buf_append_str(b, "\\n");
        break;
    case '\t':
        buf_append_str(b, "\\t");
        break;
    case '\r':
        buf_append_str(b, "\\r");
        break;
    case '\\':
        buf_append_str(b, "\\\\");
        break;
    default:
        buf_printf(b, "\\x%02x", c);
        break;
    }
}

/* Whether b, which begins with a character, begins with one that ends a line or turns the
 * direction of those behind it: U+2028 to U+202E, U+2066 to U+2069. */
static bool is_turning(struct bytes b)
{
    return b.ptr[0] == 0xe2 &&
           ((b.ptr[1] == 0x80 && b.ptr[2] >= 0xa8 && b.ptr[2] <= 0xae) ||
            (b.ptr[1] == 0x81 && b.ptr[2] >= 0xa6 && b.ptr[2] <= 0xa9));
}

void buf_append_escaped(struct buf *b, struct bytes text)
{
    while (text.len > 0) {
        size_t n = bytes_utf8_len(text);
        bool plain =
            n > 0 && !is_control(text) && !is_turning(text) && text.ptr[0] != '\\';

        if (n == 0)
            n = 1;
        if (plain)
            buf_append(b, bytes_of(text.ptr, n));
        for (size_t i = 0; i < n && !plain; i++)
            append_escaped_byte(b, text.ptr[i]);
        text = skip(text, n);
    }
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->failed = false;
}

void buf_release(struct buf *b)
{
    if (!b->arena)
        free(b->ptr);
    *b = (struct buf){ 0 };
}
