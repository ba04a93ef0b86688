#include "policy/registration.h"

#include "policy/members.h"

/* --- reading --- */

static belay_rc read_provenance(const json_t *value, struct registration *r,
                                struct belay_error *err)
{
    const json_t *scope = NULL, *profile = NULL;
    const struct member table[] = { { "owner_scope", &scope },
                                    { "host_profile_id", &profile },
                                    { "caused_by", &r->caused_by } };
    belay_rc rc =
        members_read(value, table, COUNT_OF(table), "registration", "provenance", err);

    if (rc == BELAY_OK && scope)
        rc = scope_read(scope, "owner_scope", &r->owner, err);
    if (rc != BELAY_OK)
        return rc;
    if (profile && !json_is_string(profile))
        return err_reason(err, BELAY_INVALID, "registration",
                          "host_profile_id: must be a string");
    r->host_profile = json_bytes(profile);
    return BELAY_OK;
}

belay_rc registration_read(const json_t *value, struct registration *out,
                           struct belay_error *err)
{
    struct registration r = { .input = NULL };
    const json_t *id = NULL, *provenance = NULL;
    const struct member table[] = { { "id", &id },
                                    { "input", &r.input },
                                    { "event_types", &r.event_types },
                                    { "provenance", &provenance } };
    belay_rc rc = members_read(value, table, COUNT_OF(table), "registration",
                               "registration", err);

    if (rc != BELAY_OK)
        return rc;
    if (id && !json_is_string(id))
        return err_reason(err, BELAY_INVALID, "registration",
                          "registration: id must be a string");
    r.id = json_bytes(id);
    if (provenance)
        rc = read_provenance(provenance, &r, err);
    if (rc == BELAY_OK)
        *out = r;
    return rc;
}

/* --- checks --- */

/* Length of the white space a text begins with, as Unicode has it; 0: none. */
static size_t space_len(struct bytes text)
{
    static const char *const spaces[] = {
        " ",
        "\t",
        "\n",
        "\v",
        "\f",
        "\r",
        "\xc2\x85",
        "\xc2\xa0",
        "\xe1\x9a\x80",
        "\xe2\x80\x80",
        "\xe2\x80\x81",
        "\xe2\x80\x82",
        "\xe2\x80\x83",
        "\xe2\x80\x84",
        "\xe2\x80\x85",
        "\xe2\x80\x86",
        "\xe2\x80\x87",
        "\xe2\x80\x88",
        "\xe2\x80\x89",
        "\xe2\x80\x8a",
        "\xe2\x80\xa8",
        "\xe2\x80\xa9",
        "\xe2\x80\xaf",
        "\xe2\x81\x9f",
        "\xe3\x80\x80",
    };

    for (size_t i = 0; i < COUNT_OF(spaces); i++) {
        size_t n = strlen(spaces[i]);
        if (text.len >= n && memcmp(text.ptr, spaces[i], n) == 0)
            return n;
    }
    return 0;
}

static bool is_blank(struct bytes text)
{
    for (size_t n = 0; text.len > 0; text = bytes_of(text.ptr + n, text.len - n)) {
        n = space_len(text);
        if (n == 0)
            return false;
    }
    return true;
}

static belay_rc check_name(struct bytes name, size_t max, const char *reason,
                           const char *what, struct belay_error *err)
{
    if (is_blank(name))
        return err_reason(err, BELAY_INVALID, reason, "%s is blank", what);
    if (!bytes_is_id(name, max))
        return err_reason(err, BELAY_INVALID, reason,
                          "%s must be 1 to %zu bytes of UTF-8 without control "
                          "characters",
                          what, max);
    return BELAY_OK;
}

static belay_rc check_input(const json_t *input, struct belay_error *err)
{
    const json_t *type = json_object_get(input, "type");

    if (!input || (json_is_string(type) && bytes_is_id(json_bytes(type), 255)))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "input",
                      "input: must be an object with a type, which is a name");
}

static belay_rc check(const struct registration *in, struct belay_error *err)
{
    belay_rc rc = check_name(in->id, PROCESS_ID_MAX, "process_id", "process id", err);

    if (rc == BELAY_OK)
        rc = scope_check(in->owner, "process", err);
    if (rc == BELAY_OK)
        rc = check_name(in->host_profile, PROCESS_PROFILE_MAX, "host_profile",
                        "host profile id", err);
    return rc ? rc : check_input(in->input, err);
}

