#include "api/op_completion.h"

#include "api/op_handlers.h"
#include "api/op_text.h"

/* clang-format off */
static const struct {
    const char *shell;
    op_completion_fn *write;
} writers[] = {
    { "bash", op_completion_bash },
    { "zsh", op_completion_zsh },
    { "fish", op_completion_fish },
};
/* clang-format on */

const char *const op_completion_shells[] = { "bash", "zsh", "fish", NULL };

/* The beginnings of one operation's words that no operation before it has, shortest
 * first; the whole is the last. */
static void visit_beginnings(const struct op_table *t, size_t i, op_place_fn *visit,
                             void *arg)
{
    const struct operation *op = op_at(t, i);
    size_t len = strlen(op->words);

    for (size_t n = 1; n < len; n++) {
        struct bytes words = bytes_of(op->words, n);
        bool known = op->words[n] != ' ';
        for (size_t k = 0; k < i && !known; k++)
            known = op_words_begin(op_at(t, k)->words, words);
        if (!known)
            visit(arg, t, words, NULL);
    }
    visit(arg, t, bytes_of(op->words, len), op);
}

void op_each_place(const struct op_table *t, op_place_fn *visit, void *arg)
{
    visit(arg, t, bytes_of(NULL, 0), NULL);
    for (size_t i = 0; i < op_count(t); i++)
        visit_beginnings(t, i, visit, arg);
}

void op_append_quoted(struct buf *out, struct bytes text)
{
    buf_append_char(out, '\'');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\'')
            buf_append_str(out, "'\\''");
        else
            buf_append_char(out, (char)text.ptr[i]);
    }
    buf_append_char(out, '\'');
}

void op_append_value_options(struct buf *out, const struct op_table *t,
                             const char *between)
{
    const struct op_arg *arg;
    bool first = true;

    for (size_t i = 0; (arg = op_arg_at(t, i)) != NULL; i++) {
        bool known = arg->kind != OP_OPTION;
        for (size_t k = 0; k < i && !known; k++)
            known = op_arg_at(t, k)->kind == OP_OPTION &&
                    strcmp(op_arg_at(t, k)->name, arg->name) == 0;
        if (known)
            continue;
        buf_append_str(out, first ? "" : between);
        op_append_option(out, arg);
        if (arg->letter)
            buf_printf(out, "%s-%c", between, arg->letter);
        first = false;
    }
}

const char *op_summary(const struct op_table *t, struct bytes words, struct bytes word)
{
    for (size_t i = 0; i < op_count(t); i++) {
        const struct operation *op = op_at(t, i);
        size_t space = words.len > 0 ? 1 : 0;

        if (op_words_begin(op->words, words) && strlen(op->words) > words.len &&
            bytes_eq(bytes_str(op->words + words.len + space), word))
            return op->summary;
    }
    return "";
}

static void append_pattern(void *arg, const struct op_table *t, struct bytes words,
                           const struct operation *op)
{
    struct buf *out = arg;

    (void)t;
    (void)op;
    if (words.len == 0)
        return;
    buf_append_str(out, out->len > 0 ? " | " : "");
    op_append_quoted(out, words);
}

void op_append_known_words(struct buf *out, const struct op_table *t)
{
    struct buf pattern CLEANUP(buf_release) = { 0 };

    op_each_place(t, append_pattern, &pattern);
    buf_append(out, buf_view(&pattern));
    out->failed |= pattern.failed;
}

belay_rc op_completion(const struct op_call *call, json_t **out,
                       struct belay_error *err)
{
    struct buf text CLEANUP(buf_release) = { 0 };
    const struct op_value *shell = op_get(call, "shell");

    for (size_t i = 0; shell && i < COUNT_OF(writers); i++) {
        if (bytes_eq(shell->text, bytes_str(writers[i].shell))) {
            writers[i].write(&text, call->table);
            return op_prose(&text, out, err);
        }
    }
    return err_reason(err, BELAY_INVALID, "argument", "SHELL: no such shell");
}
