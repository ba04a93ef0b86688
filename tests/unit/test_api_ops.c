#include <ctype.h>

#include "api/op_execution.h"
#include "tap.h"
#include "test_api_table.h"
#include "work/checkpoint.h"

static bool is_name(const char *name)
{
    return islower(name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

/* Lower-case words with single spaces between them. */
static bool are_words(const char *words)
{
    size_t len = strlen(words);

    return len > 0 && words[0] != ' ' && words[len - 1] != ' ' &&
           !strstr(words, "  ") && strspn(words, "abcdefghijklmnopqrstuvwxyz- ") == len;
}

/* One line of ASCII without a full stop at its end. */
static bool is_line(const char *text)
{
    size_t len = text ? strlen(text) : 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] < ' ' || text[i] > '~')
            return false;
    }
    return len > 0 && text[len - 1] != '.';
}

static void names_are_unique(struct tap *t)
{
    const struct op_table *table = t->arg;

    TAP_OK(t, op_count(table) > 0);
    TAP_OK(t, !op_at(table, op_count(table)));
    for (size_t i = 0; i < op_count(table); i++) {
        const struct operation *a = op_at(table, i);
        for (size_t k = 0; k < op_count(table); k++) {
            const struct operation *b = op_at(table, k);
            if (i == k)
                continue;
            TAP_OK(t, strcmp(a->name, b->name) != 0);
            TAP_OK(t, !op_words_begin(a->words, bytes_str(b->words)));
            if (a->http_method && b->http_method)
                TAP_OK(t, strcmp(a->http_method, b->http_method) != 0 ||
                              strcmp(a->http_path, b->http_path) != 0);
        }
    }
}

static void rows_are_whole(struct tap *t)
{
    const struct op_table *table = t->arg;

    for (size_t i = 0; i < op_count(table); i++) {
        const struct operation *op = op_at(table, i);
        bool good = TAP_OK(t, op->name && op->words && are_words(op->words)) &&
                    TAP_OK(t, is_line(op->summary)) && TAP_OK(t, op->handler) &&
                    TAP_OK(t, !op->http_method == !op->http_path) &&
                    TAP_OK(t, op->shape == OP_PROSE || op->columns) &&
                    TAP_OK(t, op->shape != OP_LIST || op->essence);

        /* The name is the words, with dots. */
        for (size_t c = 0; good && op->words[c]; c++)
            good = TAP_EQ(t, op->name[c] == '.' ? ' ' : op->name[c], op->words[c]);
        if (good && op->http_method) {
            good &= TAP_OK(t, strncmp(op->http_path, "/v1/", 4) == 0);
            good &= TAP_OK(t, strstr("GET POST PUT DELETE", op->http_method));
            good &= TAP_OK(t, op->scope != OP_SCOPE_NONE);
        }
        if (!good)
            printf("# in operation %s\n", op->name);
    }
}

static void arg_is_whole(struct tap *t, const struct op_arg *arg)
{
    bool flag = arg->kind == OP_FLAG;
    bool number = arg->type == OP_I64 || arg->type == OP_DURATION;
    bool good = TAP_OK(t, arg->name && is_name(arg->name)) &&
                TAP_OK(t, is_line(arg->help)) &&
                TAP_OK(t, !flag || arg->type == OP_BOOL) &&
                TAP_OK(t, !flag || (!arg->required && !arg->repeated && !arg->env &&
                                    !arg->fallback)) &&
                TAP_OK(t, !number || arg->min < arg->max) &&
                TAP_OK(t, number || (arg->min >= 0 && arg->max >= 0)) &&
                TAP_OK(t, !arg->choices || (arg->type == OP_TEXT && arg->choices[0])) &&
                TAP_OK(t, !arg->letter || arg->kind != OP_POSITIONAL) &&
                TAP_OK(t, !arg->letter || islower(arg->letter)) &&
                TAP_OK(t, !(arg->required && arg->fallback));

    if (good && arg->fallback) {
        struct op_value value = { 0 };
        struct belay_error err = { 0 };
        belay_rc rc = op_value_parse(arg, bytes_str(arg->fallback), &value, &err);
        TAP_STR(t, rc == BELAY_OK ? "" : err.message, "");
        json_decref(value.json);
    }
    if (!good)
        printf("# in argument %s\n", arg->name);
}

