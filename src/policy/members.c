#include "policy/members.h"

size_t json_nesting(struct bytes text)
{
    size_t depth = 0, deepest = 0;
    bool in_string = false;

    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (in_string) {
            i += c == '\\'; /* what is escaped cannot end it */
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
            deepest = depth > deepest ? depth : deepest;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return deepest;
}

static bool is_plain(struct bytes text, size_t at, size_t len)
{
    uint8_t c = text.ptr[at];

    return c >= 0x20 && c != 0x7f && c != '\\' &&
           !(len == 2 && c == 0xc2 && text.ptr[at + 1] < 0xa0);
}

struct shown shown(struct bytes text)
{
    static const char hex[] = "0123456789abcdef";
    struct shown out = { .text = "" };
    size_t n = 0;

    for (size_t at = 0; at < text.len;) {
        size_t len = bytes_utf8_len(bytes_of(text.ptr + at, text.len - at));
        if (at + (len > 0 ? len : 1) > SHOWN_NAME)
            break;
        if (len > 0 && is_plain(text, at, len)) {
            memcpy(out.text + n, text.ptr + at, len);
            n += len;
            at += len;
            continue;
        }
        for (size_t end = at + (len > 0 ? len : 1); at < end; at++) {
            out.text[n++] = '\\';
            out.text[n++] = 'x';
            out.text[n++] = hex[text.ptr[at] >> 4];
            out.text[n++] = hex[text.ptr[at] & 15];
        }
    }
    out.text[n] = '\0';
    return out;
}

static const struct member *find(const struct member *table, size_t n, struct bytes key)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes_eq(bytes_str(table[i].name), key))
            return &table[i];
    }
    return NULL;
}

belay_rc members_read(const json_t *value, const struct member *table, size_t n,
                      const char *reason, const char *what, struct belay_error *err)
{
    json_t *o = json_walked(value);

    if (!json_is_object(value))
        return err_reason(err, BELAY_INVALID, reason, "%s: must be an object", what);
    for (size_t i = 0; i < n; i++)
        *table[i].out = NULL;
    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        struct bytes key =
            bytes_of(json_object_iter_key(at), json_object_iter_key_len(at));
        const struct member *m = find(table, n, key);
        if (!m)
            return err_reason(err, BELAY_INVALID, reason, "%s: has no member `%s`",
                              what, shown(key).text);
        const json_t *given = json_object_iter_value(at);
        *m->out = json_is_null(given) ? NULL : given;
    }
    return BELAY_OK;
}
