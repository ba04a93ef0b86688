/* Whether a declared schema has the shape its keywords need. */
#include "policy/event_schema_impl.h"

struct check {
    size_t nodes;
    struct belay_arena *arena;
    struct belay_error *err;
};

static belay_rc bad(const struct check *c, const struct place *at, const char *why)
{
    return err_reason(c->err, BELAY_INVALID, "schema", "%s: %s",
                      say_path(at, "schema", c->arena), why);
}

/* What a keyword's value must be. */
enum shape {
    SHAPE_SCHEMA,         /* or a boolean, which is one */
    SHAPE_SCHEMAS,        /* an array of them, not empty */
    SHAPE_SCHEMAS_BY_KEY, /* an object of them */
    SHAPE_VALUES,         /* an array, not empty */
    SHAPE_NUMBER,
    SHAPE_COUNT, /* an integer from 0 */
    SHAPE_NAMES, /* an array of strings */
    SHAPE_TYPE,  /* a string, or an array of strings that is not empty */
};

static const enum shape shapes[KEYWORDS_END] = {
    [KEYWORD_ADDITIONAL_PROPERTIES] = SHAPE_SCHEMA,
    [KEYWORD_ANY_OF] = SHAPE_SCHEMAS,
    [KEYWORD_ENUM] = SHAPE_VALUES,
    [KEYWORD_ITEMS] = SHAPE_SCHEMA,
    [KEYWORD_MAX_ITEMS] = SHAPE_COUNT,
    [KEYWORD_MAX_LENGTH] = SHAPE_COUNT,
    [KEYWORD_MAXIMUM] = SHAPE_NUMBER,
    [KEYWORD_MIN_ITEMS] = SHAPE_COUNT,
    [KEYWORD_MIN_LENGTH] = SHAPE_COUNT,
    [KEYWORD_MINIMUM] = SHAPE_NUMBER,
    [KEYWORD_ONE_OF] = SHAPE_SCHEMAS,
    [KEYWORD_PROPERTIES] = SHAPE_SCHEMAS_BY_KEY,
    [KEYWORD_REQUIRED] = SHAPE_NAMES,
    [KEYWORD_TYPE] = SHAPE_TYPE,
};

static belay_rc check_schema(struct check *c, const json_t *schema,
                             const struct place *at, int depth);

static belay_rc check_schemas(struct check *c, const json_t *schemas,
                              const struct place *at, int depth)
{
    belay_rc rc = BELAY_OK;

    if (json_array_size(schemas) == 0)
        return bad(c, at, "must be an array of schemas that is not empty");
    for (size_t i = 0; rc == BELAY_OK && i < json_array_size(schemas); i++) {
        struct place item = { .up = at, .index = i };
        rc = check_schema(c, json_array_get(schemas, i), &item, depth);
    }
    return rc;
}

static belay_rc check_by_key(struct check *c, const json_t *schemas,
                             const struct place *at, int depth)
{
    json_t *o = (json_t *)schemas; /* the iterator is read only, but not declared so */
    belay_rc rc = BELAY_OK;

    if (!json_is_object(schemas))
        return bad(c, at, "must be an object of schemas");
    for (void *i = json_object_iter(o); rc == BELAY_OK && i;
         i = json_object_iter_next(o, i)) {
        struct place member = { .up = at,
                                .key = bytes_of(json_object_iter_key(i),
                                                json_object_iter_key_len(i)) };
        rc = check_schema(c, json_object_iter_value(i), &member, depth);
    }
    return rc;
}

static bool are_names(const json_t *value)
{
    if (!json_is_array(value))
        return false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!json_is_string(json_array_get(value, i)))
            return false;
    }
    return true;
}

static belay_rc check_keyword(struct check *c, enum shape shape, const json_t *value,
                              const struct place *at, int depth)
{
    switch (shape) {
    case SHAPE_SCHEMA:
        return check_schema(c, value, at, depth);
    case SHAPE_SCHEMAS:
        return check_schemas(c, value, at, depth);
    case SHAPE_SCHEMAS_BY_KEY:
        return check_by_key(c, value, at, depth);
    case SHAPE_VALUES:
        return json_array_size(value) > 0
                   ? BELAY_OK
                   : bad(c, at, "must be an array that is not empty");
    case SHAPE_NUMBER:
        return json_is_number(value) ? BELAY_OK : bad(c, at, "must be a number");
    case SHAPE_COUNT:
        return json_is_integer(value) && json_integer_value(value) >= 0
                   ? BELAY_OK
                   : bad(c, at, "must be an integer from 0");
    case SHAPE_NAMES:
        return are_names(value) ? BELAY_OK : bad(c, at, "must be an array of strings");
    case SHAPE_TYPE:
        return json_is_string(value) || (are_names(value) && json_array_size(value) > 0)
                   ? BELAY_OK
                   : bad(c, at, "must be a string or an array of strings");
    }
    return BELAY_OK;
}

static belay_rc check_schema(struct check *c, const json_t *schema,
                             const struct place *at, int depth)
{
    struct keywords k = keywords_of(schema);
    belay_rc rc = BELAY_OK;

    if (depth >= JSON_DEPTH_MAX)
        return bad(c, at, "is nested too deep");
    if (c->nodes++ == EVENT_SCHEMA_NODES_MAX)
        return bad(c, at, "has too many schemas before it");
    if (!json_is_object(schema) && !json_is_boolean(schema))
        return bad(c, at, "must be an object, true or false");
    for (int i = 0; rc == BELAY_OK && i < KEYWORDS_END; i++) {
        struct place keyword = { .up = at,
                                 .key = bytes_str(keyword_name((enum keyword)i)) };
        if (k.of[i])
            rc = check_keyword(c, shapes[i], k.of[i], &keyword, depth + 1);
    }
    return rc;
}

belay_rc event_schema_check(const json_t *schema, struct belay_arena *a,
                            struct belay_error *err)
{
    struct check c = { .arena = a, .err = err };
    struct place top = { .up = NULL };
    struct place root = { .up = &top, .key = bytes_str("schema") };

    return check_schema(&c, schema, &root, 0);
}
