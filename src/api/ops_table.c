/* The rows, and the groups of rows that are in files of their own.  Nothing else knows
 * which operations there are. */
#include "api/op_handlers.h"
#include "api/ops_args.h"
#include "api/ops_executions.h"
#include "api/ops_fleet.h"
#include "api/ops_processes.h"
#include "api/ops_sessions.h"

static const char *const outputs[] = { "table", "json", "jsonl", NULL };

static const struct op_arg globals[] = {
    { .name = "store",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .placeholder = "URL",
      .env = "BELAY_STORE",
      .fallback = "sqlite:belay.db",
      .help = "the store to work on" },
    { .name = "namespace",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .placeholder = "NS",
      .env = "BELAY_NAMESPACE",
      .fallback = "default",
      .help = "the namespace in it" },
    { .name = "output",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .choices = outputs,
      .fallback = "table",
      .help = "how to print the answer: for people, as JSON, or as one JSON value a "
              "line" },
    { .name = "json",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "short for --output json" },
    { .name = "quiet",
      .letter = 'q',
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "print only what a script needs: ids, and no remarks" },
    { .name = "help",
      .letter = 'h',
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "show what the command does and takes" },
    { .name = "version",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "same as the command version" },
};

static const struct op_arg help_args[] = {
    { .name = "words",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .repeated = true,
      .placeholder = "COMMAND",
      .help = "the command, or its first word for all that begin with it" },
};

static const struct op_arg completion_args[] = {
    { .name = "shell",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .required = true,
      .choices = op_completion_shells,
      .placeholder = "SHELL",
      .help = "the shell that will read it" },
};

static const char *const version_columns[] = { "version", "store_format", "drivers",
                                               NULL };
static const char *const errors_columns[] = { "number",    "code",      "http_status",
                                              "exit_code", "retryable", "text",
                                              NULL };

static const struct operation about[] = {
    { .name = "version",
      .words = "version",
      .http_method = "GET",
      .http_path = "/v1/version",
      .summary = "Show the version, the store format and the stores of this build",
      .scope = OP_SCOPE_READ,
      .shape = OP_OBJECT,
      .columns = version_columns,
      .essence = "version",
      .handler = op_version },
    { .name = "errors",
      .words = "errors",
      .http_method = "GET",
      .http_path = "/v1/errors",
      .summary = "List every error: its code, HTTP status and exit status",
      .details = "An error has the same code in C, over HTTP and on the command line. "
                 "Retryable means that the same call, unchanged, may succeed later.",
      .scope = OP_SCOPE_READ,
      .shape = OP_LIST,
      .columns = errors_columns,
      .essence = "code",
      .handler = op_errors },
    { .name = "help",
      .words = "help",
      .summary = "Show all commands, or one in full",
      .args = help_args,
      .n_args = COUNT_OF(help_args),
      .shape = OP_PROSE,
      .handler = op_help },
    { .name = "completion",
      .words = "completion",
      .summary = "Print a script that completes commands in a shell",
      .details =
          "For bash: eval \"$(belay completion bash)\". For zsh: the same, or a "
          "file _belay in a directory of $fpath. For fish: belay completion fish "
          "| source.",
      .args = completion_args,
      .n_args = COUNT_OF(completion_args),
      .shape = OP_PROSE,
      .handler = op_completion },
    { .name = "man",
      .words = "man",
      .summary = "Print the manual page belay(1) in roff",
      .shape = OP_PROSE,
      .handler = op_man },
};

/* --- administration --- */

#define ARG_SYSTEM                                                       \
    {                                                                    \
        .name = "system", .kind = OP_FLAG, .type = OP_BOOL,              \
        .help = "the store's own log, of namespaces created and deleted" \
    }
#define ARG_URL                                                                        \
    {                                                                                  \
        .name = "url", .kind = OP_POSITIONAL, .type = OP_TEXT, .min = 1,               \
        .placeholder = "URL", .help = "the store; goes before --store and BELAY_STORE" \
    }

static const struct op_arg namespace_ls_args[] = { ARG_LIMIT, ARG_CURSOR };

static const struct op_arg namespace_create_args[] = {
    { .name = "name",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .required = true,
      .min = 1,
      .placeholder = "NAME",
      .help = "1 to 63 of a-z, 0-9, _ and -, beginning with a letter or digit" },
};

static const struct op_arg namespace_delete_args[] = {
    { .name = "name",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .required = true,
      .min = 1,
      .placeholder = "NAME",
      .help = "the namespace" },
    { .name = "confirm",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .required = true,
      .min = 1,
      .placeholder = "NAME",
      .help = "the same name once more, since nothing brings it back" },
};

