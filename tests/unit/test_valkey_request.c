#include <stdio.h>
#include <stdlib.h>

#include "store/drivers/valkey/net.h"
#include "store/drivers/valkey/shapes.h"
#include "tap.h"

/* --- commands --- */

static void is_written(struct tap *t, const struct vk_request *r, const char *want)
{
    TAP_OK(t, bytes_eq(bytes_of(r->bytes, r->len), bytes_str(want)));
}

static void commands(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    struct vk_request r;

    vk_request_init(&r, &a);
    vk_command(&r, 4, "HSET");
    vk_arg(&r, bytes_of("a\0\r\n", 4));
    vk_arg_i64(&r, INT64_MIN);
    vk_arg_str(&r, "");
    vk_command(&r, 2, "GET");
    uint8_t *blank = vk_arg_blank(&r, 5);
    for (uint8_t i = 0; blank && i < 5; i++)
        blank[i] = (uint8_t)('a' + i);
    TAP_EQ(t, r.n_commands, 2);
    TAP_OK(t, !r.no_memory);
    static const char want[] = "*4\r\n$4\r\nHSET\r\n$4\r\na\0\r\n\r\n"
                               "$20\r\n-9223372036854775808\r\n$0\r\n\r\n"
                               "*2\r\n$3\r\nGET\r\n$5\r\nabcde\r\n";
    TAP_OK(t, bytes_eq(bytes_of(r.bytes, r.len), bytes_of(want, sizeof(want) - 1)));
}

static void commands_grow(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    CLEANUP(buf_release) struct buf want = { .ptr = NULL };
    size_t big = (size_t)3 << 20;
    char *text = calloc(1, big);
    struct vk_request r;

    vk_request_init(&r, &a);
    for (int i = 0; i < 1000; i++) {
        vk_command(&r, 2, "PING");
        vk_arg_i64(&r, i);
        buf_append_str(&want, "*2\r\n$4\r\nPING\r\n");
        buf_printf(&want, "$%d\r\n%d\r\n", i < 10 ? 1 : i < 100 ? 2 : 3, i);
    }
    vk_command(&r, 2, "ECHO");
    vk_arg(&r, bytes_of(text, big));
    buf_printf(&want, "*2\r\n$4\r\nECHO\r\n$%zu\r\n", big);
    buf_append(&want, bytes_of(text, big));
    buf_append_str(&want, "\r\n");
    TAP_OK(t, bytes_eq(bytes_of(r.bytes, r.len), buf_view(&want)));
    vk_request_init(&r, &a);
    vk_command(&r, 1, "PING");
    is_written(t, &r, "*1\r\n$4\r\nPING\r\n");
    free(text);
}

/* The bytes of a call with one text of so many bytes, before and behind that text. */
static void packed_text(struct tap *t, const char *text, size_t len, struct bytes head)
{
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    CLEANUP(buf_release) struct buf want = { .ptr = NULL };
    struct vk_args one = { .arena = &a }, none = { .arena = &a };
    struct vk_args *const lists[] = { &none, &one };
    struct vk_request r;

    vk_add(&one, bytes_of(text, len));
    vk_request_init(&r, &a);
    vk_fcall(&r, "FCALL", "f", bytes_str("base"), lists, COUNT_OF(lists));
    buf_printf(&want,
               "*5\r\n$5\r\nFCALL\r\n$1\r\nf\r\n$1\r\n1\r\n$4\r\nbase\r\n$%zu\r\n",
               3 + head.len + len);
    buf_append(&want, bytes_of("\xdc\0\1", 3));
    buf_append(&want, head);
    buf_append(&want, bytes_of(text, len));
    buf_append_str(&want, "\r\n");
    TAP_OK(t, !r.no_memory && bytes_eq(bytes_of(r.bytes, r.len), buf_view(&want)));
}

