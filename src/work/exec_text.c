/* Bytes and places as text. */
#include <stdio.h>
#include <time.h>

#include "work/exec_show.h"

/* --- base64 --- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                               "0123456789+/";

void base64_append(struct buf *out, struct bytes data)
{
    for (size_t i = 0; i < data.len; i += 3) {
        size_t n = data.len - i < 3 ? data.len - i : 3;
        uint32_t word = (uint32_t)data.ptr[i] << 16;
        if (n > 1)
            word |= (uint32_t)data.ptr[i + 1] << 8;
        if (n > 2)
            word |= data.ptr[i + 2];
        char four[4] = { '=', '=', '=', '=' };
        for (size_t k = 0; k <= n; k++)
            four[k] = alphabet[word >> (18 - 6 * k) & 63];
        buf_append(out, bytes_of(four, 4));
    }
}

/* The six bits of a character, or -1. */
static int bits_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_read(struct bytes text, struct belay_arena *a, struct bytes *out,
                 bool *no_memory)
{
    size_t pad = 0, n = 0;
    uint32_t word = 0;
    uint8_t *data = NULL;

    *no_memory = false;
    if (text.len % 4 != 0)
        return false;
    while (pad < 2 && pad < text.len && text.ptr[text.len - 1 - pad] == '=')
        pad++;
    data = arena_alloc(a, text.len / 4 * 3 + 1);
    if (!data) {
        *no_memory = true;
        return false;
    }
    for (size_t i = 0; i < text.len - pad; i++) {
        int bits = bits_of(text.ptr[i]);
        if (bits < 0)
            return false;
        word = word << 6 | (uint32_t)bits;
        /* After the i-th character from 0 there are 6, 4, 2 or 0 bits over. */
        if (i % 4 != 0)
            data[n++] = (uint8_t)(word >> (6 - 2 * (i % 4)));
    }
    data[n] = 0;
    *out = bytes_of(data, n);
    return true;
}

/* --- cursors --- */

static belay_rc bad_cursor(struct belay_error *err)
{
    return err_reason(err, BELAY_INVALID, "cursor",
                      "cursor: is not one that was given out here");
}

/* The number that text begins with, and one more character behind it, which is `end`
 * (NUL: the text is over). */
static bool take_number(const char **text, char end, int64_t *out)
{
    size_t len = strcspn(*text, ".");

    if (!bytes_to_i64(bytes_of(*text, len), out) || (*text)[len] != end)
        return false;
    *text += len + (end != 0);
    return true;
}

static uint32_t digest_of(struct bytes b)
{
    uint32_t h = 2166136261U;

    for (size_t i = 0; i < b.len; i++)
        h = (h ^ b.ptr[i]) * 16777619U;
    return h;
}

#define LIST_CURSOR "l1."

bool list_cursor_write(const struct scan_cursor *c, struct belay_arena *a,
                       const char **out)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    char hex[2 * SCHEMA_NAME_MAX + 1];
    const struct bytes names[] = { c->member, c->index };

    buf_printf(&text, LIST_CURSOR "%lld", (long long)c->rank);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (names[i].len > SCHEMA_NAME_MAX)
            return false;
        hex_encode(names[i], hex);
        buf_printf(&text, ".%s", hex);
    }
    buf_printf(&text, ".%08x", (unsigned)digest_of(buf_view(&text)));
    return !text.failed && show_text(a, buf_view(&text), out);
}

static bool take_hex(const char **text, struct belay_arena *a, struct bytes *out)
{
    size_t len = strcspn(*text, ".");
    uint8_t *data = arena_alloc(a, len / 2 + 1);

    if (!data || len % 2 != 0 || (*text)[len] != '.')
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = (*text)[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                           : -1;
        if (digit < 0)
            return false;
        data[i / 2] = (uint8_t)(i % 2 == 0 ? digit << 4 : data[i / 2] | digit);
    }
    *out = bytes_of(data, len / 2);
    *text += len + 1;
    return true;
}

belay_rc list_cursor_read(const char *text, struct belay_arena *a,
                          struct scan_cursor *out, struct belay_error *err)
{
    const char *dot = strrchr(text, '.'), *rest = text + strlen(LIST_CURSOR);
    char digest[9];

    if (strncmp(text, LIST_CURSOR, strlen(LIST_CURSOR)) != 0)
        return bad_cursor(err);
    (void)snprintf(digest, sizeof(digest), "%08x",
                   (unsigned)digest_of(bytes_of(text, (size_t)(dot - text))));
    if (strcmp(dot + 1, digest) != 0 || !take_number(&rest, '.', &out->rank) ||
        !take_hex(&rest, a, &out->member) || !take_hex(&rest, a, &out->index) ||
        rest != dot + 1)
        return bad_cursor(err);
    return BELAY_OK;
}

#define EVENT_CURSOR "e1."

bool event_cursor_write(const struct event_place *p, struct belay_arena *a,
                        const char **out)
{
    char text[sizeof(EVENT_CURSOR) + (size_t)4 * (I64_TEXT_MAX + 1)];
    int len = snprintf(text, sizeof(text), EVENT_CURSOR "%lld.%lld.%lld.%lld",
                       (long long)p->pos.epoch, (long long)p->pos.major,
                       (long long)p->pos.minor, (long long)p->skip);

    return show_text(a, bytes_of(text, (size_t)len), out);
}

belay_rc event_cursor_read(const char *text, struct event_place *out,
                           struct belay_error *err)
{
    const char *rest = text + strlen(EVENT_CURSOR);
    struct event_place p;

    if (strncmp(text, EVENT_CURSOR, strlen(EVENT_CURSOR)) != 0 ||
        !take_number(&rest, '.', &p.pos.epoch) ||
        !take_number(&rest, '.', &p.pos.major) ||
        !take_number(&rest, '.', &p.pos.minor) || !take_number(&rest, 0, &p.skip) ||
        p.pos.epoch < 0 || p.pos.major < 0 || p.pos.minor < 0 || p.skip < 0)
        return bad_cursor(err);
    *out = p;
    return BELAY_OK;
}

/* --- time --- */

void moment_text(char out[MOMENT_MAX], int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char day[MOMENT_MAX];

    /* Far beyond what a calendar shows, the number says more. */
    if (ms < 0 || ms > (int64_t)253402300799999 || !gmtime_r(&seconds, &tm) ||
        strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        (void)snprintf(out, MOMENT_MAX, "%lld ms", (long long)ms);
    else
        (void)snprintf(out, MOMENT_MAX, "%.19s.%03dZ", day, (int)(ms % 1000));
}
