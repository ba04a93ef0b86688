#include "base/json.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/rng.h"
#include "tap.h"

#define MAX_LEN ((size_t)1 << 20)

/* A string literal as a view, with any NUL inside it. */
#define LIT(text)                                 \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

static void decref(json_t **value)
{
    json_decref(*value);
}

static bool buf_is(struct tap *t, const struct buf *b, const char *want)
{
    bool same = TAP_OK(t, bytes_eq(buf_view(b), bytes_str(want)));
    if (!same)
        printf("# \"%.*s\", not \"%s\"\n", (int)b->len, (const char *)b->ptr, want);
    return same;
}

/* clang-format off */
static const struct {
    const char *text, *want;
} canonical_rows[] = {
    { "null",                               "null" },
    { " true ",                             "true" },
    { "false\n",                            "false" },
    { "\"\"",                               "\"\"" },
    { "[]",                                 "[]" },
    { "{}",                                 "{}" },
    { "[ 1 , 2 ]",                          "[1,2]" },
    { "{\"b\":1,\"a\":2}",                  "{\"a\":2,\"b\":1}" },
    { "{\"b\":{\"d\":1,\"c\":2},\"a\":[{\"z\":1,\"y\":2}]}",
      "{\"a\":[{\"y\":2,\"z\":1}],\"b\":{\"c\":2,\"d\":1}}" },
    { "{\"a\":1,\"\":2,\"aa\":3,\"B\":4}",  "{\"\":2,\"B\":4,\"a\":1,\"aa\":3}" },
    /* U+FF5E sorts below U+1F600 bytewise; in UTF-16 it would not. */
    { "{\"\\ud83d\\ude00\":1,\"\\uff5e\":2}", "{\"\xef\xbd\x9e\":2,\"\xf0\x9f\x98\x80\":1}" },
    { "{\"\xc3\xa9\":1,\"z\":2}",           "{\"z\":2,\"\xc3\xa9\":1}" },
    { "\"\\u00e9\\u20ac\\ud83d\\ude00\"",   "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
    { "\"\\b\\t\\n\\f\\r\\\"\\\\\\/\"",     "\"\\b\\t\\n\\f\\r\\\"\\\\/\"" },
    { "\"\\u0001\\u001F\\u0020\"",          "\"\\u0001\\u001f \"" },
    { "\"\x7f\\u0080\\u2028\"",             "\"\x7f\xc2\x80\xe2\x80\xa8\"" },
    { "{\"\\n\":1}",                        "{\"\\n\":1}" },
    { "0",                                  "0" },
    { "-0",                                 "0" },
    { "-1",                                 "-1" },
    { "9223372036854775807",                "9223372036854775807" },
    { "-9223372036854775808",               "-9223372036854775808" },
    { "1.0",                                "1.0" },
    { "1e3",                                "1000.0" },
    { "1E+3",                               "1000.0" },
    { "-0.0",                               "-0.0" },
    { "0.0",                                "0.0" },
    { "0e10",                               "0.0" },
    { "1e-400",                             "0.0" },
    { "0.1",                                "0.1" },
    { "0.10000000000000001",                "0.1" },
    { "0.3",                                "0.3" },
    { "0.30000000000000004",                "0.30000000000000004" },
    { "12.5",                               "12.5" },
    { "-12.5e-1",                           "-1.25" },
    { "1e15",                               "1000000000000000.0" },
    { "1e16",                               "1e16" },
    { "1e21",                               "1e21" },
    { "1.5e300",                            "1.5e300" },
    { "123456789012345.6",                  "123456789012345.6" },
    { "1234567890123456.0",                 "1234567890123456.0" },
    { "12345678901234567.0",                "1.2345678901234568e16" },
    { "9007199254740993.0",                 "9007199254740992.0" },
    { "0.001",                              "0.001" },
    { "0.0001",                             "0.0001" },
    { "0.00001",                            "0.00001" },
    { "0.000012345",                        "0.000012345" },
    { "0.000001",                           "1e-6" },
    { "0.00000015",                         "1.5e-7" },
    { "1.7976931348623157e308",             "1.7976931348623157e308" },
    { "2.2250738585072014e-308",            "2.2250738585072014e-308" },
    { "2.225073858507201e-308",             "2.225073858507201e-308" },
    { "5e-324",                             "5e-324" },
    { "4.9406564584124654e-324",            "5e-324" },
    { "1.5e-323",                           "1.5e-323" },
    /* 2^-44: no 16 digits are nearer than 5.684341886080801e-14, which is another double. */
    { "5.6843418860808015e-14",             "5.684341886080802e-14" },
    { "9.5367431640625e-7",                 "9.5367431640625e-7" },
};
/* clang-format on */

static void test_canonical(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(canonical_rows); i++) {
        json_t *value CLEANUP(decref) = NULL;
        struct buf out CLEANUP(buf_release) = { 0 };
        struct belay_error e = { 0 };

        belay_rc rc = json_read(bytes_str(canonical_rows[i].text), MAX_LEN, &value, &e);
        if (!TAP_EQ(t, rc, BELAY_OK)) {
            printf("# %s: %s\n", canonical_rows[i].text, e.message);
            continue;
        }
        TAP_EQ(t, json_write(value, &out, &e), BELAY_OK);
        buf_is(t, &out, canonical_rows[i].want);

        /* What was written reads back, and is written the same. */
        json_t *again CLEANUP(decref) = NULL;
        struct buf twice CLEANUP(buf_release) = { 0 };
        TAP_EQ(t, json_read(buf_view(&out), MAX_LEN, &again, &e), BELAY_OK);
        TAP_EQ(t, json_write(again, &twice, &e), BELAY_OK);
        TAP_OK(t, bytes_eq(buf_view(&out), buf_view(&twice)));
    }
}

