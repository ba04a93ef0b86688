#include <fcntl.h>
#include <unistd.h>

#include "cli/request.h"
#include "tap.h"
#include "test_api_table.h"

#define WORDS_MAX 16

static const char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

static const char *some_env(const char *name)
{
    if (strcmp(name, "TEST_HANDLE") == 0)
        return "from-env";
    if (strcmp(name, "TEST_STORE") == 0)
        return "memory:?retries=1";
    return strcmp(name, "TEST_NAMESPACE") == 0 ? "" : NULL;
}

static const char *bad_env(const char *name)
{
    (void)name;
    return "\xff";
}

struct fixture {
    struct belay_arena arena;
    struct request request;
    struct belay_error err;
    struct input input;
};

static void release(struct fixture *f)
{
    request_release(&f->request);
    arena_release(&f->arena);
}

/* Reads a line of words separated by single blanks. */
static belay_rc read_line(struct fixture *f, env_fn *env, const char *text)
{
    static char line[256];
    char *argv[WORDS_MAX], *rest = line;
    struct args args;
    size_t n = 0;

    (void)snprintf(line, sizeof(line), "%s", text);
    for (char *word; n < WORDS_MAX && (word = strsep(&rest, " ")) != NULL; n++)
        argv[n] = word;
    request_release(&f->request);
    belay_rc rc = args_parse(&test_table, argv, n, &f->arena, &args, &f->err);
    if (rc != BELAY_OK)
        return rc;
    return request_read(&f->request, &test_table, &args, env, &f->input, &f->arena,
                        &f->err);
}

static const struct op_value *value(const struct fixture *f, const char *name)
{
    const struct op_call call = { .values = f->request.values,
                                  .n_values = f->request.n_values };
    return op_get(&call, name);
}

static void reads(struct tap *t)
{
    struct fixture f CLEANUP(release) = { 0 };

    if (!TAP_EQ(t,
                read_line(&f, no_env,
                          "flow submit --lane a --lane b --wait 2s -f --payload [1] x"),
                BELAY_OK))
        return;
    TAP_EQ(t, f.request.n_values, 7);
    TAP_STR(t, (const char *)value(&f, "lane")->text.ptr, "a");
    TAP_EQ(t, value(&f, "wait")->number, 2000);
    TAP_EQ(t, value(&f, "follow")->number, 1);
    TAP_EQ(t, value(&f, "max_items")->number, 3);
    TAP_EQ(t, json_array_size(value(&f, "payload")->json), 1);
    TAP_OK(t, !value(&f, "mode") && !value(&f, "handle") && !value(&f, "rest"));
    TAP_EQ(t, f.request.output, OUTPUT_TABLE);
    TAP_OK(t, !f.request.quiet && !f.request.store && !f.request.ns);
}

static void has_globals(struct tap *t)
{
    struct fixture f CLEANUP(release) = { 0 };

    TAP_EQ(t, read_line(&f, no_env, "where"), BELAY_OK);
    TAP_STR(t, f.request.store, "memory:");
    TAP_STR(t, f.request.ns, "default");
    TAP_EQ(t, read_line(&f, some_env, "where -q --json"), BELAY_OK);
    TAP_STR(t, f.request.store, "memory:?retries=1");
    TAP_STR(t, f.request.ns, "default"); /* empty is unset */
    TAP_EQ(t, f.request.output, OUTPUT_JSON);
    TAP_OK(t, f.request.quiet);
    TAP_EQ(t, read_line(&f, some_env, "where --store memory: --output jsonl"),
           BELAY_OK);
    TAP_STR(t, f.request.store, "memory:");
    TAP_EQ(t, f.request.output, OUTPUT_JSONL);
}

static void uses_env(struct tap *t)
{
    struct fixture f CLEANUP(release) = { 0 };

    TAP_EQ(t, read_line(&f, some_env, "flow submit --lane a x"), BELAY_OK);
    TAP_STR(t, (const char *)value(&f, "handle")->text.ptr, "from-env");
    TAP_EQ(t, read_line(&f, some_env, "flow submit --lane a --handle h x"), BELAY_OK);
    TAP_STR(t, (const char *)value(&f, "handle")->text.ptr, "h");
    TAP_EQ(t, read_line(&f, bad_env, "flow submit --lane a x"), BELAY_INVALID);
    TAP_STR(t, f.err.message, "flow submit: TEST_HANDLE: is not UTF-8 text");
    TAP_EQ(t, read_line(&f, bad_env, "where"), BELAY_INVALID);
    TAP_STR(t, f.err.message, "where: TEST_STORE: is not UTF-8 text");
    /* A command without a store does not care about the store's variables. */
    TAP_EQ(t, read_line(&f, bad_env, "lose"), BELAY_OK);
}

