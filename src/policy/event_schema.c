/* A payload against a schema.  The recursion follows the schema, whose nesting bounds it;
 * the work is counted, so that no schema and no payload can take long. */
#include "policy/event_schema.h"

#include "policy/event_schema_impl.h"
#include "policy/number.h"
#include "policy/words.h"

/* --- one validation --- */

struct validation {
    struct steps steps;
    struct belay_arena *arena;
    struct belay_error *err;
};

/* What is looked at.  A quiet visit is a try of anyOf: nobody hears why it failed. */
struct visit {
    const json_t *value;
    struct place at;
    int depth;
    bool quiet;
};

static enum verdict refuse(const struct validation *v, const struct visit *at,
                           const char *why)
{
    if (!at->quiet)
        (void)err_reason(v->err, BELAY_INVALID, "payload", "%s: %s",
                         say_path(&at->at, "arguments", v->arena), why);
    return REFUSE;
}

static enum verdict refuse_value(const struct validation *v, const struct visit *at,
                                 const char *before, const char *expected)
{
    if (!at->quiet)
        (void)err_reason(v->err, BELAY_INVALID, "payload", "%s: expected %s%s, got %s",
                         say_path(&at->at, "arguments", v->arena), before, expected,
                         say_value(at->value, v->arena));
    return REFUSE;
}

static enum verdict refuse_kind(const struct validation *v, const struct visit *at,
                                const struct keywords *k)
{
    return at->quiet ? REFUSE : refuse_value(v, at, "", say_expected(k, v->arena));
}

static enum verdict refuse_items(const struct validation *v, const struct visit *at,
                                 const struct keywords *k)
{
    if (!at->quiet)
        (void)err_reason(v->err, BELAY_INVALID, "payload",
                         "%s: expected %s, got %zu items",
                         say_path(&at->at, "arguments", v->arena),
                         say_expected(k, v->arena), json_array_size(at->value));
    return REFUSE;
}

static enum verdict visit_value(struct validation *v, const json_t *schema,
                                const struct visit *at);

/* --- enum --- */

static enum verdict visit_enum(struct validation *v, const json_t *members,
                               const struct visit *at)
{
    for (size_t i = 0; i < json_array_size(members); i++) {
        if (!spend(&v->steps, 1))
            return STOP;
        enum verdict same =
            values_equal(&v->steps, json_array_get(members, i), at->value, 0);
        if (same != REFUSE)
            return same;
    }
    return at->quiet ? REFUSE
                     : refuse_value(v, at, "one of ", say_one_of(members, v->arena));
}

/* --- anyOf, oneOf --- */

static enum verdict visit_choice(struct validation *v, const struct keywords *k,
                                 const json_t *choices, const struct visit *at)
{
    struct visit trial = *at;

    trial.quiet = true;
    trial.depth++;
    for (size_t i = 0; i < json_array_size(choices); i++) {
        enum verdict verdict = visit_value(v, json_array_get(choices, i), &trial);
        if (verdict != REFUSE)
            return verdict;
    }
    return refuse_kind(v, at, k);
}

/* --- type --- */

static bool has_type(const json_t *name, const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "object",   [JSON_ARRAY] = "array", [JSON_STRING] = "string",
        [JSON_INTEGER] = "integer", [JSON_REAL] = "number", [JSON_TRUE] = "boolean",
        [JSON_FALSE] = NULL,        [JSON_NULL] = "null",
    };
    int type = -1;

    if (!words_parse((struct words){ names, (int)COUNT_OF(names) },
                     bytes_of(json_string_value(name), json_string_length(name)),
                     &type))
        return true; /* a type nobody here knows */
    if (type == JSON_REAL)
        return json_is_number(value);
    if (type == JSON_TRUE)
        return json_is_boolean(value);
    return (int)json_typeof(value) == type;
}

static enum verdict visit_type(struct validation *v, const struct keywords *k,
                               const struct visit *at)
{
    const json_t *type = k->of[KEYWORD_TYPE];

    if (json_is_string(type))
        return has_type(type, at->value) ? ACCEPT : refuse_kind(v, at, k);
    if (!json_is_array(type))
        return ACCEPT;
    for (size_t i = 0; i < json_array_size(type); i++) {
        const json_t *name = json_array_get(type, i);
        if (!spend(&v->steps, 1))
            return STOP;
        if (json_is_string(name) && has_type(name, at->value))
            return ACCEPT;
    }
    return refuse_kind(v, at, k);
}

