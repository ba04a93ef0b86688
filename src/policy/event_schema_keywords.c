/* The keywords of a schema, by name. */
#include "policy/event_schema_impl.h"
#include "policy/words.h"

static const char *const keyword_names[] = {
    [KEYWORD_ADDITIONAL_PROPERTIES] = "additionalProperties",
    [KEYWORD_ANY_OF] = "anyOf",
    [KEYWORD_ENUM] = "enum",
    [KEYWORD_ITEMS] = "items",
    [KEYWORD_MAX_ITEMS] = "maxItems",
    [KEYWORD_MAX_LENGTH] = "maxLength",
    [KEYWORD_MAXIMUM] = "maximum",
    [KEYWORD_MIN_ITEMS] = "minItems",
    [KEYWORD_MIN_LENGTH] = "minLength",
    [KEYWORD_MINIMUM] = "minimum",
    [KEYWORD_ONE_OF] = "oneOf",
    [KEYWORD_PROPERTIES] = "properties",
    [KEYWORD_REQUIRED] = "required",
    [KEYWORD_TYPE] = "type",
};
static const struct words keyword_words = { keyword_names, KEYWORDS_END };

const char *keyword_name(enum keyword k)
{
    return words_name(keyword_words, (int)k);
}

struct keywords keywords_of(const json_t *schema)
{
    json_t *o = (json_t *)schema; /* the iterator is read only, but not declared so */
    struct keywords k = { .of = { NULL } };
    int word;

    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        struct bytes key =
            bytes_of(json_object_iter_key(at), json_object_iter_key_len(at));
        if (words_parse(keyword_words, key, &word))
            k.of[word] = json_object_iter_value(at);
    }
    return k;
}
