#include "base/bytes.h"

#include "base/arena.h"

#include <stdlib.h>

#include "tap.h"

/* Lets a request for too much memory fail under AddressSanitizer as it does without. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* A string literal as a view, with any NUL inside it. */
#define LIT(text)                                 \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

/* clang-format off */
static const struct {
    struct bytes a, b;
    int want;
} order_rows[] = {
    { LIT(""),         LIT(""),         0 },
    { { NULL, 0 },     LIT(""),         0 },
    { { NULL, 0 },     LIT("a"),       -1 },
    { LIT("a"),        LIT("a"),        0 },
    { LIT("a"),        LIT("ab"),      -1 },
    { LIT("ab"),       LIT("a"),        1 },
    { LIT("b"),        LIT("aa"),       1 },
    { LIT("a\0a"),     LIT("a\0b"),    -1 },
    { LIT("\x7f"),     LIT("\x80"),    -1 },
    { LIT("\xff"),     LIT("\x01"),     1 },
};
/* clang-format on */

static void test_order(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(order_rows); i++) {
        struct bytes a = order_rows[i].a, b = order_rows[i].b;
        TAP_EQ(t, sign(bytes_cmp(a, b)), order_rows[i].want);
        TAP_EQ(t, sign(bytes_cmp(b, a)), -order_rows[i].want);
        TAP_EQ(t, bytes_eq(a, b), order_rows[i].want == 0);
    }
}

static void test_views(struct tap *t)
{
    TAP_EQ(t, bytes_str("").len, 0);
    TAP_EQ(t, bytes_str("abc").len, 3);
    TAP_OK(t, bytes_eq(bytes_str("abc"), bytes_of("abcd", 3)));
}

/* clang-format off */
static const struct {
    const char *name;
    struct bytes text;
    bool utf8;
    bool id; /* also an id of at most 8 bytes */
} utf8_rows[] = {
    { "empty",                       LIT(""),                  true,  false },
    { "ASCII",                       LIT("abc"),               true,  true },
    { "space",                       LIT("a b"),               true,  true },
    { "as long as allowed",          LIT("12345678"),          true,  true },
    { "one longer",                  LIT("123456789"),         true,  false },
    { "U+0000",                      LIT("a\0b"),              true,  false },
    { "U+001F",                      LIT("\x1f"),              true,  false },
    { "U+0020",                      LIT("\x20"),              true,  true },
    { "U+007E",                      LIT("\x7e"),              true,  true },
    { "U+007F",                      LIT("\x7f"),              true,  false },
    { "U+0080",                      LIT("\xc2\x80"),          true,  false },
    { "U+009F",                      LIT("\xc2\x9f"),          true,  false },
    { "U+00A0",                      LIT("\xc2\xa0"),          true,  true },
    { "U+07FF",                      LIT("\xdf\xbf"),          true,  true },
    { "U+0800",                      LIT("\xe0\xa0\x80"),      true,  true },
    { "U+D7FF",                      LIT("\xed\x9f\xbf"),      true,  true },
    { "U+E000",                      LIT("\xee\x80\x80"),      true,  true },
    { "U+FFFF",                      LIT("\xef\xbf\xbf"),      true,  true },
    { "U+10000",                     LIT("\xf0\x90\x80\x80"),  true,  true },
    { "U+10FFFF",                    LIT("\xf4\x8f\xbf\xbf"),  true,  true },
    { "a tail byte alone",           LIT("\x80"),              false, false },
    { "a tail byte too many",        LIT("\xc2\xa0\xa0"),      false, false },
    { "U+0000 in two bytes",         LIT("\xc0\x80"),          false, false },
    { "U+007F in two bytes",         LIT("\xc1\xbf"),          false, false },
    { "U+07FF in three bytes",       LIT("\xe0\x9f\xbf"),      false, false },
    { "U+FFFF in four bytes",        LIT("\xf0\x8f\xbf\xbf"),  false, false },
    { "surrogate U+D800",            LIT("\xed\xa0\x80"),      false, false },
    { "surrogate U+DFFF",            LIT("\xed\xbf\xbf"),      false, false },
    { "U+110000",                    LIT("\xf4\x90\x80\x80"),  false, false },
    { "lead byte F5",                LIT("\xf5\x80\x80\x80"),  false, false },
    { "lead byte FF",                LIT("\xff"),              false, false },
    { "two bytes cut to one",        LIT("\xc3"),              false, false },
    { "three bytes cut to two",      LIT("\xe2\x82"),          false, false },
    { "four bytes cut to three",     LIT("\xf0\x9f\x98"),      false, false },
    { "cut in the middle of a text", LIT("a\xe2\x82z"),        false, false },
    { "third byte is no tail",       LIT("\xe2\x82\x28"),      false, false },
    { "fourth byte is no tail",      LIT("\xf0\x9f\x98\x28"),  false, false },
};
/* clang-format on */

