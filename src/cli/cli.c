#include "cli/cli.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "api/handle.h"
#include "api/op_text.h"
#include "cli/report.h"
#include "cli/stream.h"

#define EXIT_NOT_WRITTEN 1

static void belay_closep(struct belay **b)
{
    belay_close(*b);
}

#define PRINCIPAL_MAX 128

/* "cli:ada", or with the number of a user who has no name. */
static void name_principal(char out[PRINCIPAL_MAX])
{
    struct passwd entry, *found = NULL;
    char names[1024];

    if (getpwuid_r(geteuid(), &entry, names, sizeof(names), &found) || !found ||
        !bytes_is_id(bytes_str(entry.pw_name), PRINCIPAL_MAX - sizeof("cli:")))
        (void)snprintf(out, PRINCIPAL_MAX, "cli:%u", (unsigned)geteuid());
    else
        (void)snprintf(out, PRINCIPAL_MAX, "cli:%s", entry.pw_name);
}

static belay_rc open_store(const struct request *r, struct belay **out,
                           struct belay_error *err)
{
    const struct belay_options options = { .size = sizeof(options), .ns = r->ns };

    if (!r->op->needs_store || r->op->reach == OP_REACH_URL)
        return BELAY_OK;
    return handle_open(r->store, &options,
                       r->op->reach == OP_REACH_STORE ? HANDLE_STORE : HANDLE_NAMESPACE,
                       out, err);
}

/* Calls the operation's handler, with the two ends of whatever streams through it. */
static belay_rc ask(const struct cli *cli, struct request *r, struct belay *b,
                    struct stream_out *to, json_t **result, struct belay_error *err)
{
    const struct op_source source = { .read = stream_read, .arg = &r->source };
    const struct op_sink sink = { .write = stream_write, .arg = to };
    bool is_named = r->op->scope > OP_SCOPE_READ; /* it leaves a trace */
    char principal[PRINCIPAL_MAX];

    if (is_named)
        name_principal(principal);
    const struct op_call call = {
        .table = cli->table,
        .op = r->op,
        .values = r->values,
        .n_values = r->n_values,
        .belay = b,
        .store = r->store,
        .ns = r->ns,
        .principal = is_named ? principal : NULL,
        .source = &source,
        .sink = &sink,
    };
    belay_rc rc = r->op->handler(&call, result, err);
    if (rc == BELAY_OK && r->op->shape == OP_BYTES)
        rc = stream_finish(to, err);
    return rc;
}

/* Asks the operation and turns its answer into text; *status is the answer's own. */
static belay_rc answer(const struct cli *cli, struct request *r, struct buf *out,
                       struct buf *remark, int *status, struct belay_error *err)
{
    struct belay *b CLEANUP(belay_closep) = NULL;
    json_t *result CLEANUP(json_decrefp) = NULL;
    struct stream_out to CLEANUP(stream_out_release) = {
        .path = r->target,
        .fd = r->target ? -1 : cli->out,
    };
    bool is_told = r->op->shape != OP_BYTES || r->target;

    belay_rc rc = open_store(r, &b, err);
    if (rc != BELAY_OK)
        return rc;
    rc = ask(cli, r, b, &to, &result, err);
    if (rc == BELAY_OK && is_told)
        rc = output_render(r->op, result, r->output, r->quiet, out, err);
    if (rc == BELAY_OK && r->op->exit_of)
        *status = r->op->exit_of(result);
    if (rc == BELAY_OK && !r->quiet && r->output != OUTPUT_JSON)
        output_remark(r->op, result, remark);
    if (rc != BELAY_OK)
        err_context(err, r->op->words);
    return rc;
}

static belay_rc understand(const struct cli *cli, char *const *argv, size_t n,
                           struct belay_arena *a, struct request *r,
                           struct belay_error *err)
{
    struct input in = { .fd = cli->in };
    struct args args;

    belay_rc rc = args_parse(cli->table, argv, n, a, &args, err);
    if (rc == BELAY_OK)
        rc = request_read(r, cli->table, &args, cli->env, &in, a, err);
    return rc;
}

/* Somebody typed the program's name to see what happens. */
static int show_usage(const struct cli *cli, const struct belay_error *e)
{
    struct buf text CLEANUP(buf_release) = { 0 };

    buf_append_str(&text, "usage: belay");
    for (size_t i = 0; i < cli->table->n_globals; i++) {
        buf_append_str(&text, " [");
        op_append_option(&text, &cli->table->globals[i]);
        if (cli->table->globals[i].kind == OP_OPTION) {
            buf_append_char(&text, ' ');
            op_append_placeholder(&text, &cli->table->globals[i]);
        }
        buf_append_char(&text, ']');
    }
    buf_append_str(&text, " COMMAND [ARGUMENT]...\n"
                          "belay help lists the commands.\n");
    report_say(cli->err, &text);
    return belay_error_info(e->code)->exit_code;
}

int cli_run(const struct cli *cli, char *const *argv, size_t n)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct request r CLEANUP(request_release) = { 0 };
    struct buf out CLEANUP(buf_release) = { 0 };
    struct buf remark CLEANUP(buf_release) = { 0 };
    struct belay_error err;
    bool json = args_want_json(argv, n);
    int status = 0;

    belay_rc rc = understand(cli, argv, n, &arena, &r, &err);
    if (rc == BELAY_OK)
        rc = answer(cli, &r, &out, &remark, &status, &err);
    if (rc != BELAY_OK && strcmp(err.reason, "no_command") == 0 && !json)
        return show_usage(cli, &err);
    if (rc != BELAY_OK) {
        status = report_error(cli->err, &err, json);
        return strcmp(err.reason, "output") == 0 ? EXIT_NOT_WRITTEN : status;
    }
    if (report_write(cli->out, buf_view(&out), &err) != BELAY_OK) {
        (void)report_error(cli->err, &err, json);
        return EXIT_NOT_WRITTEN;
    }
    report_say(cli->err, &remark);
    return status;
}