/* clang-format off */
static const struct bytes refused[] = {
    /* not one whole value */
    LIT(""), LIT(" \n"), LIT("\xef\xbb\xbf{}"), LIT("{} x"), LIT("1 2"), LIT("[1,]"),
    LIT("{\"a\":1,}"), LIT("[1"), LIT("[1]]"), LIT("[1}"), LIT("\"abc"), LIT("\"abc\\"),
    LIT("{1:2}"), LIT("{\"a\"}"), LIT("/* */ 1"), LIT("'a'"), LIT("True"), LIT("tru"),
    LIT("{\"token\":hunter2}"), LIT("\"hunter2"), LIT("{} hunter2"), LIT("\"hunter2\\q\""),
    /* NUL bytes, and control characters in strings */
    LIT("1\0"), LIT("[1\0,2]"), LIT("[1,\0 2]"), LIT("\"a\0b\""), LIT("\"a\nb\""),
    /* escapes: unknown, cut, U+0000, surrogates without their other half */
    LIT("\"\\x41\""), LIT("\"\\u00\""), LIT("\"\\u0000\""), LIT("[\"a\\u0000b\"]"),
    LIT("{\"a\\u0000b\":1}"), LIT("\"\\ud800\""), LIT("\"\\udc00\""),
    LIT("\"\\udc00\\ud800\""), LIT("\"\\ud800\\u0061\""),
    /* duplicate keys: plain, deep, and hidden by an escape */
    LIT("{\"a\":1,\"a\":1}"), LIT("[{\"x\":{\"a\":1,\"b\":2,\"a\":3}}]"),
    LIT("{\"a\":1,\"\\u0061\":2}"), LIT("{\"hunter2\":1,\"hunter2\":2}"),
    /* numbers: out of range, then malformed */
    LIT("9223372036854775808"), LIT("-9223372036854775809"), LIT("1e400"), LIT("-1e400"),
    LIT("100000000000000000000000000000"), LIT("01"), LIT("+1"), LIT("1."), LIT(".5"),
    LIT("1e"), LIT("-"), LIT("0x10"), LIT("NaN"), LIT("-Infinity"),
    /* not UTF-8: truncated, overlong, a surrogate, above U+10FFFF, in keys and outside */
    LIT("\"\xe2\x82\""), LIT("\"\xe2\x82"), LIT("\"\xc0\x80\""), LIT("\"\xed\xa0\x80\""),
    LIT("\"\xf4\x90\x80\x80\""), LIT("\"\xff\""), LIT("{\"\xff\":1}"), LIT("[1,\xff]"), LIT("\"hunter2\xff\""),
};
/* clang-format on */