static void test_utf8(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(utf8_rows); i++) {
        bool utf8 = bytes_is_utf8(utf8_rows[i].text);
        bool id = bytes_is_id(utf8_rows[i].text, 8);
        if (!TAP_EQ(t, utf8, utf8_rows[i].utf8) || !TAP_EQ(t, id, utf8_rows[i].id))
            printf("# %s\n", utf8_rows[i].name);
    }
    TAP_OK(t, bytes_is_utf8(bytes_of(NULL, 0)));
    TAP_OK(t, !bytes_is_id(bytes_of(NULL, 0), 8));
    TAP_OK(t, !bytes_is_id(bytes_str("a"), 0));
}

/* Encodes without any thought of validity. */
static struct bytes encode(uint32_t c, uint8_t out[4])
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return bytes_of(out, 1);
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (uint8_t)((0xf00U >> n & 0xff) | c);
    return bytes_of(out, n);
}

static void test_every_character(struct tap *t)
{
    unsigned wrong = 0;

    for (uint32_t c = 0; c < 0x120000; c++) {
        uint8_t storage[4];
        struct bytes text = encode(c, storage);
        bool surrogate = c >= 0xd800 && c <= 0xdfff;
        bool good = !surrogate && c <= 0x10ffff;
        bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
        wrong += bytes_is_utf8(text) != good;
        wrong += bytes_utf8_len(text) != (good ? text.len : 0);
        wrong += bytes_is_id(text, 4) != (good && !control);
    }
    TAP_EQ(t, wrong, 0);
}

/* Every character in every place of a longer text, which is looked at by words. */
static void test_ids_by_words(struct tap *t)
{
    unsigned wrong = 0;

    for (uint32_t c = 0; c < 0x800; c++) {
        uint8_t storage[4], text[24];
        struct bytes one = encode(c, storage);
        bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
        for (size_t at = 0; at + one.len <= sizeof(text); at++) {
            memset(text, 'a' + (int)(at % 26), sizeof(text));
            memcpy(text + at, one.ptr, one.len);
            wrong += bytes_is_id(bytes_of(text, sizeof(text)), 24) == control;
            wrong += !bytes_is_utf8(bytes_of(text, sizeof(text)));
        }
    }
    TAP_EQ(t, wrong, 0);
}

static void test_utf8_len(struct tap *t)
{
    TAP_EQ(t, bytes_utf8_len(bytes_of(NULL, 0)), 0);
    TAP_EQ(t, bytes_utf8_len(bytes_str("ab")), 1);
    TAP_EQ(t, bytes_utf8_len(bytes_str("\xc3\xa9\xff")), 2);
    TAP_EQ(t, bytes_utf8_len(bytes_str("\xe2\x82\xac...")), 3);
    TAP_EQ(t, bytes_utf8_len(bytes_str("\xf0\x9f\x98\x80...")), 4);
    TAP_EQ(t, bytes_utf8_len(bytes_str("\xf0\x9f\x98")), 0);
}

/* clang-format off */
static const struct {
    struct bytes text;
    bool ok;
    int64_t want;
} number_rows[] = {
    { LIT("0"),                     true,  0 },
    { LIT("7"),                     true,  7 },
    { LIT("-1"),                    true,  -1 },
    { LIT("1000000000000"),         true,  1000000000000 },
    { LIT("9223372036854775807"),   true,  INT64_MAX },
    { LIT("-9223372036854775807"),  true,  -INT64_MAX },
    { LIT("-9223372036854775808"),  true,  INT64_MIN },
    { LIT("9223372036854775808"),   false, 0 },
    { LIT("-9223372036854775809"),  false, 0 },
    { LIT("9999999999999999999"),   false, 0 },
    { LIT("18446744073709551616"),  false, 0 },
    { LIT("18446744073709551617"),  false, 0 },
    { LIT("100000000000000000000"), false, 0 },
    { LIT(""),                      false, 0 },
    { LIT("-"),                     false, 0 },
    { LIT("-0"),                    false, 0 },
    { LIT("00"),                    false, 0 },
    { LIT("01"),                    false, 0 },
    { LIT("-01"),                   false, 0 },
    { LIT("+1"),                    false, 0 },
    { LIT("--1"),                   false, 0 },
    { LIT(" 1"),                    false, 0 },
    { LIT("1 "),                    false, 0 },
    { LIT("1\0"),                   false, 0 },
    { LIT("0x10"),                  false, 0 },
    { LIT("1e3"),                   false, 0 },
    { LIT("1.0"),                   false, 0 },
    { LIT("\xd9\xa1"),              false, 0 }, /* a digit, of another script */
};
/* clang-format on */