static void packed(struct tap *t)
{
    char *text = calloc(1, 70000);

    if (!TAP_OK(t, text))
        return;
    packed_text(t, text, 0, bytes_of("\xa0", 1));
    packed_text(t, text, 31, bytes_of("\xbf", 1));
    packed_text(t, text, 32, bytes_of("\xd9\x20", 2));
    packed_text(t, text, 255, bytes_of("\xd9\xff", 2));
    packed_text(t, text, 256, bytes_of("\xda\1\0", 3));
    packed_text(t, text, 65535, bytes_of("\xda\xff\xff", 3));
    packed_text(t, text, 65536, bytes_of("\xdb\0\1\0\0", 5));
    free(text);
}

/* Up to so many texts are one argument. */
static void packed_or_not(struct tap *t)
{
    for (size_t n = 127; n <= 130; n++) {
        CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
        struct vk_args texts = { .arena = &a }, *const lists[] = { &texts };
        struct vk_request r;
        char want[16];

        for (size_t i = 0; i < n; i++)
            vk_add_str(&texts, "x");
        vk_request_init(&r, &a);
        vk_fcall(&r, "FCALL", "f", bytes_str("base"), lists, COUNT_OF(lists));
        int len = snprintf(want, sizeof(want), "*%zu\r\n", n <= 128 ? 5 : 4 + n);
        TAP_OK(t, !r.no_memory && memcmp(r.bytes, want, (size_t)len) == 0);
    }
}

/* What a function answers as one text. */
static void unpacked(struct tap *t)
{
    static const uint8_t text[] =
        "\x93\x92\x01\xa3one\xdc\x00\x02\xcd\x01\x02\xd9\x03two"
        "\xdd\x00\x00\x00\x01\xdb\x00\x00\x00\x01x";
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    struct belay_error err;
    struct vk_reply got;

    if (!TAP_OK(t, !vk_unpack(bytes_of(text, sizeof(text) - 1), &a, &got, &err)))
        return;
    TAP_EQ(t, got.kind, VK_ARRAY);
    TAP_EQ(t, got.n, 3);
    TAP_EQ(t, got.sub[0].sub[0].i, 1);
    TAP_OK(t, bytes_eq(got.sub[0].sub[1].b, bytes_str("one")));
    TAP_EQ(t, got.sub[1].sub[0].i, 258);
    TAP_OK(t, bytes_eq(got.sub[1].sub[1].b, bytes_str("two")));
    TAP_EQ(t, got.sub[2].n, 1);
    TAP_OK(t, bytes_eq(got.sub[2].sub[0].b, bytes_str("x")));
    /* Cut anywhere it is nothing. */
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        uint8_t *part = malloc(n > 0 ? n : 1); /* a sanitizer sees its end */
        if (!TAP_OK(t, part))
            return;
        memcpy(part, text, n);
        TAP_EQ(t, vk_unpack(bytes_of(part, n), &a, &got, &err), BELAY_CORRUPT);
        free(part);
    }
}

static void not_unpacked(struct tap *t)
{
    static const struct bytes rows[] = {
        { (const uint8_t *)"\xa1xy", 3 },               /* something behind it */
        { (const uint8_t *)"\xdd\xff\xff\xff\xff", 5 }, /* more than there can be */
        { (const uint8_t *)"\xdb\xff\xff\xff\xff", 5 },
        { (const uint8_t *)"\x91\x91\x91\x91\x91\x01", 6 }, /* too deep */
        { (const uint8_t *)"\x81\x01\x01", 3 },             /* a map */
        { (const uint8_t *)"\xc0", 1 },                     /* nil */
        { (const uint8_t *)"\xff", 1 },                     /* a negative number */
    };
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    struct vk_reply got = { .i = 77 };
    struct belay_error err;

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        TAP_EQ(t, vk_unpack(rows[i], &a, &got, &err), BELAY_CORRUPT);
    TAP_EQ(t, got.i, 77); /* untouched */
}

/* --- answers --- */

