/* One name of a template, everywhere.  The length is known before a byte is written. */
#include "policy/event_select_impl.h"

/* Where the first "{name}" begins at or behind `from`, or the text's length. */
static size_t find(struct bytes text, size_t from, struct bytes hole)
{
    const uint8_t *at =
        text.len - from < hole.len
            ? NULL
            : memmem(text.ptr + from, text.len - from, hole.ptr, hole.len);

    return at ? (size_t)(at - text.ptr) : text.len;
}

static size_t count(struct bytes text, struct bytes hole)
{
    size_t n = 0;

    for (size_t at = find(text, 0, hole); at < text.len;
         at = find(text, at + hole.len, hole))
        n++;
    return n;
}

static bool spend(struct selection *s, size_t bytes)
{
    if (bytes > s->left)
        return false;
    s->left -= bytes;
    return true;
}

static bool make_hole(struct bytes name, struct belay_arena *a, struct bytes *out)
{
    struct buf hole = buf_in(a);

    buf_append_char(&hole, '{');
    buf_append(&hole, name);
    buf_append_char(&hole, '}');
    *out = buf_view(&hole);
    return !hole.failed;
}

belay_rc template_replace(struct selection *s, struct bytes *text, struct bytes name,
                          struct bytes by)
{
    struct bytes hole = { 0 };

    if (!spend(s, text->len + name.len))
        return selection_too_large(s);
    if (!make_hole(name, s->arena, &hole))
        return err_no_memory(s->err, "a template");
    size_t n = count(*text, hole);
    if (n == 0)
        return BELAY_OK;
    /* Both below SELECTOR_TEXT_MAX, as is every text that comes here: no overflow. */
    size_t len = text->len - n * hole.len + n * by.len;
    if (len > SELECTOR_TEXT_MAX || !spend(s, len))
        return selection_too_large(s);

    uint8_t *out = arena_alloc(s->arena, len);
    if (!out)
        return err_no_memory(s->err, "a template");
    size_t from = 0, to = 0;
    for (size_t at = find(*text, 0, hole); at < text->len;
         at = find(*text, from, hole)) {
        memcpy(out + to, text->ptr + from, at - from);
        to += at - from;
        if (by.len > 0)
            memcpy(out + to, by.ptr, by.len);
        to += by.len;
        from = at + hole.len;
    }
    if (from < text->len)
        memcpy(out + to, text->ptr + from, text->len - from);
    *text = bytes_of(out, len);
    return BELAY_OK;
}
