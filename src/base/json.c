#include "base/json.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/json_text.h"

/* Runs before Jansson, over the bytes alone, and refuses what Jansson cannot be trusted
 * with: it parses by recursion, and it overlooks a NUL behind a number.  Both agree
 * about what is a bracket up to the first place that Jansson refuses. */
static belay_rc check_text(struct bytes text, struct belay_error *err)
{
    size_t depth = 0, line = 1, column = 0;
    bool in_string = false, escaped = false;

    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        column += (c & 0xc0) != 0x80; /* columns are characters, not bytes */
        if (c == '\n') {
            line++;
            column = 0;
        } else if (c == '\0') {
            return err_set(err, BELAY_INVALID, "JSON: line %zu column %zu: a NUL byte",
                           line, column);
        } else if (in_string) {
            in_string = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            depth++;
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        }
        if (depth > JSON_DEPTH_MAX)
            return err_set(err, BELAY_INVALID,
                           "JSON: line %zu column %zu: nested deeper than %d", line,
                           column, JSON_DEPTH_MAX);
    }
    return BELAY_OK;
}

/* Jansson's own message quotes the input, which may be a secret. */
static const char *what_is_wrong(enum json_error_code code)
{
    static const struct {
        enum json_error_code code;
        const char *what;
    } known[] = {
        { json_error_premature_end_of_input, "the text ends too early" },
        { json_error_end_of_input_expected, "something follows the value" },
        { json_error_invalid_utf8, "bytes that are not UTF-8" },
        { json_error_null_character, "U+0000 in a string" },
        { json_error_null_byte_in_key, "U+0000 in a key" },
        { json_error_duplicate_key, "a key that the object has already" },
        { json_error_numeric_overflow, "a number that is too large" },
    };

    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (known[i].code == code)
            return known[i].what;
    }
    return "no JSON";
}

static belay_rc parse_failed(const json_error_t *e, struct belay_error *err)
{
    /* Some failures to get memory set no message at all. */
    if (e->text[0] == '\0' || json_error_code(e) == json_error_out_of_memory)
        return err_no_memory(err, "JSON");
    return err_set(err, BELAY_INVALID, "JSON: line %d column %d: %s", e->line,
                   e->column, what_is_wrong(json_error_code(e)));
}

/* In the C locale: Jansson aborts on a real where the program's locale has a decimal
 * point of more than one byte. */
static json_t *load(struct bytes text, json_error_t *e)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return NULL;

    locale_t callers = uselocale(c);
    json_t *value = json_loadb(text.len > 0 ? (const char *)text.ptr : "", text.len,
                               JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, e);
    uselocale(callers);
    freelocale(c);
    return value;
}

belay_rc json_read(struct bytes text, size_t max_len, json_t **out,
                   struct belay_error *err)
{
    if (text.len > max_len) {
        (void)err_reason(err, BELAY_INVALID, "too_large",
                         "JSON: %zu bytes, at most %zu are allowed", text.len, max_len);
        err_numbers(err, (int64_t)max_len, (int64_t)text.len);
        return BELAY_INVALID;
    }
    belay_rc rc = check_text(text, err);
    if (rc != BELAY_OK)
        return rc;

    json_error_t e = { 0 };
    json_t *value = load(text, &e);
    if (!value)
        return parse_failed(&e, err);
    *out = value;
    return BELAY_OK;
}

static void append_escape(struct buf *out, uint8_t c)
{
    switch (c) {
    case '"':
        buf_append_str(out, "\\\"");
        break;
    case '\\':
        buf_append_str(out, "\\\\");
        break;
    case '\b':
        buf_append_str(out, "\\b");
        break;
    case '\t':
        buf_append_str(out, "\\t");
        break;
    case '\n':
        buf_append_str(out, "\\n");
        break;
    case '\f':
        buf_append_str(out, "\\f");
        break;
    case '\r':
        buf_append_str(out, "\\r");
        break;
    default:
        buf_printf(out, "\\u%04x", c);
        break;
    }
}

/* Whether it is a character by itself, and written as it is. */
static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

void json_append_string(struct buf *out, struct bytes text)
{
    size_t start = 0, at = 0; /* what lies between is written as it is */

    buf_append_char(out, '"');
    while (at < text.len) {
        uint8_t c = text.ptr[at];
        if (is_plain(c)) {
            at++;
            continue;
        }
        size_t n = bytes_utf8_len(bytes_of(text.ptr + at, text.len - at));
        if (n > 1) {
            at += n;
            continue;
        }
        buf_append(out, bytes_of(text.ptr + start, at - start));
        if (n == 0)
            buf_append_str(out, "\xef\xbf\xbd"); /* U+FFFD */
        else
            append_escape(out, c);
        start = ++at;
    }
    if (start < at)
        buf_append(out, bytes_of(text.ptr + start, at - start));
    buf_append_char(out, '"');
}

