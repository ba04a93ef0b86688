/* test_policy_event.h - JSON as it is written in a table of cases. */
#ifndef TESTS_POLICY_EVENT_H
#define TESTS_POLICY_EVENT_H

#include <stdlib.h>

#include "base/json.h"
#include "tap.h"

static inline void json_release(json_t **value)
{
    json_decref(*value);
}

static inline void swap_char(char *text, char from, char to)
{
    for (char *at = text; (at = strchr(at, from)); at++)
        *at = to;
}

/* A single quote stands for a double one, so that rows can be read. */
static inline json_t *json_of(const char *text)
{
    struct buf quoted CLEANUP(buf_release) = { 0 };
    struct belay_error err = { .size = sizeof(err) };
    json_t *value = NULL;

    buf_append(&quoted, bytes_of(text, strlen(text) + 1));
    if (quoted.failed)
        exit(1);
    swap_char((char *)quoted.ptr, '\'', '"');
    quoted.len--; /* the NUL */
    if (json_read(buf_view(&quoted), SIZE_MAX, &value, &err) != BELAY_OK) {
        printf("Bail out! %.*s: %s\n", (int)quoted.len, (const char *)quoted.ptr,
               err.message);
        exit(1);
    }
    return value;
}

/* The text with double quotes turned into single ones. */
static inline const char *plain(struct bytes text, char *out, size_t size)
{
    size_t n = text.len < size - 1 ? text.len : size - 1;

    if (n > 0)
        memcpy(out, text.ptr, n);
    out[n] = '\0';
    swap_char(out, '"', '\'');
    return out;
}

#endif /* TESTS_POLICY_EVENT_H */
