/* Payloads against schemas: every keyword, every message, every bound. */
#include "policy/event_schema.h"

#include <time.h>

#include "test_policy_event.h"

static struct belay_error last;

/* The message of a refusal, with single quotes; "" when the payload is accepted. */
static const char *said(const json_t *schema, const json_t *payload)
{
    static char text[sizeof(last.message)];
    CLEANUP(arena_release) struct belay_arena a = { 0 };

    last = (struct belay_error){ .size = sizeof(last) };
    belay_rc rc = event_schema_validate(schema, payload, &a, &last);
    if (rc == BELAY_OK)
        return last.code ? "accepted with an error" : "";
    if (rc != BELAY_INVALID || last.code != BELAY_INVALID)
        return "another code";
    return plain(bytes_str(last.message), text, sizeof(text));
}

struct row {
    const char *schema, *payload, *want;
};

static void rows_say(struct tap *t, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CLEANUP(json_release) json_t *schema = json_of(rows[i].schema);
        CLEANUP(json_release) json_t *payload = json_of(rows[i].payload);
        CLEANUP(json_release) json_t *schema_before = json_deep_copy(schema);
        CLEANUP(json_release) json_t *before = json_deep_copy(payload);
        if (!TAP_STR(t, said(schema, payload), rows[i].want))
            printf("# row: %s <- %s\n", rows[i].schema, rows[i].payload);
        else if (rows[i].want[0])
            TAP_STR(t, last.reason, "payload");
        TAP_OK(t, json_equal(schema, schema_before) && json_equal(payload, before));
    }
}

/* clang-format off */
static const struct row type_rows[] = {
    { "{}", "null", "" },
    { "{}", "{'a':[1,2.5,'x']}", "" },
    { "{'title':'x','pattern':'^a','format':'date','const':1,'not':{}}", "7", "" },
    { "true", "7", "" },
    { "false", "7", "arguments: no value is allowed" },
    { "{'type':'null'}", "null", "" },
    { "{'type':'null'}", "0", "arguments: expected null, got 0" },
    { "{'type':'boolean'}", "true", "" },
    { "{'type':'boolean'}", "false", "" },
    { "{'type':'boolean'}", "1", "arguments: expected boolean, got 1" },
    { "{'type':'boolean'}", "'true'", "arguments: expected boolean, got 'true'" },
    { "{'type':'string'}", "''", "" },
    { "{'type':'string'}", "null", "arguments: expected string, got null" },
    { "{'type':'integer'}", "2", "" },
    { "{'type':'integer'}", "-9223372036854775808", "" },
    { "{'type':'integer'}", "9223372036854775807", "" },
    { "{'type':'integer'}", "2.0", "arguments: expected integer, got 2.0" },
    { "{'type':'integer'}", "1e3", "arguments: expected integer, got 1000.0" },
    { "{'type':'integer'}", "'2'", "arguments: expected integer, got '2'" },
    { "{'type':'number'}", "2", "" },
    { "{'type':'number'}", "2.5", "" },
    { "{'type':'number'}", "true", "arguments: expected number, got true" },
    { "{'type':'array'}", "[]", "" },
    { "{'type':'array'}", "{}", "arguments: expected array, got {}" },
    { "{'type':'object'}", "{}", "" },
    { "{'type':'object'}", "[1]", "arguments: expected object, got [1]" },
    { "{'type':'date'}", "7", "" },
    { "{'type':['string','null']}", "null", "" },
    { "{'type':['string','null']}", "'a'", "" },
    { "{'type':['string','null']}", "1", "arguments: expected string or null, got 1" },
    { "{'type':['string','uuid']}", "1", "" },
    { "{'type':7}", "1", "" },
    { "{'type':['string',7]}", "1", "arguments: expected string, got 1" },
    { "{'type':[]}", "1", "arguments: expected valid value, got 1" },
};

