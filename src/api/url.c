#include "api/url.h"

#include <sys/types.h>

#define SCHEME_MAX 32

static belay_rc bad_url(struct belay_error *err, const char *why)
{
    return err_reason(err, BELAY_INVALID, "url", "store URL: %s", why);
}

/* What must be said about an option whose name may be told. */
static belay_rc bad_option(struct belay_error *err, struct bytes name, const char *why)
{
    (void)err_reason(err, BELAY_INVALID, "option", "store URL: option %.*s: %s",
                     (int)name.len, (const char *)name.ptr, why);
    err_entity(err, name);
    return BELAY_INVALID;
}

static struct bytes skip(struct bytes b, size_t n)
{
    return bytes_of(b.ptr + n, b.len - n);
}

/* Cuts at the first `c`: what is before it in *head, true and what is behind it in
 * *tail when there is one. */
static bool cut(struct bytes b, char c, struct bytes *head, struct bytes *tail)
{
    const uint8_t *at = b.len > 0 ? memchr(b.ptr, c, b.len) : NULL;
    if (!at) {
        *head = b;
        *tail = bytes_of(NULL, 0);
        return false;
    }
    size_t n = (size_t)(at - b.ptr);
    *head = bytes_of(b.ptr, n);
    *tail = skip(b, n + 1);
    return true;
}

static bool has(struct bytes b, char c)
{
    return b.len > 0 && memchr(b.ptr, c, b.len);
}

static bool is_lower(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(uint8_t c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The number of bytes decoded into `out`, or -1 for a malformed escape. */
static ssize_t decode(struct bytes text, uint8_t *out)
{
    ssize_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c == '%') {
            if (text.len - i < 3)
                return -1;
            int high = hex_digit(text.ptr[i + 1]), low = hex_digit(text.ptr[i + 2]);
            if (high < 0 || low < 0)
                return -1;
            c = (uint8_t)(high * 16 + low);
            i += 2;
        }
        out[n++] = c;
    }
    return n;
}

belay_rc url_decode(struct bytes text, struct belay_arena *a, struct bytes *out,
                    struct belay_error *err)
{
    uint8_t *decoded = arena_alloc(a, text.len + 1);
    if (!decoded)
        return err_no_memory(err, "the store URL");

    ssize_t n = decode(text, decoded);
    if (n < 0 || (n > 0 && !bytes_is_id(bytes_of(decoded, (size_t)n), (size_t)n)))
        return bad_url(err, "is no percent-encoded UTF-8 without control characters");
    decoded[n] = '\0';
    *out = bytes_of(decoded, (size_t)n);
    return BELAY_OK;
}

/* RFC 3986: a letter, then letters, digits, plus, minus and dot; in either case. */
static belay_rc read_scheme(struct bytes text, struct belay_arena *a, struct bytes *out,
                            struct belay_error *err)
{
    static const char missing[] =
        "does not begin with a scheme, such as sqlite:PATH or memory:";
    uint8_t lower[SCHEME_MAX];

    if (text.len == 0 || text.len > sizeof(lower))
        return bad_url(err, missing);
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c >= 'A' && c <= 'Z')
            c = (uint8_t)(c - 'A' + 'a');
        bool inner = is_digit(c) || c == '+' || c == '-' || c == '.';
        if (!is_lower(c) && !(inner && i > 0))
            return bad_url(err, missing);
        lower[i] = c;
    }
    if (!arena_copy(a, bytes_of(lower, text.len), out))
        return err_no_memory(err, "the store URL");
    return BELAY_OK;
}

static bool is_option_name(struct bytes name)
{
    if (name.len == 0 || name.len > 32 || !is_lower(name.ptr[0]))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        if (!is_lower(c) && !is_digit(c) && c != '_')
            return false;
    }
    return true;
}

static belay_rc read_option(struct bytes text, struct belay_arena *a, struct url *out,
                            struct belay_error *err)
{
    struct bytes name, raw, value;
    bool has_value = cut(text, '=', &name, &raw);

    if (text.len == 0)
        return bad_url(err, "an option is empty");
    if (!is_option_name(name))
        return bad_url(err, "the name of an option is not a word of a-z, 0-9 and _");
    if (!has_value)
        return bad_option(err, name, "has no value");
    belay_rc rc = url_decode(raw, a, &value, err);
    if (rc == BELAY_INVALID)
        return bad_option(err, name,
                          "its value is no percent-encoded UTF-8 without control "
                          "characters");
    if (rc != BELAY_OK)
        return rc;
    for (size_t i = 0; i < out->n_options; i++) {
        if (bytes_eq(out->options[i].name, name))
            return bad_option(err, name, "is given twice");
    }
    if (out->n_options == URL_OPTIONS_MAX)
        return bad_url(err, "has too many options");
    out->options[out->n_options++] =
        (struct url_option){ .name = name, .value = value };
    return BELAY_OK;
}

static belay_rc read_query(struct bytes query, struct belay_arena *a, struct url *out,
                           struct belay_error *err)
{
    bool more = query.len > 0;

    if (has(query, '@')) /* U2 */
        return bad_url(err, "an @ or ? in a user name or password must be written "
                            "%40 or %3F");
    while (more) {
        struct bytes text;
        more = cut(query, '&', &text, &query);
        belay_rc rc = read_option(text, a, out, err);
        if (rc != BELAY_OK)
            return rc;
    }
    return BELAY_OK;
}

belay_rc url_parse(struct bytes text, struct belay_arena *a, struct url *out,
                   struct belay_error *err)
{
    struct url u = { 0 };
    struct bytes scheme, rest, query;

    if (text.len == 0)
        return bad_url(err, "is empty");
    if (text.len > URL_MAX)
        return bad_url(err, "is longer than 4096 bytes");
    if (!bytes_is_id(text, URL_MAX))
        return bad_url(err, "is not UTF-8 without control characters");
    if (!cut(text, ':', &scheme, &rest))
        scheme = bytes_of(NULL, 0);
    belay_rc rc = read_scheme(scheme, a, &u.scheme, err);
    if (rc != BELAY_OK)
        return rc;
    if (has(rest, '#'))
        return bad_url(err, "a # must be written %23");
    (void)cut(rest, '?', &u.rest, &query);

    rc = read_query(query, a, &u, err);
    if (rc != BELAY_OK)
        return rc;
    *out = u;
    return BELAY_OK;
}
