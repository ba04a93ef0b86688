#include "cli/output.h"

#include "api/op_json.h"
#include "base/arena.h"
#include "base/json.h"
#include "cli/grid.h"

bool output_format_called(struct bytes name, enum output_format *out)
{
    static const char *const names[] = {
        [OUTPUT_TABLE] = "table",
        [OUTPUT_JSON] = "json",
        [OUTPUT_JSONL] = "jsonl",
    };

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (bytes_eq(name, bytes_str(names[i]))) {
            *out = (enum output_format)i;
            return true;
        }
    }
    return false;
}

/* --- answers --- */

static size_t count_columns(const char *const *columns)
{
    size_t n = 0;

    while (columns && columns[n])
        n++;
    return n;
}

static belay_rc render_list(const char *const *columns, const json_t *items,
                            struct buf *out, struct belay_error *err)
{
    struct grid g CLEANUP(grid_release) = { 0 };
    size_t n_columns = count_columns(columns), n = json_array_size(items);

    if (n == 0)
        return BELAY_OK; /* a lone line of names says nothing */
    if (!grid_init(&g, n_columns, n + 1))
        return err_no_memory(err, "the table");
    for (size_t c = 0; c < n_columns; c++)
        grid_add_str(&g, grid_label(columns[c]));
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(items, i);
        for (size_t c = 0; c < n_columns; c++) {
            belay_rc rc = grid_add(&g, item, columns[c], err);
            if (rc != BELAY_OK)
                return rc;
        }
    }
    return grid_write(&g, out, err);
}

/* Each that is not empty, under the name of its field. */
static belay_rc render_tables(const struct op_rows *table, const json_t *object,
                              struct buf *out, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    for (; rc == BELAY_OK && table && table->field; table++) {
        const json_t *rows = grid_field(object, table->field);
        if (json_array_size(rows) == 0)
            continue;
        buf_printf(out, "\n%s\n", table->field);
        rc = render_list(table->columns, rows, out, err);
    }
    return rc;
}

static belay_rc render_object(const struct operation *op, const json_t *object,
                              struct buf *out, struct belay_error *err)
{
    struct grid g CLEANUP(grid_release) = { 0 };
    size_t n = count_columns(op->columns);

    if (!grid_init(&g, 2, n))
        return err_no_memory(err, "the table");
    for (size_t i = 0; i < n; i++) {
        if (!grid_value(object, op->columns[i]))
            continue; /* a field that the answer does not have */
        grid_add_str(&g, grid_label(op->columns[i]));
        belay_rc rc = grid_add(&g, object, op->columns[i], err);
        if (rc != BELAY_OK)
            return rc;
    }
    size_t before = out->len;
    belay_rc rc = grid_write(&g, out, err);
    const json_t *rows = op->rows ? grid_field(object, op->rows) : NULL;
    if (rc == BELAY_OK && json_array_size(rows) > 0) {
        if (out->len > before)
            buf_append_char(out, '\n');
        rc = render_list(op->row_columns, rows, out, err);
    }
    return rc == BELAY_OK ? render_tables(op->tables, object, out, err) : rc;
}

/* The essential field of one item, on a line. */
static belay_rc render_essence(const struct operation *op, const json_t *item,
                               struct buf *out, struct belay_error *err)
{
    const json_t *value = op->essence ? json_object_get(item, op->essence) : NULL;

    if (!value || json_is_null(value))
        return BELAY_OK;
    belay_rc rc = grid_append_cell(out, value, err);
    buf_append_char(out, '\n');
    return rc;
}

static belay_rc render_quiet(const struct operation *op, const json_t *answer,
                             struct buf *out, struct belay_error *err)
{
    const json_t *items = json_object_get(answer, "items");
    belay_rc rc = BELAY_OK;

    if (op->shape != OP_LIST && op->rows && !json_object_get(answer, op->essence))
        items = grid_field(answer, op->rows); /* it is theirs */
    else if (op->shape != OP_LIST)
        return render_essence(op, answer, out, err);
    for (size_t i = 0; rc == BELAY_OK && i < json_array_size(items); i++)
        rc = render_essence(op, json_array_get(items, i), out, err);
    return rc;
}

static belay_rc render_table(const struct operation *op, const json_t *answer,
                             bool quiet, struct buf *out, struct belay_error *err)
{
    const json_t *text = json_object_get(answer, "text");

    if (op->shape == OP_PROSE) {
        buf_append(out, bytes_of(json_string_value(text), json_string_length(text)));
        return BELAY_OK;
    }
    if (op->shape != OP_LIST && output_body(op, answer, out))
        return BELAY_OK;
    if (quiet || op->terse)
        return render_quiet(op, answer, out, err);
    if (op->shape == OP_LIST)
        return render_list(op->columns, json_object_get(answer, "items"), out, err);
    return render_object(op, answer, out, err);
}

/* --- bodies --- */