/* --- event types --- */

struct types {
    struct event_type list[EVENT_TYPES_MAX];
    size_t n;
};

static bool has_type(const struct types *t, struct bytes name)
{
    for (size_t i = 0; i < t->n; i++) {
        if (bytes_eq(t->list[i].name, name))
            return true;
    }
    return false;
}

static belay_rc too_many(struct belay_error *err)
{
    return err_reason(err, BELAY_INVALID, "event_types",
                      "event types: more than %d, the core types included",
                      EVENT_TYPES_MAX);
}

static belay_rc add_type(struct types *t, const json_t *declared, struct belay_arena *a,
                         struct belay_error *err)
{
    struct event_type type;
    belay_rc rc = event_type_read(declared, a, &type, err);

    if (rc != BELAY_OK)
        return rc;
    if (is_blank(type.name))
        return err_reason(err, BELAY_INVALID, "event_types",
                          "process declares an empty event type");
    if (has_type(t, type.name))
        return err_reason(err, BELAY_INVALID, "event_types",
                          "process declares duplicate event type `%s`",
                          shown(type.name).text);
    if (t->n == COUNT_OF(t->list))
        return too_many(err);
    t->list[t->n++] = type;
    return BELAY_OK;
}

/* Those that are declared, then the core types that are not. */
static belay_rc collect_types(const json_t *declared, struct belay_arena *a,
                              struct types *t, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (declared && !json_is_array(declared))
        return err_reason(err, BELAY_INVALID, "event_types",
                          "event types: must be an array");
    for (size_t i = 0; rc == BELAY_OK && i < json_array_size(declared); i++)
        rc = add_type(t, json_array_get(declared, i), a, err);
    for (size_t i = 0; rc == BELAY_OK && i < EVENT_CORE_COUNT; i++) {
        if (has_type(t, event_core[i].name))
            continue;
        if (t->n == COUNT_OF(t->list))
            return too_many(err);
        t->list[t->n++] = event_core[i];
    }
    return rc;
}

/* --- the canonical form --- */

/* A part of the text that is being written; its place may still move. */
struct part {
    size_t from, to;
};

struct writing {
    struct buf text;
    struct part input, event_types, provenance, caused_by;
    struct belay_arena *arena;
    struct belay_error *err;
};

/* Where the member `"type":` of a canonical object begins and ends. */
static struct part find_type(struct bytes object)
{
    static const char key[] = "\"type\":";
    struct part found = { 1, 1 };
    size_t depth = 0, start = 1;
    bool in_string = false;