static void test_to_i64(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(number_rows); i++) {
        int64_t got = 77;
        bool ok = bytes_to_i64(number_rows[i].text, &got);
        TAP_EQ(t, ok, number_rows[i].ok);
        TAP_EQ(t, got, number_rows[i].ok ? number_rows[i].want : 77);
    }
    int64_t got = 77;
    TAP_OK(t, !bytes_to_i64(bytes_of(NULL, 0), &got));
    TAP_EQ(t, got, 77);
}

static void test_put_i64(struct tap *t)
{
    static const struct {
        int64_t n;
        const char *want;
    } rows[] = { { 0, "0" },
                 { 7, "7" },
                 { -1, "-1" },
                 { 1000, "1000" },
                 { INT64_MAX, "9223372036854775807" },
                 { INT64_MIN, "-9223372036854775808" } };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[I64_TEXT_MAX];
        int64_t back = 77;
        memset(text, 'x', sizeof(text));
        size_t len = bytes_put_i64(text, rows[i].n);
        TAP_STR(t, text, rows[i].want);
        TAP_EQ(t, len, strlen(rows[i].want));
        TAP_OK(t, bytes_to_i64(bytes_of(text, len), &back));
        TAP_EQ(t, back, rows[i].n);
    }
}

static bool buf_is(const struct buf *b, const char *want)
{
    bool same = bytes_eq(buf_view(b), bytes_str(want));
    if (!same)
        printf("# \"%.*s\", not \"%s\"\n", (int)b->len, (const char *)b->ptr, want);
    return same;
}

static void test_buf_appends(struct tap *t)
{
    struct buf b CLEANUP(buf_release) = { 0 };

    TAP_EQ(t, buf_view(&b).len, 0);
    buf_append(&b, bytes_of(NULL, 0));
    TAP_OK(t, !b.ptr && !b.failed);
    buf_append(&b, bytes_str("one"));
    buf_append_str(&b, " two");
    buf_append_char(&b, ' ');
    buf_append_i64(&b, INT64_MIN);
    buf_append_char(&b, ' ');
    buf_append_i64(&b, INT64_MAX);
    buf_append_char(&b, ' ');
    buf_append_i64(&b, 0);
    buf_printf(&b, " %s=%d", "five", 5);
    buf_printf(&b, "%s", "");
    TAP_OK(t, buf_is(&b, "one two -9223372036854775808 9223372036854775807 0 five=5"));
}

static void test_buf_grows(struct tap *t)
{
    struct buf b CLEANUP(buf_release) = { 0 };

    for (unsigned i = 0; i < 100000; i++)
        buf_append_char(&b, (char)('a' + i % 26));
    TAP_EQ(t, b.len, 100000);
    unsigned wrong = 0;
    for (unsigned i = 0; i < 100000; i++)
        wrong += b.ptr[i] != 'a' + i % 26;
    TAP_EQ(t, wrong, 0);

    buf_printf(&b, "%0200000d", 1);
    TAP_EQ(t, b.len, 300000);
    TAP_EQ(t, b.ptr[b.len - 1], '1');
}

static void test_buf_in_an_arena(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct buf b = buf_in(&a), heap CLEANUP(buf_release) = { 0 };

    for (unsigned i = 0; i < 10000; i++) {
        buf_append_i64(&b, i);
        buf_append_i64(&heap, i);
    }
    buf_printf(&b, "%d", 7);
    buf_printf(&heap, "%d", 7);
    struct bytes text = buf_view(&b);
    TAP_OK(t, bytes_eq(text, buf_view(&heap)));
    buf_release(&b);
    TAP_OK(t, !b.ptr && b.len == 0);
    TAP_OK(t, bytes_eq(text, buf_view(&heap))); /* the arena has it still */
}

