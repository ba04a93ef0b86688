#include "cli/args.h"

#include "api/op_text.h"
#include "cli/suggest.h"

/* A line while it is being read. */
struct line {
    const struct op_table *table;
    char *const *argv;
    size_t n, at;    /* at: the next word */
    bool only_words; /* behind -- */
    bool is_unknown; /* no command: help has nothing to say about it */
    bool asks_help, asks_version;
    struct bytes path; /* words of the command so far; points into the table */
    size_t n_positionals;
    struct args args;
    struct belay_arena *arena;
    struct belay_error *err;
};

#define WORD_SHOWN_MAX 48

void args_append_word(struct buf *out, struct bytes word)
{
    size_t shown = 0;

    while (shown < word.len) {
        size_t n = bytes_utf8_len(bytes_of(word.ptr + shown, word.len - shown));
        if (shown + n > WORD_SHOWN_MAX || n == 0)
            break;
        shown += n;
    }
    buf_append_escaped(out, bytes_of(word.ptr, shown));
    buf_append_str(out, shown < word.len ? "..." : "");
}

void args_append_name(struct buf *out, const struct op_arg *arg)
{
    if (arg->kind == OP_POSITIONAL)
        op_append_placeholder(out, arg);
    else
        op_append_option(out, arg);
}

size_t args_count(const struct args *args, const struct op_arg *arg)
{
    size_t n = 0;

    for (size_t i = 0; i < args->n_given; i++)
        n += args->given[i].arg == arg;
    return n;
}

/* Ends the reading with "[command: ]what: why". */
static belay_rc wrong(struct line *l, const struct buf *what, const char *why)
{
    const struct operation *op = l->args.op;

    if (what->failed)
        return err_no_memory(l->err, "an error message");
    return err_reason(l->err, BELAY_INVALID, "usage", "%s%s%.*s: %s",
                      op ? op->words : "", op ? ": " : "", (int)what->len,
                      what->ptr ? (const char *)what->ptr : "", why);
}

static belay_rc wrong_arg(struct line *l, const struct op_arg *arg, const char *why)
{
    struct buf what CLEANUP(buf_release) = { 0 };

    args_append_name(&what, arg);
    return wrong(l, &what, why);
}

/* "what: why; did you mean best?" */
static belay_rc wrong_word(struct line *l, struct bytes word, const char *why,
                           const struct suggestion *s)
{
    struct buf what CLEANUP(buf_release) = { 0 };
    struct buf text CLEANUP(buf_release) = { 0 };

    args_append_word(&what, word);
    buf_append_str(&text, why);
    if (s && s->best.len > 0) {
        buf_append_str(&text, "; did you mean ");
        buf_append(&text, s->best);
        buf_append_char(&text, '?');
    }
    buf_append_char(&text, '\0');
    if (text.failed)
        return err_no_memory(l->err, "an error message");
    return wrong(l, &what, (const char *)text.ptr);
}

static belay_rc give(struct line *l, const struct op_arg *arg, struct bytes text)
{
    if (!arg->repeated && args_count(&l->args, arg) > 0)
        return wrong_arg(l, arg, "is given twice");
    l->args.given[l->args.n_given++] = (struct given){ .arg = arg, .text = text };
    return BELAY_OK;
}

/* --- words --- */

/* The path with one more word, if some command begins so. */
static bool extend_path(struct line *l, struct bytes word)
{
    size_t space = l->path.len > 0 ? 1 : 0;
    size_t len = l->path.len + space + word.len;

    for (size_t i = 0; i < op_count(l->table); i++) {
        const char *words = op_at(l->table, i)->words;
        if (op_words_begin(words, l->path) && strlen(words) >= len &&
            memcmp(words + l->path.len + space, word.ptr, word.len) == 0 &&
            op_words_begin(words, bytes_of(words, len))) {
            l->path = bytes_of(words, len);
            return true;
        }
    }
    return false;
}

static belay_rc take_command_word(struct line *l, struct bytes word)
{
    if (word.len > 0 && extend_path(l, word)) {
        l->args.op = op_find(l->table, l->path);
        return BELAY_OK;
    }
    struct suggestion s = { .typed = word, .distance = SIZE_MAX };
    struct bytes candidate;
    for (size_t i = 0; (candidate = op_next_word(l->table, l->path, i)).len > 0; i++)
        suggest_offer(&s, candidate);
    l->is_unknown = true;
    return wrong_word(l, word, "unknown command", &s);
}

