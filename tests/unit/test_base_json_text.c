/* JSON as text: whether it is canonical is told without making values of it. */
#include "base/json_text.h"

#include "base/json.h"
#include "base/rng.h"
#include "tap.h"

#define MAX_LEN ((size_t)1 << 20)
#define DEEP 40

/* clang-format off */
static const struct {
    const char *text;
    bool whole, plain;
} rows[] = {
    { "null",                           true,  true },
    { "true",                           true,  true },
    { "false",                          true,  true },
    { "\"\"",                           true,  true },
    { "\"a b\x7f\"",                    true,  true },
    { "[]",                             true,  true },
    { "{}",                             true,  true },
    { "[1,[2,{}],\"x\"]",               true,  true },
    { "{\"\":0,\"a\":1,\"aa\":{\"a\":2},\"b\":3}", true, true },
    { "0",                              true,  true },
    { "-1",                             true,  true },
    { "999999999999999999",             true,  true },
    { "-999999999999999999",            true,  true },
    { "1000000000000000000",            true,  false },
    { "-0",                             true,  false },
    { "1.5",                            true,  false },
    { "1e5",                            true,  false },
    { "[1,-0.0]",                       true,  false },
    { "\"a\\nb\"",                      true,  false },
    { "{\"b\":1,\"a\":2}",              true,  false },
    { "{\"a\":1,\"a\":2}",              true,  false },
    { "{\"\":1,\"\":2}",                true,  false },
    { "[{\"b\":1,\"a\":2}]",            true,  false },
    { "{\"a\":{\"x\":1},\"b\":{\"a\":1}}", true, true },
    { "",                               false, true },
    { " 1",                             false, true },
    { "1 ",                             false, true },
    { "01",                             false, true },
    { "-",                              false, true },
    { "1.",                             false, true },
    { "1E5",                            false, true },
    { "nul",                            false, true },
    { "nulll",                          false, true },
    { "\"",                             false, true },
    { "\"\\",                           false, true },
    { "\"\n\"",                         false, true },
    { "[1,]",                           false, true },
    { "[1",                             false, true },
    { "{\"a\"}",                        false, true },
    { "{\"a\":}",                       false, true },
    { "{1:2}",                          false, true },
    { "{\"a\":1,}",                     false, true },
};
/* clang-format on */

static void test_rows(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct json_text in = json_text_of(bytes_str(rows[i].text));
        bool whole = json_skip(&in, JSON_DEPTH_MAX) && in.at == in.end;

        if (!TAP_EQ(t, whole, rows[i].whole) ||
            (whole && !TAP_EQ(t, in.plain, rows[i].plain)))
            printf("# %s\n", rows[i].text);
    }
}

static void test_depth(struct tap *t)
{
    char text[2 * DEEP];

    for (unsigned depth = 1; depth <= DEEP; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        struct json_text in = json_text_of(bytes_of(text, 2 * (size_t)depth));
        TAP_EQ(t, json_skip(&in, JSON_DEPTH_MAX), depth <= JSON_DEPTH_MAX);
    }
}

/* --- the same as reading and writing --- */

static belay_rc by_values(struct bytes text, size_t max_len, struct buf *out,
                          struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *value = NULL;
    belay_rc rc = json_read(text, max_len, &value, err);

    return rc ? rc : json_write(value, out, err);
}

static bool agrees(struct tap *t, struct bytes text, size_t max_len)
{
    CLEANUP(buf_release) struct buf got = { 0 };
    CLEANUP(buf_release) struct buf want = { 0 };
    struct belay_error err = { 0 }, other = { 0 };
    belay_rc rc = json_canonical(text, max_len, &got, &err);
    bool same = TAP_EQ(t, rc, by_values(text, max_len, &want, &other)) &&
                TAP_OK(t, bytes_eq(buf_view(&got), buf_view(&want))) &&
                TAP_STR(t, err.message, other.message);

    if (!same)
        printf("# \"%.*s\"\n", (int)text.len, (const char *)text.ptr);
    return same;
}

