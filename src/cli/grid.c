#include "cli/grid.h"

#include "api/duration.h"
#include "base/clock.h"
#include "base/json.h"

#define AGE "age:"

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

belay_rc grid_append_cell(struct buf *out, const json_t *value, struct belay_error *err)
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

const json_t *grid_field(const json_t *object, const char *name)
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

const json_t *grid_value(const json_t *object, const char *column)
{
    return grid_field(object, is_age(column) ? column + sizeof(AGE) - 1 : column);
}

const char *grid_label(const char *column)
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
    const json_t *value = grid_value(object, column);

    if (!is_age(column) || !json_is_integer(value))
        return grid_append_cell(out, value, err);
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

void grid_release(struct grid *g)
{
    buf_release(&g->text);
    arena_release(&g->arena);
}

bool grid_init(struct grid *g, size_t n_columns, size_t n_rows)
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

void grid_add_str(struct grid *g, const char *text)
{
    buf_append_str(&g->text, text);
    g->ends[g->n_cells++] = g->text.len;
}

belay_rc grid_add(struct grid *g, const json_t *object, const char *column,
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

belay_rc grid_write(struct grid *g, struct buf *out, struct belay_error *err)
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
