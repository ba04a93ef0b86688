#include "base/json.h"
#include "cli/output.h"
#include "cli/report.h"
#include "tap.h"
#include "test_api_table.h"

static const struct operation list_op = {
    .words = "flow ls",
    .shape = OP_LIST,
    .columns = page_columns,
    .essence = "id",
};
static const struct operation object_op = {
    .words = "where",
    .shape = OP_OBJECT,
    .columns = where_columns,
    .essence = "namespace",
};
static const struct operation no_essence_op = {
    .words = "where",
    .shape = OP_OBJECT,
    .columns = where_columns,
};
static const struct operation rows_op = {
    .words = "claim",
    .shape = OP_OBJECT,
    .columns = where_columns,
    .essence = "namespace",
    .rows = "claim.batches",
    .row_columns = page_columns,
};
static const struct operation prose_op = { .words = "help", .shape = OP_PROSE };

static const char *const deep_columns[] = { "state", "failure.class", NULL };
static const char *const age_columns[] = { "id", "age:at_ms", NULL };
static const struct operation deep_op = { .shape = OP_OBJECT, .columns = deep_columns };
static const struct operation age_op = { .shape = OP_LIST, .columns = age_columns };
static const struct operation body_op = { .shape = OP_OBJECT,
                                          .columns = deep_columns,
                                          .body = "result" };
static const struct operation text_op = {
    .shape = OP_LIST, .columns = page_columns, .body = "data", .body_is_text = true
};
static const struct operation terse_op = {
    .shape = OP_OBJECT, .columns = where_columns, .essence = "namespace", .terse = true
};
static const char *const no_columns[] = { NULL };
static const struct operation row_essence_op = { .shape = OP_OBJECT,
                                                 .columns = no_columns,
                                                 .essence = "id",
                                                 .rows = "claims",
                                                 .row_columns = page_columns };