static const struct op_arg epoch_raise_args[] = {
    { .name = "reason",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .max = 256,
      .placeholder = "TEXT",
      .help = "why, for whoever looks at it later" },
};

static const struct op_arg audit_ls_args[] = { ARG_LIMIT, ARG_CURSOR, ARG_SYSTEM };
static const struct op_arg audit_verify_args[] = { ARG_SYSTEM };
static const struct op_arg url_args[] = { ARG_URL };

static const char *const namespace_columns[] = { "name", "state", "created_at_ms",
                                                 NULL };
static const char *const create_columns[] = { "name", "created", NULL };
static const char *const delete_columns[] = { "name", "deleted", NULL };
static const char *const epoch_columns[] = { "namespace", "epoch",       "raised_at_ms",
                                             "reason",    "fence_floor", "granting",
                                             NULL };
static const char *const clock_columns[] = { "namespace", "now_ms",  "wall_ms",
                                             "mark_ms",   "doubted", "step_ms",
                                             "epoch",     NULL };
static const char *const audit_columns[] = { "seq",       "at_ms",  "verb",
                                             "principal", "detail", NULL };
static const char *const verify_columns[] = { "namespace", "ok",     "entries", "hash",
                                              "broken_at", "reason", NULL };
static const char *const check_columns[] = { "ok", "found", "checked", NULL };
static const char *const finding_columns[] = { "code", "namespace", "entity", "message",
                                               NULL };
static const char *const doctor_columns[] = { "ok",         "version", "store",
                                              "durability", "code",    NULL };
static const char *const told_columns[] = { "level", "what", "message", NULL };

