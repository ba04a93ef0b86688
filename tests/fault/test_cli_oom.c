/* Whatever allocation fails, a command line ends in a whole answer or in none, with a
 * status of its own and nothing leaked.  A digest that cannot get memory is one that
 * cannot be made: unavailable. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "oom.h"
#include "tap.h"
#include "test_api_table.h"

#define WORDS_MAX 24
#define LAST_GROUPS 2

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
    char line[512], *argv[WORDS_MAX], *rest = line;
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

/* `same`: its answer is the same each time; otherwise it has times or chance in it, and
 * only a whole line counts. */
static bool is_whole(struct tap *t, const struct ran *got, const struct ran *whole,
                     bool same)
{
    size_t len = strlen(got->out);

    return same ? TAP_STR(t, got->out, whole->out)
                : TAP_OK(t, len > 0 && got->out[len - 1] == '\n');
}

static void walk_any(struct tap *t, const struct op_table *table, const char *line,
                     bool same)
{
    static struct ran whole, got;

    (void)run(&whole, table, line, 0, false);
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        for (unsigned long n = 1; run(&got, table, line, n, for_ever); n++) {
            bool survived = got.status == whole.status;
            bool good =
                TAP_OK(t, survived || got.status == 75 || got.status == 69) &&
                (survived ? is_whole(t, &got, &whole, same) : TAP_STR(t, got.out, ""));
            if (!good)
                printf("# in \"%s\": allocation %lu, status %d\n", line, n, got.status);
            if (!good || n > 20000)
                return;
        }
    }
}

static void walk(struct tap *t, const struct op_table *table, const char *line)
{
    walk_any(t, table, line, true);
}

static void answers(struct tap *t)
{
    static const char *const lines[] = {
        "version",           "version --json",        "errors", "errors -q",
        "errors --json",     "errors --output jsonl", "help",   "help completion",
        "completion --help", "completion bash",
    };
    /* Each as long as the table; its last groups have everything that the whole has. */
    static const char *const of_all[] = { "completion zsh", "completion fish", "man" };
    struct op_table last = op_table_belay;

    last.groups += last.n_groups - LAST_GROUPS;
    last.n_groups = LAST_GROUPS;
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        walk(t, &op_table_belay, lines[i]);
    for (size_t i = 0; i < COUNT_OF(of_all); i++)
        walk(t, &last, of_all[i]);
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
        "bytes take commit.json",
        "bytes give --size 5",
        "bytes give --size 5 --to given",
        "tail -q",
        "read --size 0 --text",
    };

    for (size_t i = 0; i < COUNT_OF(lines); i++)
        walk(t, &test_table, lines[i]);
}

/* --- inboxes, sessions, blobs --- */

/* A commit with everything in it. */
static const char commit[] =
    "{\"graph\":{\"type\":\"append\",\"nodes\":[{\"node_id\":\"a\",\"kind\":\"plugin\"}"
    ","
    "{\"node_id\":\"b\",\"parent_node_id\":\"a\",\"kind\":\"plugin\"}]},"
    "\"config\":{\"m\":1},\"agent_frames\":[{\"frame_id\":\"f\"}],"
    "\"checkpoint\":{\"turn_state\":{\"n\":1},\"tool_state\":{\"json\":{}},"
    "\"execution_state\":{\"body_base64\":\"AP8Q\"}},"
    "\"usage\":[{\"id\":\"u\",\"source\":\"t\",\"model\":\"m\",\"input_tokens\":1}],"
    "\"attachments\":[\"x\"]}";

#define CLAIM                                                               \
    "{\"session_id\":\"s\",\"claim_id\":\"qwc:1:1\",\"lease_token\":\"t\"," \
    "\"lease_id\":\"l\",\"batch_ids\":[\"b\"]}"