/* The bytes that a text in base64 stands for, or the text when it is none. */
static void append_base64(struct buf *out, struct bytes text)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    bool no_memory = false;
    size_t len = 0;
    const void *content = op_base64(text, &arena, &len, &no_memory);

    out->failed |= no_memory;
    buf_append(out, content ? bytes_of(content, len) : text);
}

/* The field of that name with an ending, if it is a text. */
static const json_t *field_beside(const json_t *value, const char *name,
                                  const char *ending, struct buf *out)
{
    struct buf field CLEANUP(buf_release) = { 0 };

    buf_printf(&field, "%s%s", name, ending);
    buf_append_char(&field, '\0');
    out->failed |= field.failed;
    const json_t *found =
        field.failed ? NULL : json_object_get(value, (const char *)field.ptr);
    return json_is_string(found) ? found : NULL;
}

static struct bytes text_of(const json_t *value)
{
    return bytes_of(json_string_value(value), json_string_length(value));
}

bool output_body(const struct operation *op, const json_t *value, struct buf *out)
{
    if (!op->body)
        return false;
    const json_t *body = json_object_get(value, op->body);
    const json_t *coded = field_beside(value, op->body, "_base64", out);
    const json_t *deep = field_beside(value, op->body, "_text", out);
    if (coded) {
        append_base64(out, text_of(coded));
    } else if (deep) { /* JSON that is nested too deeply for the answer */
        buf_append(out, text_of(deep));
        buf_append_char(out, '\n');
    } else if (body && op->body_is_text) {
        buf_append(out, text_of(body));
    } else if (body) {
        out->failed |= output_line(body, out, NULL) != BELAY_OK;
    }
    return coded || deep || body || out->failed;
}

/* --- items one by one --- */

belay_rc output_row(const struct operation *op, const json_t *item, bool quiet,
                    struct output_rows *rows, struct buf *out, struct belay_error *err)
{
    struct grid g CLEANUP(grid_release) = { 0 };
    size_t n = count_columns(op->columns);

    if (quiet || op->terse)
        return render_essence(op, item, out, err);
    n = n < OUTPUT_COLUMNS_MAX ? n : OUTPUT_COLUMNS_MAX;
    if (!grid_init(&g, n, 2))
        return err_no_memory(err, "the table");
    memcpy(g.widths, rows->widths, n * sizeof(*g.widths));
    for (size_t i = 0; !rows->begun && i < n; i++)
        grid_add_str(&g, grid_label(op->columns[i]));
    belay_rc rc = BELAY_OK;
    for (size_t i = 0; rc == BELAY_OK && i < n; i++)
        rc = grid_add(&g, item, op->columns[i], err);
    if (rc == BELAY_OK)
        rc = grid_write(&g, out, err);
    if (rc != BELAY_OK)
        return rc;
    memcpy(rows->widths, g.widths, n * sizeof(*g.widths));
    rows->begun = true;
    return out->failed ? err_no_memory(err, "the output") : BELAY_OK;
}

/* --- all of it --- */

belay_rc output_line(const json_t *value, struct buf *out, struct belay_error *err)
{
    belay_rc rc = json_write(value, out, err);

    buf_append_char(out, '\n');
    return rc;
}

static belay_rc render(const struct operation *op, const json_t *answer,
                       enum output_format format, bool quiet, struct buf *out,
                       struct belay_error *err)
{
    const json_t *items = json_object_get(answer, "items");
    belay_rc rc = BELAY_OK;

    if (format == OUTPUT_TABLE)
        return render_table(op, answer, quiet, out, err);
    if (format == OUTPUT_JSON || op->shape != OP_LIST)
        return output_line(answer, out, err);
    for (size_t i = 0; rc == BELAY_OK && i < json_array_size(items); i++)
        rc = output_line(json_array_get(items, i), out, err);
    return rc;
}

belay_rc output_render(const struct operation *op, const json_t *answer,
                       enum output_format format, bool quiet, struct buf *out,
                       struct belay_error *err)
{
    belay_rc rc = render(op, answer, format, quiet, out, err);

    if (rc == BELAY_OK && out->failed)
        return err_no_memory(err, "the output");
    return rc;
}

/* The option that takes where a list ended. */
static const char *cursor_option(const struct operation *op)
{
    for (size_t i = 0; i < op->n_args; i++) {
        if (strcmp(op->args[i].name, "after") == 0)
            return "--after";
    }
    return "--cursor";
}

void output_remark(const struct operation *op, const json_t *answer, struct buf *out)
{
    const json_t *cursor = json_object_get(answer, "next_cursor");

    if (op->shape == OP_LIST && json_is_true(json_object_get(answer, "trimmed")))
        buf_printf(out, "belay: %s: some of it is not kept any more\n", op->words);
    if (op->shape != OP_LIST || !json_is_string(cursor))
        return;
    buf_printf(out, "belay: %s: there is more; go on with %s ", op->words,
               cursor_option(op));
    buf_append_escaped(out,
                       bytes_of(json_string_value(cursor), json_string_length(cursor)));
    buf_append_char(out, '\n');
}