static void test_refused(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        json_t *poison = (json_t *)&i, *value = poison;
        struct belay_error e = { 0 };
        /* A copy without a byte behind it: reading further is caught. */
        uint8_t *copy = calloc(1, refused[i].len + 1);
        if (!TAP_OK(t, copy))
            return;
        memcpy(copy + 1, refused[i].ptr, refused[i].len);

        belay_rc rc =
            json_read(bytes_of(copy + 1, refused[i].len), MAX_LEN, &value, &e);
        TAP_OK(t, value == poison);
        if (!TAP_EQ(t, rc, BELAY_INVALID))
            printf("# row %zu: %.*s\n", i, (int)refused[i].len,
                   (const char *)refused[i].ptr);
        TAP_EQ(t, e.code, BELAY_INVALID);
        TAP_STR(t, e.reason, "");
        TAP_OK(t, strstr(e.message, "line ") && strstr(e.message, "column "));
        TAP_OK(t, !strstr(e.message, "hunter") && !strchr(e.message, '\''));
        TAP_OK(t, bytes_is_id(bytes_str(e.message), sizeof(e.message))); /* one line */
        TAP_EQ(t, json_read(refused[i], MAX_LEN, &value, NULL), BELAY_INVALID);
        free(copy);
    }
    json_t *value = NULL;
    TAP_EQ(t, json_read(bytes_of(NULL, 0), MAX_LEN, &value, NULL), BELAY_INVALID);
}

static void test_position(struct tap *t)
{
    json_t *value = NULL;
    struct belay_error e = { 0 };

    TAP_EQ(t, json_read(bytes_str("{\n  \"a\": x\n}"), MAX_LEN, &value, &e),
           BELAY_INVALID);
    TAP_OK(t, strstr(e.message, "line 2 column 8"));

    char deep[] = "[\"\xc3\xa9\\\"[\",\n [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";
    TAP_EQ(t, json_read(bytes_str(deep), MAX_LEN, &value, &e), BELAY_INVALID);
    TAP_OK(t, strstr(e.message, "line 2 column 33"));

    /* A column is a character: seven before the comma, of eight bytes. */
    deep[9] = ' ';
    TAP_EQ(t, json_read(bytes_str(deep), MAX_LEN, &value, &e), BELAY_INVALID);
    TAP_OK(t, strstr(e.message, "line 1 column 42"));
}

static void test_too_large(struct tap *t)
{
    json_t *value CLEANUP(decref) = NULL;
    struct belay_error e = { 0 };

    TAP_EQ(t, json_read(bytes_str("[12]"), 3, &value, &e), BELAY_INVALID);
    TAP_STR(t, e.reason, "too_large");
    TAP_EQ(t, e.expected, 3);
    TAP_EQ(t, e.actual, 4);
    TAP_EQ(t, belay_error_http_status(&e), 413);
    TAP_OK(t, !value);
    TAP_EQ(t, json_read(bytes_str("[12]"), 3, &value, NULL), BELAY_INVALID);
    TAP_EQ(t, json_read(bytes_str("[12]"), 4, &value, &e), BELAY_OK);
}

/* n times `open`, then `middle`, then n times `close`. */
static void append_nested(struct buf *b, int n, const char *open, const char *middle,
                          const char *close)
{
    for (int i = 0; i < n; i++)
        buf_append_str(b, open);
    buf_append_str(b, middle);
    for (int i = 0; i < n; i++)
        buf_append_str(b, close);
}

static void test_depth(struct tap *t)
{
    static const struct {
        const char *open, *middle, *close;
    } kinds[] = { { "[", "", "]" }, { "{\"a\":", "1", "}" }, { "[", "\"[[{{\"", "]" } };
    static const int depths[] = { 0, 1, 31, 32, 33, 34, 1000, 100000 };

    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        for (size_t i = 0; i < COUNT_OF(depths); i++) {
            struct buf text CLEANUP(buf_release) = { 0 };
            json_t *value CLEANUP(decref) = NULL;
            bool empty = depths[i] == 0 && kinds[k].middle[0] == '\0';

            append_nested(&text, depths[i], kinds[k].open, kinds[k].middle,
                          kinds[k].close);
            belay_rc rc = json_read(buf_view(&text), MAX_LEN, &value, NULL);
            TAP_EQ(t, rc, depths[i] > 32 || empty ? BELAY_INVALID : BELAY_OK);
        }
    }
}

