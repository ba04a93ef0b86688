#include "api/op_completion.h"
#include "api/op_text.h"

static const char walk[] = "#compdef belay\n"
                           "# zsh completion for belay\n"
                           "_belay() {\n"
                           "    local at='' word='' next='' prev=$words[CURRENT-1]\n"
                           "    local -a offered options\n"
                           "    local -i i\n"
                           "    for ((i = 2; i < CURRENT; i++)); do\n"
                           "        word=$words[i]\n"
                           "        case $word in\n"
                           "        --) return ;;\n"
                           "        ";

/* 'name:description', as _describe reads it. */
static void append_described(struct buf *out, struct bytes name, const char *text)
{
    struct buf entry CLEANUP(buf_release) = { 0 };

    buf_append(&entry, name);
    buf_append_char(&entry, ':');
    buf_append_str(&entry, text);
    buf_append_char(out, ' ');
    op_append_quoted(out, buf_view(&entry));
    out->failed |= entry.failed;
}

static void append_option(struct buf *out, const struct op_arg *arg)
{
    struct buf name CLEANUP(buf_release) = { 0 };

    op_append_option(&name, arg);
    append_described(out, buf_view(&name), arg->help);
    out->failed |= name.failed;
}

static void append_choices(struct buf *out, const struct op_arg *arg)
{
    for (const char *const *c = arg->choices; *c; c++)
        buf_printf(out, " %s", *c);
}

/* What follows an option that takes a value. */
static void append_offer(struct buf *out, const struct op_arg *arg)
{
    buf_append_str(out, "        ");
    if (arg->choices) {
        buf_append_str(out, "compadd --");
        append_choices(out, arg);
        buf_append_char(out, '\n');
    } else if (op_takes_path(arg->type)) {
        buf_append_str(out, "_files\n");
    }
    buf_append_str(out, "        return\n        ;;\n");
}

static void append_values(void *arg, const struct op_table *t, struct bytes words,
                          const struct operation *op)
{
    struct buf *out = arg;

    (void)t;
    (void)words;
    for (size_t i = 0; op && i < op->n_args; i++) {
        if (op->args[i].kind != OP_OPTION)
            continue;
        buf_printf(out, "    '%s:", op->words);
        op_append_option(out, &op->args[i]);
        if (op->args[i].letter)
            buf_printf(out, "' | '%s:-%c", op->words, op->args[i].letter);
        buf_append_str(out, "')\n");
        append_offer(out, &op->args[i]);
    }
}

static void append_place(void *arg, const struct op_table *t, struct bytes words,
                         const struct operation *op)
{
    struct buf *out = arg;
    struct bytes word;

    buf_append_str(out, "    ");
    op_append_quoted(out, words);
    buf_append_str(out, ")\n        offered=(");
    for (size_t i = 0; !op && (word = op_next_word(t, words, i)).len > 0; i++)
        append_described(out, word, op_summary(t, words, word));
    for (size_t i = 0; op && i < op->n_args; i++) {
        if (op->args[i].kind == OP_POSITIONAL && op->args[i].choices)
            append_choices(out, &op->args[i]);
    }
    buf_append_str(out, " )\n        options+=(");
    for (size_t i = 0; op && i < op->n_args; i++) {
        if (op->args[i].kind != OP_POSITIONAL)
            append_option(out, &op->args[i]);
    }
    buf_append_str(out, " )\n        ;;\n");
}

void op_completion_zsh(struct buf *out, const struct op_table *t)
{
    buf_append_str(out, walk);
    op_append_value_options(out, t, " | ");
    buf_append_str(out, ")\n"
                        "            ((i++))\n"
                        "            continue\n"
                        "            ;;\n"
                        "        -*) continue ;;\n"
                        "        esac\n"
                        "        next=${at:+$at }$word\n"
                        "        case $next in\n        ");
    op_append_known_words(out, t);
    buf_append_str(out, ") at=$next ;;\n"
                        "        *) break ;;\n"
                        "        esac\n"
                        "    done\n"
                        "    case $at:$prev in\n");
    for (size_t i = 0; i < t->n_globals; i++) {
        if (t->globals[i].kind != OP_OPTION)
            continue;
        buf_append_str(out, "    *:");
        op_append_option(out, &t->globals[i]);
        buf_append_str(out, ")\n");
        append_offer(out, &t->globals[i]);
    }
    op_each_place(t, append_values, out);
    buf_append_str(out, "    esac\n    options=(");
    for (size_t i = 0; i < t->n_globals; i++)
        append_option(out, &t->globals[i]);
    buf_append_str(out, " )\n    case $at in\n");
    op_each_place(t, append_place, out);
    buf_append_str(out, "    esac\n"
                        "    if [[ $words[CURRENT] == -* ]]; then\n"
                        "        _describe -o 'option' options\n"
                        "    else\n"
                        "        _describe 'command' offered\n"
                        "    fi\n"
                        "}\n"
                        "if [[ $funcstack[1] == _belay ]]; then\n"
                        "    _belay \"$@\"\n"
                        "else\n"
                        "    compdef _belay belay\n"
                        "fi\n");
}
