/* words.h - a list of names by number, both ways.
 *
 * Pure: no I/O, no memory.
 */
#ifndef POLICY_WORDS_H
#define POLICY_WORDS_H

#include "base/bytes.h"

struct words {
    const char *const *names; /* of 0 to end-1; NULL for a number that has none */
    int end;
};

/* NULL where there is none such. */
static inline const char *words_name(struct words w, int value)
{
    return value >= 0 && value < w.end ? w.names[value] : NULL;
}

/* False, and *out as it was, for what is no name. */
MUST_USE static inline bool words_parse(struct words w, struct bytes name, int *out)
{
    for (int i = 0; i < w.end; i++) {
        if (w.names[i] && bytes_eq(bytes_str(w.names[i]), name)) {
            *out = i;
            return true;
        }
    }
    return false;
}

#endif /* POLICY_WORDS_H */
