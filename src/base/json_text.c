#include "base/json_text.h"

#define PLAIN_DIGITS 18 /* any so many are within 64 bits */

bool json_take(struct json_text *in, char c)
{
    bool there = in->at < in->end && *in->at == (uint8_t)c;

    in->at += there;
    return there;
}

static bool take_digits(struct json_text *in)
{
    const uint8_t *from = in->at;

    while (in->at < in->end && *in->at >= '0' && *in->at <= '9')
        in->at++;
    in->plain &= in->at - from <= PLAIN_DIGITS;
    return in->at > from;
}

static bool skip_number(struct json_text *in)
{
    bool minus = json_take(in, '-');

    if (json_take(in, '0'))
        in->plain &= !minus;
    else if (!take_digits(in))
        return false;
    if (json_take(in, '.')) {
        in->plain = false;
        if (!take_digits(in))
            return false;
    }
    if (!json_take(in, 'e'))
        return true;
    in->plain = false;
    (void)(json_take(in, '-') || json_take(in, '+'));
    return take_digits(in);
}

/* Behind the opening quote; *out is what stands between it and the other one. */
static bool skip_string(struct json_text *in, struct bytes *out)
{
    const uint8_t *from = in->at;

    while (in->at < in->end && *in->at != '"') {
        bool escapes = json_take(in, '\\');
        in->plain &= !escapes;
        if (in->at == in->end || (!escapes && *in->at < 0x20))
            return false;
        in->at++;
    }
    *out = bytes_of(from, (size_t)(in->at - from));
    return json_take(in, '"');
}

static bool skip_word(struct json_text *in, const char *word)
{
    while (*word && json_take(in, *word))
        word++;
    return *word == '\0';
}

/* A member's name, which comes behind `last` in the order of canonical JSON. */
static bool skip_name(struct json_text *in, struct bytes *last)
{
    struct bytes name;

    if (!json_take(in, '"') || !skip_string(in, &name) || !json_take(in, ':'))
        return false;
    in->plain &= !last->ptr || bytes_cmp(*last, name) < 0;
    *last = name;
    return true;
}

/* Behind the opening bracket. */
static bool skip_members(struct json_text *in, bool named, char close, unsigned depth)
{
    struct bytes last = { .ptr = NULL };

    if (depth == 0)
        return false;
    if (json_take(in, close))
        return true;
    do {
        if (named && !skip_name(in, &last))
            return false;
        if (!json_skip(in, depth - 1))
            return false;
    } while (json_take(in, ','));
    return json_take(in, close);
}

bool json_skip(struct json_text *in, unsigned depth)
{
    struct bytes text;

    if (json_take(in, '"'))
        return skip_string(in, &text);
    if (json_take(in, '{'))
        return skip_members(in, true, '}', depth);
    if (json_take(in, '['))
        return skip_members(in, false, ']', depth);
    if (in->at == in->end)
        return false;
    switch (*in->at) {
    case 't':
        return skip_word(in, "true");
    case 'f':
        return skip_word(in, "false");
    case 'n':
        return skip_word(in, "null");
    default:
        return skip_number(in);
    }
}