static const struct row enum_rows[] = {
    { "{'enum':['a','b']}", "'b'", "" },
    { "{'enum':['a','b']}", "'c'", "arguments: expected one of 'a', 'b', got 'c'" },
    { "{'enum':[1]}", "1", "" },
    { "{'enum':[1]}", "1.0", "arguments: expected one of 1, got 1.0" },
    { "{'enum':[1.0]}", "1.0", "" },
    { "{'enum':[0.1]}", "0.1", "" },
    { "{'enum':[null,true,false]}", "false", "" },
    { "{'enum':[null,true]}", "false", "arguments: expected one of null, true, got false" },
    { "{'enum':[{'a':[1,{'b':null}],'c':2}]}", "{'c':2,'a':[1,{'b':null}]}", "" },
    { "{'enum':[{'a':1}]}", "{'a':2}", "arguments: expected one of {'a':1}, got {'a':2}" },
    { "{'enum':[{'a':1}]}", "{'b':1}", "arguments: expected one of {'a':1}, got {'b':1}" },
    { "{'enum':[{'a':1}]}", "{'a':1,'b':1}",
      "arguments: expected one of {'a':1}, got {'a':1,'b':1}" },
    { "{'enum':[[1,2]]}", "[2,1]", "arguments: expected one of [1,2], got [2,1]" },
    { "{'enum':[[1,2]]}", "[1]", "arguments: expected one of [1,2], got [1]" },
    { "{'enum':['a'],'type':'integer'}", "'a'", "arguments: expected integer, got 'a'" },
    { "{'enum':[]}", "1", "arguments: expected one of , got 1" },
    { "{'enum':'a'}", "1", "" },
};

static const struct row limit_rows[] = {
    { "{'minimum':2}", "2", "" },
    { "{'minimum':2}", "1", "arguments: expected >= 2, got 1" },
    { "{'maximum':2}", "2", "" },
    { "{'maximum':2}", "3", "arguments: expected <= 2, got 3" },
    { "{'type':'integer','minimum':1,'maximum':2}", "0",
      "arguments: expected integer >= 1 <= 2, got 0" },
    { "{'minimum':0.5}", "0.5", "" },
    { "{'minimum':0.5}", "0", "arguments: expected >= 0.5, got 0" },
    { "{'minimum':1}", "0.999", "arguments: expected >= 1, got 0.999" },
    { "{'minimum':-0.0}", "0", "" },
    { "{'maximum':-1}", "-1.5", "" },
    { "{'minimum':-1}", "-1.5", "arguments: expected >= -1, got -1.5" },
    { "{'maximum':9007199254740992}", "9007199254740993",
      "arguments: expected <= 9007199254740992, got 9007199254740993" },
    { "{'maximum':9007199254740992.0}", "9007199254740993",
      "arguments: expected <= 9007199254740992.0, got 9007199254740993" },
    { "{'minimum':9007199254740993}", "9007199254740992.0",
      "arguments: expected >= 9007199254740993, got 9007199254740992.0" },
    { "{'maximum':9223372036854775807}", "9223372036854775807", "" },
    { "{'maximum':9223372036854775807}", "9223372036854775808.0",
      "arguments: expected <= 9223372036854775807, got 9.223372036854776e18" },
    { "{'minimum':-9223372036854775808}", "-9223372036854775808.0", "" },
    { "{'maximum':9223372036854775808.0}", "9223372036854775807", "" },
    { "{'minimum':-1e300}", "-9223372036854775808", "" },
    { "{'maximum':-1e300}", "-9223372036854775808",
      "arguments: expected <= -1e300, got -9223372036854775808" },
    { "{'minimum':9}", "'text'", "" },
    { "{'minimum':'9'}", "1", "" },
    { "{'minLength':2}", "'ab'", "" },
    { "{'minLength':2}", "'a'", "arguments: expected length >= 2, got 'a'" },
    { "{'maxLength':2}", "'ab'", "" },
    { "{'maxLength':2}", "'abc'", "arguments: expected length <= 2, got 'abc'" },
    { "{'maxLength':2}", "'\xc3\xa4\xf0\x9f\x98\x80'", "" }, /* ae, a face */
    { "{'minLength':2}", "'e\xcc\x81'", "" },                /* e and an accent */
    { "{'minLength':3}", "'e\xcc\x81'", "arguments: expected length >= 3, got 'e\xcc\x81'" },
    { "{'maxLength':0}", "''", "" },
    { "{'maxLength':0}", "'a'", "arguments: expected length <= 0, got 'a'" },
    { "{'minLength':9}", "7", "" },
    { "{'minLength':-1,'maxLength':-1}", "'a'", "" },
    { "{'maxLength':1.0}", "'ab'", "" },
    { "{'minItems':1}", "[]", "arguments: expected items >= 1, got 0 items" },
    { "{'minItems':1}", "[0]", "" },
    { "{'maxItems':1}", "[0]", "" },
    { "{'type':'array','maxItems':1}", "[0,0]",
      "arguments: expected array items <= 1, got 2 items" },
    { "{'minItems':1}", "{}", "" },
    { "{'items':{'type':'integer'}}", "[1,2,3]", "" },
    { "{'items':{'type':'integer'}}", "[1,'a']", "[1]: expected integer, got 'a'" },
    { "{'items':{'type':'integer'}}", "[]", "" },
    { "{'items':{'items':{'type':'integer'}}}", "[[],[1,null]]",
      "[1][1]: expected integer, got null" },
    { "{'items':false}", "[1]", "[0]: no value is allowed" },
    { "{'items':7}", "[1]", "" },
};

