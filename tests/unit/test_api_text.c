#include <stdlib.h>

#include "api/op_text.h"
#include "tap.h"
#include "test_api_table.h"

/* What an operation says about `table`; NULL when it failed.  The caller frees it. */
static char *say(const struct op_table *table, op_handler *handler,
                 const struct op_arg *arg, const char *text, struct belay_error *err)
{
    struct op_value value = { .arg = arg, .text = bytes_str(text ? text : "") };
    struct op_call call = { .table = table,
                            .values = &value,
                            .n_values = text != NULL };
    json_t *answer = NULL;

    if (handler(&call, &answer, err) != BELAY_OK)
        return NULL;
    char *said = strdup(json_string_value(json_object_get(answer, "text")));
    json_decref(answer);
    return said;
}

static void freep(char **text)
{
    free(*text);
}

static const struct op_arg words_arg = { .name = "words" };
static const struct op_arg shell_arg = { .name = "shell" };

static char *help(const struct op_table *table, const char *words)
{
    return say(table, op_help, &words_arg, words, NULL);
}

/* Makes every run of white space one blank: what a text says, wherever its lines end.
 */
static void squash(char *text)
{
    char *out = text;

    for (const char *c = text; *c; c++) {
        bool blank = *c == ' ' || *c == '\n';
        if (!blank)
            *out++ = *c;
        else if (out > text && out[-1] != ' ')
            *out++ = ' ';
    }
    *out = '\0';
}

/* Whether a line of the text begins with two spaces and the words. */
static bool has_entry(const char *text, const char *words)
{
    struct buf line CLEANUP(buf_release) = { 0 };

    buf_printf(&line, "\n  %s ", words);
    buf_append_char(&line, '\0');
    return strstr(text, (const char *)line.ptr) != NULL;
}

static void help_has_all(struct tap *t)
{
    char *text CLEANUP(freep) = help(&op_table_belay, NULL);

    if (!TAP_OK(t, text))
        return;
    for (size_t i = 0; i < op_count(&op_table_belay); i++) {
        const struct operation *op = op_at(&op_table_belay, i);
        char *own CLEANUP(freep) = help(&op_table_belay, op->words);

        TAP_OK(t, has_entry(text, op->words));
        if (!TAP_OK(t, own))
            continue;
        squash(own);
        TAP_OK(t, strstr(own, op->summary));
        for (size_t k = 0; k < op->n_args; k++)
            TAP_OK(t, strstr(own, op->args[k].help));
    }
    for (size_t i = 0; i < op_table_belay.n_globals; i++) {
        struct buf option CLEANUP(buf_release) = { 0 };
        op_append_option(&option, &op_table_belay.globals[i]);
        buf_append_char(&option, '\0');
        TAP_OK(t, strstr(text, (const char *)option.ptr));
    }
}

static void completion_has_all(struct tap *t)
{
    for (size_t s = 0; op_completion_shells[s]; s++) {
        char *text CLEANUP(freep) = say(&op_table_belay, op_completion, &shell_arg,
                                        op_completion_shells[s], NULL);
        if (!TAP_OK(t, text))
            continue;
        for (size_t i = 0; i < op_count(&op_table_belay); i++) {
            struct buf quoted CLEANUP(buf_release) = { 0 };
            buf_printf(&quoted, "'%s'", op_at(&op_table_belay, i)->words);
            buf_append_char(&quoted, '\0');
            TAP_OK(t, strstr(text, (const char *)quoted.ptr));
        }
        TAP_OK(t, strstr(text, "table json jsonl"));
    }
    struct belay_error err = { 0 };
    TAP_OK(t, !say(&op_table_belay, op_completion, &shell_arg, "ksh", &err));
    TAP_EQ(t, err.code, BELAY_INVALID);
}