/* Parses all of it, in pieces of so many bytes. */
static enum vk_parsed parse(struct bytes in, size_t piece, struct belay_arena *a,
                            struct vk_reply *out)
{
    struct redisReader *reader = vk_reader_new();
    struct vk_sink sink = { .arena = a, .reply = out };
    enum vk_parsed parsed = VK_PARSE_MORE;

    *out = (struct vk_reply){ .kind = VK_NIL };
    for (size_t i = 0; i < in.len && parsed == VK_PARSE_MORE; i += piece) {
        size_t n = in.len - i < piece ? in.len - i : piece;
        if (!vk_reader_feed(reader, in.ptr + i, n))
            parsed = VK_PARSE_BROKEN;
        else
            parsed = vk_reader_next(reader, &sink);
    }
    vk_reader_free(reader);
    return parsed;
}

static void answers(struct tap *t)
{
    static const char text[] = "*7\r\n:-42\r\n$3\r\na\0b\r\n$-1\r\n+OK\r\n-ERR no\r\n"
                               "*2\r\n$0\r\n\r\n*0\r\n*-1\r\n";

    for (size_t piece = 1; piece <= sizeof(text); piece++) {
        CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
        struct vk_reply r;

        TAP_EQ(t, (int)parse(bytes_of(text, sizeof(text) - 1), piece, &a, &r),
               (int)VK_PARSE_ANSWER);
        if (!TAP_EQ(t, (int)r.kind, (int)VK_ARRAY) || !TAP_EQ(t, r.n, 7))
            return;
        TAP_EQ(t, r.sub[0].i, -42);
        TAP_OK(t, r.sub[0].kind == VK_INTEGER);
        TAP_OK(t,
               r.sub[1].kind == VK_STRING && bytes_eq(r.sub[1].b, bytes_of("a\0b", 3)));
        TAP_OK(t, r.sub[2].kind == VK_NIL);
        TAP_OK(t, r.sub[3].kind == VK_STATUS && bytes_eq(r.sub[3].b, bytes_str("OK")));
        TAP_OK(t, vk_reply_is_error(&r.sub[4], "ERR "));
        TAP_OK(t, !vk_reply_is_error(&r.sub[4], "ERR no way"));
        TAP_OK(t, r.sub[5].kind == VK_ARRAY && r.sub[5].n == 2 &&
                      r.sub[5].sub[0].kind == VK_STRING && r.sub[5].sub[0].b.len == 0 &&
                      r.sub[5].sub[1].kind == VK_ARRAY && r.sub[5].sub[1].n == 0);
        TAP_OK(t, r.sub[6].kind == VK_NIL);
    }
}

static void large_arrays(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    int n = 5000;
    struct vk_reply r;
    int wrong = 0;

    buf_printf(&text, "*%d\r\n", n);
    for (int i = 0; i < n; i++)
        buf_printf(&text, "*2\r\n:%d\r\n$4\r\n%04d\r\n", i, i);
    TAP_EQ(t, (int)parse(buf_view(&text), 1000, &a, &r), (int)VK_PARSE_ANSWER);
    if (!TAP_EQ(t, r.n, n))
        return;
    for (int i = 0; i < n; i++)
        wrong +=
            r.sub[i].n != 2 || r.sub[i].sub[0].i != i || r.sub[i].sub[1].b.len != 4;
    TAP_EQ(t, wrong, 0);
}

static void unwanted_answers(struct tap *t)
{
    static const char text[] = "*2\r\n$1\r\na\r\n*1\r\n:1\r\n:7\r\n";
    CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
    struct redisReader *reader = vk_reader_new();
    struct vk_reply kept = { .kind = VK_NIL };
    struct vk_sink nowhere = { .arena = NULL }, sink = { .arena = &a, .reply = &kept };

    TAP_OK(t, vk_reader_feed(reader, text, sizeof(text) - 1));
    TAP_EQ(t, (int)vk_reader_next(reader, &nowhere), (int)VK_PARSE_ANSWER);
    TAP_OK(t, !vk_reader_is_empty(reader));
    TAP_EQ(t, (int)vk_reader_next(reader, &sink), (int)VK_PARSE_ANSWER);
    TAP_EQ(t, kept.i, 7);
    TAP_OK(t, vk_reader_is_empty(reader));
    TAP_EQ(t, (int)vk_reader_next(reader, &sink), (int)VK_PARSE_MORE);
    vk_reader_free(reader);
}