static void test_agrees(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        (void)agrees(t, bytes_str(rows[i].text), MAX_LEN);
    (void)agrees(t, bytes_str("{\"a\":1}"), 7);
    (void)agrees(t, bytes_str("{\"a\":1}"), 6);
    (void)agrees(t, bytes_of("\"a\0b\"", 5), MAX_LEN);
    (void)agrees(t, bytes_str("\"\xc3\xa9\xf0\x9f\x98\x80\""), MAX_LEN);
    (void)agrees(t, bytes_str("\"\xef\xbf\xbf\""), MAX_LEN);     /* no character */
    (void)agrees(t, bytes_str("\"\xed\xa0\x80\""), MAX_LEN);     /* half of one */
    (void)agrees(t, bytes_str("\"\xc0\x80\""), MAX_LEN);         /* too long */
    (void)agrees(t, bytes_str("\"\xf4\x90\x80\x80\""), MAX_LEN); /* too large */
    (void)agrees(t, bytes_str("\"\xc3\""), MAX_LEN);
}

/* A value as many programs write it: sometimes out of order, with blanks or escapes. */
static void add_value(struct rng *r, struct buf *out, unsigned depth)
{
    static const char *const words[] = { "0",    "-1",  "12345678901234567890",
                                         "1.50", "-0",  "null",
                                         "true", "1e3", "7" };
    static const char *const strings[] = { "\"\"",         "\"a\"",
                                           "\"b\"",        "\"\\u0041\"",
                                           "\"\xc3\xa9\"", "\"\xf0\x9f\x98\x80\"" };
    uint64_t kind = rng_below(r, depth > 3 ? 2 : 4);

    if (kind < 2) {
        buf_append_str(out, kind == 0 ? words[rng_below(r, COUNT_OF(words))]
                                      : strings[rng_below(r, COUNT_OF(strings))]);
        return;
    }
    uint64_t n = rng_below(r, 4);
    buf_append_char(out, kind == 2 ? '[' : '{');
    for (uint64_t i = 0; i < n; i++) {
        if (i > 0)
            buf_append_str(out, rng_below(r, 20) ? "," : ", ");
        if (kind == 3)
            buf_printf(out, "\"%c\":", (int)('a' + (rng_below(r, 5) ? i : 9 - i)));
        add_value(r, out, depth + 1);
    }
    buf_append_char(out, kind == 2 ? ']' : '}');
}

static void test_random(struct tap *t)
{
    static const uint8_t odd[] = { 0,   9,   '"', '\\', '{',  '}',
                                   ',', '.', 'e', '-',  0xc3, 0xff };
    struct rng r;
    bool ok = true;

    rng_init(&r, 20);
    for (unsigned i = 0; i < 20000 && ok; i++) {
        CLEANUP(buf_release) struct buf text = { 0 };
        add_value(&r, &text, 0);
        if (rng_below(&r, 3) == 0)
            text.ptr[rng_below(&r, text.len)] = odd[rng_below(&r, sizeof(odd))];
        ok = agrees(t, buf_view(&text), MAX_LEN);
    }
}

static void test_no_memory(struct tap *t)
{
    struct buf out = { .failed = true };
    struct belay_error err = { 0 };

    TAP_EQ(t, json_canonical(bytes_str("[1]"), MAX_LEN, &out, &err), BELAY_NO_MEMORY);
    TAP_EQ(t, err.code, BELAY_NO_MEMORY);
    TAP_EQ(t, out.len, 0);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a value is walked over, and found to be canonical", test_rows },
        { "nesting is walked over to 32 and not beyond", test_depth },
        { "a text gets the form that its value has", test_agrees },
        { "so do texts of all kinds", test_random },
        { "a failed buffer is no_memory", test_no_memory },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