static void man_has_all(struct tap *t)
{
    char *text CLEANUP(freep) = say(&op_table_belay, op_man, &words_arg, NULL, NULL);

    if (!TAP_OK(t, text))
        return;
    for (size_t i = 0; i < op_count(&op_table_belay); i++) {
        struct buf entry CLEANUP(buf_release) = { 0 };
        buf_append_str(&entry, ".TP\n\\fBbelay ");
        for (const char *c = op_at(&op_table_belay, i)->words; *c; c++)
            buf_printf(&entry, "%s%c", *c == '-' ? "\\" : "", *c);
        buf_append_str(&entry, "\\fR");
        buf_append_char(&entry, '\0');
        TAP_OK(t, strstr(text, (const char *)entry.ptr));
    }
    TAP_OK(t, strstr(text, "\n.SH EXIT STATUS\n"));
    TAP_OK(t, strstr(text, "\\fBBELAY_STORE\\fR"));
    TAP_OK(t, strstr(text, ".TP\n.B 78\nunsupported_format\n"));
}

static void help_is_exact(struct tap *t)
{
    char *text CLEANUP(freep) = help(&test_table, "flow submit");

    TAP_STR(t, text,
            "usage: belay flow submit --lane L... [--payload JSON|@FILE|-]"
            " [--token-file FILE|-] [--max-items N] [--wait DURATION]"
            " [--mode fast|slow] [--handle TEXT] [--strict true|false] [--follow] ID"
            " [ARGV]...\n"
            "\n"
            "Don't lose: \"work\" \\ .keep $(it) `here`.\n"
            "\n"
            ".Everything it takes, 'quoted' or not, ends in the store and stays there "
            "until\nsomebody asks for it or the retention of the lane ends.\n"
            "\n"
            "Arguments:\n"
            "  --lane L              where it's queued (may be repeated)\n"
            "  --payload JSON|@FILE|-\n"
            "                        what\n"
            "  --token-file FILE|-   secret\n"
            "  -n, --max-items N     how many (-2 to 10; default 3)\n"
            "  --wait DURATION       how long (1s to 1h)\n"
            "  --mode fast|slow      how\n"
            "  --handle TEXT         claim (environment TEST_HANDLE)\n"
            "  --strict true|false   or not\n"
            "  -f, --follow          go on\n"
            "  ID                    which\n"
            "  ARGV                  command (may be repeated)\n"
            "\n"
            "Over HTTP: POST /v1/flows\n");
}

static void help_has_groups(struct tap *t)
{
    char *flow CLEANUP(freep) = help(&test_table, "flow");
    struct belay_error err = { 0 };

    TAP_OK(t, flow && has_entry(flow, "flow submit") && has_entry(flow, "flow ls"));
    TAP_OK(t, flow && !has_entry(flow, "where") && !strstr(flow, "Others"));
    TAP_OK(t, !say(&test_table, op_help, &words_arg, "flo", &err));
    TAP_EQ(t, err.code, BELAY_INVALID);
    TAP_STR(t, err.reason, "command");
}

static void lines_fit(struct tap *t)
{
    char *text CLEANUP(freep) = help(&op_table_belay, NULL);
    const char *line = text;

    while (line && *line) {
        size_t len = strcspn(line, "\n");
        TAP_OK(t, len <= 80);
        TAP_OK(t, len == 0 || line[len - 1] != ' ');
        line += len + 1;
    }
}

static void roff_is_quoted(struct tap *t)
{
    char *text CLEANUP(freep) = say(&test_table, op_man, &words_arg, NULL, NULL);

    if (!TAP_OK(t, text))
        return;
    TAP_OK(t, strstr(text, "\nDon't lose: \"work\" \\e .keep $(it) `here`.\n"));
    TAP_OK(t, strstr(text, "\n\\&.Everything it takes"));
    TAP_OK(t, strstr(text, "\\fB\\-n, \\-\\-max\\-items N\\fR"));
    /* A variable of several arguments is told once. */
    const char *first = strstr(text, "\\fBTEST_HANDLE\\fR");
    TAP_OK(t, first && !strstr(first + 1, "\\fBTEST_HANDLE\\fR"));
}

