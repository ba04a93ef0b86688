#include "api/op_handlers.h"
#include "api/op_text.h"

#define WIDTH 80

/* Appends `text` from `column` on, wrapped between words at WIDTH, its further lines
 * indented to `indent`, and a newline. */
static void append_wrapped(struct buf *out, struct bytes text, size_t column,
                           size_t indent)
{
    size_t at = column;
    bool first = true;

    while (text.len > 0) {
        const uint8_t *space = memchr(text.ptr, ' ', text.len);
        size_t len = space ? (size_t)(space - text.ptr) : text.len;

        if (!first && at + 1 + len > WIDTH) {
            buf_printf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            buf_append_char(out, ' ');
            at++;
        }
        buf_append(out, bytes_of(text.ptr, len));
        at += len;
        first = false;
        len += space ? 1 : 0;
        text = bytes_of(text.ptr + len, text.len - len);
    }
    buf_append_char(out, '\n');
}

/* "  left      right", the right column wrapped; on a line of its own when the left is
 * too long for it. */
static void append_entry(struct buf *out, const struct buf *left, size_t width,
                         struct bytes right)
{
    size_t indent = width + 4;

    buf_append_str(out, "  ");
    buf_append(out, buf_view(left));
    if (left->len > width)
        buf_printf(out, "\n%*s", (int)indent, "");
    else
        buf_printf(out, "%*s", (int)(width - left->len + 2), "");
    append_wrapped(out, right, indent, indent);
}

static void append_args(struct buf *out, const char *title, const struct op_arg *args,
                        size_t n)
{
    if (n > 0)
        buf_printf(out, "\n%s:\n", title);
    for (size_t i = 0; i < n; i++) {
        struct buf left CLEANUP(buf_release) = { 0 };
        struct buf right CLEANUP(buf_release) = { 0 };

        op_append_arg(&left, &args[i]);
        buf_append_str(&right, args[i].help);
        op_append_remarks(&right, &args[i]);
        append_entry(out, &left, 20, buf_view(&right));
        out->failed |= left.failed || right.failed;
    }
}

/* One line each for the commands that begin with `words`. */
static void append_commands(struct buf *out, const struct op_group *group,
                            struct bytes words)
{
    bool any = false;

    for (size_t i = 0; i < group->n_ops; i++) {
        const struct operation *op = &group->ops[i];
        struct buf left CLEANUP(buf_release) = { 0 };

        if (!op_words_begin(op->words, words))
            continue;
        if (!any)
            buf_printf(out, "\n%s:\n", group->title);
        any = true;
        buf_append_str(&left, op->words);
        append_entry(out, &left, 24, bytes_str(op->summary));
        out->failed |= left.failed;
    }
}

static void append_all(struct buf *out, const struct op_table *t)
{
    buf_append_str(out, "Belay keeps work alive when the process that was doing it "
                        "dies.\n\nusage: belay [OPTION]... COMMAND [ARGUMENT]...\n");
    for (size_t i = 0; i < t->n_groups; i++)
        append_commands(out, &t->groups[i], bytes_of(NULL, 0));
    append_args(out, "Options with every command", t->globals, t->n_globals);
    buf_append_str(out, "\nbelay help COMMAND shows one command in full, belay errors "
                        "every exit status.\n");
}

static void append_some(struct buf *out, const struct op_table *t, struct bytes words)
{
    buf_printf(out, "usage: belay %.*s COMMAND [ARGUMENT]...\n", (int)words.len,
               (const char *)words.ptr);
    for (size_t i = 0; i < t->n_groups; i++)
        append_commands(out, &t->groups[i], words);
}

static void append_one(struct buf *out, const struct operation *op)
{
    buf_printf(out, "usage: belay %s", op->words);
    op_append_usage(out, op);
    buf_printf(out, "\n\n%s.\n", op->summary);
    if (op->details) {
        buf_append_char(out, '\n');
        append_wrapped(out, bytes_str(op->details), 0, 0);
    }
    append_args(out, "Arguments", op->args, op->n_args);
    if (op->http_method)
        buf_printf(out, "\nOver HTTP: %s %s\n", op->http_method, op->http_path);
}

belay_rc op_help(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct buf words CLEANUP(buf_release) = { 0 };
    struct buf text CLEANUP(buf_release) = { 0 };

    for (size_t i = 0; i < call->n_values; i++) {
        buf_append_str(&words, i > 0 ? " " : "");
        buf_append(&words, call->values[i].text);
    }
    if (words.failed)
        return err_no_memory(err, "the text");

    const struct operation *op = op_find(call->table, buf_view(&words));
    if (op)
        append_one(&text, op);
    else if (words.len == 0)
        append_all(&text, call->table);
    else if (op_is_prefix(call->table, buf_view(&words)))
        append_some(&text, call->table, buf_view(&words));
    else
        return err_reason(err, BELAY_INVALID, "command",
                          "no such command; belay help lists them all");
    return op_prose(&text, out, err);
}