static const struct row object_rows[] = {
    { "{'required':['line']}", "{'line':null}", "" },
    { "{'required':['line']}", "{}", "line: required property missing" },
    { "{'required':['a','b']}", "{'a':1}", "b: required property missing" },
    { "{'required':['b','a']}", "{}", "b: required property missing" },
    { "{'required':['a',7]}", "{'a':1}", "" },
    { "{'required':'a'}", "{}", "" },
    { "{'required':['a']}", "[]", "" },
    { "{'properties':{'a':{'type':'integer'}}}", "{}", "" },
    { "{'properties':{'a':{'type':'integer'}}}", "{'a':1}", "" },
    { "{'properties':{'a':{'type':'integer'}}}", "{'a':'x'}",
      "a: expected integer, got 'x'" },
    { "{'properties':{'a':{'properties':{'b':{'items':{'type':'null'}}}}}}",
      "{'a':{'b':[null,0]}}", "a.b[1]: expected null, got 0" },
    { "{'properties':{'a':{'required':['b']}}}", "{'a':{}}", "a.b: required property missing" },
    { "{'properties':{'a':true}}", "{'a':7}", "" },
    { "{'properties':{'a':false}}", "{'a':7}", "a: no value is allowed" },
    { "{'properties':7}", "{'a':7}", "" },
    /* other keys */
    { "{'properties':{}}", "{'a':1}", "a: unexpected property" },
    { "{'properties':{}}", "{'b':1,'a':1}", "a: unexpected property" },
    { "{'properties':{'a':{}}}", "{'a':1,'b':1}", "b: unexpected property" },
    { "{'properties':{'a':{}},'additionalProperties':false}", "{'b':1}",
      "b: unexpected property" },
    { "{'properties':{'a':{}},'additionalProperties':true}", "{'b':1}", "" },
    { "{'properties':{'a':{}},'additionalProperties':null}", "{'b':1}",
      "b: unexpected property" },
    { "{'properties':{'a':{}},'additionalProperties':{'type':'integer'}}",
      "{'a':'x','b':1}", "" },
    { "{'properties':{'a':{}},'additionalProperties':{'type':'integer'}}", "{'b':'x'}",
      "b: expected integer, got 'x'" },
    { "{'additionalProperties':false}", "{'b':1}", "" },
    { "{'additionalProperties':{'type':'integer'}}", "{'b':'x'}", "" },
    /* the key of the session */
    { "{'properties':{}}", "{'__session_id__':'s'}", "" },
    { "{'properties':{},'additionalProperties':{'type':'integer'}}",
      "{'__session_id__':'s'}", "" },
    { "{'properties':{'__session_id__':{'type':'integer'}}}", "{'__session_id__':'s'}",
      "__session_id__: expected integer, got 's'" },
    { "{'properties':{}}", "{'__session_id':'s'}", "__session_id: unexpected property" },
};

