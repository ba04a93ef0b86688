#include "api/op_completion.h"
#include "api/op_text.h"

static const char walk[] =
    "_belay() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local at='' word='' next='' words='' opts='' i\n"
    "    COMPREPLY=()\n"
    "    if [[ $prev == = ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    elif [[ $cur == = ]]; then\n"
    "        cur=''\n"
    "    fi\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        case $word in\n"
    "        --) return ;;\n";

/* Offers `words` for the case that the line before opened. */
static void append_offer(struct buf *out, const struct op_arg *arg)
{
    if (arg->choices) {
        buf_append_str(out, "        words='");
        for (const char *const *c = arg->choices; *c; c++)
            buf_printf(out, "%s%s", c == arg->choices ? "" : " ", *c);
        buf_append_str(out, "'\n        ;;\n");
    } else if (op_takes_path(arg->type)) {
        buf_append_str(out, "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
                            "        return\n        ;;\n");
    } else {
        buf_append_str(out, "        return\n        ;;\n");
    }
}

/* What follows an option that takes a value, by place and option. */
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

static void append_words(struct buf *out, const struct op_table *t, struct bytes words,
                         const struct operation *op)
{
    struct bytes word;

    for (size_t i = 0; !op && (word = op_next_word(t, words, i)).len > 0; i++) {
        buf_append_str(out, i > 0 ? " " : "");
        buf_append(out, word);
    }
    for (size_t i = 0; op && i < op->n_args; i++) {
        const struct op_arg *arg = &op->args[i];
        if (arg->kind != OP_POSITIONAL || !arg->choices)
            continue;
        for (const char *const *c = arg->choices; *c; c++)
            buf_printf(out, "%s ", *c);
    }
}

static void append_place(void *arg, const struct op_table *t, struct bytes words,
                         const struct operation *op)
{
    struct buf *out = arg;

    buf_append_str(out, "    ");
    op_append_quoted(out, words);
    buf_append_str(out, ")\n        words='");
    append_words(out, t, words, op);
    buf_append_str(out, "'\n        opts='");
    for (size_t i = 0; op && i < op->n_args; i++) {
        if (op->args[i].kind == OP_POSITIONAL)
            continue;
        op_append_option(out, &op->args[i]);
        buf_append_char(out, ' ');
    }
    buf_append_str(out, "'\n        ;;\n");
}

void op_completion_bash(struct buf *out, const struct op_table *t)
{
    buf_append_str(out, "# bash completion for belay\n");
    buf_append_str(out, walk);
    buf_append_str(out, "        ");
    op_append_value_options(out, t, " | ");
    buf_append_str(out, ")\n"
                        "            if [[ ${COMP_WORDS[i + 1]} == = ]]; then\n"
                        "                ((i++))\n"
                        "            fi\n"
                        "            ((i++))\n"
                        "            continue\n"
                        "            ;;\n"
                        "        -*) continue ;;\n"
                        "        esac\n"
                        "        if [[ $at == help ]]; then\n" /* takes commands */
                        "            at=''\n"
                        "        fi\n"
                        "        next=${at:+$at }$word\n"
                        "        case $next in\n        ");
    op_append_known_words(out, t);
    buf_append_str(out, ") at=$next ;;\n"
                        "        *) break ;;\n"
                        "        esac\n"
                        "    done\n"
                        "    if [[ $at == help ]]; then\n"
                        "        at=''\n"
                        "    fi\n"
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
    buf_append_str(out, "    esac\n"
                        "    if [[ -n $words ]]; then\n"
                        "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- "
                        "\"$cur\")\n"
                        "        return\n"
                        "    fi\n"
                        "    case $at in\n");
    op_each_place(t, append_place, out);
    buf_append_str(out,
                   "    esac\n    if [[ $cur == -* ]]; then\n        words=\"$opts");
    for (size_t i = 0; i < t->n_globals; i++) {
        buf_append_char(out, ' ');
        op_append_option(out, &t->globals[i]);
    }
    buf_append_str(out, "\"\n    fi\n"
                        "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- "
                        "\"$cur\")\n"
                        "}\n"
                        "complete -F _belay belay\n");
}
