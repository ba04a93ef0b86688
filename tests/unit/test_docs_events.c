/* The examples of docs/events.md, run: what the page says is what the code does. */
#include "policy/event_type.h"
#include "test_policy_event.h"

struct page {
    char *text;
};

static char answer[2048];

static const char *say(struct buf *out)
{
    (void)snprintf(answer, sizeof(answer), "%.*s", (int)out->len,
                   out->ptr ? (const char *)out->ptr : "");
    return answer;
}

static const char *say_error(const struct belay_error *err)
{
    (void)snprintf(answer, sizeof(answer), "%s", err->message);
    return answer;
}

static const char *run_schema(const json_t *schema, const json_t *payload,
                              struct belay_arena *a)
{
    struct belay_error err = { .size = sizeof(err) };

    if (event_schema_check(schema, a, &err) != BELAY_OK ||
        event_schema_validate(schema, payload, a, &err) != BELAY_OK)
        return say_error(&err);
    return "ok";
}

static const char *run_select(const json_t *declared, const json_t *payload,
                              struct belay_arena *a)
{
    struct belay_error err = { .size = sizeof(err) };
    struct buf out = buf_in(a);
    struct bytes text = { 0 };
    struct selected chosen;
    struct selector s;

    if (selector_read(declared, "selector", a, &s, &err) != BELAY_OK ||
        selector_select(&s, payload, a, &chosen, &err) != BELAY_OK ||
        selected_text(&chosen, a, &text, &err) != BELAY_OK)
        return say_error(&err);
    buf_append_str(&out, selected_is_true(&chosen) ? "true " : "false ");
    buf_append(&out, text);
    return say(&out);
}

static const char *run_mean(const json_t *semantics, const json_t *payload,
                            struct belay_arena *a)
{
    CLEANUP(json_release)
    json_t *declared = json_pack("{s:s,s:O}", "name", "e", "semantics", semantics);
    struct belay_error err = { .size = sizeof(err) };
    struct buf out = buf_in(a);
    struct event_meaning m;
    struct event_type type;

    if (event_type_read(declared, a, &type, &err) != BELAY_OK ||
        event_type_mean(&type, payload, bytes_str("p"), 3, a, &m, &err) != BELAY_OK)
        return say_error(&err);
    if (m.terminal) {
        buf_append_str(&out, process_state_name((int)m.state));
        buf_append_char(&out, ' ');
        buf_append(&out, m.await_output);
    } else if (m.wake) {
        buf_append_str(&out, "wake ");
        json_append_string(&out, m.wake_input);
        buf_append_str(&out, " as ");
        json_append_string(&out, m.dedupe_key);
    } else {
        buf_append_str(&out, "nothing");
    }
    return say(&out);
}

static const char *run_declare(const json_t *declared, struct belay_arena *a)
{
    struct belay_error err = { .size = sizeof(err) };
    struct event_type type;

    if (event_type_read(declared, a, &type, &err) != BELAY_OK)
        return say_error(&err);
    return "ok";
}

static json_t *parse(const char *text)
{
    struct belay_error err = { .size = sizeof(err) };
    json_t *value = NULL;

    if (json_read(bytes_str(text), SIZE_MAX, &value, &err) != BELAY_OK) {
        printf("Bail out! docs/events.md: %s: %s\n", text, err.message);
        exit(1);
    }
    return value;
}

static char *next_line(char **rest)
{
    char *line = *rest, *end = strchr(line, '\n');

    *rest = end ? end + 1 : line + strlen(line);
    if (end)
        *end = '\0';
    return line;
}

/* "DECLARED", then a payload and its answer by turns. */
static unsigned run_block(struct tap *t, char *body,
                          const char *(*run)(const json_t *, const json_t *,
                                             struct belay_arena *))
{
    CLEANUP(json_release) json_t *declared = parse(next_line(&body));
    unsigned n = 0;

    while (*body) {
        CLEANUP(arena_release) struct belay_arena a = { 0 };
        char *line = next_line(&body);
        if (!TAP_OK(t, strncmp(line, "<- ", 3) == 0))
            return n;
        CLEANUP(json_release) json_t *payload = parse(line + 3);
        TAP_STR(t, run(declared, payload, &a), next_line(&body));
        n++;
    }
    return n;
}

/* The next fenced block of this language; NULL behind the last. */
static char *next_block(char **rest, const char *language)
{
    char fence[32];
    (void)snprintf(fence, sizeof(fence), "\n```%s\n", language);
    char *start = strstr(*rest, fence);
    if (!start)
        return NULL;
    start += strlen(fence);
    char *end = strstr(start, "\n```\n");
    if (!end)
        return NULL;
    size_t len = (size_t)(end - start) + 1;
    char *block = strndup(start, len);
    *rest = end;
    return block;
}