static const char *job_env(const char *name)
{
    return strcmp(name, "BELAY_SOCKET") == 0 ? "/run/job" : NULL;
}

static const char *job_env_with_store(const char *name)
{
    return strcmp(name, "BELAY_SOCKET") == 0 ? "/run/job" : some_env(name);
}

static void wants_a_store_inside_a_job(struct tap *t)
{
    struct fixture f CLEANUP(release) = { 0 };

    TAP_EQ(t, read_line(&f, job_env, "where"), BELAY_INVALID);
    TAP_STR(t, f.err.reason, "store");
    TAP_STR(t, f.err.message,
            "where: inside a job the store must be named (--store or BELAY_STORE)");
    TAP_EQ(t, read_line(&f, job_env, "where --store memory:"), BELAY_OK);
    TAP_EQ(t, read_line(&f, job_env_with_store, "where"), BELAY_OK);
    TAP_STR(t, f.request.store, "memory:?retries=1");
    TAP_EQ(t, read_line(&f, job_env, "lose"), BELAY_OK); /* which needs none */
}

static void says_what_is_wrong(struct tap *t)
{
    /* clang-format off */
    static const struct { const char *line, *message, *reason; } wrong[] = {
        { "flow submit x", "flow submit: --lane: is missing", "usage" },
        { "flow submit --lane a", "flow submit: ID: is missing", "usage" },
        { "flow submit --lane  x", "flow submit: --lane: is empty", "argument" },
        { "flow submit --lane a --mode x y", "flow submit: --mode: must be one of fast, slow", "argument" },
        { "flow submit --lane a --max-items x y", "flow submit: --max-items: must be a whole number", "argument" },
        { "flow submit --lane a --lane 123456789 y", "flow submit: --lane: is longer than 8 bytes", "too_large" },
        { "flow submit --lane a --payload { y", "flow submit: --payload: JSON: line 1 column 1: the text ends too early", "" },
        { "flow submit --lane a --payload @/nowhere/x y", "flow submit: --payload: cannot be opened: No such file or directory", "file" },
        { "flow submit --lane a --payload @ y", "flow submit: --payload: cannot be opened: No such file or directory", "file" },
        { "flow submit --lane a --token-file / y", "flow submit: --token-file: cannot be read: Is a directory", "file" },
        { "flow submit --lane a --token-file /dev/zero y", "flow submit: --token-file: is longer than 16 bytes", "too_large" },
        { "where --json --output json", "where: --json: is short for --output json; give one of them", "usage" },
        { "where --output yaml", "where: --output: must be one of table, json, jsonl", "argument" },
        { "where --store=", "where: --store: is empty", "argument" },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct fixture f CLEANUP(release) = { 0 };
        TAP_EQ(t, read_line(&f, no_env, wrong[i].line), BELAY_INVALID);
        TAP_STR(t, f.err.message, wrong[i].message);
        TAP_STR(t, f.err.reason, wrong[i].reason);
        TAP_OK(t, f.err.actual < 100000); /* what has no end is not read for ever */
    }
}

static int file_with(const char *path, const char *text)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
        lseek(fd, 0, SEEK_SET) != 0)
        printf("# cannot make %s\n", path);
    return fd;
}

static void reads_files(struct tap *t)
{
    struct fixture f CLEANUP(release) = { 0 };
    int fd = file_with("payload.json", "{\"a\": \"@x\"}\n");

    f.input.fd = fd;
    TAP_EQ(t, read_line(&f, no_env, "flow submit --lane a --payload @payload.json x"),
           BELAY_OK);
    TAP_STR(t, json_string_value(json_object_get(value(&f, "payload")->json, "a")),
            "@x");
    TAP_EQ(t, read_line(&f, no_env, "flow submit --lane a --payload - x"), BELAY_OK);
    TAP_EQ(t, json_object_size(value(&f, "payload")->json), 1);
    TAP_OK(t, f.input.used);

    f.input.used = false;
    TAP_EQ(t, lseek(fd, 0, SEEK_SET), 0);
    TAP_EQ(t,
           read_line(&f, no_env, "flow submit --lane a --payload - --token-file - x"),
           BELAY_INVALID);
    TAP_STR(t, f.err.message,
            "flow submit: --token-file: standard input is already read by another "
            "argument");

    /* A positional - and other types are just text. */
    TAP_EQ(t, read_line(&f, no_env, "flow submit --lane - -"), BELAY_OK);
    TAP_STR(t, (const char *)value(&f, "lane")->text.ptr, "-");
    TAP_STR(t, (const char *)value(&f, "id")->text.ptr, "-");
    close(fd);

    fd = file_with("token", "1234567890123456");
    TAP_EQ(t, read_line(&f, no_env, "flow submit --lane a --token-file token x"),
           BELAY_OK);
    TAP_STR(t, (const char *)value(&f, "token_file")->text.ptr, "1234567890123456");
    close(fd);
    fd = file_with("token", "12345678901234567");
    TAP_EQ(t, read_line(&f, no_env, "flow submit --lane a --token-file token x"),
           BELAY_INVALID);
    TAP_STR(t, f.err.reason, "too_large");
    close(fd);
}