/* Brackets side by side are not deep, and closing ones cannot pay for opening ones. */
static void test_width(struct tap *t)
{
    struct buf text CLEANUP(buf_release) = { 0 };
    json_t *value CLEANUP(decref) = NULL;

    buf_append_str(&text, "[[]");
    for (int i = 0; i < 10000; i++)
        buf_append_str(&text, ",[{}]");
    buf_append_str(&text, "]");
    TAP_EQ(t, json_read(buf_view(&text), MAX_LEN, &value, NULL), BELAY_OK);

    buf_reset(&text);
    append_nested(&text, 1000, "]", "", "[");
    json_t *none = NULL;
    TAP_EQ(t, json_read(buf_view(&text), MAX_LEN, &none, NULL), BELAY_INVALID);
}

/* Arrays n deep, built in memory. */
static json_t *nest(int n)
{
    json_t *value = json_array();

    for (int i = 1; i < n; i++) {
        json_t *outer = json_array();
        json_array_append_new(outer, value);
        value = outer;
    }
    return value;
}

static void test_write_depth(struct tap *t)
{
    struct buf out CLEANUP(buf_release) = { 0 };
    struct belay_error e = { 0 };
    uint8_t digest[32], poison[32];
    json_t *fits CLEANUP(decref) = nest(32);
    json_t *too_deep CLEANUP(decref) = nest(33);

    TAP_EQ(t, json_write(fits, &out, &e), BELAY_OK);
    TAP_EQ(t, out.len, 64);
    TAP_EQ(t, json_write(too_deep, &out, &e), BELAY_INVALID);
    TAP_EQ(t, e.code, BELAY_INVALID);
    TAP_EQ(t, out.len, 64); /* what was there stays, nothing is added */

    memset(poison, 0x5a, sizeof(poison));
    memcpy(digest, poison, sizeof(digest));
    TAP_EQ(t, json_hash(too_deep, digest, &e), BELAY_INVALID);
    TAP_OK(t, memcmp(digest, poison, sizeof(digest)) == 0);

    json_t *ring = json_object(), *half = json_object();
    json_object_set_new(ring, "half", half);
    json_object_set(half, "ring", ring);
    TAP_EQ(t, json_write(ring, &out, &e), BELAY_INVALID);
    json_object_clear(half);
    json_decref(ring);
}

static void test_write_strings(struct tap *t)
{
    static const struct bytes bad[] = { LIT("a\0b"), LIT("\0"), LIT("\xff"),
                                        LIT("\xed\xa0\x80"), LIT("\xe2\x82") };

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct buf out CLEANUP(buf_release) = { 0 };
        json_t *text CLEANUP(decref) =
            json_stringn_nocheck((const char *)bad[i].ptr, bad[i].len);
        json_t *object CLEANUP(decref) = json_object();

        json_object_setn_new_nocheck(object, (const char *)bad[i].ptr, bad[i].len,
                                     json_true());
        TAP_EQ(t, json_write(text, &out, NULL), BELAY_INVALID);
        TAP_EQ(t, json_write(object, &out, NULL), BELAY_INVALID);
        TAP_EQ(t, out.len, 0);
    }
}

static void test_write_no_memory(struct tap *t)
{
    struct buf out CLEANUP(buf_release) = { 0 };
    struct belay_error e = { 0 };
    json_t *value CLEANUP(decref) = json_object();

    buf_append_str(&out, "kept");
    out.failed = true;
    TAP_EQ(t, json_write(value, &out, &e), BELAY_NO_MEMORY);
    TAP_EQ(t, e.code, BELAY_NO_MEMORY);
    TAP_OK(t, out.failed);
    buf_is(t, &out, "kept");
}

static void test_appends(struct tap *t)
{
    struct buf out CLEANUP(buf_release) = { 0 };
    json_t *value CLEANUP(decref) = json_pack("{s:[i,b,n]}", "k", 1, 1);

    buf_append_str(&out, "x=");
    TAP_EQ(t, json_write(value, &out, NULL), BELAY_OK);
    buf_is(t, &out, "x={\"k\":[1,true,null]}");
}

/* The n-th allocation of Jansson from here on fails; negative is never. */
static int left = -1;

static void *counted_malloc(size_t n)
{
    if (left >= 0 && left-- == 0)
        return NULL;
    return malloc(n);
}