    for (size_t i = 0; i < object.len; i++) {
        uint8_t c = object.ptr[i];
        if (in_string) {
            i += c == '\\'; /* what is escaped cannot end it */
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == ',' || c == '}') && depth == 1) {
            if (i - start >= sizeof(key) - 1 &&
                memcmp(object.ptr + start, key, sizeof(key) - 1) == 0)
                found = (struct part){ start, i };
            start = i + 1;
            depth -= c == '}';
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return found;
}

/* The type first, then the rest in order. */
static belay_rc write_input(const json_t *input, struct writing *w)
{
    struct buf sorted = buf_in(w->arena);

    if (!input) {
        buf_append_str(&w->text, "{\"type\":\"external\",\"metadata\":null}");
        return BELAY_OK;
    }
    belay_rc rc = json_write(input, &sorted, w->err);
    if (rc != BELAY_OK)
        return rc;
    struct part type = find_type(buf_view(&sorted));
    buf_append_char(&w->text, '{');
    buf_append(&w->text, bytes_of(sorted.ptr + type.from, type.to - type.from));
    if (type.from > 1) { /* with the comma at its end in front */
        buf_append_char(&w->text, ',');
        buf_append(&w->text, bytes_of(sorted.ptr + 1, type.from - 2));
    }
    buf_append(&w->text, bytes_of(sorted.ptr + type.to, sorted.len - type.to));
    return BELAY_OK;
}

static belay_rc write_types(const struct types *t, struct writing *w)
{
    belay_rc rc = BELAY_OK;

    buf_append_char(&w->text, '[');
    for (size_t i = 0; rc == BELAY_OK && i < t->n; i++) {
        if (i > 0)
            buf_append_char(&w->text, ',');
        rc = event_type_write(&t->list[i], &w->text, w->err);
    }
    buf_append_char(&w->text, ']');
    return rc;
}

static belay_rc write_provenance(const struct registration *in, struct writing *w)
{
    belay_rc rc = BELAY_OK;

    buf_append_str(&w->text, "{\"owner_scope\":");
    scope_write(in->owner, &w->text);
    buf_append_str(&w->text, ",\"host_profile_id\":");
    json_append_string(&w->text, in->host_profile);
    if (in->caused_by) {
        buf_append_str(&w->text, ",\"caused_by\":");
        w->caused_by.from = w->text.len;
        rc = json_write(in->caused_by, &w->text, w->err);
        w->caused_by.to = w->text.len;
    }
    buf_append_char(&w->text, '}');
    return rc;
}

static belay_rc write_all(const struct registration *in, const struct types *t,
                          struct writing *w)
{
    buf_append_str(&w->text, "{\"id\":");
    json_append_string(&w->text, in->id);
    buf_append_str(&w->text, ",\"input\":");
    w->input.from = w->text.len;
    belay_rc rc = write_input(in->input, w);
    w->input.to = w->text.len;
    buf_append_str(&w->text, ",\"event_types\":");
    w->event_types.from = w->text.len;
    if (rc == BELAY_OK)
        rc = write_types(t, w);
    w->event_types.to = w->text.len;
    buf_append_str(&w->text, ",\"provenance\":");
    w->provenance.from = w->text.len;
    if (rc == BELAY_OK)
        rc = write_provenance(in, w);
    w->provenance.to = w->text.len;
    buf_append_char(&w->text, '}');
    if (rc == BELAY_OK && w->text.failed)
        rc = err_no_memory(w->err, "a registration");
    if (rc == BELAY_OK && json_nesting(buf_view(&w->text)) > JSON_DEPTH_MAX)
        rc = err_reason(w->err, BELAY_INVALID, "too_deep",
                        "registration: nested deeper than %d", JSON_DEPTH_MAX);
    if (rc == BELAY_OK && w->text.len > REGISTRATION_MAX) {
        rc = err_reason(w->err, BELAY_INVALID, "too_large",
                        "registration: %zu bytes, at most %d are allowed", w->text.len,
                        REGISTRATION_MAX);
        err_numbers(w->err, REGISTRATION_MAX, (int64_t)w->text.len);
    }
    return rc;
}

/* --- all of it --- */

static struct bytes part_of(const struct writing *w, struct part p)
{
    return p.to > p.from ? bytes_of(w->text.ptr + p.from, p.to - p.from)
                         : bytes_of(NULL, 0);
}

static belay_rc finish(const struct registration *in, const struct writing *w,
                       struct registration_ready *out)
{
    struct registration_ready r = {
        .canonical = buf_view(&w->text),
        .input = part_of(w, w->input),
        .event_types = part_of(w, w->event_types),
        .provenance = part_of(w, w->provenance),
        .caused_by = part_of(w, w->caused_by),
    };
    uint8_t digest[SHA256_LEN];

    if (!arena_copy(w->arena, in->id, &r.id) ||
        !arena_copy(w->arena, in->owner.session, &r.owner.session) ||
        !arena_copy(w->arena, in->owner.frame, &r.owner.frame) ||
        !arena_copy(w->arena, in->host_profile, &r.host_profile))
        return err_no_memory(w->err, "a registration");
    belay_rc rc = sha256(r.canonical, digest, w->err);
    if (rc != BELAY_OK)
        return rc;
    hex_encode(bytes_of(digest, sizeof(digest)), r.hash);
    *out = r;
    return BELAY_OK;
}

belay_rc registration_prepare(const struct registration *in, struct belay_arena *a,
                              struct registration_ready *out, struct belay_error *err)
{
    struct registration whole = *in;
    struct writing w = { .text = buf_in(a), .arena = a, .err = err };
    struct types *types = arena_zalloc(a, 1, sizeof(*types));

    if (!types)
        return err_no_memory(err, "a registration");
    if (!whole.owner.session.ptr)
        whole.owner.session = bytes_str("root");
    if (!whole.host_profile.ptr)
        whole.host_profile = bytes_str("default");
    belay_rc rc = check(&whole, err);
    if (rc == BELAY_OK)
        rc = collect_types(whole.event_types, a, types, err);
    if (rc == BELAY_OK)
        rc = write_all(&whole, types, &w);
    return rc ? rc : finish(&whole, &w, out);
}
