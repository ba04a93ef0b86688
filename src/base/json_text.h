/* json_text.h - JSON as text: walked over without making values of it. */
#ifndef BASE_JSON_TEXT_H
#define BASE_JSON_TEXT_H

#include "base/attr.h"
#include "base/bytes.h"

/* A text without blanks between its parts, and how far one has come. */
struct json_text {
    const uint8_t *at, *end;
    bool
        plain; /* what was passed by is certainly in canonical form (json.h), if it is UTF-8:
                   no escapes, no reals, no integers of over 18 digits, sorted keys */
};

static inline struct json_text json_text_of(struct bytes text)
{
    return (struct json_text){ text.ptr, text.ptr + text.len, true };
}

/* Over one character, if it is that. */
MUST_USE bool json_take(struct json_text *in, char c);

/* Over one value that is nested at most `depth` deep; false: there is none, and nobody knows
 * how far it came. */
MUST_USE bool json_skip(struct json_text *in, unsigned depth);

#endif /* BASE_JSON_TEXT_H */
