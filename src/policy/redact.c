#include "policy/redact.h"

#define KID_MAX 64

/* Text that is cut where it does not fit, and counted in full. */
struct cut {
    char *at;
    size_t cap, len;
};

static void add(struct cut *to, struct bytes more)
{
    for (size_t i = 0; i < more.len; i++, to->len++) {
        if (to->len + 1 < to->cap)
            to->at[to->len] = (char)more.ptr[i];
    }
}

static size_t end(struct cut *to)
{
    if (to->cap > 0)
        to->at[to->len < to->cap ? to->len : to->cap - 1] = '\0';
    return to->len;
}

/* A key's id is no secret; what does not look like one may be. */
static bool is_kid(struct bytes kid)
{
    if (kid.len == 0 || kid.len > KID_MAX)
        return false;
    for (size_t i = 0; i < kid.len; i++) {
        if (kid.ptr[i] <= 0x20 || kid.ptr[i] >= 0x7f)
            return false;
    }
    return true;
}

size_t redact_token(struct bytes token, char *out, size_t cap)
{
    struct cut to = { .at = out, .cap = cap };
    const uint8_t *colon = token.len > 0 ? memchr(token.ptr, ':', token.len) : NULL;
    size_t kid_len = colon ? (size_t)(colon - token.ptr) : 0;
    char digits[I64_TEXT_MAX];

    if (!is_kid(bytes_of(token.ptr, kid_len)) || kid_len + 1 == token.len) {
        add(&to, bytes_str("<REDACTED:malformed>"));
        return end(&to);
    }
    size_t n = bytes_put_i64(digits, (int64_t)(token.len - kid_len - 1));
    add(&to, bytes_of(token.ptr, kid_len));
    add(&to, bytes_str(":<REDACTED:len="));
    add(&to, bytes_of(digits, n));
    add(&to, bytes_str(">"));
    return end(&to);
}