/* A positive double as 0.DIGITS * 10^point, without zeros at the end of DIGITS. */
struct decimal {
    char digits[17];
    int n_digits;
    int point;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Adds one to the last digit of the mantissa in `text`, "d.ddde+xx".  False when there
 * is no larger number of so many digits with this exponent. */
static bool next_larger(char *text)
{
    for (char *c = strchr(text, 'e'); c-- > text;) {
        if (!is_digit(*c))
            continue;
        if (*c != '9') {
            (*c)++;
            return true;
        }
        *c = '0';
    }
    return false;
}

/* Whatever the locale puts between the digits of "d.ddde+xx" is skipped. */
static struct decimal split(const char *text)
{
    struct decimal d = { 0 };
    const char *c = text;

    for (; *c != 'e'; c++) {
        if (is_digit(*c) && d.n_digits < (int)sizeof(d.digits))
            d.digits[d.n_digits++] = *c;
    }
    while (d.n_digits > 1 && d.digits[d.n_digits - 1] == '0')
        d.n_digits--;
    d.point = (int)strtol(c + 1, NULL, 10) + 1;
    return d;
}

/* snprintf and strtod follow the same locale, so that they understand each other in
 * every one. */
static struct decimal shortest(double value)
{
    /* Any 15 digits survive the way to a normal double and back: what can be said in
     * fewer is found at 15, with zeros behind.  Subnormal doubles hold less. */
    int precision = value < DBL_MIN ? 1 : 15;
    /* Below a power of two the doubles are twice as dense as above, so that the nearest
     * decimal, being below, may miss it while the next larger one does not. */
    int exponent;
    bool power_of_two = frexp(value, &exponent) == 0.5;
    char text[64];

    for (; precision < 17; precision++) {
        (void)snprintf(text, sizeof(text), "%.*e", precision - 1, value);
        if (strtod(text, NULL) == value)
            return split(text);
        if (power_of_two && next_larger(text) && strtod(text, NULL) == value)
            return split(text);
    }
    (void)snprintf(text, sizeof(text), "%.16e", value); /* 17 digits always suffice */
    return split(text);
}

static void append_zeros(struct buf *out, int n)
{
    while (n-- > 0)
        buf_append_char(out, '0');
}

static void append_digits(struct buf *out, const struct decimal *d, int from, int to)
{
    buf_append(out, bytes_of(d->digits + from, (size_t)(to - from)));
}

/* The same choice of form as the `ryu` crate of Rust, so that hashes of the same
 * content made there agree. */
static void write_real(struct buf *out, double value)
{
    if (signbit(value))
        buf_append_char(out, '-');
    if (value == 0) {
        buf_append_str(out, "0.0");
        return;
    }
    struct decimal d = shortest(fabs(value));

    if (d.point > 0 && d.point <= 16 && d.n_digits <= d.point) {
        append_digits(out, &d, 0, d.n_digits);
        append_zeros(out, d.point - d.n_digits);
        buf_append_str(out, ".0");
    } else if (d.point > 0 && d.point <= 16) {
        append_digits(out, &d, 0, d.point);
        buf_append_char(out, '.');
        append_digits(out, &d, d.point, d.n_digits);
    } else if (d.point > -5 && d.point <= 0) {
        buf_append_str(out, "0.");
        append_zeros(out, -d.point);
        append_digits(out, &d, 0, d.n_digits);
    } else {
        append_digits(out, &d, 0, 1);
        if (d.n_digits > 1)
            buf_append_char(out, '.');
        append_digits(out, &d, 1, d.n_digits);
        buf_append_char(out, 'e');
        buf_append_i64(out, d.point - 1);
    }
}

/* A value built in memory may hold what json_read refuses.  Writing it would give two
 * values the same bytes, or bytes that cannot be read back. */
static belay_rc write_string(struct bytes text, struct buf *out,
                             struct belay_error *err)
{
    if (!bytes_is_utf8(text) || (text.len > 0 && memchr(text.ptr, 0, text.len)))
        return err_set(err, BELAY_INVALID,
                       "JSON: a string is not UTF-8 without U+0000");
    json_append_string(out, text);
    return BELAY_OK;
}

static belay_rc write_value(const json_t *value, int depth, struct buf *out,
                            struct belay_error *err);

static belay_rc write_array(const json_t *array, int depth, struct buf *out,
                            struct belay_error *err)
{
    buf_append_char(out, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0)
            buf_append_char(out, ',');
        belay_rc rc = write_value(json_array_get(array, i), depth, out, err);
        if (rc != BELAY_OK)
            return rc;
    }
    buf_append_char(out, ']');
    return BELAY_OK;
}

