#include "cli/cli.h"

#include "api/op_text.h"
#include "cli/report.h"

#define EXIT_NOT_WRITTEN 1

static void belay_closep(struct belay **b)
{
    belay_close(*b);
}

/* Asks the operation and turns its answer into text. */
static belay_rc answer(const struct cli *cli, const struct request *r, struct buf *out,
                       struct buf *remark, struct belay_error *err)
{
    struct belay *b CLEANUP(belay_closep) = NULL;
    json_t *result CLEANUP(json_decrefp) = NULL;
    const struct belay_options options = { .size = sizeof(options), .ns = r->ns };

    if (r->op->needs_store) {
        belay_rc rc = belay_open(r->store, &options, &b, err);
        if (rc != BELAY_OK)
            return rc;
    }
    const struct op_call call = {
        .table = cli->table,
        .op = r->op,
        .values = r->values,
        .n_values = r->n_values,
        .belay = b,
    };
    belay_rc rc = r->op->handler(&call, &result, err);
    if (rc == BELAY_OK)
        rc = output_render(r->op, result, r->output, r->quiet, out, err);
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

    belay_rc rc = understand(cli, argv, n, &arena, &r, &err);
    if (rc == BELAY_OK)
        rc = answer(cli, &r, &out, &remark, &err);
    if (rc != BELAY_OK && strcmp(err.reason, "no_command") == 0 && !json)
        return show_usage(cli, &err);
    if (rc != BELAY_OK)
        return report_error(cli->err, &err, json);

    if (report_write(cli->out, buf_view(&out), &err) != BELAY_OK) {
        (void)report_error(cli->err, &err, json);
        return EXIT_NOT_WRITTEN;
    }
    report_say(cli->err, &remark);
    return 0;
}
