#include "api/op_read.h"

#include <stdio.h>

#include "api/op_json.h"
#include "base/json.h"

#define FIELD_MAX 64

belay_rc op_field_wrong(struct op_reader *r, const char *where, const char *field,
                        const char *why)
{
    (void)err_reason(r->err, BELAY_INVALID, "field", "%s%s%s: %s", where,
                     *where ? "." : "", field, why);
    err_entity(r->err, bytes_str(field));
    return BELAY_INVALID;
}

belay_rc op_field_only(struct op_reader *r, const char *where, const json_t *object,
                       const char *const *fields)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value)
    {
        (void)value;
        if (op_read_name(fields, bytes_str(key)) < 0)
            return op_field_wrong(r, where, key, "is not known");
    }
    return BELAY_OK;
}

belay_rc op_field_text(struct op_reader *r, const char *where, const json_t *object,
                       const char *field, bool required, const char **out)
{
    const json_t *value = json_object_get(object, field);

    if (json_is_string(value)) {
        *out = json_string_value(value);
        return BELAY_OK;
    }
    if ((value && !json_is_null(value)) || required)
        return op_field_wrong(r, where, field, "must be a string");
    *out = NULL;
    return BELAY_OK;
}

belay_rc op_field_number(struct op_reader *r, const char *where, const json_t *object,
                         const char *field, int64_t *out)
{
    const json_t *value = json_object_get(object, field);

    if (!value || json_is_null(value))
        return BELAY_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return op_field_wrong(r, where, field, "must be a whole number from 0");
    *out = json_integer_value(value);
    return BELAY_OK;
}

belay_rc op_field_list(struct op_reader *r, const char *where, const json_t *object,
                       const char *field, const json_t **out, size_t *n)
{
    const json_t *value = json_object_get(object, field);

    *out = json_is_array(value) ? value : NULL;
    *n = json_array_size(value);
    if (value && !json_is_null(value) && !*out)
        return op_field_wrong(r, where, field, "must be a list");
    return BELAY_OK;
}

belay_rc op_field_texts(struct op_reader *r, const char *where, const json_t *object,
                        const char *field, const char *const **out, size_t *n)
{
    const json_t *list;
    belay_rc rc = op_field_list(r, where, object, field, &list, n);

    *out = NULL;
    if (rc != BELAY_OK || *n == 0)
        return rc;
    const char **texts = arena_zalloc(r->arena, *n, sizeof(*texts));
    if (!texts)
        return err_no_memory(r->err, "a list");
    for (size_t i = 0; i < *n; i++) {
        texts[i] = json_string_value(json_array_get(list, i));
        if (!texts[i])
            return op_field_wrong(r, where, field, "must hold strings");
    }
    *out = texts;
    return BELAY_OK;
}

belay_rc op_field_object(struct op_reader *r, const char *where, const json_t *object,
                         const char *field, const json_t **out)
{
    const json_t *value = json_object_get(object, field);

    *out = json_is_object(value) ? value : NULL;
    if (value && !json_is_null(value) && !*out)
        return op_field_wrong(r, where, field, "must be an object");
    return BELAY_OK;
}

static belay_rc read_base64(struct op_reader *r, const char *where, const char *field,
                            const json_t *value, struct bytes *out)
{
    bool no_memory = false;

    if (!json_is_string(value))
        return op_field_wrong(r, where, field, "must be a string");
    out->ptr = op_base64(bytes_of(json_string_value(value), json_string_length(value)),
                         r->arena, &out->len, &no_memory);
    if (no_memory)
        return err_no_memory(r->err, "bytes");
    return out->ptr ? BELAY_OK : op_field_wrong(r, where, field, "is not base64");
}

belay_rc op_field_data(struct op_reader *r, const char *where, const json_t *object,
                       const char *field, struct bytes *out, bool *is_json)
{
    const json_t *value = json_object_get(object, field);
    char coded[FIELD_MAX];

    (void)snprintf(coded, sizeof(coded), "%s_base64", field);
    const json_t *base64 = json_object_get(object, coded);
    *out = bytes_of(NULL, 0);
    *is_json = value != NULL;
    if (value && base64)
        return op_field_wrong(r, where, coded,
                              "goes instead of the other, not with it");
    if (value)
        return op_field_canonical(r, value, out);
    return base64 ? read_base64(r, where, coded, base64, out) : BELAY_OK;
}

belay_rc op_field_canonical(struct op_reader *r, const json_t *value, struct bytes *out)
{
    struct buf text CLEANUP(buf_release) = { 0 };
    belay_rc rc = json_write(value, &text, r->err);

    if (rc == BELAY_OK && !arena_copy(r->arena, buf_view(&text), out))
        rc = err_no_memory(r->err, "JSON");
    return rc;
}
