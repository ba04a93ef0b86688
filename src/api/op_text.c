#include "api/op_text.h"

#include <inttypes.h>

#include "api/duration.h"
#include "base/clock.h"

void op_append_option(struct buf *out, const struct op_arg *arg)
{
    buf_append_str(out, "--");
    for (const char *c = arg->name; *c; c++)
        buf_append(out, *c == '_' ? bytes_str("-") : bytes_of(c, 1));
}

static void append_choices(struct buf *out, const struct op_arg *arg,
                           const char *between)
{
    for (const char *const *c = arg->choices; *c; c++)
        buf_printf(out, "%s%s", c == arg->choices ? "" : between, *c);
}

static const char *type_word(enum op_type type)
{
    switch (type) {
    case OP_I64:
        return "N";
    case OP_DURATION:
        return "DURATION";
    case OP_JSON:
        return "JSON|@FILE|-";
    case OP_CLAIM:
        return "CLAIM|@FILE|-";
    case OP_DATA:
        return "TEXT|@FILE|-";
    case OP_FILE:
    case OP_STREAM:
    case OP_TARGET:
        return "FILE|-";
    case OP_BOOL:
        return "true|false";
    case OP_TEXT:
        break;
    }
    return "TEXT";
}

void op_append_placeholder(struct buf *out, const struct op_arg *arg)
{
    if (arg->placeholder)
        buf_append_str(out, arg->placeholder);
    else if (arg->choices)
        append_choices(out, arg, "|");
    else
        buf_append_str(out, type_word(arg->type));
}

void op_append_arg(struct buf *out, const struct op_arg *arg)
{
    if (arg->kind == OP_POSITIONAL) {
        op_append_placeholder(out, arg);
        return;
    }
    if (arg->letter)
        buf_printf(out, "-%c, ", arg->letter);
    op_append_option(out, arg);
    if (arg->kind == OP_OPTION) {
        buf_append_char(out, ' ');
        op_append_placeholder(out, arg);
    }
}

void op_append_usage(struct buf *out, const struct operation *op)
{
    for (size_t i = 0; i < op->n_args; i++) {
        const struct op_arg *arg = &op->args[i];

        buf_append_str(out, arg->required ? " " : " [");
        if (arg->kind != OP_POSITIONAL) {
            op_append_option(out, arg);
            if (arg->kind == OP_OPTION)
                buf_append_char(out, ' ');
        }
        if (arg->kind != OP_FLAG)
            op_append_placeholder(out, arg);
        buf_append_str(out, arg->required ? "" : "]");
        buf_append_str(out, arg->repeated ? "..." : "");
    }
}

static void append_bounds(struct buf *out, const struct op_arg *arg)
{
    if (arg->type == OP_I64) {
        buf_printf(out, "%" PRId64 " to %" PRId64, arg->min, arg->max);
        return;
    }
    if (arg->max >= TIME_MAX_MS && arg->min == 0)
        return;
    duration_append(out, arg->min);
    buf_append_str(out, " to ");
    duration_append(out, arg->max);
}

/* Puts the separator before every remark but the first. */
static void next_remark(struct buf *out, size_t start)
{
    buf_append_str(out, out->len == start ? " (" : "; ");
}

void op_append_remarks(struct buf *out, const struct op_arg *arg)
{
    struct buf bounds CLEANUP(buf_release) = { 0 };
    size_t start = out->len;

    if (arg->choices && arg->placeholder) {
        next_remark(out, start);
        append_choices(out, arg, ", ");
    }
    if (arg->type == OP_I64 || arg->type == OP_DURATION)
        append_bounds(&bounds, arg);
    if (bounds.len > 0) {
        next_remark(out, start);
        buf_append(out, buf_view(&bounds));
    }
    out->failed |= bounds.failed;
    if (arg->repeated) {
        next_remark(out, start);
        buf_append_str(out, "may be repeated");
    }
    if (arg->env) {
        next_remark(out, start);
        buf_printf(out, "environment %s", arg->env);
    }
    if (arg->fallback) {
        next_remark(out, start);
        buf_printf(out, "default %s", arg->fallback);
    }
    if (out->len > start)
        buf_append_char(out, ')');
}
