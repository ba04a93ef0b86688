/* Selectors as they are declared. */
#include "policy/event_select.h"
#include "policy/members.h"
#include "policy/words.h"

struct reading {
    const char *what;
    size_t count;
    struct belay_arena *arena;
    struct belay_error *err;
};

static belay_rc bad(const struct reading *r, const char *why)
{
    return err_reason(r->err, BELAY_INVALID, "selector", "%s: %s", r->what, why);
}

static const char *const kind_names[] = {
    [SELECTOR_PAYLOAD] = "payload", [SELECTOR_POINTER] = "pointer",
    [SELECTOR_CONST] = "const",     [SELECTOR_TEMPLATE] = "template",
    [SELECTOR_PRESENT] = "present",
};
static const struct words kinds = { kind_names, (int)COUNT_OF(kind_names) };

static belay_rc read_in(struct reading *r, const json_t *declared, int depth,
                        struct selector *out);

static belay_rc read_pointer(const struct reading *r, const json_t *declared,
                             struct selector *out)
{
    out->text = json_bytes(declared);
    if (!json_is_string(declared) || !pointer_is_valid(out->text))
        return bad(r, "a pointer is \"\" or /a/b, with ~0 for ~ and ~1 for /, of at "
                      "most 1024 bytes");
    return BELAY_OK;
}

/* Where a name belongs among those before it: they are few. */
static size_t place_of(const struct selector_field *fields, size_t n, struct bytes name)
{
    while (n > 0 && bytes_cmp(fields[n - 1].name, name) > 0)
        n--;
    return n;
}

static belay_rc read_fields(struct reading *r, const json_t *declared, int depth,
                            struct selector *out)
{
    json_t *o = json_walked(declared);
    size_t n = 0;

    if (json_object_size(declared) > SELECTOR_FIELDS_MAX)
        return bad(r, "a template has at most 64 fields");
    struct selector_field *fields =
        arena_zalloc(r->arena, json_object_size(declared), sizeof(*fields));
    if (!fields)
        return err_no_memory(r->err, "a selector");
    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        struct selector_field field = {
            .name = bytes_of(json_object_iter_key(at), json_object_iter_key_len(at)),
        };
        belay_rc rc = read_in(r, json_object_iter_value(at), depth, &field.selector);
        if (rc != BELAY_OK)
            return rc;
        size_t place = place_of(fields, n, field.name);
        memmove(&fields[place + 1], &fields[place], (n - place) * sizeof(*fields));
        fields[place] = field;
        n++;
    }
    out->fields = fields;
    out->n_fields = n;
    return BELAY_OK;
}

static belay_rc read_template(struct reading *r, const json_t *declared, int depth,
                              struct selector *out)
{
    const json_t *text = NULL, *fields = NULL;
    const struct member table[] = { { "template", &text }, { "fields", &fields } };
    belay_rc rc =
        members_read(declared, table, COUNT_OF(table), "selector", r->what, r->err);

    if (rc != BELAY_OK)
        return rc;
    if (!json_is_string(text) || (fields && !json_is_object(fields)))
        return bad(r, "a template is {\"template\":\"text\",\"fields\":{...}}");
    if (json_string_length(text) > SELECTOR_TEXT_MAX)
        return bad(r, "a template has at most 1048576 bytes");
    out->text = json_bytes(text);
    return fields ? read_fields(r, fields, depth + 1, out) : BELAY_OK;
}

static belay_rc read_kind(struct reading *r, const json_t *given, int depth,
                          struct selector *out)
{
    switch (out->kind) {
    case SELECTOR_PAYLOAD:
        break;
    case SELECTOR_POINTER:
    case SELECTOR_PRESENT:
        return read_pointer(r, given, out);
    case SELECTOR_CONST:
        out->value = given;
        return BELAY_OK;
    case SELECTOR_TEMPLATE:
        return read_template(r, given, depth, out);
    }
    return bad(r, "\"payload\" stands alone");
}

static belay_rc read_in(struct reading *r, const json_t *declared, int depth,
                        struct selector *out)
{
    json_t *o = json_walked(declared);
    void *at = json_object_iter(o);
    struct selector s = { .kind = SELECTOR_PAYLOAD };
    int kind = 0;

    if (depth > SELECTOR_DEPTH_MAX || r->count++ == SELECTOR_COUNT_MAX)
        return bad(r, "templates hold templates 8 deep and 256 selectors, at most");
    if (json_is_string(declared) &&
        bytes_eq(json_bytes(declared), bytes_str(kind_names[SELECTOR_PAYLOAD]))) {
        *out = s;
        return BELAY_OK;
    }
    if (!at || json_object_size(declared) != 1 ||
        !words_parse(kinds,
                     bytes_of(json_object_iter_key(at), json_object_iter_key_len(at)),
                     &kind))
        return bad(r, "a selector is \"payload\" or an object with one of pointer, "
                      "const, template, present");
    s.kind = (enum selector_kind)kind;
    belay_rc rc = read_kind(r, json_object_iter_value(at), depth, &s);
    if (rc == BELAY_OK)
        *out = s;
    return rc;
}

belay_rc selector_read(const json_t *declared, const char *what, struct belay_arena *a,
                       struct selector *out, struct belay_error *err)
{
    struct reading r = { .what = what, .arena = a, .err = err };

    return read_in(&r, declared, 0, out);
}

/* --- and back --- */

static belay_rc write_template(const struct selector *s, struct buf *out,
                               struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    buf_append_str(out, "{\"template\":");
    json_append_string(out, s->text);
    buf_append_str(out, ",\"fields\":{");
    for (size_t i = 0; rc == BELAY_OK && i < s->n_fields; i++) {
        if (i > 0)
            buf_append_char(out, ',');
        json_append_string(out, s->fields[i].name);
        buf_append_char(out, ':');
        rc = selector_write(&s->fields[i].selector, out, err);
    }
    buf_append_str(out, "}}");
    return rc;
}

belay_rc selector_write(const struct selector *s, struct buf *out,
                        struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (s->kind == SELECTOR_PAYLOAD) {
        buf_append_str(out, "\"payload\"");
        return out->failed ? err_no_memory(err, "a selector") : BELAY_OK;
    }
    buf_append_str(out, "{\"");
    buf_append_str(out, words_name(kinds, (int)s->kind));
    buf_append_str(out, "\":");
    if (s->kind == SELECTOR_CONST)
        rc = json_write(s->value, out, err);
    else if (s->kind == SELECTOR_TEMPLATE)
        rc = write_template(s, out, err);
    else
        json_append_string(out, s->text);
    buf_append_char(out, '}');
    return rc == BELAY_OK && out->failed ? err_no_memory(err, "a selector") : rc;
}