static const struct operation namespaces[] = {
    { .name = "namespace.ls",
      .words = "namespace ls",
      .http_method = "GET",
      .http_path = "/v1/namespaces",
      .summary = "List the namespaces of the store",
      .args = namespace_ls_args,
      .n_args = COUNT_OF(namespace_ls_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .reach = OP_REACH_STORE,
      .shape = OP_LIST,
      .columns = namespace_columns,
      .essence = "name",
      .handler = op_namespace_ls },
    { .name = "namespace.create",
      .words = "namespace create",
      .http_method = "PUT",
      .http_path = "/v1/namespaces/{name}",
      .summary = "Create a namespace, unless it is there",
      .details = "Namespaces are also created by their first use.",
      .args = namespace_create_args,
      .n_args = COUNT_OF(namespace_create_args),
      .scope = OP_SCOPE_ADMIN,
      .needs_store = true,
      .reach = OP_REACH_STORE,
      .shape = OP_OBJECT,
      .columns = create_columns,
      .essence = "name",
      .handler = op_namespace_create },
    { .name = "namespace.delete",
      .words = "namespace delete",
      .http_method = "DELETE",
      .http_path = "/v1/namespaces/{name}",
      .summary = "Delete a namespace with everything in it",
      .details = "Stop those who use it first: a process that has it open is not told, "
                 "and what it writes afterwards is in no namespace. A deletion that "
                 "was interrupted goes on when it is asked for again; until then the "
                 "namespace cannot be opened.",
      .args = namespace_delete_args,
      .n_args = COUNT_OF(namespace_delete_args),
      .scope = OP_SCOPE_ADMIN,
      .needs_store = true,
      .reach = OP_REACH_STORE,
      .shape = OP_OBJECT,
      .columns = delete_columns,
      .essence = "name",
      .handler = op_namespace_delete },
};

static const struct operation care[] = {
    { .name = "doctor",
      .words = "doctor",
      .summary = "Tell how a store and this machine are doing",
      .details = "A store that cannot be opened is told about as well. The exit status "
                 "is 0 when nothing is bad, that of the error when the store cannot be "
                 "opened, else 1.",
      .args = url_args,
      .n_args = COUNT_OF(url_args),
      .scope = OP_SCOPE_ADMIN,
      .needs_store = true,
      .reach = OP_REACH_URL,
      .shape = OP_OBJECT,
      .columns = doctor_columns,
      .essence = "ok",
      .rows = "findings",
      .row_columns = told_columns,
      .handler = op_doctor,
      .exit_of = op_exit_of_code },
    { .name = "check",
      .words = "check",
      .summary = "Verify everything that must be true of a store",
      .details = "Reads all of it: formats, ranks against rows, logs, feeds, blobs and "
                 "their digests, audit logs, and the database below. Others may go on "
                 "working. The exit status is 1 when something was found.",
      .args = url_args,
      .n_args = COUNT_OF(url_args),
      .scope = OP_SCOPE_ADMIN,
      .needs_store = true,
      .reach = OP_REACH_STORE,
      .shape = OP_OBJECT,
      .columns = check_columns,
      .essence = "ok",
      .rows = "findings",
      .row_columns = finding_columns,
      .handler = op_check,
      .exit_of = op_exit_of_ok },
    { .name = "epoch.show",
      .words = "epoch show",
      .http_method = "GET",
      .http_path = "/v1/epoch",
      .summary = "Show the epoch and the fence floor of the namespace",
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = epoch_columns,
      .essence = "epoch",
      .handler = op_epoch_show },
    { .name = "epoch.raise",
      .words = "epoch raise",
      .http_method = "POST",
      .http_path = "/v1/epoch/raise",
      .summary = "Raise the epoch of the namespace: every lease of before is stale",
      .details = "To be done for each namespace after a store was restored from a "
                 "backup or has failed over.",
      .args = epoch_raise_args,
      .n_args = COUNT_OF(epoch_raise_args),
      .scope = OP_SCOPE_ADMIN,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = epoch_columns,
      .essence = "epoch",
      .handler = op_epoch_raise },
    { .name = "clock.show",
      .words = "clock show",
      .http_method = "GET",
      .http_path = "/v1/clock",
      .summary = "Show the time of the namespace, and whether the clock is doubted",
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = clock_columns,
      .essence = "now_ms",
      .handler = op_clock_show },
    { .name = "clock.reset",
      .words = "clock reset",
      .http_method = "POST",
      .http_path = "/v1/clock/reset",
      .summary = "Set the time of the namespace to the clock, and raise its epoch",
      .details = "For a clock that was wrong and is right now. Processes that have the "
                 "store open keep their own time until they open it again.",
      .scope = OP_SCOPE_ADMIN,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = clock_columns,
      .essence = "epoch",
      .handler = op_clock_reset },
    { .name = "audit.ls",
      .words = "audit ls",
      .http_method = "GET",
      .http_path = "/v1/audit",
      .summary = "List what administrators did in the namespace",
      .args = audit_ls_args,
      .n_args = COUNT_OF(audit_ls_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = audit_columns,
      .essence = "seq",
      .handler = op_audit_ls },
    { .name = "audit.verify",
      .words = "audit verify",
      .http_method = "GET",
      .http_path = "/v1/audit/verify",
      .summary = "Follow the hashes of the audit log from its beginning to its end",
      .details = "The exit status is 1 when the chain is broken.",
      .args = audit_verify_args,
      .n_args = COUNT_OF(audit_verify_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = verify_columns,
      .essence = "ok",
      .handler = op_audit_verify,
      .exit_of = op_exit_of_ok },
};

static const struct op_group groups[] = {
    { .title = "Executions", .ops = ops_execution, .n_ops = COUNT_OF(ops_execution) },
    { .title = "Operators", .ops = ops_control, .n_ops = COUNT_OF(ops_control) },
    { .title = "Workers", .ops = ops_worker, .n_ops = COUNT_OF(ops_worker) },
    { .title = "Work that is held", .ops = ops_holder, .n_ops = COUNT_OF(ops_holder) },
    { .title = "What goes on", .ops = ops_activity, .n_ops = COUNT_OF(ops_activity) },
    { .title = "Inboxes", .ops = ops_queue, .n_ops = COUNT_OF(ops_queue) },
    { .title = "Sessions", .ops = ops_session, .n_ops = COUNT_OF(ops_session) },
    { .title = "Processes", .ops = ops_process, .n_ops = COUNT_OF(ops_process) },
    { .title = "Who runs processes, and who sees them",
      .ops = ops_process_scope,
      .n_ops = COUNT_OF(ops_process_scope) },
    { .title = "Attachments",
      .ops = ops_attachment,
      .n_ops = COUNT_OF(ops_attachment) },
    { .title = "Blobs", .ops = ops_blob, .n_ops = COUNT_OF(ops_blob) },
    { .title = "Fleets of one machine",
      .ops = ops_fleet,
      .n_ops = COUNT_OF(ops_fleet) },
    { .title = "The cache of a fleet",
      .ops = ops_fleet_cache,
      .n_ops = COUNT_OF(ops_fleet_cache) },
    { .title = "Namespaces", .ops = namespaces, .n_ops = COUNT_OF(namespaces) },
    { .title = "Care of a store", .ops = care, .n_ops = COUNT_OF(care) },
    { .title = "About Belay", .ops = about, .n_ops = COUNT_OF(about) },
};

const struct op_table op_table_belay = {
    .groups = groups,
    .n_groups = COUNT_OF(groups),
    .globals = globals,
    .n_globals = COUNT_OF(globals),
};