/* clang-format off */
static const struct {
    const char *name;
    const struct operation *op;
    const char *answer;
    enum output_format format;
    bool quiet;
    const char *want;
} rows[] = {
    { "a list is a table", &list_op,
      "{\"items\":[{\"id\":\"a\",\"n\":1},{\"id\":\"bbb\",\"n\":22}],\"next_cursor\":null}", OUTPUT_TABLE, false,
      "id   n\na    1\nbbb  22\n" },
    { "an empty list is nothing", &list_op, "{\"items\":[]}", OUTPUT_TABLE, false, "" },
    { "absent and null are -", &list_op, "{\"items\":[{\"id\":null},{\"n\":true}]}", OUTPUT_TABLE, false,
      "id  n\n-   -\n-   true\n" },
    { "no line ends in a space", &list_op, "{\"items\":[{\"id\":\"a\",\"n\":\"\"},{\"id\":\"b\",\"n\":\"x  \"}]}", OUTPUT_TABLE, false,
      "id  n\na\nb   x\n" },
    { "hostile texts stay in their cell", &list_op,
      "{\"items\":[{\"id\":\"\\u001b[31mred\\u001b[0m\",\"n\":\"a\\nb\\tc\\r\\u0008\"},{\"id\":\"\\u0085\\u009b\\u007f\",\"n\":\"\\\\\"}]}", OUTPUT_TABLE, false,
      "id                    n\n\\x1b[31mred\\x1b[0m    a\\nb\\tc\\r\\x08\n\\xc2\\x85\\xc2\\x9b\\x7f  \\\\\n" },
    { "columns are aligned by characters", &list_op,
      "{\"items\":[{\"id\":\"\\u00e9\\u00e9\\u00e9\",\"n\":1},{\"id\":\"abc\",\"n\":2}]}", OUTPUT_TABLE, false,
      "id   n\n\xc3\xa9\xc3\xa9\xc3\xa9  1\nabc  2\n" },
    { "deeper values are JSON, plain lists are not", &list_op,
      "{\"items\":[{\"id\":[1,\"b\",null],\"n\":{\"b\":1,\"a\":[\"\\n\"]}},{\"id\":[],\"n\":[[1]]}]}", OUTPUT_TABLE, false,
      "id       n\n1, b, -  {\"a\":[\"\\\\n\"],\"b\":1}\n[]       [[1]]\n" },
    { "numbers keep their precision", &list_op,
      "{\"items\":[{\"id\":9007199254740993,\"n\":0.1}]}", OUTPUT_TABLE, false, "id                n\n9007199254740993  0.1\n" },
    { "with -q only the essence", &list_op, "{\"items\":[{\"id\":\"a\\n\",\"n\":1},{\"n\":2},{\"id\":\"b\"}]}", OUTPUT_TABLE, true, "a\\n\nb\n" },
    { "an object is a field a line", &object_op, "{\"durability\":\"inline\",\"namespace\":\"n\",\"more\":1}", OUTPUT_TABLE, false,
      "namespace   n\ndurability  inline\n" },
    { "fields that are not there have no line", &object_op, "{\"durability\":null}", OUTPUT_TABLE, false, "durability  -\n" },
    { "with -q an object is its essence", &object_op, "{\"namespace\":\"n\"}", OUTPUT_TABLE, true, "n\n" },
    { "with -q an essence that is null is nothing", &object_op, "{\"namespace\":null}", OUTPUT_TABLE, true, "" },
    { "rows of an object in the object are a table below it", &rows_op,
      "{\"namespace\":\"n\",\"claim\":{\"batches\":[{\"id\":\"a\",\"n\":1}]}}", OUTPUT_TABLE, false, "namespace  n\n\nid  n\na   1\n" },
    { "no rows are no table", &rows_op, "{\"namespace\":\"n\",\"claim\":null}", OUTPUT_TABLE, false, "namespace  n\n" },
    { "with -q an object without essence is nothing", &no_essence_op, "{\"namespace\":\"n\"}", OUTPUT_TABLE, true, "" },
    { "prose is printed as it is", &prose_op, "{\"text\":\"a \\n\\tb\\u001b\"}", OUTPUT_TABLE, false, "a \n\tb\x1b" },
    { "prose does not know -q", &prose_op, "{\"text\":\"a\\n\"}", OUTPUT_TABLE, true, "a\n" },
    { "a column may be a field of a field", &deep_op, "{\"failure\":{\"class\":\"timeout\"}}", OUTPUT_TABLE, false, "failure.class  timeout\n" },
    { "where the outer field is null there is no line", &deep_op, "{\"failure\":null,\"state\":\"failed\"}", OUTPUT_TABLE, false, "state  failed\n" },
    { "an age that is not known is a dash", &age_op, "{\"items\":[{\"id\":\"a\",\"at_ms\":null}]}", OUTPUT_TABLE, false, "id  age\na   -\n" },
    { "an age has its largest unit", &age_op, "{\"items\":[{\"id\":\"a\",\"at_ms\":9007199254740991}]}", OUTPUT_TABLE, false, "id  age\na   0s\n" },
    { "a body is the whole of an answer", &body_op, "{\"state\":\"x\",\"result\":{\"b\":[1, 2]}}", OUTPUT_TABLE, false, "{\"b\":[1,2]}\n" },
    { "a body that is a string is JSON", &body_op, "{\"result\":\"a\\n\"}", OUTPUT_TABLE, true, "\"a\\n\"\n" },
    { "a body of bytes is those bytes", &body_op, "{\"result_base64\":\"G1sK\"}", OUTPUT_TABLE, false, "\x1b[\n" },
    { "a body that is nested too deeply is its text", &body_op, "{\"result\":null,\"result_text\":\"[[1]]\"}", OUTPUT_TABLE, false, "[[1]]\n" },
    { "an answer without its body is a table", &body_op, "{\"state\":\"x\"}", OUTPUT_TABLE, false, "state  x\n" },
    { "as JSON a body is one field", &body_op, "{\"result\":1,\"state\":\"x\"}", OUTPUT_JSON, false, "{\"result\":1,\"state\":\"x\"}\n" },
    { "what is terse is its essence", &terse_op, "{\"namespace\":\"n\",\"durability\":\"x\"}", OUTPUT_TABLE, false, "n\n" },
    { "with -q rows have the essence that the object lacks", &row_essence_op,
      "{\"claims\":[{\"id\":\"a\",\"n\":1},{\"id\":\"b\",\"n\":2}]}", OUTPUT_TABLE, true, "a\nb\n" },
    { "rows alone have no empty line above", &row_essence_op, "{\"claims\":[{\"id\":\"a\",\"n\":1}]}", OUTPUT_TABLE, false, "id  n\na   1\n" },
    { "JSON is canonical", &object_op, "{\"namespace\":\"\\u001b\\u00e9\",\"durability\":[1.50, {}]}", OUTPUT_JSON, false,
      "{\"durability\":[1.5,{}],\"namespace\":\"\\u001b\xc3\xa9\"}\n" },
    { "JSON of a list has its cursor", &list_op, "{\"items\":[{\"id\":1}],\"next_cursor\":\"c\"}", OUTPUT_JSON, true,
      "{\"items\":[{\"id\":1}],\"next_cursor\":\"c\"}\n" },
    { "JSONL is an item a line", &list_op, "{\"items\":[{\"id\":\"a\\nb\"},{\"id\":2}],\"next_cursor\":\"c\"}", OUTPUT_JSONL, false,
      "{\"id\":\"a\\nb\"}\n{\"id\":2}\n" },
    { "JSONL of an empty list is nothing", &list_op, "{\"items\":[]}", OUTPUT_JSONL, false, "" },
    { "JSONL of an object is a line", &object_op, "{\"a\":1}", OUTPUT_JSONL, false, "{\"a\":1}\n" },
    { "JSON of prose is an object", &prose_op, "{\"text\":\"a\\n\"}", OUTPUT_JSON, false, "{\"text\":\"a\\n\"}\n" },
};
/* clang-format on */

