/* output.h - an answer as text: a table for people, JSON for programs.
 *
 * The whole text is made before any of it is written, so that a failure never leaves
 * half an answer behind.
 *
 *   table  a list has a line of column names and a line for each item, an object a line
 *          for each field and then a table of its rows, and its further tables under
 *          their names, where they are not empty.  Columns are aligned by characters,
 *          no line ends in a space, and nothing in a value can disturb a terminal or
 *          begin a new line.  A value that is absent or null is -, a list of plain values
 *          is written with commas, and anything deeper is compact JSON.
 *   json   the value, canonical, on one line
 *   jsonl  the items of a list, each as json
 *
 * A column is a field ("a"), a field of a field ("a.b"), or how long ago a time was
 * ("age:a_ms").  With `quiet`, and for operations that are terse, a table has only the
 * operation's essential field, without its name, and nothing where that is absent or null.
 * An answer with a body is that alone.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "api/ops.h"

enum output_format { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_JSONL };

/* False leaves *out untouched. */
MUST_USE bool output_format_called(struct bytes name, enum output_format *out);

/* Appends the answer of `op`. */
MUST_USE belay_rc output_render(const struct operation *op, const json_t *answer,
                                enum output_format format, bool quiet, struct buf *out,
                                struct belay_error *err);

/* --- items one by one --- */

#define OUTPUT_COLUMNS_MAX 16

/* How wide columns are so far; zero-initialise. */
struct output_rows {
    size_t widths[OUTPUT_COLUMNS_MAX];
    bool begun;
};

/* Appends one line of a list, and the names of the columns before the first. */
MUST_USE belay_rc output_row(const struct operation *op, const json_t *item, bool quiet,
                             struct output_rows *rows, struct buf *out,
                             struct belay_error *err);

/* Appends the body of an answer or an item, for people; false: it has none. */
bool output_body(const struct operation *op, const json_t *value, struct buf *out);

/* Appends a value as JSON, on a line. */
MUST_USE belay_rc output_line(const json_t *value, struct buf *out,
                              struct belay_error *err);

/* Appends what people should know beside a list: that it lacks something, and how to get
 * the rest of it. */
void output_remark(const struct operation *op, const json_t *answer, struct buf *out);

#endif /* CLI_OUTPUT_H */