static void test_buf_reset(struct tap *t)
{
    struct buf b CLEANUP(buf_release) = { 0 };

    buf_append_str(&b, "something");
    const uint8_t *memory = b.ptr;
    b.failed = true;
    buf_reset(&b);
    TAP_EQ(t, b.len, 0);
    TAP_OK(t, b.ptr == memory && b.cap > 0 && !b.failed);
    buf_append_str(&b, "new");
    TAP_OK(t, buf_is(&b, "new"));
    TAP_OK(t, b.ptr == memory);

    buf_release(&b);
    TAP_OK(t, !b.ptr && b.len == 0 && b.cap == 0 && !b.failed);
    buf_release(&b); /* a zero buffer may be released as well */
}

static void test_buf_failure(struct tap *t)
{
    static const size_t too_much[] = { SIZE_MAX, (size_t)PTRDIFF_MAX, SIZE_MAX / 4 };

    for (size_t i = 0; i < COUNT_OF(too_much); i++) {
        struct buf b CLEANUP(buf_release) = { 0 };

        buf_append_str(&b, "kept");
        buf_append(&b, bytes_of("", too_much[i]));
        TAP_OK(t, b.failed);
        buf_append_str(&b, "x");
        buf_append_char(&b, 'x');
        buf_append_i64(&b, 1);
        buf_printf(&b, "%d", 1);
        buf_append_escaped(&b, bytes_str("x\n"));
        TAP_OK(t, b.failed);
        TAP_OK(t, buf_is(&b, "kept"));
    }
}

/* clang-format off */
static const struct {
    struct bytes text;
    const char *want;
} escape_rows[] = {
    { LIT(""),                          "" },
    { LIT("plain text = \"quoted\""),   "plain text = \"quoted\"" },
    { LIT("a\nb\tc\rd\\e"),             "a\\nb\\tc\\rd\\\\e" },
    { LIT("\x1b[31m"),                  "\\x1b[31m" },
    { LIT("\0\x01\x1f\x7f"),            "\\x00\\x01\\x1f\\x7f" },
    { LIT("\\n"),                       "\\\\n" },
    { LIT("\xc3\xa9\xe2\x82\xac"),      "\xc3\xa9\xe2\x82\xac" },
    { LIT("\xf0\x9f\x98\x80"),          "\xf0\x9f\x98\x80" },
    { LIT("\xc2\x85\xc2\x9b"),          "\\xc2\\x85\\xc2\\x9b" },
    { LIT("\xc2\xa0"),                  "\xc2\xa0" },
    { LIT("\xe2\x80\xa7\xe2\x80\xa8"),  "\xe2\x80\xa7\\xe2\\x80\\xa8" },
    { LIT("\xe2\x80\xae\xe2\x80\xaf"),  "\\xe2\\x80\\xae\xe2\x80\xaf" },
    { LIT("\xe2\x81\xa5\xe2\x81\xa6"),  "\xe2\x81\xa5\\xe2\\x81\\xa6" },
    { LIT("\xe2\x81\xa9\xe2\x81\xaa"),  "\\xe2\\x81\\xa9\xe2\x81\xaa" },
    { LIT("\xff" "a\xc3"),              "\\xffa\\xc3" },
    { LIT("\xc0\x80"),                  "\\xc0\\x80" },
    { LIT("\xed\xa0\x80"),              "\\xed\\xa0\\x80" },
    { LIT("\xe2\x82" "a"),              "\\xe2\\x82a" },
};
/* clang-format on */

static void test_escape(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(escape_rows); i++) {
        struct buf b CLEANUP(buf_release) = { 0 };
        buf_append_escaped(&b, escape_rows[i].text);
        TAP_OK(t, buf_is(&b, escape_rows[i].want));
    }
    struct buf b CLEANUP(buf_release) = { 0 };
    buf_append_escaped(&b, bytes_of(NULL, 0));
    TAP_EQ(t, b.len, 0);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a view knows its length", test_views },
        { "order is bytewise and a prefix sorts first", test_order },
        { "only well-formed UTF-8 passes", test_utf8 },
        { "every character is judged rightly", test_every_character },
        { "ids: looked at by words", test_ids_by_words },
        { "a character's length is that of the first one", test_utf8_len },
        { "decimal text becomes an i64 or nothing", test_to_i64 },
        { "an i64 becomes decimal text", test_put_i64 },
        { "a buffer holds what was appended", test_buf_appends },
        { "a buffer grows as needed", test_buf_grows },
        { "a buffer in an arena grows alike and leaves its bytes there",
          test_buf_in_an_arena },
        { "reset keeps memory, release does not", test_buf_reset },
        { "failure is sticky and keeps what was there", test_buf_failure },
        { "escaped text disturbs no terminal", test_escape },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