static void renders(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buf out CLEANUP(buf_release) = { 0 };
        struct belay_error err = { 0 };
        json_t *answer = NULL;

        TAP_EQ(t, json_read(bytes_str(rows[i].answer), 4096, &answer, &err), BELAY_OK);
        TAP_EQ(t,
               output_render(rows[i].op, answer, rows[i].format, rows[i].quiet, &out,
                             &err),
               BELAY_OK);
        buf_append_char(&out, '\0');
        if (!TAP_STR(t, (const char *)out.ptr, rows[i].want))
            printf("# in row \"%s\"\n", rows[i].name);
        json_decref(answer);
    }
}

/* Items one after the other, and what has been printed after all of them. */
static void rows_grow(struct tap *t)
{
    static const char *const items[] = { "{\"id\":\"a\",\"n\":1}",
                                         "{\"id\":\"abc\",\"n\":2}", "{\"id\":\"b\"}" };
    struct buf out CLEANUP(buf_release) = { 0 }, brief CLEANUP(buf_release) = { 0 };
    struct output_rows state = { .begun = false };

    for (size_t i = 0; i < COUNT_OF(items); i++) {
        json_t *item = NULL;

        TAP_EQ(t, json_read(bytes_str(items[i]), 4096, &item, NULL), BELAY_OK);
        TAP_EQ(t, output_row(&list_op, item, false, &state, &out, NULL), BELAY_OK);
        TAP_EQ(t, output_row(&list_op, item, true, &state, &brief, NULL), BELAY_OK);
        json_decref(item);
    }
    buf_append_char(&out, '\0');
    buf_append_char(&brief, '\0');
    TAP_STR(t, (const char *)out.ptr, "id  n\na   1\nabc  2\nb    -\n");
    TAP_STR(t, (const char *)brief.ptr, "a\nabc\nb\n");
}

static void bodies_are_bytes(struct tap *t)
{
    /* clang-format off */
    static const struct { const char *item, *want; bool has; } said[] = {
        { "{\"data\":\"a\\u001b\\n\"}", "a\x1b\n", true },
        { "{\"data\":\"\"}", "", true },
        { "{\"data_base64\":\"YQ==\"}", "a", true },
        { "{\"id\":\"a\"}", "", false },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT_OF(said); i++) {
        struct buf out CLEANUP(buf_release) = { 0 };
        json_t *item = NULL;

        TAP_EQ(t, json_read(bytes_str(said[i].item), 4096, &item, NULL), BELAY_OK);
        TAP_EQ(t, output_body(&text_op, item, &out), said[i].has);
        buf_append_char(&out, '\0');
        TAP_STR(t, (const char *)out.ptr, said[i].want);
        json_decref(item);
    }
}