static const struct row choice_rows[] = {
    { "{'anyOf':[{'type':'string'},{'type':'null'}]}", "null", "" },
    { "{'anyOf':[{'type':'string'},{'type':'null'}]}", "1",
      "arguments: expected matching schema, got 1" },
    { "{'oneOf':[{'type':'integer'},{'type':'number'}]}", "1", "" },
    { "{'oneOf':[{'type':'string'}]}", "1", "arguments: expected matching schema, got 1" },
    { "{'anyOf':[{}],'type':'string','enum':['x'],'required':['y']}", "1", "" },
    { "{'anyOf':[{'type':'integer'}],'oneOf':[{'type':'string'}]}", "'a'",
      "arguments: expected matching schema, got 'a'" },
    { "{'anyOf':[{'type':'integer'}],'type':'number'}", "0.5",
      "arguments: expected number, got 0.5" },
    { "{'anyOf':[]}", "1", "arguments: expected matching schema, got 1" },
    { "{'anyOf':7,'oneOf':[{'type':'string'}]}", "1", "" },
    { "{'anyOf':[{'anyOf':[{'type':'null'}]},{'type':'boolean'}]}", "true", "" },
    { "{'properties':{'a':{'anyOf':[{'type':'null'}]}}}", "{'a':2}",
      "a: expected matching schema, got 2" },
    { "{'anyOf':[{'required':['a']},{'required':['b']}]}", "{'b':1}", "" },
    { "{'anyOf':[false,true]}", "1", "" },
};

static const struct row cut_rows[] = {
    { "{'type':'null'}", "'0123456789012345678901234567890123456789'",
      "arguments: expected null, got '012345678901234567890123456789012345..." },
    { "{'type':'null'}", "'012345678901234567890123456789012345\xc3\xa4z0'",
      "arguments: expected null, got '012345678901234567890123456789012345..." },
    { "{'properties':{'a':{'properties':{"
      "'012345678901234567890123456789012345678901234567890123456789012':false}}}}",
      "{'a':{'012345678901234567890123456789012345678901234567890123456789012':1}}",
      "...23456789012345678901234567890123456789012345678901234567890"
      "12: no value is allowed" },
    { "{'enum':['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',"
      "'cccccccccccccccccc']}", "1",
      "arguments: expected one of 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', "
      "'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb..., got 1" },
    { "{'anyOf':[{'type':'null'}],'type':'a\\nb'}", "1", "arguments: expected a\\nb, got 1" },
    { "{'properties':{'a\\nb':false}}", "{'a\\nb':1}", "a\\nb: no value is allowed" },
};
/* clang-format on */

static void types(struct tap *t)
{
    rows_say(t, type_rows, COUNT_OF(type_rows));
}

static void enums(struct tap *t)
{
    rows_say(t, enum_rows, COUNT_OF(enum_rows));
}

static void limits(struct tap *t)
{
    rows_say(t, limit_rows, COUNT_OF(limit_rows));
}

static void objects(struct tap *t)
{
    rows_say(t, object_rows, COUNT_OF(object_rows));
}

static void choices(struct tap *t)
{
    rows_say(t, choice_rows, COUNT_OF(choice_rows));
}

static void cuts(struct tap *t)
{
    rows_say(t, cut_rows, COUNT_OF(cut_rows));
}

/* --- what is hostile --- */

/* "{'anyOf':[X,X]}" around the inside, n times. */
static json_t *choices_within(json_t *inside, unsigned n)
{
    for (; n > 0; n--)
        inside = json_pack("{s:[O,o]}", "anyOf", inside, inside);
    return inside;
}

static json_t *many(size_t n, const char *item)
{
    json_t *array = json_array();

    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(array, json_of(item));
    return array;
}

