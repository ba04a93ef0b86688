/* The words of a refusal: where a value is, what it is, what it should be.  Without
 * memory for them the words are "?": the refusal itself stands. */
#include "policy/event_schema_impl.h"
#include "policy/members.h"

static const char *const ellipsis = "...";

/* The bytes, or where they do not fit as many of them as do with "..." behind. */
static const char *cut_end(const struct buf *text, size_t max, struct belay_arena *a)
{
    struct buf out = buf_in(a);
    size_t keep = text->len;

    if (text->failed)
        return "?";
    if (keep > max) {
        keep = max - strlen(ellipsis);
        while (keep > 0 && (text->ptr[keep] & 0xc0) == 0x80) /* within a character */
            keep--;
    }
    buf_append(&out, bytes_of(text->ptr, keep));
    if (keep < text->len)
        buf_append_str(&out, ellipsis);
    buf_append_char(&out, '\0');
    return out.failed ? "?" : (const char *)out.ptr;
}

/* Likewise with "..." in front. */
static const char *cut_begin(const struct buf *text, size_t max, struct belay_arena *a)
{
    struct buf out = buf_in(a);
    size_t from = 0;

    if (text->failed)
        return "?";
    if (text->len > max) {
        from = text->len - max + strlen(ellipsis);
        while (from < text->len && (text->ptr[from] & 0xc0) == 0x80)
            from++;
        buf_append_str(&out, ellipsis);
    }
    buf_append(&out, bytes_of(text->ptr + from, text->len - from));
    buf_append_char(&out, '\0');
    return out.failed ? "?" : (const char *)out.ptr;
}

static void append_step(struct buf *out, const struct place *at)
{
    if (at->key.ptr) {
        if (out->len > 0)
            buf_append_char(out, '.');
        buf_append_escaped(out, at->key);
        return;
    }
    buf_append_char(out, '[');
    buf_append_i64(out, (int64_t)at->index);
    buf_append_char(out, ']');
}

const char *say_path(const struct place *at, const char *root, struct belay_arena *a)
{
    const struct place *steps[2 * JSON_DEPTH_MAX + 2];
    struct buf out = buf_in(a);
    size_t n = 0;

    for (; at && at->up && n < COUNT_OF(steps); at = at->up)
        steps[n++] = at;
    while (n-- > 0)
        append_step(&out, steps[n]);
    if (out.len == 0)
        buf_append_str(&out, root);
    return cut_begin(&out, SHOWN_PATH, a);
}

const char *say_value(const json_t *value, struct belay_arena *a)
{
    struct buf out = buf_in(a);

    if (json_write(value, &out, NULL) != BELAY_OK)
        return "a value that cannot be shown";
    return cut_end(&out, SHOWN_VALUE, a);
}

const char *say_one_of(const json_t *members, struct belay_arena *a)
{
    struct buf out = buf_in(a);

    for (size_t i = 0; i < json_array_size(members) && out.len <= SHOWN_EXPECTED; i++) {
        if (i > 0)
            buf_append_str(&out, ", ");
        buf_append_str(&out, say_value(json_array_get(members, i), a));
    }
    return cut_end(&out, SHOWN_EXPECTED, a);
}

static void append_types(struct buf *out, const json_t *type)
{
    if (json_is_string(type)) {
        buf_append_escaped(out, json_bytes(type));
        return;
    }
    for (size_t i = 0, n = 0; i < json_array_size(type) && out->len <= SHOWN_EXPECTED;
         i++) {
        const json_t *name = json_array_get(type, i);
        if (!json_is_string(name))
            continue;
        if (n++ > 0)
            buf_append_str(out, " or ");
        buf_append_escaped(out, json_bytes(name));
    }
}

static void append_part(struct buf *out, const char *before, const char *text)
{
    if (out->len > 0)
        buf_append_char(out, ' ');
    buf_append_str(out, before);
    buf_append_str(out, text);
}

const char *say_expected(const struct keywords *k, struct belay_arena *a)
{
    static const struct {
        enum keyword keyword;
        const char *sign;
    } limits[] = {
        { KEYWORD_MINIMUM, ">= " },           { KEYWORD_MAXIMUM, "<= " },
        { KEYWORD_MIN_LENGTH, "length >= " }, { KEYWORD_MAX_LENGTH, "length <= " },
        { KEYWORD_MIN_ITEMS, "items >= " },   { KEYWORD_MAX_ITEMS, "items <= " },
    };
    struct buf out = buf_in(a);

    if (k->of[KEYWORD_TYPE])
        append_types(&out, k->of[KEYWORD_TYPE]);
    else if (k->of[KEYWORD_ANY_OF] || k->of[KEYWORD_ONE_OF])
        buf_append_str(&out, "matching schema");
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        const json_t *limit = k->of[limits[i].keyword];
        if (limit)
            append_part(&out, limits[i].sign, say_value(limit, a));
    }
    if (out.len == 0)
        buf_append_str(&out, "valid value");
    return cut_end(&out, SHOWN_EXPECTED, a);
}
