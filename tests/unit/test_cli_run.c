#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "tap.h"
#include "test_api_table.h"

#define WORDS_MAX 16

static const char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

/* Everything that was written to the file since it was made. */
static void slurp(int fd, char *out, size_t size)
{
    ssize_t n = pread(fd, out, size - 1, 0);

    out[n > 0 ? n : 0] = '\0';
    close(fd);
}

static int scratch(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
}

struct ran {
    int status;
    char out[8192], err[8192];
};

/* Runs a line of words separated by single blanks. */
static void run(struct ran *r, const char *text)
{
    char line[256], *argv[WORDS_MAX], *rest = line;
    struct cli cli = { .table = &test_table,
                       .env = no_env,
                       .in = -1,
                       .out = scratch("out"),
                       .err = scratch("err") };
    size_t n = 0;

    (void)snprintf(line, sizeof(line), "%s", text);
    for (char *word; *line && n < WORDS_MAX && (word = strsep(&rest, " ")); n++)
        argv[n] = word;
    r->status = cli_run(&cli, argv, n);
    slurp(cli.out, r->out, sizeof(r->out));
    slurp(cli.err, r->err, sizeof(r->err));
}

/* clang-format off */
static const struct {
    const char *line;
    int status;
    const char *out, *err;
} rows[] = {
    { "where", 0, "namespace   default\ndurability  inline\n", "" },
    { "where --namespace n --json", 0, "{\"durability\":\"inline\",\"namespace\":\"n\"}\n", "" },
    { "where -q", 0, "default\n", "" },
    { "where --namespace N", 2, "", "belay: namespace: must be 1 to 63 of a-z, 0-9, _ and -, beginning with a letter or digit\n" },
    { "where --store nonsense", 2, "", "belay: store URL: does not begin with a scheme, such as sqlite:PATH or memory:\n" },
    { "where --store memory:?x=1 --json", 2, "",
      "{\"error\":{\"code\":\"invalid\",\"message\":\"store URL: option x: unknown to memory:\",\"detail\":{\"reason\":\"option\",\"entity\":\"x\"}}}\n" },
    { "lose", 4, "", "belay: lose: exe_1: taken over\n" },
    { "lose --output jsonl", 4, "",
      "{\"error\":{\"code\":\"lease_lost\",\"message\":\"lose: exe_1: taken over\",\"detail\":{\"reason\":\"superseded\",\"entity\":\"exe_1\",\"expected\":3,\"actual\":4}}}\n" },
    { "lose --store nonsense", 4, "", "belay: lose: exe_1: taken over\n" },
    { "flow ls", 0, "id  n\na   1\nbb  -\n", "belay: flow ls: there is more; go on with --cursor c\\n1\n" },
    { "flow ls -q", 0, "a\nbb\n", "" },
    { "flow ls --json", 0, "{\"items\":[{\"id\":\"a\",\"n\":1},{\"id\":\"bb\",\"n\":null}],\"next_cursor\":\"c\\n1\"}\n", "" },
    { "flow ls --output jsonl -q", 0, "{\"id\":\"a\",\"n\":1}\n{\"id\":\"bb\",\"n\":null}\n", "" },
    { "flow submit --lane a x -- -y", 0, "given  lane=a/0, max_items=3/3, id=x/0, rest=-y/0\n", "" },
    { "wher", 2, "", "belay: wher: unknown command; did you mean where?\n" },
    { "wher --json", 2, "",
      "{\"error\":{\"code\":\"invalid\",\"message\":\"wher: unknown command; did you mean where?\",\"detail\":{\"reason\":\"usage\"}}}\n" },
    { "help nonsense", 2, "", "belay: help: no such command; belay help lists them all\n" },
    { "", 2, "", "usage: belay [--store TEXT] [--namespace TEXT] [--output table|json|jsonl] [--json] [--quiet] [--help] [--version] COMMAND [ARGUMENT]...\nbelay help lists the commands.\n" },
    { "--json", 2, "",
      "{\"error\":{\"code\":\"invalid\",\"message\":\"no command: belay help lists them\",\"detail\":{\"reason\":\"no_command\"}}}\n" },
    { "bytes take content", 0, "size  3\n", "" },
    { "bytes take content --json", 0, "{\"size\":3}\n", "" },
    { "bytes take nothing", 2, "", "belay: bytes take: FILE|-: cannot be opened: No such file or directory\n" },
    { "bytes take /", 2, "", "belay: bytes take: cannot be read: Is a directory\n" },
    { "bytes give", 0, "", "" },
    { "bytes give --size 27", 0, "abcdefghijklmnopqrstuvwxyza", "" },
    { "bytes give --size 27 --json", 0, "abcdefghijklmnopqrstuvwxyza", "" },
    { "bytes give --size 1048576 --fail", 1, "", "belay: bytes give: it is wrong\n" },
    { "bytes give --size 3 --to given", 0, "size  3\n", "" },
    { "bytes give --size 3 --to given -q", 0, "3\n", "" },
    { "bytes give --size 3 --to given --fail", 1, "", "belay: bytes give: it is wrong\n" },
    { "bytes give --size 3 --to /nowhere/x", 1, "", "belay: bytes give: /nowhere/x: cannot be opened: No such file or directory\n" },
    { "bytes give --size 3 --to /nowhere/x --json", 1, "",
      "{\"error\":{\"code\":\"unavailable\",\"message\":\"bytes give: /nowhere/x: cannot be opened: No such file or directory\",\"detail\":{\"reason\":\"output\"}}}\n" },
    { "bytes give --size 3 --to /dev/full", 1, "", "belay: bytes give: /dev/full: cannot be written: No space left on device\n" },
    { "bytes give --size 3 --to /dev/null", 0, "size  3\n", "" },
    { "tail", 0, "id  n\nx   0\nx   1\n", "" },
    { "tail --fail", 1, "", "belay: tail: it is wrong\n" },
    { "tail -f", 0, "id  n\nx   0\nx   1\n", "" },
    { "tail -f -q", 0, "0\n1\n", "" },
    { "tail -f --json --size 1", 0, "{\"id\":\"x\",\"kind\":\"stdout\",\"n\":0}\n", "" },
    { "tail -f --fail --size 1", 1, "id  n\nx   0\n", "belay: tail: it is wrong\n" },
    { "read --text --size 3", 0, "oo", "e" },
    { "read --text -f", 0, "o", "e" },
    { "read --text -q", 0, "0\n1\n", "" },
    { "read --text --size 1 --json", 0, "{\"items\":[{\"data\":\"o\",\"id\":\"x\",\"kind\":\"stdout\",\"n\":0}],\"next_cursor\":null}\n", "" },
    { "read --text --size 1 -f --output jsonl", 0, "{\"data\":\"o\",\"id\":\"x\",\"kind\":\"stdout\",\"n\":0}\n", "" },
};
/* clang-format on */

