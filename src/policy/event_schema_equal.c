/* Values compared with a count of the work, unlike json_equal. */
#include "policy/event_schema_impl.h"

static enum verdict equal_arrays(struct steps *s, const json_t *a, const json_t *b,
                                 int depth)
{
    enum verdict same = json_array_size(a) == json_array_size(b) ? ACCEPT : REFUSE;

    for (size_t i = 0; same == ACCEPT && i < json_array_size(a); i++)
        same = values_equal(s, json_array_get(a, i), json_array_get(b, i), depth);
    return same;
}

static enum verdict equal_objects(struct steps *s, const json_t *a, const json_t *b,
                                  int depth)
{
    json_t *o = (json_t *)a; /* the iterator is read only, but not declared so */
    enum verdict same = json_object_size(a) == json_object_size(b) ? ACCEPT : REFUSE;

    for (void *at = json_object_iter(o); same == ACCEPT && at;
         at = json_object_iter_next(o, at)) {
        size_t len = json_object_iter_key_len(at);
        if (!spend(s, steps_for(len)))
            return STOP;
        const json_t *other = json_object_getn(b, json_object_iter_key(at), len);
        same =
            other ? values_equal(s, json_object_iter_value(at), other, depth) : REFUSE;
    }
    return same;
}

enum verdict values_equal(struct steps *s, const json_t *a, const json_t *b, int depth)
{
    if (json_typeof(a) != json_typeof(b))
        return REFUSE;
    if (depth >= JSON_DEPTH_MAX && (json_is_array(a) || json_is_object(a))) {
        s->too_deep = true;
        return STOP;
    }
    if (!spend(s, json_is_string(a) ? steps_for(json_string_length(a)) : 1))
        return STOP;
    switch (json_typeof(a)) {
    case JSON_OBJECT:
        return equal_objects(s, a, b, depth + 1);
    case JSON_ARRAY:
        return equal_arrays(s, a, b, depth + 1);
    case JSON_STRING:
        return bytes_eq(bytes_of(json_string_value(a), json_string_length(a)),
                        bytes_of(json_string_value(b), json_string_length(b)))
                   ? ACCEPT
                   : REFUSE;
    case JSON_INTEGER:
        return json_integer_value(a) == json_integer_value(b) ? ACCEPT : REFUSE;
    case JSON_REAL:
        return json_real_value(a) == json_real_value(b) ? ACCEPT : REFUSE;
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        return ACCEPT;
    }
    return REFUSE;
}
