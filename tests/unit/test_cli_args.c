#include "cli/args.h"
#include "cli/suggest.h"
#include "tap.h"
#include "test_api_table.h"

#define WORDS_MAX 24

/* A line of words separated by single blanks; ~ is an empty word. */
static size_t split(char *line, char **argv)
{
    size_t n = 0;

    for (char *word = line; word && *line && n < WORDS_MAX; n++) {
        char *blank = strchr(word, ' ');
        if (blank)
            *blank = '\0';
        argv[n] = strcmp(word, "~") == 0 ? word + 1 : word;
        word = blank ? blank + 1 : NULL;
    }
    return n;
}

/* "words: name=text name=text". */
static void describe(const struct args *args, struct buf *out)
{
    buf_append_str(out, args->op->words);
    buf_append_char(out, ':');
    for (size_t i = 0; i < args->n_given; i++) {
        buf_printf(out, " %s=", args->given[i].arg->name);
        buf_append(out, args->given[i].text);
    }
    buf_append_char(out, '\0');
}

/* clang-format off */
static const struct {
    const char *line, *want; /* want: the description, or the error's message */
} rows[] = {
    { "where", "where:" },
    { "flow ls", "flow ls:" },
    { "flow submit x", "flow submit: id=x" },
    { "flow submit x y z", "flow submit: id=x rest=y rest=z" },
    { "flow submit x flow ls", "flow submit: id=x rest=flow rest=ls" },
    { "flow submit --lane a --lane=b x", "flow submit: lane=a lane=b id=x" },
    { "flow submit x --lane a y", "flow submit: id=x lane=a rest=y" },
    { "flow --json submit -q x", "flow submit: json= quiet= id=x" },
    { "--store memory: where --namespace=n", "where: store=memory: namespace=n" },
    { "flow submit --max-items 3 x", "flow submit: max_items=3 id=x" },
    { "flow submit -n 3 -f x", "flow submit: max_items=3 follow= id=x" },
    { "flow submit -n -2 x", "flow submit: max_items=-2 id=x" },
    { "flow submit --lane --help x", "flow submit: lane=--help id=x" },
    { "flow submit --lane= x", "flow submit: lane= id=x" },
    { "flow submit --lane=a=b x", "flow submit: lane=a=b id=x" },
    { "flow submit --lane ~ x", "flow submit: lane= id=x" },
    { "flow submit ~", "flow submit: id=" },
    { "flow submit -", "flow submit: id=-" },
    { "flow submit -- -x --json --", "flow submit: id=-x rest=--json rest=--" },
    { "flow submit x -- --lane", "flow submit: id=x rest=--lane" },
    { "-- flow submit x", "flow submit: id=x" },
    /* help and version */
    { "--help", "help: help=" },
    { "-h", "help: help=" },
    { "--json --help", "help: json= help=" },
    { "--help where", "help: help= words=where" },
    { "where --help", "help: help= words=where" },
    { "flow --help", "help: help= words=flow" },
    { "--help flow submit", "help: help= words=flow submit" },
    { "flow submit --lane a -h", "help: help= words=flow submit" },
    { "flow submit --bogus --help", "help: words=flow submit" },
    { "flow submit --help --bogus", "help: help= words=flow submit" },
    { "where x y --help", "help: words=where" },
    { "--help --help", "help: help=" },
    { "help where", "help: words=where" },
    { "help flow submit", "help: words=flow words=submit" },
    { "--version", "version: version=" },
    { "where --version --json", "version: version= json=" },
    /* wrong */
    { "", "no command: belay help lists them" },
    { "--json", "no command: belay help lists them" },
    { "--", "no command: belay help lists them" },
    { "flow", "flow: needs one more word: submit ls" },
    { "wher", "wher: unknown command; did you mean where?" },
    { "hwere", "hwere: unknown command; did you mean where?" },
    { "FLOW", "FLOW: unknown command" },
    { "xyzzy", "xyzzy: unknown command" },
    { "~", ": unknown command" },
    { "flow lss", "lss: unknown command; did you mean ls?" },
    { "flow ls ls", "flow ls: ls: is one argument too many" },
    { "flo w", "flo: unknown command; did you mean flow?" },
    { "wher --help", "wher: unknown command; did you mean where?" },
    { "--help wher", "wher: unknown command; did you mean where?" },
    { "flow submit -- --help", "flow submit: id=--help" },
    { "where x", "where: x: is one argument too many" },
    { "where -", "where: -: is one argument too many" },
    { "where --bogus", "where: --bogus: unknown option" },
    { "where --bogus=1", "where: --bogus: unknown option" },
    { "where --jso", "where: --jso: unknown option; did you mean --json?" },
    { "flow submit --max_items 3", "flow submit: --max_items: unknown option; did you mean --max-items?" },
    { "flow submit --max-item=3", "flow submit: --max-item: unknown option; did you mean --max-items?" },
    { "--lane a flow submit", "--lane: unknown option" },
    { "where --lane a", "where: --lane: unknown option" },
    { "where -x", "where: -x: unknown option" },
    { "where -qh", "where: -qh: unknown option" },
    { "where -q1", "where: -q1: unknown option" },
    { "where ---json", "where: ---json: unknown option; did you mean --json?" },
    { "where --=x", "where: --: unknown option" },
    { "where --json --json", "where: --json: is given twice" },
    { "where -q --quiet", "where: --quiet: is given twice" },
    { "--store a where --store b", "where: --store: is given twice" },
    { "where --json=yes", "where: --json: takes no value" },
    { "where --json=", "where: --json: takes no value" },
    { "where --store", "where: --store: has no value" },
    { "flow submit -n", "flow submit: --max-items: has no value" },
    { "flow submit --id x", "flow submit: --id: unknown option" },
};
/* clang-format on */