/* --- hostile answers --- */

/* clang-format off */
static const char *const broken[] = {
    "hello\r\n",                       /* no type */
    "HTTP/1.1 400 Bad Request\r\n",
    ":12x\r\n",
    ":99999999999999999999\r\n",
    "$12x\r\nabc\r\n",
    "$-2\r\n",
    "$536870913\r\n",                  /* more than a server ever sends */
    "$9223372036854775807\r\n",
    "$9223372036854775808\r\n",
    "$00000000000000000000000000000000000000000000000000000001\r\n",
    "*-2\r\n",
    "*99999999999999999999\r\n",
    "*1x\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    "*1\r\n!\r\n",
};
static const char *const incomplete[] = {
    "*2147483647\r\n",                 /* promised, and never sent */
    "*2147483647\r\n:1\r\n",
    "*1000000\r\n*1000000\r\n*1000000\r\n",
    "$536870912\r\nabc",
    "$5\r\nabc",
    "+OK",
    "*2\r\n:1\r\n",
    "-ERR",
};
/* clang-format on */

static void broken_answers(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        for (size_t piece = 1; piece < 100; piece += 33) {
            CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
            struct vk_reply r;
            enum vk_parsed parsed = parse(bytes_str(broken[i]), piece, &a, &r);
            if (!TAP_EQ(t, (int)parsed, (int)VK_PARSE_BROKEN))
                printf("# in pieces of %zu: %s\n", piece, broken[i]);
        }
    }
}

static void incomplete_answers(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(incomplete); i++) {
        CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
        struct vk_reply r;
        enum vk_parsed parsed = parse(bytes_str(incomplete[i]), 7, &a, &r);
        if (!TAP_EQ(t, (int)parsed, (int)VK_PARSE_MORE))
            printf("# %s\n", incomplete[i]);
    }
}

static void endless_line(struct tap *t)
{
    struct redisReader *reader = vk_reader_new();
    struct vk_sink sink = { .arena = NULL };
    char piece[4096] = { '+' };
    int pieces = 0;

    memset(piece + 1, 'a', sizeof(piece) - 1);
    while (pieces < 1000 && vk_reader_feed(reader, piece, sizeof(piece)) &&
           vk_reader_next(reader, &sink) == VK_PARSE_MORE)
        pieces++;
    TAP_OK(t, pieces < 100);
    vk_reader_free(reader);
}

/* Bytes that look like the protocol most of the time. */
static void random_answers(struct tap *t)
{
    static const char *const words[] = { "*",
                                         "$",
                                         ":",
                                         "+",
                                         "-",
                                         "\r\n",
                                         "\r",
                                         "0",
                                         "1",
                                         "2",
                                         "-1",
                                         "9999",
                                         "a",
                                         "\n",
                                         "",
                                         "OK",
                                         "$3\r\nabc\r\n",
                                         "*2\r\n",
                                         ":1\r\n" };
    uint64_t state = 88172645463325252U;
    int answers_seen = 0;

    for (int run = 0; run < 20000; run++) {
        CLEANUP(arena_release) struct belay_arena a = { .first = NULL };
        CLEANUP(buf_release) struct buf text = { .ptr = NULL };
        struct vk_reply r;

        for (int i = 0; i < 12; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            buf_append_str(&text, words[state % COUNT_OF(words)]);
        }
        answers_seen +=
            parse(buf_view(&text), 1 + (size_t)(state % 9), &a, &r) == VK_PARSE_ANSWER;
    }
    TAP_OK(t, answers_seen > 100);
}