static bool write_commit(void)
{
    int fd = open("commit.json", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    bool written = write(fd, commit, strlen(commit)) == (ssize_t)strlen(commit);

    close(fd);
    return written;
}

static void changes(struct tap *t)
{
    static const char *const same[] = {
        "session commit s --store memory: --file commit.json --turn t1 --expect 0",
        "session commit s --store memory: --file commit.json --json",
        "session commit s --store memory: --file commit.json --expect 7",
        ("session commit s --store memory: --file commit.json --complete " CLAIM),
        "queue claim s --owner o --store memory: --json",
        "queue claim s --owner o --store memory: --batch x --batch y",
        ("queue renew " CLAIM " --store memory:"),
        ("queue abandon " CLAIM " --store memory:"),
        ("queue complete " CLAIM " --store memory:"),
        "queue cancel s b --store memory:",
        "queue drop s 7 --store memory:",
        "session meta set s --store memory: --created-at x --caused-by {} --parent p",
        "session tombstone s a b --store memory:",
        "session vacuum s --store memory:",
        "session delete s --confirm s --store memory:",
        "attachment intent s a --uri u --store memory:",
        "attachment commit s a b --store memory:",
        "attachment forget s a --store memory:",
        "blob put commit.json --store memory: --pin p --kind tool_state",
        "blob unpin p --store memory:",
        "claim --lane l --worker w --capability c --store memory:",
        "renew --handle x --store memory:",
        "complete-batch commit.json --store memory:",
        "tag e a=b c=d --remove e --store memory:",
        "submit-batch commit.json --store memory:",
        "submit --lane l --backoff linear --store memory:",
        "timers --once --store memory:",
    };
    static const char *const others[] = {
        "submit --lane l --payload {\"a\":[1]} --tag a=b --require c --retries 1 "
        "--backoff exp:1s..2s --retryable timeout --key k --store memory:",
        "submit --lane l --json --store memory: -- echo a b",
    };

    for (size_t i = 0; i < COUNT_OF(same); i++)
        walk(t, &op_table_belay, same[i]);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        walk_any(t, &op_table_belay, others[i], false);
    walk_any(t, &op_table_belay,
             "queue enqueue s --delivery earliest_safe_boundary --slot join --merge "
             "group:g --source-key k --payload {\"a\":[1]} --payload 2 --store memory:",
             false);
}

/* --- one store for many commands --- */

/* A command that was understood, on a store that is open. */
struct asked {
    struct belay_arena arena;
    struct request request;
    struct buf bytes, text; /* what went into the sink, and the answer */
};

static void asked_release(struct asked *q)
{
    request_release(&q->request);
    arena_release(&q->arena);
    buf_release(&q->bytes);
    buf_release(&q->text);
}

static belay_rc keep(void *arg, struct bytes piece, struct belay_error *err)
{
    struct buf *to = arg;

    buf_append(to, piece);
    return to->failed ? err_no_memory(err, "the output") : BELAY_OK;
}

/* The handler and its answer, without memory from the n-th allocation on. */
static belay_rc answer(struct asked *q, struct belay *b, unsigned long n, bool for_ever,
                       bool *hit)
{
    const struct op_source source = { .read = stream_read, .arg = &q->request.source };
    const struct op_sink sink = { .write = keep, .arg = &q->bytes };
    const struct op_call call = { .table = &op_table_belay,
                                  .op = q->request.op,
                                  .values = q->request.values,
                                  .n_values = q->request.n_values,
                                  .belay = b,
                                  .source = &source,
                                  .sink = &sink };
    struct belay_error err;
    json_t *result = NULL;

    oom_arm(n, for_ever);
    belay_rc rc = q->request.op->handler(&call, &result, &err);
    if (rc == BELAY_OK)
        rc = output_render(q->request.op, result, OUTPUT_JSON, false, &q->text, &err);
    *hit = oom_disarm();
    json_decref(result);
    return rc;
}

/* Asks one line.  *out is the answer, or what went into the sink. */
static belay_rc ask(struct belay *b, const char *line, unsigned long n, bool for_ever,
                    bool *hit, char *out, size_t size)
{
    struct asked q CLEANUP(asked_release) = { 0 };
    char words[512], *argv[WORDS_MAX], *rest = words;
    struct input in = { .fd = -1 };
    struct args args;
    size_t n_words = 0;

    (void)snprintf(words, sizeof(words), "%s", line);
    for (char *word; n_words < WORDS_MAX && (word = strsep(&rest, " ")); n_words++)
        argv[n_words] = word;
    belay_rc rc = args_parse(&op_table_belay, argv, n_words, &q.arena, &args, NULL);
    if (rc == BELAY_OK)
        rc = request_read(&q.request, &op_table_belay, &args, no_env, &in, &q.arena,
                          NULL);
    if (rc == BELAY_OK)
        rc = answer(&q, b, n, for_ever, hit);
    const struct buf *said = q.bytes.len > 0 ? &q.bytes : &q.text;
    (void)snprintf(out, size, "%.*s", rc == BELAY_OK ? (int)said->len : 0,
                   said->ptr ? (const char *)said->ptr : "");
    return rc;
}

/* Everything there is to look at; *sha is the name of a blob. */
static bool fill(struct belay *b, char sha[80])
{
    static const char *const lines[] = {
        "attachment intent s x --uri u",
        "attachment intent s y --uri u",
        "session commit s --file commit.json",
        "session meta set s --name n --parent p --caused-by {}",
        "queue enqueue s --delivery earliest_safe_boundary --slot join --payload [1]",
        "queue claim s --owner o",
        "queue enqueue s --delivery earliest_safe_boundary --slot join --merge group:g",
        "submit --lane l --tag a=b --require c --retries 1 --payload {}",
        "submit --lane l --session s --delay 1h",
        "claim --lane l --worker w --capability c",
        "blob put commit.json --pin p",
    };
    static char out[65536];
    bool hit;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        if (ask(b, lines[i], 0, false, &hit, out, sizeof(out)) != BELAY_OK)
            return false;
    }
    const char *at = strstr(out, "\"sha256\":\"");
    (void)snprintf(sha, 80, "%.64s", at ? at + strlen("\"sha256\":\"") : "");
    return at != NULL;
}

