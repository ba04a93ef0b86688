/* A selector and, in the second line, a payload: what is printed reads as the same, and a
 * naive selector finds the same. */
#include "fuzz.h"
#include "policy/event_select.h"

#define NAIVE_MAX ((size_t)SELECTOR_TEXT_MAX)

static const json_t *naive_pointer(const json_t *v, const char *pointer)
{
    char *copy = strdup(pointer);

    for (char *token = *copy ? copy + 1 : NULL, *next; v && token; token = next) {
        char *end = strchr(token, '/'), *out = token;
        next = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        for (char *c = token; *c; c++) {
            if (*c == '~')
                *out++ = *++c == '0' ? '~' : '/';
            else
                *out++ = *c;
        }
        *out = '\0';
        if (json_is_array(v)) {
            size_t n = strlen(token), digits = strspn(token, "0123456789");
            bool is_index =
                n > 0 && digits == n && n < 10 && (n == 1 || token[0] != '0');
            v = is_index ? json_array_get(v, strtoul(token, NULL, 10)) : NULL;
        } else {
            v = json_object_get(v, token);
        }
    }
    free(copy);
    return v;
}

static json_t *naive_select(const json_t *selector, const json_t *payload, bool *large);

/* The text form, for free(). */
static char *naive_text(const json_t *v)
{
    struct buf out = { 0 };

    if (json_is_string(v))
        return strdup(json_string_value(v));
    FUZZ_CHECK(json_write(v, &out, NULL) == BELAY_OK);
    buf_append_char(&out, '\0');
    return (char *)out.ptr;
}

static char *naive_replace(const char *text, const char *name, const char *by,
                           bool *large)
{
    struct buf out = { 0 };
    size_t n = strlen(name);

    while (*text && out.len <= NAIVE_MAX) {
        if (text[0] == '{' && strncmp(text + 1, name, n) == 0 && text[n + 1] == '}') {
            buf_append_str(&out, by);
            text += n + 2;
        } else {
            buf_append_char(&out, *text++);
        }
    }
    *large = *large || out.len > NAIVE_MAX;
    buf_append_char(&out, '\0');
    return (char *)out.ptr;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static json_t *naive_template(const json_t *declared, const json_t *payload,
                              bool *large)
{
    json_t *fields = json_object_get(declared, "fields"), *ignored;
    char *text = strdup(json_string_value(json_object_get(declared, "template")));
    const char *names[SELECTOR_FIELDS_MAX], *key;
    bool good = true;
    size_t n = 0;

    json_object_foreach(fields, key, ignored) names[n++] = key;
    qsort(names, n, sizeof(names[0]), by_name);
    for (size_t i = 0; good && i < n; i++) {
        json_t *v = naive_select(json_object_get(fields, names[i]), payload, large);
        good = v != NULL;
        if (!good)
            break;
        char *by = naive_text(v);
        char *next = naive_replace(text, names[i], by, large);
        free(by);
        free(text);
        json_decref(v);
        text = next;
        good = !*large;
    }
    json_t *out = good ? json_string(text) : NULL;
    free(text);
    return out;
}

/* NULL when a pointer does not match; a new reference else. */
static json_t *naive_select(const json_t *s, const json_t *payload, bool *large)
{
    const json_t *given;

    if (json_is_string(s))
        return json_incref((json_t *)payload);
    if ((given = json_object_get(s, "pointer")))
        return json_incref((json_t *)naive_pointer(payload, json_string_value(given)));
    if ((given = json_object_get(s, "const")))
        return json_incref((json_t *)given);
    if ((given = json_object_get(s, "present")))
        return json_boolean(naive_pointer(payload, json_string_value(given)));
    return naive_template(json_object_get(s, "template"), payload, large);
}

static bool naive_truth(const json_t *v)
{
    return json_is_true(v) || json_is_number(v) || json_string_length(v) > 0 ||
           json_array_size(v) > 0 || json_object_size(v) > 0;
}

static void round_trip(const struct selector *s)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct buf once = buf_in(&a), twice = buf_in(&a);
    struct selector again;

    FUZZ_CHECK(selector_write(s, &once, NULL) == BELAY_OK);
    CLEANUP(fuzz_release) json_t *back = NULL;
    FUZZ_CHECK(json_read(buf_view(&once), SIZE_MAX, &back, NULL) == BELAY_OK);
    FUZZ_CHECK(selector_read(back, "it", &a, &again, NULL) == BELAY_OK);
    FUZZ_CHECK(selector_write(&again, &twice, NULL) == BELAY_OK);
    FUZZ_CHECK(bytes_eq(buf_view(&once), buf_view(&twice)));
}

static void compare(const struct selector *s, const json_t *declared,
                    const json_t *payload)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_error err = { .size = sizeof(err) };
    struct bytes text = { 0 };
    struct selected out;
    bool large = false;
    belay_rc rc = selector_select(s, payload, &a, &out, &err);
    bool truth = rc == BELAY_OK && selected_is_true(&out);

    if (rc == BELAY_OK)
        rc = selected_text(&out, &a, &text, &err);
    if (rc == BELAY_INVALID && strcmp(err.reason, "too_large") == 0)
        return; /* given up, by size or by work */
    CLEANUP(fuzz_release) json_t *want = naive_select(declared, payload, &large);
    FUZZ_CHECK(!large);
    FUZZ_CHECK((want != NULL) == (rc == BELAY_OK));
    if (rc != BELAY_OK) {
        FUZZ_CHECK(rc == BELAY_INVALID && strcmp(err.reason, "pointer") == 0);
        FUZZ_CHECK(strstr(err.message, "did not match"));
        return;
    }
    char *naive = naive_text(want);
    FUZZ_CHECK(bytes_eq(text, bytes_str(naive)));
    FUZZ_CHECK(truth == naive_truth(want));
    free(naive);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct bytes rest = bytes_of(data, size);
    struct belay_error err = { .size = sizeof(err) };
    CLEANUP(fuzz_release) json_t *declared = fuzz_json(fuzz_line(&rest));
    CLEANUP(fuzz_release) json_t *payload = fuzz_json(rest);
    struct selector s;

    if (!declared || !payload)
        return 0;
    belay_rc rc = selector_read(declared, "it", &a, &s, &err);
    FUZZ_CHECK(rc == BELAY_OK || rc == BELAY_INVALID);
    FUZZ_CHECK(rc == BELAY_OK || strcmp(err.reason, "selector") == 0);
    if (rc != BELAY_OK)
        return 0;
    round_trip(&s);
    compare(&s, declared, payload);
    return 0;
}
