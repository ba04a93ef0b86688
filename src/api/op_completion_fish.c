#include "api/op_completion.h"
#include "api/op_text.h"

/* In fish a quoted backslash is an escape too. */
static void append_quoted(struct buf *out, struct bytes text)
{
    buf_append_char(out, '\'');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\'' || text.ptr[i] == '\\')
            buf_append_char(out, '\\');
        buf_append_char(out, (char)text.ptr[i]);
    }
    buf_append_char(out, '\'');
}

static void append_pattern(void *arg, const struct op_table *t, struct bytes words,
                           const struct operation *op)
{
    struct buf *out = arg;

    (void)t;
    (void)op;
    if (words.len == 0)
        return;
    buf_append_char(out, ' ');
    append_quoted(out, words);
}

/* The walk, as the function that tells whether the cursor is behind these words. */
static void append_walk(struct buf *out, const struct op_table *t)
{
    buf_append_str(out, "# fish completion for belay\n"
                        "function __belay_at\n"
                        "    set -l at ''\n"
                        "    set -l skip no\n"
                        "    for word in (commandline -opc)[2..]\n"
                        "        if test $skip = yes\n"
                        "            set skip no\n"
                        "            continue\n"
                        "        end\n"
                        "        switch $word\n"
                        "            case --\n"
                        "                return 1\n"
                        "            case ");
    op_append_value_options(out, t, " ");
    buf_append_str(out, "\n                set skip yes\n"
                        "                continue\n"
                        "            case '-*'\n"
                        "                continue\n"
                        "        end\n"
                        "        set -l next (string trim \"$at $word\")\n"
                        "        switch $next\n"
                        "            case");
    op_each_place(t, append_pattern, out);
    buf_append_str(out, "\n                set at $next\n"
                        "            case '*'\n"
                        "                break\n"
                        "        end\n"
                        "    end\n"
                        "    test \"$at\" = \"$argv[1]\"\n"
                        "end\n"
                        "complete -c belay -f\n");
}

static void append_complete(struct buf *out, struct bytes words, bool everywhere)
{
    buf_append_str(out, "complete -c belay");
    if (everywhere)
        return;
    buf_append_str(out, " -n \"__belay_at ");
    append_quoted(out, words);
    buf_append_char(out, '"');
}

static void append_choices(struct buf *out, const struct op_arg *arg)
{
    buf_append_str(out, " -a '");
    for (const char *const *c = arg->choices; *c; c++)
        buf_printf(out, "%s%s", c == arg->choices ? "" : " ", *c);
    buf_append_char(out, '\'');
}

static void append_option(struct buf *out, const struct op_arg *arg)
{
    struct buf name CLEANUP(buf_release) = { 0 };

    op_append_option(&name, arg);
    buf_append_str(out, " -l ");
    if (!name.failed)
        buf_append(out, bytes_of(name.ptr + 2, name.len - 2)); /* without the dashes */
    if (arg->letter)
        buf_printf(out, " -s %c", arg->letter);
    if (arg->kind == OP_OPTION) {
        bool file = op_takes_path(arg->type);
        buf_append_str(out, file ? " -r -F" : " -x");
    }
    if (arg->choices)
        append_choices(out, arg);
    buf_append_str(out, " -d ");
    append_quoted(out, bytes_str(arg->help));
    buf_append_char(out, '\n');
    out->failed |= name.failed;
}

static void append_place(void *arg, const struct op_table *t, struct bytes words,
                         const struct operation *op)
{
    struct buf *out = arg;
    struct bytes word;

    for (size_t i = 0; !op && (word = op_next_word(t, words, i)).len > 0; i++) {
        append_complete(out, words, false);
        buf_append_str(out, " -a ");
        append_quoted(out, word);
        buf_append_str(out, " -d ");
        append_quoted(out, bytes_str(op_summary(t, words, word)));
        buf_append_char(out, '\n');
    }
    for (size_t i = 0; op && i < op->n_args; i++) {
        if (op->args[i].kind != OP_POSITIONAL) {
            append_complete(out, words, false);
            append_option(out, &op->args[i]);
        } else if (op->args[i].choices) {
            append_complete(out, words, false);
            append_choices(out, &op->args[i]);
            buf_append_char(out, '\n');
        }
    }
}

void op_completion_fish(struct buf *out, const struct op_table *t)
{
    append_walk(out, t);
    for (size_t i = 0; i < t->n_globals; i++) {
        append_complete(out, bytes_of(NULL, 0), true);
        append_option(out, &t->globals[i]);
    }
    op_each_place(t, append_place, out);
}