/* Unique among the arguments before it and the globals. */
static void arg_is_unique(struct tap *t, const struct op_arg *args, size_t i,
                          const struct op_table *table)
{
    for (size_t k = 0; k < i; k++) {
        TAP_OK(t, strcmp(args[k].name, args[i].name) != 0);
        TAP_OK(t, !args[i].letter || args[k].letter != args[i].letter);
    }
    for (size_t k = 0; args != table->globals && k < table->n_globals; k++) {
        TAP_OK(t, strcmp(table->globals[k].name, args[i].name) != 0);
        TAP_OK(t, !args[i].letter || table->globals[k].letter != args[i].letter);
    }
}

static void args_are_whole(struct tap *t)
{
    const struct op_table *table = t->arg;

    for (size_t i = 0; i < table->n_globals; i++) {
        arg_is_whole(t, &table->globals[i]);
        arg_is_unique(t, table->globals, i, table);
        TAP_OK(t, table->globals[i].kind != OP_POSITIONAL);
        TAP_OK(t, !table->globals[i].repeated && !table->globals[i].required);
        TAP_OK(t, table->globals[i].type != OP_JSON);
    }
    for (size_t i = 0; i < op_count(table); i++) {
        const struct operation *op = op_at(table, i);
        const struct op_arg *before = NULL; /* the last positional */

        for (size_t k = 0; k < op->n_args; k++) {
            const struct op_arg *arg = &op->args[k];
            arg_is_whole(t, arg);
            arg_is_unique(t, op->args, k, table);
            if (arg->kind != OP_POSITIONAL)
                continue;
            TAP_OK(t, !before || !before->repeated); /* O3 */
            TAP_OK(t, !before || before->required || !arg->required);
            before = arg;
        }
    }
}

static void options_agree(struct tap *t)
{
    const struct op_table *table = t->arg;
    const struct op_arg *a, *b;

    for (size_t i = 0; (a = op_arg_at(table, i)) != NULL; i++) {
        for (size_t k = 0; k < i; k++) {
            b = op_arg_at(table, k);
            if (strcmp(a->name, b->name) == 0)
                TAP_OK(t, (a->kind == OP_FLAG) == (b->kind == OP_FLAG)); /* O4 */
        }
    }
}

static const struct op_arg *arg_called(const struct operation *op, struct bytes name)
{
    for (size_t i = 0; i < op->n_args; i++) {
        if (bytes_eq(bytes_str(op->args[i].name), name))
            return &op->args[i];
    }
    return NULL;
}

static void paths_name_arguments(struct tap *t)
{
    const struct op_table *table = t->arg;

    for (size_t i = 0; i < op_count(table); i++) {
        const struct operation *op = op_at(table, i);
        const char *open = op->http_path ? strchr(op->http_path, '{') : NULL;

        for (; open; open = strchr(open + 1, '{')) {
            const char *close = strchr(open, '}');
            if (!TAP_OK(t, close))
                return;
            struct bytes name = bytes_of(open + 1, (size_t)(close - open - 1));
            if (strcmp(op->http_method, "PUT") == 0 &&
                bytes_eq(name, bytes_str("sha256")))
                name = bytes_str("expect"); /* O5 */
            if (!TAP_OK(t, arg_called(op, name)))
                printf("# %s: %s\n", op->name, op->http_path);
        }
    }
}

static void streams_go_one_way(struct tap *t)
{
    const struct op_table *table = t->arg;

    for (size_t i = 0; i < op_count(table); i++) {
        const struct operation *op = op_at(table, i);
        size_t in = 0, out = 0;

        for (size_t k = 0; k < op->n_args; k++) {
            in += op->args[k].type == OP_STREAM;
            out += op->args[k].type == OP_TARGET;
        }
        TAP_OK(t, in <= 1 && out <= 1); /* O6 */
        TAP_OK(t, (op->shape == OP_BYTES) == (out == 1));
        TAP_OK(t, in == 0 || out == 0);
    }
}