static void reads_claims(struct tap *t)
{
    struct fixture f CLEANUP(release) = { 0 };
    int fd = file_with("claim", "qwc:1:1/x\n");

    f.input.fd = fd;
    TAP_EQ(t, read_line(&f, no_env, "bytes take --claim @claim -"), BELAY_OK);
    TAP_STR(t, (const char *)value(&f, "claim")->text.ptr, "qwc:1:1/x\n");
    f.input.used = false;
    TAP_EQ(t, read_line(&f, no_env, "bytes take --claim qwc:1:1/y -"), BELAY_OK);
    TAP_STR(t, (const char *)value(&f, "claim")->text.ptr, "qwc:1:1/y");
    f.input.used = false;
    TAP_EQ(t, read_line(&f, no_env, "bytes take --claim - claim"), BELAY_OK);
    TAP_STR(t, (const char *)value(&f, "claim")->text.ptr, "qwc:1:1/x\n");
    f.input.used = false;
    TAP_EQ(t, read_line(&f, no_env, "bytes take --claim - -"), BELAY_INVALID);
    TAP_STR(t, f.err.message,
            "bytes take: FILE|-: standard input is already read by another argument");
    close(fd);
}

static void opens_streams(struct tap *t)
{
    struct fixture f CLEANUP(release) = { 0 };
    int fd = file_with("content", "abc");
    struct bytes piece;

    TAP_EQ(t, read_line(&f, no_env, "bytes take content"), BELAY_OK);
    TAP_OK(t, f.request.source.opened);
    TAP_STR(t, (const char *)value(&f, "content")->text.ptr, "content");
    TAP_EQ(t, stream_read(&f.request.source, &piece, &f.err), BELAY_OK);
    TAP_OK(t, bytes_eq(piece, bytes_str("abc")));
    TAP_EQ(t, stream_read(&f.request.source, &piece, &f.err), BELAY_OK);
    TAP_EQ(t, piece.len, 0);

    f.input.fd = fd;
    TAP_EQ(t, read_line(&f, no_env, "bytes take -"), BELAY_OK);
    TAP_OK(t, !f.request.source.opened);
    TAP_EQ(t, stream_read(&f.request.source, &piece, &f.err), BELAY_OK);
    TAP_OK(t, bytes_eq(piece, bytes_str("abc")));
    close(fd);

    TAP_EQ(t, read_line(&f, no_env, "bytes take /nowhere/x"), BELAY_INVALID);
    TAP_STR(t, f.err.message,
            "bytes take: FILE|-: cannot be opened: No such file or directory");
    TAP_EQ(t, read_line(&f, no_env, "bytes take /"), BELAY_OK);
    TAP_EQ(t, stream_read(&f.request.source, &piece, &f.err), BELAY_INVALID);
    TAP_STR(t, f.err.message, "cannot be read: Is a directory");

    TAP_EQ(t, read_line(&f, no_env, "bytes give --to x"), BELAY_OK);
    TAP_STR(t, f.request.target, "x");
    TAP_EQ(t, read_line(&f, no_env, "bytes give --to -"), BELAY_OK);
    TAP_OK(t, !f.request.target);
    TAP_EQ(t, read_line(&f, no_env, "bytes give"), BELAY_OK);
    TAP_OK(t, !f.request.target);
}

static void does_not_read_ahead(struct tap *t)
{
    struct fixture f CLEANUP(release) = { 0 };

    /* Standard input is touched only by an argument that names it. */
    f.input.fd = -1;
    TAP_EQ(t, read_line(&f, no_env, "flow submit --lane a --payload 1 x"), BELAY_OK);
    TAP_EQ(t, read_line(&f, no_env, "flow submit --lane a --payload - x"),
           BELAY_INVALID);
    TAP_STR(t, f.err.message,
            "flow submit: --payload: cannot be read: Bad file descriptor");
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "values are read by their types, absent ones have their fallback", reads },
        { "global options say where and how", has_globals },
        { "what is not typed is taken from the environment", uses_env },
        { "inside a job a store is named, or nothing is done",
          wants_a_store_inside_a_job },
        { "a wrong value is told with its command and argument", says_what_is_wrong },
        { "@FILE, FILE and - are read where the type says so", reads_files },
        { "a claim is text, @FILE or -", reads_claims },
        { "a stream is opened, and not read", opens_streams },
        { "standard input is read only when it is named", does_not_read_ahead },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