static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void bombs(struct tap *t)
{
    CLEANUP(json_release) json_t *no = json_of("{'type':'null'}");
    CLEANUP(json_release) json_t *tree = choices_within(json_incref(no), 30);
    CLEANUP(json_release)
    json_t *wide = json_pack("{s:{s:o}}", "items", "enum", many(20000, "'one'"));
    CLEANUP(json_release) json_t *names = json_pack("{s:o}", "items", json_object());
    CLEANUP(json_release) json_t *items = many(20000, "'two'");
    CLEANUP(json_release) json_t *one = json_of("1");
    const struct {
        const json_t *schema, *payload;
    } rows[] = { { tree, one }, { wide, items }, { names, items } };
    double before = seconds();

    (void)json_array_append_new(json_object_get(json_object_get(wide, "items"), "enum"),
                                json_of("'two'"));
    for (int i = 0; i < 20000; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "x%d", i);
        (void)json_object_set_new(json_object_get(names, "items"), name, json_null());
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        TAP_STR(t, said(rows[i].schema, rows[i].payload),
                "arguments: checking them takes more than 4000000 steps");
        TAP_STR(t, last.reason, "schema_work");
        TAP_EQ(t, last.expected, EVENT_SCHEMA_WORK_MAX);
    }
    TAP_OK(t, seconds() - before < 20); /* a sanitizer's pace, not the product's */
}

static void large_and_honest(struct tap *t)
{
    CLEANUP(json_release) json_t *schema = json_of("{'items':{'type':'integer'}}");
    CLEANUP(json_release) json_t *items = many(500000, "7");

    TAP_STR(t, said(schema, items), "");
    (void)json_array_append_new(items, json_of("''"));
    TAP_STR(t, said(schema, items), "[500000]: expected integer, got ''");
}

static void deep(struct tap *t)
{
    json_t *schema = json_of("{'type':'null'}"), *value = json_null();

    for (int i = 0; i < JSON_DEPTH_MAX; i++) {
        schema = json_pack("{s:o}", "items", schema);
        value = json_pack("[o]", value);
    }
    TAP_STR(t, said(schema, value), "");
    schema = json_pack("{s:o}", "items", schema);
    value = json_pack("[o]", value);
    TAP_STR(t, said(schema, value), "arguments: the schema is nested deeper than 32");
    TAP_STR(t, last.reason, "too_deep");
    CLEANUP(json_release) json_t *same = json_pack("{s:[O]}", "enum", value);
    TAP_STR(t, said(same, value), "arguments: the schema is nested deeper than 32");
    json_decref(schema);
    json_decref(value);
}

/* --- schemas themselves --- */

static const char *checked(const json_t *schema)
{
    static char text[sizeof(last.message)];
    CLEANUP(arena_release) struct belay_arena a = { 0 };

    last = (struct belay_error){ .size = sizeof(last) };
    if (event_schema_check(schema, &a, &last) == BELAY_OK)
        return "";
    if (last.code != BELAY_INVALID || strcmp(last.reason, "schema") != 0)
        return "another code";
    return plain(bytes_str(last.message), text, sizeof(text));
}