static void follows_are_lists(struct tap *t)
{
    for (size_t i = 0; i < op_count(&op_table_belay); i++) {
        const struct operation *op = op_at(&op_table_belay, i);
        const struct op_arg *follow = arg_called(op, bytes_str("follow"));

        TAP_OK(t,
               !follow || (follow->kind == OP_FLAG && op->shape == OP_LIST)); /* O7 */
        TAP_OK(t, !op->is_live || (op->lasts && op->shape == OP_LIST));
        const struct op_arg *watch = arg_called(op, bytes_str("watch"));
        const struct op_arg *every = arg_called(op, bytes_str("every"));
        TAP_OK(t, !watch || (watch->kind == OP_FLAG && op->shape == OP_OBJECT &&
                             every && every->type == OP_DURATION));
        TAP_OK(t, !op->body_is_text || op->body);
        TAP_OK(t, !op->by_handle || arg_called(op, bytes_str("handle"))); /* O8 */
    }
}

/* Names in the table are those of the values, from `first` on, and all of them. */
static void names_agree(struct tap *t, const char *const *names, int dimension,
                        int first)
{
    int n = first;

    for (; names[n - first]; n++)
        TAP_STR(t, names[n - first], belay_value_name(dimension, n));
    TAP_OK(t, !belay_value_name(dimension, n));
}

static void execution_names_agree(struct tap *t)
{
    names_agree(t, op_state_names, BELAY_DIM_STATE, 1);
    names_agree(t, op_failure_class_names, BELAY_DIM_FAILURE_CLASS, 1);
    names_agree(t, op_frame_kind_names, BELAY_DIM_FRAME_KIND, 0);
    names_agree(t, op_frame_mode_names, BELAY_DIM_FRAME_MODE, 0);
    names_agree(t, op_event_names, BELAY_DIM_EVENT, 0);
}

static void choices_have_their_numbers(struct tap *t)
{
    TAP_EQ(t, op_read_name(op_delivery_names, bytes_str("earliest_safe_boundary")) + 1,
           BELAY_EARLIEST_SAFE_BOUNDARY);
    TAP_EQ(t,
           op_read_name(op_delivery_names, bytes_str("after_current_turn_commit")) + 1,
           BELAY_AFTER_CURRENT_TURN_COMMIT);
    TAP_EQ(t, op_read_name(op_slot_names, bytes_str("join")) + 1, BELAY_JOIN);
    TAP_EQ(t, op_read_name(op_slot_names, bytes_str("exclusive")) + 1, BELAY_EXCLUSIVE);
    TAP_EQ(t, op_read_name(op_boundary_names, bytes_str("idle")), BELAY_IDLE);
    TAP_EQ(t, op_read_name(op_boundary_names, bytes_str("active_turn_checkpoint")),
           BELAY_ACTIVE_TURN_CHECKPOINT);
    TAP_EQ(t, op_read_name(op_profile_names, bytes_str("compact")), BELAY_COMPACT);
    TAP_EQ(t, op_read_name(op_profile_names, bytes_str("")), -1);
    for (int32_t i = 0; op_kind_names[i]; i++) {
        int32_t kind = -1;
        TAP_OK(t, blob_kind_parse(bytes_str(op_kind_names[i]), &kind));
        TAP_EQ(t, kind, i);
    }
    TAP_STR(t, op_kind_names[BELAY_BLOB_MODULE], blob_kind_name(BELAY_BLOB_MODULE));
}