/* The positional that the next word is for, or NULL when there is none left. */
static const struct op_arg *next_positional(const struct line *l)
{
    const struct op_arg *last = NULL;
    size_t n = 0;

    for (size_t i = 0; i < l->args.op->n_args; i++) {
        const struct op_arg *arg = &l->args.op->args[i];
        if (arg->kind != OP_POSITIONAL)
            continue;
        last = arg;
        if (n++ == l->n_positionals)
            return arg;
    }
    return last && last->repeated ? last : NULL;
}

static belay_rc take_word(struct line *l, struct bytes word)
{
    if (!l->args.op)
        return take_command_word(l, word);
    const struct op_arg *arg = next_positional(l);
    if (!arg)
        return wrong_word(l, word, "is one argument too many", NULL);
    l->n_positionals++;
    return give(l, arg, word);
}

/* --- options --- */

static bool is_called(const struct op_arg *arg, struct bytes name)
{
    if (arg->kind == OP_POSITIONAL || strlen(arg->name) != name.len)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] != (arg->name[i] == '_' ? '-' : arg->name[i]))
            return false;
    }
    return true;
}

/* The option with this name, or with this letter when name is a single character that
 * stood behind a single dash. */
static const struct op_arg *find_option(const struct op_arg *args, size_t n,
                                        struct bytes name, bool is_short)
{
    for (size_t i = 0; i < n; i++) {
        bool is_letter = args[i].kind != OP_POSITIONAL && args[i].letter != 0 &&
                         name.len == 1 && name.ptr[0] == (uint8_t)args[i].letter;
        if (is_short ? is_letter : is_called(&args[i], name))
            return &args[i];
    }
    return NULL;
}

static void offer_options(struct suggestion *s, struct buf *names,
                          const struct op_arg *args, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t start = names->len;
        struct suggestion tried = *s;

        if (args[i].kind == OP_POSITIONAL)
            continue;
        op_append_option(names, &args[i]);
        if (names->failed)
            return;
        suggest_offer(&tried, bytes_of(names->ptr + start, names->len - start));
        if (tried.distance < s->distance) {
            /* Only the best is kept, at the front, where it does not move. */
            memmove(names->ptr, names->ptr + start, names->len - start);
            names->len -= start;
            tried.best = buf_view(names);
            *s = tried;
        } else {
            names->len = start;
        }
    }
}

static belay_rc unknown_option(struct line *l, struct bytes option)
{
    struct buf names CLEANUP(buf_release) = { 0 };
    struct suggestion s = { .typed = option, .distance = SIZE_MAX };

    offer_options(&s, &names, l->table->globals, l->table->n_globals);
    if (l->args.op)
        offer_options(&s, &names, l->args.op->args, l->args.op->n_args);
    return wrong_word(l, option, "unknown option", &s);
}

static belay_rc take_flag(struct line *l, const struct op_arg *arg)
{
    bool is_global =
        arg >= l->table->globals && arg < l->table->globals + l->table->n_globals;

    if (is_global && strcmp(arg->name, "help") == 0)
        l->asks_help = true;
    if (is_global && strcmp(arg->name, "version") == 0)
        l->asks_version = true;
    return give(l, arg, bytes_of("", 0));
}

static belay_rc take_option(struct line *l, struct bytes word)
{
    bool is_short = word.ptr[1] != '-';
    struct bytes name =
        bytes_of(word.ptr + (is_short ? 1 : 2), word.len - (is_short ? 1 : 2));
    const uint8_t *equals = is_short ? NULL : memchr(name.ptr, '=', name.len);
    const struct op_arg *arg = NULL;

    if (equals)
        name.len = (size_t)(equals - name.ptr);
    if (l->args.op)
        arg = find_option(l->args.op->args, l->args.op->n_args, name, is_short);
    if (!arg)
        arg = find_option(l->table->globals, l->table->n_globals, name, is_short);
    if (!arg)
        return unknown_option(
            l, bytes_of(word.ptr, (size_t)(name.ptr + name.len - word.ptr)));
    if (arg->kind == OP_FLAG)
        return equals ? wrong_arg(l, arg, "takes no value") : take_flag(l, arg);
    if (equals)
        return give(l, arg, bytes_str((const char *)equals + 1));
    if (l->at == l->n)
        return wrong_arg(l, arg, "has no value");
    return give(l, arg, bytes_str(l->argv[l->at++]));
}

