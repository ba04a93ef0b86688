/* Selectors at work. */
#include "policy/event_select.h"

#include "policy/event_select_impl.h"
#include "policy/members.h"

/* --- pointers --- */

bool pointer_is_valid(struct bytes pointer)
{
    if (pointer.len == 0)
        return true;
    if (pointer.len > SELECTOR_POINTER_MAX || pointer.ptr[0] != '/')
        return false;
    for (size_t i = 0; i < pointer.len; i++) {
        if (pointer.ptr[i] != '~')
            continue;
        if (i + 1 == pointer.len ||
            (pointer.ptr[i + 1] != '0' && pointer.ptr[i + 1] != '1'))
            return false;
    }
    return true;
}

/* The part up to the next "/", its escapes resolved into `out`; its length. */
static size_t next_token(struct bytes *rest, char out[SELECTOR_POINTER_MAX])
{
    size_t n = 0, i = 0;

    for (; i < rest->len && rest->ptr[i] != '/'; i++) {
        uint8_t c = rest->ptr[i];
        if (c == '~')
            c = rest->ptr[++i] == '0' ? '~' : '/';
        out[n++] = (char)c;
    }
    *rest = bytes_of(rest->ptr + i, rest->len - i);
    return n;
}

static const json_t *item_of(const json_t *array, struct bytes token)
{
    int64_t index;

    if (!bytes_to_i64(token, &index) || index < 0)
        return NULL;
    return json_array_get(array, (size_t)index);
}

const json_t *pointer_find(const json_t *value, struct bytes pointer)
{
    char token[SELECTOR_POINTER_MAX];

    if (!pointer_is_valid(pointer))
        return NULL;
    while (value && pointer.len > 0) {
        pointer = bytes_of(pointer.ptr + 1, pointer.len - 1); /* the slash */
        size_t n = next_token(&pointer, token);
        if (json_is_object(value))
            value = json_object_getn(value, token, n);
        else
            value = item_of(value, bytes_of(token, n)); /* nothing is in a scalar */
    }
    return value;
}

/* --- selecting --- */

belay_rc selection_too_large(const struct selection *s)
{
    (void)err_reason(s->err, BELAY_INVALID, "too_large",
                     "selector: its text is longer than %d bytes or takes too long",
                     SELECTOR_TEXT_MAX);
    err_numbers(s->err, SELECTOR_TEXT_MAX, SELECTOR_TEXT_MAX + 1);
    return BELAY_INVALID;
}

static belay_rc no_match(const struct selection *s, struct bytes pointer)
{
    return err_reason(s->err, BELAY_INVALID, "pointer",
                      "payload pointer `%s` did not match", shown(pointer).text);
}

static belay_rc select_in(const struct selector *s, struct selection *in,
                          struct selected *out);

/* The text form of what a field selects.  What is borrowed costs its length, too. */
static belay_rc field_text(const struct selector_field *f, struct selection *in,
                           struct bytes *out)
{
    struct selected chosen = { .value = NULL };
    belay_rc rc = select_in(&f->selector, in, &chosen);

    if (rc == BELAY_OK)
        rc = selected_text(&chosen, in->arena, out, in->err);
    if (rc != BELAY_OK)
        return rc;
    if (out->len > in->left)
        return selection_too_large(in);
    in->left -= out->len;
    return BELAY_OK;
}

static belay_rc fill_template(const struct selector *s, struct selection *in,
                              struct selected *out)
{
    struct bytes text = s->text, by = { 0 };
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; rc == BELAY_OK && i < s->n_fields; i++) {
        rc = field_text(&s->fields[i], in, &by);
        if (rc == BELAY_OK)
            rc = template_replace(in, &text, s->fields[i].name, by);
    }
    if (rc == BELAY_OK)
        *out = (struct selected){ .is_text = true, .text = text };
    return rc;
}

static belay_rc select_in(const struct selector *s, struct selection *in,
                          struct selected *out)
{
    const json_t *value = NULL;

    switch (s->kind) {
    case SELECTOR_PAYLOAD:
        value = in->payload;
        break;
    case SELECTOR_POINTER:
        value = pointer_find(in->payload, s->text);
        if (!value)
            return no_match(in, s->text);
        break;
    case SELECTOR_CONST:
        value = s->value;
        break;
    case SELECTOR_TEMPLATE:
        return fill_template(s, in, out);
    case SELECTOR_PRESENT:
        *out = (struct selected){ .truth = pointer_find(in->payload, s->text) != NULL };
        return BELAY_OK;
    }
    *out = (struct selected){ .value = value };
    return BELAY_OK;
}

belay_rc selector_select(const struct selector *s, const json_t *payload,
                         struct belay_arena *a, struct selected *out,
                         struct belay_error *err)
{
    struct selection in = {
        .payload = payload, .left = SELECTOR_WORK_MAX, .arena = a, .err = err
    };

    return select_in(s, &in, out);
}

/* --- what was selected --- */

bool selected_is_true(const struct selected *s)
{
    if (!s->value)
        return s->is_text ? s->text.len > 0 : s->truth;
    switch (json_typeof(s->value)) {
    case JSON_OBJECT:
        return json_object_size(s->value) > 0;
    case JSON_ARRAY:
        return json_array_size(s->value) > 0;
    case JSON_STRING:
        return json_string_length(s->value) > 0;
    case JSON_INTEGER:
    case JSON_REAL:
    case JSON_TRUE:
        return true;
    case JSON_FALSE:
    case JSON_NULL:
        return false;
    }
    return false;
}

belay_rc selected_write(const struct selected *s, struct buf *out,
                        struct belay_error *err)
{
    if (s->value)
        return json_write(s->value, out, err);
    if (s->is_text)
        json_append_string(out, s->text);
    else
        buf_append_str(out, s->truth ? "true" : "false");
    return out->failed ? err_no_memory(err, "a selected value") : BELAY_OK;
}

belay_rc selected_text(const struct selected *s, struct belay_arena *a,
                       struct bytes *out, struct belay_error *err)
{
    struct bytes text;

    if (json_is_string(s->value)) {
        text = json_bytes(s->value);
    } else if (!s->value && s->is_text) {
        text = s->text;
    } else {
        struct buf written = buf_in(a);
        belay_rc rc = selected_write(s, &written, err);
        if (rc != BELAY_OK)
            return rc;
        text = buf_view(&written);
    }
    if (text.len > SELECTOR_TEXT_MAX)
        return selection_too_large(&(struct selection){ .err = err });
    *out = text;
    return BELAY_OK;
}