struct member {
    struct bytes key;
    const json_t *value;
};

static int member_cmp(const void *a, const void *b)
{
    return bytes_cmp(((const struct member *)a)->key, ((const struct member *)b)->key);
}

static void collect(const json_t *object, struct member *out)
{
    json_t *o = (json_t *)object; /* the iterator is read only, but not declared so */

    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at))
        *out++ = (struct member){
            .key = bytes_of(json_object_iter_key(at), json_object_iter_key_len(at)),
            .value = json_object_iter_value(at),
        };
}

static belay_rc write_members(const struct member *members, size_t n, int depth,
                              struct buf *out, struct belay_error *err)
{
    buf_append_char(out, '{');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            buf_append_char(out, ',');
        belay_rc rc = write_string(members[i].key, out, err);
        if (rc != BELAY_OK)
            return rc;
        buf_append_char(out, ':');
        rc = write_value(members[i].value, depth, out, err);
        if (rc != BELAY_OK)
            return rc;
    }
    buf_append_char(out, '}');
    return BELAY_OK;
}

static belay_rc write_object(const json_t *object, int depth, struct buf *out,
                             struct belay_error *err)
{
    size_t n = json_object_size(object);
    struct member *members = calloc(n + 1, sizeof(*members)); /* never of size zero */
    if (!members)
        return err_no_memory(err, "JSON");

    collect(object, members);
    qsort(members, n, sizeof(*members), member_cmp);
    belay_rc rc = write_members(members, n, depth, out, err);
    free(members);
    return rc;
}

static belay_rc write_value(const json_t *value, int depth, struct buf *out,
                            struct belay_error *err)
{
    if ((json_is_array(value) || json_is_object(value)) && ++depth > JSON_DEPTH_MAX)
        return err_set(err, BELAY_INVALID, "JSON: nested deeper than %d",
                       JSON_DEPTH_MAX);

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return write_object(value, depth, out, err);
    case JSON_ARRAY:
        return write_array(value, depth, out, err);
    case JSON_STRING:
        return write_string(
            bytes_of(json_string_value(value), json_string_length(value)), out, err);
    case JSON_INTEGER:
        buf_append_i64(out, json_integer_value(value));
        return BELAY_OK;
    case JSON_REAL:
        write_real(out, json_real_value(value));
        return BELAY_OK;
    case JSON_TRUE:
        buf_append_str(out, "true");
        return BELAY_OK;
    case JSON_FALSE:
        buf_append_str(out, "false");
        return BELAY_OK;
    case JSON_NULL:
        buf_append_str(out, "null");
        return BELAY_OK;
    }
    return err_set(err, BELAY_CORRUPT, "JSON: a value of no type");
}

belay_rc json_write(const json_t *value, struct buf *out, struct belay_error *err)
{
    size_t start = out->len;

    belay_rc rc = write_value(value, 0, out, err);
    if (rc == BELAY_OK && out->failed)
        rc = err_no_memory(err, "JSON");
    if (rc != BELAY_OK)
        out->len = start;
    return rc;
}

static bool is_canonical(struct bytes text)
{
    struct json_text in = json_text_of(text);

    return json_skip(&in, JSON_DEPTH_MAX) && in.at == in.end && in.plain &&
           bytes_is_utf8(text);
}

belay_rc json_canonical(struct bytes text, size_t max_len, struct buf *out,
                        struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *value = NULL;

    if (text.len <= max_len && is_canonical(text)) {
        buf_append(out, text);
        return out->failed ? err_no_memory(err, "JSON") : BELAY_OK;
    }
    belay_rc rc = json_read(text, max_len, &value, err);
    return rc == BELAY_OK && value ? json_write(value, out, err) : rc;
}

belay_rc json_hash(const json_t *value, uint8_t out[32], struct belay_error *err)
{
    struct buf text CLEANUP(buf_release) = { 0 };

    belay_rc rc = json_write(value, &text, err);
    if (rc != BELAY_OK)
        return rc;
    return sha256(buf_view(&text), out, err);
}