/* --- the line --- */

static belay_rc read_words(struct line *l)
{
    belay_rc rc = BELAY_OK;

    while (rc == BELAY_OK && l->at < l->n) {
        struct bytes word = bytes_str(l->argv[l->at++]);

        if (!l->only_words && bytes_eq(word, bytes_str("--")))
            l->only_words = true;
        else if (!l->only_words && word.len > 1 && word.ptr[0] == '-')
            rc = take_option(l, word);
        else
            rc = take_word(l, word);
    }
    return rc;
}

/* Whether help is asked for behind the word that was wrong. */
static bool help_follows(const struct line *l)
{
    for (size_t i = l->at; i < l->n && strcmp(l->argv[i], "--") != 0; i++) {
        if (strcmp(l->argv[i], "--help") == 0 || strcmp(l->argv[i], "-h") == 0)
            return true;
    }
    return false;
}

static belay_rc no_command(struct line *l)
{
    struct buf what CLEANUP(buf_release) = { 0 };
    struct buf text CLEANUP(buf_release) = { 0 };
    struct bytes word;

    if (l->path.len == 0)
        return err_reason(l->err, BELAY_INVALID, "no_command",
                          "no command: belay help lists them");
    buf_append(&what, l->path);
    buf_append_str(&text, "needs one more word:");
    for (size_t i = 0; (word = op_next_word(l->table, l->path, i)).len > 0; i++) {
        buf_append_char(&text, ' ');
        buf_append(&text, word);
    }
    buf_append_char(&text, '\0');
    if (text.failed)
        return err_no_memory(l->err, "an error message");
    return wrong(l, &what, (const char *)text.ptr);
}

/* Turns the line into one of another command, which keeps the global options only. */
static belay_rc become(struct line *l, const char *words)
{
    const struct operation *op = op_find(l->table, bytes_str(words));
    struct args *args = &l->args;
    size_t n = 0;

    if (!op)
        return err_set(l->err, BELAY_MISUSE, "the table has no command %s", words);
    for (size_t i = 0; i < args->n_given; i++) {
        const struct op_arg *arg = args->given[i].arg;
        if (arg >= l->table->globals && arg < l->table->globals + l->table->n_globals)
            args->given[n++] = args->given[i];
    }
    args->n_given = n;
    args->op = op;
    return BELAY_OK;
}

static belay_rc finish(struct line *l)
{
    if (l->asks_help) {
        struct bytes path = l->path;
        belay_rc rc = become(l, "help");
        if (rc != BELAY_OK || path.len == 0)
            return rc;
        if (!arena_copy(l->arena, path, &path))
            return err_no_memory(l->err, "the arguments");
        return give(l, &l->args.op->args[0], path);
    }
    if (l->asks_version)
        return become(l, "version");
    return l->args.op ? BELAY_OK : no_command(l);
}

belay_rc args_parse(const struct op_table *t, char *const *argv, size_t n,
                    struct belay_arena *a, struct args *out, struct belay_error *err)
{
    struct line l = { .table = t, .argv = argv, .n = n, .arena = a, .err = err };

    for (size_t i = 0; i < n; i++) {
        if (!bytes_is_utf8(bytes_str(argv[i])))
            return err_reason(err, BELAY_INVALID, "usage",
                              "argument %zu: is not UTF-8 text", i + 1);
    }
    l.args.given = arena_zalloc(a, n + 1, sizeof(*l.args.given));
    if (!l.args.given)
        return err_no_memory(err, "the arguments");

    belay_rc rc = read_words(&l);
    if (rc == BELAY_INVALID && !l.is_unknown && (l.asks_help || help_follows(&l))) {
        l.asks_help = true;
        rc = BELAY_OK;
    }
    if (rc == BELAY_OK)
        rc = finish(&l);
    if (rc == BELAY_OK)
        *out = l.args;
    return rc;
}

bool args_want_json(char *const *argv, size_t n)
{
    for (size_t i = 0; i < n && strcmp(argv[i], "--") != 0; i++) {
        const char *value = "";

        if (strcmp(argv[i], "--json") == 0)
            return true;
        if (strncmp(argv[i], "--output=", 9) == 0)
            value = argv[i] + 9;
        else if (strcmp(argv[i], "--output") == 0 && i + 1 < n)
            value = argv[i + 1];
        if (strcmp(value, "json") == 0 || strcmp(value, "jsonl") == 0)
            return true;
    }
    return false;
}
