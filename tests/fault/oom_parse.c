/* Jansson's parser where memory runs out, for programs linked with --wrap=json_loadb. */
#include <jansson.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
json_t *__real_json_loadb(const char *text, size_t len, size_t flags,
                          json_error_t *error);
json_t *__wrap_json_loadb(const char *text, size_t len, size_t flags,
                          json_error_t *error);

/* Parsing fails as a whole or not at all: Jansson ignores that its buffer of a token could
 * not grow and then writes behind what it has (akheron/jansson#362), which no caller can
 * help. */
json_t *__wrap_json_loadb(const char *text, size_t len, size_t flags,
                          json_error_t *error)
{
    void *memory = malloc(1);

    if (!memory) {
        *error = (json_error_t){ .line = -1 };
        return NULL;
    }
    free(memory);
    json_set_alloc_funcs(__real_malloc, free);
    json_t *value = __real_json_loadb(text, len, flags, error);
    json_set_alloc_funcs(__wrap_malloc, free);
    return value;
}