static void run_blocks(struct tap *t, const char *language, unsigned at_least,
                       const char *(*run)(const json_t *, const json_t *,
                                          struct belay_arena *))
{
    char *rest = ((struct page *)t->arg)->text, *block;
    unsigned n = 0;

    while ((block = next_block(&rest, language))) {
        n += run_block(t, block, run);
        free(block);
    }
    TAP_OK(t, n >= at_least); /* a page without examples shows nothing */
}

static void schemas(struct tap *t)
{
    run_blocks(t, "schema", 14, run_schema);
}

static void selections(struct tap *t)
{
    run_blocks(t, "select", 6, run_select);
}

static void meanings(struct tap *t)
{
    run_blocks(t, "mean", 8, run_mean);
}

static void declarations(struct tap *t)
{
    char *rest = ((struct page *)t->arg)->text, *block;
    unsigned n = 0;

    for (; (block = next_block(&rest, "declare")); n++) {
        CLEANUP(arena_release) struct belay_arena a = { 0 };
        char *body = block;
        CLEANUP(json_release) json_t *declared = parse(next_line(&body));
        TAP_STR(t, run_declare(declared, &a), next_line(&body));
        free(block);
    }
    TAP_EQ(t, n, 1);
    rest = ((struct page *)t->arg)->text;
    for (n = 0; (block = next_block(&rest, "json")); n++) {
        CLEANUP(arena_release) struct belay_arena a = { 0 };
        CLEANUP(json_release) json_t *declared = parse(block);
        TAP_STR(t, run_declare(declared, &a), "ok");
        free(block);
    }
    TAP_EQ(t, n, 1);
}

/* Every number of the page's table of limits that is one of the code's. */
static void limits(struct tap *t)
{
    const char *text = ((struct page *)t->arg)->text;
    char want[256];

    (void)snprintf(want, sizeof(want), "| %d, %d bytes |", EVENT_TYPES_MAX,
                   EVENT_NAME_MAX);
    TAP_OK(t, strstr(text, want) != NULL);
    (void)snprintf(want, sizeof(want), "| schemas within a schema | %d |",
                   EVENT_SCHEMA_NODES_MAX);
    TAP_OK(t, strstr(text, want) != NULL);
    (void)snprintf(want, sizeof(want), "| %d,000,000 steps",
                   EVENT_SCHEMA_WORK_MAX / 1000000);
    TAP_OK(t, strstr(text, want) != NULL);
    (void)snprintf(want, sizeof(want), "| a pointer | %d bytes |",
                   SELECTOR_POINTER_MAX);
    TAP_OK(t, strstr(text, want) != NULL);
    (void)snprintf(want, sizeof(want), "| %d, %d, %d |", SELECTOR_FIELDS_MAX,
                   SELECTOR_DEPTH_MAX, SELECTOR_COUNT_MAX);
    TAP_OK(t, strstr(text, want) != NULL);
    (void)snprintf(want, sizeof(want), "| %d MiB; %d MiB written",
                   SELECTOR_TEXT_MAX >> 20, SELECTOR_WORK_MAX >> 20);
    TAP_OK(t, strstr(text, want) != NULL);
    (void)snprintf(want, sizeof(want), "| a dedupe key | %d KiB |",
                   DEDUPE_KEY_MAX >> 10);
    TAP_OK(t, strstr(text, want) != NULL);
    (void)snprintf(want, sizeof(want), "| nesting of JSON | %d |", JSON_DEPTH_MAX);
    TAP_OK(t, strstr(text, want) != NULL);
}

static const struct tap_case cases[] = {
    { "schemas accept and refuse as the page says", schemas },
    { "selectors select as the page says", selections },
    { "events mean what the page says", meanings },
    { "declarations are taken or refused as the page says", declarations },
    { "limits are those of the page", limits },
};

static char *read_page(const char *path)
{
    static char text[65536];
    FILE *f = fopen(path, "rb");

    if (!f) {
        printf("Bail out! %s cannot be read\n", path);
        exit(1);
    }
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    (void)fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    const char *root = getenv("BELAY_SOURCE_ROOT");
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/docs/events.md", root ? root : ".");
    struct page page = { .text = read_page(path) };
    return tap_main(cases, COUNT_OF(cases), &page, argc, argv);
}