static void test_read_no_memory(struct tap *t)
{
    static const char text[] =
        "{\"one\":[1,2.5,\"text "
        "\\u00e9\",true],\"two\":{\"three\":null},\"4\":4,\"5\":5,"
        "\"6\":6,\"7\":7,\"8\":8,\"9\":[[],[],[],[],[],[],[],[],[],[],[],[]]}";
    unsigned failures = 0;

    json_set_alloc_funcs(counted_malloc, free);
    for (int n = 0;; n++) {
        json_t *poison = (json_t *)&n, *value = poison;
        left = n;
        belay_rc rc = json_read(bytes_str(text), MAX_LEN, &value, NULL);
        left = -1;
        if (rc == BELAY_OK) {
            json_decref(value);
            break;
        }
        failures++;
        TAP_OK(t, value == poison);
    }
    TAP_OK(t, failures > 20);
    json_set_alloc_funcs(malloc, free);
}

/* clang-format off */
static const struct {
    const char *name, *text, *want;
} golden[] = {
    { "event payload hash", "[\"producer.line\",{\"line\":\"one\"}]",
      "7fa737b1f08a2fc7a1677d54247c4c15e17d9e7ea3509cd4f7b0c1f4571a4377" },
    { "cancel payload hash", "[\"process.cancel_requested\",{\"reason\":\"stop\"}]",
      "85a6238fa9840bc3105d1a06ca03df61803080fefa838ab687d36662275be019" },
    { "wake id", "[\"session:root\",\"proc-1:1\"]",
      "8e69be88e3c5fd0e4707467e95a433ebfaad03087348117300740fc8cdd0ef32" },
};
/* clang-format on */

static void test_golden(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(golden); i++) {
        json_t *value CLEANUP(decref) = NULL;
        uint8_t digest[32] = { 0 };
        char hex[SHA256_HEX_LEN + 1];

        TAP_EQ(t, json_read(bytes_str(golden[i].text), MAX_LEN, &value, NULL),
               BELAY_OK);
        TAP_EQ(t, json_hash(value, digest, NULL), BELAY_OK);
        hex_encode(bytes_of(digest, sizeof(digest)), hex);
        if (!TAP_STR(t, hex, golden[i].want))
            printf("# %s\n", golden[i].name);
    }
}

static void test_equal_hash(struct tap *t)
{
    static const char *const same[] = {
        "{\"a\":[1,0.5],\"b\":{\"c\":\"x\",\"d\":null}}",
        " { \"b\" : { \"d\" : null , \"c\" : \"\\u0078\" } , \"a\" : [ 1 , 5e-1 ] } ",
    };
    uint8_t digests[2][32] = { { 0 } };

    for (size_t i = 0; i < COUNT_OF(same); i++) {
        json_t *value CLEANUP(decref) = NULL;
        TAP_EQ(t, json_read(bytes_str(same[i]), MAX_LEN, &value, NULL), BELAY_OK);
        TAP_EQ(t, json_hash(value, digests[i], NULL), BELAY_OK);
    }
    TAP_OK(t, memcmp(digests[0], digests[1], 32) == 0);
}

static void test_many_keys(struct tap *t)
{
    json_t *object CLEANUP(decref) = json_object();
    struct buf out CLEANUP(buf_release) = { 0 };
    char key[16], last[16] = "";
    struct rng r;

    rng_init(&r, 3);
    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof(key), "%08" PRIx64, rng_below(&r, 1000000));
        json_object_set_new(object, key, json_null());
    }
    TAP_EQ(t, json_write(object, &out, NULL), BELAY_OK);
    TAP_EQ(t, out.len, json_object_size(object) * 16 + 1);
    unsigned unsorted = 0;
    for (size_t i = 0; i < json_object_size(object); i++) {
        memcpy(key, out.ptr + 2 + i * 16, 8);
        key[8] = '\0';
        unsorted += strcmp(last, key) >= 0;
        memcpy(last, key, sizeof(last));
    }
    TAP_EQ(t, unsorted, 0);
}

/* Whether some decimal of n digits is read as `value`. */
static bool fits_in(double value, int n)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%.*e", n - 1, value);
    return strtod(text, NULL) == value;
}