static void finds(struct tap *t)
{
    const struct op_table *table = &test_table;

    TAP_OK(t, op_find(table, bytes_str("flow ls")) == op_at(table, 1));
    TAP_OK(t, !op_find(table, bytes_str("flow")));
    TAP_OK(t, !op_find(table, bytes_str("flow lsx")));
    TAP_OK(t, !op_find(table, bytes_str("")));
    TAP_OK(t, op_is_prefix(table, bytes_str("flow")));
    TAP_OK(t, op_is_prefix(table, bytes_str("")));
    TAP_OK(t, !op_is_prefix(table, bytes_str("flo")));
    TAP_OK(t, !op_is_prefix(table, bytes_str("flow ")));
    TAP_OK(t, !op_is_prefix(table, bytes_str("where")));
    TAP_OK(t, bytes_eq(op_next_word(table, bytes_str(""), 0), bytes_str("flow")));
    TAP_OK(t, bytes_eq(op_next_word(table, bytes_str(""), 1), bytes_str("where")));
    TAP_OK(t, bytes_eq(op_next_word(table, bytes_str("flow"), 1), bytes_str("ls")));
    TAP_EQ(t, op_next_word(table, bytes_str("flow"), 2).len, 0);
    TAP_EQ(t, op_next_word(table, bytes_str("where"), 0).len, 0);
}

/* clang-format off */
static const struct {
    const char *arg, *text;
    int64_t number;
    const char *why; /* NULL: accepted */
} value_rows[] = {
    { "lane", "a", 0, NULL },
    { "lane", "12345678", 0, NULL },
    { "lane", "", 0, "is empty" },
    { "lane", "123456789", 0, "is longer than 8 bytes" },
    { "lane", "\xff", 0, "is not UTF-8 text" },
    { "mode", "slow", 0, NULL },
    { "mode", "slo", 0, "must be one of fast, slow" },
    { "mode", "", 0, "must be one of fast, slow" },
    { "mode", "Slow", 0, "must be one of fast, slow" },
    { "max_items", "-2", -2, NULL },
    { "max_items", "10", 10, NULL },
    { "max_items", "11", 0, "must be from -2 to 10" },
    { "max_items", "-3", 0, "must be from -2 to 10" },
    { "max_items", "", 0, "must be a whole number" },
    { "max_items", "1x", 0, "must be a whole number" },
    { "max_items", "9223372036854775808", 0, "must be a whole number" },
    { "wait", "1s", 1000, NULL },
    { "wait", "1h", 3600000, NULL },
    { "wait", "999ms", 0, "must be from 1s to 1h" },
    { "wait", "2h", 0, "must be from 1s to 1h" },
    { "wait", "5", 0, "must be a duration like 500ms, 30s, 15m, 2h or 7d" },
    { "strict", "true", 1, NULL },
    { "strict", "false", 0, NULL },
    { "strict", "1", 0, "must be true or false" },
    { "strict", "TRUE", 0, "must be true or false" },
    { "payload", "{\"a\":[1]}", 0, NULL },
    { "payload", "null", 0, NULL },
    { "payload", "", 0, "JSON: " },
    { "payload", "{\"a\":1,\"a\":2}", 0, "JSON: " },
    { "payload", "\"1234567890123456789012345678901234567890123456789012345678901234\"", 0, "JSON: 66 bytes" },
    { "token_file", "\xff\n", 0, NULL },
    { "token_file", "", 0, NULL },
    { "token_file", "12345678901234567", 0, "is longer than 16 bytes" },
};
/* clang-format on */

static const struct op_arg *submit_arg(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(submit_args); i++) {
        if (strcmp(submit_args[i].name, name) == 0)
            return &submit_args[i];
    }
    return NULL;
}

static void reads_values(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(value_rows); i++) {
        const struct op_arg *arg = submit_arg(value_rows[i].arg);
        struct op_value value = { .number = 77 };
        struct belay_error err = { 0 };
        belay_rc rc = op_value_parse(arg, bytes_str(value_rows[i].text), &value, &err);
        bool good = TAP_EQ(t, rc, value_rows[i].why ? BELAY_INVALID : BELAY_OK);

        if (rc == BELAY_OK) {
            good &= TAP_EQ(t, value.number, value_rows[i].number);
            good &= TAP_OK(t, value.arg == arg);
            good &= TAP_EQ(t, value.json != NULL, arg->type == OP_JSON);
        } else if (good) {
            good &= TAP_EQ(t, value.number, 77);
            good &= TAP_STR(t, err.entity, value_rows[i].arg);
            good &= TAP_OK(t, strncmp(err.message, value_rows[i].why,
                                      strlen(value_rows[i].why)) == 0);
        }
        if (!good)
            printf("# in row %s %s: %s\n", value_rows[i].arg, value_rows[i].text,
                   err.message);
        json_decref(value.json);
    }
}