static void parses(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct belay_arena a CLEANUP(arena_release) = { 0 };
        struct buf text CLEANUP(buf_release) = { 0 };
        struct belay_error err = { 0 };
        struct args args = { .n_given = 77 };
        char line[128], *argv[WORDS_MAX];

        (void)snprintf(line, sizeof(line), "%s", rows[i].line);
        size_t n = split(line, argv);
        belay_rc rc = args_parse(&test_table, argv, n, &a, &args, &err);
        if (rc == BELAY_OK)
            describe(&args, &text);
        bool good = TAP_STR(t, rc ? err.message : (char *)text.ptr, rows[i].want);
        if (rc != BELAY_OK) {
            good &= TAP_EQ(t, rc, BELAY_INVALID);
            good &= TAP_EQ(t, args.n_given, 77);
            good &= TAP_OK(t, err.reason[0] != '\0');
        }
        if (!good)
            printf("# in row \"%s\"\n", rows[i].line);
    }
}

static void refuses_other_encodings(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    struct belay_error err = { 0 };
    struct args args;
    char word[] = "where", bad[] = "x\xff";
    char *argv[] = { word, bad };

    TAP_EQ(t, args_parse(&test_table, argv, 2, &a, &args, &err), BELAY_INVALID);
    TAP_STR(t, err.message, "argument 2: is not UTF-8 text");
}

static void shows_words_safely(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    struct belay_error err = { 0 };
    struct args args;
    static char hostile[] = "\x1b[2J\nbelay: all is well";
    static char wide[4096];
    char *argv[] = { hostile };

    TAP_EQ(t, args_parse(&test_table, argv, 1, &a, &args, &err), BELAY_INVALID);
    TAP_STR(t, err.message, "\\x1b[2J\\nbelay: all is well: unknown command");

    /* A word of any length leaves room for the rest of the message, and is cut between
     * characters. */
    for (size_t i = 0; i + 2 < sizeof(wide); i++)
        wide[i] = i % 2 == 0 ? '\xc3' : '\xa9';
    argv[0] = wide;
    TAP_EQ(t, args_parse(&test_table, argv, 1, &a, &args, &err), BELAY_INVALID);
    TAP_OK(t, bytes_is_utf8(bytes_str(err.message)));
    TAP_OK(t, strstr(err.message, "...: unknown command"));
}

static void takes_many_words(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    struct belay_error err = { 0 };
    struct args args;
    static char *argv[5000];
    static char flow[] = "flow", submit[] = "submit", x[] = "x";

    argv[0] = flow;
    argv[1] = submit;
    for (size_t i = 2; i < COUNT_OF(argv); i++)
        argv[i] = x;
    TAP_EQ(t, args_parse(&test_table, argv, COUNT_OF(argv), &a, &args, &err), BELAY_OK);
    TAP_EQ(t, args.n_given, COUNT_OF(argv) - 2);
}

static void sees_json(struct tap *t)
{
    /* clang-format off */
    static const struct { const char *line; bool json; } lines[] = {
        { "x --json", true },
        { "--output json x", true },
        { "--output=jsonl x", true },
        { "--output table x", false },
        { "--output", false },
        { "x -- --json", false },
        { "x --jso", false },
        { "", false },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char line[64], *argv[WORDS_MAX];
        (void)snprintf(line, sizeof(line), "%s", lines[i].line);
        size_t n = split(line, argv);
        TAP_EQ(t, args_want_json(argv, n), lines[i].json);
    }
}

static void suggests(struct tap *t)
{
    /* clang-format off */
    static const struct { const char *typed, *offered[3], *best; } offers[] = {
        { "versoin", { "version", "where" }, "version" },
        { "verson", { "version" }, "version" },
        { "versionn", { "version" }, "version" },
        { "cersion", { "version" }, "version" },
        { "ls", { "la" }, "" },     /* half of it is wrong */
        { "lss", { "ls" }, "ls" },
        { "x", { "y" }, "" },
        { "", { "a" }, "" },
        { "abc", { "abd", "abe" }, "abd" }, /* the first of equals */
        { "abcdef", { "abcxyf", "abcdxf" }, "abcdxf" },
        { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" }, "" },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT_OF(offers); i++) {
        struct suggestion s = { .typed = bytes_str(offers[i].typed),
                                .distance = SIZE_MAX };
        for (size_t k = 0; k < 3 && offers[i].offered[k]; k++)
            suggest_offer(&s, bytes_str(offers[i].offered[k]));
        if (!TAP_OK(t, bytes_eq(s.best, bytes_str(offers[i].best))))
            printf("# for \"%s\": %.*s\n", offers[i].typed, (int)s.best.len,
                   s.best.len > 0 ? (const char *)s.best.ptr : "");
    }
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a line is a command with its arguments, or says what is wrong", parses },
        { "words that are not UTF-8 are refused by their number",
          refuses_other_encodings },
        { "a word in a message is escaped and cut", shows_words_safely },
        { "a line may have thousands of words", takes_many_words },
        { "the wish for JSON is seen in a line that is wrong", sees_json },
        { "the nearest word is suggested, if it is near", suggests },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