static int count_digits(struct bytes text)
{
    int n = 0, zeros = 0;

    for (size_t i = 0; i < text.len && text.ptr[i] != 'e'; i++) {
        uint8_t c = text.ptr[i];
        if (c < '0' || c > '9' || (c == '0' && n == 0))
            continue;
        n++;
        zeros = c == '0' ? zeros + 1 : 0;
    }
    return n - zeros;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* 0 when the canonical text of `value` is a real that reads back to the same bits and
 * could not be shorter. */
static unsigned check_real(double value, struct buf *out)
{
    json_t *real CLEANUP(decref) = json_real(value);
    json_t *again CLEANUP(decref) = NULL;

    buf_reset(out);
    if (json_write(real, out, NULL) != BELAY_OK ||
        json_read(buf_view(out), MAX_LEN, &again, NULL) != BELAY_OK)
        return 1;
    if (!json_is_real(again))
        return 1;
    if (bits_of(json_real_value(again)) != bits_of(value))
        return 1;
    int n = count_digits(buf_view(out));
    return n > 1 && fits_in(value, n - 1);
}

static void test_random_reals(struct tap *t)
{
    struct buf out CLEANUP(buf_release) = { 0 };
    unsigned wrong = 0;
    struct rng r;

    rng_init(&r, 4);
    for (unsigned i = 0; i < 100000; i++) {
        double value = double_of(rng_next(&r));
        if (isfinite(value))
            wrong += check_real(value, &out);
        /* Short decimals, as people write them. */
        value = (double)rng_below(&r, 1000000) / 1000;
        wrong += check_real(value, &out);
    }
    for (uint64_t e = 0; e < 2047; e++) { /* powers of two and their neighbours */
        for (uint64_t near = 0; near < 3; near++) {
            double value = double_of((e << 52) + near - 1);
            if (isfinite(value))
                wrong += check_real(value, &out);
        }
    }
    for (int e = -1074; e < -1022; e++) /* those that are subnormal */
        wrong += check_real(ldexp(1, e), &out);
    TAP_EQ(t, wrong, 0);
}

/* Only where a locale with a decimal comma is installed does this say anything. */
static void test_locale(struct tap *t)
{
    static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8" };

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!setlocale(LC_ALL, names[i]))
            continue;
        test_canonical(t);
        test_random_reals(t);
    }
    (void)setlocale(LC_ALL, "C");
}

/* clang-format off */
static const struct {
    struct bytes text;
    const char *want;
} string_rows[] = {
    { LIT(""),                      "\"\"" },
    { LIT("abc"),                   "\"abc\"" },
    { LIT("a\"b\\c/d"),             "\"a\\\"b\\\\c/d\"" },
    { LIT("\b\t\n\f\r"),            "\"\\b\\t\\n\\f\\r\"" },
    { LIT("\0\x01\x0b\x1f\x7f"),    "\"\\u0000\\u0001\\u000b\\u001f\x7f\"" },
    { LIT("\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\"" },
    { LIT("\xff"),                  "\"\xef\xbf\xbd\"" },
    { LIT("a\xc3"),                 "\"a\xef\xbf\xbd\"" },
    { LIT("\xe2\x82z"),             "\"\xef\xbf\xbd\xef\xbf\xbdz\"" },
    { LIT("\xc0\x80"),              "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
};
/* clang-format on */

static void test_append_string(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(string_rows); i++) {
        struct buf out CLEANUP(buf_release) = { 0 };
        json_append_string(&out, string_rows[i].text);
        buf_is(t, &out, string_rows[i].want);
    }
    struct buf out CLEANUP(buf_release) = { 0 };
    json_append_string(&out, bytes_of(NULL, 0));
    buf_is(t, &out, "\"\"");
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "values are written in canonical form", test_canonical },
        { "what is not one good value is refused, and not quoted", test_refused },
        { "a refusal names line and column", test_position },
        { "too many bytes are too_large", test_too_large },
        { "nesting is allowed to 32 and refused beyond", test_depth },
        { "width is not depth", test_width },
        { "writing is bounded like reading, also for a ring", test_write_depth },
        { "writing refuses strings that reading would refuse", test_write_strings },
        { "writing appends", test_appends },
        { "a failed buffer is no_memory", test_write_no_memory },
        { "every failing allocation fails the read", test_read_no_memory },
        { "hashes are the golden ones", test_golden },
        { "equal values have equal hashes", test_equal_hash },
        { "many keys are sorted", test_many_keys },
        { "reals read back to the same bits and are shortest", test_random_reals },
        { "the locale changes nothing", test_locale },
        { "strings are printed without a value", test_append_string },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