static void has_limits(struct tap *t)
{
    struct op_arg text = { .name = "x", .type = OP_TEXT };
    struct op_arg json = { .name = "x", .type = OP_JSON };
    struct op_arg number = { .name = "x", .type = OP_I64, .max = 7 };
    struct buf long_text CLEANUP(buf_release) = { 0 };
    struct op_value value;
    struct belay_error err;

    TAP_EQ(t, op_value_max(&text), OP_TEXT_MAX);
    TAP_EQ(t, op_value_max(&json), OP_JSON_MAX);
    TAP_EQ(t, op_value_max(&number), OP_TEXT_MAX);
    while (long_text.len < OP_TEXT_MAX)
        buf_append_char(&long_text, 'x');
    TAP_EQ(t, op_value_parse(&text, buf_view(&long_text), &value, &err), BELAY_OK);
    buf_append_char(&long_text, 'x');
    TAP_EQ(t, op_value_parse(&text, buf_view(&long_text), &value, &err), BELAY_INVALID);
    TAP_STR(t, err.reason, "too_large");
    TAP_EQ(t, err.expected, (int64_t)OP_TEXT_MAX);
    TAP_EQ(t, belay_error_http_status(&err), 413);
    TAP_EQ(t, op_value_parse(&text, bytes_of("a\0b", 3), &value, &err), BELAY_INVALID);
}

static belay_rc call(const char *words, json_t **out)
{
    const struct operation *op = op_find(&op_table_belay, bytes_str(words));
    struct op_call c = { .table = &op_table_belay, .op = op };

    return op->handler(&c, out, NULL);
}

static void tells_version(struct tap *t)
{
    json_t *answer = NULL;

    if (!TAP_EQ(t, call("version", &answer), BELAY_OK))
        return;
    TAP_STR(t, json_string_value(json_object_get(answer, "version")), belay_version());
    TAP_EQ(t, json_integer_value(json_object_get(answer, "store_format")), 4);
    const json_t *drivers = json_object_get(answer, "drivers");
    TAP_STR(t, json_string_value(json_array_get(drivers, 0)), "memory");
    json_decref(answer);
}

static void lists_errors(struct tap *t)
{
    json_t *answer = NULL;

    if (!TAP_EQ(t, call("errors", &answer), BELAY_OK))
        return;
    const json_t *items = json_object_get(answer, "items");
    TAP_EQ(t, json_array_size(items), BELAY_CORRUPT + 1);
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        const char *code = json_string_value(json_object_get(item, "code"));
        TAP_EQ(t, json_integer_value(json_object_get(item, "number")), i);
        TAP_EQ(t, belay_error_code(code), i);
        TAP_EQ(t, json_integer_value(json_object_get(item, "exit_code")),
               belay_error_info((int)i)->exit_code);
        TAP_EQ(t, json_integer_value(json_object_get(item, "http_status")),
               belay_error_info((int)i)->http_status);
        TAP_OK(t, json_is_boolean(json_object_get(item, "retryable")));
    }
    json_decref(answer);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "names, words and routes are unique, and no words begin others",
          names_are_unique },
        { "every row has a summary, a handler and columns to print", rows_are_whole },
        { "every argument is well-formed, and unique in its operation",
          args_are_whole },
        { "an option takes a value everywhere or nowhere", options_agree },
        { "what a path names is an argument", paths_name_arguments },
        { "bytes stream in or out of an operation, not both", streams_go_one_way },
        { "the words of choices are in the order of their numbers",
          choices_have_their_numbers },
        { "what can be followed is a list, and a holder shows a handle",
          follows_are_lists },
        { "values of executions have one name everywhere", execution_names_agree },
        { "operations are found by whole words", finds },
        { "a value is read by its type and within its bounds", reads_values },
        { "a value without bounds of its own has those of its type", has_limits },
        { "version tells version, format and drivers", tells_version },
        { "errors lists the whole error table", lists_errors },
    };
    return tap_main(cases, COUNT_OF(cases), (void *)&op_table_belay, argc, argv);
}