static void write_file(const char *path, const char *text)
{
    int fd = scratch(path);

    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        printf("# cannot write %s\n", path);
    close(fd);
}

static void runs(struct tap *t)
{
    write_file("content", "abc");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct ran r;

        run(&r, rows[i].line);
        bool good = TAP_EQ(t, r.status, rows[i].status);
        good &= TAP_STR(t, r.out, rows[i].out);
        good &= TAP_STR(t, r.err, rows[i].err);
        if (!good)
            printf("# in row \"%s\"\n", rows[i].line);
    }
}

/* How many files the current directory holds. */
static size_t count_files(void)
{
    DIR *dir = opendir(".");
    size_t n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static void files_are_whole(struct tap *t)
{
    char text[64];
    struct stat st;
    struct ran r;

    write_file("target", "before");
    TAP_EQ(t, chmod("target", 0640), 0);
    size_t files = count_files();
    run(&r, "bytes give --size 3000000 --to target --fail");
    TAP_EQ(t, r.status, 1);
    slurp(open("target", O_RDONLY), text, sizeof(text));
    TAP_STR(t, text, "before"); /* what was there stays, and nothing is beside it */
    TAP_EQ(t, count_files(), files);

    run(&r, "bytes give --size 3000000 --to target");
    TAP_EQ(t, r.status, 0);
    TAP_EQ(t, stat("target", &st), 0);
    TAP_EQ(t, st.st_size, 3000000);
    TAP_EQ(t, st.st_mode & 0777, 0640);
    TAP_EQ(t, count_files(), files);
    run(&r, "bytes give --to target"); /* no bytes are a file, too */
    TAP_EQ(t, stat("target", &st), 0);
    TAP_EQ(t, st.st_size, 0);

    /* A link stays a link. */
    TAP_EQ(t, symlink("target", "link"), 0);
    run(&r, "bytes give --size 3 --to link");
    TAP_EQ(t, r.status, 0);
    TAP_EQ(t, lstat("link", &st), 0);
    TAP_OK(t, S_ISLNK(st.st_mode));
    slurp(open("target", O_RDONLY), text, sizeof(text));
    TAP_STR(t, text, "abc");
    TAP_EQ(t, unlink("link"), 0);
}

static void streams_fail_late(struct tap *t)
{
    struct stat st;
    struct ran r;

    run(&r, "bytes give --size 3000000 --fail");
    TAP_EQ(t, r.status, 1); /* some of it is out, and the status says it is wrong */
    TAP_STR(t, r.err, "belay: bytes give: it is wrong\n");
    TAP_EQ(t, stat("out", &st), 0);
    TAP_OK(t, st.st_size > 0 && st.st_size < 3000000);
    run(&r, "bytes give --size 3000000");
    TAP_EQ(t, r.status, 0);
    TAP_EQ(t, stat("out", &st), 0);
    TAP_EQ(t, st.st_size, 3000000);
}

static void helps(struct tap *t)
{
    struct ran r, same;

    run(&r, "flow --help");
    TAP_EQ(t, r.status, 0);
    TAP_OK(t, strncmp(r.out, "usage: belay flow COMMAND", 25) == 0);
    TAP_STR(t, r.err, "");
    run(&same, "help flow");
    TAP_STR(t, same.out, r.out);
    run(&r, "flow submit -h");
    run(&same, "help flow submit");
    TAP_STR(t, same.out, r.out);
}

static void notices_failed_writes(struct tap *t)
{
    struct cli cli = { .table = &test_table, .env = no_env, .in = -1 };
    char text[512], where_word[] = "where", json_word[] = "--json";
    char *argv[] = { where_word, json_word };
    int ends[2];

    cli.err = scratch("err");
    cli.out = open("/dev/full", O_WRONLY);
    TAP_EQ(t, cli_run(&cli, argv, 1), 1);
    close(cli.out);
    slurp(cli.err, text, sizeof(text));
    TAP_STR(t, text,
            "belay: standard output: cannot be written: No space left on device\n");

    cli.err = scratch("err");
    if (!TAP_EQ(t, pipe(ends), 0))
        return;
    close(ends[0]);
    cli.out = ends[1];
    TAP_EQ(t, cli_run(&cli, argv, 2), 1);
    close(ends[1]);
    slurp(cli.err, text, sizeof(text));
    TAP_STR(
        t, text,
        "{\"error\":{\"code\":\"unavailable\",\"message\":\"standard output: cannot be "
        "written: Broken pipe\",\"detail\":{\"reason\":\"output\"}}}\n");

    char bytes_word[] = "bytes", give_word[] = "give", size_word[] = "--size=3";
    char *give[] = { bytes_word, give_word, size_word };
    cli.err = scratch("err");
    cli.out = open("/dev/full", O_WRONLY);
    TAP_EQ(t, cli_run(&cli, give, 3), 1);
    close(cli.out);
    slurp(cli.err, text, sizeof(text));
    TAP_STR(t, text,
            "belay: bytes give: standard output: cannot be written: No space left on "
            "device\n");

    cli.err = -1; /* nobody to tell */
    cli.out = -1;
    TAP_EQ(t, cli_run(&cli, argv, 1), 1);
}

static void failures_do_not_need_output(struct tap *t)
{
    struct cli cli = {
        .table = &test_table, .env = no_env, .in = -1, .out = -1, .err = -1
    };
    char lose_word[] = "lose";
    char *argv[] = { lose_word };

    TAP_EQ(t, cli_run(&cli, argv, 1), 4);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a line ends in an answer or in one error, and its status", runs },
        { "a file gets all bytes of an answer or stays as it is", files_are_whole },
        { "many bytes are written as they come", streams_fail_late },
        { "--help is the command help", helps },
        { "an answer that cannot be written is status 1", notices_failed_writes },
        { "a failure has its status even if nobody reads it",
          failures_do_not_need_output },
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