static void usable(struct tap *t)
{
    /* clang-format off */
    static const struct {
        const char *schema, *want;
    } rows[] = {
        { "{}", "" },
        { "true", "" },
        { "false", "" },
        { "[]", "schema: must be an object, true or false" },
        { "null", "schema: must be an object, true or false" },
        { "{'title':7,'$ref':[]}", "" },
        { "{'type':'string'}", "" },
        { "{'type':'whatever'}", "" },
        { "{'type':['string','null']}", "" },
        { "{'type':[]}", "schema.type: must be a string or an array of strings" },
        { "{'type':[7]}", "schema.type: must be a string or an array of strings" },
        { "{'type':null}", "schema.type: must be a string or an array of strings" },
        { "{'enum':[1]}", "" },
        { "{'enum':[]}", "schema.enum: must be an array that is not empty" },
        { "{'enum':{}}", "schema.enum: must be an array that is not empty" },
        { "{'minimum':1,'maximum':2.5}", "" },
        { "{'minimum':'1'}", "schema.minimum: must be a number" },
        { "{'maximum':null}", "schema.maximum: must be a number" },
        { "{'minLength':0,'maxLength':1,'minItems':0,'maxItems':9223372036854775807}", "" },
        { "{'minLength':-1}", "schema.minLength: must be an integer from 0" },
        { "{'maxLength':1.0}", "schema.maxLength: must be an integer from 0" },
        { "{'minItems':'1'}", "schema.minItems: must be an integer from 0" },
        { "{'maxItems':-1}", "schema.maxItems: must be an integer from 0" },
        { "{'items':{},'additionalProperties':{},'properties':{'a':{},'b':true}}", "" },
        { "{'items':[]}", "schema.items: must be an object, true or false" },
        { "{'additionalProperties':7}",
          "schema.additionalProperties: must be an object, true or false" },
        { "{'properties':[]}", "schema.properties: must be an object of schemas" },
        { "{'properties':{'line':{'minLength':'x'}}}",
          "schema.properties.line.minLength: must be an integer from 0" },
        { "{'required':['a']}", "" },
        { "{'required':[]}", "" },
        { "{'required':[1]}", "schema.required: must be an array of strings" },
        { "{'required':'a'}", "schema.required: must be an array of strings" },
        { "{'anyOf':[{}],'oneOf':[{}]}", "" },
        { "{'anyOf':[]}", "schema.anyOf: must be an array of schemas that is not empty" },
        { "{'oneOf':{}}", "schema.oneOf: must be an array of schemas that is not empty" },
        { "{'anyOf':[{},{'items':7}]}",
          "schema.anyOf[1].items: must be an object, true or false" },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CLEANUP(json_release) json_t *schema = json_of(rows[i].schema);
        if (!TAP_STR(t, checked(schema), rows[i].want))
            printf("# row: %s\n", rows[i].schema);
    }
}

static void usable_within_bounds(struct tap *t)
{
    CLEANUP(json_release)
    json_t *most = json_pack("{s:o}", "anyOf",
                             many(EVENT_SCHEMA_NODES_MAX - 1, "{'type':'null'}"));
    json_t *nested = json_object();

    TAP_STR(t, checked(most), "");
    (void)json_array_append_new(json_object_get(most, "anyOf"), json_true());
    TAP_STR(t, checked(most), "schema.anyOf[4095]: has too many schemas before it");
    for (int i = 1; i < JSON_DEPTH_MAX; i++)
        nested = json_pack("{s:o}", "items", nested);
    TAP_STR(t, checked(nested), "");
    nested = json_pack("{s:o}", "items", nested);
    TAP_OK(t, strstr(checked(nested), ".items: is nested too deep") != NULL);
    json_decref(nested);
}

static void no_memory_for_words(struct tap *t)
{
    CLEANUP(json_release) json_t *schema = json_of("{'type':'null'}");
    CLEANUP(json_release) json_t *payload = json_of("1");
    CLEANUP(arena_release) struct belay_arena a = { 0 };

    /* Nobody asks for the words: the verdict is the same. */
    TAP_EQ(t, event_schema_validate(schema, payload, &a, NULL), BELAY_INVALID);
    TAP_EQ(t, event_schema_check(payload, &a, NULL), BELAY_INVALID);
}

static const struct tap_case cases[] = {
    { "types are checked by name, and an integer is written as one", types },
    { "an enum holds equal values of the same type", enums },
    { "limits are inclusive, exact, and about their own kind of value", limits },
    { "objects: required, properties, and the other keys", objects },
    { "anyOf and oneOf accept at the first match and hide the rest", choices },
    { "long paths lose their beginning, long values their end", cuts },
    { "schemas and payloads that would take for ever are refused", bombs },
    { "a large payload and a simple schema are no bomb", large_and_honest },
    { "nesting beyond the bound is refused", deep },
    { "a schema is usable when its keywords have their shapes", usable },
    { "a usable schema has bounds", usable_within_bounds },
    { "a verdict needs no error to be filled", no_memory_for_words },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