static void look(struct tap *t, struct belay *b, const char *line)
{
    static char whole[65536], got[65536];
    bool hit = true;

    if (!TAP_EQ(t, ask(b, line, 0, false, &hit, whole, sizeof(whole)), BELAY_OK) ||
        !TAP_OK(t, strlen(whole) > 0))
        return;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        hit = true;
        for (unsigned long n = 1; hit && n < 20000; n++) {
            belay_rc rc = ask(b, line, n, for_ever, &hit, got, sizeof(got));
            bool good = TAP_OK(t, rc == BELAY_OK || rc == BELAY_NO_MEMORY ||
                                      rc == BELAY_UNAVAILABLE) &&
                        TAP_STR(t, got, rc == BELAY_OK ? whole : "");
            if (!good) {
                printf("# in \"%s\": allocation %lu\n", line, n);
                return;
            }
        }
    }
}

static void looks(struct tap *t)
{
    static const char *const lines[] = {
        "queue ls s",
        "ls",
        "ls --tag a=b",
        "lane ls",
        "stats",
        "events",
        "events --type acquired --tag a=b",
        "session show s",
        "session ls --parent p",
        "session log s",
        "session nodes s",
        "session path s",
        "session node s b",
        "session checkpoint s",
        "session meta show s",
        "attachment ls s",
        "blob pins",
        "queue cancel s none",
        "queue claim s --owner o --max 0",
    };
    struct belay *b = NULL;
    char sha[80], line[128];

    if (!TAP_EQ(t, belay_open("memory:", NULL, &b, NULL), BELAY_OK) ||
        !TAP_OK(t, fill(b, sha))) {
        belay_close(b);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        look(t, b, lines[i]);
    (void)snprintf(line, sizeof(line), "blob get %.64s", sha);
    look(t, b, line);
    belay_close(b);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a command without memory answers wholly or not at all", answers },
        { "a mistake is told, or that there is no memory for it", mistakes },
        { "a store is opened and closed without a leak", stores },
        { "an inbox, a session, a blob is changed and told of, or not told of",
          changes },
        { "they are looked at wholly or not at all", looks },
    };

    if (!oom_hook_libraries() || !write_commit())
        return 1;
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
