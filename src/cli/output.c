#include "cli/output.h"

#include "api/duration.h"
#include "api/op_json.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"

#define AGE "age:"

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

/* --- cells --- */

static bool is_plain_list(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        if (json_is_array(item) || json_is_object(item))
            return false;
    }
    return json_array_size(value) > 0;
}

static belay_rc append_plain(struct buf *out, const json_t *value,
                             struct belay_error *err)
{
    struct buf text CLEANUP(buf_release) = { 0 };

    if (!value || json_is_null(value)) {
        buf_append_char(out, '-');
        return BELAY_OK;
    }
    if (json_is_string(value)) {
        buf_append_escaped(
            out, bytes_of(json_string_value(value), json_string_length(value)));
        return BELAY_OK;
    }
    belay_rc rc = json_write(value, &text, err);
    if (rc == BELAY_OK)
        buf_append_escaped(out, buf_view(&text));
    return rc;
}

static belay_rc append_cell(struct buf *out, const json_t *value,
                            struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (!is_plain_list(value))
        return append_plain(out, value, err);
    for (size_t i = 0; rc == BELAY_OK && i < json_array_size(value); i++) {
        buf_append_str(out, i > 0 ? ", " : "");
        rc = append_plain(out, json_array_get(value, i), err);
    }
    return rc;
}

/* --- columns --- */

/* "a" of an object, or "a.b"; NULL where it is absent. */
static const json_t *field_of(const json_t *object, const char *name)
{
    const char *dot = strchr(name, '.');

    if (!dot)
        return json_object_get(object, name);
    return json_object_get(json_object_getn(object, name, (size_t)(dot - name)),
                           dot + 1);
}

static bool is_age(const char *column)
{
    return strncmp(column, AGE, sizeof(AGE) - 1) == 0;
}

static const json_t *value_of(const json_t *object, const char *column)
{
    return field_of(object, is_age(column) ? column + sizeof(AGE) - 1 : column);
}

static const char *label_of(const char *column)
{
    return is_age(column) ? "age" : column;
}

/* How long ago, in its largest unit. */
static void append_age(struct buf *out, int64_t at_ms)
{
    static const int64_t units[] = { 86400000, 3600000, 60000, 1000 };
    const struct belay_clock clock = clock_system();
    int64_t ms = clock.wall_ms(clock.arg) - at_ms;

    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (ms >= units[i]) {
            duration_append(out, ms - ms % units[i]);
            return;
        }
    }
    buf_append_str(out, "0s");
}

static belay_rc append_column(struct buf *out, const json_t *object, const char *column,
                              struct belay_error *err)
{
    const json_t *value = value_of(object, column);

    if (!is_age(column) || !json_is_integer(value))
        return append_cell(out, value, err);
    append_age(out, json_integer_value(value));
    return BELAY_OK;
}

/* --- tables --- */

/* Characters of well-formed UTF-8. */
static size_t width_of(struct bytes text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += (text.ptr[i] & 0xc0) != 0x80;
    return n;
}

/* The cells of a table, all in one buffer: cell i ends at ends[i]. */
struct grid {
    struct belay_arena arena;
    struct buf text;
    size_t n_columns, n_cells;
    size_t *ends;   /* of every cell */
    size_t *widths; /* of every column */
};

static void grid_release(struct grid *g)
{
    buf_release(&g->text);
    arena_release(&g->arena);
}

static bool grid_init(struct grid *g, size_t n_columns, size_t n_rows)
{
    *g = (struct grid){ .n_columns = n_columns };
    g->widths = arena_zalloc(&g->arena, n_columns, sizeof(*g->widths));
    g->ends = arena_zalloc(&g->arena, n_columns * n_rows, sizeof(*g->ends));
    return g->widths && g->ends;
}

static struct bytes grid_cell(const struct grid *g, size_t i)
{
    size_t start = i > 0 ? g->ends[i - 1] : 0;

    if (g->ends[i] == start)
        return bytes_of(NULL, 0);
    return bytes_of(g->text.ptr + start, g->ends[i] - start);
}

static void grid_add_str(struct grid *g, const char *text)
{
    buf_append_str(&g->text, text);
    g->ends[g->n_cells++] = g->text.len;
}

static belay_rc grid_add(struct grid *g, const json_t *object, const char *column,
                         struct belay_error *err)
{
    belay_rc rc = append_column(&g->text, object, column, err);

