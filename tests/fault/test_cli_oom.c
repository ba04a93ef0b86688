/* Whatever allocation fails, a command line ends in a whole answer or in none, with a
 * status of its own and nothing leaked. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "oom.h"
#include "tap.h"
#include "test_api_table.h"

#define WORDS_MAX 16

static const char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

struct ran {
    int status;
    char out[65536];
};

/* Runs a line of words separated by single blanks; its n-th allocation fails. */
static bool run(struct ran *r, const struct op_table *table, const char *text,
                unsigned long n, bool for_ever)
{
    char line[256], *argv[WORDS_MAX], *rest = line;
    struct cli cli = { .table = table, .env = no_env, .in = -1 };
    size_t words = 0;

    cli.out = open("out", O_RDWR | O_CREAT | O_TRUNC, 0600);
    cli.err = open("/dev/null", O_WRONLY);
    (void)snprintf(line, sizeof(line), "%s", text);
    for (char *word; words < WORDS_MAX && (word = strsep(&rest, " ")); words++)
        argv[words] = word;
    oom_arm(n, for_ever);
    r->status = cli_run(&cli, argv, words);
    bool hit = oom_disarm();
    ssize_t len = pread(cli.out, r->out, sizeof(r->out) - 1, 0);
    r->out[len > 0 ? len : 0] = '\0';
    close(cli.out);
    close(cli.err);
    return hit;
}

static void walk(struct tap *t, const struct op_table *table, const char *line)
{
    static struct ran whole, got;

    (void)run(&whole, table, line, 0, false);
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        for (unsigned long n = 1; run(&got, table, line, n, for_ever); n++) {
            bool survived = got.status == whole.status;
            bool good = TAP_OK(t, survived || got.status == 75) &&
                        TAP_STR(t, got.out, survived ? whole.out : "");
            if (!good)
                printf("# in \"%s\": allocation %lu, status %d\n", line, n, got.status);
            if (!good || n > 20000)
                return;
        }
    }
}

static void answers(struct tap *t)
{
    static const char *const lines[] = {
        "version",
        "version --json",
        "errors",
        "errors -q",
        "errors --json",
        "errors --output jsonl",
        "help",
        "help completion",
        "completion --help",
        "completion bash",
        "completion zsh",
        "completion fish",
        "man",
    };

    for (size_t i = 0; i < COUNT_OF(lines); i++)
        walk(t, &op_table_belay, lines[i]);
}

static void mistakes(struct tap *t)
{
    static const char *const lines[] = {
        "versoin",    "version --jso", "version x",          "completion ksh",
        "completion", "help x",        "--output x version",
    };

    for (size_t i = 0; i < COUNT_OF(lines); i++)
        walk(t, &op_table_belay, lines[i]);
}

static void stores(struct tap *t)
{
    static const char *const lines[] = {
        "where",
        "where --store memory:?retries=1&request_timeout=1s",
        "where --store memory:?bogus=1",
        "where --store memory:?retry_jitter=x",
        "where --store mysql:x",
        "lose",
        "flow ls",
        "flow submit --lane a x",
        "help flow submit",
    };

    for (size_t i = 0; i < COUNT_OF(lines); i++)
        walk(t, &test_table, lines[i]);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a command without memory answers wholly or not at all", answers },
        { "a mistake is told, or that there is no memory for it", mistakes },
        { "a store is opened and closed without a leak", stores },
    };

    if (!oom_hook_libraries())
        return 1;
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
