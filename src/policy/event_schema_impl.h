/* Inside of event_schema: the keywords, the way to a value, the words of a refusal. */
#ifndef POLICY_EVENT_SCHEMA_IMPL_H
#define POLICY_EVENT_SCHEMA_IMPL_H

#include "policy/event_schema.h"

enum keyword {
    KEYWORD_ADDITIONAL_PROPERTIES,
    KEYWORD_ANY_OF,
    KEYWORD_ENUM,
    KEYWORD_ITEMS,
    KEYWORD_MAX_ITEMS,
    KEYWORD_MAX_LENGTH,
    KEYWORD_MAXIMUM,
    KEYWORD_MIN_ITEMS,
    KEYWORD_MIN_LENGTH,
    KEYWORD_MINIMUM,
    KEYWORD_ONE_OF,
    KEYWORD_PROPERTIES,
    KEYWORD_REQUIRED,
    KEYWORD_TYPE,
    KEYWORDS_END,
};

/* The keywords of one schema, as they are written there; NULL for those it lacks. */
struct keywords {
    const json_t *of[KEYWORDS_END];
};

const char *keyword_name(enum keyword k);

/* Of an object; anything else has none. */
struct keywords keywords_of(const json_t *schema);

enum verdict {
    ACCEPT,
    REFUSE,
    STOP, /* out of steps, or too deep: nothing more is looked at */
};

/* What is left of the work one validation may do. */
struct steps {
    size_t left;
    bool too_deep;
};

/* False when there is not so much left. */
MUST_USE static inline bool spend(struct steps *s, size_t steps)
{
    bool enough = steps <= s->left;

    s->left = enough ? s->left - steps : 0;
    return enough;
}

/* For looking through so many bytes. */
static inline size_t steps_for(size_t len)
{
    return 1 + len / 64;
}

/* ACCEPT: the same value, of the same type: 1 is not 1.0. */
MUST_USE enum verdict values_equal(struct steps *s, const json_t *a, const json_t *b,
                                   int depth);

/* How a value is reached, innermost first; lives on the stack. */
struct place {
    const struct place *up; /* NULL: the root */
    struct bytes key;       /* NULL ptr: an item of an array */
    size_t index;
};

/* The longest texts of a message, so that it holds all of them. */
#define SHOWN_PATH 64
#define SHOWN_EXPECTED 72
#define SHOWN_VALUE 40

/* A text of a message, in the arena: a C string of at most `max` bytes. */
const char *say_path(const struct place *at, const char *root, struct belay_arena *a);
const char *say_value(const json_t *value, struct belay_arena *a);
const char *say_expected(const struct keywords *k, struct belay_arena *a);
const char *say_one_of(const json_t *members, struct belay_arena *a);

#endif /* POLICY_EVENT_SCHEMA_IMPL_H */