static void remarks(struct tap *t)
{
    /* clang-format off */
    static const struct { const struct operation *op; const char *answer, *want; } said[] = {
        { &list_op, "{\"items\":[],\"next_cursor\":\"a\\nb\"}", "belay: flow ls: there is more; go on with --cursor a\\nb\n" },
        { &list_op, "{\"items\":[],\"next_cursor\":null}", "" },
        { &list_op, "{\"items\":[],\"trimmed\":true}", "belay: flow ls: some of it is not kept any more\n" },
        { &list_op, "{\"items\":[],\"trimmed\":false}", "" },
        { &list_op, "{\"items\":[]}", "" },
        { &object_op, "{\"next_cursor\":\"a\"}", "" },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT_OF(said); i++) {
        struct buf out CLEANUP(buf_release) = { 0 };
        json_t *answer = NULL;

        TAP_EQ(t, json_read(bytes_str(said[i].answer), 4096, &answer, NULL), BELAY_OK);
        output_remark(said[i].op, answer, &out);
        buf_append_char(&out, '\0');
        TAP_STR(t, (const char *)out.ptr, said[i].want);
        json_decref(answer);
    }
}

static void formats(struct tap *t)
{
    enum output_format format = OUTPUT_JSON;

    TAP_OK(t, !output_format_called(bytes_str("yaml"), &format));
    TAP_OK(t, !output_format_called(bytes_str(""), &format));
    TAP_EQ(t, format, OUTPUT_JSON);
    TAP_OK(t, output_format_called(bytes_str("table"), &format));
    TAP_EQ(t, format, OUTPUT_TABLE);
    TAP_OK(t, output_format_called(bytes_str("jsonl"), &format));
    TAP_EQ(t, format, OUTPUT_JSONL);
}

static void reports(struct tap *t)
{
    /* clang-format off */
    static const struct { struct belay_error e; bool json; const char *want; } said[] = {
        { { .code = BELAY_INVALID, .message = "a: b" }, false, "belay: a: b\n" },
        { { .code = BELAY_INVALID, .message = "a\nbelay: \x1b[2J \\" }, false, "belay: a\\nbelay: \\x1b[2J \\\n" },
        { { .code = BELAY_INVALID, .message = "a: \"b\"\n\xff" }, true,
          "{\"error\":{\"code\":\"invalid\",\"message\":\"a: \\\"b\\\"\\n\xef\xbf\xbd\",\"detail\":{}}}\n" },
        { { .code = BELAY_LEASE_LOST, .reason = "expired", .entity = "exe_\"1", .expected = -3, .message = "m" }, true,
          "{\"error\":{\"code\":\"lease_lost\",\"message\":\"m\",\"detail\":{\"reason\":\"expired\",\"entity\":\"exe_\\\"1\",\"expected\":-3,\"actual\":0}}}\n" },
        { { .code = BELAY_HEAD_REVISION_CONFLICT, .actual = 7, .message = "m" }, true,
          "{\"error\":{\"code\":\"head_revision_conflict\",\"message\":\"m\",\"detail\":{\"expected\":0,\"actual\":7}}}\n" },
        { { .code = BELAY_NOT_FOUND, .entity = "x", .message = "" }, true,
          "{\"error\":{\"code\":\"not_found\",\"message\":\"\",\"detail\":{\"entity\":\"x\"}}}\n" },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT_OF(said); i++) {
        struct buf out CLEANUP(buf_release) = { 0 };
        json_t *parsed = NULL;

        report_append(&out, &said[i].e, said[i].json);
        if (said[i].json)
            TAP_EQ(t, json_read(buf_view(&out), 4096, &parsed, NULL), BELAY_OK);
        json_decref(parsed);
        buf_append_char(&out, '\0');
        TAP_STR(t, (const char *)out.ptr, said[i].want);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "an answer is rendered as its shape and the format say", renders },
        { "items that come one by one are lines of one table", rows_grow },
        { "a text in pieces is printed as it is", bodies_are_bytes },
        { "a list that goes on says how", remarks },
        { "formats are known by their names", formats },
        { "an error is one line, or JSON that can be read", reports },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