    g->ends[g->n_cells++] = g->text.len;
    return rc;
}

static size_t column_width(const struct grid *g, size_t column)
{
    size_t widest = 0;

    for (size_t i = column; i < g->n_cells; i += g->n_columns) {
        size_t width = width_of(grid_cell(g, i));
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* Columns two spaces apart, each at least as wide as it was told to be; the last one is not
 * padded. */
static belay_rc grid_write(struct grid *g, struct buf *out, struct belay_error *err)
{
    if (g->text.failed)
        return err_no_memory(err, "the table");
    for (size_t i = 0; i < g->n_columns; i++) {
        size_t width = column_width(g, i);
        g->widths[i] = width > g->widths[i] ? width : g->widths[i];
    }
    for (size_t row = 0; row + g->n_columns <= g->n_cells; row += g->n_columns) {
        for (size_t i = 0; i < g->n_columns; i++) {
            struct bytes cell = grid_cell(g, row + i);
            size_t gap = g->widths[i] - width_of(cell) + 2;

            buf_append(out, cell);
            buf_printf(out, "%*s", i + 1 < g->n_columns ? (int)gap : 0, "");
        }
        while (out->len > 0 && out->ptr[out->len - 1] == ' ')
            out->len--;
        buf_append_char(out, '\n');
    }
    return BELAY_OK;
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
        grid_add_str(&g, label_of(columns[c]));
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

static belay_rc render_object(const struct operation *op, const json_t *object,
                              struct buf *out, struct belay_error *err)
{
    struct grid g CLEANUP(grid_release) = { 0 };
    size_t n = count_columns(op->columns);

    if (!grid_init(&g, 2, n))
        return err_no_memory(err, "the table");
    for (size_t i = 0; i < n; i++) {
        if (!value_of(object, op->columns[i]))
            continue; /* a field that the answer does not have */
        grid_add_str(&g, label_of(op->columns[i]));
        belay_rc rc = grid_add(&g, object, op->columns[i], err);
        if (rc != BELAY_OK)
            return rc;
    }
    size_t before = out->len;
    belay_rc rc = grid_write(&g, out, err);
    const json_t *rows = op->rows ? field_of(object, op->rows) : NULL;
    if (rc != BELAY_OK || json_array_size(rows) == 0)
        return rc;
    if (out->len > before)
        buf_append_char(out, '\n');
    return render_list(op->row_columns, rows, out, err);
}

/* The essential field of one item, on a line. */
static belay_rc render_essence(const struct operation *op, const json_t *item,
                               struct buf *out, struct belay_error *err)
{
    const json_t *value = op->essence ? json_object_get(item, op->essence) : NULL;

    if (!value || json_is_null(value))
        return BELAY_OK;
    belay_rc rc = append_cell(out, value, err);
    buf_append_char(out, '\n');
    return rc;
}

static belay_rc render_quiet(const struct operation *op, const json_t *answer,
                             struct buf *out, struct belay_error *err)
{
    const json_t *items = json_object_get(answer, "items");
    belay_rc rc = BELAY_OK;

    if (op->shape != OP_LIST && op->rows && !json_object_get(answer, op->essence))
        items = field_of(answer, op->rows); /* it is theirs */
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

bool output_body(const struct operation *op, const json_t *value, struct buf *out)
{
    struct buf name CLEANUP(buf_release) = { 0 };
    const json_t *body = op->body ? json_object_get(value, op->body) : NULL;

    if (!op->body)
        return false;
    buf_printf(&name, "%s_base64", op->body);
    buf_append_char(&name, '\0');
    out->failed |= name.failed;
    const json_t *coded =
        name.failed ? NULL : json_object_get(value, (const char *)name.ptr);
    if (json_is_string(coded))
        append_base64(out,
                      bytes_of(json_string_value(coded), json_string_length(coded)));
    else if (body && op->body_is_text)
        buf_append(out, bytes_of(json_string_value(body), json_string_length(body)));
    else if (body)
        out->failed |= output_line(body, out, NULL) != BELAY_OK;
    return coded || body || name.failed;
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
        grid_add_str(&g, label_of(op->columns[i]));
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

    if (op->shape != OP_LIST || !json_is_string(cursor))
        return;
    buf_printf(out, "belay: %s: there is more; go on with %s ", op->words,
               cursor_option(op));
    buf_append_escaped(out,
                       bytes_of(json_string_value(cursor), json_string_length(cursor)));
    buf_append_char(out, '\n');
}