static void shells_are_quoted(struct tap *t)
{
    char *zsh CLEANUP(freep) = say(&test_table, op_completion, &shell_arg, "zsh", NULL);
    char *fish CLEANUP(freep) =
        say(&test_table, op_completion, &shell_arg, "fish", NULL);

    TAP_OK(t, zsh && strstr(zsh, "'submit:Don'\\''t lose: \"work\" \\ .keep"));
    TAP_OK(t, zsh && strstr(zsh, "'--lane:where it'\\''s queued'"));
    TAP_OK(t, fish && strstr(fish, "'Don\\'t lose: \"work\" \\\\ .keep"));
    TAP_OK(t, fish && strstr(fish, " -l max-items -s n -x -d 'how many'\n"));
}

/* What bash offers for the words of a line, on one line. */
static void offered(const char *line, char *out, size_t size)
{
    struct buf command CLEANUP(buf_release) = { 0 };
    size_t n = 0;

    buf_printf(&command,
               "bash -uc '. ./completion; COMP_WORDS=(belay %s); "
               "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _belay; "
               "((${#COMPREPLY[@]} == 0)) || echo \"${COMPREPLY[@]}\"' 2>&1",
               line);
    buf_append_char(&command, '\0');
    FILE *pipe = popen((const char *)command.ptr, "r");
    if (pipe) {
        n = fread(out, 1, size - 1, pipe);
        (void)pclose(pipe);
    }
    while (n > 0 && out[n - 1] == '\n')
        n--;
    out[n] = '\0';
}

static void bash_completes(struct tap *t)
{
    /* clang-format off */
    static const struct { const char *line, *offers; } lines[] = {
        { "\"\"", "flow where lose help version bytes tail read" },
        { "fl", "flow" },
        { "flow \"\"", "submit ls" },
        { "flow su", "submit" },
        { "--store flow wh", "where" },
        { "-q flow --json \"\"", "submit ls" },
        { "flow submit --mo", "--mode" },
        { "flow submit --mode \"\"", "fast slow" },
        { "flow submit --mode s", "slow" },
        { "flow submit --mode = s", "slow" },
        { "flow submit --lane x --mode s", "slow" },
        { "flow submit --lane \"\"", "" },
        { "flow submit -n \"\"", "" },
        { "flow submit -n 3 --f", "--follow" },
        { "flow submit --payload com", "completion" }, /* the file */
        { "bytes give --to com", "completion" },
        { "bytes take --claim com", "completion" },
        { "flow ls --mo", "" },
        { "flow ls --out", "--output" },
        { "flow ls --output js", "json jsonl" },
        { "where \"\"", "" },
    };
    /* clang-format on */
    char *script CLEANUP(freep) =
        say(&test_table, op_completion, &shell_arg, "bash", NULL);
    FILE *file = script ? fopen("completion", "w") : NULL;

    if (!TAP_OK(t, file))
        return;
    TAP_OK(t, fputs(script, file) >= 0);
    TAP_EQ(t, fclose(file), 0);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char got[1024];
        offered(lines[i].line, got, sizeof(got));
        if (!TAP_STR(t, got, lines[i].offers))
            printf("# for: belay %s\n", lines[i].line);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "every operation is in the help, and has help of its own", help_has_all },
        { "every operation is in the completion of every shell", completion_has_all },
        { "every operation is in the manual", man_has_all },
        { "help tells all that a row knows", help_is_exact },
        { "help about the first word of several commands lists them", help_has_groups },
        { "help fits into 80 columns", lines_fit },
        { "nothing in a row is taken for roff", roff_is_quoted },
        { "nothing in a row is taken for shell", shells_are_quoted },
        { "bash completes words, options and values of the table", bash_completes },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