/* --- errors --- */

static void errors(struct tap *t)
{
    static const struct {
        const char *text;
        belay_rc code;
        const char *reason;
    } rows[] = {
        { "OOM command not allowed", BELAY_UNAVAILABLE, "memory" },
        { "NOAUTH Authentication required.", BELAY_DENIED, "login" },
        { "NOPERM this user has no permissions", BELAY_DENIED, "permission" },
        { "READONLY You can't write", BELAY_UNAVAILABLE, "replica" },
        { "MISCONF Redis is configured", BELAY_UNAVAILABLE, "disk" },
        { "BUSY Redis is busy", BELAY_UNAVAILABLE, "busy" },
        { "ERR wrong number of arguments\n", BELAY_CORRUPT, "" },
        { "WRONGTYPE Operation", BELAY_CORRUPT, "" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct vk_reply r = { .kind = VK_ERROR, .b = bytes_str(rows[i].text) };
        struct belay_error err = { .code = 0 };

        TAP_EQ(t, vk_reply_error(&r, "a test", &err), rows[i].code);
        TAP_STR(t, err.reason, rows[i].reason);
        TAP_OK(t, strstr(err.message, "a test"));
        TAP_OK(t, !strchr(err.message, '\n'));
    }
    struct vk_reply other = { .kind = VK_INTEGER };
    TAP_EQ(t, vk_reply_error(&other, "a test", NULL), BELAY_CORRUPT);
}

static void info_lines(struct tap *t)
{
    struct bytes info = bytes_str("# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n"
                                  "xrun_id:no\r\nempty:\r\nlast:1");

    TAP_OK(t, bytes_eq(vk_info(info, "redis_version"), bytes_str("7.0.15")));
    TAP_OK(t, bytes_eq(vk_info(info, "run_id"), bytes_str("abc")));
    TAP_OK(t, bytes_eq(vk_info(info, "last"), bytes_str("1")));
    TAP_EQ(t, vk_info(info, "empty").len, 0);
    TAP_EQ(t, vk_info(info, "version").len, 0);
}

static void slots(struct tap *t)
{
    /* of the server's own documentation */
    TAP_EQ(t, vk_slot(bytes_str("123456789")), 0x31c3 % 16384);
    TAP_EQ(t, vk_slot(bytes_str("")), 0);
}

static void revisions(struct tap *t)
{
    TAP_EQ(t, vk_library_revision(bytes_str("#!lua name=x\n-- revision 12\n")), 12);
    TAP_EQ(t, vk_library_revision(bytes_str("#!lua name=x\n-- revision\n")), 0);
    TAP_EQ(t, vk_library_revision(bytes_str("")), 0);
    TAP_OK(t, vk_library_revision(bytes_str(vk_library_text)) > 0);
    TAP_OK(t, strncmp(vk_library_text, "#!lua name=belay6\n", 18) == 0);
}

static const struct tap_case cases[] = {
    { "commands are written with every length said first", commands },
    { "a request grows to any size", commands_grow },
    { "texts of any length go as one argument of a call", packed },
    { "many texts go as arguments of their own", packed_or_not },
    { "an answer in one text is taken apart, whole or not at all", unpacked },
    { "one that no function gives is corrupt", not_unpacked },
    { "answers are understood, however they are cut", answers },
    { "an array has all its elements, however many", large_arrays },
    { "an answer that nobody wants is passed over", unwanted_answers },
    { "what is no answer is told from one", broken_answers },
    { "what has not all arrived takes little memory, whatever it promises",
      incomplete_answers },
    { "a line without an end ends the connection", endless_line },
    { "no bytes break the parser", random_answers },
    { "a server's errors are Belay's errors", errors },
    { "INFO is read line by line", info_lines },
    { "a namespace has the slot that the server computes", slots },
    { "the library says its name and its revision", revisions },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
