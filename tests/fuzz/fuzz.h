/* fuzz.h - what the fuzz targets share.
 *
 * A target is one file with LLVMFuzzerTestOneInput: it reads an input, calls the code, and
 * checks a property by comparing it with a second, naive implementation of its own.  The
 * same file is linked with libFuzzer (tools/fuzz) and with replay.c (make check).
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"

#define FUZZ_INPUT_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program: the input is a counterexample. */
#define FUZZ_CHECK(held)                                                       \
    do {                                                                       \
        if (!(held)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #held); \
            abort();                                                           \
        }                                                                      \
    } while (0)

static inline void fuzz_release(json_t **value)
{
    json_decref(*value);
}

/* NULL for what is no JSON. */
static inline json_t *fuzz_json(struct bytes text)
{
    json_t *value = NULL;

    return json_read(text, FUZZ_INPUT_MAX, &value, NULL) == BELAY_OK ? value : NULL;
}

/* The line an input begins with; *rest is behind its newline. */
static inline struct bytes fuzz_line(struct bytes *rest)
{
    const uint8_t *end = rest->len > 0 ? memchr(rest->ptr, '\n', rest->len) : NULL;
    size_t n = end ? (size_t)(end - rest->ptr) : rest->len;
    struct bytes line = bytes_of(rest->ptr, n);
    size_t used = end ? n + 1 : n;

    *rest = bytes_of(rest->ptr + used, rest->len - used);
    return line;
}

/* The same value with the keys of every object the other way round. */
static inline json_t *fuzz_reversed(const json_t *value)
{
    json_t *o = (json_t *)value;

    if (json_is_array(value)) {
        json_t *out = json_array();
        for (size_t i = 0; i < json_array_size(value); i++)
            (void)json_array_append_new(out, fuzz_reversed(json_array_get(value, i)));
        return out;
    }
    if (!json_is_object(value))
        return json_incref(o);
    size_t n = json_object_size(value);
    void **at = calloc(n + 1, sizeof(*at));
    json_t *out = json_object();
    size_t i = 0;
    for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it))
        at[i++] = it;
    while (i-- > 0)
        (void)json_object_setn_new(out, json_object_iter_key(at[i]),
                                   json_object_iter_key_len(at[i]),
                                   fuzz_reversed(json_object_iter_value(at[i])));
    free(at);
    return out;
}

#endif /* TESTS_FUZZ_H */
