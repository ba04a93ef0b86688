#include "cli/cli.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "api/handle.h"
#include "api/op_text.h"
#include "cli/command.h"
#include "cli/follow.h"
#include "cli/job_client.h"
#include "cli/report.h"
#include "cli/stream.h"
#include "cli/watch.h"
#include "cli/work.h"

/* Failures that have a status of their own, by their reason. */
static const struct {
    const char *reason;
    int status;
} own_statuses[] = {
    { "output", 1 },
    { "command_refused", 126 }, /* as shells have it */
    { "command_missing", 127 },
};
#define EXIT_NOT_WRITTEN 1

static int status_of(const struct belay_error *err, int status)
{
    for (size_t i = 0; i < COUNT_OF(own_statuses); i++) {
        if (strcmp(err->reason, own_statuses[i].reason) == 0)
            return own_statuses[i].status;
    }
    return status;
}

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

static const char *fleet_dir(const struct cli *cli)
{
    const char *dir = cli->env("BELAY_FLEET_DIR");

    return dir && *dir ? dir : NULL;
}

static belay_rc open_store(const struct cli *cli, const struct request *r,
                           struct belay **out, struct belay_error *err)
{
    const struct belay_options options = { .size = sizeof(options),
                                           .ns = r->ns,
                                           .host = r->op->watches ? BELAY_HOST_WATCH
                                                                  : BELAY_HOST_APART,
                                           .fleet_dir = fleet_dir(cli) };

    if (!r->op->needs_store || r->op->reach == OP_REACH_URL || r->socket)
        return BELAY_OK;
    return handle_open(r->store, &options,
                       r->op->reach == OP_REACH_STORE ? HANDLE_STORE : HANDLE_NAMESPACE,
                       out, err);
}

/* What lies between a handler and the world. */
struct ends {
    struct stream_out to;
    struct follower follower;
    struct stopper stopper;
    bool follows; /* items are printed when they come */
};

static void ends_release(struct ends *e)
{
    stream_out_release(&e->to);
    stopper_stop(&e->stopper);
}

static bool is_given(const struct request *r, const char *name)
{
    for (size_t i = 0; i < r->n_values; i++) {
        if (strcmp(r->values[i].arg->name, name) == 0)
            return true;
    }
    return false;
}

/* A text in pieces is for people what it is as a whole, so that they see all of it. */
static bool is_followed(const struct request *r)
{
    bool is_read = r->op->body_is_text && r->output == OUTPUT_TABLE && !r->quiet;

    return r->op->shape == OP_LIST &&
           (is_read || r->op->is_live || is_given(r, "follow"));
}

static belay_rc ends_open(const struct cli *cli, const struct request *r,
                          struct ends *out, struct belay_error *err)
{
    out->to = (struct stream_out){ .path = r->target, .fd = r->target ? -1 : cli->out };
    out->follower = (struct follower){ .op = r->op,
                                       .format = r->output,
                                       .quiet = r->quiet,
                                       .out = cli->out,
                                       .err = cli->err };
    out->follows = is_followed(r);
    if (!r->op->lasts && !is_given(r, "follow") && !is_given(r, "watch"))
        return BELAY_OK;
    out->stopper.has_relay = is_given(r, "command");
    return stopper_start(&out->stopper, err);
}

/* Calls the operation's handler, with the ends of whatever streams through it. */
static belay_rc ask(const struct cli *cli, struct request *r, struct belay *b,
                    struct ends *ends, json_t **result, struct belay_error *err)
{
    const struct op_source source = { .read = stream_read, .arg = &r->source };
    const struct op_sink sink = { .write = stream_write, .arg = &ends->to };
    const struct op_follow follow = { .emit = follow_emit, .arg = &ends->follower };
    const struct op_runner runner = { .run = command_run, .arg = &ends->stopper };
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
        .fleet_dir = fleet_dir(cli),
        .principal = is_named ? principal : NULL,
        .source = &source,
        .sink = &sink,
        .follow = ends->follows ? &follow : NULL,
        .cancel = ends->stopper.cancel,
        .work = work_run,
        .runner = ends->stopper.has_relay ? &runner : NULL,
        .is_quiet = r->quiet,
        .fills_pages = r->output != OUTPUT_JSON,
    };
    if (r->socket)
        return job_ask(r->socket, r->op, r->values, r->n_values, result, err);
    belay_rc rc = r->op->handler(&call, result, err);
    if (rc == BELAY_OK && r->op->shape == OP_BYTES)
        rc = stream_finish(&ends->to, err);
    return rc;
}

/* Everything that asking takes, for who asks more than once. */
struct asking {
    const struct cli *cli;
    struct request *r;
    struct belay *b;
    struct ends *ends;
};

static belay_rc ask_again(void *asking, json_t **result, struct belay_error *err)
{
    const struct asking *a = asking;

    return ask(a->cli, a->r, a->b, a->ends, result, err);
}

static belay_rc watch(struct asking *a, struct belay_error *err)
{
    const struct watched what = { .ask = ask_again, .arg = a };
    belay_rc rc = watch_run(&what, a->r, a->cli->out, a->ends->stopper.cancel, err);

    if (rc != BELAY_OK)
        err_context(err, a->r->op->words);
    return rc;
}

/* Asks the operation and turns its answer into text; *status is the answer's own. */
static belay_rc answer(const struct cli *cli, struct request *r, struct buf *out,
                       struct buf *remark, int *status, struct belay_error *err)
{
    struct ends ends CLEANUP(ends_release) = { 0 };
    struct belay *b CLEANUP(belay_closep) = NULL;
    json_t *result CLEANUP(json_decrefp) = NULL;

    belay_rc rc = ends_open(cli, r, &ends, err);
    if (rc == BELAY_OK)
        rc = open_store(cli, r, &b, err);
    if (rc != BELAY_OK)
        return rc;
    if (is_given(r, "watch"))
        return watch(&(struct asking){ .cli = cli, .r = r, .b = b, .ends = &ends },
                     err);
    bool is_told = !ends.follows && (r->op->shape != OP_BYTES || r->target);
    rc = ask(cli, r, b, &ends, &result, err);
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
        return status_of(&err, status);
    }
    if (report_write(cli->out, buf_view(&out), &err) != BELAY_OK) {
        (void)report_error(cli->err, &err, json);
        return EXIT_NOT_WRITTEN;
    }
    report_say(cli->err, &remark);
    return status;
}
