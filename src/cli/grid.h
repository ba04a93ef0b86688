/* grid.h - tables for people: columns of answers, and cells that are aligned. */
#ifndef CLI_GRID_H
#define CLI_GRID_H

#include <jansson.h>

#include "base/arena.h"
#include "base/err.h"

/* --- columns ---
 *
 * A column is a field ("a"), a field of a field ("a.b"), or how long ago a time was
 * ("age:a_ms"). */

/* "a" of an object, or "a.b"; NULL where it is absent. */
const json_t *grid_field(const json_t *object, const char *name);
/* What a column shows, and its name. */
const json_t *grid_value(const json_t *object, const char *column);
const char *grid_label(const char *column);

/* Appends a value as a cell has it: nothing in it can disturb a terminal. */
MUST_USE belay_rc grid_append_cell(struct buf *out, const json_t *value,
                                   struct belay_error *err);

/* --- cells --- */

/* The cells of a table, all in one buffer: cell i ends at ends[i]. */
struct grid {
    struct belay_arena arena;
    struct buf text;
    size_t n_columns, n_cells;
    size_t *ends;   /* of every cell */
    size_t *widths; /* of every column */
};

/* False: no memory.  Release it in any case. */
MUST_USE bool grid_init(struct grid *g, size_t n_columns, size_t n_rows);
void grid_release(struct grid *g); /* fits CLEANUP */

/* The next cell: a text as it is, or a column of an object. */
void grid_add_str(struct grid *g, const char *text);
MUST_USE belay_rc grid_add(struct grid *g, const json_t *object, const char *column,
                           struct belay_error *err);

/* Appends all lines: columns two spaces apart, each at least as wide as `widths` says and
 * afterwards is; the last one is not padded. */
MUST_USE belay_rc grid_write(struct grid *g, struct buf *out, struct belay_error *err);

#endif /* CLI_GRID_H */
