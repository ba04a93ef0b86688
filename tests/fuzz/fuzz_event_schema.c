/* A schema and, in the second line, a payload: the validator and a naive one agree. */
#include "fuzz.h"
#include "policy/event_schema.h"

/* Steps of the naive validator, which has no other bound. */
static unsigned long naive_steps;
#define NAIVE_MAX 300000

static bool naive_type(const char *name, const json_t *v)
{
    if (!strcmp(name, "null"))
        return json_is_null(v);
    if (!strcmp(name, "boolean"))
        return json_is_boolean(v);
    if (!strcmp(name, "string"))
        return json_is_string(v);
    if (!strcmp(name, "integer"))
        return json_is_integer(v);
    if (!strcmp(name, "number"))
        return json_is_number(v);
    if (!strcmp(name, "array"))
        return json_is_array(v);
    if (!strcmp(name, "object"))
        return json_is_object(v);
    return true;
}

static bool naive_types(const json_t *type, const json_t *v)
{
    if (json_is_string(type))
        return naive_type(json_string_value(type), v);
    if (!json_is_array(type))
        return true;
    for (size_t i = 0; i < json_array_size(type); i++) {
        const json_t *name = json_array_get(type, i);
        if (json_is_string(name) && naive_type(json_string_value(name), v))
            return true;
    }
    return false;
}

/* 64 bits of mantissa hold every integer and every double. */
static long double number(const json_t *v)
{
    return json_is_integer(v) ? (long double)json_integer_value(v)
                              : (long double)json_real_value(v);
}

static bool naive_range(const json_t *schema, const char *min, const char *max,
                        long double n, bool counts)
{
    const json_t *low = json_object_get(schema, min);
    const json_t *high = json_object_get(schema, max);

    if (counts) {
        low = json_is_integer(low) && json_integer_value(low) >= 0 ? low : NULL;
        high = json_is_integer(high) && json_integer_value(high) >= 0 ? high : NULL;
    }
    return !(json_is_number(low) && n < number(low)) &&
           !(json_is_number(high) && n > number(high));
}

static size_t scalars(const json_t *string)
{
    struct bytes rest = bytes_of(json_string_value(string), json_string_length(string));
    size_t n = 0;

    for (size_t len; (len = bytes_utf8_len(rest)) > 0; n++)
        rest = bytes_of(rest.ptr + len, rest.len - len);
    return n;
}

static bool naive(const json_t *schema, const json_t *v);

static bool naive_object(const json_t *schema, const json_t *v)
{
    const json_t *required = json_object_get(schema, "required");
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *more = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *member;

    for (size_t i = 0; i < json_array_size(required); i++) {
        const json_t *name = json_array_get(required, i);
        if (json_is_string(name) && !json_object_get(v, json_string_value(name)))
            return false;
    }
    if (!json_is_object(properties))
        return true;
    json_object_foreach((json_t *)v, key, member)
    {
        const json_t *known = json_object_get(properties, key);
        if (known && !naive(known, member))
            return false;
        if (known || !strcmp(key, "__session_id__") || json_is_true(more))
            continue;
        if (!json_is_object(more) || !naive(more, member))
            return false;
    }
    return true;
}

static bool naive(const json_t *schema, const json_t *v)
{
    const json_t *any = json_object_get(schema, "anyOf");
    const json_t *among = json_object_get(schema, "enum");
    bool found = false;

    if (naive_steps++ > NAIVE_MAX || json_is_false(schema))
        return false;
    if (!any)
        any = json_object_get(schema, "oneOf");
    if (json_is_array(any)) {
        for (size_t i = 0; i < json_array_size(any); i++)
            found = found || naive(json_array_get(any, i), v);
        return found;
    }
    for (size_t i = 0; i < json_array_size(among); i++, naive_steps++)
        found = found || json_equal(json_array_get(among, i), v);
    if ((json_is_array(among) && !found) ||
        !naive_types(json_object_get(schema, "type"), v))
        return false;
    if (json_is_number(v) &&
        !naive_range(schema, "minimum", "maximum", number(v), false))
        return false;
    if (json_is_string(v) &&
        !naive_range(schema, "minLength", "maxLength", (long double)scalars(v), true))
        return false;
    if (json_is_array(v)) {
        const json_t *items = json_object_get(schema, "items");
        if (!naive_range(schema, "minItems", "maxItems",
                         (long double)json_array_size(v), true))
            return false;
        for (size_t i = 0; items && i < json_array_size(v); i++) {
            if (!naive(items, json_array_get(v, i)))
                return false;
        }
    }
    return !json_is_object(v) || naive_object(schema, v);
}

static void compare(const json_t *schema, const json_t *payload)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    CLEANUP(fuzz_release) json_t *other = fuzz_reversed(payload);
    struct belay_error err = { .size = sizeof(err) };
    belay_rc rc = event_schema_validate(schema, payload, &a, &err);

    FUZZ_CHECK(rc == BELAY_OK || rc == BELAY_INVALID);
    FUZZ_CHECK((int32_t)rc == err.code);
    FUZZ_CHECK(rc == event_schema_validate(schema, other, &a, NULL));
    if (rc == BELAY_INVALID) {
        FUZZ_CHECK(strstr(err.message, ": ") && err.reason[0]);
        FUZZ_CHECK(bytes_is_utf8(bytes_str(err.message)));
        FUZZ_CHECK(strpbrk(err.message, "\n\r\t\x1b") == NULL);
        if (strcmp(err.reason, "payload") != 0)
            return; /* it was given up */
    }
    naive_steps = 0;
    bool accepted = naive(schema, payload);
    FUZZ_CHECK(naive_steps > NAIVE_MAX || accepted == (rc == BELAY_OK));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct bytes rest = bytes_of(data, size);
    struct belay_error err = { .size = sizeof(err) };
    CLEANUP(fuzz_release) json_t *schema = fuzz_json(fuzz_line(&rest));
    CLEANUP(fuzz_release) json_t *payload = fuzz_json(rest);

    if (!schema || !payload)
        return 0;
    belay_rc rc = event_schema_check(schema, &a, &err);
    FUZZ_CHECK(rc == BELAY_OK ||
               (rc == BELAY_INVALID && !strcmp(err.reason, "schema")));
    compare(schema, payload);
    return 0;
}
