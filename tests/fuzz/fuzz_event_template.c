/* A template, then a name and a text by turns, a line each: what is put in is what a byte
 * by byte substitution puts in. */
#include "fuzz.h"
#include "policy/event_select.h"

#define FIELDS_MAX 8
#define NAIVE_MAX ((size_t)SELECTOR_TEXT_MAX)

struct field {
    struct bytes name, text;
};

/* Fields in bytewise order of their names; the last of equal names stands. */
static size_t read_fields(struct bytes rest, struct field *out)
{
    size_t n = 0;

    while (rest.len > 0 && n < FIELDS_MAX) {
        struct bytes name = fuzz_line(&rest);
        struct field f = { name, fuzz_line(&rest) };
        size_t at = 0;
        while (at < n && bytes_cmp(out[at].name, f.name) < 0)
            at++;
        if (at < n && bytes_eq(out[at].name, f.name)) {
            out[at] = f;
            continue;
        }
        memmove(&out[at + 1], &out[at], (n - at) * sizeof(*out));
        out[at] = f;
        n++;
    }
    return n;
}

static bool begins_with_hole(struct bytes text, size_t at, struct bytes name)
{
    return text.len - at >= name.len + 2 && text.ptr[at] == '{' &&
           (name.len == 0 || memcmp(text.ptr + at + 1, name.ptr, name.len) == 0) &&
           text.ptr[at + 1 + name.len] == '}';
}

/* False when it grows beyond the bound. */
static bool substitute(struct buf *text, const struct field *f)
{
    struct buf out = { 0 };

    for (size_t at = 0; at < text->len && out.len <= NAIVE_MAX;) {
        if (begins_with_hole(buf_view(text), at, f->name)) {
            buf_append(&out, f->text);
            at += f->name.len + 2;
            continue;
        }
        const uint8_t *next = memchr(text->ptr + at + 1, '{', text->len - at - 1);
        size_t n = next ? (size_t)(next - text->ptr) - at : text->len - at;
        buf_append(&out, bytes_of(text->ptr + at, n)); /* up to what may be a hole */
        at += n;
    }
    bool fits = out.len <= NAIVE_MAX;
    buf_release(text);
    *text = out;
    return fits;
}

static json_t *declare(struct bytes template, const struct field *fields, size_t n)
{
    json_t *object = json_object();

    for (size_t i = 0; i < n; i++)
        (void)json_object_setn_new(
            object, (const char *)fields[i].name.ptr, fields[i].name.len,
            json_pack(
                "{s:o}", "const",
                json_stringn((const char *)fields[i].text.ptr, fields[i].text.len)));
    return json_pack("{s:{s:o,s:o}}", "template", "template",
                     json_stringn((const char *)template.ptr, template.len), "fields",
                     object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    CLEANUP(buf_release) struct buf naive = { 0 };
    struct belay_error err = { .size = sizeof(err) };
    struct bytes rest = bytes_of(data, size);
    struct field fields[FIELDS_MAX + 1];
    struct selected out;
    struct selector s;

    if (size == 0 || size > FUZZ_INPUT_MAX || !bytes_is_utf8(rest) ||
        memchr(data, 0, size))
        return 0;
    struct bytes template = fuzz_line(&rest);
    size_t n = read_fields(rest, fields);
    CLEANUP(fuzz_release) json_t *declared = declare(template, fields, n);
    FUZZ_CHECK(declared);
    FUZZ_CHECK(selector_read(declared, "it", &a, &s, &err) == BELAY_OK);
    belay_rc rc = selector_select(&s, declared, &a, &out, &err);

    bool fits = true;
    buf_append(&naive, template);
    for (size_t i = 0; fits && i < n; i++)
        fits = substitute(&naive, &fields[i]);
    if (rc == BELAY_OK) {
        FUZZ_CHECK(fits && !out.value && out.is_text);
        FUZZ_CHECK(bytes_eq(out.text, buf_view(&naive)));
        FUZZ_CHECK(selected_is_true(&out) == (naive.len > 0));
    } else {
        FUZZ_CHECK(rc == BELAY_INVALID && strcmp(err.reason, "too_large") == 0);
        FUZZ_CHECK(!fits || naive.len > SELECTOR_TEXT_MAX / 8); /* or too much work */
    }
    return 0;
}