/* --- limits --- */

static bool within_numbers(const struct keywords *k, const json_t *value)
{
    const json_t *min = k->of[KEYWORD_MINIMUM], *max = k->of[KEYWORD_MAXIMUM];

    return !(json_is_number(max) && number_cmp(value, max) > 0) &&
           !(json_is_number(min) && number_cmp(value, min) < 0);
}

/* Whether n is within two limits; one that is no integer from 0 is none. */
static bool within(const json_t *min, const json_t *max, size_t n)
{
    if (json_is_integer(max) && json_integer_value(max) >= 0 &&
        (uint64_t)json_integer_value(max) < n)
        return false;
    return !json_is_integer(min) || json_integer_value(min) < 0 ||
           (uint64_t)json_integer_value(min) <= n;
}

/* Unicode scalar values: every byte but those that continue one. */
static size_t count_scalars(const json_t *string)
{
    const char *text = json_string_value(string);
    size_t n = 0;

    for (size_t i = 0; i < json_string_length(string); i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static enum verdict visit_scalar(struct validation *v, const struct keywords *k,
                                 const struct visit *at)
{
    const json_t *min = k->of[KEYWORD_MIN_LENGTH], *max = k->of[KEYWORD_MAX_LENGTH];

    if (json_is_number(at->value) && !within_numbers(k, at->value))
        return refuse_kind(v, at, k);
    if (!json_is_string(at->value) || (!min && !max))
        return ACCEPT;
    if (!spend(&v->steps, steps_for(json_string_length(at->value))))
        return STOP;
    return within(min, max, count_scalars(at->value)) ? ACCEPT : refuse_kind(v, at, k);
}

/* --- arrays --- */

static enum verdict visit_array(struct validation *v, const struct keywords *k,
                                const struct visit *at)
{
    const json_t *items = k->of[KEYWORD_ITEMS];
    size_t n = json_array_size(at->value);
    enum verdict verdict = ACCEPT;

    if (!within(k->of[KEYWORD_MIN_ITEMS], k->of[KEYWORD_MAX_ITEMS], n))
        return refuse_items(v, at, k);
    for (size_t i = 0; items && verdict == ACCEPT && i < n; i++) {
        struct visit item = { .value = json_array_get(at->value, i),
                              .at = { .up = &at->at, .index = i },
                              .depth = at->depth + 1,
                              .quiet = at->quiet };
        verdict = visit_value(v, items, &item);
    }
    return verdict;
}

/* --- objects --- */

static struct visit member_of(const struct visit *object, struct bytes key,
                              const json_t *value)
{
    return (struct visit){ .value = value,
                           .at = { .up = &object->at, .key = key },
                           .depth = object->depth + 1,
                           .quiet = object->quiet };
}

static enum verdict visit_required(struct validation *v, const json_t *required,
                                   const struct visit *at)
{
    for (size_t i = 0; i < json_array_size(required); i++) {
        const json_t *name = json_array_get(required, i);
        size_t len = json_string_length(name);
        if (!spend(&v->steps, steps_for(len)))
            return STOP;
        if (!json_is_string(name) ||
            json_object_getn(at->value, json_string_value(name), len))
            continue;
        struct visit missing =
            member_of(at, bytes_of(json_string_value(name), len), NULL);
        return refuse(v, &missing, "required property missing");
    }
    return ACCEPT;
}

static enum verdict visit_properties(struct validation *v, const json_t *properties,
                                     const struct visit *at)
{
    json_t *o = (json_t *)properties; /* as in keywords_of */
    enum verdict verdict = ACCEPT;

    for (void *i = json_object_iter(o); verdict == ACCEPT && i;
         i = json_object_iter_next(o, i)) {
        struct bytes key =
            bytes_of(json_object_iter_key(i), json_object_iter_key_len(i));
        if (!spend(&v->steps, steps_for(key.len)))
            return STOP;
        struct visit member = member_of(
            at, key, json_object_getn(at->value, (const char *)key.ptr, key.len));
        if (member.value)
            verdict = visit_value(v, json_object_iter_value(i), &member);
    }
    return verdict;
}

static bool is_additional(const json_t *properties, struct bytes key)
{
    return !bytes_eq(key, bytes_str("__session_id__")) &&
           !json_object_getn(properties, (const char *)key.ptr, key.len);
}

/* The keys that `properties` does not name. */
static enum verdict visit_additional(struct validation *v, const struct keywords *k,
                                     const struct visit *at)
{
    const json_t *schema = k->of[KEYWORD_ADDITIONAL_PROPERTIES];
    json_t *o = (json_t *)at->value; /* as in keywords_of */
    struct bytes least = { 0 };
    enum verdict verdict = ACCEPT;

    if (json_is_true(schema))
        return ACCEPT;
    for (void *i = json_object_iter(o); verdict == ACCEPT && i;
         i = json_object_iter_next(o, i)) {
        struct bytes key =
            bytes_of(json_object_iter_key(i), json_object_iter_key_len(i));
        if (!spend(&v->steps, steps_for(key.len)))
            return STOP;
        if (!is_additional(k->of[KEYWORD_PROPERTIES], key))
            continue;
        if (json_is_object(schema)) {
            struct visit member = member_of(at, key, json_object_iter_value(i));
            verdict = visit_value(v, schema, &member);
        } else if (!least.ptr || bytes_cmp(key, least) < 0) {
            least = key; /* the same answer whatever the order of the payload's keys */
        }
    }
    if (verdict != ACCEPT || !least.ptr)
        return verdict;
    struct visit unexpected = member_of(at, least, NULL);
    return refuse(v, &unexpected, "unexpected property");
}

static enum verdict visit_object(struct validation *v, const struct keywords *k,
                                 const struct visit *at)
{
    enum verdict verdict = ACCEPT;

    if (json_is_array(k->of[KEYWORD_REQUIRED]))
        verdict = visit_required(v, k->of[KEYWORD_REQUIRED], at);
    if (verdict != ACCEPT || !json_is_object(k->of[KEYWORD_PROPERTIES]))
        return verdict;
    verdict = visit_properties(v, k->of[KEYWORD_PROPERTIES], at);
    return verdict != ACCEPT ? verdict : visit_additional(v, k, at);
}

/* --- one value against one schema --- */

static enum verdict visit_keywords(struct validation *v, const struct keywords *k,
                                   const struct visit *at)
{
    const json_t *choices =
        k->of[KEYWORD_ANY_OF] ? k->of[KEYWORD_ANY_OF] : k->of[KEYWORD_ONE_OF];
    enum verdict verdict = ACCEPT;

    if (json_is_array(choices))
        return visit_choice(v, k, choices, at);
    if (json_is_array(k->of[KEYWORD_ENUM]))
        verdict = visit_enum(v, k->of[KEYWORD_ENUM], at);
    if (verdict == ACCEPT && k->of[KEYWORD_TYPE])
        verdict = visit_type(v, k, at);
    if (verdict == ACCEPT)
        verdict = visit_scalar(v, k, at);
    if (verdict == ACCEPT && json_is_array(at->value))
        verdict = visit_array(v, k, at);
    if (verdict == ACCEPT && json_is_object(at->value))
        verdict = visit_object(v, k, at);
    return verdict;
}

static enum verdict visit_value(struct validation *v, const json_t *schema,
                                const struct visit *at)
{
    if (at->depth > JSON_DEPTH_MAX) {
        v->steps.too_deep = true;
        return STOP;
    }
    if (!spend(&v->steps, 1 + json_object_size(schema)))
        return STOP;
    if (json_is_false(schema))
        return refuse(v, at, "no value is allowed");
    struct keywords k = keywords_of(schema);
    return visit_keywords(v, &k, at);
}

belay_rc event_schema_validate(const json_t *schema, const json_t *payload,
                               struct belay_arena *a, struct belay_error *err)
{
    struct validation v = { .steps = { .left = EVENT_SCHEMA_WORK_MAX },
                            .arena = a,
                            .err = err };
    struct visit root = { .value = payload };

    switch (visit_value(&v, schema, &root)) {
    case ACCEPT:
        return BELAY_OK;
    case REFUSE:
        return BELAY_INVALID;
    case STOP:
        break;
    }
    if (v.steps.too_deep)
        return err_reason(err, BELAY_INVALID, "too_deep",
                          "arguments: the schema is nested deeper than %d",
                          JSON_DEPTH_MAX);
    (void)err_reason(err, BELAY_INVALID, "schema_work",
                     "arguments: checking them takes more than %d steps",
                     EVENT_SCHEMA_WORK_MAX);
    err_numbers(err, EVENT_SCHEMA_WORK_MAX, EVENT_SCHEMA_WORK_MAX);
    return BELAY_INVALID;
}
